"""Answers indexed by item and by annotator, and bounds on the qualities, for the sampler."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.models.crowd.likelihood import CROWD_BT, Answers


class AnswerIndex(NamedTuple):
    """Answers indexed by item and by annotator (compressed rows).

    Parameters
    ----------
    answers : Answers
        The answers, equal ones merged.
    item_starts, item_rows : arrays of int
        Rows of the answers about item i: `item_rows[item_starts[i]:item_starts[i + 1]]`.
    sign : array of float
        For each entry of `item_rows`, 1 if the item won the answer and −1 if it lost.
    other : array of int
        For each entry of `item_rows`, the other item of the answer.
    annotator_starts, annotator_rows : arrays of int
        The same by annotator.
    logistic : bool
        Whether F is logistic, else Thurstone's normal.
    """

    answers: Answers
    item_starts: AnyArray
    item_rows: AnyArray
    sign: AnyArray
    other: AnyArray
    annotator_starts: AnyArray
    annotator_rows: AnyArray
    logistic: bool


class QualityBounds(NamedTuple):
    """Constraints on the qualities.

    Parameters
    ----------
    low, high : arrays of float
        Bounds of each η; equal bounds fix it.
    better, worse : arrays of int
        Pairs of annotators in a known order.
    """

    low: AnyArray
    high: AnyArray
    better: AnyArray
    worse: AnyArray

    @property
    def symmetric(self) -> bool:
        """Whether replacing every η by 1 − η satisfies the same constraints."""
        return bool(np.all(self.low == 0) and np.all(self.high == 1) and not len(self.better))


def index_answers(answers: Answers, items: int, annotators: int, formula: int) -> AnswerIndex:
    """Index the answers. Equal answers of an annotator are merged into one of their total weight."""
    answers = _merge_equal(answers, items)
    count = len(answers.winner)
    touched = np.concatenate((answers.winner, answers.loser))
    order = np.argsort(touched, kind="stable")
    rows = np.tile(np.arange(count, dtype=np.int32), 2)[order]
    sign = np.repeat((1.0, -1.0), count)[order]
    other = np.concatenate((answers.loser, answers.winner))[order]
    people = np.argsort(answers.annotator, kind="stable").astype(np.int32)
    return AnswerIndex(
        answers,
        _starts(touched, items),
        rows,
        sign,
        other,
        _starts(answers.annotator, annotators),
        people,
        formula == CROWD_BT,
    )


def _merge_equal(answers: Answers, items: int) -> Answers:
    winner, loser, who, weight, features, _ = answers
    key = (who.astype(np.int64) * items + winner) * items + loser
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return Answers(winner[first], loser[first], who[first], np.bincount(place, weight), features[first])


def _starts(codes: AnyArray, size: int) -> AnyArray:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size))))
