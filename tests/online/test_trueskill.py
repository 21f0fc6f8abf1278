"""TrueSkill against its posterior: a normal lead that is known to lie above a margin, or within it."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from crowdrank.data import Comparison
from crowdrank.errors import SettingError
from crowdrank.online import TrueSkill
from crowdrank.online.rating_systems import after_tie, after_win, inverse_mills_ratio


def truncated(low, high):
    """Mean and variance of a standard normal between two bounds, on a grid of a million."""
    low, high = max(low, -12.0), min(high, 12.0)
    z = low + (np.arange(1_000_000) + 0.5) * (high - low) / 1_000_000
    chance = np.exp(-0.5 * z * z)
    chance /= chance.sum()
    mean = float(chance @ z)
    return mean, float(chance @ (z - mean) ** 2)


def integrated(mean, variance, noise, low, high):
    """Moments of both scores once left's lead with noise beta between the bounds, over a grid of the scores."""
    grids = [np.linspace(m - 9 * math.sqrt(v), m + 9 * math.sqrt(v), 1201) for m, v in zip(mean, variance, strict=True)]
    si, sj = grids[0][:, None], grids[1][None, :]
    scatter = math.sqrt(2) * noise
    joint = norm.pdf(si, mean[0], math.sqrt(variance[0])) * norm.pdf(sj, mean[1], math.sqrt(variance[1]))
    joint *= norm.cdf((high - si + sj) / scatter) - norm.cdf((low - si + sj) / scatter)
    joint /= joint.sum()
    means = [float((joint * s).sum()) for s in (si, sj)]
    return means, [float((joint * (s - m) ** 2).sum()) for s, m in zip((si, sj), means, strict=True)]


def beliefs_of(model, mean, variance):
    start = model.start(["a", "b"])
    return start.replace(item_columns={"mean": np.array(mean), "variance": np.array(variance)})


@pytest.mark.parametrize("drift", [0.0, 0.5])
@pytest.mark.parametrize("winner", ["a", "b", "tie"])
def test_an_update_has_the_moments_of_the_posterior(winner, drift):
    model, mean, variance = TrueSkill(drift=drift, tie_probability=0.3), [27.0, 22.0], [30.0, 9.0]
    low, high = {"a": (model.margin, np.inf), "b": (-np.inf, -model.margin), "tie": (-model.margin, model.margin)}[
        winner
    ]
    after = model.update(beliefs_of(model, mean, variance), Comparison("a", "b", winner))
    means, variances = integrated(mean, [v + drift**2 for v in variance], model.noise, low, high)
    np.testing.assert_allclose(after.mean, means, rtol=1e-8)
    np.testing.assert_allclose(after.variance, variances, rtol=1e-7)


def test_the_first_win_between_two_unknown_is_the_known_one():
    """The paper's defaults, ties one in ten: 29.396 and 20.604, both with a deviation of 7.171."""
    model = TrueSkill()
    after = model.update(model.start(), Comparison("a", "b", "a"))
    np.testing.assert_allclose(after.mean, [29.39583, 20.60417], atol=1e-5)
    np.testing.assert_allclose(np.sqrt(after.variance), [7.17148, 7.17148], atol=1e-5)


@pytest.mark.parametrize("margin", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("lead", [-6.0, -1.0, 0.0, 0.3, 4.0])
def test_v_and_w_are_moments_of_a_truncated_normal(lead, margin):
    for (v, w), bounds in (
        (after_win(lead, margin), (margin - lead, np.inf)),
        (after_tie(lead, margin), (-margin - lead, margin - lead)),
    ):
        mean, variance = truncated(*bounds)
        assert v == pytest.approx(mean, rel=1e-6, abs=1e-12)
        assert 1 - w == pytest.approx(variance, rel=1e-5)


def test_an_error_in_the_margin_would_be_noticed():
    """The negative control of the test above."""
    assert after_win(0.3, 0.05)[0] != pytest.approx(truncated(-0.05 - 0.3, np.inf)[0], rel=1e-2)


def test_a_tie_within_no_margin_is_the_limit_of_narrow_ones():
    assert after_tie(0.7, 0.0) == (-0.7, 1.0)
    assert after_tie(0.7, 1e-4) == pytest.approx((-0.7, 1.0), abs=1e-6)


@pytest.mark.parametrize("lead", [-500.0, -40.0, 40.0, 500.0])
def test_extreme_surprises_stay_finite(lead):
    for v, w in (after_win(lead, 0.1), after_tie(lead, 0.1)):
        assert math.isfinite(v)
        assert -1e-12 <= w <= 1 + 1e-6
    assert inverse_mills_ratio(-35.0 + 1e-9) == pytest.approx(inverse_mills_ratio(-35.0 - 1e-9), rel=1e-9)


def test_ties_bring_two_together_and_make_them_surer():
    model = TrueSkill()
    before = beliefs_of(model, [30.0, 20.0], [40.0, 40.0])
    after = model.update(before, Comparison("a", "b", "tie"))
    assert 0 < after.mean[0] - after.mean[1] < 10.0
    assert np.all(after.variance < before.variance)


@pytest.mark.parametrize(
    "wrong", [{"noise": 0.0}, {"prior_scale": -1.0}, {"drift": -1.0}, {"tie_probability": 1.0}, {"initial": np.nan}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} must be"):
        TrueSkill(**wrong)
