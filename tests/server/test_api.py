"""What the API promises to those who judge."""

from __future__ import annotations

import json
import threading

import pytest

from crowdrank.storage import NewItem
from tests.server.conftest import bearer


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_question_is_answered_and_the_next_one_comes_with_it(start, kind):
    played = start(kind)
    (ann,) = played.join("ann")
    question = played.question(ann)
    asked = question["assignment"]
    assert set(asked) == {"token", "left", "right", "query", "context", "expires_at"}
    assert set(asked["left"]) == {"id", "label", "kind", "html"}
    assert question["progress"] == {"done": 0, "decided": 0, "skipped": 0, "quota": None, "remaining": None}
    said = played.vote(ann, question, "right")
    assert said["recorded"]["winner"] == asked["right"]["id"]
    assert said["replayed"] is False
    assert said["next"]["progress"]["done"] == 1
    assert said["next"]["assignment"]["token"] != asked["token"]


def test_a_reload_gives_the_same_question(played, two):
    assert played.question(two.ann)["assignment"] == played.question(two.ann)["assignment"]


def test_the_same_answer_again_changes_nothing(played, two):
    question = played.question(two.ann)
    first, again = (played.vote(two.ann, question, "left") for _ in range(2))
    assert again["replayed"] is True
    assert again["recorded"] == first["recorded"]
    assert again["next"]["assignment"] == first["next"]["assignment"]
    assert played.service.live.decided == 1


def test_another_answer_to_the_same_question_is_refused(played, two):
    question = played.question(two.ann)
    played.vote(two.ann, question, "left")
    assert played.vote(two.ann, question, "right", status=409)["error"]["code"] == "contradiction"


def test_two_tabs_see_one_question_and_its_answer_counts_once(played, two):
    tabs = [played.question(two.ann), played.question(two.ann)]
    said = []
    threads = [threading.Thread(target=lambda tab=tab: said.append(played.vote(two.ann, tab, "left"))) for tab in tabs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one["replayed"] for one in said) == [False, True]
    assert played.service.live.catch_up().decided == 1


def test_a_token_that_nobody_was_given_is_unknown(played, two):
    body = {"token": "x" * 22, "outcome": "left"}
    answer = played.client.post("/api/v1/votes", json=body, headers=bearer(two.ann))
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_token"


def test_nobody_can_answer_for_another(played, two):
    question = played.question(two.ann)
    assert played.vote(two.bob, question, "left", status=404)["error"]["code"] == "unknown_token"


def test_a_late_answer_counts_until_another_question_took_its_place(start, clock):
    played = start(clock=clock, settings={"asking": {"lease_seconds": 60}})
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


def test_nobody_is_asked_the_same_pair_twice_and_it_ends(played, two):
    pairs = []

    def note(asked):
        pairs.append(frozenset((asked["left"]["label"], asked["right"]["label"])))
        return "left"

    end = played.play(two.ann, [note] * 20)
    assert len(pairs) == len(set(pairs)) == 6
    assert end["finished"] is True
    assert end["reason"] == "nothing_left"


def test_people_at_the_same_time_get_different_pairs(played):
    tokens = played.join(*(f"p{n}" for n in range(6)))
    pairs = [played.question(token)["assignment"] for token in tokens]
    assert len({frozenset((p["left"]["id"], p["right"]["id"])) for p in pairs}) == 6


def test_undo_puts_the_same_question_again(played, two):
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
    assert played.service.live.decided == 1


def test_there_is_nothing_to_undo_at_first_nor_where_it_is_not_allowed(start):
    played = start(settings={"undo": False})
    (ann,) = played.join("ann")
    assert played.client.post("/api/v1/undo", headers=bearer(ann)).status_code == 403
    played.service.change_settings({"undo": True}, "test")
    assert played.client.post("/api/v1/undo", headers=bearer(ann)).json()["error"]["code"] == "nothing_to_undo"


@pytest.mark.parametrize(("setting", "outcome"), [("ties", "tie"), ("skips", "skip")])
def test_answers_that_are_not_offered_are_refused(start, setting, outcome):
    played = start(settings={setting: False})
    (ann,) = played.join("ann")
    question = played.question(ann)
    assert played.vote(ann, question, outcome, status=422)["error"]["code"] == "not_allowed"
    played.vote(ann, question, "left")


@pytest.mark.parametrize("body", [{}, {"outcome": "left"}, {"token": "x"}, {"token": "x", "outcome": None}])
def test_no_answer_is_taken_for_granted(played, two, body):
    played.question(two.ann)
    assert played.client.post("/api/v1/votes", json=body, headers=bearer(two.ann)).status_code == 422
    assert len(played.service.live.catch_up().folding) == 0


def test_decided_skipped_and_remaining_add_up_to_the_quota(start):
    played = start(items=[f"i{n}" for n in range(8)])
    (ann,) = played.join("ann", quota=7)
    question = played.question(ann)
    for outcome in ("left", "skip", "tie", "skip", "right", "skip", "left"):
        progress = question["progress"]
        assert progress["decided"] + progress["skipped"] + progress["remaining"] == 7
        question = played.vote(ann, question, outcome, reason="I cannot tell" if outcome == "skip" else "")["next"]
        if outcome == "tie":
            question = played.client.post("/api/v1/undo", headers=bearer(ann)).json()["next"]
            question = played.vote(ann, question, "tie")["next"]
    assert question["finished"] is True
    assert question["progress"] == {"done": 7, "decided": 4, "skipped": 3, "quota": 7, "remaining": 0}


