"""Consent before the first question, and the rule that excludes annotators who fail gold questions."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from crowdrank.server.app import create_app
from crowdrank.server.assignments import AssignmentService
from crowdrank.server.service import Options
from crowdrank.storage import Collection

HTML = {"Accept": "text/html"}


@pytest.fixture
def served(tmp_path):
    with Collection.open(tmp_path / "c.db") as collection:
        collection.items.add([f"i{n}" for n in range(6)], actor="test")
        people = collection.annotators.add(["ann", "bob"], actor="test")
        tokens = collection.access.issue(people, actor="test")
        admin = collection.access.issue_role("admin", actor="test")
    app = create_app(tmp_path / "c.db", Options(background=False))
    with TestClient(app) as client:
        service = app.state.service
        # A fixed seed: with some others, gold pairs happen to be asked as ordinary questions.
        service.assignments = AssignmentService(
            service.collection, service.projection, service.boards.is_decided, seed=1
        )
        client.tokens, client.admin = tokens, {"Authorization": f"Bearer {admin}"}
        yield client


def change(client, **values):
    assert client.patch("/api/v1/settings", json=values, headers=client.admin).status_code == 200


def hidden(page, name):
    return re.search(rf'name="{name}" value="([0-9a-f]+)"', page.text)[1]


def agree(client, page, **more):
    data = {"csrf": hidden(page, "csrf"), "version": hidden(page, "version"), **more}
    return client.post("/consent", data=data, headers=HTML)


def test_the_first_question_waits_for_consent_to_the_present_text(served):
    change(served, consent="Your answers are **stored**.", language="de")
    page = served.get(f"/join/{served.tokens[0]}", headers=HTML)
    assert page.url.path == "/consent"
    assert "<strong>stored</strong>" in page.text
    assert agree(served, page).status_code == 422
    assert served.get("/judge", headers=HTML).url.path == "/consent"
    assert agree(served, page, agree="yes").url.path == "/judge"
    assert served.get("/consent", headers=HTML).url.path == "/judge"

    change(served, consent="Your answers are published.")
    page_again = served.get("/judge", headers=HTML)
    assert page_again.url.path == "/consent"
    assert agree(served, page, agree="yes").url.path == "/consent"  # of the old text
    assert agree(served, page_again, agree="yes").url.path == "/judge"
    events = served.get("/api/v1/audit", headers=served.admin).json()["events"]
    assert [event["actor"] for event in events].count("annotator") == 2


def ask(client, token):
    return client.get("/api/v1/question", headers={"Authorization": f"Bearer {token}"}).json()


def answer_gold(client, token, *, right):
    """Answer until a gold question came, correctly or not; return the response to it. The smaller number is better."""
    for _ in range(200):
        asked = ask(client, token)
        if "assignment" not in asked:
            return asked
        asked = asked["assignment"]
        smaller = "left" if asked["left"]["label"] < asked["right"]["label"] else "right"
        outcome = smaller if right else {"left": "right", "right": "left"}[smaller]
        body = {"token": asked["token"], "outcome": outcome}
        said = client.post("/api/v1/votes", json=body, headers={"Authorization": f"Bearer {token}"}).json()
        if "finished" in said["next"]:
            return said["next"]
    return None


def test_who_fails_gold_questions_is_excluded_with_a_reason(served):
    gold = [[f"i{n}", f"i{n + 3}"] for n in range(3)]
    joining = {"screen_out_code": "OUT", "completion_code": "DONE"}
    change(served, gold=gold, questions={"gold_share": 0.5, "max_gold_failures": 2}, joining=joining)
    ended = answer_gold(served, served.tokens[0], right=False)
    assert (ended["reason"], ended["completion_code"]) == ("closed", "OUT")
    honest = answer_gold(served, served.tokens[1], right=True)
    assert (honest["reason"], honest["completion_code"]) == ("no_pairs_left", "DONE")
    people = {one["name"]: one for one in served.get("/api/v1/annotators", headers=served.admin).json()["annotators"]}
    assert (people["ann"]["excluded"], people["bob"]["excluded"]) == (True, False)
    events = served.get("/api/v1/audit", headers=served.admin).json()["events"]
    (rule,) = [event for event in events if event["actor"] == "quality rule"]
    assert rule["detail"]["reason"] == "2 gold questions wrong"
