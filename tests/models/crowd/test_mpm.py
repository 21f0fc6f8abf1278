"""The multinomial preference model: its optimum, its special cases, and detection of reversed annotators."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.optimize import minimize
from scipy.special import log_expit

from crowdrank import BradleyTerry, Comparisons
from crowdrank.errors import SettingError
from crowdrank.models.crowd import mpm
from crowdrank.models.crowd.mpm import MPM
from crowdrank.simulation import mixed_crowd
from tests.strategies import comparisons, comparisons_of, disconnected_allowed

quick = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
readings = pytest.mark.parametrize("given_", ["query", "pair"])
KINDS = {"good": 12, "noisy": 6, "reversed": 6}


@pytest.fixture(scope="module")
def crowd():
    return mixed_crowd(15, kinds=KINDS, votes_each=30, seed=1)


def log_posterior(model, votes, x):
    """From the paper, pair by pair; ties are half an answer each way."""
    scores, theta = np.split(x, [len(votes.items)])
    value = -0.5 * scores @ scores / model.prior_scale**2 - 0.5 * np.sum((theta - 1) ** 2) / model.adherence_scale**2
    for a, b, outcome, who, weight in zip(
        votes.left, votes.right, votes.outcome, votes.annotator, votes.weights, strict=True
    ):
        margin = theta[who] * (scores[a] - scores[b]) / 2
        if model.given == "pair":
            log_z = np.logaddexp(margin, -margin)
        else:
            among = scores[votes.items.of_query(votes.items.query[a])]
            apart = theta[who] * (among[:, None] - among[None, :]) / 2
            log_z = np.log(np.exp(apart).sum() - len(among))
        value += weight * (outcome * margin - log_z)
    return value


@readings
@quick
@given(votes=comparisons(most_more=8))
def test_it_ends_at_a_maximum(given_, votes):
    model = MPM(given=given_, tolerance=1e-7)
    with disconnected_allowed():
        ranking = model.fit(votes)
    x = np.concatenate((ranking.scores, ranking.annotators["adherence"]))
    best, rng = log_posterior(model, votes, x), np.random.default_rng(0)
    plain = MPM(given=given_, prior_scale=1e9, adherence_scale=1e9)
    assert ranking.log_likelihood == pytest.approx(log_posterior(plain, votes, x), rel=1e-9, abs=1e-9)
    for _ in range(20):
        way = rng.normal(size=len(x))
        assert log_posterior(model, votes, x + 1e-3 * way / np.linalg.norm(way)) <= best + 1e-12 * (1 + abs(best))


@readings
def test_it_ends_where_an_independent_solver_ends(given_, crowd):
    votes, model = crowd.judgments, MPM(given=given_, tolerance=1e-7)
    ranking = model.fit(votes)
    x = np.concatenate((ranking.scores, ranking.annotators["adherence"]))
    objective = model._objective(model._answers(votes), votes)

    def negated(at):
        found = objective(at)
        return -found.value, -found.gradient

    start, exact = x + 0.1 * np.random.default_rng(0).normal(size=len(x)), {"ftol": 1e-15, "gtol": 1e-7}
    rival = minimize(negated, start, jac=True, method="L-BFGS-B", options=exact)
    np.testing.assert_allclose(rival.x, x, atol=1e-3)
    assert -rival.fun <= objective(x).value + 1e-9


def test_of_two_items_the_query_is_the_pair():
    votes = comparisons_of(None, [0] * 5, [1] * 5, [1, 1, -1, 1, 0], annotator=[0, 0, 1, 1, 2])
    one, other = (MPM(given=given_, tolerance=1e-8).fit(votes).scores for given_ in ("query", "pair"))
    np.testing.assert_allclose(one, other, atol=1e-8)


@quick
@given(votes=comparisons(most_more=8))
def test_given_the_pair_and_one_adherence_it_is_bradley_terry(votes):
    with disconnected_allowed():
        found = MPM(given="pair", adherence_scale=1e-5, tolerance=1e-7).fit(votes)
        expected = BradleyTerry(prior_scale=3.0, ties="half", tolerance=1e-7).fit(votes)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)


def test_given_the_query_and_one_adherence_items_stand_by_wins_less_losses(crowd):
    ranking = MPM(adherence_scale=1e-5).fit(crowd.judgments)
    points = crowd.judgments.counts.net_wins
    order = np.argsort(ranking.scores)
    assert (np.diff(points[order]) >= 0).all()


@readings
def test_reversed_annotators_are_found(given_, crowd):
    ranking = MPM(given=given_).fit(crowd.judgments)
    adherence, low, high = ranking.annotators.estimates["adherence"]
    kind = crowd.annotators["kind"]
    assert (adherence[kind == "reversed"] < 0).all()
    assert (adherence[kind == "good"] > 0).all()
    assert ((low < adherence) & (adherence < high)).all()
    assert np.corrcoef(ranking.scores, crowd.truth)[0, 1] > 0.9


def test_a_few_who_answer_much_do_not_reverse_the_order():
    crowd = mixed_crowd(12, kinds={"noisy": 30, "reversed": 8}, votes_each=20, seed=2)
    votes, kind = crowd.judgments, crowd.annotators["kind"]
    loud = votes.reweighted(np.where(kind[votes.annotator] == "reversed", 4.0, 1.0))
    assert np.corrcoef(BradleyTerry().fit(loud).scores, crowd.truth)[0, 1] < 0
    assert np.corrcoef(MPM(given="pair").fit(loud).scores, crowd.truth)[0, 1] > 0.8


@readings
def test_errors_count_in_that_annotators_are_unknown(given_, crowd):
    """The covariance is that of the whole inverse, not of the block of scores."""
    model = MPM(given=given_)
    ranking = model.fit(crowd.judgments)
    x = np.concatenate((ranking.scores, ranking.annotators["adherence"]))
    curvature = model._objective(model._answers(crowd.judgments), crowd.judgments)(x).curvature
    items = len(ranking.scores)
    whole = np.linalg.inv(curvature.matrix())
    covariance, errors = curvature.marginal()
    np.testing.assert_allclose(covariance, whole[:items, :items], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(errors, np.sqrt(np.diag(whole)[items:]), rtol=1e-6)


def test_beyond_what_can_be_inverted_errors_are_bootstrapped(crowd, monkeypatch):
    monkeypatch.setattr(mpm, "MAX_INVERTED_ITEMS", 5)
    monkeypatch.setattr(mpm, "_MAX_FACTORED", 5)
    ranking, plain = MPM(tolerance=1e-6).fit(crowd.judgments), 0.3
    assert ranking.uncertainty.method == "bootstrap over 24 annotators"
    assert (np.abs(ranking.uncertainty.std_error - plain) < plain).all()
    assert np.isfinite(ranking.annotators.estimates["adherence"]).all()


@readings
def test_predictions_are_given_the_pair(given_, crowd):
    model, votes = MPM(given=given_), crowd.judgments
    ranking = model.fit(votes)
    margin = ranking.annotators["adherence"][votes.annotator] * (
        ranking.scores[votes.left] - ranking.scores[votes.right]
    )
    np.testing.assert_allclose(np.log(model.predict(ranking, votes)[:, 0]), log_expit(margin), atol=1e-12)


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"given": "list"}, "query or pair"), ({"adherence_scale": 0.0}, "positive"), ({"ties": "model"}, "drop or half")],
    ids=str,
)
def test_settings_that_mean_nothing_are_refused(setting, message):
    with pytest.raises(SettingError, match=message):
        MPM(**setting)


def test_ties_can_be_left_out():
    votes = comparisons_of(None, [0, 0, 1], [1, 1, 2], [1, 0, 1], annotator=[0, 1, 1])
    without = votes.take(np.array([0, 2]))
    assert isinstance(without, Comparisons)
    np.testing.assert_allclose(MPM(ties="drop").fit(votes).scores, MPM().fit(without).scores, atol=1e-9)
