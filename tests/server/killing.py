"""A server that is killed again and again under load, and what must be true of its log afterwards."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
import urllib.request
from dataclasses import dataclass

from crowdrank.server.boards import board_of
from crowdrank.server.projection import Live
from crowdrank.storage import Collection
from tests.server.crowd import Served, vote_for


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    acknowledged: int
    stored: int
    retries: int
    errors: list[str]
    lost: list[int]
    """Numbers of votes that were acknowledged, and are not in the log as they were given."""
    boards_equal: bool

    @property
    def fine(self):
        return not self.lost and not self.errors and self.boards_equal and self.acknowledged > 0


def play(place, processes, rounds, *, clients=50, items=60, pause=(0.5, 1.5), postgres=None, seed=0, log=None):
    """Kill the server `rounds` times while clients vote; where a database server is given, that one instead."""
    chance = random.Random(seed)
    with Collection.open(place) as collection:
        collection.items.add([f"item {n}" for n in range(items)], actor="test")
        people = collection.annotators.add([f"p{n}" for n in range(clients)], actor="test")
        tokens = collection.access.issue(people, actor="test")
        secret = collection.access.issue_role("admin", actor="test")
    served = Served(place, processes, log=log).start()
    going, crowd = threading.Event(), []
    going.set()
    thread = threading.Thread(
        target=lambda: crowd.append(vote_for(served.port, tokens, 0, answer=_answer, going=going.is_set, pace=0.25)[0])
    )
    thread.start()
    try:
        for _ in range(rounds):
            time.sleep(chance.uniform(*pause))
            if postgres is None:
                served.kill()
                served.start()
            else:
                kill_postgres(postgres)
        time.sleep(chance.uniform(*pause))
    except BaseException:
        served.kill()
        raise
    finally:
        going.clear()
        thread.join()
    try:
        shown = _board(served.port, secret)
    finally:
        stopped = served.stop()
    assert stopped in (0, -signal.SIGTERM), "told to stop, it must stop in peace"
    return _compared(place, crowd[0], shown)


def kill_postgres(server):
    """The process that others were started by; these follow it by themselves, and it comes back."""
    number = int((server.data / "postmaster.pid").read_text().split()[0])
    os.kill(number, signal.SIGKILL)
    for _ in range(50):
        time.sleep(0.1)
        try:
            server.start()
            return
        except RuntimeError:  # some of them are still there
            continue
    raise RuntimeError("PostgreSQL did not come back.")


def _answer(asked):
    return ("left", "right", "tie", "skip", "left")[sum(asked["token"].encode()) % 5]


def _board(port, secret, patience=120.0):
    """Of the running server, once it has caught up."""
    end, shown = time.monotonic() + patience, None
    while time.monotonic() < end:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/v1/board", headers={"Authorization": f"Bearer {secret}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            again = json.load(answer)
        if again == shown and again["votes"]:
            return again
        shown = again
        time.sleep(1.0)
    return shown


def _compared(place, told, shown):
    with Collection.open(place) as collection:
        rows = {row["seq"]: row for row in collection.log.votes()}
        lost = [seq for seq, said in told.acknowledged.values() if not _is(rows.get(seq), said)]
        if len({seq for seq, _ in told.acknowledged.values()}) != len(told.acknowledged):
            lost.append(-1)  # one row for two answers
        live = Live(collection).catch_up()
        replayed = board_of(collection, live, live.touched).as_dict()
    return Outcome(
        acknowledged=len(told.acknowledged),
        stored=len(rows),
        retries=told.retries,
        errors=told.errors,
        lost=lost,
        boards_equal=json.loads(json.dumps(replayed)) == shown,
    )


def _is(row, said):
    return row is not None and row["winner"] == row.get(said, said)
