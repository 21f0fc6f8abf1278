import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from crowdrank.models.ratings.graded_response_likelihood import (
    RatingShard,
    hessian,
    log_likelihood,
    ordering_probability,
)

ITEMS, PEOPLE, CLASSES = 4, 3, 5
CUTS = ITEMS + 3 * PEOPLE


def shard(seed=0, rows=60):
    rng = np.random.default_rng(seed)
    code = rng.integers(CLASSES, size=rows)
    return RatingShard(
        rng.integers(ITEMS, size=rows),
        ITEMS + rng.integers(PEOPLE, size=rows),
        np.maximum(CUTS + code - 1, CUTS),
        np.minimum(CUTS + code, CUTS + CLASSES - 2),
        code == 0,
        code == CLASSES - 1,
        rng.uniform(0.5, 2, rows),
        PEOPLE,
    )


def point(seed=1, wide=1.0):
    rng = np.random.default_rng(seed)
    return np.concatenate((wide * rng.normal(size=CUTS) * 0.7, np.sort(wide * 2 * rng.normal(size=CLASSES - 1))))


def numerically(function, x, step=1e-5):
    return np.array([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_matches_finite_differences(seed):
    rows, x = shard(seed), point(seed)
    expected = numerically(lambda at: log_likelihood(rows, at).value, x)
    np.testing.assert_allclose(log_likelihood(rows, x).gradient, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_hessian_matches_finite_differences(seed):
    rows, x = shard(seed), point(seed)
    expected = -numerically(lambda at: log_likelihood(rows, at).gradient, x)
    matrix, steady = hessian(rows, x)
    np.testing.assert_allclose(matrix.toarray(), expected, rtol=1e-5, atol=1e-5)
    assert (steady >= 0).all()


def test_probabilities_follow_the_formula_and_sum_to_one():
    x, item, who = point(), 2, 1
    score, lenient, stretch, sharper = x[[item, ITEMS + who, ITEMS + PEOPLE + who, ITEMS + 2 * PEOPLE + who]]
    ends = expit(np.exp(stretch) * np.concatenate(([-np.inf], x[CUTS:], [np.inf])) - lenient - (1 + sharper) * score)
    for code in range(CLASSES):
        one = RatingShard(
            np.array([item]),
            np.array([ITEMS + who]),
            np.array([CUTS + max(code - 1, 0)]),
            np.array([CUTS + min(code, CLASSES - 2)]),
            np.array([code == 0]),
            np.array([code == CLASSES - 1]),
            np.ones(1),
            PEOPLE,
        )
        assert np.exp(log_likelihood(one, x).value) == pytest.approx(ends[code + 1] - ends[code], rel=1e-12)


def test_far_tails_lose_no_digits():
    rows, x = shard(), point(wide=1.0)
    x[:ITEMS] = [800.0, -800.0, 400.0, 0.0]
    found = log_likelihood(rows, x)
    assert np.isfinite(found.value)
    assert np.isfinite(found.gradient).all()
    assert np.isfinite(hessian(rows, x)[0].data).all()


def test_thresholds_out_of_order_are_impossible():
    x = point()
    x[CUTS:] = x[CUTS:][::-1]
    assert log_likelihood(shard(), x).value == -np.inf


def test_shards_add_up_to_the_whole():
    rows, x = shard(rows=61), point()
    parts = [log_likelihood(part, x) for part in rows.split(3)]
    assert sum(part.value for part in parts) == pytest.approx(log_likelihood(rows, x).value)
    np.testing.assert_allclose(sum(part.gradient for part in parts), log_likelihood(rows, x).gradient)


@pytest.mark.parametrize("apart", [-3.0, -0.5, 0.0, 1e-4, 0.002, 1.0, 5.0])
def test_the_ordering_probability_is_that_of_two_logistic_errors(apart):
    expected, _ = quad(lambda z: expit(apart + z) * expit(z) * expit(-z), -60, 60, epsabs=1e-12)
    assert ordering_probability(np.array([apart]))[0] == pytest.approx(expected, abs=1e-8)
