"""A real PostgreSQL server for tests and benchmarks, in a temporary folder that is removed afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NEWEST_FIRST = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), reverse=True)


class Postgres:
    """A private server, reachable only by a socket in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self._programs = _programs()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://crowdrank@/{database}?host={self.folder}"

    def create(self, database: str) -> str:
        """Create an empty database and return its URL."""
        self._run("createdb", "-h", str(self.folder), "-U", "crowdrank", database)
        return self.url(database)

    def initialise(self) -> None:
        self._run("initdb", "-D", str(self.data), "-U", "crowdrank", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")

    def start(self) -> None:
        """Start the server and wait until it responds."""
        settings = {
            "unix_socket_directories": self.folder,
            "listen_addresses": "''",
            "max_connections": 200,
            "fsync": "on",
            "recovery_init_sync_method": "syncfs",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        log = self.folder / "log"
        try:
            self._run("pg_ctl", "start", "-w", "-t", "30", "-D", str(self.data), "-l", str(log), "-o", options)
        except RuntimeError as error:
            said = log.read_text() if log.exists() else "nothing"
            raise RuntimeError(f"{error}\nThe server said: {said}") from error

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "stop", "-w", "-m", mode, "-D", str(self.data))

    def _run(self, program: str, *arguments: str) -> None:
        as_whom = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*as_whom, str(self._programs / program), *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed ({done.returncode}): {done.stdout}")


def _programs() -> Path:
    for folder in _NEWEST_FIRST:
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    if found is None:
        raise RuntimeError("PostgreSQL is not installed. Install it, then run this again:  apt-get install postgresql")
    return Path(found).resolve().parent


@contextmanager
def running(under: str | Path | None = None) -> Iterator[Postgres]:
    """Run a server while the block lasts, with its files in a new folder below `under`, by default in memory.

    PostgreSQL refuses to run as root; then it runs as the user postgres.
    """
    folder = Path(tempfile.mkdtemp(prefix="crowdrank-pg-", dir=under or _roomy()))  # the path of a socket must be short
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    server = Postgres(folder)
    try:
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _roomy() -> str:
    """Return a folder in memory if there is room: a busy disk is slow with thousands of small files."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 2**30 else "/tmp"
