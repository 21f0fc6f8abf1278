"""The items of a collection: added, edited, hidden and shown again while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sqlalchemy import insert, select

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.database import Database
from crowdrank.storage.events import Event, events
from crowdrank.storage.schema import item
from crowdrank.storage.validation import name
from crowdrank.storage.writer import Writer, Writing, as_json

_KINDS = ("item_added", "item_edited", "item_hidden", "item_shown")


@dataclass(frozen=True, kw_only=True)
class NewItem:
    """An item to be added: a label within a query, and whatever is to be shown of it."""

    label: str
    query: str = ""
    content: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Anything that JSON holds: text, image, link, group, owner …"""


@dataclass(frozen=True, kw_only=True)
class Item(NewItem):
    """An item as it is now."""

    id: int
    hidden: bool = False
    changed: int = 0
    """The row of the log that changed it last."""


class Items:
    """What can be judged."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    def add(self, items: Iterable[NewItem | str], *, actor: str) -> list[int]:
        """Their numbers, in the order given. One that is there already, with the same content, keeps its own."""
        new = [_checked(one) for one in items]
        return self._writer.run(lambda writing: _add(writing, new, actor))

    def edit(self, id: int, content: Mapping[str, Any], *, actor: str) -> int:  # noqa: A002
        """Other content under the same label. Gives the number of the row."""
        return self._change("item_edited", id, actor, {"content": dict(content)})

    def hide(self, id: int, *, actor: str, reason: str = "") -> int:  # noqa: A002
        """No longer to be asked about."""
        return self._change("item_hidden", id, actor, {"reason": reason})

    def show(self, id: int, *, actor: str) -> int:  # noqa: A002
        """To be asked about again."""
        return self._change("item_shown", id, actor, {})

    def all(self, up_to: int | None = None) -> dict[int, Item]:
        """Every item by its number, as it was at a row of the log, or is now."""
        return _folded(self._database.read(lambda connection: events(connection, _KINDS, up_to=up_to)))

    def _change(self, kind: str, id: int, actor: str, detail: Mapping[str, Any]) -> int:  # noqa: A002
        def work(writing: Writing) -> int:
            if writing.connection.execute(select(item.c.id).where(item.c.id == id)).first() is None:
                raise UnknownNameError("item", id, writing.connection.scalars(select(item.c.id).limit(9)).all())
            return writing.append(kind, actor, id, detail)

        return self._writer.run(work)


def _checked(one: NewItem | str) -> NewItem:
    new = NewItem(label=one) if isinstance(one, str) else one
    if name(new.label, "An item's label") in ("tie", "skip"):
        raise DataError(f"An item must not be called {new.label!r}: that is an answer.")
    name(new.query, "An item's query", may_be_empty=True)
    return new


def _add(writing: Writing, given: list[NewItem], actor: str) -> list[int]:
    known = {(one.query, one.label): one for one in _folded(events(writing.connection, _KINDS)).values()}
    new: dict[tuple[str, str], NewItem] = {}
    for one in given:
        key = (one.query, one.label)
        if key in new:
            raise DataError(f"Item {one.label!r} is given twice{f' in query {one.query!r}' if one.query else ''}.")
        if key in known:
            _same(known[key], one)
        else:
            new[key] = one
    told = [{"query": one.query, "label": one.label, "content": dict(one.content)} for one in new.values()]
    numbers = writing.append_all("item_added", actor, ((None, detail) for detail in told))
    if numbers:
        rows = [{"id": n, "query": query, "label": label} for n, (query, label) in zip(numbers, new, strict=True)]
        writing.connection.execute(insert(item), rows)
    places = {key: one.id for key, one in known.items()} | dict(zip(new, numbers, strict=True))
    return [places[one.query, one.label] for one in given]


def _same(old: Item, new: NewItem) -> None:
    if as_json(old.content) != as_json(new.content):
        raise DataError(f"Item {new.label!r} is there already, with other content: edit it instead.")


def _folded(rows: Iterable[Event]) -> dict[int, Item]:
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        if row.kind == "item_added":
            found[row.seq] = {"id": row.seq, **row.detail}
        elif row.kind == "item_edited":
            found[row.subject]["content"] = row.detail["content"]
        else:
            found[row.subject]["hidden"] = row.kind == "item_hidden"
        found[row.subject or row.seq]["changed"] = row.seq
    return {key: Item(**values) for key, values in found.items()}
