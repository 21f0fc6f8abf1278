"""Attacks: one test per vulnerability that other programs had."""

from __future__ import annotations

import json
import logging
import re

import pytest

from crowdrank.server import authentication
from crowdrank.storage import NewItem
from tests.server.conftest import bearer

_HTML = {"Accept": "text/html"}
_EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}'


def form_of(page):
    """The CSRF token in the forms of a page."""
    return re.search(r'name="csrf"[^>]*value="([0-9a-f]{32})"', page.text)[1]


def csrf_of(browser, path="/judge"):
    page = browser.get(path, headers=_HTML)
    assert page.status_code == 200, page.text
    return re.search(r"[0-9a-f]{32}", page.text)[0]


def test_a_link_is_exchanged_for_a_cookie(played, two):
    answer = played.client.get(f"/join/{two.ann}", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/judge"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert two.ann not in cookie
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"


def test_cookies_are_secure_behind_https(start):
    played = start(public_url="https://rank.example.org")
    (ann,) = played.join("ann")
    assert "Secure" in played.client.get(f"/join/{ann}", follow_redirects=False).headers["set-cookie"]


def test_annotators_have_no_access_to_admin_pages(played, two):
    browser = played.enter(played.secret, "admin")
    assert browser.get("/api/v1/items").status_code == 200
    assert played.client.get(f"/admin/{two.ann}", follow_redirects=False).status_code == 404
    assert played.client.get(f"/join/{played.secret}", follow_redirects=False).status_code == 404
    annotator = played.enter(two.ann)
    for path in ("/items", "/annotators", "/votes", "/votes.csv", "/settings", "/state", "/audit", "/export.parquet"):
        assert annotator.get(f"/api/v1{path}").status_code == 401
    for path in (
        "/admin",
        "/admin/annotators",
        "/admin/items",
        "/admin/links",
        "/admin/settings",
        "/admin/audit",
        "/metrics",
    ):
        assert annotator.get(path).status_code == 401


def test_secrets_are_stored_hashed(played, two, tmp_path):
    played.enter(two.ann)
    browser = played.enter(played.secret, "admin")
    played.collection.close()
    held = b"".join(path.read_bytes() for path in tmp_path.glob("*.db*"))
    cookie = next(iter(browser.cookies.jar)).value
    for secret in (two.ann, two.bob, played.secret, cookie):
        assert secret.encode() not in held


def test_revoking_a_link_ends_its_sessions(played, two):
    browser = played.enter(two.ann)
    assert browser.get("/api/v1/question").status_code == 200
    number = played.service.projection.catch_up().annotators
    (ann,) = [n for n, person in number.items() if person.name == "ann"]
    played.client.patch(f"/api/v1/annotators/{ann}", json={"revoke": True}, headers=played.admin)
    assert browser.get("/api/v1/question").status_code == 401
    assert played.client.get("/api/v1/question", headers=bearer(two.ann)).status_code == 401
    fresh = played.client.patch(f"/api/v1/annotators/{ann}", json={"reissue": True}, headers=played.admin).json()[
        "token"
    ]
    assert played.question(fresh)["progress"]["done"] == 0


def test_a_revocation_applies_to_all_processes(start, new_location):
    location = new_location()
    here, elsewhere = start(location=location), start(location=location, items=())
    (token,) = here.join("ann")
    question = here.question(token)
    (ann,) = here.service.projection.annotators
    elsewhere.collection.access.revoke_all(ann, actor="test")
    here.vote(token, question, status=401)
    assert here.client.get("/api/v1/question", headers=bearer(token)).status_code == 401
    assert here.service.projection.catch_up().n_counted == 0


def test_a_question_cannot_be_answered_with_the_cookie_of_another_annotator(played, two):
    question = played.question(two.ann)
    bob = played.enter(two.bob)
    body = {"token": question["assignment"]["token"], "outcome": "left"}
    answer = bob.post("/api/v1/votes", json=body, headers={"X-CSRF-Token": csrf_of(bob)})
    assert answer.status_code == 404
    assert played.service.projection.catch_up().n_counted == 0


def test_csrf_tokens_belong_to_one_session(played, two):
    ann, bob = played.enter(two.ann), played.enter(two.bob)
    mine = ann.get("/api/v1/question").json()["assignment"]["token"]
    body = {"token": mine, "outcome": "left"}
    stolen = ann.post("/api/v1/votes", json=body, headers={"X-CSRF-Token": csrf_of(bob)})
    assert stolen.status_code == 403
    assert stolen.json()["error"]["code"] == "csrf"
    assert ann.post("/api/v1/votes", json=body, headers={"X-CSRF-Token": csrf_of(ann)}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-CSRF-Token": "0" * 32},
        {"X-CSRF-Token": "good", "Origin": "https://evil.example"},
        {"X-CSRF-Token": "good", "Origin": "null"},
        {"X-CSRF-Token": "good", "Sec-Fetch-Site": "cross-site"},
        {"X-CSRF-Token": "good", "Sec-Fetch-Site": "same-site"},
        {"X-CSRF-Token": "ünïcode"},
    ],
)
def test_a_cookie_without_csrf_token_changes_nothing(played, two, headers):
    browser = played.enter(two.ann)
    good = csrf_of(browser)
    told = {key: (good if value == "good" else value).encode("utf-8") for key, value in headers.items()}
    body = {"token": browser.get("/api/v1/question").json()["assignment"]["token"], "outcome": "left"}
    assert browser.post("/api/v1/votes", json=body, headers=told).status_code == 403
    assert browser.post("/api/v1/undo", headers=told).status_code == 403
    assert played.service.projection.catch_up().n_counted == 0
    assert (
        browser.post(
            "/api/v1/votes", json=body, headers={"X-CSRF-Token": good, "Origin": "http://testserver"}
        ).status_code
        == 200
    )


