"""People who come from a recruitment panel or come back, and what they get at the end."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

from crowdrank.errors import SettingError
from crowdrank.server.admin_actions import change_settings
from crowdrank.server.authentication import ANNOTATOR_COOKIE

HTML = {"Accept": "text/html"}
PROLIFIC = {"PROLIFIC_PID": "5f1a", "STUDY_ID": "s", "SESSION_ID": "first"}
MTURK = {
    "workerId": "A1",
    "assignmentId": "ASG",
    "hitId": "H",
    "turkSubmitTo": "https://workersandbox.mturk.com",
}


def csrf_of(page):
    return re.search(r'name="csrf" value="([0-9a-f]{32})"', page.text)[1]


def new_browser(played):
    return TestClient(played.app, base_url="http://testserver")


def arrive(played, parameters, browser=None, name=""):
    """Come by the public link with the parameters of a panel; return the browser and the page after joining."""
    browser = browser or new_browser(played)
    page = browser.get("/join", params=parameters, headers=HTML)
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))
    return browser, browser.post("/join", data={"name": name, **hidden}, headers=HTML)


def people(played):
    return list(played.service.projection.catch_up().annotators.values())


def answer_all(browser):
    for _ in range(20):
        page = browser.get("/judge", headers=HTML)
        if page.url.path == "/finished":
            return page
        token = re.search(r'name="token" value="([^"]+)"', page.text)[1]
        browser.post("/judge", data={"csrf": csrf_of(page), "token": token, "outcome": "left"}, headers=HTML)
    return None


@pytest.mark.parametrize(
    ("panel", "parameters"),
    [
        ("prolific", PROLIFIC),
        ("mturk", MTURK),
        ("cloudresearch", {"participantId": "P9", "assignmentId": "a", "projectId": "p"}),
        ("panel", {"visitor": "v1", "visit": "7"}),
    ],
)
def test_the_same_id_is_always_the_same_annotator(start, panel, parameters):
    played = start(settings={"joining": {"panel_parameters": ["visitor", "visit"]}})
    first, page = arrive(played, parameters)
    assert page.url.path == "/judge"
    (person,) = people(played)
    assert person.metadata == {"joined": "panel", "panel_name": panel, "panel": parameters}
    assert re.fullmatch(rf"{panel}-[0-9a-f]{{10}}", person.name)
    last = list(parameters)[-1]
    second, page = arrive(played, {**parameters, last: parameters[last] + "2"})
    assert page.url.path == "/judge"
    assert [one.id for one in people(played)] == [person.id]
    assert people(played)[0].metadata["panel"][last] == parameters[last] + "2"
    assert first.get("/judge", headers=HTML).status_code == 401  # one of them answers at a time
    assert second.get("/judge", headers=HTML).status_code == 200
    other = {**parameters, next(iter(parameters)): "someone else"}
    arrive(played, other, second)  # in the same browser
    assert len(people(played)) == 2


def test_ids_of_panels_are_in_no_export_unless_asked_for(start):
    played = start(settings={"budget": {"per_annotator": 2}})
    browser, _ = arrive(played, PROLIFIC)
    answer_all(browser)
    (person,) = people(played)
    played.enter(played.secret, "admin")
    for path in ("/votes.csv", "/votes.jsonl", "/votes", "/annotators", "/board", "/audit", "/audit.csv"):
        text = played.client.get(f"/api/v1{path}", headers=played.admin).text
        assert "5f1a" not in text, path
    assert person.name in played.client.get("/api/v1/votes.csv", headers=played.admin).text
    asked = played.client.get("/api/v1/votes.csv?identities=true", headers=played.admin).text.splitlines()
    assert asked[0].endswith(",panel_id")
    assert asked[1].endswith(",5f1a")
    table = played.client.get("/api/v1/participants.csv", headers=played.admin).text.splitlines()
    parameters = "PROLIFIC_PID=5f1a&SESSION_ID=first&STUDY_ID=s"
    assert table[1].startswith(f"{person.name},prolific,5f1a,{parameters},finished,,2,0")
    notes = [event["detail"] for event in played.client.get("/api/v1/audit", headers=played.admin).json()["events"]]
    assert {"text": "votes exported", "format": "csv", "identities": True} in notes


def test_each_panel_has_its_own_codes(start):
    panels = {
        "prolific": {"completion_code": "PRO 1", "screen_out_code": "OUT"},
        "cloudresearch": {"completion_url": "https://cr.example/{projectId}/done?who={participantId}"},
        "mturk": {"completion_code": "TURK"},
    }
    general = {"completion_code": "ALL", "completion_url": "https://panel.example/?cc={code}"}
    played = start(settings={"budget": {"per_annotator": 1}, "joining": {**general, "panels": panels}})
    endings = {}
    for name, parameters in (
        ("prolific", PROLIFIC),
        ("cloudresearch", {"participantId": "P 9", "assignmentId": "a", "projectId": "../p"}),
        ("mturk", MTURK),
        ("evil", {**MTURK, "workerId": "A2", "turkSubmitTo": "https://evil.example"}),
        ("open", {}),
    ):
        browser, _ = arrive(played, parameters)
        answer_all(browser)
        endings[name] = browser.get("/api/v1/question").json()
        page = browser.get("/finished", headers=HTML)
        policy = page.headers["content-security-policy"]
        assert ("form-action 'self' https://workersandbox.mturk.com" in policy) == (name == "mturk")
    assert endings["prolific"]["completion_url"] == "https://app.prolific.com/submissions/complete?cc=PRO%201"
    assert endings["cloudresearch"]["completion_url"] == "https://cr.example/..%2Fp/done?who=P%209"
    assert endings["mturk"]["completion_form"] == {
        "action": "https://workersandbox.mturk.com/mturk/externalSubmit",
        "fields": {"assignmentId": "ASG", "code": "TURK"},
    }
    assert endings["evil"]["completion_form"] is None
    assert endings["open"]["completion_url"] == "https://panel.example/?cc=ALL"
    person = people(played)[0]
    played.client.patch(f"/api/v1/annotators/{person.id}", json={"excluded": True}, headers=played.admin)
    out, _ = arrive(played, PROLIFIC)
    ending = out.get("/api/v1/question").json()
    assert (ending["completion_code"], ending["completion_url"][-6:]) == ("OUT", "cc=OUT")


def test_links_of_panels_are_checked(played):
    for url in ("javascript:alert(1)", "//x"):
        with pytest.raises(SettingError, match=r"joining.panels.mturk.completion_url must start with"):
            change_settings(played.service, {"joining": {"panels": {"mturk": {"completion_url": url}}}}, "test")


def test_a_task_that_was_not_accepted_adds_nobody(played):
    looking = {**MTURK, "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
    del looking["workerId"]
    browser = new_browser(played)
    page = browser.get("/join", params=looking, headers=HTML)
    assert "preview" in page.text
    assert 'action="/join"' not in page.text
    csrf = csrf_of(browser.get("/join", headers=HTML))
    assert browser.post("/join", data={"csrf": csrf, **looking}).status_code == 403
    assert people(played) == []


def test_a_pseudonym_that_someone_typed_is_not_theirs(played):
    arrive(played, PROLIFIC)
    taken = people(played)[0].name
    other = {**PROLIFIC, "PROLIFIC_PID": "another"}
    arrive(played, {}, name=taken)
    assert len(people(played)) == 1  # the name is taken
    arrive(played, other)
    assert len(people(played)) == 2


def test_who_comes_back_is_asked_whether_it_is_them(played):
    browser, page = arrive(played, {}, name="Ann")
    assert 'href="/join"' in page.text
    back = browser.get("/join", headers=HTML)
    assert "Welcome back, Ann" in back.text
    gone = browser.post("/join/leave", data={"csrf": csrf_of(back)}, headers=HTML)
    assert gone.url.path == "/join"
    assert "Your name" in gone.text
    assert not browser.cookies.get(played.service.authenticator.cookie_name(ANNOTATOR_COOKIE))
    arrive(played, {}, browser, name="Bob")
    assert [one.name for one in people(played)] == ["Ann", "Bob"]
    assert new_browser(played).post("/join/leave", data={}).status_code == 401
    assert browser.post("/join/leave", data={}).status_code == 403


def test_only_so_many_people_may_join(start):
    played = start(settings={"joining": {"max_participants": 2}})
    first, _ = arrive(played, PROLIFIC)
    arrive(played, {}, name="Bob")
    late = new_browser(played)
    assert "enough participants" in late.get("/join", headers=HTML).text
    csrf = csrf_of(first.get("/join", params={"PROLIFIC_PID": "5f1a"}, headers=HTML))
    assert csrf
    _, page = arrive(played, PROLIFIC)  # who has joined may come back
    assert page.url.path == "/judge"
    played.join("personal")
    assert len(people(played)) == 3


def test_participants_of_earlier_versions_are_recognised(played):
    (id_,) = played.collection.annotators.add(
        ["5f1a"], actor="join", metadata={"5f1a": {"joined": "panel", "panel": {"PROLIFIC_PID": "5f1a"}}}
    )
    _, page = arrive(played, PROLIFIC)
    assert page.url.path == "/judge"
    assert [one.id for one in people(played)] == [id_]
