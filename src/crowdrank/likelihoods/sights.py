"""What an annotator perceived of an item: the layout that samplers of Thurstonian pairwise preferences hang on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[Any]


class Sights(NamedTuple):
    """Judgments sorted by query, and the sights they hang on, sorted by item and annotator."""

    winner: Vector
    """The sight of the winner of each judgment; …"""
    loser: Vector
    annotator: Vector
    judgment_starts: Vector
    """… where each query's judgments start, …"""
    item_starts: Vector
    """… each query's items, …"""
    sight_starts: Vector
    """… each item's sights, …"""
    touch_starts: Vector
    """… and each sight's touches: the judgments that it takes part in."""
    touch_row: Vector
    touch_other: Vector
    """The other sight of the judgment."""
    touch_sign: Vector
    """1 where the sight won, −1 where it lost."""
    item: Vector
    """Of each sight."""
    annotator_of_sight: Vector
    above: Vector
    """The item that won each judgment, …"""
    below: Vector
    """… and the one that lost."""


def sights_of(winner: Vector, loser: Vector, annotator: Vector, item_starts: Vector) -> Sights:
    """From items that won and lost by annotator; the order of judgments is forgotten."""
    people = int(annotator.max(initial=0)) + 1
    items, queries = int(item_starts[-1]), len(item_starts) - 1
    order = np.lexsort((loser, winner, annotator, np.searchsorted(item_starts, winner, side="right")))
    winner, loser, annotator = (column[order].astype(np.int64) for column in (winner, loser, annotator))
    seen, place = np.unique(
        np.concatenate((winner * people + annotator, loser * people + annotator)), return_inverse=True
    )
    rows = len(winner)
    won, lost = place[:rows].astype(np.int32), place[rows:].astype(np.int32)
    touching = np.argsort(place, kind="stable")
    query = np.searchsorted(item_starts, winner, side="right") - 1
    return Sights(
        won, lost, annotator.astype(np.int32), _starts(query, queries), np.asarray(item_starts, np.int64),
        _starts(seen // people, items), _starts(place, len(seen)),
        np.tile(np.arange(rows, dtype=np.int32), 2)[touching], np.concatenate((lost, won))[touching],
        np.repeat((1.0, -1.0), rows)[touching], (seen // people).astype(np.int32), (seen % people).astype(np.int32),
        winner.astype(np.int32), loser.astype(np.int32),
    )  # fmt: skip


def _starts(codes: Vector, size: int) -> Vector:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size)))).astype(np.int64)
