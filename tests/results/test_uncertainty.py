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


def test_rank_intervals_are_quantiles_of_the_ranks():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(999, 5)) + np.array([2.0, 1.0, 0.0, 0.0, 3.0])
    low, high = uncertainty(draws).rank_interval(TWO_QUERIES, 0.9)
    ranks, _ = uncertainty(draws).ranks(TWO_QUERIES)
    for item in range(5):
        inside = (ranks[:, item] >= low[item]) & (ranks[:, item] <= high[item])
        assert inside.mean() >= 0.9
    narrow_low, narrow_high = uncertainty(draws).rank_interval(TWO_QUERIES, 0.1)
    assert ((narrow_low >= low) & (narrow_high <= high)).all()


def test_items_never_told_apart_share_the_whole_interval():
    """The order of their labels carries no information."""
    low, high = uncertainty(np.zeros((10, 5))).rank_interval(TWO_QUERIES)
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


def test_the_curvatures_draws_spread_by_the_standard_error():
    rng = np.random.default_rng(0)
    left = rng.integers(6, size=200)
    votes = comparisons_of(None, left, (left + rng.integers(1, 6, size=200)) % 6, rng.choice([1, -1], 200))
    found = BradleyTerry().fit(votes)
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
