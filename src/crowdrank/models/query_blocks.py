"""Answers block by block of queries, wherever the blocks are: what CrowdAgg passes over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, Held
from crowdrank.engines.here import MOST_PIECES
from crowdrank.judgments import Comparisons
from crowdrank.models.agreement import Preferences, Seats
from crowdrank.models.contests import Reading, Utilities, contests_of

Vector = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

# Fewer answers are not worth a block of their own.
_FEWEST_ROWS = 100_000


class Answers(NamedTuple):
    """The answers of some queries, their items in codes of their own."""

    comparisons: Comparisons
    seats: Codes
    """In which any were given; one code among all, …"""
    seat: Codes
    """… and of each comparison, in codes among these."""


class Block(NamedTuple):
    """The same answers as contests of items and as preferences of annotators."""

    seats: Codes
    utilities: Utilities
    preferences: Preferences


class Turn(NamedTuple):
    """What comes of some quality of the annotators."""

    scores: Vector
    agreed: Vector
    """The weight of each seat's answers that agree with the scores."""
    sides: bytes
    """The same for the same order of everything that was compared."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """All answers."""

    seats: Seats
    judged: Vector
    """The weight of each seat's decided answers."""
    members: Sequence[Codes]
    """The seats of each block."""
    held: Held

    @classmethod
    def of(cls, comparisons: Comparisons, pooled: bool, reading: Reading, utility: Vector, engine: Engine) -> Blocks:
        seats = Seats.of(comparisons, pooled)
        pieces = list(_cut(comparisons, seats))
        held, _ = engine.spread(pieces).keep(_laid_out, reading, utility)
        weight = np.where(comparisons.outcome == 0, 0.0, comparisons.weights)
        judged = np.bincount(seats.of_row, weight, len(seats)).astype(np.float64)
        return cls(seats, judged, [piece.seats for piece in pieces], held)

    def turn(self, quality: Vector, drawn: Vector | None, tolerance: float) -> Turn:
        """Scores by the quality of seats, of which each was `drawn` so many times, and who agrees with them."""
        (found,) = self.held.total(_turn, quality, drawn, tolerance)
        agreed = np.zeros(len(self.seats))
        for seats, turn in zip(self.members, found, strict=True):
            agreed[seats] += turn.agreed
        return Turn(np.concatenate([turn.scores for turn in found]), agreed, b"".join(turn.sides for turn in found))


def _cut(comparisons: Comparisons, seats: Seats) -> Iterator[Answers]:
    """Queries side by side, about as many answers in each block; where it is cut depends on the data alone."""
    items, query = comparisons.items, comparisons.items.query[comparisons.left]
    blocks = min(MOST_PIECES, max(1, len(comparisons) // _FEWEST_ROWS))
    answered = np.append(0, np.cumsum(np.bincount(query, minlength=len(items.queries))))
    cuts = np.searchsorted(answered, np.linspace(0, len(comparisons), blocks + 1)[1:-1])
    order = np.argsort(query, kind="stable")
    within = cuts[answered[cuts] < len(comparisons)]
    for a, b in pairwise(np.unique([0, *within, len(items.queries)])):
        rows, first = order[answered[a] : answered[b]], int(items.starts[a])
        members, seat = np.unique(seats.of_row[rows], return_inverse=True)
        some = Comparisons(
            items=items.some(a, b), left=comparisons.left[rows] - first, right=comparisons.right[rows] - first,
            outcome=comparisons.outcome[rows], weight=None if comparisons.weight is None else comparisons.weight[rows],
        )  # fmt: skip
        yield Answers(some, members, seat)


def _laid_out(answers: Answers, reading: Reading, utility: Vector) -> tuple[Block, tuple[()]]:
    contests = contests_of(answers.comparisons, answers.seat, reading)
    preferences = Preferences.of(answers.comparisons, answers.seat, len(answers.seats))
    return Block(answers.seats, Utilities(contests, utility), preferences), ()


def _turn(block: Block, quality: Vector, drawn: Vector | None, tolerance: float) -> tuple[list[Turn]]:
    scores = block.utilities(quality[block.seats], None if drawn is None else drawn[block.seats])
    sides = block.preferences.sides(scores, tolerance, block.utilities.size)
    return ([Turn(scores, block.preferences.agreed(sides), sha256(sides.tobytes()).digest())],)
