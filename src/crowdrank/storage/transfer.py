"""Copy a collection to another database, row by row and in the order of the log, and check that both are equal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select

from crowdrank.errors import SettingError
from crowdrank.storage.access import ENVIRONMENT, key_of, store_key
from crowdrank.storage.database import Database, UnavailableError, upgrade
from crowdrank.storage.schema import (
    APPEND_ONLY,
    account,
    account_session,
    annotator,
    assignment,
    identity,
    item,
    lease,
    log,
    session,
    token,
    visit,
    vote,
    withdrawal,
)

_PAGE = 2_000
_TABLE_OF_KIND = {
    "item_added": item,
    "annotator_added": annotator,
    "token_issued": token,
    "undo": withdrawal,
    "void": withdrawal,
}
"""Events with a row in another table. Votes and assignments write their row of the log by a trigger."""
_LOGGED = {"assignment": assignment, "vote": vote}
_OTHERS = (account, account_session, lease, session, visit)
"""Tables that are not part of the log: credentials, signed-in people, open questions, recent addresses."""


def transfer(source: str | Path, target: str | Path, *, timeout: float = 30.0) -> int:
    """Copy a collection to an empty database, SQLite or PostgreSQL, and return the number of rows of the log.

    The copy has the same ids, tokens, sessions and secret key, so that all links and cookies keep working. It is
    written in one transaction: if anything fails, the target stays empty.

    Parameters
    ----------
    source, target : str or Path
        An SQLite file or a postgresql:// URL. Nobody must write to the source meanwhile: stop its server.
    timeout : float, default 30
        How many seconds to retry while a database is busy or unreachable.
    """
    if "://" not in str(source) and not Path(source).exists():
        raise SettingError(f"{source}: no such collection.")
    one, other = (Database(place, timeout=timeout, durable=True) for place in (source, target))
    try:
        if one.url == other.url:
            raise SettingError("The source and the target are the same database.")
        upgrade(one)
        upgrade(other)
        if other.read(_head):
            raise SettingError("The target is not empty: name a new file or an empty database.")
        head = one.read(_head)
        with one.reading() as reader, other.writing() as writer:
            _copy_log(reader, writer, head)
            for table in _OTHERS:
                _copy_table(reader, writer, table)
            _copy_identity(reader, writer)
        _copy_key(one, other)
        check_equal(one, other)
        if one.read(_head) != head:
            raise UnavailableError("The collection changed while it was copied: stop its server, and copy it again.")
        return head
    finally:
        one.close()
        other.close()


def check_equal(one: Database, other: Database) -> None:
    """Raise UnavailableError unless all rows of the log and its tables are the same in both databases."""
    with one.reading() as left, other.reading() as right:
        for table in (*APPEND_ONLY, account):
            for a, b in zip(_rows(left, table), _rows(right, table), strict=False):
                if a != b:
                    number = next(iter(a.values()))
                    raise UnavailableError(f"Row {number} of the table {table.name} differs in the copy.")
            counts = [connection.scalar(select(func.count()).select_from(table)) for connection in (left, right)]
            if counts[0] != counts[1]:
                raise UnavailableError(f"The table {table.name} has {counts[0]} rows, its copy {counts[1]}.")


def _head(connection: Connection) -> int:
    return int(connection.scalar(select(func.coalesce(func.max(log.c.seq), 0))) or 0)


def _copy_log(reader: Connection, writer: Connection, head: int) -> None:
    """Copy the log in runs of one kind: the triggers of the database check that every row follows the last."""
    events = (row for row in _rows(reader, log) if row["seq"] <= head)
    details = {table: _rows(reader, table) for table in (*_TABLE_OF_KIND.values(), *_LOGGED.values())}
    for kind, run in groupby(events, key=lambda row: row["kind"]):
        while chunk := list(islice(run, _PAGE)):
            if kind in _LOGGED:
                table = _LOGGED[kind]
                writer.execute(insert(table), list(islice(details[table], len(chunk))))
                continue
            writer.execute(insert(log), chunk)
            if kind in _TABLE_OF_KIND:
                table = _TABLE_OF_KIND[kind]
                writer.execute(insert(table), list(islice(details[table], len(chunk))))


def _copy_table(reader: Connection, writer: Connection, table: Table) -> None:
    rows = _rows(reader, table)
    while chunk := list(islice(rows, _PAGE)):
        writer.execute(insert(table), chunk)


def _copy_identity(reader: Connection, writer: Connection) -> None:
    """Copy the id of the collection, which names its cookies. The secret key is copied by `_copy_key`."""
    rows = [row for row in _rows(reader, identity) if row["name"] != "key"]
    if rows:
        writer.execute(identity.delete())
        writer.execute(insert(identity), rows)


def _copy_key(one: Database, other: Database) -> None:
    key = key_of(one)
    if key is not None and key_of(other) is None:
        store_key(other, key)
    elif key is not None and key_of(other) != key:
        raise SettingError(f"The target has another secret key: remove its .key file, or set {ENVIRONMENT}.")


def _rows(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    """Iterate over a table in the order of its primary key, page by page."""
    (key,) = table.primary_key.columns
    last: Any = None
    while True:
        query = select(table).order_by(key).limit(_PAGE)
        page = connection.execute(query if last is None else query.where(key > last)).mappings().all()
        if not page:
            return
        yield from ({name: _plain(value) for name, value in row.items()} for row in page)
        last = page[-1][key.name]


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value
