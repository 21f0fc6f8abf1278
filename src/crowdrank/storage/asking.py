"""A question as it was put, the answer as it was stored, and how far someone is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Answer = int | Literal["left", "right", "tie", "skip"]
"""The number of the item that won, or the side that it was shown on when the question was put, or neither."""
Outcome = Literal["left", "right", "tie", "skip"]


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Two items, shown to one annotator."""

    seq: int
    token: str
    """To be presented with the answer."""
    annotator: int
    left: int
    right: int
    policy: str
    probability: float
    expires_at: int
    """Microseconds since 1970."""
    gold: int | None = None
    """The item that is known to be the better one."""
    given_back: bool = False
    """It was open already: nothing new was asked."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A vote that is there to stay."""

    seq: int
    at: int
    assignment: int
    outcome: Outcome
    winner: int | None
    replayed: bool = False
    """It had been recorded before: this was a retry."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far one annotator is."""

    decided: int
    skipped: int
    quota: int | None

    @property
    def remaining(self) -> int | None:
        """Questions still to be answered; None where there is no quota."""
        return None if self.quota is None else max(0, self.quota - self.decided - self.skipped)


class Pending(NamedTuple):
    """A pair that someone is looking at."""

    annotator: int
    left: int
    right: int
