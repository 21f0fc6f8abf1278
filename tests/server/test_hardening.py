"""What stopped real studies: stuffing, starvation, lock-outs and leaks. Each test failed before it was mended."""

from __future__ import annotations

import asyncio
import re
import socket

import numpy as np
import pytest
from fastapi.testclient import TestClient

from crowdrank.server import app as serving
from crowdrank.server import middleware
from crowdrank.server.webhooks import WebhookSender
from crowdrank.storage import NewItem
from tests.server.conftest import bearer


def join_openly(played, name=""):
    """Return a browser that joined with the public link, and its CSRF header; or the refusal."""
    client = TestClient(played.app, base_url="http://testserver")
    page = client.get("/join", headers={"Accept": "text/html"})
    csrf = re.search(r'name="csrf"[^>]*value="([0-9a-f]{32})"', page.text)[1]
    answer = client.post("/join", data={"name": name, "csrf": csrf}, follow_redirects=False)
    if answer.status_code != 303:
        return None, answer
    judging = client.get("/judge", headers={"Accept": "text/html"})
    return client, {"X-CSRF-Token": re.search(r'data-csrf="([0-9a-f]{32})"', judging.text)[1]}


def stuff(client, headers, votes, favourite):
    """Vote for one item, or for the right, as fast as the server allows; return how many votes were accepted."""
    question, accepted = client.get("/api/v1/question").json(), 0
    for _ in range(votes):
        if "assignment" not in question:
            break
        asked = question["assignment"]
        outcome = "left" if asked["left"]["label"] == favourite else "right"
        answer = client.post("/api/v1/votes", json={"token": asked["token"], "outcome": outcome}, headers=headers)
        if answer.status_code != 200:
            break
        question, accepted = answer.json()["next"], accepted + 1
    return accepted


ITEMS = [f"item {n}" for n in range(9)]


def test_stuffing_is_slowed_down_noticed_and_set_aside_with_one_click(start, clock):
    played = start(items=ITEMS, clock=clock)
    (ann,) = played.join("ann")
    played.play_directly(ann, [lambda a: "left" if a["left"]["label"] < a["right"]["label"] else "right"] * 30)
    honest = played.service.boards.build()
    counts = []
    for _ in range(6):
        client, headers = join_openly(played)
        counts.append(stuff(client, headers, 30, "item 8"))
    assert max(counts) <= 15, "a guest cannot cast 30 votes at once"
    assert sum(counts) >= 30
    (burst,) = played.client.get("/api/v1/bursts", headers=played.admin).json()["bursts"]
    assert (burst["participants"], burst["votes"]) == (6, sum(counts))
    assert burst["faster_than_people"]
    admin = played.enter(played.secret, "admin")
    page = admin.get("/admin", headers={"Accept": "text/html"})
    assert "Many votes from one address" in page.text
    csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)[1]
    assert admin.post("/admin/quarantine", data={"csrf": csrf, "burst": burst["key"]}).status_code == 200
    rows = played.service.boards.build().rows
    assert [(row.item, row.score) for row in rows] == [(row.item, row.score) for row in honest.rows]
    effect = played.client.get("/api/v1/quarantine", headers=played.admin).json()
    assert (len(effect["annotators"]), effect["votes"]) == (6, sum(counts))
    ranks = {row["item"]: (row["rank"], row["rank_with"]) for row in effect["items"]}
    assert ranks["item 8"][1] < ranks["item 8"][0]
    statuses = [
        vote["status"] for vote in played.client.get("/api/v1/votes?limit=1000", headers=played.admin).json()["votes"]
    ]
    assert statuses.count("quarantined") == sum(counts)
    assert played.client.get("/api/v1/bursts", headers=played.admin).json() == {"bursts": []}
    played.client.post("/api/v1/quarantine/release", json={}, headers=played.admin)
    assert played.service.projection.n_counted == 30 + sum(counts)


