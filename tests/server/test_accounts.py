"""Accounts of organisers: invitation, sign-in, one-time codes, roles and sessions."""

from __future__ import annotations

import re
import sqlite3
import time

import pytest
from fastapi.testclient import TestClient

from crowdrank.errors import DataError
from crowdrank.server import sign_in as module
from crowdrank.server.authentication import ADMIN_COOKIE, RateLimit
from crowdrank.server.sign_in import matching_step, totp_code
from crowdrank.storage import Collection
from tests.server.conftest import bearer

HTML = {"Accept": "text/html"}
PASSWORD, OTHER = "correct horse battery", "quite another phrase"


def csrf_of(page):
    return re.search(r'name="csrf" value="([0-9a-f]{32})"', page.text)[1]


def new_browser(played):
    return TestClient(played.app, base_url="http://testserver")


def submit(browser, path, at=None, **fields):
    """Send a form of the page `at`, or of the page that it is sent to."""
    csrf = csrf_of(browser.get(at or path, headers=HTML))
    return browser.post(path, data={"csrf": csrf, **fields}, headers=HTML)


def add(owner, name, role="editor"):
    """Add an account and return the path of the link that sets its password."""
    page = submit(owner, "/admin/accounts", name=name, role=role)
    assert page.status_code == 200, page.text
    return re.search(r"http://testserver(/admin/invitation/[\w-]+)", page.text)[1]


def accept(played, link, password=PASSWORD):
    """Return the browser of someone who chose a password."""
    browser = new_browser(played)
    assert submit(browser, link, password=password, again=password).url.path == "/admin/account"
    return browser


def sign_in(browser, name, password=PASSWORD, code="", **more):
    return submit(browser, "/admin/sign-in", name=name, password=password, code=code, **more)


@pytest.fixture
def owner(played):
    """A browser that opened the admin link."""
    return played.enter(played.secret, "admin")


def number_of(played, name):
    return played.collection.accounts.by_name(name).id


