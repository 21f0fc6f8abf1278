"""Tasks beyond pairs: what is asked, which answers are accepted, what is exported, and what the board makes of it."""

from __future__ import annotations

import io
from itertools import combinations

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.cli.export import export
from crowdrank.errors import DataError, SettingError
from crowdrank.server.admin_actions import change_settings
from crowdrank.server.settings import Settings
from crowdrank.storage import Collection, Question, task_type
from crowdrank.storage.judgments import implied_pairs
from tests.server.conftest import bearer

LABELS = tuple(f"stone {n}" for n in range(1, 9))
TASKS = ("rating", "ranking", "best-worst", "choice")


def weight(item):
    return int(item["label"].split()[1])


def honest(asked):
    """The answer of someone who knows the weights."""
    items = sorted(asked.get("items", ()), key=weight, reverse=True)
    return {
        "rating": lambda: {"answer": (weight(items[0]) + 1) // 2},
        "ranking": lambda: {"answer": [item["id"] for item in items]},
        "best-worst": lambda: {"answer": {"best": items[0]["id"], "worst": items[-1]["id"]}},
        "choice": lambda: {"answer": items[0]["id"]},
        "pair": lambda: {"outcome": "left" if weight(asked["left"]) > weight(asked["right"]) else "right"},
    }[asked["task"]]()


def play(played, token, most, answer=honest):
    question = played.question(token)
    for _ in range(most):
        if "assignment" not in question:
            break
        asked = question["assignment"]
        body = {"token": asked["token"], "response_ms": 1500, **answer(asked)}
        found = played.client.post("/api/v1/votes", json=body, headers=bearer(token))
        assert found.status_code == 200, found.text
        question = found.json()["next"]
    return question


def study(start, task, kind="sqlite", how=None, **settings):
    return start(kind, items=LABELS, settings={"task": {"type": task, **(how or {})}, **settings})


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("task", TASKS)
def test_a_study_of_each_task(start, task, kind):
    played = study(start, task, kind)
    for token in played.join("ann", "bob", "cleo"):
        play(played, token, 8)
    board = played.service.boards.build()
    assert board.task == task
    assert board.model == {"rating": "graded-response"}.get(task, "crowd-plackett-luce")
    assert board.votes == 24
    scores = [row.score for row in sorted(board.rows, key=lambda row: row.item)]
    assert np.corrcoef(scores, np.arange(8))[0, 1] > 0.8
    assert all(row.explanation for row in board.rows[:-1])
    assert len(board.history) == 8
    # The export is what the board was fitted to.
    answer = played.client.get("/api/v1/export.parquet", params={"counting": True}, headers=played.admin)
    frame = pl.read_parquet(io.BytesIO(answer.content))
    exported = cr.read(frame.drop("query", "criterion", "comment"))
    assert type(exported) is type(board.judgments)
    assert exported.to_polars().equals(board.judgments.to_polars())
    rows = played.client.get("/api/v1/votes", params={"limit": 1}, headers=played.admin).json()
    assert len(rows["votes"]) == {"rating": 1}.get(task, 4)
    played.service.boards.latest(120.0)
    people = played.client.get("/api/v1/annotators", headers=played.admin).json()["annotators"]
    assert [one["votes"] for one in people] == [8, 8, 8]
    assert all(one["verdict"] == "not tested" and one["quality"] is not None for one in people)


@pytest.mark.parametrize("task", TASKS)
def test_a_replay_gives_the_same_state(start, task, tmp_path):
    played = study(start, task)
    for token in played.join("ann", "bob"):
        play(played, token, 5)
    played.client.post("/api/v1/undo", headers=bearer(token))
    projection, board = played.service.projection.catch_up(), played.service.boards.build()
    played.collection.backup(tmp_path / "copy.db")
    with Collection.open(tmp_path / "copy.db") as copy:
        from crowdrank.server.boards import build_board
        from crowdrank.server.projection import Projection

        again = Projection(copy).catch_up()
        assert again.appearances.tolist() == projection.appearances.tolist()
        assert again.beliefs.mean.tolist() == projection.beliefs.mean.tolist()
        assert build_board(copy, again, again.board_seq) == board


@pytest.mark.parametrize("task", TASKS)
def test_invalid_answers_are_refused_and_repeated_ones_count_once(start, task):
    played = study(start, task)
    (ann,) = played.join("ann")
    asked = played.question(ann)["assignment"]
    ids = [item["id"] for item in asked["items"]]
    other = next(id_ for id_ in played.ids if id_ not in ids)
    wrong = {
        "rating": [0, 6, [1], {"best": ids[0], "worst": ids[0]}, None],
        "ranking": [ids[:3], [*ids[:3], ids[0]], [*ids[:3], other], ids[0], None],
        "best-worst": [{"best": ids[0], "worst": ids[0]}, {"best": ids[0], "worst": other}, ids, None],
        "choice": [other, 0, ids, None],
    }[task]
    for value in wrong:
        body = {"token": asked["token"], "answer": value}
        assert played.client.post("/api/v1/votes", json=body, headers=bearer(ann)).status_code == 422, value
    for outcome in ("left", "tie", "both_bad"):
        played.vote(ann, {"assignment": asked}, outcome, status=422)
    body = {"token": asked["token"], **honest(asked)}
    first, second = (played.client.post("/api/v1/votes", json=body, headers=bearer(ann)).json() for _ in range(2))
    assert first["recorded"]["value"] == body["answer"]
    assert second["replayed"]
    assert first["recorded"]["seq"] == second["recorded"]["seq"]
    played.vote(ann, {"assignment": asked}, "skip", status=409)


def test_everyone_rates_every_item_once_and_all_equally_often(start):
    played = study(start, "rating", questions={"random_share": 0.0})
    ann, bob = played.join("ann", "bob")
    play(played, ann, 4)
    play(played, bob, 3)
    # Ann is looking at the last one.
    assert sorted(played.service.projection.appearances.tolist()) == [0] + [1] * 7
    assert play(played, ann, 100)["reason"] == "no_pairs_left"
    rated = [row["item"] for row in played.collection.log.vote_rows() if row["annotator"] == "ann"]
    assert sorted(rated) == sorted(LABELS)


@pytest.mark.parametrize("task", ["ranking", "choice"])
def test_sets_always_contain_a_new_pair_and_end(start, task):
    played = study(start, task, how={"size": 3})
    (ann,) = played.join("ann")
    seen: set[frozenset[int]] = set()

    def answer(asked):
        pairs = {frozenset(pair) for pair in combinations([item["id"] for item in asked["items"]], 2)}
        assert len(pairs) == 3
        assert not pairs <= seen
        seen.update(pairs)
        return honest(asked)

    assert play(played, ann, 100, answer)["reason"] == "no_pairs_left"
    assert len(seen) == 28


def test_criteria_are_ranked_and_exported_one_by_one(start, tmp_path):
    criteria = ["Which is rounder?", "Which is brighter?"]
    played = study(start, "pair", how={"criteria": criteria})

    def answer(asked):
        said = honest(asked)["outcome"]
        return {"outcome": said, "criteria": {criteria[0]: "right" if said == "left" else "left", criteria[1]: "tie"}}

    for token in played.join("ann", "bob"):
        play(played, token, 20, answer)
    board = played.service.boards.build()
    order = [row.rank for row in board.rows]
    assert np.corrcoef(order, [row.criteria[0] for row in board.rows])[0, 1] < -0.8
    rows = list(played.collection.log.vote_rows())
    assert len(rows) == 3 * 40
    assert {row["winner"] for row in rows if row["criterion"] == criteria[1]} == {"tie"}
    out = tmp_path / "rounder.csv"
    database = played.collection._database.url.database
    export(database, out, criterion=criteria[0])
    assert cr.read(out).to_polars()["winner"].to_list() == [
        row["winner"] for row in rows if row["criterion"] == criteria[0]
    ]


def test_all_criteria_must_be_answered(start):
    played = study(start, "rating", how={"criteria": ["Taste"]})
    (ann,) = played.join("ann")
    asked = played.question(ann)["assignment"]
    assert asked["criteria"] == ["Taste"]
    for criteria in ({}, {"Taste": 9}, {"Taste": "left"}, {"Taste": 1, "Smell": 1}):
        body = {"token": asked["token"], "answer": 3, "criteria": criteria}
        assert played.client.post("/api/v1/votes", json=body, headers=bearer(ann)).status_code == 422
    body = {"token": asked["token"], "answer": 3, "criteria": {"Taste": 1}}
    assert played.client.post("/api/v1/votes", json=body, headers=bearer(ann)).status_code == 200


def test_both_bad_counts_as_a_tie_and_is_exported(start):
    played = start(settings={"both_bad": True, "comments": True})
    (ann,) = played.join("ann")
    played.vote(ann, played.question(ann), "both_bad", comment="Neither is legible.")
    judgments = played.collection.log.judgments()
    assert judgments.n_both_bad == 1
    (row,) = played.collection.log.vote_rows()
    assert (row["winner"], row["comment"]) == ("both_bad", "Neither is legible.")
    assert played.service.boards.build().votes == 1
    (shown,) = played.client.get("/api/v1/annotators", headers=played.admin).json()["annotators"]
    assert shown["ties"] == 1


def test_both_bad_and_comments_must_be_allowed(played, two):
    question = played.question(two.ann)
    played.vote(two.ann, question, "both_bad", status=422)
    played.vote(two.ann, question, "left", status=422, comment="hm")
    played.vote(two.ann, question, "left")


def test_the_task_cannot_change_after_the_first_answer(start):
    played = study(start, "rating")
    (ann,) = played.join("ann")
    before = played.question(ann)["assignment"]
    change_settings(played.service, {"task": {"type": "choice"}}, "test")
    body = {"token": before["token"], "answer": 3}
    assert played.client.post("/api/v1/votes", json=body, headers=bearer(ann)).status_code == 410
    play(played, ann, 1)
    with pytest.raises(SettingError, match="after the first answer"):
        change_settings(played.service, {"task": {"size": 3}}, "test")


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"type": "rateing"}, "Did you mean rating"),
        ({"size": 2}, "task.size"),
        ({"scale": ["a"]}, "task.scale"),
        ({"scale": ["a", "a"]}, "task.scale"),
        ({"type": "ranking", "criteria": ["x"]}, "not for ranking"),
        ({"criteria": ["x", "x"]}, "different"),
    ],
)
def test_invalid_tasks_are_refused(values, complaint):
    with pytest.raises(SettingError, match=complaint):
        Settings.from_dict({"task": values})


def test_answers_become_places():
    three = Question(task="choice", items=(7, 8, 9))
    assert task_type("choice").places(8, three) == [(7, 2), (8, 1), (9, 2)]
    assert task_type("best-worst").places({"best": 9, "worst": 7}, three) == [(7, 3), (8, 2), (9, 1)]
    assert task_type("ranking").places([9, 7, 8], three) == [(9, 1), (7, 2), (8, 3)]
    assert implied_pairs([(7, 3), (8, 2), (9, 1)]) == [(9, 8), (8, 7)]
    assert implied_pairs([(7, 2), (8, 1), (9, 2)]) == [(8, 7), (8, 9)]
    with pytest.raises(DataError, match="from 1 to 5"):
        task_type("rating").check(True, Question(task="rating", items=(1,), grades=5))
