"""Kill the server under load: every acknowledged vote is in the log once, and the board can be reproduced.

`benchmarks/nothing_lost.py --rounds 20` does the same for longer.
"""

from __future__ import annotations

import pytest

from tests.postgres import running
from tests.server.crashes import play


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "rounds"), [(1, 2), (2, 1)])
def test_killing_the_server_loses_nothing_on_sqlite(tmp_path, processes, rounds):
    outcome = play(str(tmp_path / "c.db"), processes, rounds, clients=20, items=20)
    assert outcome.fine, outcome


@pytest.mark.slow
def test_killing_the_server_loses_nothing_on_postgresql(new_location):
    outcome = play(new_location("postgresql"), 1, rounds=1, clients=20, items=20)
    assert outcome.fine, outcome


@pytest.mark.slow
def test_killing_postgresql_loses_nothing(tmp_path):
    with running() as server:
        outcome = play(server.create("collection"), 1, rounds=1, clients=20, items=20, postgres=server)
    assert outcome.fine, outcome