def test_a_classroom_joins_and_votes_from_one_address(start, clock):
    played = start(items=ITEMS, clock=clock)
    for _ in range(30):
        client, headers = join_openly(played)
        assert client is not None
        assert stuff(client, headers, 2, "item 0") == 2
        clock.pass_seconds(1)


def test_the_number_of_people_per_address_is_limited(start, clock):
    played = start(clock=clock, settings={"joining": {"guests_per_address": 3}})
    assert all(join_openly(played)[0] for _ in range(3))
    _, refused = join_openly(played)
    assert refused.status_code == 429
    assert "from your network" in refused.text
    clock.pass_seconds(1201)
    played.service.limiter._blocked_until.clear()
    assert join_openly(played)[0]


def test_votes_await_approval_if_the_organiser_wants_it(start):
    played = start(settings={"joining": {"approval": True}})
    client, headers = join_openly(played, "eve")
    assert stuff(client, headers, 3, "a") == 3
    projection = played.service.projection.catch_up()
    assert (len(projection.votes), projection.n_counted) == (3, 0)
    (eve,) = projection.annotators.values()
    played.client.patch(f"/api/v1/annotators/{eve.id}", json={"excluded": False}, headers=played.admin)
    assert played.service.projection.n_counted == 3


def test_skips_alone_do_not_earn_the_completion_code(start):
    joining = {"completion_code": "C0DE", "completion_url": "https://panel.example/?cc={code}"}
    played = start(items=ITEMS, settings={"joining": joining, "budget": {"per_annotator": 10}})
    lazy, honest = played.join("lazy", "honest")
    said = played.play(lazy, ["skip"] * 10)
    assert (said["completion_code"], said["completion_url"], said["completion_withheld"]) == (None, None, True)
    assert "no completion code yet" in played.enter(lazy).get("/finished", headers={"Accept": "text/html"}).text
    said = played.play(honest, ["skip"] * 4 + ["left"] * 6)
    assert (said["completion_code"], said["completion_withheld"]) == ("C0DE", False)


def test_large_bodies_are_not_parsed_before_authentication(played):
    body = b'{"items": [' + b'{"label": "x"},' * 20_000 + b'{"label": "y"}]}'
    assert played.client.post("/api/v1/items", content=body).status_code == 401
    wrong = played.client.post("/api/v1/items", content=body, headers=bearer("wrong"))
    assert wrong.status_code == 401
    assert "Only admins may send this much" in wrong.text


def test_cookies_of_two_servers_on_one_host_do_not_clash(start, new_location):
    one, other = start(), start(location=new_location())
    shared = one.enter(one.secret, "admin")
    second = other.enter(other.secret, "admin")
    assert not set(shared.cookies.keys()) & set(second.cookies.keys())


@pytest.mark.parametrize(
    "sent", [b"POST /api/v1/votes HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{", b"GET / HT"]
)
def test_half_sent_requests_are_ended(start, monkeypatch, sent):
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(serving, "HEADER_SECONDS", 0.3)

    async def main():
        server, task = await _serve(start().app)
        reader, writer = await _connect(server)
        writer.write(sent)
        said = await asyncio.wait_for(reader.read(), 25)
        writer.close()
        server.should_exit = True
        await task
        return said

    said = asyncio.run(main())
    assert said == b"" or (said.startswith(b"HTTP/1.1 408") and b"connection: close" in said.lower())


