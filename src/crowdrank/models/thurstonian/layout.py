"""Judgments laid out by query, with one perceived utility per annotator and item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.errors import DataError


class Layout(NamedTuple):
    """Judgments sorted by query, and perceived utilities sorted by item and annotator.

    Each judgment compares two perceived utilities of one annotator. Utilities and judgments form a graph, which is
    stored both ways: `winner_utility` and `loser_utility` by judgment, and the `edge_*` arrays by utility, in
    compressed sparse row (CSR) form.

    Parameters
    ----------
    winner_utility, loser_utility : integer arrays per judgment
        The two perceived utilities.
    annotator : integer array per judgment
    judgment_starts, item_starts : integer arrays per query
        First judgment and first item of each query, and the end of the last one.
    utility_starts : integer array per item
        First perceived utility of each item, and the end of the last one.
    edge_starts : integer array per perceived utility
        First edge of each utility, and the end of the last one. An edge is a judgment that the utility takes part in.
    edge_judgment, edge_opponent : integer arrays per edge
        The judgment, and the other utility in it.
    edge_sign : array per edge
        1 if the utility won, −1 if it lost.
    utility_item, utility_annotator : integer arrays per perceived utility
    winner_item, loser_item : integer arrays per judgment
    """

    winner_utility: AnyArray
    loser_utility: AnyArray
    annotator: AnyArray
    judgment_starts: AnyArray
    item_starts: AnyArray
    utility_starts: AnyArray
    edge_starts: AnyArray
    edge_judgment: AnyArray
    edge_opponent: AnyArray
    edge_sign: AnyArray
    utility_item: AnyArray
    utility_annotator: AnyArray
    winner_item: AnyArray
    loser_item: AnyArray


def layout_from_comparisons(comparisons: Comparisons) -> Layout:
    """Lay out the decided judgments, each repeated as often as its weight says. Ties are dropped."""
    repeats = np.where(comparisons.outcome == 0, 0, comparisons.weights)
    fractional = np.flatnonzero(repeats != np.round(repeats))
    if len(fractional):
        row = int(fractional[0])
        raise DataError(
            f"Row {row + 1}: TPP needs whole numbers as weights, got {repeats[row]}. Round the weights or drop them."
        )
    rows = np.repeat(np.arange(len(comparisons)), repeats.astype(np.int64))
    left_won = comparisons.outcome[rows] > 0
    left, right = comparisons.left[rows], comparisons.right[rows]
    who = np.zeros(len(rows), np.int32) if comparisons.annotator is None else comparisons.annotator[rows]
    winner, loser = np.where(left_won, left, right), np.where(left_won, right, left)
    return build_layout(winner, loser, who, comparisons.items.starts)


def build_layout(winner: AnyArray, loser: AnyArray, annotator: AnyArray, item_starts: AnyArray) -> Layout:
    """Lay out judgments given by winning item, losing item and annotator. Their order does not matter."""
    n_annotators = int(annotator.max(initial=0)) + 1
    items, queries = int(item_starts[-1]), len(item_starts) - 1
    order = np.lexsort((loser, winner, annotator, np.searchsorted(item_starts, winner, side="right")))
    winner, loser, annotator = (column[order].astype(np.int64) for column in (winner, loser, annotator))
    cells, utility = np.unique(
        np.concatenate((winner * n_annotators + annotator, loser * n_annotators + annotator)), return_inverse=True
    )
    rows = len(winner)
    won, lost = utility[:rows].astype(np.int32), utility[rows:].astype(np.int32)
    edges = np.argsort(utility, kind="stable")
    query = np.searchsorted(item_starts, winner, side="right") - 1
    return Layout(
        won,
        lost,
        annotator.astype(np.int32),
        _starts(query, queries),
        np.asarray(item_starts, np.int64),
        _starts(cells // n_annotators, items),
        _starts(utility, len(cells)),
        np.tile(np.arange(rows, dtype=np.int32), 2)[edges],
        np.concatenate((lost, won))[edges],
        np.repeat((1.0, -1.0), rows)[edges],
        (cells // n_annotators).astype(np.int32),
        (cells % n_annotators).astype(np.int32),
        winner.astype(np.int32),
        loser.astype(np.int32),
    )


def judgment_counts(layout: Layout, n_annotators: int) -> IntArray:
    """Number of judgments by each annotator in each query, as queries × annotators."""
    per_query = np.diff(layout.judgment_starts)
    cell = np.repeat(np.arange(len(per_query)), per_query) * n_annotators + layout.annotator
    return np.bincount(cell, minlength=len(per_query) * n_annotators).reshape(len(per_query), n_annotators)


def _starts(codes: AnyArray, size: int) -> AnyArray:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size)))).astype(np.int64)
