"""Erasing a person on the server: nothing of them is left in any file or export, and the board is the replayed one."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import quote, urlencode

import httpx
import psycopg
import pytest

from crowdrank.server.boards import build_board
from crowdrank.server.projection import Projection
from crowdrank.storage import Collection
from tests.postgres import running
from tests.server.conftest import bearer
from tests.serving import crowdrank, serving

NAME, COMMENT = "Wilhelmina Xaver", "I was born in Ypsheim"


@pytest.fixture
def erased(start):
    played = start(settings={"comments": True})
    person, bob, cleo = played.join(NAME, "bob", "cleo")
    for token in (person, bob, cleo):
        question = played.question(token)
        for n in range(5):
            more = {"comment": COMMENT} if token == person else {}
            question = played.vote(token, question, "right" if n == 2 else "left", response_ms=900, **more)["next"]
    played.token, played.person = person, played._ids[person]
    played.service.boards.build()
    answer = played.client.post(f"/api/v1/annotators/{played.person}/erase", json={}, headers=played.admin)
    assert answer.status_code == 200, answer.text
    played.new_name = answer.json()["name"]
    return played


def test_nothing_is_left_in_files_and_exports(erased, tmp_path):
    paths = (
        "votes.csv",
        "votes.jsonl",
        "votes?limit=1000",
        "annotators",
        "audit?limit=1000",
        "items",
        "board",
        "quarantine",
    )
    texts = [erased.client.get(f"/api/v1/{path}", headers=erased.admin).content for path in paths]
    texts += [erased.client.get("/api/v1/export.parquet", headers=erased.admin).content]
    erased.collection.backup(tmp_path / "later.db")
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert len(files) >= 3
    for content in [*texts, *(path.read_bytes() for path in files)]:
        assert NAME.encode() not in content
        assert COMMENT.encode() not in content
    assert erased.new_name.encode() in texts[0]


def test_the_board_is_the_replayed_one_without_them(erased, tmp_path):
    board = erased.service.boards.build()
    assert board.votes == 10
    erased.collection.backup(tmp_path / "copy.db")
    with Collection.open(tmp_path / "copy.db") as copy:
        again = Projection(copy).catch_up()
        assert build_board(copy, again, again.board_seq) == board
        live = erased.service.projection
        assert again.beliefs.mean.tolist() == live.beliefs.mean.tolist()
        assert again.votes.annotators.labels == live.votes.annotators.labels


def test_they_are_signed_out_and_the_audit_log_says_so(erased):
    assert erased.client.get("/api/v1/question", headers=bearer(erased.token)).status_code == 401
    events = erased.client.get("/api/v1/audit", headers=erased.admin).json()["events"]
    (event,) = [one for one in events if one["kind"] == "annotator_erased"]
    assert event["actor"].startswith("admin")
    for change in ({"excluded": False}, {"reissue": True}):
        path = f"/api/v1/annotators/{erased.person}"
        assert erased.client.patch(path, json=change, headers=erased.admin).status_code == 422
    again = erased.client.post(f"/api/v1/annotators/{erased.person}/erase", json={}, headers=erased.admin)
    assert again.status_code == 422


def test_votes_can_go_on_counting(start):
    played = start()
    person, bob = played.join(NAME, "bob")
    played.play(person, ["left"] * 3)
    played.play(bob, ["left"] * 2)
    path = f"/api/v1/annotators/{played._ids[person]}/erase"
    assert played.client.post(path, json={"keep_votes": True}, headers=played.admin).status_code == 200
    assert played.service.boards.build().votes == 5
    assert played.service.projection.n_counted == 5


def test_an_admin_exports_and_erases_on_the_page(start):
    played = start()
    (person,) = played.join(NAME)
    played.play(person, ["left"])
    id_ = played._ids[person]
    data = played.client.get(f"/api/v1/annotators/{id_}/data", headers=played.admin).json()
    assert (data["name"], len(data["votes"])) == (NAME, 1)
    admin = played.enter(played.secret, "admin")
    page = admin.get(f"/admin/annotators/{id_}")
    assert "Erase their data" in page.text
    csrf = page.text.split('name="csrf" value="')[1].split('"')[0]
    answer = admin.post(
        f"/admin/annotators/{id_}/erase",
        data={"csrf": csrf, "return_to": "annotator"},
        headers={"Origin": "http://testserver"},
    )
    assert answer.status_code == 200
    assert NAME not in answer.text
    assert "Their data are erased." in answer.text
    audit = played.client.get("/api/v1/audit", headers=played.admin).json()["events"]
    assert "data of an annotator exported" in [event["detail"].get("text") for event in audit]
    forbidden = played.client.get(f"/api/v1/annotators/{id_}/data", headers=bearer(person))
    assert forbidden.status_code in (401, 403)


def test_the_board_is_the_one_of_the_others_to_the_last_bit(erased):
    """Whether someone was erased, or only excluded, makes no difference to anybody's score."""
    board = erased.service.boards.build()
    others = erased.collection.log.judgments()
    assert NAME not in others.annotators.tolist()
    assert erased.new_name not in others.annotators.tolist()
    direct = board.method.fit(others)
    assert board.ranking.scores.tolist() == direct.scores.tolist()
    assert board.ranking.uncertainty.std_error.tolist() == direct.uncertainty.std_error.tolist()


