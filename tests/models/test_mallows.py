"""Kemeny's order of lists, and the dispersion around it."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from crowdrank.data import Comparisons, Rankings
from crowdrank.errors import DataError, SettingError
from crowdrank.models.lists import mallows
from crowdrank.models.lists.mallows import Mallows
from crowdrank.models.lists.mallows_likelihood import expected_distance
from crowdrank.simulation import list_crowd
from tests.strategies import comparisons, rankings

quick = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def pairs_of(judgments):
    """Rows of (better, worse, weight)."""
    if isinstance(judgments, Comparisons):
        rows = zip(judgments.left, judgments.right, judgments.outcome, judgments.weights, strict=True)
        return [(a, b, w) if o > 0 else (b, a, w) for a, b, o, w in rows if o]
    return [
        (judgments.item[a], judgments.item[b], judgments.weights[n])
        for n in range(len(judgments))
        for a in range(*judgments.offsets[n : n + 2])
        for b in range(*judgments.offsets[n : n + 2])
        if judgments.place[a] < judgments.place[b]
    ]


def turned(judgments, scores):
    return sum(weight for better, worse, weight in pairs_of(judgments) if scores[better] < scores[worse])


def fewest_turned(judgments):
    """The least there is, query by query, over all orders."""
    items, pairs = judgments.items, pairs_of(judgments)
    total = 0.0
    for query in range(len(items.queries)):
        block = items.of_query(query)
        own = [(a - block.start, b - block.start, w) for a, b, w in pairs if block.start <= a < block.stop]
        orders = permutations(range(block.stop - block.start))
        total += min(sum(w for a, b, w in own if place[a] > place[b]) for place in orders)
    return total


@quick
@given(lists=rankings(most_items=6))
def test_no_order_contradicts_fewer_pairs_of_the_lists(lists):
    ranking = Mallows().fit(lists)
    assert turned(lists, ranking.scores) == pytest.approx(fewest_turned(lists))
    assert ranking.parameters["discordant"] == pytest.approx(fewest_turned(lists))
    assert ranking.parameters["optimal"] == 1


@quick
@given(votes=comparisons(most_items=6))
def test_no_order_contradicts_fewer_comparisons(votes):
    assert turned(votes, Mallows().fit(votes).scores) == pytest.approx(fewest_turned(votes))


def test_tennessee_puts_its_capital_in_nashville():
    """The example of Kemeny's rule in every textbook: 393 of 600 pairs agree with the order, 207 do not."""
    m, n, c, k = ([name] for name in ("Memphis", "Nashville", "Chattanooga", "Knoxville"))
    lists = Rankings.of_lists([[m, n, c, k], [n, c, k, m], [c, k, n, m], [k, c, n, m]], weight=[42, 26, 15, 17])
    ranking = Mallows().fit(lists)
    assert ranking.table(uncertainty=False)["item"].to_list() == ["Nashville", "Chattanooga", "Knoxville", "Memphis"]
    assert ranking.parameters["discordant"] == 207


def log_chance(lists, order, theta):
    """Of each list among all orders of its items: of one with ties, of all the orders it leaves open."""
    total = 0.0
    for n in range(len(lists)):
        rows = slice(*lists.offsets[n : n + 2])
        item, place = lists.item[rows], lists.place[rows]
        rank = [order.index(i) for i in item]
        ways = list(permutations(range(len(item))))
        distance = [sum(rank[a] > rank[b] for k, a in enumerate(way) for b in way[k + 1 :]) for way in ways]
        kept = [all(place[a] <= place[b] for k, a in enumerate(way) for b in way[k + 1 :]) for way in ways]
        chance = np.exp(theta * np.array(distance))
        total += lists.weights[n] * np.log(chance[kept].sum() / chance.sum())
    return total


@quick
@given(lists=rankings(most_queries=1, most_items=5, most_lists=4))
def test_the_dispersion_maximises_the_likelihood_of_full_partial_and_tied_lists(lists):
    ranking = Mallows().fit(lists)
    order, spread = ranking.order.tolist(), ranking.parameters["dispersion"]
    if spread == 0:
        assert ranking.log_likelihood == 0
        return
    theta = np.log(spread)
    assert ranking.log_likelihood == pytest.approx(log_chance(lists, order, theta))
    for other in (theta - 0.01, theta + 0.01):
        assert log_chance(lists, order, other) <= ranking.log_likelihood + 1e-9


def test_the_dispersion_of_full_lists_is_that_of_their_mean_distance():
    lists = list_crowd(
        queries=1, items=8, annotators=200, expertise=-0.4, first_expertise=None, labels="mallows"
    ).judgments
    found = Mallows().fit(lists).parameters
    assert expected_distance(np.log(found["dispersion"]), 8) == pytest.approx(found["discordant"] / 200)
    assert np.log(found["dispersion"]) == pytest.approx(-0.4, abs=0.05)


def test_the_dispersion_can_be_estimated_per_query():
    sure, unsure = [[["a"], ["b"], ["c"]]] * 3, [[["a"], ["b"], ["c"]], [["c"], ["a"], ["b"]], [["a"], ["c"], ["b"]]]
    lists = Rankings.of_lists([*sure, *unsure], query=["sure"] * 3 + ["unsure"] * 3)
    found = Mallows(dispersion="by-query").fit(lists)
    assert found.parameters["dispersion_of_sure"] == 0
    alone = Mallows().fit(Rankings.of_lists(unsure))
    assert found.parameters["dispersion_of_unsure"] == pytest.approx(alone.parameters["dispersion"])
    assert found.log_likelihood == pytest.approx(alone.log_likelihood)


def test_large_components_are_searched_and_not_reported_as_optimal():
    crowd = list_crowd(queries=2, items=30, annotators=5, expertise=-0.1, first_expertise=None, labels="mallows")
    ranking = Mallows().fit(crowd.judgments)
    assert ranking.parameters["optimal"] < 1
    assert turned(crowd.judgments, ranking.scores) == ranking.parameters["discordant"]
    assert turned(crowd.judgments, ranking.scores) <= turned(crowd.judgments, crowd.truth)
    assert Mallows(restarts=0).fit(crowd.judgments).parameters["discordant"] >= ranking.parameters["discordant"]


def test_lists_that_order_nothing_have_no_dispersion():
    ranking = Mallows().fit(Rankings.of_lists([[["a", "b"]], [["b"]]]))
    assert "dispersion" not in ranking.parameters
    assert ranking.log_likelihood == 0


def test_items_missing_from_a_top_k_list_can_count_as_worse():
    top = Rankings.of_lists([[["a"], ["b"]], [["a"], ["c"]], [["d"], ["a"]]])
    assert Mallows().fit(top).table(uncertainty=False)["item"].to_list()[0] == "d"
    assert Mallows().fit(top.with_missing_last()).table(uncertainty=False)["item"].to_list()[0] == "a"


@pytest.mark.parametrize("setting", [{"exact_up_to": 0}, {"exact_up_to": 30}, {"restarts": -1}, {"dispersion": "none"}])
def test_invalid_settings_are_refused(setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        Mallows(**setting)


def test_a_query_with_too_many_pairs_is_refused(monkeypatch):
    monkeypatch.setattr(mallows, "MAX_ITEMS", 2)
    with pytest.raises(DataError, match=r"3 items.*Use borda"):
        Mallows().fit(Rankings.of_lists([[["a"], ["b"], ["c"]]]))
