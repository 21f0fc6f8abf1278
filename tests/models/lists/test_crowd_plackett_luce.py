"""Lists by annotators of different precision: derivatives, reductions, sides, recovery and annotators."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from crowdrank.data import Rankings
from crowdrank.errors import DataError, SettingError
from crowdrank.models import CrowdPlackettLuce, PlackettLuce
from crowdrank.models.lists import crowd_plackett_luce
from crowdrank.models.lists.crowd_likelihood import PRECISION, SIDE_WEIGHT, CrowdLists, Population
from tests.strategies import disconnected_allowed, rankings

quick = settings(max_examples=15, deadline=None)
LOG_WEIGHT = Population.prior(0.7).log_weight

MIXED = Rankings.of_lists(
    [
        [["a"], ["b"], ["c"], ["d"]],
        [["b"], ["a", "c"], ["d"]],
        [["c"], ["a", "b", "d"]],  # the best of a set
        [["a", "c"], ["b"]],  # the worst of a set
        [["d"], ["c"]],
        [["a"]],
        [["a"], ["d"], ["b"]],
    ],
    annotator=["x", "y", "x", "z", "y", "z", "x"],
)


def laid_out(lists, two_sided=True):
    return CrowdLists.of(lists, PRECISION, np.array([0, len(lists.items)]), two_sided=two_sided)


def drawn_from_top(scores, place):
    return sum(np.sum(scores[place == p] - logsumexp(scores[place >= p])) for p in range(place.max()))


def by_hand(lists, scores):
    """log Σ_c w_c Π P_c, straight from the definition, for two-sided lists with annotators."""
    total = np.zeros((len(lists.annotators), len(PRECISION)))
    for n in range(len(lists)):
        rows = slice(lists.offsets[n], lists.offsets[n + 1])
        item, place = lists.item[rows], lists.place[rows]
        top, bottom = np.sum(place == 0) > 1, np.sum(place == place.max()) > 1
        for c, kappa in enumerate(PRECISION):
            down = drawn_from_top(kappa * scores[item], place)
            up = drawn_from_top(-kappa * scores[item], place.max() - place)
            both = SIDE_WEIGHT * (down + up)
            value = down if len(item) < 3 or (bottom and not top) else up if top and not bottom else both
            total[lists.annotator[n], c] += lists.weights[n] * value
    return float(np.sum(logsumexp(total + LOG_WEIGHT, axis=1)))


def differences(f, x, step=1e-5):
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_and_derivatives(seed):
    scores, lists = np.random.default_rng(seed).normal(size=4) * 1.5, laid_out(MIXED)
    found = lists.evaluate(scores, LOG_WEIGHT)
    assert found.value == pytest.approx(by_hand(MIXED, scores), rel=1e-10)
    gradient = differences(lambda s: lists.evaluate(s, LOG_WEIGHT).value, scores)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-6, atol=1e-7)
    hessian = -differences(lambda s: lists.evaluate(s, LOG_WEIGHT).gradient, scores)
    np.testing.assert_allclose(found.hessian.reshape(4, 4), hessian, rtol=1e-5, atol=1e-7)
    assert not np.allclose(found.information, found.hessian)  # what is unknown about the class costs information


def test_chunks_of_annotators_make_no_difference(monkeypatch):
    scores = np.random.default_rng(0).normal(size=4)
    whole = laid_out(MIXED).evaluate(scores, LOG_WEIGHT)
    monkeypatch.setattr("crowdrank.models.lists.crowd_likelihood._ROWS_AT_ONCE", 3)
    cut = laid_out(MIXED)
    assert len(cut.chunks) > 1
    for a, b in zip(whole, cut.evaluate(scores, LOG_WEIGHT), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@quick
@given(lists=rankings(), prior_scale=st.sampled_from([0.5, 3.0]))
def test_with_annotators_alike_it_is_plackett_luce(lists, prior_scale):
    alike = CrowdPlackettLuce(prior_scale=prior_scale, precision_spread=0.0, two_sided=False, tolerance=1e-8)
    with disconnected_allowed():
        try:
            expected = PlackettLuce(prior_scale=prior_scale, tolerance=1e-8).fit(lists)
        except DataError:
            return
        found = alike.fit(lists)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.uncertainty.std_error, expected.uncertainty.std_error, rtol=1e-5, atol=1e-6)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-8, abs=1e-8)


def test_fixed_hyperparameters_give_the_mode():
    ranking = CrowdPlackettLuce(prior_scale=1.0, precision_spread=0.7, tolerance=1e-8).fit(MIXED)
    shares = np.array([0.0, ranking.parameters["random_share"], ranking.parameters["reversed_share"]])
    shares[0] = 1 - shares.sum()
    log_weight = Population(0.7, shares).log_weight
    gradient = laid_out(MIXED).evaluate(ranking.scores, log_weight).gradient - ranking.scores
    np.testing.assert_allclose(gradient, 0, atol=1e-6)


def crowd(precision, items=12, seed=0, length=None):
    """One list per annotator."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=items)
    order = np.argsort(-(np.asarray(precision)[:, None] * truth + rng.gumbel(size=(len(precision), items))), axis=1)
    lists = [[[f"i{i:02d}"] for i in row] for row in order]
    if length is not None:  # the rest is left unordered
        lists = [[*row[:length], [item for place in row[length:] for item in place]] for row in lists]
    return Rankings.of_lists(lists, annotator=[f"a{n:02d}" for n in range(len(precision))]), truth


