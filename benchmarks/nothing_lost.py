"""Kill the server, or PostgreSQL, repeatedly under load: every acknowledged vote must be in the log.

Afterwards the collection is moved to the other kind of database and back: export and board must be the same.

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
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from machine import record

from crowdrank.server.boards import build_board
from crowdrank.server.files import as_jsonl
from crowdrank.server.projection import Projection
from crowdrank.storage import TASK_TYPES, Collection
from crowdrank.storage.transfer import transfer
from tests.postgres import Postgres, running
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
        for processes in (1, 4) if told.task == "pair" else (1,):
            if told.only not in ("", f"{what}:{processes}"):
                continue
            begin = time.monotonic()
            outcome, same = kill(what, processes, told.rounds, told.clients, told.task)
            fine &= outcome.fine and same
            killed = "postgresql" if what == "database" else "server"
            where = "sqlite" if what == "sqlite" else "postgresql"
            row = {"database": where, "killed": killed, "processes": processes, "rounds": told.rounds}
            row |= {"task": told.task} | asdict(outcome) | {"same_after_moving_there_and_back": same}
            lines.append(json.dumps(row | {"seconds": round(time.monotonic() - begin)}))
            print(lines[-1], flush=True)
    if not told.only and told.task in _RESULTS:
        result = _RESULTS[told.task]
        result.write_text("\n".join(lines) + "\n", encoding="utf-8")
        record(Path(__file__), result.parent, result.stem)
    sys.exit(0 if fine else 1)


def kill(what: str, processes: int, rounds: int, clients: int, task: str) -> tuple[Outcome, bool]:
    """Play one case, and say whether its collection is the same after moving it to the other database and back.

    "mixed" gives every type of task an equal share of the rounds, in a collection of its own.
    """
    if task != "mixed":
        with tempfile.TemporaryDirectory() as folder, running() as server:
            file = Path(folder, "collection.db")
            if what == "sqlite":
                outcome = play(str(file), processes, rounds, clients=clients, task=task)
                return outcome, move_there_and_back(file, server.create("there"), Path(folder, "back.db"))
            place = server.create("collection")
            killed: Postgres | None = server if what == "database" else None
            outcome = play(place, processes, rounds, clients=clients, task=task, postgres=killed)
            return outcome, move_there_and_back(place, file, server.create("back"))
    shares = [rounds // len(TASK_TYPES) + (n < rounds % len(TASK_TYPES)) for n in range(len(TASK_TYPES))]
    played = [kill(what, processes, share, clients, name) for name, share in zip(TASK_TYPES, shares, strict=True)]
    found = [outcome for outcome, _ in played]
    outcome = Outcome(
        acknowledged=sum(one.acknowledged for one in found),
        stored=sum(one.stored for one in found),
        retries=sum(one.retries for one in found),
        errors=[error for one in found for error in one.errors],
        lost=[seq for one in found for seq in one.lost],
        boards_equal=all(one.boards_equal for one in found),
    )
    return outcome, all(same for _, same in played)


def move_there_and_back(source: str | Path, other: str | Path, back: str | Path) -> bool:
    """Copy a collection to another kind of database and back; return whether exports and boards are the same."""
    transfer(source, other)
    transfer(other, back)
    return contents(source) == contents(other) == contents(back)


def contents(place: str | Path) -> tuple[str, dict[str, Any]]:
    """Return all votes as they are exported, and the board."""
    with Collection.open(place) as collection:
        projection = Projection(collection).catch_up()
        board = build_board(collection, projection, projection.board_seq)
        return "".join(as_jsonl(collection.log.vote_rows())), board.as_dict()


if __name__ == "__main__":
    main()
