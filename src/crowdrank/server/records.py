"""Items, annotators and questions, as a process that serves them keeps them in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import AnyArray, BoolArray, Int32Array, IntArray
from crowdrank.data import LEFT, TIE
from crowdrank.engines.compilation import Compiled
from crowdrank.online import Beliefs, CrowdBT, Vocabulary
from crowdrank.online.beliefs import Answers
from crowdrank.storage import ANSWERED, BOTH_BAD, Question


class GrowingColumn:
    """An array that grows at its end without being copied every time."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._buffer: AnyArray = np.zeros(8, dtype)
        self._length = 0

    @property
    def values(self) -> AnyArray:
        return self._buffer[: self._length]

    def append(self, new: AnyArray) -> None:
        end = self._length + len(new)
        if end > len(self._buffer):
            self._buffer = np.concatenate((self.values, np.zeros(max(end, 8), self._buffer.dtype)))
        self._buffer[self._length : end] = new
        self._length = end


@dataclass(eq=False)
class Item:
    """An item in its current state.

    Parameters
    ----------
    id : int
        Its id in storage.
    code : int
        Its position among all items, which indexes arrays.
    label, query : str
    content : dict
        What annotators see: body, kind, context, group, owner.
    hidden : bool, default False
        Whether it is left out of new questions.
    """

    id: int
    code: int
    label: str
    query: str
    content: dict[str, Any]
    hidden: bool = False

    @property
    def owner(self) -> str:
        return str(self.content.get("owner", ""))


@dataclass(eq=False)
class Annotator:
    """An annotator in their current state.

    Parameters
    ----------
    id : int
        Their id in storage.
    code : int
        Their position among all annotators, which indexes arrays.
    name : str
    metadata : dict
        Other values, for example their quota.
    excluded : bool, default False
        Whether their votes do not count.
    quarantined : bool, default False
        Whether they are excluded for now: their votes are set aside, and they may go on answering.
    excluded_because : str, default ""
        The reason, if they are excluded.
    erased : bool, default False
        Whether what identified them was removed.
    votes : list of int
        The indices of their votes among all votes.
    decided, skipped : int, default 0
        How many questions they decided and skipped, without withdrawn votes.
    answered_pairs : set of int
        Pairs that they have answered or skipped, packed into one integer each; also pairs within larger sets of items.
    answered_items : set of int
        The codes of items that they have rated.
    left_surplus : Counter
        By item code: how often they saw it on the left minus how often on the right.
    """

    id: int
    code: int
    name: str
    metadata: dict[str, Any]
    excluded: bool = False
    quarantined: bool = False
    excluded_because: str = ""
    erased: bool = False
    votes: list[int] = field(default_factory=list)
    decided: int = 0
    skipped: int = 0
    answered_pairs: set[int] = field(default_factory=set)
    answered_items: set[int] = field(default_factory=set)
    left_surplus: Counter[int] = field(default_factory=Counter)
    _answered: GrowingColumn = field(default_factory=lambda: GrowingColumn(np.int64))

    def add_answered(self, pair: int) -> None:
        """Remember a pair that they answered or skipped."""
        if pair not in self.answered_pairs:
            self.answered_pairs.add(pair)
            self._answered.append(np.array([pair]))

    def answered_array(self) -> IntArray:
        """Return `answered_pairs` as an array, in the order in which they were answered."""
        return self._answered.values

    @property
    def quota(self) -> int | None:
        return self.metadata.get("quota")

    @property
    def paused_because(self) -> str:
        """Why they get no questions for now; empty if they get some."""
        return str(self.metadata.get("paused", ""))

    @property
    def is_preview(self) -> bool:
        """Whether this is an organiser who looks at the study. Their answers never count."""
        return self.metadata.get("joined") == "preview"

    @property
    def is_shut_out(self) -> bool:
        """Whether they may not answer any more."""
        return self.erased or (self.excluded and not self.quarantined)


class OpenAssignment(NamedTuple):
    """An assignment that is not answered yet: its row and time, the annotator, and the ids of its items."""

    seq: int
    at: int
    annotator: int
    items: tuple[int, ...]


class TaskVote(NamedTuple):
    """A vote on another task than a plain pair: what was asked, and the answer; None if it was skipped."""

    question: Question
    answer: Mapping[str, Any] | None


# Online beliefs as a deterministic fold over the votes of the log, reproducible to the last bit.

SNAPSHOT_INTERVAL = 1_000
"""Votes between two snapshots of the beliefs. Withdrawing a vote only replays the votes since the last snapshot."""


class _CompiledAnswers(Answers):
    """Answers that always use the compiled loop: compiled and interpreted loops may round differently."""

    def loop(self, fold: Compiled) -> Callable[..., Any]:
        return fold


