"""Who agrees with an order how often: annotators' answers as winner and loser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.judgments import Comparisons, Items
from crowdrank.judgments.counts import ROUNDING

Vector = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Places = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Seats:
    """One for each annotator, or where annotators are judged query by query, for each in each query."""

    of_row: Codes
    """In which one each comparison was answered."""
    annotator: Codes
    """Who sits in each."""
    group: Codes
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

    def by_annotator(self, value: Vector) -> Vector:
        """A value of seats, added up for each annotator."""
        return np.bincount(self.annotator, value, self.people).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Preferences:
    """The decided answers."""

    items: Items
    winner: Codes
    loser: Codes
    seat: Codes
    weight: Vector
    seats: int
    """How many there are."""

    @classmethod
    def of(cls, comparisons: Comparisons, seat: Codes, seats: int) -> Preferences:
        rows = np.flatnonzero(comparisons.outcome)
        left, right, up = comparisons.left[rows], comparisons.right[rows], comparisons.outcome[rows] > 0
        return cls(
            comparisons.items, np.where(up, left, right), np.where(up, right, left), seat[rows],
            comparisons.weights[rows], seats,
        )  # fmt: skip

    def sides(self, scores: Vector, tolerance: float, size: Vector) -> npt.NDArray[np.int8]:
        """1 where the scores agree with an answer, -1 where they do not, 0 where they tie the two."""
        return higher(self.items, scores, self.winner, self.loser, tolerance, size)

    def agreed(self, sides: npt.NDArray[np.int8]) -> Vector:
        """The weight of each seat's answers that agree; where scores tie, half of it."""
        return np.bincount(self.seat, self.weight * (0.5 + 0.5 * sides), self.seats).astype(np.float64)


def higher(
    items: Items, scores: Vector, one: Places, other: Places, tolerance: float, size: Vector
) -> npt.NDArray[np.int8]:
    """1 where `one` scores higher than `other`, -1 where it scores lower, 0 where the two are tied.

    Tied are scores closer than `tolerance` × the largest of their query. Where all of them cancel to nothing, that
    largest is rounding itself, so rounding of the terms counts too: `size` is what an item's terms add up to in size.
    """
    slack = np.maximum(tolerance * np.abs(scores), ROUNDING * size)
    slack = np.maximum.reduceat(slack, items.starts[:-1])[items.query]
    margin = scores[one] - scores[other]
    return np.where(np.abs(margin) > slack[one], np.sign(margin), 0.0).astype(np.int8)
