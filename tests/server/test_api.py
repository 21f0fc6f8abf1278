"""The API for annotators and admins."""

from __future__ import annotations

import json
import threading

import pytest

from crowdrank.server.admin_actions import change_settings
from crowdrank.storage import NewItem
from tests.server.conftest import bearer


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_vote_returns_the_next_question(start, kind):
    played = start(kind)
    (ann,) = played.join("ann")
    question = played.question(ann)
    asked = question["assignment"]
    assert set(asked) == {"token", "task", "left", "right", "query", "context", "expires_at"}
    assert set(asked["left"]) == {"id", "label", "kind", "html"}
    assert question["progress"] == {"done": 0, "decided": 0, "skipped": 0, "quota": None, "remaining": None}
    said = played.vote(ann, question, "right")
    assert said["recorded"]["winner"] == asked["right"]["id"]
    assert said["replayed"] is False
    assert said["next"]["progress"]["done"] == 1
    assert said["next"]["assignment"]["token"] != asked["token"]


def test_a_reload_gives_the_same_question(played, two):
    assert played.question(two.ann)["assignment"] == played.question(two.ann)["assignment"]


def test_repeating_a_vote_changes_nothing(played, two):
    question = played.question(two.ann)
    first, again = (played.vote(two.ann, question, "left") for _ in range(2))
    assert again["replayed"] is True
    assert again["recorded"] == first["recorded"]
    assert again["next"]["assignment"] == first["next"]["assignment"]
    assert played.service.projection.n_counted == 1


def test_a_different_answer_to_the_same_question_is_refused(played, two):
    question = played.question(two.ann)
    played.vote(two.ann, question, "left")
    assert played.vote(two.ann, question, "right", status=409)["error"]["code"] == "conflict"


def test_two_tabs_show_one_question_and_its_answer_counts_once(played, two):
    tabs = [played.question(two.ann), played.question(two.ann)]
    said = []
    threads = [threading.Thread(target=lambda tab=tab: said.append(played.vote(two.ann, tab, "left"))) for tab in tabs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one["replayed"] for one in said) == [False, True]
    assert played.service.projection.catch_up().n_counted == 1


def test_an_invalid_assignment_token_is_refused(played, two):
    body = {"token": "x" * 22, "outcome": "left"}
    answer = played.client.post("/api/v1/votes", json=body, headers=bearer(two.ann))
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_token"


def test_annotators_cannot_vote_for_each_other(played, two):
    question = played.question(two.ann)
    assert played.vote(two.bob, question, "left", status=404)["error"]["code"] == "unknown_token"


def test_a_late_vote_counts_until_the_question_is_replaced(start, clock):
    played = start(clock=clock, settings={"questions": {"lease_seconds": 60}})
    (ann,) = played.join("ann")
    late = played.question(ann)
    clock.pass_seconds(61)
    assert played.vote(ann, late)["replayed"] is False
    lost = played.question(ann)
    clock.pass_seconds(61)
    taken = played.question(ann)
    assert taken["assignment"]["token"] != lost["assignment"]["token"]
    assert played.vote(ann, lost, status=410)["error"]["code"] == "expired"
    played.vote(ann, taken)


def test_every_pair_is_asked_once_and_then_the_annotator_is_finished(played, two):
    pairs = []

    def note(asked):
        pairs.append(frozenset((asked["left"]["label"], asked["right"]["label"])))
        return "left"

    end = played.play(two.ann, [note] * 20)
    assert len(pairs) == len(set(pairs)) == 6
    assert end["finished"] is True
    assert end["reason"] == "no_pairs_left"


def test_annotators_at_the_same_time_get_different_pairs(played):
    tokens = played.join(*(f"p{n}" for n in range(6)))
    pairs = [played.question(token)["assignment"] for token in tokens]
    assert len({frozenset((p["left"]["id"], p["right"]["id"])) for p in pairs}) == 6


def test_undo_returns_the_same_question(played, two):
    question = played.question(two.ann)
    said = played.vote(two.ann, question, "left")
    answer = played.client.post("/api/v1/undo", headers=bearer(two.ann)).json()
    assert answer["undone"] == said["recorded"]["seq"]
    again = answer["next"]["assignment"]
    assert [again[side]["id"] for side in ("left", "right")] == [
        question["assignment"][side]["id"] for side in ("left", "right")
    ]
    assert answer["next"]["progress"]["done"] == 0
    played.vote(two.ann, answer["next"], "right")
    assert played.service.projection.n_counted == 1


def test_undo_needs_a_vote_and_permission(start):
    played = start(settings={"undo": False})
    (ann,) = played.join("ann")
    assert played.client.post("/api/v1/undo", headers=bearer(ann)).status_code == 403
    change_settings(played.service, {"undo": True}, "test")
    assert played.client.post("/api/v1/undo", headers=bearer(ann)).json()["error"]["code"] == "nothing_to_undo"


