"""Closed-form models against plain loops."""

import itertools
from collections import defaultdict
from statistics import median

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank.data import Comparisons, Rankings
from crowdrank.errors import SettingError
from crowdrank.models import Borda, CondorcetFuse, Copeland, Elo, GreedyOrder, MedianRank, WinRate
from crowdrank.models.lists.positional import relative_positions, weighted_medians
from crowdrank.models.pairwise import elo as elo_file
from tests.strategies import comparisons, comparisons_of, rankings

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def margins(votes):
    """Net weight of a over b, both ways round, and how much each pair was judged."""
    net, met = defaultdict(float), defaultdict(float)
    for a, b, outcome, weight in zip(votes.left, votes.right, votes.outcome, votes.weights, strict=True):
        net[a, b] += outcome * weight
        net[b, a] -= outcome * weight
        met[a, b] += weight
        met[b, a] += weight
    return net, met


def centred(votes, scores):
    return votes.items.centre(np.asarray(scores, dtype=float))


def rivals(votes, item):
    query = votes.items.query
    return [other for other in range(len(votes.items)) if other != item and query[other] == query[item]]


@quick
@given(votes=comparisons())
def test_win_rate_is_the_fraction_won(votes):
    points, met = np.zeros(len(votes.items)), np.zeros(len(votes.items))
    for a, b, outcome, weight in zip(votes.left, votes.right, votes.outcome, votes.weights, strict=True):
        points[a] += weight * (1 + outcome) / 2
        points[b] += weight * (1 - outcome) / 2
        met[a] += weight
        met[b] += weight
    np.testing.assert_allclose(WinRate().fit(votes).scores, points / met, rtol=1e-12)


@quick
@given(votes=comparisons())
def test_borda_is_wins_minus_losses(votes):
    net, _ = margins(votes)
    points = [sum(net[item, other] for other in rivals(votes, item)) for item in range(len(votes.items))]
    np.testing.assert_allclose(Borda().fit(votes).scores, centred(votes, points), atol=1e-9)


@quick
@given(lists=rankings())
def test_borda_of_a_list_is_items_below_minus_items_above(lists):
    points = np.zeros(len(lists.items))
    for n in range(len(lists)):
        rows = slice(lists.offsets[n], lists.offsets[n + 1])
        item, place = lists.item[rows], lists.place[rows]
        for k, p in zip(item, place, strict=True):
            points[k] += np.count_nonzero(place > p) - np.count_nonzero(place < p)
    np.testing.assert_allclose(Borda().fit(lists).scores, lists.items.centre(points), atol=1e-9)


@quick
@given(votes=comparisons())
def test_copeland_is_opponents_beaten_minus_opponents_lost_to(votes):
    net, _ = margins(votes)
    points = [sum(np.sign(net[item, other]) for other in rivals(votes, item)) for item in range(len(votes.items))]
    np.testing.assert_allclose(Copeland().fit(votes).scores, centred(votes, points), atol=1e-9)


@quick
@given(votes=comparisons())
def test_condorcet_fuse_never_ranks_an_item_directly_below_one_it_beats(votes):
    """The Hamiltonian path: each item beats the next by majority, or nobody did and Borda put it first."""
    net, _ = margins(votes)
    ranking = CondorcetFuse().fit(votes)
    order, query, points = ranking.order, votes.items.query, votes.counts.net_wins
    for a, b in itertools.pairwise(order):
        if query[a] == query[b]:
            assert net[a, b] >= 0
            if net[a, b] == 0:
                assert points[a] >= points[b]


@quick
@given(votes=comparisons())
def test_condorcet_fuse_ranks_a_condorcet_winner_first(votes):
    net, _ = margins(votes)
    ranking = CondorcetFuse().fit(votes)
    for item in range(len(votes.items)):
        if all(net[item, other] > 0 for other in rivals(votes, item)):
            assert ranking.rank[item] == 1
        if all(net[item, other] < 0 for other in rivals(votes, item)):
            assert ranking.rank[item] == len(rivals(votes, item)) + 1


def greedy_by_hand(votes):
    """Again and again the largest sum of leads over those left; equals go by Borda, then by label."""
    net, met = margins(votes)
    points = votes.counts.net_wins
    scores = np.zeros(len(votes.items))
    for query in range(len(votes.items.queries)):
        block = votes.items.of_query(query)
        left, taken = list(range(block.start, block.stop)), 0

        def potential(item, left=left):
            return sum(net[item, other] / met[item, other] for other in left if met[item, other] > 0)

        while left:
            best = min(left, key=lambda item: (-round(potential(item), 9), -points[item], item))
            left.remove(best)
            scores[best] = -taken
            taken += 1
    return votes.items.centre(scores)


@quick
@given(votes=comparisons())
def test_greedy_order_equals_a_naive_implementation(votes):
    np.testing.assert_array_equal(GreedyOrder().fit(votes).scores, greedy_by_hand(votes))


