"""A collection: items, annotators, assignments, votes and settings in one database."""

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
from crowdrank.storage.access import Access, load_identity, load_keys
from crowdrank.storage.accounts import Accounts
from crowdrank.storage.annotators import Annotators
from crowdrank.storage.assignments import Assignments
from crowdrank.storage.database import Database, check_name, schema_version, upgrade
from crowdrank.storage.erasure import data_about, erase, identified
from crowdrank.storage.items import Items
from crowdrank.storage.log import Log, read_events
from crowdrank.storage.votes import Votes
from crowdrank.storage.writer import Clock, Writer, microseconds

State = Literal["open", "paused", "closed"]
_STATES: dict[str, State] = {"paused": "paused", "resumed": "open", "closed": "closed"}


class Collection:
    """One collection in one database. Open one with `Collection.open`.

    Threads may share a collection, and several processes may open the same database.

    Attributes
    ----------
    id : str
        A random name of the collection.
    keys : Keys
        Functions of its secret key.
    items : Items
    annotators : Annotators
    assignments : Assignments
        Assignments of pairs to annotators.
    votes : Votes
        Records, undoes and voids votes.
    access : Access
        Tokens, sessions and rate limits.
    accounts : Accounts
        Accounts of organisers, and their sessions.
    settings : SettingsLog
        Settings by name, and whether the collection is open.
    log : Log
        The append-only log behind all of them.
    writer : Writer
        The queue of writes; runs several tasks in one transaction.

    Examples
    --------
    >>> import tempfile
    >>> with Collection.open(tempfile.mkdtemp() + "/example.db") as collection:
    ...     left, right = collection.items.add(["Rome", "Oslo"], actor="admin")
    ...     (ann,) = collection.annotators.add(["Ann"], actor="admin")
    ...     pair = collection.assignments.create(ann, left, right, policy="random", probability=1.0)
    ...     vote = collection.votes.record(pair.token, "left", annotator=ann)
    ...     vote.outcome, len(collection.log.judgments())
    ('left', 1)
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self.keys = load_keys(database)
        self.id = load_identity(database, "collection", 16).hex()
        self.writer = Writer(database, clock)
        self.items = Items(database, self.writer)
        self.annotators = Annotators(database, self.writer)
        self.assignments = Assignments(database, self.writer, clock, self.keys)
        self.votes = Votes(database, self.writer, self.keys)
        self.access = Access(database, self.writer, clock, self.keys)
        self.accounts = Accounts(database, self.writer, clock)
        self.settings = SettingsLog(database, self.writer)
        self.log = Log(database, self.writer)

    @classmethod
    def open(
        cls, location: str | Path, *, timeout: float = 10.0, durable: bool = True, clock: Clock = microseconds
    ) -> Collection:
        """Open a collection; create its database or upgrade it if needed.

        Parameters
        ----------
        location : str or Path
            An SQLite file or a postgresql:// URL.
        timeout : float, default 10
            How many seconds to retry while the database is busy or unreachable.
        durable : bool, default True
            If False, a write survives a crash of the program, but not one of the machine.
        clock : callable
            Returns microseconds since 1970.
        """
        database = Database(location, timeout=timeout, durable=durable)
        try:
            upgrade(database)
            return cls(database, clock)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Close the database. Everything that was acknowledged is already stored."""
        self._database.close()

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Collection({self._database.url.render_as_string(hide_password=True)!r})"

    def check_integrity(self) -> None:
        """Raise UnavailableError if the file of an SQLite database is damaged, or cannot be written."""
        self._database.check_integrity()
        self.health()

    def erase_annotator(self, id: int, *, actor: str, keep_votes: bool = False) -> str:  # noqa: A002
        """Erase what identifies an annotator, and return the name that replaces theirs. It cannot be reverted.

        With `keep_votes` their votes go on counting, without a name.
        """
        return erase(self._database, self.writer, [id], actor=actor, keep_votes=keep_votes)[0]

    def erase_everyone(self, *, actor: str) -> int:
        """Erase what identifies all annotators, and return how many they were. Their votes go on counting."""
        ids = identified(self._database)
        if ids:
            erase(self._database, self.writer, ids, actor=actor, keep_votes=True)
        return len(ids)

    def data_about(self, id: int) -> dict[str, Any]:  # noqa: A002
        """Return everything that is stored about an annotator."""
        return data_about(self._database, id, self.log.vote_rows)

    def health(self) -> dict[str, Any]:
        """Return the kind of database, its schema version and the last row of the log.

        Raise UnavailableError if the database cannot be read, or cannot be written.
        """
        self.access.throttle("health", times=1_000_000, seconds=1.0)
        kind = "sqlite" if self._database.is_sqlite else "postgresql"
        return {"database": kind, "schema": self._database.read(schema_version), "seq": self.log.head()}

    def backup(self, path: str | Path) -> None:
        """Write a consistent copy of an SQLite collection to `path`, while it is in use. Replaces an existing file."""
        if not self._database.is_sqlite:
            raise SettingError(
                f"Use pg_dump to back up PostgreSQL:  pg_dump --format=custom {_without_password(self._database.url)}"
            )
        source, target = Path(str(self._database.url.database)), Path(path)
        if target.exists() and target.samefile(source):
            raise SettingError(f"{target} is the collection itself: name another file for the backup.")
        handle, unfinished = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
        os.close(handle)  # readable by the owner only
        try:
            _copy_sqlite(source, unfinished)
            os.replace(unfinished, target)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise


def _copy_sqlite(source: Path, target: str) -> None:
    with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(target)) as copy:
        original.backup(copy)  # all pages in one step, or a concurrent write would restart the copy
        copy.execute("PRAGMA journal_mode = DELETE")  # a single file, without -wal and -shm files


def _without_password(url: URL) -> str:
    return url.set(drivername="postgresql", password=None, query={}).render_as_string(hide_password=True)


class SettingsLog:
    """The settings of a collection, by name. Each change is an event of the log."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    def all(self, up_to: int | None = None) -> dict[str, Any]:
        """Return all settings, now or as of row `up_to` of the log."""
        found: dict[str, Any] = {}
        for event in self._database.read(lambda connection: read_events(connection, ["settings_changed"], up_to=up_to)):
            found |= event.detail
        return {key: value for key, value in found.items() if value is not None}

    def change(self, values: Mapping[str, Any], *, actor: str) -> int:
        """Change some settings and return the number of the event. None removes a setting."""
        changes = {check_name(key, "A setting's name"): value for key, value in values.items()}
        return self._writer.run(lambda transaction: transaction.append("settings_changed", actor, detail=changes))

    def pause(self, *, actor: str) -> int:
        """Stop asking questions for now."""
        return self._writer.run(lambda transaction: transaction.append("paused", actor))

    def resume(self, *, actor: str) -> int:
        """Ask questions again."""
        return self._writer.run(lambda transaction: transaction.append("resumed", actor))

    def close(self, *, actor: str) -> int:
        """End the collection: no new participants and no more questions."""
        return self._writer.run(lambda transaction: transaction.append("closed", actor))

    def closed_since(self) -> int | None:
        """Return when the collection was closed, in microseconds since 1970; None if it is not closed."""
        events = self._database.read(lambda connection: read_events(connection, _STATES))
        return events[-1].at if events and events[-1].kind == "closed" else None

    def state(self, up_to: int | None = None) -> State:
        """Return "open", "paused" or "closed", now or as of row `up_to` of the log."""
        events = self._database.read(lambda connection: read_events(connection, _STATES, up_to=up_to))
        return _STATES[events[-1].kind] if events else "open"
