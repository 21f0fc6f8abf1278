"""Disconnected components and separation against brute force on the graph of who beat whom."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank.data import Comparisons, DataDiagnostics
from crowdrank.data import diagnostics as module
from tests.strategies import comparisons_of

pytestmark = pytest.mark.slow

quick = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def scattered(draw):
    """Few comparisons among many items, which usually gives components and separation."""
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


ways = pytest.mark.parametrize(
    ("largest", "searched"), [(500, 20_000), (0, 20_000), (0, 0)], ids=["by a table", "by a search", "by a graph"]
)


@ways
@quick
@given(votes=scattered())
def test_components_are_what_no_chain_of_comparisons_joins(largest, searched, votes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_DENSE_ITEMS", largest)
        patch.setattr(module, "_MAX_SEARCHED", searched)
        diagnostics = DataDiagnostics(votes)
        components = [set(group.tolist()) for group in diagnostics.disconnected_components]
    joined = reach(votes, both_ways=True)
    expected = []
    for query in range(len(votes.items.queries)):
        block = range(*votes.items.of_query(query).indices(len(votes.items)))
        groups = {frozenset(np.flatnonzero(joined[n]).tolist()) for n in block}
        expected += groups if len(groups) > 1 else []
    assert sorted(map(sorted, components)) == sorted(map(sorted, expected))
    assert [len(group) for group in components] == sorted((len(group) for group in components), reverse=True)


@ways
@quick
@given(votes=scattered())
def test_separated_items_are_outside_the_largest_strong_component(largest, searched, votes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_DENSE_ITEMS", largest)
        patch.setattr(module, "_MAX_SEARCHED", searched)
        diagnostics = DataDiagnostics(votes)
        separated, sound = set(diagnostics.separated.tolist()), diagnostics.strongly_connected
    beats, joined = reach(votes, both_ways=False), reach(votes, both_ways=True)
    mutual = beats & beats.T
    query = votes.items.query
    assert sound == all(mutual[a, b] for a in range(len(query)) for b in range(len(query)) if query[a] == query[b])
    for component in {frozenset(np.flatnonzero(row).tolist()) for row in joined}:
        strong = {frozenset(np.flatnonzero(mutual[n]).tolist()) for n in component}
        if len(strong) == 1:
            assert not separated & component
            continue
        kept = component - separated
        largest_strong = max(len(group) for group in strong)
        if largest_strong == 1:
            assert not kept
        else:
            assert kept in strong
            assert len(kept) == largest_strong


@quick
@given(votes=scattered())
def test_strongly_connected_data_have_no_notes(votes):
    diagnostics = DataDiagnostics(votes)
    assert bool(diagnostics.notes()) == (not diagnostics.strongly_connected)


def test_the_last_row_of_a_long_table_can_connect_components(monkeypatch):
    """The comparison that connects two halves may be in the last row."""
    monkeypatch.setattr(module, "_MAX_DENSE_ITEMS", 0)
    rows = [(0, 1, 1), (1, 0, 1), (2, 3, 1), (3, 2, 1)] * 200
    split = DataDiagnostics(comparisons_of(None, *zip(*rows, strict=True)))
    assert [group.tolist() for group in split.disconnected_components] == [[0, 1], [2, 3]]
    joined = DataDiagnostics(comparisons_of(None, *zip(*rows, (0, 2, 1), strict=True)))
    assert not joined.disconnected_components
    assert joined.separated.size == 2
    whole = DataDiagnostics(comparisons_of(None, *zip(*rows, (0, 2, 1), (2, 0, 1), strict=True)))
    assert whole.strongly_connected
    assert not whole.separated.size


def test_the_first_rows_can_settle_connectivity():
    rows = [(n, (n + 1) % 5, 1) for n in range(5)] * 300
    diagnostics = DataDiagnostics(comparisons_of(None, *zip(*rows, strict=True)))
    assert diagnostics.strongly_connected
    assert not diagnostics.disconnected_components


def test_components_are_described_by_name():
    votes = comparisons_of(None, [0, 2, 4, 6, 8, 8], [1, 3, 5, 7, 9, 7], [1] * 6)
    said = DataDiagnostics(votes).describe_components()
    assert (
        said == "4 groups of items were never compared with each other: i6, i7, i8, …"
        " (4 in all); i0, i1; i2, i3; i4, i5."
    )


def test_items_that_nobody_judged_are_components_but_not_separated():
    votes = Comparisons.of(["a", "b", "a"], ["b", "a", "c"], ["a", "b", "c"]).take(np.array([0, 1]))
    diagnostics = DataDiagnostics(votes)
    assert [group.tolist() for group in diagnostics.disconnected_components] == [[0, 1], [2]]
    assert not diagnostics.separated.size


def test_notes_name_the_separated_items():
    one = DataDiagnostics(comparisons_of(None, [0, 1, 1], [1, 2, 2], [1, 1, -1])).notes()
    assert len(one) == 1
    assert one[0] == "1 item only won or only lost against the rest (i0), so the data alone do not bound its score."


def test_an_item_in_the_middle_of_a_chain_is_not_said_to_have_only_won_or_lost():
    chain = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])
    said = "Among all 3 items (a, b, c), wins lead in one direction only, so the data alone do not bound"
    assert DataDiagnostics(chain).notes() == [f"{said} their scores."]
    ends = Comparisons.of(["a", "b", "c", "c"], ["b", "c", "b", "d"], ["a", "b", "c", "c"])
    assert DataDiagnostics(ends).notes()[0].startswith("2 items only won or only lost against the rest (a, d)")
