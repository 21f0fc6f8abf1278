import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import ndtr

from crowdrank.data import Items
from crowdrank.models import BradleyTerry, Copeland
from crowdrank.results import Uncertainty
from tests.strategies import comparisons_of

TWO_QUERIES = Items(
    np.array(["a", "b", "c", "a", "b"], dtype=object),
    np.array([0, 0, 0, 1, 1], np.int32),
    np.array(["p", "q"], dtype=object),
)


def uncertainty(draws):
    return Uncertainty(np.asarray(draws, dtype=float), np.std(draws, axis=0), "by hand")


@settings(max_examples=40, deadline=None)
@given(draws=hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(5)), elements=st.integers(0, 3).map(float)))
def test_ranks_are_counted_within_queries_ties_both_ways(draws):
    best, worst = uncertainty(draws).ranks(TWO_QUERIES)
    for row in range(len(draws)):
        for block in (slice(0, 3), slice(3, 5)):
            own = draws[row, block]
            np.testing.assert_array_equal(best[row, block], [1 + np.count_nonzero(own > v) for v in own])
            np.testing.assert_array_equal(worst[row, block], [np.count_nonzero(own >= v) for v in own])


def shown_ranks(scores):
    block = (slice(0, 3), slice(3, 5))
    return np.concatenate([1 + (scores[b] < scores[b][:, None]).sum(axis=0) for b in block])


def test_rank_intervals_are_the_shortest_that_hold_enough_draws_and_the_shown_rank():
    rng = np.random.default_rng(0)
    scores = np.array([2.0, 1.0, 0.0, 0.0, 3.0])
    found = uncertainty(rng.normal(size=(999, 5)) + scores)
    shown = shown_ranks(scores)
    low, high = found.rank_intervals(TWO_QUERIES, shown, 0.9)
    ranks, _ = found.ranks(TWO_QUERIES)
    for item, size in enumerate([3, 3, 3, 2, 2]):
        assert low[item] <= shown[item] <= high[item]
        lengths = [
            b - a
            for a in range(1, shown[item] + 1)
            for b in range(shown[item], size + 1)
            if np.mean((ranks[:, item] >= a) & (ranks[:, item] <= b)) >= 0.9
        ]
        assert high[item] - low[item] == min(lengths)


def test_the_shown_rank_lies_in_its_interval_whatever_the_draws():
    """An item that won its only match is shown first, though most draws put it in the middle."""
    rng = np.random.default_rng(0)
    items = Items.of([f"i{n:02d}" for n in range(20)])
    draws = rng.normal(size=(500, 20)) + np.append(0.0, np.linspace(5, -5, 19))
    low, high = uncertainty(draws).rank_intervals(items, np.arange(1, 21))
    assert low[0] == 1
    assert high[0] >= 10


@pytest.mark.parametrize("size", [12, 60])
def test_simultaneous_intervals_hold_all_ranks_at_once(size):
    rng = np.random.default_rng(0)
    items = Items.of([f"i{n:02d}" for n in range(size)])
    scores = np.linspace(3, -3, size)
    known = uncertainty(rng.normal(size=(1000, size)) * 0.5 + scores)
    truth = uncertainty(rng.normal(size=(2000, size)) * 0.5 + scores).ranks(items)[0]
    shown = np.arange(1, size + 1)

    def coverage(interval):
        low, high = interval
        assert (low >= 1).all()
        assert (high <= size).all()
        return np.mean(((truth >= low) & (truth <= high)).all(axis=1))

    assert coverage(known.rank_intervals(items, shown, 0.9, simultaneous=True)) > 0.86
    assert coverage(known.rank_intervals(items, shown, 0.9)) < 0.8


def test_items_never_told_apart_share_the_whole_interval():
    """The order of their labels is no knowledge."""
    low, high = uncertainty(np.zeros((10, 5))).rank_intervals(TWO_QUERIES, np.ones(5, np.int64))
    assert low.tolist() == [1, 1, 1, 1, 1]
    assert high.tolist() == [3, 3, 3, 2, 2]
    ties = comparisons_of(None, [0, 1, 2], [1, 2, 0], [0, 0, 0])
    table = Copeland().fit(ties).table()
    assert table["rank_low"].to_list() == [1, 1, 1]
    assert table["rank_high"].to_list() == [3, 3, 3]


def test_the_chance_of_standing_above_is_that_of_a_normal_difference():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(5_000, 2)) * [1.0, 2.0]
    scores = np.array([1.0, 0.0])
    found = uncertainty(draws).probability_above(scores, 0, 1)
    assert found == pytest.approx(ndtr(1 / np.sqrt(5)), abs=0.01)
    assert uncertainty(draws).probability_above(scores, 1, 0) == pytest.approx(1 - found)


@pytest.mark.parametrize(("difference", "chance"), [(0.0, 0.5), (1.0, 1.0), (-1.0, 0.0)])
def test_where_nothing_varies_the_chance_is_all_or_nothing(difference, chance):
    sure = uncertainty(np.zeros((5, 2)))
    assert sure.probability_above(np.array([difference, 0.0]), 0, 1) == chance


@pytest.mark.parametrize("prior_scale", ["auto", 3.0])
def test_the_curvatures_draws_spread_by_the_standard_error(prior_scale):
    rng = np.random.default_rng(0)
    left = rng.integers(6, size=200)
    votes = comparisons_of(None, left, (left + rng.integers(1, 6, size=200)) % 6, rng.choice([1, -1], 200))
    found = BradleyTerry(prior_scale=prior_scale).fit(votes)
    np.testing.assert_allclose(found.uncertainty.draws.mean(axis=0), found.scores, atol=0.05)
    np.testing.assert_allclose(found.uncertainty.draws.std(axis=0), found.uncertainty.std_error, rtol=0.1)


def test_draws_of_a_posterior_count_themselves():
    """It is certain which item is better, but not by how much: the spread does not determine the sign."""
    rng = np.random.default_rng(0)
    unit = np.exp(rng.normal(scale=1.5, size=1000))
    draws = np.stack((unit, -unit), axis=1)
    normal, sampled = (Uncertainty(draws, draws.std(axis=0), "", sampled=own) for own in (False, True))
    assert normal.probability_above(draws.mean(axis=0), 0, 1) < 0.8
    assert sampled.probability_above(draws.mean(axis=0), 0, 1) > 0.99
    assert sampled.probability_above(draws.mean(axis=0), 1, 0) < 0.01
