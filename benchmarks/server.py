"""Load test of the collection server: simulated annotators, over loopback, in a separate process.

    python benchmarks/server.py                 # SQLite and PostgreSQL, one process and two: less than four minutes
    python benchmarks/server.py --quick         # SQLite alone, printed only

Each annotator sends an answer and receives the next question in the response. Three loads follow each other on one
server: fifty annotators together send `--rate` answers per second, independently of each other; the same fifty answer
immediately, which measures the maximum throughput; and two hundred people answer immediately. (By Little's law, the
mean waiting time of the last two is the number of annotators divided by the throughput.)
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.postgres import running
from tests.server.load import Served, vote_for

HERE = Path(__file__).parent
WARM_UP = 2.0
PEOPLE, CROWD = 50, 200


def main() -> None:
    told = _arguments()
    rows = []
    with ExitStack() as stack:
        postgres = None
        for kind, processes in _cases(told):
            if kind == "postgresql" and postgres is None:
                postgres = stack.enter_context(running(tempfile.gettempdir()))
            rows += measure(kind, processes, told, postgres)
    chosen = [choice(items) for items in (1_000, 10_000)]
    for one in chosen:
        print(json.dumps(one), flush=True)
    if not told.quick:
        write(rows, chosen, told)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--items", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=300.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="")
    return parser.parse_args()


def _cases(told: argparse.Namespace) -> list[tuple[str, int]]:
    if told.quick:
        return [("sqlite", 1)]
    cases = [(kind, processes) for kind in ("sqlite", "postgresql") for processes in (1, 2)]
    return [case for case in cases if told.only in ("", f"{case[0]}:{case[1]}", case[0])]


def measure(kind: str, processes: int, told: argparse.Namespace, postgres: Any) -> list[dict[str, Any]]:
    """One server, from nothing, under one load after another."""
    from crowdrank.storage import Collection

    loads = [
        (f"{PEOPLE} people, {told.rate:g} votes/s", PEOPLE, PEOPLE / told.rate),
        (f"{PEOPLE} people, at once", PEOPLE, 0.0),
        (f"{CROWD} people, at once", CROWD, 0.0),
    ]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/c.db" if kind == "sqlite" else postgres.create(f"bench{time.time_ns()}")
        with Collection.open(place) as collection:
            collection.items.add([f"item {n}" for n in range(told.items)], actor="bench")
            people = collection.annotators.add([f"p{n}" for n in range(CROWD)], actor="bench")
            tokens = collection.access.issue(people, actor="bench")
        served = Served(place, processes).start()
        try:
            for name, count, pace in loads:
                _crowd(served.port, tokens[:count], WARM_UP, pace)  # compiles, connects, fills what is cached
                before = _cpu(served)
                crowd = _crowd(served.port, tokens[:count], told.seconds, pace)
                used = sum(after - before.get(pid, 0.0) for pid, after in _cpu(served).items())
                crowd |= {"server_cpu": round(used / crowd["seconds"], 2)}
                crowd |= {"cpu_ms_per_vote": round(1e3 * used / crowd["votes"], 2)}
                rows.append({"database": kind, "processes": processes, "load": name, **crowd})
                print(json.dumps(rows[-1]), flush=True)
        finally:
            served.stop()
    return rows


def _crowd(port: int, tokens: list[str], seconds: float, pace: float) -> dict[str, Any]:
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_vote, (port, tokens, seconds, pace))


def _vote(port: int, tokens: list[str], seconds: float, pace: float) -> dict[str, Any]:
    told, took = vote_for(port, tokens, seconds, answer=_answer, pace=pace)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    waits = np.array(told.seconds) * 1e3
    return {
        "votes": len(waits),
        "seconds": round(took, 2),
        "votes_per_second": round(len(waits) / took, 1),
        "p50_ms": round(float(np.quantile(waits, 0.5)), 2),
        "p99_ms": round(float(np.quantile(waits, 0.99)), 2),
        "max_ms": round(float(waits.max()), 1),
        "errors": len(told.errors),
        "retries": told.retries,
        "said": told.errors[:3],
        "crowd_cpu": round((usage.ru_utime + usage.ru_stime) / took, 2),
    }


def _answer(asked: dict[str, Any]) -> str:
    """The larger number wins, mostly."""
    left, right = asked["left"]["id"], asked["right"]["id"]
    return "left" if (left > right) == (hash(asked["token"]) % 5 > 0) else "right"


def _cpu(served: Served) -> dict[int, float]:
    """Seconds that each process of the server has worked."""
    import os

    found = {}
    for pid in served.members():
        try:
            parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[pid] = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
    return found


def choice(items: int, votes: int = 300, times: int = 300) -> dict[str, Any]:
    """How long the choice itself takes, beside nothing else."""
    from crowdrank.server.choice import choose_pair
    from crowdrank.server.projection import Projection
    from crowdrank.storage import Collection

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, Collection.open(f"{folder}/c.db", durable=False) as collection:
        collection.items.add([f"item {n}" for n in range(items)], actor="bench")
        people = collection.annotators.add([f"p{n}" for n in range(50)], actor="bench")
        projection = Projection(collection).catch_up()
        taken = []
        for n in range(votes + times):
            who = people[int(rng.integers(50))]
            begin = time.perf_counter()
            chosen = choose_pair(
                projection, projection.annotators[who], projection.pending(time.time_ns() // 1000), rng
            )
            if n >= votes:
                taken.append(time.perf_counter() - begin)
            asked = collection.assignments.create(who, chosen.left, chosen.right, policy="x", probability=0.5)
            if n % 10:
                collection.votes.record(asked.token, "left", annotator=who)
            projection.catch_up()
            projection.beliefs  # noqa: B018  folding is not part of the choice
    waits = np.array(taken) * 1e3
    p50 = round(float(np.median(waits)), 2)
    p99 = round(float(np.quantile(waits, 0.99)), 2)
    return {"items": items, "choice_p50_ms": p50, "choice_p99_ms": p99}


def write(rows: list[dict[str, Any]], chosen: list[dict[str, Any]], told: argparse.Namespace) -> None:
    import machine

    names = ["database", "processes", "load", "votes_per_second", "p50_ms", "p99_ms", "max_ms", "errors", "retries"]
    names += ["cpu_ms_per_vote", "server_cpu", "crowd_cpu"]
    about = (
        f"{told.items:,} items, {told.seconds:g} s per load; one server per row of three. The crowd runs on the same "
        "cores, and so does PostgreSQL, whose processor time is not counted. Made by `benchmarks/server.py`."
    )
    lines = ["# The collection server under load", "", about, "", machine.sentence(machine.describe()), ""]
    lines += ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    lines += [""] + [
        f"Choosing among {one['items']:,} items takes {one['choice_p50_ms']} ms (p99 {one['choice_p99_ms']} ms)."
        for one in chosen
    ]
    (HERE / "results" / "server.md").write_text("\n".join(lines) + "\n")
    machine.record(Path(__file__), HERE / "results", "server")


if __name__ == "__main__":
    main()
