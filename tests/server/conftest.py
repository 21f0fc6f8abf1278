"""A collection and its server in this process, with SQLite or a real PostgreSQL."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from fastapi.testclient import TestClient

from crowdrank.server.admin_actions import change_settings
from crowdrank.server.app import create_app
from crowdrank.server.assignments import Answer, AssignmentService
from crowdrank.server.service import Options
from crowdrank.storage import Collection, NewItem
from tests.postgres import running
from tests.server.browser_helpers import browser, enter, photograph, stones  # noqa: F401  (fixtures)

_numbers = count()


class Clock:
    """A clock that moves only when a test advances it."""

    def __init__(self):
        self.now = 1_800_000_000_000_000

    def __call__(self):
        return self.now

    def pass_seconds(self, seconds):
        self.now += round(seconds * 1e6)


@pytest.fixture(scope="session")
def postgres():
    with running() as server:
        yield server


@pytest.fixture
def new_location(request, tmp_path):
    """Make locations of empty databases: `new_location()` for SQLite, `new_location("postgresql")`."""

    def make(kind="sqlite"):
        if kind == "sqlite":
            return str(tmp_path / f"{next(_numbers)}.db")
        schema, url = f"server_{next(_numbers)}", request.getfixturevalue("postgres").url()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return f"{url}&options=-csearch_path={schema}"

    return make


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


class Played:
    """A server with a client and shortcuts for tests."""

    def __init__(self, location, items=("a", "b", "c", "d"), clock=None, settings=None, **options):
        clocks = {} if clock is None else {"clock": clock}
        self.database = Path(location)
        self.collection = Collection.open(location, durable=False, **clocks)
        self.app = create_app(self.collection, Options(durable=False, background=False, **options))
        self.service = self.app.state.service
        # A fixed seed, so that every run asks the same questions.
        projection, is_decided = self.service.projection, self.service.boards.is_decided
        self.service.assignments = AssignmentService(self.collection, projection, is_decided, seed=0)
        self.client = TestClient(self.app, base_url="http://testserver")
        if items:
            self.ids = self.collection.items.add([_new(one) for one in items], actor="test")
        if settings:
            change_settings(self.service, settings, "test")
        self.secret = self.collection.access.issue_role("admin", actor="test")
        self.admin = bearer(self.secret)
        self._ids = {}

    def join(self, *names, quota=None):
        """Add annotators and return their tokens."""
        given = [{"name": name, "quota": quota} for name in names]
        answer = self.client.post("/api/v1/annotators", json={"annotators": given}, headers=self.admin)
        assert answer.status_code == 200, answer.text
        self._ids |= {one["token"]: one["id"] for one in answer.json()["annotators"]}
        return [one["token"] for one in answer.json()["annotators"]]

    def question(self, token):
        answer = self.client.get("/api/v1/question", headers=bearer(token))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def vote(self, token, question, outcome="left", status=200, **more):
        body = {"token": question["assignment"]["token"], "outcome": outcome, **more}
        answer = self.client.post("/api/v1/votes", json=body, headers=bearer(token))
        assert answer.status_code == status, answer.text
        return answer.json()

    def play(self, token, outcomes):
        """Answer one question per outcome; an outcome may be a function of the question."""
        question = self.question(token)
        for outcome in outcomes:
            if "assignment" not in question:
                break
            answer = outcome(question["assignment"]) if callable(outcome) else outcome
            question = self.vote(token, question, answer, response_ms=1200)["next"]
        return question

    def play_directly(self, annotator_token, outcomes):
        """Like `play`, but without HTTP, which is four times as fast."""
        service = self.service.assignments
        annotator = service.annotator(self._ids[annotator_token])
        question = service.question(annotator)
        for outcome in outcomes:
            if "assignment" not in question:
                break
            answer = outcome(question["assignment"]) if callable(outcome) else outcome
            token = question["assignment"]["token"]
            question = service.vote(annotator, Answer(token, answer, response_ms=1200))["next"]
        return question

    def enter(self, token, path="join"):
        """Return a browser that opened a link."""
        client = TestClient(self.app, base_url="http://testserver")
        answer = client.get(f"/{path}/{token}", follow_redirects=False)
        assert answer.status_code == 303, answer.text
        return client


def _new(one):
    return one if isinstance(one, NewItem) else NewItem(label=one)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def start(new_location):
    """Start servers that are stopped afterwards: `start(kind="sqlite", **options)`."""
    open_ones = []

    def begin(kind="sqlite", location=None, **how):
        made = Played(location or new_location(kind), **how)
        open_ones.append(made)
        return made

    yield begin
    for one in open_ones:
        one.service.stop()


@pytest.fixture
def played(start):
    return start()


@pytest.fixture
def two(played):
    ann, bob = played.join("ann", "bob")
    return SimpleNamespace(ann=ann, bob=bob)
