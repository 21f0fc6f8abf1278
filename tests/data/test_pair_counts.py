from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from crowdrank.data import Comparisons
from crowdrank.data import pair_counts as file
from crowdrank.data.pair_counts import count_pairs, pair_cells
from tests.strategies import comparisons

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def by_hand(votes):
    found = Counter()
    for a, b, outcome, weight in zip(votes.left, votes.right, votes.outcome, votes.weights, strict=True):
        first, second = min(a, b), max(a, b)
        kind = "tie" if outcome == 0 else "first" if (outcome > 0) == (a < b) else "second"
        found[first, second, kind] += weight
    return found


@pytest.mark.parametrize("largest", [1 << 22, 0], ids=["by a table", "by sorting"])
@quick
@given(votes=comparisons())
def test_pairs_are_counted_as_a_loop_would(largest, votes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_MAX_TABLE_CELLS", largest)
        counts = count_pairs(len(votes.items), votes.left, votes.right, votes.outcome, votes.weight)
    expected = by_hand(votes)
    pairs = list(zip(counts.first.tolist(), counts.second.tolist(), strict=True))
    assert pairs == sorted({(a, b) for a, b, _ in expected})
    for n, (a, b) in enumerate(pairs):
        assert counts.first_wins[n] == expected[a, b, "first"]
        assert counts.second_wins[n] == expected[a, b, "second"]
        assert counts.ties[n] == expected[a, b, "tie"]
    assert counts.total.sum() == pytest.approx(votes.weights.sum())
    np.testing.assert_array_equal(counts.net, counts.first_wins - counts.second_wins)


@quick
@given(votes=comparisons())
def test_net_wins_are_wins_less_losses(votes):
    expected = np.zeros(len(votes.items))
    for a, b, outcome, weight in zip(votes.left, votes.right, votes.outcome, votes.weights, strict=True):
        expected[a] += outcome * weight
        expected[b] -= outcome * weight
    np.testing.assert_allclose(votes.counts.net_wins, expected, atol=1e-12)


@quick
@given(votes=comparisons())
def test_turning_pairs_round_changes_nothing_but_their_sides(votes):
    turned = count_pairs(len(votes.items), votes.right, votes.left, -votes.outcome, votes.weight)
    np.testing.assert_array_equal(turned.first_wins, votes.counts.first_wins)
    np.testing.assert_array_equal(turned.ties, votes.counts.ties)


def test_each_pair_has_a_number_of_its_own():
    left, right = np.array([0, 1, 2, 2], np.int32), np.array([1, 0, 0, 1], np.int32)
    assert pair_cells(3, left, right).tolist() == [1, 1, 2, 5]
    assert pair_cells(1 << 20, np.array([1 << 19], np.int32), np.array([(1 << 19) + 1], np.int32)).dtype == np.int64


@quick
@given(votes=comparisons())
def test_other_counts_for_the_same_pairs_keep_the_pairs(votes):
    counts = votes.counts
    changed = counts.with_counts(counts.ties, counts.first_wins, counts.second_wins)
    assert changed.first is counts.first
    np.testing.assert_array_equal(changed.total, counts.total)


def test_a_tie_but_for_rounding_is_a_tie():
    votes = Comparisons.of(["a"] * 3, ["b"] * 3, ["a", "a", "b"], weight=[0.1, 0.2, 0.3])
    assert votes.counts.first_wins != votes.counts.second_wins
    assert votes.counts.net.tolist() == [0.0]
    narrow = Comparisons.of(["a"] * 2, ["b"] * 2, ["a", "b"], weight=[1.0, 1.0 + 1e-6])
    assert narrow.counts.net[0] < 0


def test_net_wins_that_differ_by_rounding_are_on_one_level():
    left, right, winner = ["a", "a", "b", "d"], ["c", "c", "c", "c"], ["a", "a", "b", "c"]
    votes = Comparisons.of(left, right, winner, weight=[0.1, 0.2, 0.3, 1.0])
    assert votes.counts.net_wins[0] != votes.counts.net_wins[1]
    a, b, c, d = votes.counts.net_win_levels.tolist()
    assert c > a == b > d