@pytest.mark.parametrize("length", [None, 3, 1], ids=["full", "top three", "best of a set"])
def test_recovers_the_order(length):
    count = {None: 60, 3: 100, 1: 300}[length]  # a choice tells less than a list
    lists, truth = crowd([1.0] * count + [0.0] * (count // 3), seed=3, length=length)
    scores = CrowdPlackettLuce().fit(lists).scores
    assert np.corrcoef(scores, truth)[0, 1] > 0.85


def test_good_annotators_outweigh_a_random_majority():
    wrong = {PlackettLuce: 0, CrowdPlackettLuce: 0}
    for seed in range(6):
        lists, truth = crowd([4.0] * 4 + [0.0] * 12, seed=seed)
        first, second = np.triu_indices(len(truth), 1)
        for kind in wrong:
            scores = kind().fit(lists).scores
            wrong[kind] += int(np.sum((scores[first] - scores[second]) * (truth[first] - truth[second]) < 0))
    assert wrong[CrowdPlackettLuce] < 0.7 * wrong[PlackettLuce]


def test_annotators_are_told_apart():
    lists, _ = crowd([2.0] * 12 + [0.0] * 3 + [-2.0] * 2, seed=1)
    annotators = CrowdPlackettLuce().fit(lists).annotators
    quality, low, high = annotators.estimates["quality"]
    assert (low <= quality).all()
    assert (quality <= high).all()
    # a single random list may look good or bad, so only means are compared with it
    assert quality[:12].mean() > quality[12:15].mean() > quality[15:].mean()
    assert annotators.reversed == ["a15", "a16"]
    assert annotators.estimates["precision"][0][15:].max() < 0


def test_quality_is_shared_over_queries():
    """A random annotator in one query is trusted less in the other."""
    good = [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]
    known = [good] * 5 + [[["e"], ["a"], ["g"], ["c"], ["f"], ["b"], ["d"]]]
    people = ["ann", "bob", "cat", "dan", "eve", "fay"]
    lists = Rankings.of_lists(
        [*known, good, good[::-1]], annotator=[*people, "ann", "fay"], query=["q1"] * 6 + ["q2"] * 2
    )
    scores = CrowdPlackettLuce().fit(lists).scores[lists.items.of_query(1)]
    assert scores[0] > scores[-1]


def test_random_lists_are_claimed_to_have_no_order():
    split = 0
    for seed in range(12):
        lists, _ = crowd([0.0] * 20, seed=seed)
        ranking = CrowdPlackettLuce().fit(lists)
        split += ranking.uncertainty.probability_above(ranking.scores, *ranking.order[[0, -1]]) >= 0.95
    assert ranking.uncertainty.sampled
    assert split <= 2


def test_the_best_hyperparameters_are_near_their_integral(monkeypatch):
    lists, _ = crowd(np.exp(np.random.default_rng(0).normal(size=80)), seed=5)
    integrated = CrowdPlackettLuce().fit(lists)
    monkeypatch.setattr(crowd_plackett_luce, "_FEW_ROWS", 0)
    best = CrowdPlackettLuce().fit(lists)
    assert best.convergence.converged
    assert np.corrcoef(integrated.scores, best.scores)[0, 1] > 0.99


def test_queries_are_separate_blocks_in_large_data(monkeypatch):
    rows = [[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]] * 2
    lists = Rankings.of_lists(rows, annotator=list("uvwxyz"), query=["p"] * 3 + ["q"] * 3)
    joint = CrowdPlackettLuce().fit(lists)
    monkeypatch.setattr(crowd_plackett_luce, "_LARGEST_JOINT", 0)
    apart = CrowdPlackettLuce().fit(lists)  # nobody ranked in both queries, so nothing is left out
    np.testing.assert_allclose(apart.scores, joint.scores, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(apart.uncertainty.std_error, joint.uncertainty.std_error, rtol=1e-6, atol=1e-6)


def test_refuses_what_it_cannot_use(monkeypatch):
    with pytest.raises(SettingError, match='prior_scale must be positive or "auto"'):
        CrowdPlackettLuce(prior_scale=0.0)
    with pytest.raises(SettingError, match="precision_spread must be zero or more"):
        CrowdPlackettLuce(precision_spread=-1.0)
    with pytest.raises(DataError, match="any two items"):
        CrowdPlackettLuce().fit(Rankings.of_lists([[["a", "b"]]]))
    monkeypatch.setattr(crowd_plackett_luce, "MAX_ITEMS", 3)
    with pytest.raises(DataError, match="Use plackett-luce instead"):
        CrowdPlackettLuce().fit(replace(MIXED))
