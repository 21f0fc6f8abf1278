"""Kill the server, or PostgreSQL, repeatedly under load: every acknowledged vote must be in the log.

python benchmarks/nothing_lost.py --rounds 20      written to benchmarks/results/nothing_lost.jsonl
python benchmarks/nothing_lost.py --task mixed     all types of tasks, written to nothing_lost_tasks.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from machine import record

from crowdrank.storage import TASK_TYPES
from tests.postgres import running
from tests.server.crashes import Outcome, play

_FOLDER = Path(__file__).parent / "results"
_RESULTS = {"pair": _FOLDER / "nothing_lost.jsonl", "mixed": _FOLDER / "nothing_lost_tasks.jsonl"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--task", default="pair", help="pair, rating, ranking, best-worst, choice or mixed")
    parser.add_argument(
        "--only", default="", help="sqlite:1, sqlite:4, postgresql:1, postgresql:4, database:1, database:4"
    )
    told = parser.parse_args()
    fine, lines = True, []
    for what in ("sqlite", "postgresql", "database"):
        for processes in (1, 4):
            if told.only not in ("", f"{what}:{processes}"):
                continue
            begin = time.monotonic()
            outcome = kill(what, processes, told.rounds, told.clients, told.task)
            fine &= outcome.fine
            killed = "postgresql" if what == "database" else "server"
            where = "sqlite" if what == "sqlite" else "postgresql"
            row = {"database": where, "killed": killed, "processes": processes, "rounds": told.rounds}
            row |= {"task": told.task}
            lines.append(json.dumps(row | asdict(outcome) | {"seconds": round(time.monotonic() - begin)}))
            print(lines[-1], flush=True)
    if not told.only and told.task in _RESULTS:
        result = _RESULTS[told.task]
        result.write_text("\n".join(lines) + "\n", encoding="utf-8")
        record(Path(__file__), result.parent, result.stem)
    sys.exit(0 if fine else 1)


def kill(what: str, processes: int, rounds: int, clients: int, task: str) -> Outcome:
    """Play one case; "mixed" gives every type of task an equal share of the rounds, in a collection of its own."""
    if task != "mixed":
        with tempfile.TemporaryDirectory() as folder:
            if what == "sqlite":
                return play(f"{folder}/c.db", processes, rounds, clients=clients, task=task)
            with running() as server:
                killed = server if what == "database" else None
                place = server.create("collection")
                return play(place, processes, rounds, clients=clients, task=task, postgres=killed)
    shares = [rounds // len(TASK_TYPES) + (n < rounds % len(TASK_TYPES)) for n in range(len(TASK_TYPES))]
    found = [kill(what, processes, share, clients, name) for name, share in zip(TASK_TYPES, shares, strict=True)]
    return Outcome(
        acknowledged=sum(one.acknowledged for one in found),
        stored=sum(one.stored for one in found),
        retries=sum(one.retries for one in found),
        errors=[error for one in found for error in one.errors],
        lost=[seq for one in found for seq in one.lost],
        boards_equal=all(one.boards_equal for one in found),
    )


if __name__ == "__main__":
    main()
