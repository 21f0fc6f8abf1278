"""Connect to the database of a collection, SQLite or PostgreSQL, and bring its schema up to date.

This module also checks values before they are stored, so that both databases accept the same ones, creates tokens, and
defines the errors of a collection. The server turns each error into one HTTP status:

CrowdrankError
├── ConflictError          the assignment has a different vote already, or the vote can no longer be undone
├── ExpiredError           another assignment replaced this one before the vote arrived
├── QuotaReachedError      the annotator has answered as many questions as their quota allows
├── StudyClosedError       the study is closed, or closed to this annotator
├── StudyPausedError       the study is paused; the answer may be sent again when it resumes
├── UnavailableError       the database did not respond in time; nothing was stored
└── UnknownTokenError      the token does not exist, was revoked, or belongs to someone else
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Select, create_engine, event, inspect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from crowdrank.errors import CrowdrankError, DataError, SettingError
from crowdrank.storage.schema import MAX_NAME_LENGTH, SCHEMA_VERSION

T = TypeVar("T")

_READERS = 16
_TRANSIENT_STATES = {"40001", "40P01", "55P03", "57P01", "57P02", "57P03", "53300"}
"""PostgreSQL: serialization failure, deadlock, lock not available, shutdown, crash, start-up, too many connections."""


class ConflictError(CrowdrankError):
    """The request contradicts what is already stored."""


class ExpiredError(CrowdrankError):
    """Another assignment replaced this one before it was answered."""


class QuotaReachedError(CrowdrankError):
    """The annotator has answered as many questions as their quota allows."""


class StudyClosedError(CrowdrankError):
    """The study is closed, or the annotator is excluded from it."""


class StudyPausedError(CrowdrankError):
    """The study is paused. The same answer is accepted once it resumes."""


class UnavailableError(CrowdrankError):
    """The database could not be reached, or was busy for too long. Nothing was stored."""


class UnknownTokenError(CrowdrankError):
    """The token does not exist, was revoked, or belongs to someone else."""


def parse_url(location: str | Path) -> URL:
    """Return the SQLAlchemy URL of a database. A plain path is an SQLite file."""
    if "://" not in str(location):
        return URL.create("sqlite", database=str(location))
    try:
        url = make_url(str(location))
    except ArgumentError as error:
        raise SettingError("Invalid database URL: use a path or postgresql://user@host/name.") from error
    kind = url.get_backend_name()
    if kind == "postgres":
        kind = "postgresql"
    if kind not in ("sqlite", "postgresql"):
        raise SettingError(f"Unsupported database {kind!r}: use an SQLite file or a postgresql:// URL.")
    return url.set(drivername="postgresql+psycopg" if kind == "postgresql" else "sqlite")


class Database:
    """Connections to one database: many that read, one that writes to the log, one for temporary data."""

    def __init__(self, location: str | Path, *, timeout: float, durable: bool) -> None:
        self.url = parse_url(location)
        self.timeout = timeout
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            if not self.url.database or self.url.database == ":memory:" or "mode=memory" in self.url.database:
                raise SettingError("A collection cannot be kept in memory, because it would be lost: name a file.")
            _create_private(Path(self.url.database))
            self._readers, self._writer, self._temporary = _sqlite_engines(self.url, timeout, durable)
        else:
            self._writer = self._temporary = _postgresql_engine(self.url, timeout, durable)
            self._readers = self._writer.execution_options(isolation_level="AUTOCOMMIT")
        self._engines = (self._readers, self._writer, self._temporary)

    def close(self) -> None:
        """Close all connections; those that other threads are using, as soon as they hand them back."""
        for engine in self._engines:
            # `dispose` leaves out the connections in use. They would return to a pool that nobody closes.
            event.listen(engine, "checkin", _close_connection)
            engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a connection without a transaction: rows of the log never change, so none is needed."""
        with self._readers.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, durable: bool = True) -> Iterator[Connection]:
        """Open the transaction of the log's only writer; it is committed when the block ends.

        If it need not be durable, SQLite does not wait for the disk. PostgreSQL does: after its crash, other processes
        would remember rows that no longer exist.
        """
        with (self._writer if durable or not self.is_sqlite else self._temporary).begin() as connection:
            if not self.is_sqlite:  # the lock is keyed by the table's oid, so that each schema has its own
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(to_regclass('log')::oid::bigint)")
            yield connection

    @contextmanager
    def upgrading(self) -> Iterator[Connection]:
        """Open a transaction that changes the schema, one process at a time."""
        with self._writer.connect() as connection:
            # SQLite replaces tables to change them. References are checked at the end, and cannot be in between.
            self._check_references(connection, False)
            try:
                with connection.begin():
                    if not self.is_sqlite:
                        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(current_schema()))")
                    yield connection
            finally:
                self._check_references(connection, True)

    def _check_references(self, connection: Connection, check: bool) -> None:
        """Switch foreign keys of SQLite on or off; outside of a transaction, or nothing happens."""
        driver: Any = connection.connection.driver_connection
        if self.is_sqlite and driver is not None:
            driver.execute(f"PRAGMA foreign_keys = {'ON' if check else 'OFF'}")

    def write_temporary(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction outside the log, without waiting for the disk: a power cut may lose it."""

        def run() -> T:
            with self._temporary.begin() as connection:
                if not self.is_sqlite:
                    connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
                return work(connection)

        return self.retry(run)

    def read(self, query: Callable[[Connection], T]) -> T:
        """Return what `query` returns for a connection that reads."""

        def run() -> T:
            with self.reading() as connection:
                return query(connection)

        return self.retry(run)

    def purge(self, tables: Iterable[str]) -> None:
        """Remove old versions of rows from the files of the database.

        SQLite overwrites what is deleted, but its write-ahead log still has it. PostgreSQL keeps old versions in its
        tables until they are rewritten, and samples of the values in the statistics of its planner. Its own
        write-ahead log and archives are not touched.
        """
        if self.is_sqlite:
            self.retry(self._truncate_wal)
            return
        with self._readers.connect() as connection:
            for table in tables:
                connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {table}")
            connection.exec_driver_sql("VACUUM (FULL) pg_statistic")

    def _truncate_wal(self) -> None:
        with self._writer.connect() as connection:
            driver: Any = connection.connection.driver_connection
            busy, *_ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise UnavailableError(
                "The person is erased, but other programs are reading the database, so that old data are still in its "
                "write-ahead log (the -wal file). They are removed when these programs are closed."
            )

    def check_integrity(self) -> None:
        """Raise UnavailableError if the file of an SQLite database is damaged."""
        if self.is_sqlite:
            found = self.read(lambda connection: connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
            if found != "ok":
                raise UnavailableError(_EXPLANATIONS["malformed"])

    def retry(self, attempt: Callable[[], T]) -> T:
        """Repeat `attempt` while it fails with a transient error, until the timeout."""
        end = time.monotonic() + self.timeout
        pause = 0.01
        while True:
            try:
                return attempt()
            except DBAPIError as error:
                if not is_transient(error):
                    if (explanation := explain(str(error.orig))) is not None:
                        raise UnavailableError(explanation) from error
                    raise
                if time.monotonic() + pause > end:
                    raise UnavailableError(
                        f"The database did not respond within {self.timeout:g} s. Nothing was stored: try again."
                    ) from error
            time.sleep(pause)
            pause = min(pause * 2, 0.5)


def _close_connection(_: Any, record: ConnectionPoolEntry) -> None:
    record.invalidate()


def is_transient(error: DBAPIError) -> bool:
    """Return whether the same statement may succeed a moment later."""
    if error.connection_invalidated:
        return True
    if not isinstance(error, (OperationalError, InterfaceError)):
        return False
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state in _TRANSIENT_STATES
    message = str(error.orig).lower()
    return "locked" in message or "busy" in message or "connect" in message


_EXPLANATIONS = {
    "not a database": "The file is not an SQLite database: name the file of a collection, or one that does not exist.",
    "malformed": "The database is damaged. Stop the server and restore a backup.",
    "readonly database": "The database cannot be written: check the permissions of the file and of its folder.",
    "read-only transaction": "The database is read-only.",
    "unable to open": "The database cannot be opened: check that its folder exists and can be written.",
    "is full": "The disk is full. Nothing was stored: free some space and try again.",
    "no space left": "The disk is full. Nothing was stored: free some space and try again.",
    "disk i/o error": "The disk failed to read or write the database. Nothing was stored.",
}
"""What to tell people, by a part of the message of SQLite or PostgreSQL."""


def explain(message: str) -> str | None:
    """Return a sentence about an error that the operator must solve; None for any other error."""
    lower = message.lower()
    return next((sentence for part, sentence in _EXPLANATIONS.items() if part in lower), None)


def fetch_dict(connection: Connection, query: Select[Any]) -> dict[Any, Any]:
    """Return a query of two columns as a dictionary from the first to the second."""
    return {key: value for key, value in connection.execute(query)}  # noqa: C416  (dict() does not accept rows)


def fetch_columns(
    connection: Connection,
    query: Select[Any],
    width: int,
    values: Mapping[str, Any] | None = MappingProxyType({}),
) -> list[tuple[Any, ...]]:
    """Return the columns of a query; empty ones, without running it, if `values` is None."""
    rows = [] if values is None else connection.execute(query, dict(values)).fetchall()
    return list(zip(*rows, strict=True)) if rows else [()] * width


def upgrade(database: Database) -> None:
    """Create the tables or upgrade them to the current version, in one transaction."""
    if database.read(schema_version) == SCHEMA_VERSION:
        return

    if database.is_sqlite:  # before this version, new files were readable by others
        with suppress(OSError):
            os.chmod(str(database.url.database), 0o600)

    def run() -> None:
        with database.upgrading() as connection:
            _check_not_foreign(connection)
            if schema_version(connection) != SCHEMA_VERSION:  # another process may have done it while we waited
                _migrate(connection)

    database.retry(run)


def _check_not_foreign(connection: Connection) -> None:
    tables = set(inspect(connection).get_table_names())
    if tables and not {"alembic_version", "log"} <= tables:
        raise SettingError(
            f"This database belongs to another program (it has the table {min(tables)!r}): choose another one."
        )


def schema_version(connection: Connection) -> str | None:
    """Return the last migration that was applied; None for an empty database."""
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
            f"The database has schema version {schema_version(connection)}, which this crowdrank does not know "
            f"(it knows {SCHEMA_VERSION}): use the crowdrank that created it, or a newer one."
        ) from error


def _sqlite_engines(url: URL, timeout: float, durable: bool) -> tuple[Engine, Engine, Engine]:
    """Return the engines that read, that write to the log, and that write temporary data."""

    def engine(durable: bool, **pool: Any) -> Engine:
        arguments = {"timeout": timeout, "isolation_level": None}
        made = create_engine(url, connect_args=arguments, hide_parameters=True, **pool)

        @event.listens_for(made, "connect")
        def prepare(connection: Any, _: Any) -> None:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA recursive_triggers = ON")  # else REPLACE deletes without firing triggers
                connection.execute("PRAGMA secure_delete = ON")  # what was deleted cannot be read from the file
            except sqlite3.Error as error:  # outside of a statement of SQLAlchemy, which would wrap it
                if (explanation := explain(str(error))) is not None:
                    raise UnavailableError(explanation) from error
                raise

        return made

    def single_writer(durable: bool) -> Engine:
        made = engine(durable, pool_size=1, max_overflow=0)

        @event.listens_for(made, "begin")
        def start(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

        return made

    readers = engine(durable, pool_size=_READERS, max_overflow=-1)
    return readers, single_writer(durable), single_writer(durable=False)


def _create_private(path: Path) -> None:
    """Create the file, readable by the owner only, if it does not exist."""
    with suppress(FileExistsError):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise
        except OSError as error:
            raise SettingError(f"{path} cannot be created: {error.strerror}.") from error


def _postgresql_engine(url: URL, timeout: float, durable: bool) -> Engine:
    settings = {
        "lock_timeout": f"{timeout:g}s",
        "idle_in_transaction_session_timeout": "60s",
        "synchronous_commit": "on" if durable else "off",
    }
    given = url.query.get("options", "")
    options = [
        *([given] if isinstance(given, str) else given),
        *(f"-c {name}={value}" for name, value in settings.items()),
    ]
    url = url.update_query_dict({"options": " ".join(options)})
    if "connect_timeout" not in url.query:
        url = url.update_query_dict({"connect_timeout": str(max(2, int(timeout)))})
    return create_engine(
        url, pool_size=_READERS, max_overflow=-1, connect_args={"prepare_threshold": 2}, hide_parameters=True
    )


def check_text(value: object, what: str) -> str:
    """Return `value` if it is text without NUL and without unpaired surrogates."""
    if not isinstance(value, str):
        raise DataError(f"{what} must be text, got {type(value).__name__}.")
    if "\x00" in value or not (value.isascii() or all(not "\ud800" <= letter <= "\udfff" for letter in value)):
        raise DataError(f"{what} contains a character that cannot be stored (NUL or an unpaired surrogate): remove it.")
    return value


def check_name(value: object, what: str, *, may_be_empty: bool = False) -> str:
    """Return `value` if it is text short enough for an index."""
    text = check_text(value, what)
    if not text and not may_be_empty:
        raise DataError(f"{what} must not be empty.")
    if len(text) > MAX_NAME_LENGTH:
        raise DataError(f"{what} must have at most {MAX_NAME_LENGTH} characters, got {len(text)}: {text[:30]!r} …")
    return text


def check_integer(value: object, what: str) -> int:
    """Return `value` if it is an integer that fits into 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise DataError(f"{what} must be a whole number of at most 64 bits, got {value!r}.")
    return value


def new_token() -> str:
    """Return 128 random bits as 22 characters that are safe in a URL."""
    return secrets.token_urlsafe(16)


def hash_token(token: str) -> bytes:
    """Return the hash under which a token is stored. Tokens have 128 random bits, so a fast hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
