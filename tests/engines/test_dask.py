"""Killing a worker costs time but does not change the result."""

import os
import signal

import numpy as np

import crowdrank as cr
from crowdrank.engines import Dask, ProgressEngine
from tests.strategies import joint_crowd_bt


def test_a_worker_killed_in_the_middle_changes_nothing(folder, small_parts, client):
    scanned = cr.scan(folder)
    model = joint_crowd_bt()  # a tenth of the passes of the default
    expected = model.fit(scanned, engine=Dask(client))
    (victim, *_), passes = client.run(os.getpid).values(), []

    def tell(count):
        passes.append(count)
        if count == 5:
            os.kill(victim, signal.SIGKILL)

    found = model.fit(scanned, engine=ProgressEngine(Dask(client), tell))
    assert passes[-1] > 5
    assert victim not in client.run(os.getpid).values()
    assert found.log_likelihood == expected.log_likelihood
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_sums_are_added_in_a_tree_of_one_shape(client):
    from crowdrank.data.chunks import ChunkedTable, LoadedShard
    from tests.engines.test_here import Column, moments

    values = np.array([1e16, 1.0, -1e16, 1.0] * 5)
    shards = tuple(LoadedShard(Column(values[n : n + 1])) for n in range(20))
    held = Dask(client).load(ChunkedTable(shards, 20))
    assert len({held.sum(moments, 1).total for _ in range(3)}) == 1
