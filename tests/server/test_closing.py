"""Open questions and undo while a study is paused or closed, and for excluded annotators."""

from __future__ import annotations

import re

import pytest

from tests.server.conftest import bearer


def set_state(played, state):
    answer = played.client.post("/api/v1/state", json={"state": state}, headers=played.admin)
    assert answer.status_code == 200, answer.text


def exclude(played, excluded=True):
    (id_,) = [one.id for one in played.service.projection.catch_up().annotators.values() if one.name == "ann"]
    played.client.patch(f"/api/v1/annotators/{id_}", json={"excluded": excluded}, headers=played.admin)


STOPS = {
    "paused": lambda played: set_state(played, "paused"),
    "closed": lambda played: set_state(played, "closed"),
    "excluded": exclude,
}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("stop", STOPS)
def test_a_held_question_is_not_answered_after_the_stop(start, kind, stop):
    played = start(kind)
    (ann,) = played.join("ann")
    question = played.question(ann)
    STOPS[stop](played)
    refused = played.vote(ann, question, status=409)
    assert refused["error"]["code"] == ("paused" if stop == "paused" else "closed")
    assert len(played.service.projection.catch_up().votes) == 0
    assert "assignment" not in played.question(ann)


@pytest.mark.parametrize("stop", STOPS)
def test_votes_cannot_be_undone_after_the_stop(played, two, stop):
    played.play(two.ann, ["left", "left"])
    STOPS[stop](played)
    assert played.client.post("/api/v1/undo", headers=bearer(two.ann)).status_code == 409
    browser = played.enter(two.ann)
    page = browser.get("/judge", headers={"Accept": "text/html"})
    assert "Undo my last answer" not in page.text
    assert not any(played.service.projection.catch_up().is_withdrawn(n) for n in range(2))


@pytest.mark.parametrize("stop", STOPS)
def test_a_vote_that_was_stored_before_the_stop_is_confirmed_again(played, two, stop):
    question = played.question(two.ann)
    first = played.vote(two.ann, question)
    STOPS[stop](played)
    again = played.vote(two.ann, question)
    assert again["replayed"]
    assert again["recorded"] == first["recorded"]


def test_a_question_held_during_a_pause_is_answered_when_the_study_resumes(played, two):
    question = played.question(two.ann)
    set_state(played, "paused")
    played.vote(two.ann, question, status=409)
    set_state(played, "open")
    assert played.question(two.ann)["assignment"]["token"] == question["assignment"]["token"]
    assert not played.vote(two.ann, question)["replayed"]


def test_an_included_annotator_may_answer_again(played, two):
    question = played.question(two.ann)
    exclude(played)
    played.vote(two.ann, question, status=409)
    exclude(played, False)
    assert not played.vote(two.ann, question)["replayed"]


def test_the_stop_of_another_process_holds_at_once(start, new_location):
    location = new_location()
    here, elsewhere = start(location=location), start(location=location, items=())
    (ann,) = here.join("ann")
    question = here.question(ann)
    here.service.projection.catch_up()
    elsewhere.collection.settings.close(actor="test")
    annotator = next(iter(here.service.projection.annotators.values()))
    with pytest.raises(Exception, match="no more answers"):
        here.collection.votes.record(question["assignment"]["token"], "left", annotator=annotator.id)


def test_a_pause_that_is_rolled_back_does_not_stop_anyone(played, two):
    question = played.question(two.ann)

    def pause_and_fail(transaction):
        transaction.append("paused", "test")
        with pytest.raises(Exception, match="paused"):
            transaction.check_admission(1)
        raise RuntimeError("rolled back")

    with pytest.raises(RuntimeError):
        played.collection.writer.run(pause_and_fail)
    played.vote(two.ann, question)


def test_a_browser_without_javascript_is_told_that_nothing_was_stored(played, two):
    browser = played.enter(two.ann)
    page = browser.get("/judge", headers={"Accept": "text/html"})
    token = re.search(r'name="token" value="([^"]+)"', page.text)[1]
    csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)[1]
    set_state(played, "paused")
    answer = browser.post("/judge", data={"token": token, "outcome": "left", "csrf": csrf})
    assert "your last answer was not saved" in answer.text