@pytest.mark.parametrize("path", [b"/api/v1/votes", b"/join"])
def test_a_server_that_stops_does_not_wait_for_half_sent_requests(start, path):
    async def main():
        server, task = await _serve(start().app)
        idle = await _connect(server)
        idle[1].write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await idle[0].readline()).startswith(b"HTTP/1.1 200")
        _reader, writer = await _connect(server)
        writer.write(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
        await asyncio.sleep(0.1)
        server.should_exit = True
        await asyncio.wait_for(task, 15)
        for stream in (idle[1], writer):
            stream.close()

    asyncio.run(main())


async def _serve(app):
    import uvicorn

    config = uvicorn.Config(app, port=0, log_config=None, http=serving.TimedProtocol, lifespan="off")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    return server, task


async def _connect(server):
    return await asyncio.open_connection("127.0.0.1", server.servers[0].sockets[0].getsockname()[1])


def test_a_dead_webhook_delays_nobody_and_nothing_is_sent_twice(start):
    hooks = [{"url": f"https://{name}.example/hook", "secret": "s", "events": ["vote"]} for name in ("dead", "alive")]
    played = start(settings={"webhooks": hooks})
    came = []

    def send(hook, body, headers):
        came.append((hook.url, body))
        return 500 if "dead" in hook.url else 200

    sender = WebhookSender(played.collection, played.service.projection, send=send)
    sender.retry_pause = 0.0
    (ann,) = played.join("ann")
    for _ in range(3):
        played.play(ann, ["left"])
        sender.send_new()
    alive = [body for url, body in came if "alive" in url]
    assert len(alive) == len(set(alive)) == 3


def test_webhook_secrets_are_not_in_the_database(start, tmp_path):
    secret = "the secret of the webhook"
    played = start(settings={"webhooks": [{"url": "https://example.org/hook", "secret": secret}]})
    played.collection.close()
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_labels_are_not_sent_to_annotators(start):
    items = [
        NewItem(label=f"gpt-{n}", content={"body": body})
        for n, body in enumerate(("An answer.", "https://images.example/x.png"))
    ]
    played = start(items=items)
    (ann,) = played.join("ann")
    assert "gpt-" not in played.client.get("/api/v1/question", headers=bearer(ann)).text
    assert "gpt-" not in played.enter(ann).get("/judge", headers={"Accept": "text/html"}).text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"title": " "}, "title must not be empty"),
        ({"question": "x" * 501}, "at most 500 characters"),
        ({"joining": {"completion_url": "javascript:alert(1)"}}, "completion_url must start with"),
        ({"gold": [["a", "nothing"]]}, "'nothing' is not an item"),
        ({"webhooks": [{"url": "http://169.254.169.254/latest", "secret": "s"}]}, "local network"),
        ({"webhooks": [{"url": "http://localhost:5432/", "secret": "s"}]}, "local network"),
        ({"webhooks": [{"url": "http://127.1/", "secret": "s"}]}, "local network"),
        ({"webhooks": [{"url": "http://[::1]/", "secret": "s"}]}, "local network"),
    ],
)
def test_settings_that_cannot_work_are_refused(played, given, words):
    answer = played.client.patch("/api/v1/settings", json=given, headers=played.admin)
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]
    assert played.client.patch("/api/v1/settings", json={"gold": [["a", "b"]]}, headers=played.admin).status_code == 200


def test_webhooks_are_not_sent_to_names_that_lead_to_the_local_network(monkeypatch):
    from crowdrank.server.settings import is_internal

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(0, 0, 0, "", ("10.0.0.1", 0))])
    assert is_internal("https://rebound.example/", resolve=True)
    assert not is_internal("https://rebound.example/")


def test_a_database_that_cannot_be_written_is_unhealthy(played):
    with played.collection._database._temporary.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
        connection.rollback()
    answer = played.client.get("/healthz")
    assert answer.status_code == 503
    assert answer.json()["status"] == "unhealthy"
    assert "cannot be written" in answer.json()["message"]


def test_readers_of_the_board_do_not_take_all_threads(start, monkeypatch):
    played = start(settings={"board_public": True})
    played.play(played.join("ann")[0], ["left", "left"])
    boards = played.service.boards
    monkeypatch.setattr(boards, "_start", lambda: None)
    for _ in range(8):
        assert boards._waiting.acquire(blocking=False)
    waited = []
    monkeypatch.setattr(boards._built, "wait_for", lambda *arguments: waited.append(arguments))
    assert played.client.get("/", headers={"Accept": "text/html"}).status_code == 200
    assert waited == []


