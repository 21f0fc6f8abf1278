"""Footrule, reciprocal rank fusion and Markov chains against their definitions, written out."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank.data import Rankings
from crowdrank.errors import SettingError
from crowdrank.models.lists.markov_chain import MarkovChain
from crowdrank.models.lists.positional import Footrule, ReciprocalRankFusion
from tests.strategies import rankings

quick = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def lists_of(lists):
    """Each list as (weight, {item: place})."""
    parts = [slice(*lists.offsets[n : n + 2]) for n in range(len(lists))]
    places = [dict(zip(lists.item[rows].tolist(), lists.place[rows].tolist(), strict=True)) for rows in parts]
    return list(zip(lists.weights, places, strict=True))


def middle(place, item):
    """Of the ranks, from 0, that an item shares with those tied with it."""
    above = sum(p < place[item] for p in place.values())
    return above + (sum(p == place[item] for p in place.values()) - 1) / 2


@quick
@given(lists=rankings(most_queries=1, most_items=5))
def test_no_order_has_a_smaller_footrule_distance(lists):
    size = len(lists.items)

    def distance(order):
        return sum(
            weight * abs((middle(place, item) + 0.5) * size / len(place) - 0.5 - order[item])
            for weight, place in lists_of(lists)
            for item in place
        )

    ranking = Footrule().fit(lists)
    least = min(distance(order) for order in permutations(range(size)))
    assert distance((ranking.rank - 1).tolist()) == pytest.approx(least)
    assert ranking.parameters["distance"] == pytest.approx(least)


def test_footrule_of_a_hand_worked_example():
    """Places of a: 0 0 2, of b: 1 2 0, of c: 2 1 1; a b c is 2 + 2 + 2 away, a c b 2 + 1 + 3; Borda decides."""
    lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["a"], ["c"], ["b"]], [["b"], ["c"], ["a"]]])
    ranking = Footrule().fit(lists)
    assert ranking.parameters["distance"] == 6
    assert ranking.table(uncertainty=False)["item"].to_list() == ["a", "b", "c"]


def test_footrule_ties_are_broken_by_borda_then_by_label():
    lists = Rankings.of_lists([[["a", "b", "c", "d", "e"]]])
    assert Footrule().fit(lists).table(uncertainty=False)["item"].to_list() == ["a", "b", "c", "d", "e"]
    lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["c"], ["a"]]])  # a b c, b a c and b c a are 4 away
    assert Footrule().fit(lists).table(uncertainty=False)["item"].to_list() == ["b", "a", "c"]


@quick
@given(lists=rankings(), k=st.sampled_from([0.0, 1.0, 60.0]))
def test_reciprocal_ranks_are_added_up(lists, k):
    expected = np.zeros(len(lists.items))
    for weight, place in lists_of(lists):
        for item in place:
            tied = sum(p == place[item] for p in place.values())
            first = 1 + sum(p < place[item] for p in place.values())
            expected[item] += weight * np.mean([1 / (k + rank) for rank in range(first, first + tied)])
    np.testing.assert_allclose(ReciprocalRankFusion(k=k).fit(lists).scores, expected, rtol=1e-12)


def test_fusion_of_a_hand_worked_example():
    lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["c"]]])
    scores = ReciprocalRankFusion().fit(lists).scores
    np.testing.assert_allclose(scores, [1 / 61, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])


def probabilities(lists, chain):
    """The table of each step's probabilities, written out from the paper's words."""
    size, known = len(lists.items), lists_of(lists)
    table = np.zeros((size, size))
    for p in range(size):
        naming = [(weight, place) for weight, place in known if p in place]
        total = sum(weight for weight, _ in naming)
        for weight, place in naming:
            as_high = [q for q in place if place[q] <= place[p]]
            for q in place:
                if chain == "mc1":
                    table[p, q] += weight * (q in as_high)
                elif chain == "mc2":
                    table[p, q] += weight / total * (q in as_high) / len(as_high)
                elif chain == "mc3":
                    table[p, q if place[q] < place[p] else p] += weight / total / len(place)
        if chain == "mc4":
            for q in range(size):
                both = [(weight, place) for weight, place in naming if q in place]
                lead = sum(weight * np.sign(place[p] - place[q]) for weight, place in both)
                table[p, q if lead > 0 else p] += 1 / size
    return table / table.sum(axis=1, keepdims=True)


@quick
@given(lists=rankings(most_queries=1), chain=st.sampled_from(["mc1", "mc2", "mc3", "mc4"]))
def test_transition_matrices_equal_the_definitions(lists, chain):
    size = len(lists.items)
    step = 0.9 * probabilities(lists, chain) + 0.1 / size
    time = np.linalg.matrix_power(step, 400)[0]
    scores = MarkovChain(chain=chain, teleport=0.1).fit(lists).scores
    np.testing.assert_allclose(scores, np.log(time) - np.log(time).mean(), atol=1e-9)


@pytest.mark.parametrize("chain", ["mc1", "mc2", "mc3", "mc4"])
def test_every_chain_ranks_unanimous_lists_correctly(chain):
    lists = Rankings.of_lists([[["a"], ["b"], ["c"], ["d"]]] * 3)
    assert MarkovChain(chain=chain).fit(lists).table(uncertainty=False)["item"].to_list() == ["a", "b", "c", "d"]


def test_markov_chain_of_a_hand_worked_example():
    """Two of three put a first: from b half the steps go to a, from a none but teleports, of which half go to b."""
    lists = Rankings.of_lists([[["a"], ["b"]], [["a"], ["b"]], [["b"], ["a"]]])
    scores = MarkovChain(teleport=0.2).fit(lists).scores
    # flow from a to b: 0.1·π(a); back: (0.8/2 + 0.1)·π(b)
    assert scores[0] - scores[1] == pytest.approx(np.log(5))


@pytest.mark.parametrize(
    ("model", "setting"),
    [(ReciprocalRankFusion, {"k": -1.0}), (MarkovChain, {"chain": "mc5"}), (MarkovChain, {"teleport": 0.0})],
)
def test_invalid_settings_are_refused(model, setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        model(**setting)
