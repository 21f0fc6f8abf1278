"""Kill a server repeatedly under load, and compare its log with the votes that were acknowledged to clients."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
import urllib.request
from dataclasses import dataclass

from crowdrank.server.boards import build_board
from crowdrank.server.projection import Projection
from crowdrank.storage import Collection
from tests.server.load import Served, vote_for


@dataclass(frozen=True)
class Outcome:
    """The result of a crash test."""

    acknowledged: int
    stored: int
    retries: int
    errors: list[str]
    lost: list[int]
    """Acknowledged votes that are missing from the log, or stored differently."""
    boards_equal: bool

    @property
    def fine(self):
        return not self.lost and not self.errors and self.boards_equal and self.acknowledged > 0


def play(
    location, processes, rounds, *, clients=50, items=60, pause=(0.5, 1.5), postgres=None, seed=0, log=None, task="pair"
):
    """Kill the server `rounds` times while clients vote; if a database server is given, kill that one instead."""
    chance = random.Random(seed)
    with Collection.open(location) as collection:
        collection.items.add([f"item {n}" for n in range(items)], actor="test")
        people = collection.annotators.add([f"p{n}" for n in range(clients)], actor="test")
        tokens = collection.access.issue(people, actor="test")
        secret = collection.access.issue_role("admin", actor="test")
        if task != "pair":
            collection.settings.change({"task": {"type": task, "size": 3}}, actor="test")
    served = Served(location, processes, log=log).start()
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
    assert stopped in (0, -signal.SIGTERM), "the server must stop cleanly"
    return _compare(location, crowd[0], shown)


def kill_postgres(server):
    """Kill the main process of PostgreSQL, wait for its children to end, and start it again."""
    number = int((server.data / "postmaster.pid").read_text().split()[0])
    os.kill(number, signal.SIGKILL)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.1)
        try:
            server.start()
            return
        except RuntimeError:  # some of them are still there
            continue
    raise RuntimeError("PostgreSQL did not come back.")


def _answer(asked):
    """Answer by the token, so that a retry gives the same answer."""
    chance = sum(asked["token"].encode())
    if asked["task"] != "pair":
        items = [item["id"] for item in asked["items"]]
        items = items[chance % len(items) :] + items[: chance % len(items)]
        return {
            "rating": 1 + chance % 5,
            "choice": items[0],
            "ranking": items,
            "best-worst": {"best": items[0], "worst": items[-1]},
        }[asked["task"]]
    return ("left", "right", "tie", "skip", "left")[sum(asked["token"].encode()) % 5]


def _board(port, secret, patience=120.0):
    """Return the board of the running server once it no longer changes."""
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


def _compare(location, crowd_log, shown):
    with Collection.open(location) as collection:
        rows = {row["seq"]: row for row in collection.log.vote_rows()}
        tasks = Projection(collection).catch_up()
        answers = {tasks.vote_seqs[index]: vote.answer["value"] for index, vote in tasks.task_votes.items()}
        lost = [
            seq
            for seq, given in crowd_log.acknowledged.values()
            if not (answers[seq] == given if seq in answers else _matches(rows.get(seq), given))
        ]
        if len({seq for seq, _ in crowd_log.acknowledged.values()}) != len(crowd_log.acknowledged):
            lost.append(-1)  # one row for two answers
        projection = Projection(collection).catch_up()
        replayed = build_board(collection, projection, projection.board_seq).as_dict()
    return Outcome(
        acknowledged=len(crowd_log.acknowledged),
        stored=len(rows),
        retries=crowd_log.retries,
        errors=crowd_log.errors,
        lost=lost,
        boards_equal=json.loads(json.dumps(replayed)) == shown,
    )


def _matches(row, outcome):
    return row is not None and row["winner"] == row.get(outcome, outcome)