def test_every_admin_form_needs_a_csrf_token(played, two):
    browser = played.enter(played.secret, "admin")
    before = played.collection.log.head()
    paths = [
        "/admin/state",
        "/admin/budget",
        "/admin/items",
        "/admin/items/upload",
        f"/admin/items/{played.ids[0]}/hide",
        "/admin/settings",
        "/admin/links",
        "/admin/links.csv",
        "/admin/links/join",
        "/admin/links/5/revoke",
        "/admin/annotators/5/exclude",
        "/admin/votes/1/void",
        "/admin/logout",
        "/admin/settings/webhooks",
        "/admin/settings/webhooks/remove",
    ]
    for path in paths:
        assert browser.post(path, data={"state": "closed", "csrf": "0" * 32}).status_code == 403, path
    for method, path in (("PATCH", "/settings"), ("POST", "/state"), ("POST", "/void"), ("POST", "/items")):
        body = {"state": "closed", "items": [{"label": "x"}], "votes": [1]}
        answer = browser.request(method, f"/api/v1{path}", json={k: body[k] for k in _FIELDS[path]})
        assert answer.status_code == 403, path
    assert played.collection.log.head() == before


_FIELDS = {"/settings": (), "/state": ("state",), "/void": ("votes",), "/items": ("items",)}


def test_joining_needs_a_csrf_token(played):
    assert played.client.post("/join", data={"name": "eve"}).status_code == 403
    page = played.client.get("/join", headers=_HTML)
    answer = played.client.post("/join", data={"name": "eve", "csrf": form_of(page)}, follow_redirects=False)
    assert answer.status_code == 303
    assert played.client.get("/api/v1/question").json()["progress"]["done"] == 0


def test_hostile_text_is_escaped_on_every_page(start):
    content = {"body": _EVIL, "context": _EVIL, "group": _EVIL, "owner": _EVIL}
    items = [
        NewItem(label=f"{_EVIL} {kind} {n}", query=_EVIL, content={**content, "kind": kind})
        for kind in ("text", "markdown", "image", "link")
        for n in range(2)
    ]
    settings = {"title": _EVIL, "question": _EVIL, "instructions": _EVIL, "skip_reasons": [_EVIL], "board_public": True}
    played = start(items=items, settings=settings)
    (ann,) = played.join(f"{_EVIL}"[:80])
    played.play(ann, ["left"] * 4)
    browser, admin = played.enter(ann), played.enter(played.secret, "admin")
    (number,) = played.service.projection.annotators
    pages = [browser.get(path, headers=_HTML) for path in ("/judge", "/join", "/")]
    pages += [
        admin.get(path, headers=_HTML)
        for path in (
            "/admin",
            "/admin/annotators",
            f"/admin/annotators/{number}",
            "/admin/items",
            "/admin/links",
            "/admin/settings",
            "/admin/audit",
        )
    ]
    for page in pages:
        assert page.status_code == 200, page.text
        assert "<script>alert" not in page.text
        assert not re.search(r"<img[^>]*\sonerror", re.sub(r'"[^"]*"', '""', page.text))
        assert "49" not in re.findall(r"\{\{ 7\*7 \}\}|>49<", page.text)
        policy = page.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        for tag in re.findall(r"<[a-z][^<>]*>", re.sub(r'="[^"]*"', "=X", page.text)):
            assert not re.search(r"\s(on[a-z]+|style)\s*=", tag), tag
            assert not tag.startswith("<script") or " src=" in tag


