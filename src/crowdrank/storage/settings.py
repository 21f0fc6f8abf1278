"""What the organiser decided: settings by name, and whether the collection runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from crowdrank.storage.database import Database
from crowdrank.storage.events import events
from crowdrank.storage.names import name
from crowdrank.storage.writing import Writer

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
