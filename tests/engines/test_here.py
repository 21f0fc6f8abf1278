import threading
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdrank.engines import LOCAL, LocalEngine
from crowdrank.engines.local import MAX_SHARDS, add


class Column(NamedTuple):
    value: np.ndarray

    @property
    def rows(self):
        return len(self.value)

    def split(self, parts):
        return [Column(part) for part in np.array_split(self.value, parts)]


class Sums(NamedTuple):
    total: float
    powers: np.ndarray


def moments(shard, highest):
    return Sums(float(shard.value.sum()), np.array([np.sum(shard.value**n) for n in range(highest)]))


def doubled(shard, factor):
    kept = Column(shard.value * factor)
    return kept, Sums(float(kept.value.sum()), np.array([float(shard.rows)]))


@settings(deadline=None, max_examples=40)
@given(rows=st.integers(1, 100), rows_per_shard=st.integers(1, 30))
def test_sums_are_the_same_however_the_rows_are_cut(rows, rows_per_shard):
    table = Column(np.arange(rows, dtype=float))
    whole, cut = LOCAL.load(table), LocalEngine(rows_per_shard=rows_per_shard).load(table)
    assert len(whole.shards) == 1
    assert len(cut.shards) == min(MAX_SHARDS, -(-rows // rows_per_shard))
    one, many = whole.sum(moments, 3), cut.sum(moments, 3)
    assert isinstance(many, Sums)
    assert many.total == one.total
    np.testing.assert_allclose(many.powers, one.powers)


def test_what_is_kept_stays_beside_its_shard():
    held = LocalEngine(rows_per_shard=3).load(Column(np.arange(10.0)))
    kept, sums = held.map_and_sum(doubled, 2.0)
    assert sums.total == 90.0
    assert sums.powers[0] == 10.0
    assert [shard.rows for shard in kept.shards] == [shard.rows for shard in held.shards]
    assert kept.sum(moments, 1).total == 90.0


def test_shards_are_summed_in_their_own_order():
    """Rounding depends on it, and must not depend on which thread was first."""
    table = Column(np.array([1e16, 1.0, -1e16, 1.0] * 4))
    held = LocalEngine(rows_per_shard=1).load(table)
    results = {held.sum(moments, 1).total for _ in range(20)}
    assert len(results) == 1


def test_a_small_table_starts_no_thread():
    seen = []
    LOCAL.load(Column(np.zeros(5))).sum(lambda shard: (seen.append(threading.current_thread()), shard.value)[1:])
    assert seen == [threading.current_thread()]


def test_an_error_in_a_shard_reaches_the_caller():
    def broken(shard):
        raise ZeroDivisionError("in a shard")

    with pytest.raises(ZeroDivisionError, match="in a shard"):
        LocalEngine(rows_per_shard=1).load(Column(np.zeros(4))).sum(broken)


def test_plain_tuples_are_added_too():
    found = add([(1.0, np.array([1.0, 2.0])), (2.0, np.array([3.0, 4.0]))])
    assert found[0] == 3.0
    np.testing.assert_array_equal(found[1], [4.0, 6.0])


def test_adding_changes_none_of_the_parts():
    parts = [(np.array([1.0]),), (np.array([2.0]),), (np.array([4.0]),)]
    assert add(parts)[0] == [7.0]
    assert [part[0][0] for part in parts] == [1.0, 2.0, 4.0]