PERSON, PANEL, ADDRESS = "Wilhelmína Xáver", "5f3a9c77e1panel0815", "203.0.113.77"
REASON, WRITTEN = "because of my knée", "she called us from Zedtown"
SECRETS = (PERSON, PANEL, ADDRESS, COMMENT, REASON, WRITTEN)
EXPORTS = (
    *("votes.csv", "votes.jsonl?identities=true", "export.parquet", "annotators", "audit.csv", "audit.jsonl"),
    *("participants.csv", "items", "versions", "bursts", "stuffing", "board"),
)
SETTINGS = "comments = true\nboard_public = true\n"


@contextmanager
def sqlite_files(folder):
    yield [], None, lambda: folder.rglob("*")


@contextmanager
def postgresql_files(folder):
    """A server of our own: its files, without the write-ahead log, which the operator must expire."""
    with running() as server:
        location = server.create("study")

        def files():
            with psycopg.connect(server.url("study"), autocommit=True) as connection:
                connection.execute("CHECKPOINT")
            found = [*server.folder.rglob("*"), *folder.rglob("*")]
            return [path for path in found if "pg_wal" not in path.parts]

        yield ["--database", location], location, files


def arrive(base, data, path):
    """Join from an address as a browser would; return the browser and what its votes need."""
    client = httpx.Client(base_url=base, timeout=120, headers={"X-Forwarded-For": ADDRESS, "Accept": "text/html"})
    csrf = re.search(r'name="csrf"[^>]*value="([0-9a-f]{32})"', client.get(path).text)[1]
    assert client.post("/join", data={"csrf": csrf, **data}).status_code == 303
    found = re.search(r'data-csrf="([0-9a-f]{32})"', client.get("/judge").text)[1]
    client.headers["X-CSRF-Token"] = found
    return client


def leave_traces(served, client):
    question = client.get("/api/v1/question").json()
    for n in range(6):
        token = question["assignment"]["token"]
        answer = {"outcome": "skip", "reason": REASON} if n == 2 else {"outcome": "left", "comment": COMMENT}
        question = client.post("/api/v1/votes", json={"token": token, **answer}).json()["next"]
    assert client.post("/api/v1/undo").status_code == 200
    assert client.post("/api/v1/votes", json={"token": "wrong", "outcome": COMMENT}).status_code == 422
    assert client.get(f"/join/{quote(PERSON)}").status_code == 404


def occurrences(content):
    """The secrets in some bytes, as they are, in JSON, or in a URL."""
    forms = {one: {one.encode(), json.dumps(one)[1:-1].encode(), quote(one).encode()} for one in SECRETS}
    return [one for one, written in forms.items() if any(form in content for form in written)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [sqlite_files, postgresql_files])
def test_a_person_is_in_no_file_export_or_log_afterwards(kind, tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    items = "item\na\nb\nc\nd\n"
    with kind(folder) as (options, location, files):
        options = [*options, "--trusted-proxies", "1", "--log-level", "debug"]
        with ExitStack() as stack, serving(folder, items, SETTINGS, options) as served:
            visitors = [
                stack.enter_context(closing(arrive(served.base, data, f"/join?{urlencode(data)}")))
                for data in ({"name": PERSON}, {"PROLIFIC_PID": PANEL}, {"name": "someone else"})
            ]
            for client in visitors[:2]:
                leave_traces(served, client)
            for n in range(3):
                question = visitors[2].get("/api/v1/question").json()
                answer = {"token": question["assignment"]["token"], "outcome": ("left", "tie", "right")[n]}
                assert visitors[2].post("/api/v1/votes", json=answer).status_code == 200
            people = served.ask("GET", "/annotators")["annotators"]
            for one in people[:2]:
                for excluded in (True, False):
                    path = f"/annotators/{one['id']}"
                    served.ask("PATCH", path, json={"excluded": excluded, "reason": WRITTEN})
            if location is not None:
                with psycopg.connect(location, autocommit=True) as connection:
                    connection.execute("ANALYZE")  # as the database does by itself once in a while
            before = {one for path in files() if path.is_file() for one in occurrences(path.read_bytes())}
            assert before >= {PERSON, PANEL, COMMENT, REASON, WRITTEN}, "there is something to erase"
            for one in people[:2]:
                served.ask("POST", f"/annotators/{one['id']}/erase", json={})
            exports = [served.client.get(f"/api/v1/{path}", headers=bearer(served.secret)).content for path in EXPORTS]
            shown = served.settled_board()
            where = location or str(served.database)
            if location is None:
                crowdrank("backup", served.database, "--out", folder / "later.db", folder=folder)
            for name in ("all.csv", "all.jsonl", "all.parquet"):
                crowdrank("export", where, "--out", folder / name, "--all", folder=folder)
        logged = "".join(served.said)
        assert '"route"' in logged
        for content in [*exports, logged.encode()]:
            assert occurrences(content) == []
        for path in files():
            if path.is_file():
                assert occurrences(path.read_bytes()) == [], path
        with Collection.open(where) as collection:
            projection = Projection(collection).catch_up()
            replayed = build_board(collection, projection, projection.board_seq).as_dict()
            assert shown["votes"] == 3
            assert json.loads(json.dumps(replayed)) == shown
