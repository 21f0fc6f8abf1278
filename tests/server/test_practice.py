"""Practice questions with feedback, and the preview of organisers. Neither are votes that count."""

from __future__ import annotations

import re

import pytest

from crowdrank.errors import SettingError
from crowdrank.server.admin_actions import change_settings
from crowdrank.storage import NewItem

HTML = {"Accept": "text/html"}
PAIR = {"items": ["Rome", "Oslo"], "answer": "Rome", "feedback": "Rome has **more** people."}
TIE = {"items": ["Rome", "Lima"], "answer": "tie"}
ITEMS = tuple(
    NewItem(label=name, content={"body": f"The city of {name}."}) for name in ("Rome", "Oslo", "Lima", "Paris")
)


def csrf_of(page):
    return re.search(r'name="csrf" value="([0-9a-f]{32})"', page.text)[1]


def answer(browser, text):
    page = browser.get("/practice", headers=HTML)
    number = re.search(r'name="number" value="(\d+)"', page.text)[1]
    return browser.post("/practice", data={"csrf": csrf_of(page), "number": number, "answer": text}, headers=HTML)


def test_practice_comes_after_consent_gives_feedback_and_is_no_vote(start):
    played = start(items=ITEMS, settings={"practice": {"questions": [PAIR, TIE]}, "consent": "Yes?"})
    browser = played.enter(played.join("ann")[0])
    page = browser.get("/judge", headers=HTML)
    assert page.url.path == "/consent"
    version = re.search(r'name="version" value="([0-9a-f]+)"', page.text)[1]
    page = browser.post("/consent", data={"csrf": csrf_of(page), "version": version, "agree": "yes"}, headers=HTML)
    assert page.url.path == "/practice"
    assert "Practice question 1 of 2" in page.text
    assert "The city of Rome." in page.text
    assert "more</strong> people" not in page.text
    page = answer(browser, "Oslo")
    assert "the right answer is A" in page.text
    assert "<strong>more</strong> people" in page.text
    assert "Correct." in answer(browser, "tie").text
    assert browser.get("/practice", headers=HTML).url.path == "/judge"
    assert len(played.service.projection.catch_up().votes) == 0
    admin = played.enter(played.secret, "admin")
    assert "1 of 2 correct" in admin.get(f"/admin/annotators/{next(iter(played.service.projection.annotators))}").text


def test_who_gets_too_few_right_practises_again(start):
    practice = {"questions": [PAIR, TIE], "min_correct": 2}
    played = start(items=ITEMS, settings={"practice": practice, "instructions": "Count *people*."})
    (ann,) = played.join("ann")
    browser = played.enter(ann)
    answer(browser, "Rome")
    answer(browser, "Rome")
    page = browser.get("/judge", headers=HTML)
    assert page.url.path == "/practice"
    assert "1 of 2 practice questions correctly" in page.text
    assert "<em>people</em>" in page.text
    # Neither pages nor scripts of a browser get around it; a program with a token does not practise.
    assert browser.get("/api/v1/question").json()["error"]["code"] == "practice"
    assert "assignment" in played.question(ann)
    browser.post("/practice/again", data={"csrf": csrf_of(page)}, headers=HTML)
    answer(browser, "Rome")
    answer(browser, "tie")
    assert browser.get("/judge", headers=HTML).url.path == "/judge"
    change_settings(played.service, {"practice": {"questions": [TIE], "min_correct": 0}}, "test")
    assert browser.get("/judge", headers=HTML).url.path == "/practice"  # the questions have changed


def test_an_answer_sent_twice_counts_once_and_others_are_refused(start):
    played = start(items=ITEMS, settings={"practice": {"questions": [PAIR, PAIR]}})
    browser = played.enter(played.join("ann")[0])
    page = browser.get("/practice", headers=HTML)
    data = {"csrf": csrf_of(page), "number": "0", "answer": "Oslo"}
    for text in ("Oslo", "Rome"):
        shown = browser.post("/practice", data={**data, "answer": text}, headers=HTML)
        assert "the right answer is A" in shown.text
    assert browser.post("/practice", data={**data, "number": "1", "answer": "Lima"}).status_code == 422
    assert browser.post("/practice", data={**data, "csrf": "0" * 32}).status_code == 403
    person = next(iter(played.service.projection.catch_up().annotators.values()))
    assert person.metadata["practice"]["answers"] == ["Oslo"]


