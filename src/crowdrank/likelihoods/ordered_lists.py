"""Ordered lists laid out for compiled loops: rows by place, places by list, lists by query."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[Any]


class Lists(NamedTuple):
    """Rows of lists, best first, sorted by query.

    Before each list, and after the last, there is a place with nothing on it, and so with no bounds for its neighbours.
    """

    item: Vector
    """Of each row."""
    place: Vector
    """Of each row, counted through all lists."""
    place_starts: Vector
    """Where each place's rows start, …"""
    list_starts: Vector
    """… each list's places, …"""
    query_starts: Vector
    """… each query's lists, …"""
    item_starts: Vector
    """… each query's items, …"""
    row_starts: Vector
    """… and in `row_of_item` each item's rows."""
    row_of_item: Vector


def lists_of(item: Vector, place: Vector, offsets: Vector, item_starts: Vector) -> Lists:
    """From rows of lists end to end, best first, places from 0; the order of the lists is forgotten."""
    query = np.searchsorted(item_starts, item[offsets[:-1]], side="right") - 1
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    rows = [np.lexsort((item[a:b], place[a:b])) + a for a, b in bounds]
    keys = [(int(q), item[own].tobytes(), place[own].tobytes()) for q, own in zip(query, rows, strict=True)]
    order = sorted(range(len(rows)), key=keys.__getitem__)
    row = np.concatenate([rows[n] for n in order])
    places = np.array([place[rows[n][-1]] + 1 for n in order], np.int64)
    list_starts = np.concatenate(([1], 1 + np.cumsum(places + 1)))
    of_row = (place[row] + np.repeat(list_starts[:-1], np.diff(offsets)[order])).astype(np.int64)
    item = item[row].astype(np.int64)
    return Lists(
        item, of_row, _starts(of_row, int(list_starts[-1])), list_starts, _starts(query, len(item_starts) - 1),
        np.asarray(item_starts, np.int64), _starts(item, int(item_starts[-1])), np.argsort(item, kind="stable"),
    )  # fmt: skip


def _starts(codes: Vector, size: int) -> Vector:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size)))).astype(np.int64)