@pytest.mark.parametrize(
    "name",
    [
        "../secret.txt",
        "..%2fsecret.txt",
        "%2e%2e/secret.png",
        "/etc/passwd",
        "a/../../secret.png",
        "link.png",
        "x.svg",
        "%00.png",
    ],
)
def test_images_are_served_from_one_folder_only(start, tmp_path, name):
    media = tmp_path / "media"
    media.mkdir()
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "secret.txt").write_bytes(b"secret")
    (media / "x.svg").write_bytes(b"<svg onload='alert(1)'/>")
    (media / "link.png").symlink_to(tmp_path / "secret.png")
    (media / "fine.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    played = start(media=media)
    answer = played.client.get(f"/media/{name}")
    assert answer.status_code == 404
    assert b"secret" not in answer.content
    fine = played.client.get("/media/fine.png")
    assert (fine.status_code, fine.headers["content-type"]) == (200, "image/png")
    assert fine.headers["x-content-type-options"] == "nosniff"


def test_static_files_are_served_from_one_folder_only(played):
    for name in ("../app.py", "..%2fapp.py", "%2e%2e%2fapp.py"):
        assert played.client.get(f"/static/{name}").status_code == 404


def test_uploads_must_be_images_of_their_type(start, tmp_path):
    played = start(media=tmp_path / "media")

    def send(name, content):
        return played.client.post("/api/v1/media", files={"file": (name, content)}, headers=played.admin)

    assert send("a.svg", b"<svg/>").status_code == 422
    assert send("a.png", b"<script>alert(1)</script>").status_code == 422
    answer = send("../../a b.png", b"\x89PNG\r\n\x1a\n" + b"0" * 50)
    assert re.fullmatch(r"a-b-[0-9a-f]{10}\.png", answer.json()["body"])
    assert [path.name for path in (tmp_path / "media").iterdir()] == [answer.json()["body"]]


def test_large_bodies_are_refused(played, two):
    headers = bearer(two.ann)
    said = played.client.post("/api/v1/votes", content=b"x" * (1 << 20) + b"x", headers=headers)
    assert said.status_code == 413
    assert said.json()["error"]["code"] == "too_large"

    def pieces():
        for _ in range(40):
            yield b"x" * 65_536

    assert played.client.post("/api/v1/votes", content=pieces(), headers=headers).status_code == 413
    lie = played.client.post("/api/v1/votes", content=b"{}", headers={**headers, "Content-Length": "9" * 30})
    assert lie.status_code in (400, 413)


def test_malformed_json_is_refused(played, two):
    for content in (b"[" * 60_000, b'{"token": "\\ud800", "outcome": "left"}', b"\xff\xfe", b"NaN"):
        answer = played.client.post("/api/v1/votes", content=content, headers=bearer(two.ann))
        assert answer.status_code in (400, 404, 422), answer.text


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_guessing_tokens_is_limited_across_processes_and_locks_nobody_out(start, new_location, clock, kind):
    location = new_location(kind)
    one, other = start(location=location, clock=clock), start(location=location, items=(), clock=clock)
    statuses = []
    for n in range(authentication.FAILED_LOGIN_LIMIT.times + 10):
        client = (one, other)[n % 2].client
        statuses.append(client.get("/api/v1/items", headers=bearer(f"guess-{n}")).status_code)
    assert statuses.count(401) <= authentication.FAILED_LOGIN_LIMIT.times + 1
    assert statuses[-1] == 429
    for served in (one, other):
        assert served.client.get("/api/v1/items", headers=bearer(f"one-more-{kind}")).status_code == 429
        assert served.client.get(f"/admin/{one.secret}", follow_redirects=False).status_code == 303
        assert served.client.get("/api/v1/items", headers=one.admin).status_code == 200
        assert "Retry-After" in served.client.get("/join/guess").headers


def test_a_forged_forwarding_header_does_not_avoid_the_limit(start, clock):
    played = start(clock=clock)
    statuses = [
        played.client.get("/admin/guess", headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code
        for n in range(authentication.FAILED_LOGIN_LIMIT.times + 5)
    ]
    assert statuses[-1] == 429


def test_only_the_entry_of_a_trusted_proxy_is_used(start):
    played = start(trusted_proxies=1)
    request = {"type": "http", "client": ("10.0.0.9", 1), "headers": []}

    def address(said):
        from starlette.requests import Request

        return played.service.authenticator.client_address(
            Request({**request, "headers": [(b"x-forwarded-for", said.encode())]})
        )

    assert address("6.6.6.6, 203.0.113.5") == "203.0.113.5"
    assert address("203.0.113.5") == "203.0.113.5"
    assert address("nonsense") == "10.0.0.9"


def test_the_annotator_limit_holds_across_processes(start, new_location, clock, monkeypatch):
    monkeypatch.setattr("crowdrank.server.authentication.ANNOTATOR_LIMIT", authentication.RateLimit(20, 60, 5))
    location = new_location()
    one, other = start(location=location, clock=clock), start(location=location, items=(), clock=clock)
    (ann,) = one.join("ann")
    statuses = [(one, other)[n % 2].client.get("/api/v1/question", headers=bearer(ann)).status_code for n in range(40)]
    assert statuses.count(200) == 20
    assert statuses[-1] == 429


def test_exports_contain_no_spreadsheet_formulas(start):
    labels = ["=cmd|'/c calc'!A0", "+1", "-1", "@x", "\tx"]
    played = start(items=labels)
    (ann,) = played.join("=HYPERLINK(1)")
    played.play(ann, ["left"] * 6)
    table = played.client.get("/api/v1/votes.csv", headers=played.admin).text
    import csv

    for row in csv.reader(table.splitlines()):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row), row
    first = json.loads(played.client.get("/api/v1/votes.jsonl", headers=played.admin).text.splitlines()[0])
    assert first["annotator"] == "=HYPERLINK(1)"


def test_internal_errors_reveal_no_details(played, two, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("the secret reason")

    monkeypatch.setattr(played.service.assignments, "_assign_next", fail)
    for headers in ({}, _HTML):
        answer = played.client.get("/api/v1/question", headers={**bearer(two.ann), **headers})
        assert answer.status_code == 500
        assert "secret reason" not in answer.text
        assert "Traceback" not in answer.text
    browser = played.enter(two.ann)
    page = browser.get("/judge", headers=_HTML)
    assert page.status_code == 500
    assert "secret reason" not in page.text
    assert "secret reason" in caplog.text
    assert "content-security-policy" in page.headers


def test_tokens_are_neither_logged_nor_exported(played, two, caplog):
    caplog.set_level(logging.DEBUG)
    browser, admin = played.enter(two.ann), played.enter(played.secret, "admin")
    question = played.question(two.bob)
    played.vote(two.bob, question)
    played.client.get("/join/wrong-token-of-someone")
    out = "".join(
        admin.get(f"/api/v1{path}").text
        for path in ("/votes", "/votes.csv", "/votes.jsonl", "/audit", "/annotators", "/items")
    )
    parquet = admin.get("/api/v1/export.parquet").content
    secrets = [two.ann, two.bob, played.secret, question["assignment"]["token"], "wrong-token-of-someone"]
    secrets += [cookie.value for one in (browser, admin) for cookie in one.cookies.jar]
    logged = "\n".join(
        f"{record.getMessage()} {vars(record)}" for record in caplog.records if "crowdrank" in record.name
    )
    assert "/join/{token}" in logged
    for secret in secrets:
        assert secret not in out + logged
        assert secret.encode() not in parquet


def test_joining_can_be_closed(start):
    played = start(settings={"joining": {"open": False}})
    page = played.client.get("/join", headers=_HTML)
    assert page.status_code == 200
    token = re.search(r"[0-9a-f]{32}", page.text)
    data = {"name": "eve", "csrf": token[0] if token else ""}
    assert played.client.post("/join", data=data).status_code == 403
    assert not played.service.projection.catch_up().annotators


def test_every_response_has_security_headers(played):
    for path in ("/healthz", "/nothing", "/api/v1/question", "/join", "/static/style.css"):
        headers = played.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]


def test_the_content_security_policy_allows_image_hosts_only(start):
    items = [
        NewItem(label="a", content={"body": "https://images.example/x.png"}),
        NewItem(label="b", content={"body": "https://evil.example;script-src/x.png", "kind": "image"}),
    ]
    played = start(items=items)
    policy = played.client.get("/join", headers=_HTML).headers["content-security-policy"]
    assert "img-src 'self' data: https://images.example;" in policy
    assert "evil" not in policy
