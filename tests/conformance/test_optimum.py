"""The estimates of likelihood models are optima: no direction from them improves the objective.

The objectives are written a second time here, from the papers, in plain NumPy and SciPy. This detects both a wrong
formula and a solver that stops too early.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit, log_ndtr, logsumexp

from crowdrank.errors import DataError
from crowdrank.models import BradleyTerry, PlackettLuce, Thurstone
from tests.strategies import comparisons, disconnected_allowed, rankings

quick = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))

PRIORS = {
    "normal prior": {"prior_scale": 3.0},
    "wide prior": {"prior_scale": 10.0},
    "virtual item": {"prior_scale": None, "virtual_weight": 0.5},
    "both": {"prior_scale": 2.0, "virtual_weight": 0.3},
    "no prior": {"prior_scale": None},
}


def log_probabilities(model, margin, theta):
    """log P of left, tie and right; for models without ties, a tie is half an answer for each side."""
    if isinstance(model, BradleyTerry):
        if theta is None:
            return log_expit(margin), None, log_expit(-margin)
        parts = np.stack((margin / 2, np.broadcast_to(theta, margin.shape), -margin / 2))
        return tuple(parts - logsumexp(parts, axis=0))
    root = np.sqrt(2)
    if theta is None:
        return log_ndtr(margin / root), None, log_ndtr(-margin / root)
    up, down = log_ndtr((margin - theta) / root), log_ndtr((-margin - theta) / root)
    return up, np.log(-np.expm1(np.logaddexp(up, down))), down


def log_posterior(model, votes, scores, theta):
    if model.ties == "drop":
        votes = votes.take(np.flatnonzero(votes.outcome != 0))
    margin = scores[votes.left] - scores[votes.right]
    left, tie, right = log_probabilities(model, margin, theta)
    tie = 0.5 * (left + right) if tie is None else tie
    chosen = np.select([votes.outcome > 0, votes.outcome == 0], [left, tie], right)
    value = float(np.sum(votes.weights * chosen))
    if model.prior_scale is not None:
        value -= 0.5 * float(scores @ scores) / model.prior_scale**2
        value -= 0.0 if theta is None else 0.5 * theta**2 / model.prior_scale**2
    if model.virtual_weight:
        left, _, right = log_probabilities(model, scores, None)
        value += model.virtual_weight * float(np.sum(left + right))
    return value


def log_posterior_of_lists(model, lists, scores):
    value = 0.0
    for n in range(len(lists)):
        rows = slice(lists.offsets[n], lists.offsets[n + 1])
        item, place = lists.item[rows], lists.place[rows]
        for p in range(place[-1]):
            here = scores[item[place == p]]
            value += lists.weights[n] * float(np.sum(here - np.logaddexp.reduce(scores[item[place >= p]])))
    return value if model.prior_scale is None else value - 0.5 * float(scores @ scores) / model.prior_scale**2


def best_shift(objective, x, items):
    """Results are centred in each query; a prior around a virtual item would give another level."""
    from scipy.optimize import minimize

    def moved(shift):
        return x + np.append(shift[items.query], np.zeros(len(x) - len(items)))

    found = minimize(lambda shift: -objective(moved(shift)), np.zeros(len(items.queries)), method="BFGS", tol=1e-12)
    return moved(found.x)


def improves(objective, x, seed, step=1e-3, directions=30):
    """The largest gain over small steps in random directions."""
    rng = np.random.default_rng(seed)
    here = objective(x)
    gains = []
    for _ in range(directions):
        way = rng.normal(size=len(x))
        gains.append(objective(x + step * way / np.linalg.norm(way)) - here)
    return max(gains)


def assert_reaches_the_optimum(objective, x, seed):
    # a step of 1e-3 loses ½·h·1e-6; more than rounding may gain nothing
    rounding = 1e-13 * (1 + abs(objective(x)))
    assert improves(objective, x, seed) <= rounding
    way = np.random.default_rng(seed).normal(size=len(x))
    way -= way.mean()  # a common shift is free without a prior
    if np.linalg.norm(way) > 1e-9:
        aside = x + 0.05 * way / np.linalg.norm(way)
        assert improves(objective, aside, seed, directions=100) > rounding, "the negative control must fail"


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("ties", ["modelled", "half", "drop"])
@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone], ids=["bradley-terry", "thurstone"])
@quick
@given(data=st.data())
def test_pairwise_models_reach_the_optimum(kind, ties, prior, data):
    named = kind().ties if ties == "modelled" else ties
    model = kind(ties=named, tolerance=1e-7, **PRIORS[prior])
    votes = data.draw(comparisons(both_ways=prior == "no prior"))
    with disconnected_allowed():
        try:
            ranking = model.fit(votes)
        except DataError as refused:
            assert votes.ties == len(votes)
            assert str(refused).startswith("Every judgment is a tie")
            assert ties == "drop" or (ties == "modelled" and model.prior_scale is None)
            return
    theta = ranking.parameters.get("tie")
    assert (theta is not None) == (votes.ties > 0 and ties == "modelled")
    x = np.append(ranking.scores, [] if theta is None else [theta])
    size = len(ranking.scores)

    def objective(at):
        return log_posterior(model, votes, at[:size], None if theta is None else at[size])

    if model.virtual_weight:
        x = best_shift(objective, x, votes.items)
    assert_reaches_the_optimum(objective, x, seed=0)


@pytest.mark.parametrize("prior_scale", [3.0, 0.5, None])
@quick
@given(data=st.data())
def test_plackett_luce_reaches_the_optimum(prior_scale, data):
    lists = data.draw(rankings(ties=prior_scale is not None, most_lists=3))
    if prior_scale is None:  # every list and its reverse, so that every item sometimes beats every other
        lists = both_ways(lists)
    model = PlackettLuce(prior_scale=prior_scale, tolerance=1e-7)
    ranking = model.fit(lists)
    assert_reaches_the_optimum(lambda at: log_posterior_of_lists(model, lists, at), np.array(ranking.scores), seed=0)
    assert ranking.log_likelihood == pytest.approx(
        log_posterior_of_lists(PlackettLuce(prior_scale=None), lists, ranking.scores), rel=1e-9, abs=1e-9
    )


def both_ways(lists):
    from crowdrank.data import Rankings

    mirror = lists.with_outcomes_reversed()
    return Rankings(
        items=lists.items,
        item=np.concatenate((lists.item, mirror.item)),
        place=np.concatenate((lists.place, mirror.place)),
        offsets=np.concatenate((lists.offsets, lists.offsets[-1] + mirror.offsets[1:])),
    )


@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone], ids=["bradley-terry", "thurstone"])
@quick
@given(votes=comparisons())
def test_the_log_likelihood_is_that_of_the_judgments(kind, votes):
    ranking = kind().fit(votes)
    plain = kind(prior_scale=None)
    expected = log_posterior(plain, votes, ranking.scores, ranking.parameters.get("tie"))
    assert ranking.log_likelihood == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone], ids=["bradley-terry", "thurstone"])
@quick
@given(votes=comparisons())
def test_predictions_are_the_probabilities_that_were_fitted(kind, votes):
    model = kind()
    ranking = model.fit(votes)
    found = model.predict(ranking, votes)
    margin = ranking.scores[votes.left] - ranking.scores[votes.right]
    left, tie, right = log_probabilities(model, margin, ranking.parameters.get("tie"))
    np.testing.assert_allclose(found[:, 0], np.exp(left), rtol=1e-9)
    np.testing.assert_allclose(found[:, 1], 0.0 if tie is None else np.exp(tie), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(found[:, 2], np.exp(right), rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_the_formula_here_is_the_one_of_the_paper():
    """Bradley and Terry: a with strength 3 against b with strength 1 wins three times in four."""
    left, _, right = log_probabilities(BradleyTerry(), np.array([np.log(3.0)]), None)
    assert np.exp(left[0]) == pytest.approx(0.75)
    assert np.exp(right[0]) == pytest.approx(expit(-np.log(3.0)))