@pytest.mark.parametrize(("setting", "outcome"), [("ties", "tie"), ("skips", "skip")])
def test_disabled_answers_are_refused(start, setting, outcome):
    played = start(settings={setting: False})
    (ann,) = played.join("ann")
    question = played.question(ann)
    assert played.vote(ann, question, outcome, status=422)["error"]["code"] == "not_allowed"
    played.vote(ann, question, "left")


@pytest.mark.parametrize("body", [{}, {"outcome": "left"}, {"token": "x"}, {"token": "x", "outcome": None}])
def test_incomplete_votes_are_refused(played, two, body):
    played.question(two.ann)
    assert played.client.post("/api/v1/votes", json=body, headers=bearer(two.ann)).status_code == 422
    assert len(played.service.projection.catch_up().votes) == 0


def test_decided_skipped_and_remaining_add_up_to_the_quota(start):
    played = start(items=[f"i{n}" for n in range(8)])
    (ann,) = played.join("ann", quota=7)
    question = played.question(ann)
    for outcome in ("left", "skip", "tie", "skip", "right", "skip", "left"):
        progress = question["progress"]
        assert progress["decided"] + progress["skipped"] + progress["remaining"] == 7
        question = played.vote(ann, question, outcome, reason="I cannot decide" if outcome == "skip" else "")["next"]
        if outcome == "tie":
            question = played.client.post("/api/v1/undo", headers=bearer(ann)).json()["next"]
            question = played.vote(ann, question, "tie")["next"]
    assert question["finished"] is True
    assert question["progress"] == {"done": 7, "decided": 4, "skipped": 3, "quota": 7, "remaining": 0}


def test_the_completion_code_requires_an_answer(start):
    joining = {"completion_code": "C0DE", "completion_url": "https://panel.example/?cc={code}"}
    played = start(settings={"joining": joining, "budget": {"per_annotator": 2}})
    ann, bob = played.join("ann", "bob")
    end = played.play(ann, ["left", "right"])
    assert (end["completion_code"], end["completion_url"]) == ("C0DE", "https://panel.example/?cc=C0DE")
    played.client.post("/api/v1/state", json={"state": "closed"}, headers=played.admin)
    assert played.question(bob)["completion_code"] is None


def test_the_vote_budget_is_never_exceeded(start):
    played = start(settings={"budget": {"votes": 5}})
    tokens = played.join("a1", "a2", "a3")
    asked = [played.question(token) for token in tokens]
    while any("assignment" in one for one in asked):
        asked = [
            played.vote(token, one)["next"] if "assignment" in one else one
            for token, one in zip(tokens, asked, strict=True)
        ]
    assert {one["reason"] for one in asked} == {"budget"}
    assert played.service.projection.n_counted == 5


def test_the_money_budget_is_never_exceeded(start):
    played = start(settings={"budget": {"money": 1.0, "price_per_vote": 0.3}})
    (ann,) = played.join("ann")
    assert played.play(ann, ["left"] * 9)["reason"] == "budget"
    assert played.service.projection.n_counted == 3


def test_a_paused_study_asks_nothing_and_keeps_the_open_question(played, two):
    question = played.question(two.ann)
    played.client.post("/api/v1/state", json={"state": "paused"}, headers=played.admin)
    assert played.question(two.ann)["paused"] is True
    played.client.post("/api/v1/state", json={"state": "open"}, headers=played.admin)
    assert played.question(two.ann) == question


def test_questions_about_hidden_items_are_replaced_and_new_items_are_asked(played, two):
    question = played.question(two.ann)
    gone = question["assignment"]["left"]["id"]
    played.client.patch(f"/api/v1/items/{gone}", json={"hidden": True}, headers=played.admin)
    again = played.question(two.ann)["assignment"]
    assert gone not in (again["left"]["id"], again["right"]["id"])
    played.play(two.ann, ["left"] * 9)
    played.client.post("/api/v1/items", json={"items": [{"label": "new"}]}, headers=played.admin)
    asked = played.question(two.ann)["assignment"]
    assert "new" in (asked["left"]["label"], asked["right"]["label"])


def test_owners_do_not_judge_their_own_items(start):
    own = NewItem(label="mine", content={"owner": "ann"})
    played = start(items=["a", "b", "c", own])
    ann, bob = played.join("ann", "bob")
    seen = {"ann": set(), "bob": set()}

    def note(name):
        return lambda asked: seen[name].update((asked["left"]["label"], asked["right"]["label"])) or "tie"

    played.play(ann, [note("ann")] * 9)
    played.play(bob, [note("bob")] * 9)
    assert seen == {"ann": {"a", "b", "c"}, "bob": {"a", "b", "c", "mine"}}


def test_gold_pairs_are_asked_and_counted(start):
    played = start(settings={"gold": [["a", "b"]], "questions": {"gold_share": 0.5}})
    names = [f"p{n}" for n in range(8)]
    for token in played.join(*names):
        played.play(token, [lambda asked: "left" if asked["left"]["label"] < asked["right"]["label"] else "right"] * 6)
    told = played.client.get("/api/v1/annotators", headers=played.admin).json()["annotators"]
    assert sum(one["gold_total"] for one in told) > 0
    assert all(one["gold_correct"] == one["gold_total"] for one in told)