def test_the_completion_code_is_for_those_who_did_something(start):
    joining = {"completion_code": "C0DE", "completion_url": "https://panel.example/?cc={code}"}
    played = start(settings={"joining": joining, "budget": {"per_annotator": 2}})
    ann, bob = played.join("ann", "bob")
    end = played.play(ann, ["left", "right"])
    assert (end["completion_code"], end["completion_url"]) == ("C0DE", "https://panel.example/?cc=C0DE")
    played.client.post("/api/v1/state", json={"state": "closed"}, headers=played.admin)
    assert played.question(bob)["completion_code"] is None


def test_a_budget_of_votes_is_never_overspent(start):
    played = start(settings={"budget": {"votes": 5}})
    tokens = played.join("a1", "a2", "a3")
    asked = [played.question(token) for token in tokens]
    while any("assignment" in one for one in asked):
        asked = [
            played.vote(token, one)["next"] if "assignment" in one else one
            for token, one in zip(tokens, asked, strict=True)
        ]
    assert {one["reason"] for one in asked} == {"budget"}
    assert played.service.live.decided == 5


def test_money_ends_too(start):
    played = start(settings={"budget": {"money": 1.0, "price": 0.3}})
    (ann,) = played.join("ann")
    assert played.play(ann, ["left"] * 9)["reason"] == "budget"
    assert played.service.live.decided == 3


def test_a_pause_holds_questions_back_but_takes_answers(played, two):
    question = played.question(two.ann)
    played.client.post("/api/v1/state", json={"state": "paused"}, headers=played.admin)
    assert played.question(two.ann)["paused"] is True
    assert played.vote(two.ann, question)["next"]["paused"] is True
    played.client.post("/api/v1/state", json={"state": "open"}, headers=played.admin)
    assert "assignment" in played.question(two.ann)


def test_hidden_items_are_taken_back_and_newcomers_get_work(played, two):
    question = played.question(two.ann)
    gone = question["assignment"]["left"]["id"]
    played.client.patch(f"/api/v1/items/{gone}", json={"hidden": True}, headers=played.admin)
    again = played.question(two.ann)["assignment"]
    assert gone not in (again["left"]["id"], again["right"]["id"])
    played.play(two.ann, ["left"] * 9)
    played.client.post("/api/v1/items", json={"items": [{"label": "new"}]}, headers=played.admin)
    asked = played.question(two.ann)["assignment"]
    assert "new" in (asked["left"]["label"], asked["right"]["label"])


def test_nobody_judges_their_own(start):
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
    played = start(settings={"gold": [["a", "b"]], "asking": {"gold_share": 0.5}})
    names = [f"p{n}" for n in range(8)]
    for token in played.join(*names):
        played.play(token, [lambda asked: "left" if asked["left"]["label"] < asked["right"]["label"] else "right"] * 6)
    told = played.client.get("/api/v1/annotators", headers=played.admin).json()["annotators"]
    assert sum(one["gold_of"] for one in told) > 0
    assert all(one["gold"] == one["gold_of"] for one in told)


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


def test_excluded_people_are_asked_no_more_and_count_no_more(played, two):
    question = played.play(two.ann, ["left", "left"])
    (number,) = [p.id for p in played.service.live.people.values() if p.name == "ann"]
    answer = played.client.patch(f"/api/v1/annotators/{number}", json={"excluded": True}, headers=played.admin)
    assert answer.json()["excluded"] is True
    played.vote(two.ann, question)
    assert played.service.live.decided == 0
    assert played.question(two.ann)["finished"] is True
    played.client.patch(f"/api/v1/annotators/{number}", json={"excluded": False}, headers=played.admin)
    assert played.service.live.decided == 3


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


def test_votes_can_be_voided_one_by_one_or_all_of_someone(played, two):
    played.play(two.ann, ["left"] * 4)
    first = played.client.get("/api/v1/votes?limit=1", headers=played.admin).json()["votes"][0]["seq"]
    void = played.client.post("/api/v1/void", json={"votes": [first], "reason": "test"}, headers=played.admin)
    assert void.json() == {"void": [first]}
    assert played.service.live.decided == 3
    (number,) = [p.id for p in played.service.live.people.values() if p.name == "ann"]
    assert len(played.client.post("/api/v1/void", json={"annotator": number}, headers=played.admin).json()["void"]) == 3
    assert played.service.live.decided == 0
    assert played.client.post("/api/v1/void", json={}, headers=played.admin).status_code == 422


def test_settings_are_changed_one_by_one_and_mistakes_named(played):
    answer = played.client.patch("/api/v1/settings", json={"asking": {"floor": 5}}, headers=played.admin)
    assert answer.json()["asking"] == {**played.service.live.settings.as_dict()["asking"], "floor": 5}
    wrong = played.client.patch("/api/v1/settings", json={"asking": {"flor": 5}}, headers=played.admin)
    assert wrong.status_code == 422
    assert "asking.flor" in wrong.json()["error"]["message"]
    assert played.service.live.settings.asking.floor == 5


def test_every_act_is_in_the_audit_log(played, two):
    played.client.post("/api/v1/state", json={"state": "paused"}, headers=played.admin)
    events = played.client.get("/api/v1/audit", headers=played.admin).json()["events"]
    assert events[0]["kind"] == "paused"
    assert events[0]["actor"].startswith("admin ")
    kinds = [event["kind"] for event in events]
    assert kinds.count("item_added") == 4
    page = played.client.get("/api/v1/audit?limit=2", headers=played.admin).json()
    following = played.client.get(f"/api/v1/audit?limit=2&before={page['next']}", headers=played.admin).json()
    assert [event["seq"] for event in page["events"] + following["events"]] == [e["seq"] for e in events[:4]]


def test_every_error_has_one_shape(played, two):
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
