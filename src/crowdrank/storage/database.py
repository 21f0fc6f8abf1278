"""The schema of a database, brought up to what this version of crowdrank needs.

Where a collection is kept: a file of SQLite, or a database of PostgreSQL; how to reach it, and to be let in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Select, create_engine, event, inspect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError

from crowdrank.errors import SettingError
from crowdrank.storage.schema import HEAD
from crowdrank.storage.validation import UnavailableError


def upgrade(database: Database) -> None:
    """Make the tables, or change them to the last version, in one transaction; nothing where they are."""
    if database.read(version_of) == HEAD:
        return

    def run() -> None:
        with database.upgrading() as connection:
            if version_of(connection) != HEAD:  # nobody did it while we waited
                _migrate(connection)

    database.persist(run)


def version_of(connection: Connection) -> str | None:
    """The last migration that was run, if any was."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    return None if row is None else str(row[0])


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise SettingError(
            f"The database is of version {version_of(connection)}, which this crowdrank does not know "
            f"(its own is {HEAD}): use the crowdrank that made it, or a newer one."
        ) from error


T = TypeVar("T")

_READERS = 16
_TRY_AGAIN = {"40001", "40P01", "55P03", "57P01", "57P02", "57P03", "53300"}
"""PostgreSQL: could not serialize, deadlock, lock not available, shutting down, crashed, starting up, too many."""


def url_of(place: str | Path) -> URL:
    """The address of a database: a path is a file of SQLite."""
    if "://" not in str(place):
        return URL.create("sqlite", database=str(place))
    try:
        url = make_url(str(place))
    except ArgumentError as error:
        raise SettingError("The database must be a path or postgresql://user@host/name.") from error
    kind = url.get_backend_name()
    if kind == "postgres":
        kind = "postgresql"
    if kind not in ("sqlite", "postgresql"):
        raise SettingError(f"The database must be a file or of PostgreSQL, got one of {kind!r}.")
    return url.set(drivername="postgresql+psycopg" if kind == "postgresql" else "sqlite")


class Database:
    """Connections to read with, many at a time, and one to write with."""

    def __init__(self, place: str | Path, *, patience: float, durable: bool) -> None:
        self.url = url_of(place)
        self.patience = patience
        self.sqlite = self.url.get_backend_name() == "sqlite"
        if self.sqlite:
            if not self.url.database or self.url.database == ":memory:" or "mode=memory" in self.url.database:
                raise SettingError("A collection needs a file: one in memory would be lost.")
            self._reading, self._writing, self._passing = _sqlite(self.url, patience, durable)
        else:
            self._writing = self._passing = _postgresql(self.url, patience, durable)
            self._reading = self._writing.execution_options(isolation_level="AUTOCOMMIT")

    def close(self) -> None:
        for engine in (self._reading, self._writing, self._passing):
            engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Each statement by itself. Rows of the log up to a number never change, so they need no transaction."""
        with self._reading.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that no other writer's runs beside; it is there to stay when this ends."""
        with self._writing.begin() as connection:
            if not self.sqlite:  # the number is the table's, so that each schema has a lock of its own
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(to_regclass('log')::oid::bigint)")
            yield connection

    @contextmanager
    def upgrading(self) -> Iterator[Connection]:
        """A transaction to make tables in, one process at a time."""
        with self._writing.begin() as connection:
            if not self.sqlite:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(current_schema()))")
            yield connection

    def pass_by(self, work: Callable[[Connection], T]) -> T:
        """A transaction of its own for what the log does not hold: a power cut may lose it, so it waits for no disk."""

        def run() -> T:
            with self._passing.begin() as connection:
                if not self.sqlite:
                    connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
                return work(connection)

        return self.persist(run)

    def read(self, question: Callable[[Connection], T]) -> T:
        def ask() -> T:
            with self.reading() as connection:
                return question(connection)

        return self.persist(ask)

    def persist(self, attempt: Callable[[], T]) -> T:
        """Try until it works, or patience ends; only what may pass by itself is tried again."""
        end = time.monotonic() + self.patience
        pause = 0.01
        while True:
            try:
                return attempt()
            except DBAPIError as error:
                if not may_pass(error):
                    raise
                if time.monotonic() + pause > end:
                    raise UnavailableError(
                        f"The database did not answer within {self.patience:g} s; nothing was stored: try again."
                    ) from error
            time.sleep(pause)
            pause = min(pause * 2, 0.5)


def pairs(connection: Connection, rows: Select[Any]) -> dict[Any, Any]:
    """Rows of two columns: the second by the first."""
    return {key: value for key, value in connection.execute(rows)}  # noqa: C416  a row is a tuple, if dict knew it


def may_pass(error: DBAPIError) -> bool:
    """Whether the same may succeed a moment later."""
    if error.connection_invalidated:
        return True
    if not isinstance(error, (OperationalError, InterfaceError)):
        return False
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state in _TRY_AGAIN
    said = str(error.orig).lower()
    return "locked" in said or "busy" in said or "connect" in said


def _sqlite(url: URL, patience: float, durable: bool) -> tuple[Engine, Engine, Engine]:
    """To read with, to write with, and to write what may be lost."""

    def engine(durable: bool, **pool: Any) -> Engine:
        made = create_engine(url, connect_args={"timeout": patience, "isolation_level": None}, **pool)

        @event.listens_for(made, "connect")
        def prepare(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA recursive_triggers = ON")  # REPLACE deletes, and must not do so unseen

        return made

    def one(durable: bool) -> Engine:
        made = engine(durable, pool_size=1, max_overflow=0)

        @event.listens_for(made, "begin")
        def start(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

        return made

    return engine(durable, pool_size=_READERS, max_overflow=-1), one(durable), one(durable=False)


def _postgresql(url: URL, patience: float, durable: bool) -> Engine:
    settings = {
        "lock_timeout": f"{patience:g}s",
        "idle_in_transaction_session_timeout": "60s",
        "synchronous_commit": "on" if durable else "off",
    }
    told = url.query.get("options", "")
    options = [
        *([told] if isinstance(told, str) else told),
        *(f"-c {name}={value}" for name, value in settings.items()),
    ]
    url = url.update_query_dict({"options": " ".join(options)})
    if "connect_timeout" not in url.query:
        url = url.update_query_dict({"connect_timeout": str(max(2, int(patience)))})
    return create_engine(url, pool_size=_READERS, max_overflow=-1, connect_args={"prepare_threshold": 2})
