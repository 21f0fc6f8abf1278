"""Graded response with annotators: the posterior mode, and recovery of simulated parameters."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.special import expit
from scipy.stats import spearmanr

from crowdrank.data import Ratings
from crowdrank.engines import LOCAL
from crowdrank.errors import ConvergenceWarning, DataError, SettingError
from crowdrank.inference.newton import maximize
from crowdrank.models.ratings import graded_response_posterior
from crowdrank.models.ratings.dawid_skene import GradeClasses
from crowdrank.models.ratings.graded_response import GradedResponse
from crowdrank.models.ratings.graded_response_posterior import (
    GradedResponseLaplace,
    LogPosterior,
    ParameterLayout,
    PriorScales,
)
from crowdrank.models.ratings.mean_ratings import MeanRating
from crowdrank.simulation import rating_crowd
from tests.strategies import disconnected_allowed, some_ratings

SCALES = PriorScales(score=1.0, leniency=1.0, stretch=0.3, discrimination=0.7)
quick = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def crowd(seed, items=60, people=20, each=30, turned=0, levels=5):
    rng = np.random.default_rng(seed)
    truth, lenient = rng.normal(size=items), rng.normal(size=people)
    sharp = rng.uniform(0.3, 2.0, people)
    sharp[:turned] = -1.5
    item = np.concatenate([rng.choice(items, each, replace=False) for _ in range(people)])
    who = np.repeat(np.arange(people), each)
    seen = sharp[who] * truth[item] + lenient[who] + rng.logistic(size=len(item))
    grade = np.searchsorted(np.linspace(-2, 2, levels - 1), seen)
    ratings = Ratings.of([f"i{n:02d}" for n in item], grade, annotator=[f"w{k:02d}" for k in who])
    assert len(ratings.items) == items
    return ratings, truth, sharp, lenient


def log_posterior(model, ratings, x):
    """The formula once more, row by row, for one scale of classes 0, 1, … that are all used."""
    items, people = len(ratings.items), len(ratings.annotators)
    score, (lenient, stretch, sharper) = x[:items], x[items : items + 3 * people].reshape(3, people)
    cuts = np.concatenate(([-np.inf], x[items + 3 * people :], [np.inf]))
    code = np.unique(ratings.grade, return_inverse=True)[1]
    value = -0.5 * np.sum((x[items + 3 * people :] / 10.0) ** 2) - 0.5 * np.sum((score / model.prior_scale) ** 2)
    for part, scale in zip(
        (lenient, stretch, sharper),
        (model.leniency_scale, model.stretch_scale, model.discrimination_scale),
        strict=True,
    ):
        value -= 0.5 * np.sum((part / scale) ** 2)
    for item, who, c, weight in zip(ratings.item, ratings.annotator, code, ratings.weights, strict=True):
        ends = np.exp(stretch[who]) * cuts[c : c + 2] - lenient[who] - (1 + sharper[who]) * score[item]
        value += weight * np.log(expit(ends[1]) - expit(ends[0]))
    return value


@quick
@given(ratings=some_ratings(most_more=8))
def test_the_estimate_is_the_posterior_mode(ratings):
    model = GradedResponse(prior_scale=1.0, discrimination_scale=0.7)
    layout = ParameterLayout.of(ratings, GradeClasses.of(ratings, model.bins))
    posterior = LogPosterior(LOCAL.load(layout.shard), layout, SCALES)
    found = maximize(posterior, layout.start, tolerance=1e-8, max_step=2.0)
    top = log_posterior(model, ratings, found.parameters)
    assert found.evaluation.value == pytest.approx(top, rel=1e-9)
    with disconnected_allowed():
        ranking = model.fit(ratings)
    centred = ratings.items.centre(found.parameters[: layout.items])
    np.testing.assert_allclose(ranking.scores, centred, atol=1e-3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        way = rng.normal(size=len(found.parameters))
        way /= np.linalg.norm(way)
        assert log_posterior(model, ratings, found.parameters + 1e-3 * way) <= top + 1e-10 * abs(top)
    aside = found.parameters.copy()
    aside[: layout.items] += 0.1
    assert log_posterior(model, ratings, aside) < top, "the negative control must fail"


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
        ratings, truth, _, _ = crowd(seed)
        ranking = GradedResponse().fit(ratings)
        misses += list((ranking.scores - (truth - truth.mean())) / ranking.uncertainty.std_error)
    assert 0.8 < np.std(misses) < 1.25


def test_annotator_errors_equal_those_of_the_full_hessian():
    """Each with all other parameters unknown but the thresholds, which move with the mean leniency of all."""
    from crowdrank.engines import LOCAL
    from crowdrank.inference.newton import maximize

    ratings, *_ = crowd(2, items=12, people=6, each=10)
    layout = ParameterLayout.of(ratings, GradeClasses.of(ratings, 10))
    found = maximize(LogPosterior(LOCAL.load(layout.shard), layout, SCALES), layout.start, max_step=2.0)
    approximation = GradedResponseLaplace(found, layout, ratings, 0)
    covariance, _, log_determinant = approximation._marginal
    errors = approximation.annotator_errors.ravel()
    inverse = np.linalg.inv(found.evaluation.curvature.matrix.toarray())
    np.testing.assert_allclose(covariance, inverse[:12, :12], rtol=1e-8, atol=1e-10)
    assert log_determinant == pytest.approx(-np.linalg.slogdet(inverse)[1])
    alone = np.sqrt(np.diag(inverse))[12:30]
    np.testing.assert_allclose(errors[12:], alone[12:], rtol=0.02)  # of sharpness
    assert (errors <= alone * (1 + 1e-9)).all()


def test_large_data_treat_annotators_as_known(monkeypatch):
    ratings, *_ = crowd(3)
    model = GradedResponse(prior_scale=1.0, discrimination_scale=0.7)
    exact = model.fit(ratings)
    assert exact.uncertainty.method == "Laplace approximation of scores and annotators jointly"
    monkeypatch.setattr(graded_response_posterior, "_MAX_CELLS", 10)
    given_annotators = model.fit(ratings)
    assert given_annotators.uncertainty.method == "Laplace approximation of the scores, given the annotators"
    ratio = given_annotators.uncertainty.std_error / exact.uncertainty.std_error
    assert (ratio > 0.7).all()
    assert np.median(ratio) < 1.02
    assert np.isfinite(given_annotators.annotators.estimates["quality"]).all()


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
    with pytest.raises(SettingError, match=rf"{name} must be positive, got 0\.0"):
        GradedResponse(**{name: 0.0})


def test_with_many_reversed_annotators_the_opposite_sign_is_tried():
    """Eight of these fifteen are wrong more often than right: from identical annotators, the lower mode is found."""
    crowd = rating_crowd(items=30, annotators=15, grades_each=20, levels=5, seed=4)
    assert spearmanr(GradedResponse().fit(crowd.judgments).scores, crowd.truth)[0] > 0.8


@pytest.mark.parametrize("spread", [0.5, 2.5])
def test_the_spread_of_scores_is_learnt(spread):
    rng = np.random.default_rng(6)
    item, who = np.repeat(np.arange(40), 10), np.tile(np.arange(10), 40)
    truth = spread * rng.normal(size=40)
    seen = truth[item] + rng.normal(size=10)[who] + rng.logistic(size=len(item))
    grade = np.searchsorted(np.linspace(-2, 2, 4) * max(spread, 1.0), seen)
    ratings = Ratings.of([f"i{n:02d}" for n in item], grade, annotator=[f"w{k}" for k in who])
    ranking = GradedResponse().fit(ratings)
    assert ranking.parameters["prior_scale"] == pytest.approx(np.std(truth), rel=0.3)
    low, high = np.quantile(ranking.uncertainty.draws, (0.025, 0.975), axis=0)
    centred = truth - truth.mean()
    assert np.mean((low <= centred) & (centred <= high)) > 0.85


def test_random_grades_have_nearly_equal_scores():
    rng = np.random.default_rng(7)
    item, who = np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    ratings = Ratings.of([f"i{n:02d}" for n in item], rng.integers(5, size=120), annotator=[f"w{k}" for k in who])
    ranking = GradedResponse().fit(ratings)
    assert set(ranking.groups) == {1}
    assert np.abs(ranking.scores).max() < 0.6