def test_practice_of_ratings_and_choices(start):
    rating = {"questions": [{"items": ["Rome"], "answer": "4"}]}
    played = start(items=ITEMS, settings={"task": {"type": "rating"}, "practice": rating})
    browser = played.enter(played.join("ann")[0])
    assert "Correct." in answer(browser, "4").text
    choice = {"questions": [{"items": ["Rome", "Oslo", "Lima"], "answer": "Lima"}]}
    change_settings(played.service, {"task": {"type": "choice"}, "practice": choice}, "test")
    assert "the right answer is C" in answer(browser, "Oslo").text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"items": ["Rome", "Ghent"], "answer": "Rome"}, "'Ghent' is not an item"),
        ({"items": ["Rome"], "answer": "Rome"}, "must show 2 different items"),
        ({"items": ["Rome", "Oslo"], "answer": "Lima"}, "the answer must be one of Rome, Oslo"),
        ({"items": ["Rome", "Rome"], "answer": "Rome"}, "different items"),
    ],
)
def test_practice_questions_are_checked(start, question, said):
    played = start(items=ITEMS)
    with pytest.raises(SettingError, match=said):
        change_settings(played.service, {"practice": {"questions": [question]}}, "test")
    with pytest.raises(SettingError, match="pairs, ratings and choices"):
        change_settings(played.service, {"task": {"type": "ranking"}, "practice": {"questions": [PAIR]}}, "test")


def test_practice_questions_are_written_on_the_settings_page(start):
    played = start(items=ITEMS)
    browser = played.enter(played.secret, "admin")
    page = browser.get("/admin/settings", headers=HTML)
    text = "Rome | Oslo = Rome | More people.\nRome | Lima = tie"
    sent = {"practice.questions": text, "joining.panels.mturk.completion_code": "X"}
    data = {"csrf": csrf_of(page), "practice.min_correct": "1", **sent}
    assert browser.post("/admin/settings", data=data, headers=HTML).status_code == 200
    settings = played.service.projection.catch_up().settings
    assert [one.answer for one in settings.practice.questions] == ["Rome", "tie"]
    assert settings.practice.questions[0].feedback == "More people."
    assert settings.joining.panels.mturk.completion_code == "X"
    shown = browser.get("/admin/settings", headers=HTML).text
    assert "Rome | Oslo = Rome | More people." in shown
    bad = browser.post("/admin/settings", data={**data, "practice.questions": "Rome"}, headers=HTML)
    assert (bad.status_code, "item | item = answer" in bad.text) == (422, True)


def test_an_organiser_previews_the_study_without_a_trace_on_the_board(start):
    played = start(items=ITEMS, settings={"practice": {"questions": [PAIR]}})
    browser = played.enter(played.secret, "admin")
    page = browser.post("/admin/preview", data={"csrf": csrf_of(browser.get("/admin"))}, headers=HTML)
    assert page.url.path == "/practice"
    answer(browser, "Rome")
    page = browser.get("/judge", headers=HTML)
    assert "Preview" in page.text
    token = re.search(r'name="token" value="([^"]+)"', page.text)[1]
    browser.post("/judge", data={"csrf": csrf_of(page), "token": token, "outcome": "left"}, headers=HTML)
    projection = played.service.projection.catch_up()
    assert (len(projection.votes), projection.n_counted) == (1, 0)
    assert played.client.get("/api/v1/state", headers=played.admin).json()["totals"]["annotators"] == 0
    assert played.client.get("/api/v1/quarantine", headers=played.admin).json()["annotators"] == []
    played.client.post("/api/v1/quarantine/release", json={}, headers=played.admin)
    (person,) = projection.annotators.values()
    refused = played.client.patch(f"/api/v1/annotators/{person.id}", json={"excluded": False}, headers=played.admin)
    assert refused.status_code == 422
    assert played.service.projection.catch_up().n_counted == 0
    stranger = played.client.post("/admin/preview", data={"csrf": "0" * 32})
    assert stranger.status_code == 401
