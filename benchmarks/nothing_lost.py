"""Kill the server, or PostgreSQL, repeatedly under load: every acknowledged vote must be in the log.

python benchmarks/nothing_lost.py --rounds 20      written to benchmarks/results/nothing_lost.jsonl
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

from tests.postgres import running
from tests.server.crashes import play

_RESULT = Path(__file__).parent / "results" / "nothing_lost.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--task", default="pair", help="pair, rating, ranking, best-worst or choice")
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
            with tempfile.TemporaryDirectory() as folder:
                if what == "sqlite":
                    outcome = play(f"{folder}/c.db", processes, told.rounds, clients=told.clients, task=told.task)
                else:
                    with running() as server:
                        outcome = play(
                            server.create("collection"),
                            processes,
                            told.rounds,
                            clients=told.clients,
                            task=told.task,
                            postgres=server if what == "database" else None,
                        )
            fine &= outcome.fine
            killed = "postgresql" if what == "database" else "server"
            where = "sqlite" if what == "sqlite" else "postgresql"
            row = {"database": where, "killed": killed, "processes": processes, "rounds": told.rounds}
            row |= {} if told.task == "pair" else {"task": told.task}
            lines.append(json.dumps(row | asdict(outcome) | {"seconds": round(time.monotonic() - begin)}))
            print(lines[-1], flush=True)
    if not told.only and told.task == "pair":
        _RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
        record(Path(__file__), _RESULT.parent, _RESULT.stem)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
