"""Islands and separation against brute force on the graph of who beat whom."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank.data import Comparisons, Health
from crowdrank.data import diagnostics as file
from tests.strategies import comparisons_of

pytestmark = pytest.mark.slow

quick = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def scattered(draw):
    """Few comparisons among many items: islands and separation are the rule."""
    queries = draw(st.integers(1, 2))
    rows = []
    for query in range(queries):
        size = draw(st.integers(2, 7))
        pair = st.permutations(range(size)).map(lambda order: order[:2])
        for a, b in draw(st.lists(pair, min_size=1, max_size=9)):
            rows.append((query, a, b, draw(st.sampled_from([1, 1, -1, 0]))))
    query, left, right, outcome = zip(*rows, strict=True)
    return comparisons_of(query if queries > 1 else None, left, right, outcome)


def reach(votes, both_ways):
    """Whether a chain of wins (or of comparisons at all) leads from one item to another."""
    size = len(votes.items)
    found = np.eye(size, dtype=bool)
    for a, b, outcome in zip(votes.left, votes.right, votes.outcome, strict=True):
        if outcome >= 0 or both_ways:
            found[a, b] = True
        if outcome <= 0 or both_ways:
            found[b, a] = True
    for _ in range(size):
        found = found | (found.astype(int) @ found.astype(int) > 0)
    return found


@pytest.mark.parametrize("largest", [500, 0], ids=["by a table", "by a graph"])
@quick
@given(votes=scattered())
def test_islands_are_what_no_chain_of_comparisons_joins(largest, votes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_LARGEST_TABLE", largest)
        health = Health(votes)
        islands = [set(group.tolist()) for group in health.islands]
    joined = reach(votes, both_ways=True)
    expected = []
    for query in range(len(votes.items.queries)):
        block = range(*votes.items.of_query(query).indices(len(votes.items)))
        groups = {frozenset(np.flatnonzero(joined[n]).tolist()) for n in block}
        expected += groups if len(groups) > 1 else []
    assert sorted(map(sorted, islands)) == sorted(map(sorted, expected))
    assert [len(group) for group in islands] == sorted((len(group) for group in islands), reverse=True)


@pytest.mark.parametrize("largest", [500, 0], ids=["by a table", "by a graph"])
@quick
@given(votes=scattered())
def test_separated_items_are_those_outside_the_largest_circle_of_wins(largest, votes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_LARGEST_TABLE", largest)
        health = Health(votes)
        separated, sound = set(health.separated.tolist()), health.sound
    beats, joined = reach(votes, both_ways=False), reach(votes, both_ways=True)
    mutual = beats & beats.T
    query = votes.items.query
    assert sound == all(mutual[a, b] for a in range(len(query)) for b in range(len(query)) if query[a] == query[b])
    for island in {frozenset(np.flatnonzero(row).tolist()) for row in joined}:
        circles = {frozenset(np.flatnonzero(mutual[n]).tolist()) for n in island}
        if len(circles) == 1:
            assert not separated & island
            continue
        kept = island - separated
        largest_circle = max(len(circle) for circle in circles)
        if largest_circle == 1:
            assert not kept
        else:
            assert kept in circles
            assert len(kept) == largest_circle


@quick
@given(votes=scattered())
def test_healthy_data_have_no_notes(votes):
    health = Health(votes)
    assert bool(health.notes()) == (not health.sound)


def test_a_long_table_is_looked_at_to_its_end(monkeypatch):
    """What joins two halves may stand in the last row."""
    monkeypatch.setattr(file, "_LARGEST_TABLE", 0)
    rows = [(0, 1, 1), (1, 0, 1), (2, 3, 1), (3, 2, 1)] * 200
    split = Health(comparisons_of(None, *zip(*rows, strict=True)))
    assert [group.tolist() for group in split.islands] == [[0, 1], [2, 3]]
    joined = Health(comparisons_of(None, *zip(*rows, (0, 2, 1), strict=True)))
    assert not joined.islands
    assert joined.separated.size == 2
    whole = Health(comparisons_of(None, *zip(*rows, (0, 2, 1), (2, 0, 1), strict=True)))
    assert whole.sound
    assert not whole.separated.size


def test_the_first_rows_may_settle_it():
    rows = [(n, (n + 1) % 5, 1) for n in range(5)] * 300
    health = Health(comparisons_of(None, *zip(*rows, strict=True)))
    assert health.sound
    assert not health.islands


def test_islands_are_described_by_name():
    votes = comparisons_of(None, [0, 2, 4, 6, 8, 8], [1, 3, 5, 7, 9, 7], [1] * 6)
    said = Health(votes).describe_islands()
    assert (
        said == "4 groups of items were never compared with each other: i6, i7, i8, …"
        " (4 in all); i0, i1; i2, i3; i4, i5."
    )


def test_items_no_one_judged_are_islands_but_not_separated():
    votes = Comparisons.of(["a", "b", "a"], ["b", "a", "c"], ["a", "b", "c"]).take(np.array([0, 1]))
    health = Health(votes)
    assert [group.tolist() for group in health.islands] == [[0, 1], [2]]
    assert not health.separated.size


def test_notes_are_in_plain_words():
    one = Health(comparisons_of(None, [0, 1, 1], [1, 2, 2], [1, 1, -1])).notes()
    assert len(one) == 1
    assert "i0" in one[0]
    assert "never both won and lost within the rest" in one[0]
