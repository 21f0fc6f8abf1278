"""Retention periods, versions of the study, and what is recorded with votes."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

from crowdrank.server.app import create_app
from crowdrank.server.onboarding import consent_version
from crowdrank.server.privacy import apply_retention, erasure_due
from crowdrank.server.service import Options
from crowdrank.server.studies import Studies
from crowdrank.storage import Collection

HTML = {"Accept": "text/html"}
DAY = 86_400


def csrf_of(page):
    return re.search(r'name="csrf" value="([0-9a-f]{32})"', page.text)[1]


def settle(played):
    """Collect votes of two people with personal data, and close the study."""
    ann, bob = played.join("Ann Archer", "Bob Barker")
    for token in (ann, bob):
        played.play(token, ["left", "right", "left"])
    question = played.question(ann)
    played.vote(ann, question, "skip", reason="I am Ann Archer of Antwerp")
    played.client.post("/api/v1/state", json={"state": "closed"}, headers=played.admin)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_people_are_erased_when_the_retention_period_ends(start, clock, kind):
    played = start(kind, clock=clock, settings={"privacy": {"retention_days": 30}})
    settle(played)
    collection = played.collection
    before = collection.log.judgments()
    closed = collection.settings.closed_since()
    assert erasure_due(collection) == closed + 30 * DAY * 1_000_000
    assert apply_retention(collection, closed + 29 * DAY * 1_000_000) == 0
    assert apply_retention(collection, closed + 30 * DAY * 1_000_000) == 2
    assert apply_retention(collection, closed + 31 * DAY * 1_000_000) == 0
    after = collection.log.judgments()
    assert after.outcome.tolist() == before.outcome.tolist()
    assert sorted(after.annotators) == ["erased-10", "erased-9"] or all(
        name.startswith("erased-") for name in after.annotators
    )
    events = played.client.get("/api/v1/audit?by=retention", headers=played.admin).json()["events"]
    assert events[0]["detail"] == {"text": "retention period ended", "annotators": 2}
    assert sum(event["kind"] == "annotator_erased" for event in events) == 2
    text = played.client.get("/api/v1/votes.jsonl", headers=played.admin).text
    assert "Archer" not in text
    assert "Antwerp" not in text
    replayed = create_app(collection, Options(background=False)).state.service.projection
    now = played.service.projection.catch_up()
    assert replayed.beliefs.mean.tolist() == now.beliefs.mean.tolist()
    assert [one.name for one in replayed.annotators.values()] == [one.name for one in now.annotators.values()]


def test_nothing_about_people_is_left_in_the_file(start, clock):
    played = start(clock=clock, settings={"privacy": {"retention_days": 0}})
    settle(played)
    apply_retention(played.collection, clock.now)
    raw = b"".join(path.read_bytes() for path in played.database.parent.glob(f"{played.database.name}*"))
    for text in (b"Archer", b"Barker", b"Antwerp"):
        assert text not in raw


def test_a_reopened_study_keeps_its_people(start, clock):
    played = start(clock=clock, settings={"privacy": {"retention_days": 1}})
    settle(played)
    played.client.post("/api/v1/state", json={"state": "open"}, headers=played.admin)
    assert apply_retention(played.collection, clock.now + 9 * DAY * 1_000_000) == 0
    played.client.post("/api/v1/state", json={"state": "closed"}, headers=played.admin)
    assert erasure_due(played.collection) == played.collection.settings.closed_since() + DAY * 1_000_000


def test_without_a_period_people_are_kept(start, clock):
    played = start(clock=clock)
    settle(played)
    assert erasure_due(played.collection) is None
    assert apply_retention(played.collection, clock.now + 10**15) == 0


def test_archived_studies_end_their_period_too(tmp_path):
    studies = Studies(tmp_path / "studies", Options(background=False))
    studies.create("old", {"privacy": {"retention_days": 0}})
    collection = studies.service("old").collection
    collection.annotators.add(["Ann Archer"], actor="test")
    studies.archive("old")
    studies.apply_retention()
    with Collection.open(tmp_path / "studies" / "old.db") as again:
        assert [one.name for one in again.annotators.all().values()] == [
            "erased-" + str(next(iter(again.annotators.all())))
        ]
    studies.stop()


def test_each_vote_says_which_version_and_which_consent_it_belongs_to(start):
    played = start(settings={"consent": "First text."})
    (ann,) = played.join("ann")
    browser = played.enter(ann)
    page = browser.get("/judge", headers=HTML)
    version = re.search(r'name="version" value="([0-9a-f]+)"', page.text)[1]
    browser.post("/consent", data={"csrf": csrf_of(page), "version": version, "agree": "yes"})
    played.play(ann, ["left"])  # holds the next question when the text changes
    change = played.client.patch("/api/v1/settings", json={"consent": "Second text."}, headers=played.admin)
    assert change.status_code == 200
    assert browser.get("/api/v1/question").json()["error"]["code"] == "consent"
    played.play(ann, ["left", "left"])
    rows = played.client.get("/api/v1/votes", headers=played.admin).json()["votes"]
    versions = played.client.get("/api/v1/versions", headers=played.admin).json()["versions"]
    assert [one["consent"] for one in versions] == ["Second text.", "First text."]
    assert [one["votes"] for one in versions] == [1, 2]
    second, first = (one["seq"] for one in versions)
    assert [row["study_version"] for row in rows] == [first, first, second]
    assert {row["consent"] for row in rows} == {consent_version("First text.")}
    assert versions[1]["agreed"] == 1
    # Which text they agreed to stays when they are erased, and nothing else does.
    played.client.post(f"/api/v1/annotators/{played._ids[ann]}/erase", json={}, headers=played.admin)
    rows = played.client.get("/api/v1/votes", headers=played.admin).json()["votes"]
    assert {row["consent"] for row in rows} == {consent_version("First text.")}


def test_votes_before_any_setting_have_no_version(played, two):
    played.play(two.ann, ["left"])
    (row,) = played.client.get("/api/v1/votes", headers=played.admin).json()["votes"]
    assert (row["study_version"], row["consent"]) == (None, None)


def test_only_owners_change_the_period(start):
    played = start()
    owner = played.enter(played.secret, "admin")
    page = owner.get("/admin/privacy", headers=HTML)
    assert "kept until you erase it" in page.text
    for days, status in (("14", 200), ("-1", 422), ("x", 422), ("99999999", 422)):
        sent = owner.post("/admin/privacy", data={"csrf": csrf_of(page), "retention_days": days}, headers=HTML)
        assert sent.status_code == status
    assert "14 days after the study is closed" in owner.get("/admin/privacy", headers=HTML).text
    id_, secret = played.collection.accounts.add("eve", "editor", actor="test")
    played.collection.accounts.accept(secret, "no password")
    session = played.collection.accounts.open_session(id_, client="", seconds=60)
    editor = TestClient(played.app, base_url="http://testserver")
    editor.cookies.set(played.service.authenticator.cookie_name("admin"), session)
    csrf = csrf_of(editor.get("/admin/privacy", headers=HTML))
    for path, fields in (
        ("/admin/privacy", {"retention_days": "1"}),
        ("/admin/settings", {"privacy.retention_days": "1"}),
    ):
        assert editor.post(path, data={"csrf": csrf, **fields}).status_code == 403
    body = {"privacy": {"retention_days": 1}}
    assert editor.patch("/api/v1/settings", json=body, headers={"X-CSRF-Token": csrf}).status_code == 403
    assert editor.patch("/api/v1/settings", json={"title": "T"}, headers={"X-CSRF-Token": csrf}).status_code == 200
    assert editor.get("/api/v1/participants.csv").status_code == 403
    assert editor.get("/api/v1/votes.csv?identities=true").status_code == 403
    assert editor.get("/api/v1/votes.csv").status_code == 200
