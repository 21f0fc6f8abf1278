"""Attack a local collection server: stuff the ballot box, quickly and patiently, and starve everybody else.

python benchmarks/attacks.py      prints one line per attack, in two minutes
"""

from __future__ import annotations

import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serving import Served, serving

ITEMS = "item\n" + "".join(f"item {n:02}\n" for n in range(20))
CONFIG = "board_public = true\n"
FAVOURITE = "item 19"
"""The item that everyone else ranks last."""


def join(base: str, address: str = "203.0.113.1") -> httpx.Client | None:
    """Join with the public link; None if that is refused."""
    headers = {"Accept": "text/html", "X-Forwarded-For": address}
    client = httpx.Client(base_url=base, timeout=60, headers=headers)
    csrf = re.search(r'name="csrf"[^>]*value="([0-9a-f]{32})"', client.get("/join").text)
    answer = client.post("/join", data={"name": "", "csrf": csrf[1] if csrf else ""})
    if answer.status_code != 303:
        return None
    found = re.search(r'data-csrf="([0-9a-f]{32})"', client.get("/judge").text)
    client.headers["X-CSRF-Token"] = found[1] if found else ""
    return client


def stuff(client: httpx.Client, votes: int, seconds: float, only: str = "") -> int:
    """Vote for the reversed order as fast as possible, or for `only` one item; return how many votes were accepted."""
    end, accepted = time.monotonic() + seconds, 0
    question = client.get("/api/v1/question").json()
    while accepted < votes and time.monotonic() < end and "assignment" in question:
        asked = question["assignment"]
        labels = [asked[side]["label"] for side in ("left", "right")]
        if only and only not in labels:
            outcome = "skip"
        else:
            outcome = "left" if labels[0] == only or (not only and labels[0] > labels[1]) else "right"
        body = {"token": asked["token"], "outcome": outcome}
        answer = client.post("/api/v1/votes", json=body)
        if answer.status_code == 429:
            time.sleep(0.3)
        elif answer.status_code == 200:
            question, accepted = answer.json()["next"], accepted + (outcome != "skip")
        else:
            break
    return accepted


def slowest(served: Served, token: str, attack: Callable[[], None], clients: int) -> float:
    """Return the longest time that a question took while clients attack."""
    times = []
    with ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(attack) for _ in range(clients)]
        time.sleep(0.2)
        while not all(one.done() for one in running) or not times:
            start = time.perf_counter()
            served.ask("GET", "/question", token)
            times.append(time.perf_counter() - start)
            time.sleep(0.05)
    return max(times)


def stuffing(served: Served, seconds: float = 12.0) -> str:
    """Let fifteen guests of one address vote for the reversed order, as fast as the server takes their votes."""
    guests = [guest for _ in range(15) if (guest := join(served.base)) is not None]
    with ThreadPoolExecutor(15) as pool:
        votes = sum(pool.map(lambda guest: stuff(guest, 30, seconds), guests))
    return f"{len(guests)} guests of one address, {votes} votes in {seconds:g} s; {set_aside(served)}"


def patient_stuffing(served: Served) -> str:
    """Let twelve guests of twelve addresses vote within all limits, for one item wherever they see it."""
    guests = [guest for n in range(12) if (guest := join(served.base, f"198.51.100.{n}")) is not None]
    with ThreadPoolExecutor(12) as pool:
        votes = sum(pool.map(lambda guest: stuff(guest, 30, 45.0, only=FAVOURITE), guests))
    return f"{len(guests)} guests of as many addresses, {votes} votes; {set_aside(served)}"


def set_aside(served: Served) -> str:
    """Do what the overview offers to the organiser: set aside whoever is in a burst, or named by a test."""
    before = rank(served.settled_board())
    bursts, alarms = served.ask("GET", "/bursts")["bursts"], served.ask("GET", "/stuffing")["alarms"]
    people = {id_ for burst in bursts for id_ in burst["annotators"]}
    people |= {one["id"] for alarm in alarms for one in alarm["annotators"]}
    served.ask("POST", "/quarantine", json={"annotators": sorted(people)})
    names = {one["id"]: one["name"] for one in served.ask("GET", "/annotators")["annotators"]}
    honest = sum(names[id_].startswith("honest") for id_ in people)
    kinds = ", ".join(sorted({alarm["kind"] for alarm in alarms})) or "none"
    return (
        f"bursts: {len(bursts)}; alarms: {kinds}; set aside: {len(people) - honest} guests and {honest} honest "
        f"annotators; rank of the favourite {before} before, {rank(served.settled_board())} afterwards"
    )


def rank(board: dict[str, Any]) -> str:
    """Return the rank of the favourite; "none" if no vote about it counts."""
    return next(str(row["rank"] or "none") for row in board["items"] if row["item"] == FAVOURITE)


def wrong_secrets(served: Served, token: str) -> str:
    """Guess many tokens, then send a valid one from the same address."""
    guesses = [
        httpx.get(f"{served.base}/api/v1/question", headers={"Authorization": f"Bearer {n:022}"}).status_code
        for n in range(100)
    ]
    served.ask("GET", "/question", token)
    return f"{guesses.count(401)} refused as invalid, {guesses.count(429)} told to wait; a valid one is accepted"


def large_body(base: str) -> None:
    with suppress(httpx.TransportError):  # the server hangs up while the body is being sent
        httpx.post(
            f"{base}/api/v1/items", content=b'{"items": [' + b'{"label": "x"},' * 2_000_000 + b"{}]}", timeout=60
        )


def read_board(base: str) -> None:
    httpx.get(f"{base}/?notice=saved", headers={"Accept": "text/html"}, timeout=60)


def hold_connection(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=40) as half:
        half.sendall(b"POST /api/v1/votes HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        while half.recv(4096):
            pass


def honest_crowd(served: Served, annotators: int = 12, votes: int = 40) -> list[str]:
    """Let people vote who mostly agree on the order of the names; return their tokens."""
    people = [{"name": f"honest {n}"} for n in range(annotators)]
    tokens = [one["token"] for one in served.ask("POST", "/annotators", json={"annotators": people})["annotators"]]
    rng = np.random.default_rng(0)
    for token in tokens:
        question = served.ask("GET", "/question", token)
        for _ in range(votes):
            asked = question["assignment"]
            left, right = (int(asked[side]["label"].split()[1]) for side in ("left", "right"))
            outcome = "left" if rng.random() < 1 / (1 + np.exp((left - right) / 3)) else "right"
            question = served.ask("POST", "/votes", token, json={"token": asked["token"], "outcome": outcome})["next"]
    return tokens


def main() -> None:
    options = ["--trusted-proxies", "1"]  # so that guests can come from many addresses
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), ITEMS, CONFIG, options) as served:
        port = int(served.base.rpartition(":")[2])
        tokens = honest_crowd(served)
        print(f"stuffing: {stuffing(served)}", flush=True)
        print(f"patient stuffing: {patient_stuffing(served)}", flush=True)
        print(f"100 wrong secrets: {wrong_secrets(served, tokens[0])}", flush=True)
        wait = slowest(served, tokens[0], lambda: large_body(served.base), 4)
        print(f"4 anonymous bodies of 30 MB: others wait {wait:.2f} s")
        wait = slowest(served, tokens[0], lambda: read_board(served.base), 150)
        print(f"150 readers of the board: others wait {wait:.2f} s")
        start = time.monotonic()
        wait = slowest(served, tokens[0], lambda: hold_connection(port), 100)
        print(f"100 half-sent requests: others wait {wait:.2f} s; all ended after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
