import gc
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest

from crowdrank.data.chunks import ChunkedTable
from crowdrank.engines import OutOfCore
from crowdrank.engines.out_of_core import MemoryBudget, Slot, parse_bytes, resident_memory, size_of
from crowdrank.errors import SettingError
from tests.engines.test_here import Column, doubled, moments


class Counting:
    """A recipe that knows how often it was called."""

    def __init__(self, value):
        self.value, self.calls = value, 0

    def __call__(self):
        self.calls += 1
        return Column(self.value.copy())

    def read_ahead(self):
        pass


def table(shards=7, rows=50):
    values = np.random.default_rng(0).normal(size=(shards, rows))
    return ChunkedTable(tuple(Counting(value) for value in values), shards * rows)


def test_with_room_for_all_every_shard_is_made_once():
    parts = table()
    held = OutOfCore("4GB").load(parts)
    kept, _ = held.map_and_sum(doubled, 2.0)
    for _ in range(3):
        kept.sum(moments, 2)
    assert {recipe.calls for recipe in parts.loaders} == {1}


def test_without_room_they_are_made_again_and_the_sums_are_the_same_to_the_last_bit():
    parts = table()
    roomy, tight = OutOfCore("4GB").load(table()), OutOfCore(1).load(parts)
    (kept, sums), (again, sums_again) = roomy.map_and_sum(doubled, 3.0), tight.map_and_sum(doubled, 3.0)
    assert sums.total == sums_again.total
    assert kept.sum(moments, 3).total == again.sum(moments, 3).total
    assert {recipe.calls for recipe in parts.loaders} == {2}


def test_few_shards_are_there_at_a_time():
    alive, most, lock = 0, 0, threading.Lock()

    class CountingLoader(Counting):
        def __call__(self):
            nonlocal alive, most
            with lock:
                alive += 1
                most = max(most, alive)
            return super().__call__()

    def counted(shard):
        nonlocal alive
        with lock:
            alive -= 1
        return (1,)

    values = np.zeros((100, 10))
    held = OutOfCore(1).load(ChunkedTable(tuple(CountingLoader(value) for value in values), 1000))
    assert held.sum(counted) == (100,)
    assert most <= 16


def test_what_an_earlier_pass_left_makes_room_for_a_later_one():
    room = MemoryBudget(100)
    judgments, old, new = (Slot(lambda: "made again", lambda: None) for _ in range(3))
    first, second, third = (room.new_group([slot]) for slot in (judgments, old, new))
    for slot, size, shelf in ((judgments, 40, first), (old, 60, second), (new, 50, third)):
        room.keep(slot, np.zeros(size, np.int8), shelf)
    assert (len(judgments()), old(), len(new())) == (40, "made again", 50)
    assert room.left == 10


def test_what_something_else_leans_on_is_not_emptied_since_that_would_free_nothing():
    room = MemoryBudget(100)
    judgments, other, curved, late = (Slot(lambda: "made again", lambda: None) for _ in range(4))
    first, second, third = room.new_group([judgments, other]), room.new_group([curved]), room.new_group([late])
    whole = (np.zeros(40, np.int8),)
    room.keep(judgments, whole, first)
    room.keep(other, (np.zeros(40, np.int8),), first)
    room.keep(curved, (whole[0], np.zeros(50, np.int8)), second, (judgments, whole))
    assert (judgments.children, judgments.size, other.size, curved.size) == (1, 40, 0, 50)
    room.keep(late, (np.zeros(60, np.int8),), third)  # the curvature goes, and nothing leans any more
    assert (judgments.children, judgments.size, curved.size, late.size) == (0, 40, 0, 60)


def test_what_was_made_of_judgments_that_are_gone_is_counted_whole():
    room = MemoryBudget(100)
    judgments, curved = (Slot(lambda: None, lambda: None) for _ in range(2))
    room.new_group([judgments])
    shelf, whole = room.new_group([curved]), (np.zeros(40, np.int8),)
    room.keep(curved, (whole[0], np.zeros(50, np.int8)), shelf, (judgments, whole))
    assert (curved.size, judgments.children, room.left) == (90, 0, 10)


def test_what_nobody_needs_any_more_gives_its_room_back():
    held = OutOfCore("4GB").load(table())
    before = held.budget.left
    kept, _ = held.map_and_sum(doubled, 2.0)
    assert held.budget.left == before - 7 * 50 * 8
    del kept
    gc.collect()
    assert held.budget.left == before


def test_a_quarter_of_the_limit_is_spare():
    held = OutOfCore("4GB").load(table())
    kept, _ = held.map_and_sum(doubled, 2.0)
    assert held.memory_left == kept.memory_left == 1e9


def test_an_error_in_a_shard_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        OutOfCore(1).load(table()).sum(lambda shard: 1 / 0)


def test_shared_and_repeated_columns_take_no_room():
    column = np.zeros(10)
    assert size_of((column, (np.broadcast_to(1.0, 1000), 3))) == 80
    assert size_of((column, np.zeros(5)), beside=(column,)) == 40


@pytest.mark.parametrize(("size", "count"), [("4GB", 4 * 10**9), ("1.5 gib", 3 * 2**29), ("10", 10), (7, 7)])
def test_sizes_are_read(size, count):
    assert parse_bytes(size) == count


@pytest.mark.parametrize("size", ["", "much", "-4GB", "0", "4 elephants", "1.2.3GB"])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(SettingError, match="such as 4GB"):
        OutOfCore(size)


def test_memory_in_use_is_known():
    assert 10**7 < resident_memory() < 10**11


FREED = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from crowdrank.engines.out_of_core import release_freed_memory, resident_memory
release_freed_memory()
del (large := [np.ones(1 << 21)])[:]  # the C library learns from this that 16 MB come and go
before = resident_memory()
with ThreadPoolExecutor(4) as pool:
    held = list(pool.map(lambda _: [np.ones(1 << 20), np.ones(1 << 8)], range(24)))
    for pair in held:
        del pair[0]
    print(resident_memory() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc alone it is known how")
def test_what_threads_free_is_given_back_at_once():
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20e6, "mostly 190 MB where the C library is left to itself"
