"""Attack a local collection server: stuff the ballot box, send large bodies, crowd the board, hold connections open.

python benchmarks/attacks.py      prints one line per attack
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

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serving import Served, serving

ITEMS = "item\n" + "".join(f"item {n:02}\n" for n in range(20))
CONFIG = "board_public = true\n"
FAVOURITE = "item 19"
"""The item that everyone else ranks last."""


def join(base: str) -> httpx.Client | None:
    """Join with the public link; None if that is refused."""
    client = httpx.Client(base_url=base, timeout=60, headers={"Accept": "text/html"})
    csrf = re.search(r'name="csrf"[^>]*value="([0-9a-f]{32})"', client.get("/join").text)
    answer = client.post("/join", data={"name": "", "csrf": csrf[1] if csrf else ""})
    if answer.status_code != 303:
        return None
    found = re.search(r'data-csrf="([0-9a-f]{32})"', client.get("/judge").text)
    client.headers["X-CSRF-Token"] = found[1] if found else ""
    return client


def stuff(client: httpx.Client, votes: int, seconds: float) -> int:
    """Vote for the reversed order as fast as possible; return how many votes were accepted."""
    end, accepted = time.monotonic() + seconds, 0
    question = client.get("/api/v1/question").json()
    while accepted < votes and time.monotonic() < end and "assignment" in question:
        asked = question["assignment"]
        body = {
            "token": asked["token"],
            "outcome": "left" if asked["left"]["label"] > asked["right"]["label"] else "right",
        }
        answer = client.post("/api/v1/votes", json=body)
        if answer.status_code == 429:
            time.sleep(0.3)
        elif answer.status_code == 200:
            question, accepted = answer.json()["next"], accepted + 1
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
    """Let fifteen guests of one address vote, and set their votes aside as the organiser would."""
    guests = [guest for _ in range(15) if (guest := join(served.base)) is not None]
    with ThreadPoolExecutor(15) as pool:
        votes = sum(pool.map(lambda guest: stuff(guest, 30, seconds), guests))
    bursts = served.ask("GET", "/bursts")["bursts"]
    aside = [served.ask("POST", "/quarantine", json={"annotators": burst["annotators"]}) for burst in bursts]
    effect = served.ask("GET", "/quarantine")
    ranks = next((row for row in effect["items"] if row["item"] == FAVOURITE), {})
    return (
        f"{len(guests)} guests, {votes} votes in {seconds:g} s; warnings: {len(bursts)}; set aside: "
        f"{sum(len(one['set_aside']) for one in aside)} guests; rank of the favourite with these votes "
        f"{ranks.get('rank_with')}, without {ranks.get('rank')}"
    )


def large_body(base: str) -> None:
    with suppress(httpx.TransportError):  # the server hangs up while the body is being sent
        httpx.post(
            f"{base}/api/v1/items", content=b'{"items": [' + b'{"label": "x"},' * 2_000_000 + b"{}]}", timeout=60
        )


def read_board(base: str) -> None:
    httpx.get(f"{base}/", headers={"Accept": "text/html"}, timeout=60)


def hold_connection(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=40) as half:
        half.sendall(b"POST /api/v1/votes HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        while half.recv(4096):
            pass


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), ITEMS, CONFIG) as served:
        port = int(served.base.rpartition(":")[2])
        people = [{"name": name} for name in ("ann", "bob", "cleo")]
        tokens = [one["token"] for one in served.ask("POST", "/annotators", json={"annotators": people})["annotators"]]
        for token in tokens:
            question = served.ask("GET", "/question", token)
            for _ in range(40):
                asked = question["assignment"]
                outcome = "left" if asked["left"]["label"] < asked["right"]["label"] else "right"
                body = {"token": asked["token"], "outcome": outcome}
                question = served.ask("POST", "/votes", token, json=body)["next"]
        print(f"stuffing: {stuffing(served)}")
        wait = slowest(served, tokens[0], lambda: large_body(served.base), 4)
        print(f"4 anonymous bodies of 30 MB: others wait {wait:.2f} s")
        wait = slowest(served, tokens[0], lambda: read_board(served.base), 150)
        print(f"150 readers of the board: others wait {wait:.2f} s")
        start = time.monotonic()
        wait = slowest(served, tokens[0], lambda: hold_connection(port), 100)
        print(f"100 half-sent requests: others wait {wait:.2f} s; all ended after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
