"""Beliefs folded over votes in their order, so that they hang on the votes alone, to the last bit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, IntArray
from crowdrank.engines.compilation import Compiled
from crowdrank.online import Beliefs, CrowdBT, Vocabulary
from crowdrank.online.base import Answers

_KEPT_EVERY = 1_000
"""Votes after which beliefs are kept, so that a vote that is taken back costs no more than these."""


class _Rows(Answers):
    """Rows that always take the same road: a loop that is compiled may round otherwise than one that is not."""

    def loop(self, fold: Compiled) -> Callable[..., Any]:
        return fold


class Folding:
    """Votes in codes of items and annotators, and what is believed after them."""

    def __init__(self, model: CrowdBT) -> None:
        self.model = model
        self.items, self.annotators = Vocabulary.of(()), Vocabulary.of(())
        self.left = self.right = self.annotator = np.zeros(0, np.int32)
        self.outcome = np.zeros(0, np.int8)
        self.counts = np.zeros(0, bool)
        """Whether each vote is one that beliefs hear of: decided, standing, and of someone who is not excluded."""
        self._kept: list[tuple[int, Beliefs]] = [(0, model.empty())]
        self._now: tuple[int, Beliefs] = self._kept[0]

    def __len__(self) -> int:
        return len(self.left)

    def join(self, items: list[tuple[str, str]], annotators: list[str]) -> None:
        """New items, each a query and a label, and new annotators: their codes follow those that are there."""
        if items:
            queries, labels = zip(*items, strict=True)
            self.items = Vocabulary(self.items.labels + labels, self.items.queries + queries)
        if annotators:
            self.annotators = Vocabulary(
                self.annotators.labels + tuple(annotators), self.annotators.queries + ("",) * len(annotators)
            )

    def add(
        self, left: IntArray, right: IntArray, annotator: IntArray, outcome: npt.NDArray[np.int8], counts: BoolArray
    ) -> None:
        self.left = np.append(self.left, left.astype(np.int32))
        self.right = np.append(self.right, right.astype(np.int32))
        self.annotator = np.append(self.annotator, annotator.astype(np.int32))
        self.outcome = np.append(self.outcome, outcome)
        self.counts = np.append(self.counts, counts)

    def recount(self, rows: IntArray, counts: BoolArray) -> None:
        """Votes that count no longer, or count again."""
        changed = rows[self.counts[rows] != counts]
        self.counts[rows] = counts
        if len(changed):
            first = int(changed.min())
            del self._kept[bisect_right(self._kept, first, key=lambda kept: kept[0]) :]
            if self._now[0] > first:
                self._now = self._kept[-1]

    def beliefs(self) -> Beliefs:
        """After all votes, of all who joined."""
        while self._now[0] < len(self):
            done = self._now[0]
            end = min(len(self), (done // _KEPT_EVERY + 1) * _KEPT_EVERY)
            self._now = (end, self._after(self._now[1], slice(done, end)))
            if end % _KEPT_EVERY == 0:
                self._kept.append(self._now)
        beliefs = self._now[1]
        if len(beliefs.items) < len(self.items) or len(beliefs.annotators) < len(self.annotators):
            beliefs = self._after(beliefs, slice(0, 0))
            self._now = (self._now[0], beliefs)
        return beliefs

    def _after(self, beliefs: Beliefs, rows: slice) -> Beliefs:
        heard = np.flatnonzero(self.counts[rows]) + (rows.start or 0)
        answers = _Rows(
            self.left[heard], self.right[heard], self.outcome[heard], self.annotator[heard], np.ones(len(heard))
        )
        return self.model.apply(beliefs, self.items, self.annotators, answers)
