"""What an online model promises.

What the online models share: a judgment is checked, new names join, and labels become codes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import Comparison, Comparisons, Items
from crowdrank.engines.compilation import Compiled
from crowdrank.errors import DataError
from crowdrank.online.beliefs import Beliefs, Roll


class OnlineModel(Protocol):
    """A frozen set of settings that takes judgments in one at a time. It changes nothing: beliefs go in and come out.

    A name that is new in a judgment joins with the prior, at any time.
    """

    def start(self, items: Items | Iterable[object] = (), annotators: Iterable[object] = ()) -> Beliefs:
        """What is believed before anyone judged."""
        ...

    def update(self, beliefs: Beliefs, judgment: Comparison) -> Beliefs:
        """What is believed after one judgment."""
        ...

    def fold(self, beliefs: Beliefs, comparisons: Comparisons) -> Beliefs:
        """What is believed after all of them: by time where times are known, else as they stand."""
        ...


PLAIN_UP_TO = 2_000
"""Answers (rows by weight) up to which a loop is not worth loading the compiler."""


class Answers(NamedTuple):
    """Rows in the order they came, in the codes of the beliefs."""

    left: Int32Array
    right: Int32Array
    outcome: npt.NDArray[np.int8]
    annotator: Int32Array
    weight: FloatArray

    def loop(self, fold: Compiled) -> Callable[..., Any]:
        """The fold to run over them: compiled where there are many."""
        return fold if self.weight.sum() > PLAIN_UP_TO else fold.function


class Sequential(ABC):
    """A model is what it believes before anyone is named, and what it believes after answers."""

    @abstractmethod
    def nobody(self) -> Beliefs:
        """Beliefs of no items and no annotators."""

    @abstractmethod
    def after(self, beliefs: Beliefs, items: Roll, annotators: Roll, answers: Answers) -> Beliefs:
        """What is believed of all these, who is new among them included, after the answers."""

    def start(self, items: Items | Iterable[object] = (), annotators: Iterable[object] = ()) -> Beliefs:
        """What is believed before anyone judged, of items (labels, or the items of a table) and annotators."""
        return self.after(self.nobody(), _checked(Roll.of(items)), _checked(Roll.of(annotators)), _NO_ANSWERS)

    def update(self, beliefs: Beliefs, judgment: Comparison) -> Beliefs:
        """What is believed after one judgment."""
        outcome = _outcome(judgment)
        items = beliefs.items.with_new((judgment.left, judgment.right), judgment.query)
        annotators = beliefs.annotators.with_new((judgment.annotator,))
        left, right = (items.index(label, judgment.query) for label in (judgment.left, judgment.right))
        who = annotators.index(judgment.annotator)
        answer = Answers(
            np.array([left], np.int32),
            np.array([right], np.int32),
            np.array([outcome], np.int8),
            np.array([who], np.int32),
            np.ones(1),
        )
        return self.after(beliefs, items, annotators, answer)

    def fold(self, beliefs: Beliefs, comparisons: Comparisons) -> Beliefs:
        """What is believed after all of them: by time where times are known, else as they stand.

        Answers that name no annotator are taken as those of one, named "".
        """
        comparisons = comparisons.sorted_by_time()
        anonymous = comparisons.annotator is None
        things, people = Roll.of(comparisons.items), Roll.of(("",) if anonymous else comparisons.annotators)
        items, annotators = beliefs.items.joined(things), beliefs.annotators.joined(people)
        place, who = items.codes(things), annotators.codes(people)
        spoke = np.zeros(len(comparisons), np.int32) if comparisons.annotator is None else comparisons.annotator
        answers = Answers(
            place[comparisons.left],
            place[comparisons.right],
            np.array(comparisons.outcome),
            who[spoke],
            np.array(comparisons.weights),
        )
        return self.after(beliefs, items, annotators, answers)


_NOBODY = np.zeros(0, np.int32)
_NO_ANSWERS = Answers(_NOBODY, _NOBODY, np.zeros(0, np.int8), _NOBODY, np.zeros(0))


def _checked(roll: Roll) -> Roll:
    roll.find("")  # names that stand there twice are found here, not at the first judgment
    return roll


def _outcome(judgment: Comparison) -> int:
    left, right, winner = str(judgment.left), str(judgment.right), str(judgment.winner)
    if left == right:
        raise DataError(f"{left!r} is compared with itself.")
    if winner not in (left, right, "tie"):
        raise DataError(f"winner must be {left!r}, {right!r} or 'tie', got {winner!r}.")
    return 1 if winner == left else -1 if winner == right else 0
