"""Means shrunk towards their query's mean, by a given or an estimated prior count."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from crowdrank.data import Ratings
from crowdrank.errors import SettingError
from crowdrank.models.ratings.mean_ratings import MeanRating
from crowdrank.models.ratings.shrinkage import ShrunkenMeans

GRADES = Ratings.of(["a", "a", "a", "b", "c", "c"], [4, 5, 3, 5, 1, 2])


def crowd(seed, items=200, spread=1.0, noise=2.0, most=8, query=None):
    rng = np.random.default_rng(seed)
    truth = 50 + spread * rng.normal(size=items)
    item = np.repeat(np.arange(items), rng.integers(1, most, items))
    grades = truth[item] + noise * rng.normal(size=len(item))
    return Ratings.of([f"i{n:03d}" for n in item], grades, query=query), truth


def shrunk(grades, count=None):
    return ShrunkenMeans(grades.items, grades.item, grades.grade, grades.weights, count)


def test_a_zero_prior_count_gives_plain_means():
    assert MeanRating(prior_count=0).fit(GRADES).scores == pytest.approx([4.0, 5.0, 1.5])


def test_shrinkage_is_strongest_for_items_with_few_grades():
    ranking = MeanRating(prior_count=2).fit(GRADES)
    share = np.array([3, 1, 2]) / np.array([5, 3, 4])
    level = share @ [4.0, 5.0, 1.5] / share.sum()
    assert ranking.scores == pytest.approx(level + share * (np.array([4.0, 5.0, 1.5]) - level))
    assert ranking.parameters["prior_count"] == 2


def test_one_top_grade_does_not_beat_many_good_ones():
    grades = Ratings.of(["once", *["often"] * 20, *["bad"] * 5], [5, *[4.8] * 20, *[1] * 5])
    plain, drawn = (MeanRating(prior_count=count).fit(grades).table(uncertainty=False) for count in (0, 1))
    assert plain["item"].to_list() == ["once", "often", "bad"]
    assert drawn["item"].to_list() == ["often", "once", "bad"]


@pytest.mark.parametrize(("spread", "noise"), [(1.0, 2.0), (2.0, 1.0)])
def test_the_prior_count_is_estimated(spread, noise):
    grades, _ = crowd(1, items=2000, spread=spread, noise=noise)
    assert MeanRating().fit(grades).parameters["prior_count"] == pytest.approx((noise / spread) ** 2, rel=0.2)


def test_the_estimated_count_maximises_the_restricted_likelihood():
    """The restricted likelihood again, by the contrasts of the whole covariance."""
    grades, _ = crowd(2, items=12)
    found = shrunk(grades)

    def value(log_count):
        same = grades.item[:, None] == grades.item
        shape = np.eye(len(grades)) + same / np.exp(log_count)
        rest = np.linalg.svd(np.ones((1, len(grades))))[2][1:]
        shape = rest @ shape @ rest.T
        y = rest @ grades.grade
        noise = y @ np.linalg.solve(shape, y) / len(y)
        return multivariate_normal(np.zeros(len(y)), noise * shape).logpdf(y) - np.log(
            np.cosh(0.5 * log_count - np.log(2))
        )

    logs = np.linspace(-2, 3, 6)
    ours = np.array([found._negative_log_posterior(log) for log in logs])
    np.testing.assert_allclose(ours - ours[0], [value(logs[0]) - value(log) for log in logs], atol=1e-8)
    assert found._negative_log_posterior(np.log(found.fitted_count)) <= min(
        found._negative_log_posterior(np.log(found.fitted_count) + d) for d in (-0.01, 0.01)
    )


def test_shrinkage_reduces_the_error():
    grades, truth = crowd(3)
    plain, drawn = (MeanRating(prior_count=count).fit(grades).scores for count in (0, None))
    assert np.mean((drawn - truth) ** 2) < 0.8 * np.mean((plain - truth) ** 2)


def test_standard_errors_are_calibrated():
    misses = []
    for seed in range(5):
        grades, truth = crowd(seed)
        ranking = MeanRating().fit(grades)
        misses += list((ranking.scores - truth) / ranking.uncertainty.std_error)
    assert np.std(misses) == pytest.approx(1.0, abs=0.1)


def test_a_scale_far_from_zero_changes_nothing():
    near, far = (Ratings.of(["a", "a", "b", "b", "c"], np.array([1, 2, 4, 3, 3]) + shift) for shift in (0.0, 1e7))
    apart = MeanRating().fit(far).scores - MeanRating().fit(near).scores
    np.testing.assert_allclose(apart, 1e7, rtol=1e-12)


def test_one_grade_is_its_own_mean():
    ranking = MeanRating().fit(Ratings.of(["a"], [3]))
    assert ranking.scores.tolist() == [3.0]
    assert np.isfinite(ranking.uncertainty.std_error).all()


def test_random_grades_separate_nothing():
    """The prior count is integrated: its best value alone would be too sure of itself."""
    rng = np.random.default_rng(8)
    for _ in range(5):
        grades = Ratings.of(np.repeat([f"i{n:02d}" for n in range(15)], 10), rng.integers(5, size=150))
        uncertainty = MeanRating().fit(grades).uncertainty
        assert uncertainty.sampled
        above = np.mean(uncertainty.draws[:, :, None] > uncertainty.draws[:, None, :], axis=0)
        assert np.count_nonzero(above > 0.95) <= 3


@pytest.mark.parametrize("count", [-1.0, float("nan"), float("inf")])
def test_a_negative_or_infinite_prior_count_is_refused(count):
    with pytest.raises(SettingError, match="prior_count must be zero or more, or None to estimate it, got"):
        MeanRating(prior_count=count)
