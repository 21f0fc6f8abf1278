"""Every storage test runs on both databases: an SQLite file, and a schema in a real PostgreSQL server."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import psycopg
import pytest

from crowdrank.storage import Collection
from tests.postgres import running

_numbers = count()


@pytest.fixture(scope="session")
def postgres():
    """One server for all tests of this process."""
    with running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def new_location(request, tmp_path):
    """Make locations of empty databases."""

    def sqlite():
        return str(tmp_path / f"{next(_numbers)}.db")

    def postgresql():
        schema = f"collection_{next(_numbers)}"
        url = request.getfixturevalue("postgres").url()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return f"{url}&options=-csearch_path={schema}"

    if request.param == "postgresql":
        request.getfixturevalue("postgres")
    return {"sqlite": sqlite, "postgresql": postgresql}[request.param]


@pytest.fixture
def location(new_location):
    return new_location()


class Clock:
    """A clock that moves only when a test advances it."""

    def __init__(self):
        self.now = 1_700_000_000_000_000

    def __call__(self):
        return self.now

    def pass_seconds(self, seconds):
        self.now += round(seconds * 1e6)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def collection(location, clock):
    with Collection.open(location, clock=clock, durable=False) as opened:  # tests do not wait for the disk
        yield opened


@pytest.fixture
def crowd(collection):
    """Four items and two annotators."""
    items = collection.items.add(["a", "b", "c", "d"], actor="admin")
    annotators = collection.annotators.add(["ann", "bob"], actor="admin")
    return SimpleNamespace(items=items, ann=annotators[0], bob=annotators[1])


@pytest.fixture
def ask(collection, crowd):
    """Assign a pair, given the positions of its items."""

    def put(annotator=None, left=0, right=1, **told):
        who = crowd.ann if annotator is None else annotator
        told = {"policy": "random", "probability": 0.5, **told}
        return collection.assignments.create(who, crowd.items[left], crowd.items[right], **told)

    return put
