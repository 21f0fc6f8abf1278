"""A collection behind its server, spoken to in this process; over SQLite, and where asked over a real PostgreSQL."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import psycopg
import pytest
from fastapi.testclient import TestClient

from crowdrank.server.app import create_app
from crowdrank.server.assignments import Desk
from crowdrank.server.batching import Said
from crowdrank.server.service import Options
from crowdrank.storage import Collection, NewItem
from tests.postgres import running
from tests.server.browsing import browser, enter, photograph, stones  # noqa: F401  (fixtures)

_numbers = count()


class Clock:
    """Stands still until it is moved."""

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
def new_place(request, tmp_path):
    """An address of a database with nothing in it: `new_place()` of SQLite, `new_place("postgresql")`."""

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
    """A server with a client, and short words for what tests do."""

    def __init__(self, place, items=("a", "b", "c", "d"), clock=None, settings=None, **options):
        told = {} if clock is None else {"clock": clock}
        self.collection = Collection.open(place, durable=False, **told)
        self.app = create_app(self.collection, Options(durable=False, background=False, **options))
        self.service = self.app.state.service
        # the same lots every time
        self.service.desk = Desk(self.collection, self.service.live, self.service.boards.settled, seed=0)
        self.client = TestClient(self.app, base_url="http://testserver")
        if items:
            self.ids = self.collection.items.add([_new(one) for one in items], actor="test")
        if settings:
            self.service.change_settings(settings, "test")
        self.secret = self.collection.access.issue_role("admin", actor="test")
        self.admin = bearer(self.secret)
        self._number = {}

    def join(self, *names, quota=None):
        """Tokens of new annotators."""
        given = [{"name": name, "quota": quota} for name in names]
        answer = self.client.post("/api/v1/annotators", json={"annotators": given}, headers=self.admin)
        assert answer.status_code == 200, answer.text
        self._number |= {one["token"]: one["id"] for one in answer.json()["annotators"]}
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
        """Answer so many questions; `outcomes` are answers, or a function of the question."""
        question = self.question(token)
        for outcome in outcomes:
            if "assignment" not in question:
                break
            said = outcome(question["assignment"]) if callable(outcome) else outcome
            question = self.vote(token, question, said, milliseconds=1200)["next"]
        return question

    def play_directly(self, token, outcomes):
        """The same without HTTP, at a quarter of the cost: for tests that need many votes, not the API."""
        desk = self.service.desk
        person = desk.person(self._number[token])
        question = desk.question(person)
        for outcome in outcomes:
            if "assignment" not in question:
                break
            said = outcome(question["assignment"]) if callable(outcome) else outcome
            question = desk.vote(person, Said(question["assignment"]["token"], said, milliseconds=1200))["next"]
        return question

    def enter(self, token, path="join"):
        """A browser that opened a link."""
        visitor = TestClient(self.app, base_url="http://testserver")
        answer = visitor.get(f"/{path}/{token}", follow_redirects=False)
        assert answer.status_code == 303, answer.text
        return visitor


def _new(one):
    return one if isinstance(one, NewItem) else NewItem(label=one)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def start(new_place):
    """Servers that are closed afterwards: `start(kind="sqlite", **how)`."""
    open_ones = []

    def begin(kind="sqlite", place=None, **how):
        made = Played(place or new_place(kind), **how)
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
