"""Fixtures: judgments in files with many small chunks, and a cluster of real processes."""

import logging
import os
from dataclasses import replace

import numpy as np
import pytest

from crowdrank.data import chunks
from crowdrank.simulation import mixed_crowd


@pytest.fixture(scope="package")
def votes():
    """Some with ties, sides that matter to a few, and more rows than pairs."""
    votes = mixed_crowd(items=20, kinds={"good": 9, "left": 2}, votes_each=90, seed=4).judgments
    tied = np.random.default_rng(0).random(len(votes)) < 0.1
    return replace(votes, outcome=np.where(tied, 0, votes.outcome).astype(np.int8))


@pytest.fixture(scope="package")
def folder(votes, tmp_path_factory):
    """The same votes as Parquet parts."""
    folder = tmp_path_factory.mktemp("votes")
    frame = votes.to_frame()
    for part in range(3):
        frame[part::3].write_parquet(folder / f"part-{part}.parquet")
    return folder


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of few rows, so that a small table has many."""
    monkeypatch.setattr(chunks, "ROWS_PER_CHUNK", 250)


@pytest.fixture(scope="package")
def client():
    distributed = pytest.importorskip("distributed")
    quiet = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(**quiet) as cluster, distributed.Client(cluster) as client:
        client.run(os.getpid)
        yield client