def test_codes_are_those_of_rfc_6238():
    secret = b"12345678901234567890"  # appendix B, whose codes have eight digits
    expected = {59: "94287082", 1111111109: "07081804", 1234567890: "89005924", 20000000000: "65353130"}
    for at, code in expected.items():
        assert totp_code(secret, at // 30) == code[2:]
        assert matching_step(secret, f"{code[2:5]} {code[5:]}", at) == at // 30
        assert matching_step(secret, code[2:], at + 30) == at // 30
        assert matching_step(secret, code[2:], at + 90) is None


def test_the_first_owner_comes_by_the_admin_link_and_signs_in_later(played, owner):
    link = add(owner, "Ann@Example.org", "owner")
    ann = accept(played, link)
    assert "Accounts" in ann.get("/admin/accounts", headers=HTML).text
    assert new_browser(played).get(link, headers=HTML).status_code == 404  # it works once

    again = new_browser(played)
    assert again.get("/admin", headers=HTML).status_code == 401
    assert sign_in(again, "ann@example.ORG", next="/admin/items").url.path == "/admin/items"
    assert sign_in(again, "ann@example.org", next="//evil.example").url.path == "/admin"
    submit(again, "/admin/items", label="new")
    events = played.client.get("/api/v1/audit", headers=played.admin).json()["events"]
    assert next(event["actor"] for event in events if event["kind"] == "item_added") == "organiser ann@example.org"
    assert [event["detail"]["text"] for event in events if event["kind"] == "noted"] == [
        *["signed in"] * 3,
        "password set",
        "account added",
    ]


def test_passwords_and_codes_are_in_no_readable_form_in_the_database(played, owner, new_location):
    ann = accept(played, add(owner, "ann"))
    page = submit(ann, "/admin/account/codes", "/admin/account")
    secret = re.search(r">([A-Z2-7]{32})<", page.text)[1]
    sealed = re.search(r'name="sealed" value="([^"]+)"', page.text)[1]
    code = totp_code(module.base64.b32decode(secret), int(time.time() // 30))
    assert submit(ann, "/admin/account/codes/confirm", "/admin/account", sealed=sealed, code=code).status_code == 200
    stored = played.collection.accounts.by_name("ann")
    assert stored.password.startswith("$argon2id$")
    assert stored.totp.startswith("sealed:")
    played.collection.log.note("flush", actor="test")
    raw = b"".join(path.read_bytes() for path in played.database.parent.glob(f"{played.database.name}*"))
    for text in (PASSWORD, secret):
        assert text.encode() not in raw


def test_a_code_is_needed_once_set_up_and_works_once(played, owner, monkeypatch):
    now = [1_800_000_000.0]
    monkeypatch.setattr(played.service.accounts, "_clock", lambda: now[0])
    ann = accept(played, add(owner, "ann"))
    page = submit(ann, "/admin/account/codes", "/admin/account")
    secret = module.base64.b32decode(re.search(r">([A-Z2-7]{32})<", page.text)[1])
    sealed = re.search(r'name="sealed" value="([^"]+)"', page.text)[1]
    wrong = submit(ann, "/admin/account/codes/confirm", "/admin/account", sealed=sealed, code="000000")
    assert (wrong.status_code, played.collection.accounts.by_name("ann").totp) == (422, None)

    def code():
        return totp_code(secret, int(now[0] // 30))

    submit(ann, "/admin/account/codes/confirm", "/admin/account", sealed=sealed, code=code())
    assert sign_in(new_browser(played), "ann").status_code == 401
    assert sign_in(new_browser(played), "ann", code=code()).status_code == 401  # used for setting it up
    now[0] += 30
    assert sign_in(new_browser(played), "ann", code=code()).status_code == 200
    assert sign_in(new_browser(played), "ann", code=code()).status_code == 401  # used
    now[0] += 30
    assert sign_in(new_browser(played), "ann", OTHER, code=code()).status_code == 401

    bob = accept(played, add(owner, "bob"))  # what was made for Ann sets up nothing for Bob
    stolen = submit(bob, "/admin/account/codes/confirm", "/admin/account", sealed=sealed, code=code())
    assert stolen.status_code == 422
    removed = submit(ann, "/admin/account/codes/remove", "/admin/account", password=PASSWORD)
    assert (removed.status_code, played.collection.accounts.by_name("ann").totp) == (200, None)


READING = ("/admin", "/admin/items", "/admin/settings", "/admin/audit", "/admin/annotators", "/admin/account", "/")


def test_roles_limit_what_organisers_may_do(played, owner):
    viewer = accept(played, add(owner, "vic", "viewer"))
    editor = accept(played, add(owner, "eve", "editor"))
    (token,) = played.join("judge")
    for path in READING:
        assert viewer.get(path, headers=HTML).status_code == 200, path
    assert "not change it" in viewer.get("/admin/items", headers=HTML).text
    assert submit(viewer, "/admin/items", label="x").status_code == 403
    assert submit(editor, "/admin/items", label="x").status_code == 200
    headers = {"X-CSRF-Token": csrf_of(viewer.get("/admin/account", headers=HTML))}
    assert viewer.patch("/api/v1/settings", json={"title": "x"}, headers=headers).status_code == 403
    headers = {"X-CSRF-Token": csrf_of(editor.get("/admin/account", headers=HTML))}
    assert editor.patch("/api/v1/settings", json={"title": "x"}, headers=headers).status_code == 200
    for browser in (viewer, editor):
        assert browser.get("/admin/accounts", headers=HTML).status_code == 403
        refused = submit(browser, "/admin/accounts", "/admin/account", name="mallory", role="owner")
        assert refused.status_code == 403
    number = played._ids[token]
    erasing = f"/api/v1/annotators/{number}/erase"
    assert editor.post(erasing, json={}, headers=headers).status_code == 403
    # A change of the role holds at once.
    submit(owner, f"/admin/accounts/{number_of(played, 'vic')}/role", "/admin/accounts", role="editor")
    assert submit(viewer, "/admin/items", label="y").status_code == 200
    submit(owner, f"/admin/accounts/{number_of(played, 'vic')}/remove", "/admin/accounts")
    assert viewer.get("/admin", headers=HTML).status_code == 401
    assert played.collection.accounts.by_name("mallory") is None


def test_one_owner_is_left(played, owner):
    ann = accept(played, add(owner, "ann", "owner"))
    accept(played, add(owner, "eve", "editor"))
    own = number_of(played, "ann")
    for action in ("role", "remove"):
        refused = submit(ann, f"/admin/accounts/{own}/{action}", "/admin/accounts", role="viewer")
        assert refused.status_code == 422
        assert "only owner" in refused.text
    with pytest.raises(DataError, match="role must be"):
        played.collection.accounts.set_role(own, "boss", actor="test")


def test_sessions_are_listed_and_ended_in_all_processes(start, new_location):
    location = new_location()
    one, two = start(location=location), start(location=location, items=())
    owner = one.enter(one.secret, "admin")
    first = accept(one, add(owner, "ann", "owner"))
    second, third = (TestClient(played.app, base_url="http://testserver") for played in (two, one))
    for browser, agent in ((second, "Mozilla/5.0 (X11; Linux) Firefox/130.0"), (third, "curl/8")):
        browser.headers["User-Agent"] = agent
        assert sign_in(browser, "ann").status_code == 200
    page = first.get("/admin/account", headers=HTML)
    assert "Firefox on Linux" in page.text
    assert page.text.count('name="key"') == 2
    key = next(one.key for one in one.collection.accounts.sessions(number_of(one, "ann")) if "Firefox" in one.client)
    submit(first, "/admin/account/sessions", "/admin/account", key=key)
    assert second.get("/admin", headers=HTML).status_code == 401
    assert third.get("/admin", headers=HTML).status_code == 200
    submit(first, "/admin/account/sessions", "/admin/account")
    assert third.get("/admin", headers=HTML).status_code == 401
    assert first.get("/admin", headers=HTML).status_code == 200
    assert submit(first, "/admin/logout", "/admin/account").url.path == "/admin/sign-in"
    assert first.get("/admin", headers=HTML).status_code == 401


def test_a_new_password_ends_the_other_sessions(played, owner):
    first = accept(played, add(owner, "ann", "viewer"))
    second = new_browser(played)
    sign_in(second, "ann")
    where = ("/admin/account/password", "/admin/account")
    for old, new, again, said in (
        (OTHER, OTHER, OTHER, "password is wrong"),
        (PASSWORD, "short", "short", "10 to 200"),
        (PASSWORD, "aaaaaaaaaaaaa", "aaaaaaaaaaaaa", "easily guessed"),
        (PASSWORD, OTHER, PASSWORD, "differ"),
    ):
        refused = submit(first, *where, old=old, password=new, again=again)
        assert (refused.status_code, said in refused.text) == (422, True)
    submit(first, *where, old=PASSWORD, password=OTHER, again=OTHER)
    assert first.get("/admin", headers=HTML).status_code == 200
    assert second.get("/admin", headers=HTML).status_code == 401
    assert sign_in(new_browser(played), "ann", PASSWORD).status_code == 401
    assert sign_in(new_browser(played), "ann", OTHER).status_code == 200


def test_guessing_is_limited_and_locks_out_neither_others_nor_known_browsers(start, clock, monkeypatch):
    monkeypatch.setattr(module, "ACCOUNT_LIMIT", RateLimit(15, 3600))
    played = start(clock=clock, trusted_proxies=1)
    owner = played.enter(played.secret, "admin")
    known = accept(played, add(owner, "ann"))
    accept(played, add(owner, "bob"))

    def attempt(browser, name, password, address="1.1.1.1"):
        browser.headers["X-Forwarded-For"] = address
        return sign_in(browser, name, password).status_code

    guesser = new_browser(played)
    codes = [attempt(guesser, "ann", f"guess number {n}") for n in range(13)]
    assert codes == [401] * 10 + [429] * 3
    assert attempt(new_browser(played), "ann", PASSWORD) == 429  # from the same address, in an unknown browser
    assert attempt(new_browser(played), "bob", PASSWORD) == 200  # someone else at this address
    assert attempt(new_browser(played), "ann", PASSWORD, "2.2.2.2") == 200
    codes = [attempt(new_browser(played), "ann", "guess", f"3.3.3.{n}") for n in range(8)]
    assert codes.count(429) >= 3  # from many addresses
    submit(known, "/admin/logout", "/admin/account")
    assert attempt(known, "ann", PASSWORD) == 200  # in the browser that has signed in before
    clock.pass_seconds(3600)
    assert attempt(new_browser(played), "ann", PASSWORD) == 200


def test_the_answer_does_not_tell_which_accounts_exist(played, owner, monkeypatch):
    accept(played, add(owner, "ann"))
    add(owner, "invited")
    verified = []
    verify = played.service.accounts._verify
    monkeypatch.setattr(played.service.accounts, "_verify", lambda *given: verified.append(1) or verify(*given))
    texts = set()
    for name in ("ann", "nobody", "invited", "", "x" * 500):
        page = sign_in(new_browser(played), name, OTHER)
        assert page.status_code == 401
        texts.add(re.sub(r'value="[0-9a-f]{32}"', "", page.text))
    assert (len(texts), len(verified)) == (1, 5)


def test_a_link_for_a_new_password_replaces_password_and_codes(played, owner):
    ann = accept(played, add(owner, "ann"))
    played.collection.accounts.set_totp(number_of(played, "ann"), played.collection.keys.seal("A" * 32), actor="t")
    page = submit(owner, f"/admin/accounts/{number_of(played, 'ann')}/invite", "/admin/accounts")
    link = re.search(r"(/admin/invitation/[\w-]+)", page.text)[1]
    accept(played, link, OTHER)
    assert ann.get("/admin", headers=HTML).status_code == 401
    assert sign_in(new_browser(played), "ann", OTHER).status_code == 200


def test_an_invitation_expires(start, clock):
    played = start(clock=clock)
    link = add(played.enter(played.secret, "admin"), "ann")
    clock.pass_seconds(7 * 86_400 + 1)
    assert new_browser(played).get(link, headers=HTML).status_code == 404


def test_sign_in_needs_its_own_form(played, owner):
    accept(played, add(owner, "ann"))
    body = {"name": "ann", "password": PASSWORD}
    assert new_browser(played).post("/admin/sign-in", data=body).status_code == 403
    browser = new_browser(played)
    csrf = csrf_of(browser.get("/admin/sign-in", headers=HTML))
    foreign = {"Origin": "https://evil.example"}
    assert browser.post("/admin/sign-in", data={"csrf": csrf, **body}, headers=foreign).status_code == 403


def test_the_cookie_of_a_session_is_kept_from_scripts_and_from_plain_http(start):
    played = start(public_url="https://rank.example.org")
    browser = TestClient(played.app, base_url="https://rank.example.org")
    browser.get(f"/admin/{played.secret}")
    page = submit(browser, "/admin/accounts", name="ann", role="owner")
    link = re.search(r"(/admin/invitation/[\w-]+)", page.text)[1]
    fresh = TestClient(played.app, base_url="https://rank.example.org")
    csrf = csrf_of(fresh.get(link, headers=HTML))
    body = {"csrf": csrf, "password": PASSWORD, "again": PASSWORD}
    answer = fresh.post(link, data=body, follow_redirects=False)
    cookies = answer.headers.get_list("set-cookie")
    assert len(cookies) == 2
    assert all("HttpOnly" in one and "SameSite=lax" in one and "Secure" in one for one in cookies)
    assert any(played.service.authenticator.cookie_name(ADMIN_COOKIE) in one for one in cookies)


def test_tokens_for_scripts_are_listed_and_revoked(played, owner):
    page = submit(owner, "/admin/tokens", "/admin/accounts")
    token = re.search(r'<code class="code">([\w-]{22})</code>', page.text)[1]
    assert played.client.get("/api/v1/items", headers=bearer(token)).status_code == 200
    rows = [row for row, _, _ in played.collection.access.valid_tokens("admin")]
    assert len(rows) == 2
    submit(owner, f"/admin/tokens/{rows[-1]}/revoke", "/admin/accounts")
    assert played.client.get("/api/v1/items", headers=bearer(token)).status_code == 401
    assert played.client.get("/api/v1/items", headers=played.admin).status_code == 200


def test_the_audit_log_is_filtered_and_exported(played, owner):
    ann = accept(played, add(owner, "ann"))
    submit(ann, "/admin/items", label="=1+1")
    page = ann.get("/admin/audit?by=organiser+ann", headers=HTML).text
    assert "item added" in page
    assert "token issued" not in page
    text = ann.get("/api/v1/audit.csv").text
    assert 'organiser ann,,"{' in text
    lines = ann.get("/api/v1/audit.jsonl").text.splitlines()
    assert len(lines) == len(text.splitlines())


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_accounts_work_in_both_databases(start, kind):
    played = start(kind)
    ann = accept(played, add(played.enter(played.secret, "admin"), "ann", "owner"))
    assert sign_in(new_browser(played), "ann").status_code == 200
    assert len(played.collection.accounts.sessions(number_of(played, "ann"))) == 2
    submit(ann, "/admin/account/sessions", "/admin/account")
    assert len(played.collection.accounts.sessions(number_of(played, "ann"))) == 1
    played.collection.accounts.delete_expired()
    assert ann.get("/admin", headers=HTML).status_code == 200


def test_an_expired_session_is_forgotten(start, clock):
    played = start(clock=clock)
    ann = accept(played, add(played.enter(played.secret, "admin"), "ann"))
    clock.pass_seconds(400)
    assert ann.get("/admin", headers=HTML).status_code == 200
    (session,) = played.collection.accounts.sessions(number_of(played, "ann"))
    clock.pass_seconds(8 * 86_400)
    played.service.authenticator._cache.clear()
    assert ann.get("/admin", headers=HTML).status_code == 401
    assert played.collection.accounts.sessions(session.account) == []


def test_a_collection_without_accounts_is_upgraded(tmp_path):
    path = tmp_path / "c.db"
    with Collection.open(path) as collection:
        collection.items.add(["a"], actor="test")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE account_session")
        connection.execute("DROP TABLE account")
        connection.execute("UPDATE alembic_version SET version_num = '0003'")
    connection.close()
    with Collection.open(path) as collection:
        id_, secret = collection.accounts.add("ann", "owner", actor="test")
        assert collection.accounts.by_invitation(secret).id == id_
        assert [item.label for item in collection.items.all().values()] == ["a"]