def play_favourite(played, name, votes, favourite, clock, only_it=False):
    """Vote for one item wherever it appears, and else for the left; or skip all questions that it is not in."""
    (token,) = played.join(name)

    def answer(asked):
        clock.pass_seconds(3)
        for side in ("left", "right"):
            if asked[side]["label"] == favourite:
                return side
        return "skip" if only_it else "left"

    played.play_directly(token, [answer] * votes)
    return played._ids[token]


def played_by(played, annotators):
    """How many questions were answered, not skipped, by these annotators."""
    return sum(played.service.projection.annotators[id_].decided for id_ in annotators)


def honest_study(played, clock, annotators=14, votes=36):
    """Annotators who answer mostly by the names of the items, one after another."""
    rng = np.random.default_rng(3)

    def answer(asked):
        clock.pass_seconds(4)
        margin = (int(asked["right"]["label"][-1]) - int(asked["left"]["label"][-1])) / 2
        return "left" if rng.random() < 1 / (1 + np.exp(-margin)) else "right"

    for token in played.join(*(f"honest {n}" for n in range(annotators))):
        played.play_directly(token, [answer] * votes)
        clock.pass_seconds(600)


@pytest.mark.parametrize("only_it", [True, False], ids=["skips all else", "answers everything"])
def test_a_campaign_is_found_on_the_votes_and_set_aside_with_one_click(start, clock, only_it):
    played = start(items=ITEMS, clock=clock)
    played.service.boards.latest = lambda *_: played.service.boards.build()  # however long it takes
    honest_study(played, clock)
    api = played.client.get("/api/v1/stuffing", headers=played.admin).json()
    assert (api["alarms"], api["skipped"]) == ([], {})
    honest = played.service.boards.build()
    fresh = [play_favourite(played, f"fresh {n}", 60, "item 8", clock, only_it) for n in range(10)]
    alarms = played.client.get("/api/v1/stuffing", headers=played.admin).json()["alarms"]
    kind = "campaign" if only_it else "newcomers"
    (alarm,) = [one for one in alarms if (one["kind"], one["item"]) == (kind, "item 8")]
    found, counted = [one["id"] for one in alarm["annotators"]], alarm["votes_of_annotators"]
    assert set(found) >= set(fresh)
    assert len(found) <= len(fresh) + (not only_it), "whoever came just before cannot always be told apart"
    admin = played.enter(played.secret, "admin")
    page = admin.get("/admin", headers={"Accept": "text/html"}).text
    assert f"Set all {counted} votes of these {len(found)} annotators aside" in page
    assert "voted for item 8" in page
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)[1]
    form = {"csrf": csrf, "annotators": ",".join(map(str, found)), "reason": f"stuffing ({kind}): item 8"}
    shown = admin.post("/admin/quarantine", data=form, headers={"Accept": "text/html"}).text
    assert "Votes set aside" in shown
    assert "Tests for vote stuffing: no alarm." in shown
    assert played.service.projection.n_counted == 14 * 36 + played_by(played, fresh) - counted
    assert played.service.boards.build().rows[-1].item == honest.rows[-1].item == "item 8"
    assert admin.post("/admin/quarantine", data=form, headers={"Accept": "text/html"}).status_code == 404
    assert admin.post("/admin/quarantine", data=form | {"annotators": "1,x"}).status_code == 422
    assert "stuffing" in admin.get("/admin/audit", headers={"Accept": "text/html"}).text


def test_what_cannot_be_tested_for_stuffing_is_said(start):
    played = start(items=ITEMS, settings={"task": {"type": "choice"}})
    assert played.client.get("/api/v1/stuffing").status_code == 401
    found = played.client.get("/api/v1/stuffing", headers=played.admin).json()
    assert (found["alarms"], found["skipped"]) == ([], {"all": "there are no votes yet"})
    (ann,) = played.join("ann")
    played.play(ann, [lambda asked: "skip"])
    page = played.enter(played.secret, "admin").get("/admin/annotators", headers={"Accept": "text/html"})
    assert "Not tested (there are no votes yet)." in page.text