def test_greedy_order_and_condorcet_fuse_follow_a_majority_cycle():
    """a beats b, b beats c, c beats a by less."""
    votes = comparisons_of(None, [0] * 3 + [1] * 3 + [2] * 3, [1] * 3 + [2] * 3 + [0] * 3, [1, 1, 1, 1, 1, 1, 1, 1, -1])
    assert GreedyOrder().fit(votes).table(uncertainty=False)["item"].to_list() == ["i0", "i1", "i2"]
    assert CondorcetFuse().fit(votes).table(uncertainty=False)["item"].to_list() == ["i0", "i1", "i2"]


@quick
@given(lists=rankings())
def test_median_rank_is_the_median_of_relative_positions(lists):
    given_places = defaultdict(list)
    for n in range(len(lists)):
        rows = slice(lists.offsets[n], lists.offsets[n + 1])
        item, place = lists.item[rows], lists.place[rows]
        for k, p in zip(item, place, strict=True):
            above, tied = np.count_nonzero(place < p), np.count_nonzero(place == p)
            given_places[k].append((above + tied / 2) / len(item))
    expected = [-median(given_places[k]) if k in given_places else -0.5 for k in range(len(lists.items))]
    np.testing.assert_allclose(MedianRank().fit(lists).scores, lists.items.centre(np.array(expected)), atol=1e-12)


def test_relative_positions_are_midpoints_of_equal_intervals():
    lists = Rankings.of_lists([[["a"], ["b", "c"], ["d"]]])
    np.testing.assert_allclose(relative_positions(lists), [0.125, 0.5, 0.5, 0.875])


@quick
@given(data=st.data(), size=st.integers(1, 12))
def test_weighted_medians_are_medians_of_repeated_values(data, size):
    values = data.draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    weights = data.draw(st.lists(st.integers(1, 3), min_size=size, max_size=size))
    groups = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    found = weighted_medians(np.array(groups), np.array(values, float), np.array(weights, float), 4)
    for group in range(4):
        own = [v for v, w, g in zip(values, weights, groups, strict=True) for _ in range(w) if g == group]
        assert found[group] == pytest.approx(median(own) if own else 0.5)


def elo_by_hand(votes, step, scale, initial):
    scores = np.full(len(votes.items), initial)
    for a, b, outcome, weight in zip(votes.left, votes.right, votes.outcome, votes.weights, strict=True):
        expected = 1 / (1 + 10 ** ((scores[b] - scores[a]) / scale))
        move = step * weight * ((1 + outcome) / 2 - expected)
        scores[a] += move
        scores[b] -= move
    return scores


@quick
@given(votes=comparisons(), step=st.sampled_from([4.0, 32.0]), scale=st.sampled_from([200.0, 400.0]))
def test_elo_moves_by_the_surprise(votes, step, scale):
    found = Elo(step=step, scale=scale, initial=1000.0).fit(votes)
    np.testing.assert_allclose(found.scores, elo_by_hand(votes, step, scale, 1000.0), rtol=1e-12)


def test_elo_may_start_at_a_whole_number():
    votes = Comparisons.of(["a"], ["b"], ["a"])
    assert Elo(initial=1000, step=3).fit(votes).scores.tolist() == [1001.5, 998.5]


def test_elo_compiled_is_elo(monkeypatch):
    rng = np.random.default_rng(0)
    left = rng.integers(6, size=300)
    votes = comparisons_of(None, left, (left + 1 + rng.integers(5, size=300)) % 6, rng.integers(-1, 2, 300))
    plain = Elo().fit(votes)
    monkeypatch.setattr(elo_file, "_MAX_INTERPRETED", 0)
    np.testing.assert_allclose(Elo().fit(votes).scores, plain.scores, rtol=1e-12)


def test_elo_goes_by_time_where_it_is_known():
    columns = {"left": ["a", "b", "a"], "right": ["b", "c", "c"], "winner": ["a", "c", "c"]}
    backwards = {name: column[::-1] for name, column in columns.items()}
    timed = Comparisons.of(**backwards, time=[3.0, 2.0, 1.0])
    np.testing.assert_array_equal(Elo().fit(timed).scores, Elo().fit(Comparisons.of(**columns)).scores)
    assert not np.array_equal(Elo().fit(timed).scores, Elo().fit(Comparisons.of(**backwards)).scores)


def test_elo_predicts_ten_to_one_at_one_scale():
    votes = Comparisons.of(["a"], ["b"], ["a"])
    model = Elo(step=400.0, scale=400.0)
    ranking = model.fit(votes)
    assert ranking.scores[0] - ranking.scores[1] == pytest.approx(400.0)
    np.testing.assert_allclose(model.predict(ranking, votes), [[10 / 11, 0.0, 1 / 11]])


@pytest.mark.parametrize("setting", [{"step": 0.0}, {"scale": -1.0}])
def test_elo_refuses_steps_and_scales_that_are_not_positive(setting):
    with pytest.raises(SettingError, match="must be positive"):
        Elo(**setting)
