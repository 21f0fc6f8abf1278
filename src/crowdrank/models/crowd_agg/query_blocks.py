"""Who agrees with an order how often: annotators' answers as winner and loser.

Answers block by block of queries, wherever the blocks are: what CrowdAgg passes over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.data.pair_counts import ROUNDING
from crowdrank.engines import Engine, ShardedData
from crowdrank.engines.local import MAX_PIECES
from crowdrank.models.crowd_agg.contests import Reading, Utilities, contests_of

Places = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Seats:
    """One for each annotator, or where annotators are judged query by query, for each in each query."""

    of_row: IntArray
    """In which one each comparison was answered."""
    annotator: IntArray
    """Who sits in each."""
    group: IntArray
    """Seats that see the same items: all of them, or those of a query."""
    people: int
    """Annotators there are."""

    @classmethod
    def of(cls, comparisons: Comparisons, pooled: bool) -> Seats:
        """Judgments that name no annotators are taken as one annotator's."""
        named = comparisons.annotator
        who = np.zeros(len(comparisons), np.int64) if named is None else named.astype(np.int64)
        people = max(1, len(comparisons.annotators))
        if pooled:
            return cls(who, np.arange(people), np.zeros(people, np.int64), people)
        queries = len(comparisons.items.queries)
        seats, row = np.unique(who * queries + comparisons.items.query[comparisons.left], return_inverse=True)
        return cls(row, *np.divmod(seats, queries), people)

    def __len__(self) -> int:
        return len(self.annotator)

    def by_annotator(self, value: FloatArray) -> FloatArray:
        """A value of seats, added up for each annotator."""
        return np.bincount(self.annotator, value, self.people).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Preferences:
    """The decided answers."""

    items: Items
    winner: IntArray
    loser: IntArray
    seat: IntArray
    weight: FloatArray
    seats: int
    """How many there are."""

    @classmethod
    def of(cls, comparisons: Comparisons, seat: IntArray, seats: int) -> Preferences:
        rows = np.flatnonzero(comparisons.outcome)
        left, right, up = comparisons.left[rows], comparisons.right[rows], comparisons.outcome[rows] > 0
        return cls(
            comparisons.items,
            np.where(up, left, right),
            np.where(up, right, left),
            seat[rows],
            comparisons.weights[rows],
            seats,
        )

    def sides(self, scores: FloatArray, tolerance: float, size: FloatArray) -> npt.NDArray[np.int8]:
        """1 where the scores agree with an answer, -1 where they do not, 0 where they tie the two."""
        return higher(self.items, scores, self.winner, self.loser, tolerance, size)

    def agreed(self, sides: npt.NDArray[np.int8]) -> FloatArray:
        """The weight of each seat's answers that agree; where scores tie, half of it."""
        return np.bincount(self.seat, self.weight * (0.5 + 0.5 * sides), self.seats).astype(np.float64)


def higher(
    items: Items, scores: FloatArray, one: Places, other: Places, tolerance: float, size: FloatArray
) -> npt.NDArray[np.int8]:
    """1 where `one` scores higher than `other`, -1 where it scores lower, 0 where the two are tied.

    Tied are scores closer than `tolerance` × the largest of their query. Where all of them cancel to nothing, that
    largest is rounding itself, so rounding of the terms counts too: `size` is what an item's terms add up to in size.
    """
    slack = np.maximum(tolerance * np.abs(scores), ROUNDING * size)
    slack = np.maximum.reduceat(slack, items.starts[:-1])[items.query]
    margin = scores[one] - scores[other]
    return np.where(np.abs(margin) > slack[one], np.sign(margin), 0.0).astype(np.int8)


# Fewer answers are not worth a block of their own.
_FEWEST_ROWS = 100_000


class Answers(NamedTuple):
    """The answers of some queries, their items in codes of their own."""

    comparisons: Comparisons
    seats: IntArray
    """In which any were given; one code among all, …"""
    seat: IntArray
    """… and of each comparison, in codes among these."""


class Block(NamedTuple):
    """The same answers as contests of items and as preferences of annotators."""

    seats: IntArray
    utilities: Utilities
    preferences: Preferences


class Turn(NamedTuple):
    """What comes of some quality of the annotators."""

    scores: FloatArray
    agreed: FloatArray
    """The weight of each seat's answers that agree with the scores."""
    sides: bytes
    """The same for the same order of everything that was compared."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """All answers."""

    seats: Seats
    judged: FloatArray
    """The weight of each seat's decided answers."""
    members: Sequence[IntArray]
    """The seats of each block."""
    held: ShardedData

    @classmethod
    def of(
        cls, comparisons: Comparisons, pooled: bool, reading: Reading, utility: FloatArray, engine: Engine
    ) -> Blocks:
        seats = Seats.of(comparisons, pooled)
        pieces = list(_cut(comparisons, seats))
        held, _ = engine.distribute(pieces).map_and_sum(_laid_out, reading, utility)
        weight = np.where(comparisons.outcome == 0, 0.0, comparisons.weights)
        judged = np.bincount(seats.of_row, weight, len(seats)).astype(np.float64)
        return cls(seats, judged, [piece.seats for piece in pieces], held)

    def turn(self, quality: FloatArray, drawn: FloatArray | None, tolerance: float) -> Turn:
        """Scores by the quality of seats, of which each was `drawn` so many times, and who agrees with them."""
        (found,) = self.held.sum(_turn, quality, drawn, tolerance)
        agreed = np.zeros(len(self.seats))
        for seats, turn in zip(self.members, found, strict=True):
            agreed[seats] += turn.agreed
        return Turn(np.concatenate([turn.scores for turn in found]), agreed, b"".join(turn.sides for turn in found))


def _cut(comparisons: Comparisons, seats: Seats) -> Iterator[Answers]:
    """Queries side by side, about as many answers in each block; where it is cut depends on the data alone."""
    items, query = comparisons.items, comparisons.items.query[comparisons.left]
    blocks = min(MAX_PIECES, max(1, len(comparisons) // _FEWEST_ROWS))
    answered = np.append(0, np.cumsum(np.bincount(query, minlength=len(items.queries))))
    cuts = np.searchsorted(answered, np.linspace(0, len(comparisons), blocks + 1)[1:-1])
    order = np.argsort(query, kind="stable")
    within = cuts[answered[cuts] < len(comparisons)]
    for a, b in pairwise(np.unique([0, *within, len(items.queries)])):
        rows, first = order[answered[a] : answered[b]], int(items.starts[a])
        members, seat = np.unique(seats.of_row[rows], return_inverse=True)
        some = Comparisons(
            items=items.some(a, b),
            left=comparisons.left[rows] - first,
            right=comparisons.right[rows] - first,
            outcome=comparisons.outcome[rows],
            weight=None if comparisons.weight is None else comparisons.weight[rows],
        )
        yield Answers(some, members, seat)


def _laid_out(answers: Answers, reading: Reading, utility: FloatArray) -> tuple[Block, tuple[()]]:
    contests = contests_of(answers.comparisons, answers.seat, reading)
    preferences = Preferences.of(answers.comparisons, answers.seat, len(answers.seats))
    return Block(answers.seats, Utilities(contests, utility), preferences), ()


def _turn(block: Block, quality: FloatArray, drawn: FloatArray | None, tolerance: float) -> tuple[list[Turn]]:
    scores = block.utilities(quality[block.seats], None if drawn is None else drawn[block.seats])
    sides = block.preferences.sides(scores, tolerance, block.utilities.size)
    return ([Turn(scores, block.preferences.agreed(sides), sha256(sides.tobytes()).digest())],)
