"""A collection: its items, its annotators, what was asked and answered, in one database.

What the organiser decided: settings by name, and whether the collection runs.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from sqlalchemy import URL

from crowdrank.errors import SettingError
from crowdrank.storage.access import Access
from crowdrank.storage.annotators import Annotators
from crowdrank.storage.assignments import Questions
from crowdrank.storage.database import Database, upgrade, version_of
from crowdrank.storage.events import events
from crowdrank.storage.items import Items
from crowdrank.storage.log import Log
from crowdrank.storage.validation import name
from crowdrank.storage.writer import Clock, Writer, microseconds


class Collection:
    """One database, one collection. Safe to use from many threads, and many processes may open the same one."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        writer = Writer(database, clock)
        self.items = Items(database, writer)
        self.annotators = Annotators(database, writer)
        self.access = Access(database, writer, clock)
        self.questions = Questions(database, writer, clock)
        self.settings = Settings(database, writer)
        self.log = Log(database, writer)

    @classmethod
    def open(
        cls, place: str | Path, *, patience: float = 10.0, durable: bool = True, clock: Clock = microseconds
    ) -> Collection:
        """The collection in a file of SQLite or a database of PostgreSQL (postgresql://…), made or upgraded as needed.

        A write that the database does not take is tried again for `patience` seconds. What is not `durable` survives
        a crash of the program, but not one of the machine. `clock` gives microseconds since 1970.
        """
        database = Database(place, patience=patience, durable=durable)
        try:
            upgrade(database)
        except BaseException:
            database.close()
            raise
        return cls(database, clock)

    def close(self) -> None:
        """Let go of the database. What was acknowledged is there already."""
        self._database.close()

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Collection({self._database.url.render_as_string(hide_password=True)!r})"

    def health(self) -> dict[str, Any]:
        """That the database answers, which kind it is, its schema, and the number of the last row."""
        kind = "sqlite" if self._database.sqlite else "postgresql"
        return {"database": kind, "schema": self._database.read(version_of), "seq": self.log.head()}

    def backup(self, path: str | Path) -> None:
        """A copy of the whole, as it is at one moment, while it is being written to. In place of what was there."""
        if not self._database.sqlite:
            raise SettingError(
                f"PostgreSQL makes its own backups:  pg_dump --format=custom {_told(self._database.url)}"
            )
        source, target = Path(str(self._database.url.database)), Path(path)
        if target.exists() and target.samefile(source):
            raise SettingError(f"{target} is the collection itself: name another file for the backup.")
        handle, unfinished = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
        os.close(handle)
        try:
            _copy(source, unfinished)
            os.replace(unfinished, target)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise


def _copy(source: Path, target: str) -> None:
    with closing(sqlite3.connect(source)) as ours, closing(sqlite3.connect(target)) as copy:
        ours.backup(copy)  # all pages in one go, so that writers cannot make it start again
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing beside it


def _told(url: URL) -> str:
    return url.set(drivername="postgresql", password=None, query={}).render_as_string(hide_password=True)


State = Literal["open", "paused", "closed"]
_STATES: dict[str, State] = {"paused": "paused", "resumed": "open", "closed": "closed"}


class Settings:
    """Each change is a row of the log; what holds is what they add up to."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    def all(self, up_to: int | None = None) -> dict[str, Any]:
        """Every setting, as it was at a row of the log, or is now."""
        found: dict[str, Any] = {}
        for row in self._database.read(lambda connection: events(connection, ["settings_changed"], up_to=up_to)):
            found |= row.detail
        return {key: value for key, value in found.items() if value is not None}

    def change(self, values: Mapping[str, Any], *, actor: str) -> int:
        """Set some, leave the others; None takes one away. Gives the number of the row."""
        told = {name(key, "A setting's name"): value for key, value in values.items()}
        return self._writer.run(lambda writing: writing.append("settings_changed", actor, detail=told))

    def pause(self, *, actor: str) -> int:
        return self._writer.run(lambda writing: writing.append("paused", actor))

    def resume(self, *, actor: str) -> int:
        return self._writer.run(lambda writing: writing.append("resumed", actor))

    def close(self, *, actor: str) -> int:
        return self._writer.run(lambda writing: writing.append("closed", actor))

    def state(self, up_to: int | None = None) -> State:
        """Whether questions are put: open from the start, until someone pauses or closes it."""
        rows = self._database.read(lambda connection: events(connection, _STATES, up_to=up_to))
        return _STATES[rows[-1].kind] if rows else "open"
