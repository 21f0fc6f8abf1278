"""What an attacker tries: each hazard that broke others is a test."""

from __future__ import annotations

import json
import logging
import re

import pytest
from fastapi.testclient import TestClient

from crowdrank.server import rate_limits
from crowdrank.server.authentication import ANNOTATOR_COOKIE
from crowdrank.storage import NewItem
from tests.server.conftest import bearer

_HTML = {"Accept": "text/html"}
_EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}'


def form_of(page):
    """The token that a page's forms hold."""
    return re.search(r'name="csrf"[^>]*value="([0-9a-f]{32})"', page.text)[1]


def csrf_of(browser, path="/judge"):
    page = browser.get(path, headers=_HTML)
    assert page.status_code == 200, page.text
    return re.search(r"[0-9a-f]{32}", page.text)[0]


def test_a_link_is_exchanged_for_a_cookie_and_leaves_the_address(played, two):
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


def test_the_admin_link_works_the_same_way_and_annotators_do_not_pass(played, two):
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


def test_a_revoked_link_ends_its_sessions_too(played, two):
    browser = played.enter(two.ann)
    assert browser.get("/api/v1/question").status_code == 200
    number = played.service.live.catch_up().people
    (ann,) = [n for n, person in number.items() if person.name == "ann"]
    played.client.patch(f"/api/v1/annotators/{ann}", json={"revoke": True}, headers=played.admin)
    assert browser.get("/api/v1/question").status_code == 401
    assert played.client.get("/api/v1/question", headers=bearer(two.ann)).status_code == 401
    fresh = played.client.patch(f"/api/v1/annotators/{ann}", json={"reissue": True}, headers=played.admin).json()[
        "token"
    ]
    assert played.question(fresh)["progress"]["done"] == 0


def test_who_was_shut_out_by_another_process_is_not_let_in_by_this_one(start, new_place):
    place = new_place()
    here, elsewhere = start(place=place), start(place=place, items=())
    (token,) = here.join("ann")
    question = here.question(token)
    (ann,) = here.service.live.people
    elsewhere.collection.access.revoke_all(ann, actor="test")
    here.vote(token, question, status=401)
    assert here.client.get("/api/v1/question", headers=bearer(token)).status_code == 401
    assert here.service.live.catch_up().decided == 0


def test_a_question_of_one_cannot_be_answered_with_the_cookie_of_another(played, two):
    question = played.question(two.ann)
    bob = played.enter(two.bob)
    body = {"token": question["assignment"]["token"], "outcome": "left"}
    answer = bob.post("/api/v1/votes", json=body, headers={"X-CSRF-Token": csrf_of(bob)})
    assert answer.status_code == 404
    assert played.service.live.catch_up().decided == 0


def test_the_form_token_of_one_session_is_worth_nothing_in_another(played, two):
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
def test_a_cookie_alone_changes_nothing(played, two, headers):
    browser = played.enter(two.ann)
    good = csrf_of(browser)
    told = {key: (good if value == "good" else value).encode("utf-8") for key, value in headers.items()}
    body = {"token": browser.get("/api/v1/question").json()["assignment"]["token"], "outcome": "left"}
    assert browser.post("/api/v1/votes", json=body, headers=told).status_code == 403
    assert browser.post("/api/v1/undo", headers=told).status_code == 403
    assert played.service.live.catch_up().decided == 0
    assert (
        browser.post(
            "/api/v1/votes", json=body, headers={"X-CSRF-Token": good, "Origin": "http://testserver"}
        ).status_code
        == 200
    )


def test_every_form_of_the_organiser_wants_its_token(played, two):
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
        "/admin/leave",
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


def test_joining_wants_the_form_that_was_shown(played):
    assert played.client.post("/join", data={"name": "eve"}).status_code == 403
    page = played.client.get("/join", headers=_HTML)
    answer = played.client.post("/join", data={"name": "eve", "csrf": form_of(page)}, follow_redirects=False)
    assert answer.status_code == 303
    assert played.client.get("/api/v1/question").json()["progress"]["done"] == 0


def test_no_field_of_an_item_or_a_name_gets_onto_a_page_as_html(start):
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
    (number,) = played.service.live.people
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
def test_pictures_come_from_one_folder_only(start, tmp_path, name):
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


def test_static_files_do_not_lead_out_either(played):
    for name in ("../app.py", "..%2fapp.py", "%2e%2e%2fapp.py"):
        assert played.client.get(f"/static/{name}").status_code == 404


def test_uploads_are_pictures_of_the_type_they_claim(start, tmp_path):
    played = start(media=tmp_path / "media")

    def send(name, content):
        return played.client.post("/api/v1/media", files={"file": (name, content)}, headers=played.admin)

    assert send("a.svg", b"<svg/>").status_code == 422
    assert send("a.png", b"<script>alert(1)</script>").status_code == 422
    answer = send("../../a b.png", b"\x89PNG\r\n\x1a\n" + b"0" * 50)
    assert re.fullmatch(r"a-b-[0-9a-f]{10}\.png", answer.json()["body"])
    assert [path.name for path in (tmp_path / "media").iterdir()] == [answer.json()["body"]]


