"""Rules that exclude, set aside or pause annotators, each with a reason."""

from __future__ import annotations

import pytest

from crowdrank.errors import SettingError
from crowdrank.server.settings import Settings


def person(played, name="ann"):
    found = played.client.get("/api/v1/annotators", headers=played.admin).json()["annotators"]
    return next(one for one in found if one["name"] == name)


def numbered(n):
    return [f"item {k:02}" for k in range(n)]


def study(start, quality, **more):
    played = start(items=numbered(12), settings={"quality": {"min_answers": 6, **quality}, **more})
    return played, played.join("ann")[0]


def alternate(n):
    return ["left", "right"] * n


def test_who_is_too_fast_is_excluded_with_the_reason(start):
    played, ann = study(start, {"min_median_seconds": 2.0})
    asked = played.play(ann, alternate(2))  # the answers take 1.2 s each
    assert "assignment" in asked
    assert played.play(ann, alternate(3))["finished"]
    row = person(played)
    assert (row["excluded"], row["excluded_because"]) == (True, "median response time of 1.2 s, below 2 s")
    page = played.enter(played.secret, "admin").get("/admin/annotators", headers={"Accept": "text/html"}).text
    assert "median response time of 1.2 s, below 2 s" in page


@pytest.mark.parametrize(
    ("quality", "outcomes", "reason"),
    [
        ({"max_side_share": 0.9}, ["left"] * 8, "100% of answers on the left, above 90%"),
        (
            {"max_skip_share": 0.5},
            ["skip", "left", "skip", "right", "skip", "skip"],
            "67% of questions skipped, above 50%",
        ),
    ],
)
def test_other_rules(start, quality, outcomes, reason):
    played, ann = study(start, quality)
    played.play(ann, outcomes)
    assert person(played)["excluded_because"] == reason


def test_who_contradicts_themselves_is_noticed(start):
    played, ann = study(start, {"min_repeat_agreement": 0.8}, questions={"repeat_share": 0.5, "gold_share": 0.0})
    said = {}

    def contrary(asked):
        pair = frozenset(asked[side]["id"] for side in ("left", "right"))
        smaller = min(pair) == asked["left"]["id"]
        first = pair not in said
        said[pair] = True
        return ("left" if smaller else "right") if first else ("right" if smaller else "left")

    played.play_directly(ann, [contrary] * 40)
    assert "repeated questions answered as before, below 80%" in person(played)["excluded_because"]


def test_honest_people_break_no_rule(start):
    rules = {"min_median_seconds": 0.5, "max_side_share": 0.9, "max_skip_share": 0.5, "min_repeat_agreement": 0.6}
    played, ann = study(start, rules, questions={"repeat_share": 0.3})
    played.play_directly(ann, [lambda asked: "left" if asked["left"]["id"] < asked["right"]["id"] else "right"] * 40)
    assert not person(played)["excluded"]


def test_a_pause_keeps_the_votes_and_ends_with_a_click(start):
    gold = [[f"item {k:02}", f"item {k + 6:02}"] for k in range(6)]
    questions = {"gold_share": 0.5, "max_gold_failures": 2}
    played, ann = study(start, {"action": "pause"}, gold=gold, questions=questions)

    def wrong(asked):
        return "left" if asked["left"]["label"] > asked["right"]["label"] else "right"

    assert played.play(ann, [wrong] * 30).get("paused")
    row = person(played)
    assert (row["excluded"], row["paused_because"]) == (False, "2 gold questions wrong")
    assert played.service.projection.n_counted == row["votes"]
    assert played.question(ann)["paused"]
    admin = {"json": {"paused": False}, "headers": played.admin}
    assert played.client.patch(f"/api/v1/annotators/{row['id']}", **admin).status_code == 200
    again = played.play(ann, [wrong] * 30)  # two more wrong answers, not one
    assert again.get("paused")
    assert person(played)["paused_because"] == "4 gold questions wrong"
    reasons = [event["detail"]["metadata"].get("paused") for event in _edits(played)]
    assert [one for one in reasons if one] == ["4 gold questions wrong", "2 gold questions wrong"]


def _edits(played):
    events = played.client.get("/api/v1/audit", headers=played.admin).json()["events"]
    return [event for event in events if event["kind"] == "annotator_edited" and event["actor"] == "quality rule"]


def test_an_answer_of_someone_paused_waits(played, two):
    question = played.question(two.ann)
    id_ = person(played)["id"]
    played.client.patch(f"/api/v1/annotators/{id_}", json={"paused": True, "reason": "odd"}, headers=played.admin)
    assert played.vote(two.ann, question, status=409)["error"]["code"] == "paused"
    played.client.patch(f"/api/v1/annotators/{id_}", json={"paused": False}, headers=played.admin)
    assert played.vote(two.ann, question)["recorded"]


def test_votes_may_be_set_aside_instead(start):
    played, ann = study(start, {"action": "set-aside", "max_side_share": 0.9})
    assert "assignment" in played.play(ann, ["left"] * 8)
    row = person(played)
    assert (row["quarantined"], played.service.projection.n_counted) == (True, 0)


def test_rules_are_checked():
    for wrong in ({"action": "fine"}, {"max_side_share": 1.5}, {"min_answers": 0}):
        with pytest.raises(SettingError, match=r"quality\."):
            Settings.from_dict({"quality": wrong})
