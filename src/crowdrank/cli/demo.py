"""crowdrank demo: a collection server with simulated annotators who vote live."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.request import Request, urlopen

import typer

from crowdrank.cli.output import require_extra

if TYPE_CHECKING:
    import numpy as np

    from crowdrank.simulation.crowd import Respondents
    from crowdrank.storage import Collection

RIVERS = {
    "Amazon": 6400,
    "Amur": 2824,
    "Congo": 4700,
    "Danube": 2850,
    "Ganges": 2525,
    "Loire": 1006,
    "Mekong": 4350,
    "Mississippi": 3766,
    "Niger": 4184,
    "Nile": 6650,
    "Rhine": 1233,
    "Thames": 346,
    "Volga": 3530,
    "Zambezi": 2574,
}
"""Rivers and their lengths in kilometres."""
ANNOTATORS = {
    "Ada": 0.97,
    "Ben": 0.95,
    "Cleo": 0.95,
    "Dora": 0.92,
    "Emil": 0.9,
    "Finn, who guesses half of the time": 0.75,
    "Gus, who tosses a coin": 0.5,
    "Hugo, who says the opposite": 0.04,
}
"""Simulated annotators and their probability of a correct answer."""
_SETTINGS = {
    "title": "A demonstration",
    "question": "Which river is longer?",
    "board_public": True,
    "instructions": "Simulated annotators answer the same questions while you watch. Join them if you like.",
    "budget": {"decision": "top 3"},
}
# Standard deviation of the true scores: the larger, the easier the comparisons.
_SCALE = 2.0
_VOTES_PER_REPORT = 25
_MAX_WAIT = 30.0
"""Seconds to wait for the last leaderboard."""


def demo(
    votes: Annotated[
        int | None, typer.Option(help="Stop after this number of votes. Default: run until Ctrl+C.", min=1)
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65_535)] = 8000,
    rate: Annotated[float, typer.Option(help="Votes per second.", min=0.1, max=1000.0)] = 4.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulated annotators.", min=0)] = 0,
) -> None:
    """Start a demonstration server where simulated annotators vote live."""
    require_extra("fastapi", "sqlalchemy", "uvicorn")
    import numpy as np

    from crowdrank.server.app import check_port
    from crowdrank.storage import Collection

    check_port("127.0.0.1", port)
    base = f"http://localhost:{port}"
    with tempfile.TemporaryDirectory(prefix="crowdrank-demo-") as folder:
        with Collection.open(Path(folder) / "demo.db", durable=False) as collection:
            secret, tokens = _prepare(collection)
        with _served(Path(folder) / "demo.db", port):
            typer.echo(
                f"{len(RIVERS)} rivers, {len(ANNOTATORS)} simulated annotators. Open these pages while they vote:"
            )
            typer.echo(f"  leaderboard: {base}/")
            typer.echo(f"  admin:       {base}/admin/{secret}")
            typer.echo(f"  judge:       {base}/join")
            typer.echo("Stop with Ctrl+C.\n")
            try:
                _vote(base, secret, tokens, votes, rate, np.random.default_rng(seed))
            except KeyboardInterrupt:
                typer.echo("\nStopped.")


def _prepare(collection: Collection) -> tuple[str, dict[str, str]]:
    """Set up the collection; returns the admin's secret and the token of each annotator."""
    from crowdrank.storage import NewItem

    collection.items.add([NewItem(label=name, content={"body": name}) for name in RIVERS], actor="demo")
    collection.settings.change(_SETTINGS, actor="demo")
    numbers = collection.annotators.add(list(ANNOTATORS), actor="demo")
    tokens = collection.access.issue(numbers, actor="demo")
    return collection.access.issue_role("admin", actor="demo"), dict(zip(ANNOTATORS, tokens, strict=True))


@contextmanager
def _served(database: Path, port: int) -> Iterator[None]:
    """Run the server in a thread."""
    import uvicorn

    from crowdrank.server.app import create_app
    from crowdrank.server.service import Options

    app = create_app(database, Options(durable=False))
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="server", daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.05)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=10)


def _vote(
    base: str, secret: str, tokens: dict[str, str], votes: int | None, rate: float, rng: np.random.Generator
) -> None:
    crowd, done = _crowd(), 0
    open_questions = {name: _call(base, "question", token) for name, token in tokens.items()}
    while open_questions and (votes is None or done < votes):
        name = str(rng.choice(list(open_questions)))
        assignment = open_questions[name].get("assignment")
        if assignment is None:
            del open_questions[name]
            continue
        left, right = assignment["left"]["label"], assignment["right"]["label"]
        outcome = "left" if crowd.winner(left, right, name, rng) == left else "right"
        answer = {"token": assignment["token"], "outcome": outcome, "response_ms": int(rng.lognormal(8.3, 0.5))}
        open_questions[name] = _call(base, "votes", tokens[name], answer)["next"]
        done += 1
        if done == votes:
            typer.echo(_report(_final_board(base, secret, done)))
        elif done % _VOTES_PER_REPORT == 0:
            typer.echo(_report(_call(base, "board", secret)))
        time.sleep(rng.exponential(1 / rate))
    if votes is None:
        typer.echo("All questions are answered. The server keeps running; stop it with Ctrl+C.")
        while True:
            time.sleep(3600)


def _crowd() -> Respondents:
    import numpy as np

    from crowdrank.simulation.crowd import Respondents

    lengths = np.log(list(RIVERS.values()))
    truth = _SCALE * (lengths - lengths.mean()) / lengths.std()
    return Respondents(tuple(RIVERS), tuple(ANNOTATORS), truth, np.array(list(ANNOTATORS.values())), "logistic")


def _final_board(base: str, secret: str, votes: int) -> dict[str, Any]:
    """Wait until the board counts all votes: it is built in the background."""
    end = time.monotonic() + _MAX_WAIT
    while True:
        board: dict[str, Any] = _call(base, "board", secret)
        if board["votes"] >= votes or time.monotonic() > end:
            return board
        time.sleep(0.1)


def _report(board: dict[str, Any]) -> str:
    """One line on the leaderboard: its correlation with the truth, the top three, and the status of the decision."""
    from crowdrank.evaluation import kendall_correlation

    rows = [row for row in board["items"] if row["score"] is not None]
    if len(rows) < 2:
        return f"{board['votes']:>5} votes"
    correlation = kendall_correlation([row["score"] for row in rows], [RIVERS[row["item"]] for row in rows])
    first = ", ".join(row["item"] for row in rows[:3])
    status = board["decision"]["summary"] if board["decision"] else ""
    return f"{board['votes']:>5} votes  τ with the truth {correlation:+.2f}  top three: {first}.  {status}"


def _call(base: str, path: str, token: str, content: dict[str, Any] | None = None) -> Any:
    """One request to the API of the server."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = None if content is None else json.dumps(content).encode()
    with urlopen(Request(f"{base}/api/v1/{path}", body, headers), timeout=60) as response:
        return json.load(response)
