"""Add, edit, exclude and include the annotators of a collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sqlalchemy import insert, select

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.database import Database, check_name
from crowdrank.storage.log import Event, read_events
from crowdrank.storage.schema import annotator
from crowdrank.storage.writer import LogTransaction, Writer

_KINDS = ("annotator_added", "annotator_edited", "annotator_excluded", "annotator_included")


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """An annotator of a collection.

    Parameters
    ----------
    id : int
        Their id: the row of the log that added them.
    name : str
        Their unique name.
    metadata : mapping, optional
        Other JSON values, for example their quota or how they joined.
    excluded : bool, default False
        Whether their votes do not count.
    changed : int, default 0
        The row of the log that changed them last.
    """

    id: int
    name: str
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    excluded: bool = False
    changed: int = 0


class Annotators:
    """The annotators of a collection."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    def add(
        self, names: Iterable[str], *, actor: str, metadata: Mapping[str, Mapping[str, Any]] | None = None
    ) -> list[int]:
        """Add annotators, with `metadata` by name, and return their ids. Existing ones keep their id and metadata."""
        given = [check_name(name, "An annotator's name") for name in names]
        if repeated := [name for name, count in Counter(given).items() if count > 1]:
            raise DataError(f"Annotator {repeated[0]!r} is listed twice.")
        return self._writer.run(lambda transaction: _add(transaction, given, actor, metadata or {}))

    def edit(self, id: int, metadata: Mapping[str, Any], *, actor: str) -> int:  # noqa: A002
        """Replace the metadata of an annotator and return the number of the event."""
        return self._change("annotator_edited", id, actor, {"metadata": dict(metadata)})

    def exclude(self, id: int, *, actor: str, reason: str = "", quarantine: bool = False) -> int:  # noqa: A002
        """Stop counting an annotator's votes, and accept no more; `include` reverts it.

        With `quarantine`, votes are set aside instead: the annotator may go on answering.
        """
        detail = {"reason": reason, **({"quarantine": True} if quarantine else {})}
        return self._change("annotator_excluded", id, actor, detail)

    def include(self, id: int, *, actor: str) -> int:  # noqa: A002
        """Count an excluded annotator's votes again."""
        return self._change("annotator_included", id, actor, {})

    def all(self, up_to: int | None = None) -> dict[int, Annotator]:
        """Return all annotators by id, now or as of row `up_to` of the log."""
        return _fold(self._database.read(lambda connection: read_events(connection, _KINDS, up_to=up_to)))

    def _change(self, kind: str, id: int, actor: str, detail: Mapping[str, Any]) -> int:  # noqa: A002
        def work(transaction: LogTransaction) -> int:
            connection = transaction.connection
            if connection.execute(select(annotator.c.id).where(annotator.c.id == id)).first() is None:
                raise UnknownNameError("annotator", id, connection.scalars(select(annotator.c.id).limit(9)).all())
            return transaction.append(kind, actor, id, detail)

        return self._writer.run(work)


def _add(
    transaction: LogTransaction, names: list[str], actor: str, metadata: Mapping[str, Mapping[str, Any]]
) -> list[int]:
    ids = {name: id_ for id_, name in transaction.connection.execute(select(annotator.c.id, annotator.c.name))}
    new = [name for name in names if name not in ids]
    details = ((None, {"name": name, "metadata": dict(metadata.get(name, {}))}) for name in new)
    numbers = transaction.append_all("annotator_added", actor, details)
    if new:
        rows = [{"id": id_, "name": name} for id_, name in zip(numbers, new, strict=True)]
        transaction.connection.execute(insert(annotator), rows)
    ids |= dict(zip(new, numbers, strict=True))
    return [ids[name] for name in names]


def _fold(events: Iterable[Event]) -> dict[int, Annotator]:
    """Return the annotators that these events add up to."""
    found: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.kind == "annotator_added":
            found[event.seq] = {"id": event.seq, **event.detail}
        elif event.kind == "annotator_edited":
            found[event.subject]["metadata"] = event.detail["metadata"]
        else:
            found[event.subject]["excluded"] = event.kind == "annotator_excluded"
        found[event.subject or event.seq]["changed"] = event.seq
    return {key: Annotator(**values) for key, values in found.items()}