class BeliefProjection:
    """Votes as columns of item and annotator codes, and the beliefs after them.

    Attributes
    ----------
    items, annotators : Vocabulary
        The labels behind the codes.
    left, right, annotator : array of int32
        The codes of each vote.
    outcome : array of int8
        1 if the left item won, -1 if the right one won, 0 for a tie, 2 for a skip, 3 if both are bad, 4 for an answer
        to another task.
    counts : array of bool
        Whether a vote updates the beliefs: not a skip, not withdrawn, and its annotator is not excluded.
    n_counted : int
        The number of these votes.
    """

    def __init__(self, model: CrowdBT) -> None:
        self.model = model
        self.items, self.annotators = Vocabulary.of(()), Vocabulary.of(())
        self._left, self._right, self._annotator = (GrowingColumn(np.int32) for _ in range(3))
        self._outcome, self._counts = GrowingColumn(np.int8), GrowingColumn(bool)
        self.n_counted = 0
        self._implied: dict[int, Int32Array] = {}  # by vote on another task: pairs of a better and a worse item
        self._snapshots: list[tuple[int, Beliefs]] = [(0, model.empty())]
        self._current: tuple[int, Beliefs] = self._snapshots[0]

    def __len__(self) -> int:
        return len(self.left)

    @property
    def left(self) -> Int32Array:
        return self._left.values

    @property
    def right(self) -> Int32Array:
        return self._right.values

    @property
    def annotator(self) -> Int32Array:
        return self._annotator.values

    @property
    def outcome(self) -> npt.NDArray[np.int8]:
        return self._outcome.values

    @property
    def counts(self) -> BoolArray:
        return self._counts.values

    def add_labels(self, items: list[tuple[str, str]], annotators: list[str]) -> None:
        """Add items, as (query, label), and annotators. They receive the next codes."""
        if items:
            queries, labels = zip(*items, strict=True)
            self.items = Vocabulary(self.items.labels + labels, self.items.queries + queries)
        if annotators:
            self.annotators = Vocabulary(
                self.annotators.labels + tuple(annotators), self.annotators.queries + ("",) * len(annotators)
            )

    def rename_annotator(self, code: int, name: str) -> None:
        labels = self.annotators.labels
        self.annotators = Vocabulary((*labels[:code], name, *labels[code + 1 :]), self.annotators.queries)

    def append(
        self,
        left: IntArray,
        right: IntArray,
        annotator: IntArray,
        outcome: npt.NDArray[np.int8],
        counts: BoolArray,
        implied: Mapping[int, list[tuple[int, int]]] = MappingProxyType({}),
    ) -> None:
        """Append votes. Votes on other tasks than pairs have `implied` pairs, by their position among these votes."""
        for position, pairs in implied.items():
            self._implied[len(self) + position] = np.array(pairs, np.int32).reshape(-1, 2)
        columns = (self._left, self._right, self._annotator, self._outcome, self._counts)
        values: tuple[AnyArray, ...] = (left, right, annotator, outcome, counts)
        for column, new in zip(columns, values, strict=True):
            column.append(new)
        self.n_counted += int(np.count_nonzero(counts))

    def set_counts(self, rows: IntArray, counts: BoolArray) -> None:
        """Change whether votes count. Snapshots after the first change are discarded."""
        changed = rows[self.counts[rows] != counts]
        self.n_counted += int(np.count_nonzero(counts)) - int(np.count_nonzero(self.counts[rows]))
        self.counts[rows] = counts
        if len(changed):
            first = int(changed.min())
            del self._snapshots[bisect_right(self._snapshots, first, key=lambda snapshot: snapshot[0]) :]
            if self._current[0] > first:
                self._current = self._snapshots[-1]

    def beliefs(self) -> Beliefs:
        """Return the beliefs after all votes, about all items and annotators."""
        while self._current[0] < len(self):
            start = self._current[0]
            end = min(len(self), (start // SNAPSHOT_INTERVAL + 1) * SNAPSHOT_INTERVAL)
            self._current = (end, self._update(self._current[1], slice(start, end)))
            if end % SNAPSHOT_INTERVAL == 0:
                self._snapshots.append(self._current)
        beliefs = self._current[1]
        if len(beliefs.items) < len(self.items) or len(beliefs.annotators) < len(self.annotators):
            beliefs = self._update(beliefs, slice(0, 0))
            self._current = (self._current[0], beliefs)
        return beliefs

    def _update(self, beliefs: Beliefs, rows: slice) -> Beliefs:
        counted = np.flatnonzero(self.counts[rows]) + (rows.start or 0)
        outcome = self.outcome[counted]
        left, right, annotator = self.left[counted], self.right[counted], self.annotator[counted]
        outcome = np.where(outcome == BOTH_BAD, TIE, outcome).astype(np.int8)
        if (outcome == ANSWERED).any():  # votes of one study are all of one task
            pairs = [self._implied[row] for row in counted.tolist()]
            left, right = np.ascontiguousarray(np.concatenate(pairs).T)
            annotator = np.repeat(annotator, [len(one) for one in pairs])
            outcome = np.full(len(left), LEFT, np.int8)
        answers = _CompiledAnswers(left, right, outcome, annotator, np.ones(len(annotator)))
        return self.model.apply(beliefs, self.items, self.annotators, answers)
