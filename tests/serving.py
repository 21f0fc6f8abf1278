"""Start `crowdrank serve` as a separate process, as an admin would."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import httpx

_PATIENCE = 240.0
COMMAND = [sys.executable, "-c", "from crowdrank.cli import main; main()"]


class Served:
    """A running server: its URL, its admin token, and a client for its API."""

    def __init__(self, port: int, process: subprocess.Popen[str], database: Path) -> None:
        self.base, self.process, self.database = f"http://localhost:{port}", process, database
        self.said: list[str] = []
        self.secret = ""
        self.client = httpx.Client(base_url=self.base, timeout=120)

    @property
    def admin_link(self) -> str:
        return f"{self.base}/admin/{self.secret}"

    def ask(self, method: str, path: str, token: str | None = None, **more: Any) -> Any:
        """Call the API as admin, or with another token, and return the JSON response."""
        headers = {"Authorization": f"Bearer {token or self.secret}"}
        answer = self.client.request(method, f"/api/v1{path}", headers=headers, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def settled_board(self) -> Any:
        """Return the board once it has all rows of the log that matter to it."""
        end, admin = time.monotonic() + _PATIENCE, {"Authorization": f"Bearer {self.secret}"}
        while time.monotonic() < end:
            self.ask("GET", "/board")  # asks for a new one if there are newer rows
            if "\ncrowdrank_board_lag_rows 0\n" in self.client.get("/metrics", headers=admin).text:
                return self.ask("GET", "/board")
            time.sleep(0.5)
        raise AssertionError("The board does not catch up.")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def crowdrank(*words: object, folder: Path) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(
        [*COMMAND, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout


@contextmanager
def serving(folder: Path, items: str, config: str = "", options: Sequence[str] = ()) -> Iterator[Served]:
    """Serve a table of items while the block lasts; the server must stop cleanly."""
    (folder / "items.csv").write_text(items, encoding="utf-8")
    (folder / "collection.toml").write_text(config, encoding="utf-8")
    with _running(
        folder, ["items.csv", "--config", "collection.toml", *options], folder / "items.crowdrank.db"
    ) as served:
        yield served


class StudiesServer:
    """A server of many studies: each is created in milliseconds, a server of its own takes seconds."""

    def __init__(self, organiser: Served, folder: Path) -> None:
        self._organiser, self.folder = organiser, folder
        self._made: Counter[str] = Counter()

    @property
    def admin_link(self) -> str:
        return self._organiser.admin_link

    @contextmanager
    def create(
        self, name: str, items: str, config: str = "", media: Mapping[str, bytes] | None = None
    ) -> Iterator[Served]:
        """Create a study from a table of items, settings as TOML, and images by their names.

        A name that was used before gets a number: pytest sets a fixture up again if tests that need it are run apart.
        """
        from crowdrank.server.files import read_items_file, uploaded_table

        self._made[name] += 1
        if self._made[name] > 1:
            name = f"{name}-{self._made[name]}"
        made = self._organiser.ask("POST", "/studies", json={"name": name, "settings": tomllib.loads(config)})
        study = copy(self._organiser)
        study.base, study.secret = f"{study.base}/s/{name}", made["admin_token"]
        study.database = self.folder / f"{name}.db"
        study.client = httpx.Client(base_url=study.base, timeout=120)
        with uploaded_table("items.csv", items.encode()) as path:
            rows = [{"label": one.label, "query": one.query, **one.content} for one in read_items_file(path)]
        study.ask("POST", "/items", json={"items": rows})
        for file, content in (media or {}).items():
            (self.folder / "media" / name / file).write_bytes(content)
        with closing(study.client):
            yield study


@contextmanager
def serving_studies(folder: Path, options: Sequence[str] = ()) -> Iterator[StudiesServer]:
    """Serve a folder of studies while the block lasts."""
    with _running(folder, ["--studies", "studies", *options], folder / "studies" / "organiser.db") as served:
        yield StudiesServer(served, folder / "studies")


@contextmanager
def _running(folder: Path, arguments: Sequence[str], database: Path) -> Iterator[Served]:
    port = free_port()
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*COMMAND, "serve", *arguments, "--port", str(port)],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    served = Served(port, process, database)
    reader = threading.Thread(target=lambda: served.said.extend(process.stdout or ()), daemon=True)
    reader.start()
    try:
        _wait(served)
        yield served
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(90)
        finally:
            process.kill()
        served.client.close()
        reader.join(5)
        if process.stdout is not None:
            process.stdout.close()


def _wait(served: Served) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and served.process.poll() is None:
        found = re.search(r"/admin/(\S+)", "".join(served.said))
        try:
            if found and served.client.get("/healthz").status_code == 200:
                served.secret = found[1]
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"The server did not start:\n{''.join(served.said)}")
