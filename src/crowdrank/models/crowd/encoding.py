"""Comparisons as rows of winner, loser and annotator, the form that the likelihoods of this package read.

The sampler reads them indexed by item and by annotator.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray
from crowdrank.data import Comparisons, EncodedSideInformation
from crowdrank.data.side_information import NO_SIDE_INFORMATION
from crowdrank.errors import SettingError
from crowdrank.models.crowd.likelihood import CROWD_BT, Answers

Ties = Literal["drop", "half"]
Start = Literal["several", "one", "gold"]

# With at most this many possible (annotator, winner, loser), equal answers can be counted in a table.
_MAX_CELLS = 1 << 24
# From this many annotators on, their parameters outgrow the cache, and sorting answers by annotator pays off.
_MANY_ANNOTATORS = 50_000


class FeatureEncoder(Protocol):
    """Makes the feature matrix of some comparisons: one column per feature, positive where it favours the left item."""

    def __len__(self) -> int: ...

    def __call__(self, comparisons: Comparisons) -> FloatArray: ...


def check_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        raise SettingError(f"ties must be drop or half, got {ties!r}.")


def select_judgments(comparisons: Comparisons, ties: Ties) -> Comparisons:
    """The comparisons that a model uses: without ties if they are dropped, unless there are only ties."""
    if ties == "half" or comparisons.ties == len(comparisons):
        return comparisons
    return comparisons.decided


def answer_table(
    comparisons: Comparisons,
    features: FeatureEncoder | None = None,
    ties: Ties = "half",
    known: EncodedSideInformation = NO_SIDE_INFORMATION,
) -> Any:
    """The answers as a table for an engine, in memory or in chunks. Equal answers are merged where that pays off."""
    rows = select_judgments(comparisons, ties)
    people, size = max(1, len(comparisons.annotators)), len(comparisons.items)
    if features is None and people * size**2 <= min(len(rows) // 2, _MAX_CELLS):
        own = _merge_equal(rows, people, size)
    else:
        own = rows.map_chunks(partial(_encode, features=features))
        if people >= _MANY_ANNOTATORS and isinstance(own, Answers):
            own = own.sorted_by_annotator()
    gold = _gold_answers(comparisons, known, 0 if features is None else len(features))
    return own if gold is None else own.joined(gold)


def encode_answers(
    comparisons: Comparisons,
    features: FeatureEncoder | None = None,
    ties: Ties = "half",
    known: EncodedSideInformation = NO_SIDE_INFORMATION,
) -> Answers:
    """The answers in memory. With ties="half" a tie becomes two answers of half its weight, one each way.

    Judgments without annotators count as those of one annotator. Gold pairs are answers of an additional annotator who
    is always right.
    """
    own = _encode(select_judgments(comparisons, ties), features)
    gold = _gold_answers(comparisons, known, own.features.shape[1])
    return own if gold is None else own.joined(gold)


def _encode(comparisons: Comparisons, features: FeatureEncoder | None = None) -> Answers:
    left, right, outcome, weight = comparisons.left, comparisons.right, comparisons.outcome, comparisons.weights
    who = np.zeros(len(left), np.int32) if comparisons.annotator is None else comparisons.annotator
    columns = np.zeros((len(left), 0)) if features is None else features(comparisons)
    left_won, tied = outcome >= 0, np.flatnonzero(outcome == 0)
    winner, loser = np.where(left_won, left, right), np.where(left_won, right, left)
    towards_winner = np.where(left_won, 1.0, -1.0)[:, None] * columns if columns.size else columns
    answers = Answers(winner, loser, who, weight, towards_winner)
    if not len(tied):
        return answers
    weight = np.array(weight)
    weight[tied] /= 2
    opposite = Answers(loser[tied], winner[tied], who[tied], weight[tied], -towards_winner[tied])
    return answers._replace(weight=weight).joined(opposite)


def _merge_equal(comparisons: Comparisons, people: int, size: int) -> Answers:
    """One answer per annotator, winner and loser, with the total weight."""
    table = np.zeros(people * size**2)
    for part in comparisons.chunks():
        answers = _encode(part)
        cells = (answers.annotator * np.int64(size) + answers.winner) * size + answers.loser
        np.add.at(table, cells, answers.weight)
    seen = np.flatnonzero(table)
    pair = seen % size**2
    winner, loser, who = (code.astype(np.int32) for code in (pair // size, pair % size, seen // size**2))
    return Answers(winner, loser, who, table[seen], np.zeros((len(seen), 0)))


def _gold_answers(comparisons: Comparisons, known: EncodedSideInformation, features: int) -> Answers | None:
    gold_annotator = known.gold_annotator(comparisons)
    if gold_annotator is None:
        return None
    pairs = len(known.gold_better)
    who, weight = np.full(pairs, gold_annotator, np.int32), np.full(pairs, known.gold_weight)
    return Answers(known.gold_better, known.gold_worse, who, weight, np.zeros((pairs, features)))


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


def index_answers(answers: Answers, items: int, annotators: int, formula: int) -> AnswerIndex:
    """Index the answers. Equal answers of an annotator are merged into one of their total weight."""
    answers = _merge_equal_answers(answers, items)
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


def _merge_equal_answers(answers: Answers, items: int) -> Answers:
    winner, loser, who, weight, features, _ = answers
    key = (who.astype(np.int64) * items + winner) * items + loser
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return Answers(winner[first], loser[first], who[first], np.bincount(place, weight), features[first])


def _starts(codes: AnyArray, size: int) -> AnyArray:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size))))
