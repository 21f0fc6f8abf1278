"""Several studies in one server, and servers under a path."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from crowdrank.server.app import create_app
from crowdrank.server.routes.studies import ensure_organiser
from crowdrank.server.service import Options
from crowdrank.server.studies import create_studies_app
from crowdrank.storage import Collection

HTML = {"Accept": "text/html"}
ITEMS = b"item\nRome\nOslo\nParis\n"


def csrf_of(page):
    return re.search(r'name="csrf" value="([0-9a-f]{32})"', page.text)[1]


@pytest.fixture
def organiser(tmp_path):
    """A browser that opened the link of the organiser."""
    app = create_studies_app(tmp_path / "studies", Options(background=False, prefix="/rank"))
    token = ensure_organiser(tmp_path / "studies", new=False)
    with TestClient(app, base_url="http://testserver") as client:
        client.token = token
        assert client.get(f"/rank/admin/{token}", headers=HTML).status_code == 200
        yield client


def create(client, name, **fields):
    csrf = csrf_of(client.get("/rank/", headers=HTML))
    files = {"file": ("items.csv", ITEMS)} if fields.pop("items", False) else None
    return client.post("/rank/studies", data={"csrf": csrf, "name": name, **fields}, files=files, headers=HTML)


def act(client, name, action):
    csrf = csrf_of(client.get("/rank/", headers=HTML))
    return client.post(f"/rank/studies/{name}/{action}", data={"csrf": csrf}, headers=HTML)


def test_a_study_is_created_opened_copied_and_archived_in_the_browser(organiser):
    assert "Cities" in create(organiser, "cities", title="Cities", items=True).text
    admin = organiser.get("/rank/s/cities/admin", headers=HTML)
    assert admin.url.path == "/rank/s/cities/admin"
    assert "The study is open" in admin.text
    assert 'href="/rank/s/cities/admin/items"' in admin.text
    assert 'href="/admin' not in admin.text
    assert 'src="/static' not in admin.text
    assert organiser.get("/rank/s/cities/static/style.css").status_code == 200

    create(organiser, "again", copy_of="cities", question="Which is larger?")
    assert "Oslo" in organiser.get("/rank/s/again/admin/items", headers=HTML).text
    settings = organiser.get("/rank/s/again/api/v1/settings").json()
    assert (settings["title"], settings["question"]) == ("Cities", "Which is larger?")

    assert "Restore" in act(organiser, "again", "archive").text
    assert organiser.get("/rank/s/again/join").status_code == 404
    act(organiser, "again", "restore")
    assert organiser.get("/rank/s/again/api/v1/state").json()["state"] == "closed"
    assert organiser.get("/rank/s/cities/api/v1/state").json()["state"] == "open"


def test_people_vote_in_their_own_study(organiser):
    for name in ("one", "two"):
        create(organiser, name, items=True)
    guest = TestClient(organiser.app, base_url="http://testserver")
    csrf = csrf_of(guest.get("/rank/s/one/join", headers=HTML))
    page = guest.post("/rank/s/one/join", data={"csrf": csrf, "name": "Ann"}, headers=HTML)
    assert page.url.path == "/rank/s/one/judge"
    assert 'data-prefix="/rank/s/one"' in page.text
    question = guest.get("/rank/s/one/api/v1/question").json()["assignment"]
    token = re.search(r'data-csrf="([0-9a-f]{32})"', page.text)[1]
    body = {"token": question["token"], "outcome": "left"}
    assert guest.post("/rank/s/one/api/v1/votes", json=body, headers={"X-CSRF-Token": token}).status_code == 200
    assert guest.get("/rank/s/two/api/v1/question").status_code == 401
    studies = organiser.get("/rank/api/v1/studies").json()["studies"]
    assert {study["name"]: study["votes"] for study in studies} == {"one": 1, "two": 0}


def test_only_the_organiser_sees_and_creates_studies(organiser):
    stranger = TestClient(organiser.app, base_url="http://testserver")
    assert stranger.get("/rank/", headers=HTML).status_code == 401
    assert stranger.post("/rank/api/v1/studies", json={"name": "x"}).status_code == 401
    bearer = {"Authorization": f"Bearer {organiser.token}"}
    made = stranger.post("/rank/api/v1/studies", json={"name": "x"}, headers=bearer).json()
    own = {"Authorization": f"Bearer {made['admin_token']}"}
    assert stranger.get("/rank/s/x/api/v1/state", headers=own).json()["state"] == "open"
    assert stranger.get("/rank/api/v1/studies", headers=own).status_code == 401


@pytest.mark.parametrize("name", ["organiser", "../x", "a b", "Ä", "x.db", ""])
def test_names_that_are_no_part_of_an_address_are_refused(organiser, name, tmp_path):
    before = sorted(path.name for path in tmp_path.rglob("*.db"))
    assert create(organiser, name).status_code == 422
    assert sorted(path.name for path in tmp_path.rglob("*.db")) == before
    assert organiser.get("/rank/s/organiser/api/v1/state").status_code == 404


def test_an_existing_study_is_not_replaced_and_a_failed_one_leaves_nothing(organiser, tmp_path):
    create(organiser, "one", items=True)
    assert "already" in create(organiser, "one").text
    bearer = {"Authorization": f"Bearer {organiser.token}"}
    bad = {"name": "bad", "settings": {"language": "xx"}}
    assert organiser.post("/rank/api/v1/studies", json=bad, headers=bearer).status_code == 422
    assert not list((tmp_path / "studies").glob("bad*"))


def test_a_collection_works_under_a_path(tmp_path):
    with Collection.open(tmp_path / "c.db") as collection:
        collection.items.add(["Rome", "Oslo", "Paris"], actor="test")
    app = create_app(tmp_path / "c.db", Options(background=False, prefix="/rank"))
    with TestClient(app, base_url="http://testserver", follow_redirects=False) as client:
        csrf = csrf_of(client.get("/rank/join", headers=HTML))
        joined = client.post("/rank/join", data={"csrf": csrf, "name": "Ann"}, headers=HTML)
        assert joined.headers["location"] == "/rank/judge"
        page = client.get("/rank/judge", headers=HTML)
        assert 'src="/rank/static/judge.js"' in page.text
        assert '="/static' not in page.text
        assert client.get("/healthz").status_code == 200  # a proxy may remove the path


def sign_up(organiser, name, role, home="/rank"):
    """Add an account at `home` and return the browser of its owner, signed in."""
    csrf = csrf_of(organiser.get(f"{home}/admin/accounts", headers=HTML))
    page = organiser.post(f"{home}/admin/accounts", data={"csrf": csrf, "name": name, "role": role}, headers=HTML)
    link = re.search(r"http://testserver(/[^<]+/admin/invitation/[\w-]+)<", page.text)[1]
    browser = TestClient(organiser.app, base_url="http://testserver")
    fields = {"password": "correct horse battery", "again": "correct horse battery"}
    joined = browser.post(link, data={"csrf": csrf_of(browser.get(link, headers=HTML)), **fields}, headers=HTML)
    assert joined.url.path == f"{home}/admin/account"
    return browser


def test_accounts_of_the_server_enter_every_study_with_their_role(organiser):
    for name in ("one", "two"):
        create(organiser, name, items=True)
    editor, viewer = sign_up(organiser, "eve", "editor"), sign_up(organiser, "vic", "viewer")
    for browser in (editor, viewer):
        overview = browser.get("/rank/", headers=HTML)
        assert 'href="/rank/s/one/admin"' in overview.text
        page = browser.get("/rank/s/one/admin/items", headers=HTML)
        assert page.status_code == 200
        assert 'href="http://testserver/rank/"' in page.text  # back to all studies
    csrf = csrf_of(editor.get("/rank/s/one/admin/items", headers=HTML))
    assert editor.post("/rank/s/one/admin/items", data={"csrf": csrf, "label": "new"}).status_code == 200
    csrf = csrf_of(viewer.get("/rank/s/one/admin/items", headers=HTML))
    assert viewer.post("/rank/s/one/admin/items", data={"csrf": csrf, "label": "more"}).status_code == 403
    assert viewer.post("/rank/studies", data={"csrf": csrf, "name": "three"}).status_code == 403
    events = editor.get("/rank/s/one/api/v1/audit?by=organiser+eve").json()["events"]
    assert [event["kind"] for event in events] == ["item_added"]
    assert "study two created" in editor.get("/rank/admin/audit", headers=HTML).text
    # Whoever is removed from the server is out of its studies at once.
    csrf = csrf_of(organiser.get("/rank/admin/accounts", headers=HTML))
    row = re.search(r"/admin/accounts/(\d+)/remove", organiser.get("/rank/admin/accounts", headers=HTML).text)[1]
    organiser.post(f"/rank/admin/accounts/{row}/remove", data={"csrf": csrf})
    assert editor.get("/rank/s/one/admin/items", headers=HTML).status_code == 401
    assert editor.get("/rank/", headers=HTML).status_code == 401
    assert viewer.get("/rank/s/one/admin/items", headers=HTML).status_code == 200
    csrf = csrf_of(viewer.get("/rank/s/one/admin/account", headers=HTML))
    viewer.post("/rank/s/one/admin/logout", data={"csrf": csrf}, headers=HTML)  # signs out of the whole server
    assert viewer.get("/rank/", headers=HTML).status_code == 401


def test_accounts_of_a_study_stay_in_it(organiser):
    for name in ("one", "two"):
        create(organiser, name, items=True)
    own = sign_up(organiser, "ann", "owner", "/rank/s/one")
    assert own.get("/rank/s/one/admin/accounts", headers=HTML).status_code == 200
    assert own.get("/rank/s/two/admin", headers=HTML).status_code == 401
    refused = own.get("/rank/", headers=HTML)
    assert refused.status_code == 401
    assert 'href="/rank/admin/sign-in"' in refused.text
    assert 'href="http://testserver/rank/admin/sign-in"' in own.get("/rank/s/two/admin", headers=HTML).text


def test_the_token_of_the_server_works_for_every_study_without_counting_as_a_guess(organiser):
    create(organiser, "one", items=True)
    script = TestClient(organiser.app, base_url="http://testserver")
    bearer = {"Authorization": f"Bearer {organiser.token}"}
    for _ in range(40):
        assert script.get("/rank/s/one/api/v1/state", headers=bearer).status_code == 200
    assert script.patch("/rank/s/one/api/v1/settings", json={"title": "T"}, headers=bearer).status_code == 200
    events = script.get("/rank/s/one/api/v1/audit", headers=bearer).json()["events"]
    assert events[0]["actor"].startswith("server admin ")
