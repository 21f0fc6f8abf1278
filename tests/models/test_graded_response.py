"""Graded response with annotators: the posterior mode, and recovery of simulated parameters."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.special import expit
from scipy.stats import spearmanr

from crowdrank.data import Ratings
from crowdrank.engines import LOCAL
from crowdrank.errors import ConvergenceWarning, DataError, SettingError
from crowdrank.models.ratings.dawid_skene import GradeClasses
from crowdrank.models.ratings.graded_response import GradedResponse
from crowdrank.models.ratings.graded_response_layout import ParameterLayout, PriorScales
from crowdrank.models.ratings.graded_response_posterior import LogPosterior
from crowdrank.models.ratings.mean_ratings import MeanRating
from crowdrank.simulation import rating_crowd
from tests.strategies import disconnected_allowed, some_ratings

quick = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def crowd(seed, items=60, people=20, each=30, turned=0, levels=5, spread=1.0):
    rng = np.random.default_rng(seed)
    truth, lenient = spread * rng.normal(size=items), rng.normal(size=people)
    sharp = rng.uniform(0.3, 2.0, people)
    sharp[:turned] = -1.5
    item = np.concatenate([rng.choice(items, each, replace=False) for _ in range(people)])
    who = np.repeat(np.arange(people), each)
    seen = sharp[who] * truth[item] + lenient[who] + rng.logistic(size=len(item))
    grade = np.searchsorted(np.linspace(-2, 2, levels - 1), seen)
    ratings = Ratings.of([f"i{n:02d}" for n in item], grade, annotator=[f"w{k:02d}" for k in who])
    assert len(ratings.items) == items
    return ratings, truth, sharp, lenient


def log_posterior(scales, ratings, x):
    """The formula once more, row by row, for one scale of classes 0, 1, … that are all used."""
    items, people = len(ratings.items), len(ratings.annotators)
    score, (lenient, stretch, sharper) = x[:items], x[items : items + 3 * people].reshape(3, people)
    cuts = np.concatenate(([-np.inf], x[items + 3 * people :], [np.inf]))
    code = np.unique(ratings.grade, return_inverse=True)[1]
    value = -0.5 * np.sum((x[items + 3 * people :] / 10.0) ** 2)
    for part, scale in zip((score, lenient, stretch, sharper), scales, strict=True):
        value -= 0.5 * np.sum((part / scale) ** 2)
    for item, who, c, weight in zip(ratings.item, ratings.annotator, code, ratings.weights, strict=True):
        ends = np.exp(stretch[who]) * cuts[c : c + 2] - lenient[who] - (1 + sharper[who]) * score[item]
        value += weight * np.log(expit(ends[1]) - expit(ends[0]))
    return value


SCALES = PriorScales(score=1.0, leniency=1.0, stretch=0.3, discrimination=0.7)
GIVEN = {"prior_scale": 1.0, "leniency_scale": 1.0, "stretch_scale": 0.3, "discrimination_scale": 0.7}


def mode(ratings, tolerance=1e-4):
    layout = ParameterLayout.of(ratings, GradeClasses.of(ratings, 10))
    return layout, LogPosterior(LOCAL.load(layout.shard), layout, SCALES).maximise(layout.start, tolerance, 100)


@quick
@given(ratings=some_ratings(most_more=8))
def test_with_given_widths_the_estimate_is_the_posterior_mode(ratings):
    layout, found = mode(ratings, 1e-8)
    top = log_posterior(SCALES, ratings, found.parameters)
    assert found.evaluation.value == pytest.approx(top, rel=1e-9)
    with disconnected_allowed():
        ranking = GradedResponse(**GIVEN).fit(ratings)
    centred = ratings.items.centre(found.parameters[: layout.items])
    np.testing.assert_allclose(ranking.scores, centred, atol=1e-3)
    assert layout.discrimination(found.parameters).mean() == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        way = rng.normal(size=len(found.parameters))
        way -= layout.push * (layout.push @ way)  # the mean discrimination is fixed
        way /= np.linalg.norm(way)
        assert log_posterior(SCALES, ratings, found.parameters + 1e-3 * way) <= top + 1e-10 * abs(top)
    aside = found.parameters.copy()
    aside[: layout.items] += 0.1
    assert log_posterior(SCALES, ratings, aside) < top, "the negative control must fail"


def test_scores_and_annotator_parameters_are_recovered():
    ratings, truth, sharp, lenient = crowd(0)
    ranking = GradedResponse().fit(ratings)
    assert spearmanr(ranking.scores, truth)[0] > 0.88
    assert spearmanr(ranking.scores, truth)[0] > spearmanr(MeanRating().fit(ratings).scores, truth)[0]
    assert spearmanr(ranking.annotators["quality"], sharp)[0] > 0.7
    assert spearmanr(ranking.annotators["leniency"], lenient)[0] > 0.9


def test_reversed_annotators_are_identified():
    ratings, truth, _, _ = crowd(1, turned=5, each=40)
    ranking = GradedResponse().fit(ratings)
    assert set(ranking.annotators.reversed) <= {f"w{k:02d}" for k in range(5)}
    assert len(ranking.annotators.reversed) >= 3
    assert spearmanr(ranking.scores, truth)[0] > 0.85
    assert spearmanr(MeanRating().fit(ratings).scores, truth)[0] < 0.5


def test_standard_errors_are_calibrated():
    misses = []
    for seed in range(4):
        ratings, truth, sharp, _ = crowd(seed)
        ranking = GradedResponse().fit(ratings)
        unit = (truth - truth.mean()) * sharp.mean()  # the mean discrimination is the unit
        misses += list((ranking.scores - unit) / ranking.uncertainty.std_error)
    assert 0.8 < np.std(misses) < 1.25


@pytest.mark.parametrize(("items", "people"), [(16, 5), (8, 12)], ids=["scores eliminated", "annotators eliminated"])
def test_factors_are_those_of_the_whole_curvature(items, people):
    """Steps, variances, determinant and draws, with the mean discrimination fixed."""
    ratings, *_ = crowd(2, items=items, people=people, each=min(items, 14))
    layout, found = mode(ratings)
    curvature = found.evaluation.curvature.expected
    size = int(layout.groups[-1])
    free = np.stack([curvature._solve(unit, 0.0) for unit in np.eye(size)])  # the inverse, without the constraint
    np.testing.assert_allclose(free, free.T, atol=1e-10)
    blocks = curvature.blocks
    np.testing.assert_allclose(np.diag(np.linalg.inv(free))[:items], blocks.item, rtol=1e-6)
    push = layout.push
    fixed = free - np.outer(free @ push, push @ free) / (push @ free @ push)
    np.testing.assert_allclose(curvature.variances, np.diag(fixed), atol=1e-10)
    along = np.linalg.svd(push[None])[2][1:]  # a basis of what is left
    assert curvature.log_determinant == pytest.approx(-np.linalg.slogdet(along @ fixed @ along.T)[1], rel=1e-8)
    drawn = curvature.draw(np.random.default_rng(0), 20_000)
    np.testing.assert_allclose(drawn.var(axis=0), np.diag(fixed)[:items], rtol=0.1)


@pytest.mark.parametrize("spread", [0.5, 2.5])
def test_the_spread_of_scores_is_learnt(spread):
    ratings, *_ = crowd(6, spread=spread)
    assert GradedResponse().fit(ratings).parameters["prior_scale"] == pytest.approx(spread, rel=0.5)


@pytest.mark.parametrize("spread", [1.0, 2.5])
def test_intervals_hold_whatever_the_spread(spread):
    held = []
    for seed in range(6):
        ratings, truth, sharp, _ = crowd(seed, items=30, people=15, each=15, spread=spread)
        low, high = np.quantile(GradedResponse().fit(ratings).uncertainty.draws, [0.05, 0.95], axis=0)
        unit = (truth - truth.mean()) * sharp.mean()
        held += list((low <= unit) & (unit <= high))
    assert 0.8 < np.mean(held) < 0.98


def test_random_grades_separate_nothing():
    rng = np.random.default_rng(7)
    item, who = np.tile(np.arange(20), 10), np.repeat(np.arange(10), 20)
    for _ in range(3):
        ratings = Ratings.of([f"i{n:02d}" for n in item], rng.integers(5, size=200), annotator=[f"w{k}" for k in who])
        draws = GradedResponse().fit(ratings).uncertainty.draws
        above = np.mean(draws[:, :, None] > draws[:, None, :], axis=0)
        assert np.count_nonzero(above > 0.95) <= 4  # of 190 pairs


def test_large_data_learn_the_widths_from_part_of_it(monkeypatch):
    from crowdrank.models.ratings import graded_response, graded_response_layout

    ratings, *_ = crowd(3)
    exact = GradedResponse().fit(ratings)
    assert exact.uncertainty.method == "posterior of scores and annotators, prior widths integrated out"
    monkeypatch.setattr(graded_response_layout, "LARGEST_FACTORED", 50)
    monkeypatch.setattr(graded_response, "_SAMPLED_ANNOTATORS", 12)
    monkeypatch.setattr(graded_response, "_SAMPLED_ITEMS", 50)
    large = GradedResponse().fit(ratings)
    assert large.uncertainty.method == "curvature at the optimum, of each score, with its annotators unknown"
    assert spearmanr(large.scores, exact.scores)[0] > 0.97
    ratio = large.uncertainty.std_error / exact.uncertainty.std_error
    assert 0.7 < np.median(ratio) < 1.2
    assert np.isfinite(large.annotators.estimates["quality"]).all()


def test_queries_on_different_scales_have_their_own_thresholds():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=30)
    item = np.tile(np.arange(30), 6)
    who = np.repeat([f"w{k}" for k in range(6)], 30)
    seen = truth[item] + 0.3 * rng.normal(size=len(item))
    far = Ratings.of(
        [f"i{n:02d}" for n in item] * 2,
        [*seen, *(1000 + 50 * seen)],
        annotator=[*who, *who],
        query=["near"] * len(item) + ["far"] * len(item),
    )
    scores = GradedResponse().fit(far).scores
    np.testing.assert_allclose(scores[:30], scores[30:], atol=1e-3)
    assert spearmanr(scores[:30], truth)[0] > 0.95


def test_grades_without_annotators_count_as_one_annotator():
    ranking = GradedResponse().fit(Ratings.of(["a", "a", "b", "b", "c"], [2, 2, 1, 0, 0]))
    assert ranking.table(uncertainty=False)["item"].to_list() == ["a", "b", "c"]
    assert not ranking.has_annotators


def test_equal_grades_are_refused():
    with pytest.raises(DataError, match="All grades are equal"):
        GradedResponse().fit(Ratings.of(["a", "b"], [3, 3]))


def test_standard_errors_exist_before_convergence():
    ratings, *_ = crowd(5)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps"):
        ranking = GradedResponse(max_steps=1).fit(ratings)
    assert np.isfinite(ranking.uncertainty.std_error).all()


@pytest.mark.parametrize("name", ["prior_scale", "leniency_scale", "discrimination_scale", "stretch_scale"])
def test_prior_scales_must_be_positive(name):
    for wrong in (0.0, "wide"):
        with pytest.raises(SettingError, match=f"{name} must be positive, or 'auto', got {wrong}"):
            GradedResponse(**{name: wrong})


def test_with_many_reversed_annotators_the_opposite_sign_is_tried():
    """Eight of these fifteen are wrong more often than right; climbing from equals ends on the lower summit."""
    crowd = rating_crowd(items=30, annotators=15, grades_each=20, levels=5, seed=4)
    assert spearmanr(GradedResponse().fit(crowd.judgments).scores, crowd.truth)[0] > 0.8
