"""Webhooks are signed, sent in order, retried, and not repeated after a restart."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from crowdrank.server.projection import Projection
from crowdrank.server.webhooks import WebhookSender

_SECRET = "the webhook's secret"


class Receiver:
    """A receiver of webhooks: the requests it got, and the status to answer with."""

    def __init__(self):
        self.came, self.answers = [], []

    def __call__(self, hook, body, headers):
        self.came.append((json.loads(body), body, headers))
        return self.answers.pop(0) if self.answers else 200

    @property
    def events(self):
        return [(event["event"], event["id"]) for event, _, _ in self.came]


def settings(**more):
    return {"webhooks": [{"url": "http://127.0.0.1:9/hook", "secret": _SECRET, **more}]}


@pytest.fixture
def told(start):
    played = start(settings=settings(), allow_internal_webhooks=True)
    receiver = Receiver()
    hooks = WebhookSender(played.collection, played.service.projection, send=receiver)
    hooks.retry_pause = 0.0
    return played, receiver, hooks


def test_votes_and_milestones_are_sent_in_order(told):
    played, receiver, hooks = told
    (ann,) = played.join("ann")
    played.play(ann, ["left", "tie", "skip"])
    assert hooks.send_new() == 4
    kinds = [event["event"] for event, _, _ in receiver.came]
    assert kinds == ["vote", "milestone", "vote", "vote"]
    assert [event["winner"] for event, _, _ in receiver.came if event["event"] == "vote"][1:] == ["tie", "skip"]
    assert [event["id"] for event, _, _ in receiver.came] == sorted(event["id"] for event, _, _ in receiver.came)
    assert hooks.send_new() == 0
    played.client.post("/api/v1/state", json={"state": "closed"}, headers=played.admin)
    assert hooks.send_new() == 1
    assert receiver.came[-1][0]["kind"] == "closed"


def test_events_are_signed(told):
    played, receiver, hooks = told
    played.play(played.join("ann")[0], ["left"])
    hooks.send_new()
    for _, body, headers in receiver.came:
        made = hmac.new(_SECRET.encode(), headers["X-Crowdrank-Timestamp"].encode() + b"." + body, hashlib.sha256)
        assert headers["X-Crowdrank-Signature"] == f"sha256={made.hexdigest()}"
        assert _SECRET not in str(headers) + body.decode()


def test_rejected_events_are_retried_and_resumed_later(told):
    played, receiver, hooks = told
    played.play(played.join("ann")[0], ["left", "left"])
    receiver.answers = [200, 200, 503, 0, 500]
    assert hooks.send_new() == 3
    assert [event for event, _ in receiver.events] == ["vote", "milestone", "vote", "vote", "vote", "vote"]
    received = len(receiver.came)
    played.play(played.join("bob")[0], ["left"])
    receiver.answers = [500] * 4
    assert hooks.send_new() == 0
    assert hooks.send_new() == 1
    assert len({identity for event, identity in receiver.events if event == "vote"}) == 3
    assert len(receiver.came) == received + 4 + 1


def test_a_restart_does_not_repeat_accepted_events(told):
    played, receiver, hooks = told
    played.play(played.join("ann")[0], ["left", "left"])
    hooks.send_new()
    again = WebhookSender(played.collection, Projection(played.collection).catch_up(), send=receiver)
    assert again.send_new() == 0


def test_only_subscribed_events_are_sent(start):
    played = start(settings=settings(events=["milestone"]), allow_internal_webhooks=True)
    receiver = Receiver()
    hooks = WebhookSender(played.collection, played.service.projection, send=receiver)
    played.play(played.join("ann")[0], ["left", "left"])
    hooks.send_new()
    assert [event for event, _ in receiver.events] == ["milestone"]


def test_one_process_at_a_time_sends(start, new_location, clock):
    location = new_location()
    one, other = (
        start(location=location, settings=settings(), clock=clock, allow_internal_webhooks=True),
        start(location=location, items=(), clock=clock),
    )
    (hook,) = one.service.projection.settings.webhooks
    turns = [served.service.webhooks._is_our_turn(hook) for served in (one, other, one, other)]
    assert turns == [True, False, False, False]


def test_events_are_posted_and_redirects_are_not_followed(start):
    came = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            came.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(302 if len(came) == 1 else 204)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/hook"
        hook = {"url": url, "secret": _SECRET, "events": ["vote"]}
        played = start(settings={"webhooks": [hook]}, allow_internal_webhooks=True)
        played.service.webhooks.retry_pause = 0.0
        played.play(played.join("ann")[0], ["left"])
        assert played.service.webhooks.send_new() == 1
        server.shutdown()
        thread.join()
    assert [path for path, _ in came] == ["/hook", "/hook"]


def test_webhook_secrets_are_hidden_and_kept_when_settings_are_saved(start):
    played = start(settings=settings(), allow_internal_webhooks=True)
    shown = played.client.get("/api/v1/settings", headers=played.admin).json()
    assert _SECRET not in json.dumps(shown)
    assert _SECRET not in played.client.get("/api/v1/audit", headers=played.admin).text
    played.client.patch("/api/v1/settings", json={**shown, "title": "New"}, headers=played.admin)
    assert played.collection.keys.open(played.service.projection.settings.webhooks[0].secret) == _SECRET
    assert played.service.projection.settings.title == "New"


def test_an_admin_adds_and_removes_webhooks_and_sees_the_secret_once(start):
    played = start(settings=settings(), allow_internal_webhooks=True)
    browser = played.enter(played.secret, "admin")
    csrf = re.search(r'name="csrf" value="([^"]+)"', browser.get("/admin/settings").text)[1]
    told = {"csrf": csrf, "url": "https://example.org/hook", "vote": "no", "milestone": "yes"}
    page = browser.post("/admin/settings/webhooks", data=told)
    kept, added = played.service.projection.settings.webhooks
    assert played.collection.keys.open(kept.secret) == _SECRET
    secret = played.collection.keys.open(added.secret)
    assert (added.url, added.events) == ("https://example.org/hook", ("milestone",))
    assert len(secret) >= 43
    assert page.text.count(secret) == 1
    for path in ("/admin/settings", "/admin/settings/webhooks", "/admin/audit", "/api/v1/audit", "/api/v1/settings"):
        assert secret not in browser.get(path).text, path
    again = browser.post("/admin/settings/webhooks", data=told)
    assert again.status_code == 422
    assert "is already a webhook" in again.text
    browser.post("/admin/settings/webhooks/remove", data={"csrf": csrf, "url": kept.url})
    assert played.service.projection.settings.webhooks == (added,)
    events = played.client.get("/api/v1/audit", headers=played.admin).json()["events"]
    assert [len(event["detail"]["webhooks"]) for event in events if "webhooks" in event["detail"]] == [1, 2, 1]
    assert events[0]["actor"].startswith("admin ")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"url": "ftp://example.org", "vote": "yes"}, "is not a URL"),
        ({"url": "", "vote": "yes"}, "is not a URL"),
        ({"url": "https://example.org"}, "got nothing"),
    ],
)
def test_invalid_webhooks_are_refused(played, told, words):
    browser = played.enter(played.secret, "admin")
    csrf = re.search(r'name="csrf" value="([^"]+)"', browser.get("/admin/settings").text)[1]
    answer = browser.post("/admin/settings/webhooks", data={"csrf": csrf, **told})
    assert answer.status_code == 422
    assert words in answer.text
    assert played.service.projection.settings.webhooks == ()
