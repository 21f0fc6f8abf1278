"""Items, annotators and questions, as a process that serves them keeps them in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import AnyArray, IntArray
from crowdrank.storage import Question


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