def test_sides_are_balanced_for_each_annotator(start):
    played = start(items=[f"i{n}" for n in range(9)])
    (ann,) = played.join("ann")
    left, right = {}, {}

    def note(asked):
        left[asked["left"]["label"]] = left.get(asked["left"]["label"], 0) + 1
        right[asked["right"]["label"]] = right.get(asked["right"]["label"], 0) + 1
        return "left"

    played.play(ann, [note] * 36)
    assert all(abs(left.get(f"i{n}", 0) - right.get(f"i{n}", 0)) <= 3 for n in range(9))


def test_excluded_annotators_are_not_asked_and_do_not_count(played, two):
    question = played.play(two.ann, ["left", "left"])
    (number,) = [p.id for p in played.service.projection.annotators.values() if p.name == "ann"]
    answer = played.client.patch(f"/api/v1/annotators/{number}", json={"excluded": True}, headers=played.admin)
    assert answer.json()["excluded"] is True
    played.vote(two.ann, question, status=409)
    assert played.service.projection.n_counted == 0
    assert played.question(two.ann)["finished"] is True
    played.client.patch(f"/api/v1/annotators/{number}", json={"excluded": False}, headers=played.admin)
    assert played.service.projection.n_counted == 2


def test_votes_are_paged_streamed_and_exported(played, two):
    played.play(two.ann, ["left", "tie", "skip", "right"])
    pages, after = [], 0
    while after is not None:
        page = played.client.get(f"/api/v1/votes?after={after}&limit=3", headers=played.admin).json()
        pages.append(page["votes"])
        after = page["next"]
    assert [len(page) for page in pages] == [3, 1]
    lines = played.client.get("/api/v1/votes.jsonl", headers=played.admin).text.splitlines()
    assert [json.loads(line) for line in lines] == [row for page in pages for row in page]
    assert len(played.client.get("/api/v1/votes.csv?counting=true", headers=played.admin).text.splitlines()) == 1 + 3
    assert played.client.get("/api/v1/export.parquet", headers=played.admin).content[:4] == b"PAR1"


def test_votes_can_be_voided_one_by_one_or_by_annotator(played, two):
    played.play(two.ann, ["left"] * 4)
    first = played.client.get("/api/v1/votes?limit=1", headers=played.admin).json()["votes"][0]["seq"]
    void = played.client.post("/api/v1/void", json={"votes": [first], "reason": "test"}, headers=played.admin)
    assert void.json() == {"void": [first]}
    assert played.service.projection.n_counted == 3
    (number,) = [p.id for p in played.service.projection.annotators.values() if p.name == "ann"]
    assert len(played.client.post("/api/v1/void", json={"annotator": number}, headers=played.admin).json()["void"]) == 3
    assert played.service.projection.n_counted == 0
    assert played.client.post("/api/v1/void", json={}, headers=played.admin).status_code == 422


def test_settings_are_changed_key_by_key_and_typos_are_named(played):
    answer = played.client.patch("/api/v1/settings", json={"questions": {"min_appearances": 5}}, headers=played.admin)
    assert answer.json()["questions"] == {
        **played.service.projection.settings.as_dict()["questions"],
        "min_appearances": 5,
    }
    wrong = played.client.patch("/api/v1/settings", json={"questions": {"flor": 5}}, headers=played.admin)
    assert wrong.status_code == 422
    assert "questions.flor" in wrong.json()["error"]["message"]
    assert played.service.projection.settings.questions.min_appearances == 5


def test_every_action_is_in_the_audit_log(played, two):
    played.client.post("/api/v1/state", json={"state": "paused"}, headers=played.admin)
    events = played.client.get("/api/v1/audit", headers=played.admin).json()["events"]
    assert events[0]["kind"] == "paused"
    assert events[0]["actor"].startswith("admin ")
    kinds = [event["kind"] for event in events]
    assert kinds.count("item_added") == 4
    page = played.client.get("/api/v1/audit?limit=2", headers=played.admin).json()
    following = played.client.get(f"/api/v1/audit?limit=2&before={page['next']}", headers=played.admin).json()
    assert [event["seq"] for event in page["events"] + following["events"]] == [e["seq"] for e in events[:4]]


def test_every_error_has_the_same_form(played, two):
    get, post = played.client.get, played.client.post
    answers = [
        get("/api/v1/nothing"),
        get("/api/v1/question"),
        get("/api/v1/items"),
        post("/api/v1/question"),
        post("/api/v1/votes", content=b"{", headers=bearer(two.ann)),
        get("/api/v1/board"),
        played.client.patch("/api/v1/items/999999", json={}, headers=played.admin),
        get("/api/v1/items", headers=bearer(two.ann)),
        get("/api/v1/question", headers=played.admin),
    ]
    assert [answer.status_code for answer in answers] == [404, 401, 401, 405, 422, 403, 404, 401, 401]
    for answer in answers:
        assert set(answer.json()) == {"error"}
        assert set(answer.json()["error"]) == {"code", "message", "detail"}
