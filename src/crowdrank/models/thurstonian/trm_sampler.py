"""Thurstonian lists (Wang et al. 2016), walked: where chains start, and both ways to go on from there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Items
from crowdrank.models.thurstonian import trm_kernels
from crowdrank.models.thurstonian.trm_kernels import Beliefs, Lists, State

# Sweeps of one E-step.
_FORGOTTEN = 5
_KEPT = 20


class Info(NamedTuple):
    accepted: float


@dataclass(frozen=True)
class Sampler:
    """How the posterior is walked, or its summit approached."""

    lists: Lists
    items: Items
    beliefs: Beliefs = field(default_factory=Beliefs)

    @cached_property
    def head_count(self) -> FloatArray:
        """Of each item the share of its lists' other items that stand below it, less those above; a little shrunk."""
        lists = self.lists
        rows = np.diff(lists.place_starts[lists.list_starts])
        ends = np.repeat(lists.place_starts[lists.list_starts[1:]], rows)
        begins = np.repeat(lists.place_starts[lists.list_starts[:-1]], rows)
        below, above = ends - lists.place_starts[lists.place + 1], lists.place_starts[lists.place] - begins
        won = np.bincount(lists.item, (below - above) / np.maximum(ends - begins - 1, 1), len(self.items))
        return np.asarray(won / (np.diff(lists.row_starts) + 1.0))

    @cached_property
    def ordered(self) -> BoolArray:
        """Which queries have a list at all: the unit of scores is theirs."""
        return np.asarray(np.diff(self.lists.query_starts) > 0)

    def init(self, rng: np.random.Generator) -> State:
        """Scores by head count, and sights in the order of their lists."""
        scores = 2.0 * self.head_count + rng.normal(scale=0.3, size=len(self.items))
        lists = self.lists
        seen = scores[lists.item] + rng.normal(size=len(lists.item))
        of_row = np.searchsorted(lists.list_starts, lists.place, side="right")
        seen = seen[np.lexsort((-seen, of_row))]
        return State(scores, seen, np.ones(len(self.items.queries)), np.full(1, 4.0))

    def walk(self, rng: np.random.Generator, state: State, steps: int) -> tuple[State, Info]:
        """So many sweeps over everything; every move is taken."""
        there = State._make(part.copy() for part in state)
        trm_kernels.walk(rng, self.lists, self.beliefs, there, steps)
        return there, Info(1.0)

    def climb(self, rng: np.random.Generator, state: State) -> State:
        """One round of EM as published: eq. 27 for what is seen, 18 for scores, 19 for difficulty.

        Scores stay in units of the noise, and the unit and zero of eq. 16 and 17 can wait until they are read.
        """
        lists, items = self.lists, self.items
        there = State._make(part.copy() for part in state)
        mean, square = trm_kernels.expect(rng, lists, there, _FORGOTTEN, _KEPT)
        count = np.diff(lists.row_starts)
        scores = np.bincount(lists.item, mean, len(items)) / np.maximum(count, 1)
        spread = np.bincount(lists.item, square, len(items)) - count * scores**2
        known, total, rows, noise = (
            np.bincount(items.query, column, len(items.queries)) for column in (count > 0, scores, count, spread)
        )
        # where no list knows an item, the middle of those known is as good as any score
        scores = np.where(count > 0, scores, (total / np.maximum(known, 1))[items.query])
        noise = np.where(self.ordered, noise / np.maximum(rows, 1), 1.0)
        root = np.sqrt(noise)[items.query]
        return State(scores / root, there.seen / root[lists.item], state.difficulty * noise, state.scale)

    def published(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Scores, centred, and difficulty in the published unit: δ² is one on average."""
        difficulty = state.difficulty / state.difficulty[self.ordered].mean()
        return self.items.centre(state.scores * np.sqrt(difficulty[self.items.query])), difficulty
