"""Places in an order, and what becomes of a place that several items share."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import numpy.typing as npt

from crowdrank.errors import DataError, SettingError

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


def check_pair(scores: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Array, Array]:
    """Both as numbers over the same items. Infinite values are fine: they have a place in the order."""
    estimate, known = check_column(scores, "scores"), check_column(truth, "truth")
    if len(estimate) != len(known):
        raise DataError(f"scores and truth must be over the same items, got {len(estimate)} and {len(known)} values.")
    if not len(known):
        raise DataError("There are no items to evaluate: scores and truth are empty.")
    return estimate, known


def check_column(values: npt.ArrayLike, name: str) -> Array:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, got {error}.") from error
    if column.ndim != 1:
        raise DataError(f"{name} must be one row of numbers, got {column.ndim} dimensions.")
    if (bad := np.flatnonzero(np.isnan(column))).size:
        raise DataError(f"Row {int(bad[0]) + 1}: {name} must be a number, got nan.")
    return column


def check_k(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise SettingError(f"k must be a whole number of at least 1, got {k!r}.")
    return int(k)


def tie_groups(scores: Array) -> tuple[Places, Places, Places]:
    """The order, best first, and where each group of equal scores starts in it, and its size."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    return order, starts, np.diff(np.append(starts, len(scores)))


def mean_over_ties(of_place: Array, scores: Array) -> Array:
    """What each item gets from its place, on average over all orders of the items tied with it."""
    order, starts, sizes = tie_groups(scores)
    of_item = np.empty(len(scores))
    of_item[order] = np.repeat(np.add.reduceat(of_place, starts) / sizes, sizes)
    return of_item


def chance_of_top(k: int, scores: Array) -> Array:
    """The chance of each item to stand among the first k, ties broken at random."""
    return mean_over_ties((np.arange(len(scores)) < k).astype(np.float64), scores)
