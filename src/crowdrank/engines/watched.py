"""An engine that says how many passes it has made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from crowdrank.engines.contract import Engine, Held, Table, TableInParts


@dataclass(frozen=True)
class WatchedHeld:
    held: Held
    passed: Callable[[], None]

    @property
    def spare(self) -> float:
        return self.held.spare

    def total(self, formula: Callable[..., Any], *parameters: Any) -> Any:
        found = self.held.total(formula, *parameters)
        self.passed()
        return found

    def keep(self, formula: Callable[..., Any], *parameters: Any) -> tuple[Held, Any]:
        kept, found = self.held.keep(formula, *parameters)
        self.passed()
        return WatchedHeld(kept, self.passed), found


@dataclass(frozen=True)
class Watched:
    """Another engine, whose passes over the judgments are counted and told."""

    engine: Engine
    tell: Callable[[int], None]

    def hold(self, table: Table | TableInParts) -> Held:
        return self._watched(self.engine.hold(table))

    def spread(self, pieces: Sequence[Any]) -> Held:
        return self._watched(self.engine.spread(pieces))

    def _watched(self, held: Held) -> Held:
        numbers = count(1)
        return WatchedHeld(held, lambda: self.tell(next(numbers)))
