import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from crowdrank.models.pairwise.likelihood import LOGISTIC, PROBIT, gaussian, virtual_node

SCORES = np.array([-3.0, -0.5, 0.0, 0.7, 2.0])


def by_hand_gaussian(scores):
    return norm.logpdf(scores, scale=2.5).sum() - norm.logpdf(0.0, scale=2.5) * len(scores)


def by_hand_virtual(formula):
    cdf = expit if formula == LOGISTIC else lambda x: norm.cdf(x / np.sqrt(2))
    return lambda scores: 0.8 * np.sum(np.log(cdf(scores)) + np.log(cdf(-scores)))


PRIORS = {
    "gaussian": (lambda s: gaussian(s, 2.5), by_hand_gaussian),
    "virtual node, logistic": (lambda s: virtual_node(s, 0.8, LOGISTIC), by_hand_virtual(LOGISTIC)),
    "virtual node, probit": (lambda s: virtual_node(s, 0.8, PROBIT), by_hand_virtual(PROBIT)),
}


@pytest.mark.parametrize("name", PRIORS)
def test_value_is_the_log_density(name):
    prior, by_hand = PRIORS[name]
    assert prior(SCORES).value == pytest.approx(by_hand(SCORES), rel=1e-12)


@pytest.mark.parametrize("name", PRIORS)
def test_gradient_and_curvature_are_differences(name):
    prior, _ = PRIORS[name]
    found = prior(SCORES)
    for n, step in enumerate(np.eye(len(SCORES)) * 1e-5):
        ahead, behind = prior(SCORES + step), prior(SCORES - step)
        assert found.gradient[n] == pytest.approx((ahead.value - behind.value) / 2e-5, rel=1e-6, abs=1e-8)
        assert found.curvature[n] == pytest.approx(-(ahead.gradient - behind.gradient)[n] / 2e-5, rel=1e-6)
