"""Add, edit, hide and show the items of a collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sqlalchemy import insert, select

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.database import Database, check_name
from crowdrank.storage.log import Event, read_events
from crowdrank.storage.schema import item
from crowdrank.storage.writer import LogTransaction, Writer, to_json

_KINDS = ("item_added", "item_edited", "item_hidden", "item_shown")


@dataclass(frozen=True, kw_only=True)
class NewItem:
    """An item to add.

    Parameters
    ----------
    label : str
        Its name, unique within the query.
    query : str, default ""
        Items are compared with items of the same query only.
    content : mapping, optional
        What annotators see and other JSON values: body, kind, context, group, owner.
    """

    label: str
    query: str = ""
    content: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, kw_only=True)
class Item(NewItem):
    """An item of a collection.

    Parameters
    ----------
    label, query, content
        As in `NewItem`.
    id : int
        Its id: the row of the log that added it.
    hidden : bool, default False
        Whether it is left out of new questions.
    changed : int, default 0
        The row of the log that changed it last.
    """

    id: int
    hidden: bool = False
    changed: int = 0


class Items:
    """The items of a collection."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    def add(self, items: Iterable[NewItem | str], *, actor: str) -> list[int]:
        """Add items and return their ids. An item that exists with the same content keeps its id."""
        new = [_validated(one) for one in items]
        return self._writer.run(lambda transaction: _add(transaction, new, actor))

    def edit(self, id: int, content: Mapping[str, Any], *, actor: str) -> int:  # noqa: A002
        """Replace the content of an item and return the number of the event."""
        return self._change("item_edited", id, actor, {"content": dict(content)})

    def hide(self, id: int, *, actor: str, reason: str = "") -> int:  # noqa: A002
        """Leave an item out of new questions."""
        return self._change("item_hidden", id, actor, {"reason": reason})

    def show(self, id: int, *, actor: str) -> int:  # noqa: A002
        """Use a hidden item in questions again."""
        return self._change("item_shown", id, actor, {})

    def all(self, up_to: int | None = None) -> dict[int, Item]:
        """Return all items by id, now or as of row `up_to` of the log."""
        return _fold(self._database.read(lambda connection: read_events(connection, _KINDS, up_to=up_to)))

    def _change(self, kind: str, id: int, actor: str, detail: Mapping[str, Any]) -> int:  # noqa: A002
        def work(transaction: LogTransaction) -> int:
            connection = transaction.connection
            if connection.execute(select(item.c.id).where(item.c.id == id)).first() is None:
                raise UnknownNameError("item", id, connection.scalars(select(item.c.id).limit(9)).all())
            return transaction.append(kind, actor, id, detail)

        return self._writer.run(work)


def _validated(one: NewItem | str) -> NewItem:
    new = NewItem(label=one) if isinstance(one, str) else one
    if check_name(new.label, "An item's label") in ("tie", "skip", "both_bad"):
        raise DataError(f"An item cannot be called {new.label!r}, because that is an answer: choose another label.")
    check_name(new.query, "An item's query", may_be_empty=True)
    return new


def _add(transaction: LogTransaction, items: list[NewItem], actor: str) -> list[int]:
    known = {(one.query, one.label): one for one in _fold(read_events(transaction.connection, _KINDS)).values()}
    new: dict[tuple[str, str], NewItem] = {}
    for one in items:
        key = (one.query, one.label)
        if key in new:
            raise DataError(f"Item {one.label!r} is listed twice{f' in query {one.query!r}' if one.query else ''}.")
        if key in known:
            _check_same(known[key], one)
        else:
            new[key] = one
    details = [{"query": one.query, "label": one.label, "content": dict(one.content)} for one in new.values()]
    numbers = transaction.append_all("item_added", actor, ((None, detail) for detail in details))
    if numbers:
        rows = [{"id": id_, "query": query, "label": label} for id_, (query, label) in zip(numbers, new, strict=True)]
        transaction.connection.execute(insert(item), rows)
    ids = {key: one.id for key, one in known.items()} | dict(zip(new, numbers, strict=True))
    return [ids[one.query, one.label] for one in items]


def _check_same(old: Item, new: NewItem) -> None:
    if to_json(old.content) != to_json(new.content):
        raise DataError(f"Item {new.label!r} already exists with other content: edit it instead of adding it.")


def _fold(events: Iterable[Event]) -> dict[int, Item]:
    """Return the items that these events add up to."""
    found: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.kind == "item_added":
            found[event.seq] = {"id": event.seq, **event.detail}
        elif event.kind == "item_edited":
            found[event.subject]["content"] = event.detail["content"]
        else:
            found[event.subject]["hidden"] = event.kind == "item_hidden"
        found[event.subject or event.seq]["changed"] = event.seq
    return {key: Item(**values) for key, values in found.items()}
