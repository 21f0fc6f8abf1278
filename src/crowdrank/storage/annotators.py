"""Who judges: added, excluded and included again while the collection runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sqlalchemy import insert, select

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.database import Database
from crowdrank.storage.events import Event, events
from crowdrank.storage.schema import annotator
from crowdrank.storage.validation import name
from crowdrank.storage.writer import Writer, Writing

_KINDS = ("annotator_added", "annotator_edited", "annotator_excluded", "annotator_included")


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """Someone who judges, as is known of them now."""

    id: int
    name: str
    about: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Anything that JSON holds: where they came from, their price, their quota …"""
    excluded: bool = False
    changed: int = 0
    """The row of the log that changed it last."""


class Annotators:
    """Those who may judge."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    def add(
        self, names: Iterable[str], *, actor: str, about: Mapping[str, Mapping[str, Any]] | None = None
    ) -> list[int]:
        """Their numbers, in the order given, with what is known `about` some by name. Who is there already stays."""
        given = [name(one, "An annotator's name") for one in names]
        if len(set(given)) < len(given):
            raise DataError("An annotator is given twice.")
        return self._writer.run(lambda writing: _add(writing, given, actor, about or {}))

    def edit(self, id: int, about: Mapping[str, Any], *, actor: str) -> int:  # noqa: A002
        """What is known of one, all of it. Gives the number of the row."""
        return self._change("annotator_edited", id, actor, {"about": dict(about)})

    def exclude(self, id: int, *, actor: str, reason: str = "") -> int:  # noqa: A002
        """Their votes count no longer, past and future ones; `include` takes it back."""
        return self._change("annotator_excluded", id, actor, {"reason": reason})

    def include(self, id: int, *, actor: str) -> int:  # noqa: A002
        """Their votes count again."""
        return self._change("annotator_included", id, actor, {})

    def all(self, up_to: int | None = None) -> dict[int, Annotator]:
        """Every annotator by their number, as it was at a row of the log, or is now."""
        return _folded(self._database.read(lambda connection: events(connection, _KINDS, up_to=up_to)))

    def _change(self, kind: str, id: int, actor: str, detail: Mapping[str, Any]) -> int:  # noqa: A002
        def work(writing: Writing) -> int:
            if writing.connection.execute(select(annotator.c.id).where(annotator.c.id == id)).first() is None:
                raise UnknownNameError("annotator", id, writing.connection.scalars(select(annotator.c.id).limit(9)))
            return writing.append(kind, actor, id, detail)

        return self._writer.run(work)


def _add(writing: Writing, given: list[str], actor: str, about: Mapping[str, Mapping[str, Any]]) -> list[int]:
    known = {one: n for n, one in writing.connection.execute(select(annotator.c.id, annotator.c.name))}
    new = [one for one in given if one not in known]
    told = ((None, {"name": one, "about": dict(about.get(one, {}))}) for one in new)
    numbers = writing.append_all("annotator_added", actor, told)
    if new:
        rows = [{"id": n, "name": one} for n, one in zip(numbers, new, strict=True)]
        writing.connection.execute(insert(annotator), rows)
    known |= dict(zip(new, numbers, strict=True))
    return [known[one] for one in given]


def _folded(rows: Iterable[Event]) -> dict[int, Annotator]:
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        if row.kind == "annotator_added":
            found[row.seq] = {"id": row.seq, **row.detail}
        elif row.kind == "annotator_edited":
            found[row.subject]["about"] = row.detail["about"]
        else:
            found[row.subject]["excluded"] = row.kind == "annotator_excluded"
        found[row.subject or row.seq]["changed"] = row.seq
    return {key: Annotator(**values) for key, values in found.items()}