def test_huge_bodies_are_refused_announced_or_not(played, two):
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


def test_deeply_nested_or_odd_json_is_refused(played, two):
    for content in (b"[" * 100_000, b'{"token": "\\ud800", "outcome": "left"}', b"\xff\xfe", b"NaN"):
        answer = played.client.post("/api/v1/votes", content=content, headers=bearer(two.ann))
        assert answer.status_code in (400, 404, 422), answer.text


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_guessing_is_slowed_down_whichever_process_is_asked(start, new_place, clock, kind):
    place = new_place(kind)
    one, other = start(place=place, clock=clock), start(place=place, items=(), clock=clock)
    statuses = []
    for n in range(rate_limits.ATTEMPTS.times + 10):
        client = (one, other)[n % 2].client
        statuses.append(client.get("/api/v1/items", headers=bearer(f"guess-{n}")).status_code)
    assert statuses.count(401) <= rate_limits.ATTEMPTS.times + 1
    assert statuses[-1] == 429
    for served in (one, other):
        assert served.client.get("/api/v1/items", headers=bearer(f"one-more-{kind}")).status_code == 429
        assert served.client.get(f"/admin/{one.secret}", follow_redirects=False).status_code == 429
        assert "Retry-After" in served.client.get("/join/guess").headers


def test_claims_of_forwarders_do_not_help_to_guess(start, clock):
    played = start(clock=clock)
    statuses = [
        played.client.get("/admin/guess", headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code
        for n in range(rate_limits.ATTEMPTS.times + 5)
    ]
    assert statuses[-1] == 429


def test_a_trusted_proxy_is_believed_for_its_own_word_only(start):
    played = start(trusted_proxies=1)
    request = {"type": "http", "client": ("10.0.0.9", 1), "headers": []}

    def address(said):
        from starlette.requests import Request

        return played.service.door.address(Request({**request, "headers": [(b"x-forwarded-for", said.encode())]}))

    assert address("6.6.6.6, 203.0.113.5") == "203.0.113.5"
    assert address("203.0.113.5") == "203.0.113.5"
    assert address("nonsense") == "10.0.0.9"


def test_one_annotator_cannot_flood_even_over_two_processes(start, new_place, clock, monkeypatch):
    monkeypatch.setattr("crowdrank.server.authentication.ANNOTATOR", rate_limits.Limit(20, 60, 5))
    place = new_place()
    one, other = start(place=place, clock=clock), start(place=place, items=(), clock=clock)
    (ann,) = one.join("ann")
    statuses = [(one, other)[n % 2].client.get("/api/v1/question", headers=bearer(ann)).status_code for n in range(40)]
    assert statuses.count(200) == 20
    assert statuses[-1] == 429


def test_spreadsheets_find_no_formula(start):
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


def test_what_goes_wrong_is_told_without_how(played, two, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("the secret reason")

    monkeypatch.setattr(played.service.desk, "_ask", fail)
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


def test_tokens_are_in_no_log_and_no_export(played, two, caplog):
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


def test_a_panels_id_is_no_proof_of_who_comes(played):
    arrival = {"PROLIFIC_PID": "p1", "STUDY_ID": "s", "SESSION_ID": "secret-session"}

    def arrive(parameters, browser=None):
        browser = browser or TestClient(played.app, base_url="http://testserver")
        page = browser.get("/join", params=parameters, headers=_HTML)
        answer = browser.post("/join", data={**parameters, "csrf": form_of(page)}, follow_redirects=False)
        return browser, answer.status_code

    first, status = arrive(arrival)
    assert status == 303
    person = next(iter(played.service.live.catch_up().people.values()))
    assert (person.name, person.about["panel"]) == ("p1", arrival)
    assert arrive({**arrival, "SESSION_ID": "another"})[1] == 409
    assert arrive({"PROLIFIC_PID": "p1"})[1] == 409
    assert arrive(arrival)[1] == 303
    assert arrive({"PROLIFIC_PID": "p1"}, first)[1] == 303
    assert len(played.service.live.catch_up().people) == 1
    assert first.cookies.get(ANNOTATOR_COOKIE)


def test_joining_can_be_closed(start):
    played = start(settings={"joining": {"open": False}})
    page = played.client.get("/join", headers=_HTML)
    assert page.status_code == 200
    token = re.search(r"[0-9a-f]{32}", page.text)
    data = {"name": "eve", "csrf": token[0] if token else ""}
    assert played.client.post("/join", data=data).status_code == 403
    assert not played.service.live.catch_up().people


def test_every_response_carries_its_headers(played):
    for path in ("/healthz", "/nothing", "/api/v1/question", "/join", "/static/style.css"):
        headers = played.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]


def test_pictures_from_elsewhere_open_the_policy_for_their_host_alone(start):
    items = [
        NewItem(label="a", content={"body": "https://images.example/x.png"}),
        NewItem(label="b", content={"body": "https://evil.example;script-src/x.png", "kind": "image"}),
    ]
    played = start(items=items)
    policy = played.client.get("/join", headers=_HTML).headers["content-security-policy"]
    assert "img-src 'self' data: https://images.example;" in policy
    assert "evil" not in policy
