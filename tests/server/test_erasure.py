"""Erasing a person on the server: nothing of them is left in any file or export, and the board is the replayed one."""

from __future__ import annotations

import pytest

from crowdrank.server.boards import build_board
from crowdrank.server.projection import Projection
from crowdrank.storage import Collection
from tests.server.conftest import bearer

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
