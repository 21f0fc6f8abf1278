"""Features of comparisons as columns of numbers, positive where they favour the left item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, ObjectArray
from crowdrank.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from crowdrank.data.comparisons import Comparisons
    from crowdrank.data.labels import Items


# The feature that every comparison has: one item was on the left. Its weight is the position bias.
POSITION = "position"
# A text column with more values than this holds names, not categories.
MAX_CATEGORIES = 50
_MAX_ITEMS_SHOWN = 3


def feature_columns(comparisons: Comparisons, names: Sequence[str]) -> dict[str, FloatArray]:
    """Return features as columns of numbers; a text feature becomes one column per category.

    Parameters
    ----------
    comparisons : Comparisons
        The judgments with their features.
    names : sequence of str
        Names of features. `position` is 1 in every row. The text `layout` becomes `layout=grid`, `layout=list`, …,
        each 1 where the task was shown that way and 0 elsewhere. `style` also stands for all categories
        (`style=bold`, …) that `Comparisons.with_item_features` made of a column `style`.

    Returns
    -------
    dict of str to array of float

    Examples
    --------
    >>> from crowdrank.data import Comparisons
    >>> votes = Comparisons.of(["a", "b"], ["b", "a"], ["a", "a"], features={"layout": ["grid", "list"]})
    >>> {name: column.tolist() for name, column in feature_columns(votes, ["position", "layout"]).items()}
    {'position': [1.0, 1.0], 'layout=grid': [1.0, 0.0], 'layout=list': [0.0, 1.0]}
    """
    found: dict[str, FloatArray] = {}
    for name in names:
        found |= _columns_of(comparisons, name)
    return found


def _columns_of(comparisons: Comparisons, name: str) -> dict[str, FloatArray]:
    given = comparisons.features
    if name == POSITION:
        _require_positions(comparisons, name)
        return {name: np.broadcast_to(1.0, len(comparisons))}
    if name in given:
        column = numbers_or_text(given[name])
        _refuse_missing(column, name)
        if column.dtype != object:
            return {name: column}
        _require_positions(comparisons, name)  # a property of the whole task can favour a side, but not an item
        return {f"{name}={kind}": 1.0 * (column == kind) for kind in _categories(column, name)}
    if not (of_items := {key: numbers_or_text(v) for key, v in given.items() if key.startswith(f"{name}=")}):
        raise UnknownNameError("feature", name, [POSITION, *given])
    return of_items


def item_features(items: Items, left: Any, right: Any, columns: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Turn columns of items into features of comparisons: left minus right.

    A text becomes one feature per category, (left has it) − (right has it), called `style=bold`. Of two categories
    only the first is used: the second is its negative, and the two weights could not be separated.
    """
    found: dict[str, FloatArray] = {}
    for name, values in columns.items():
        column = numbers_or_text(values)
        if len(column) != len(items):
            raise DataError(
                f"Feature {name!r}: {len(column)} values for {len(items)} items.", remedy="Give one value per item."
            )
        _refuse_missing(column, name, items)
        by_name = {name: column}
        if column.dtype == object:
            kinds = _categories(column, name)
            by_name = {f"{name}={k}": 1.0 * (column == k) for k in (kinds if len(kinds) != 2 else kinds[:1])}
        found |= {key: value[left] - value[right] for key, value in by_name.items()}
    return found


def side_features(left: Any, right: Any, name: str) -> dict[str, FloatArray]:
    """Turn columns about the left and the right item of each row into features: left minus right.

    A text becomes one feature per category, as in `item_features`.

    Examples
    --------
    >>> {name: column.tolist() for name, column in side_features([3, 5], [4, 1], "length").items()}
    {'length': [-1.0, 4.0]}
    """
    column = numbers_or_text([*np.asarray(left).tolist(), *np.asarray(right).tolist()])
    _refuse_missing(column, name)
    rows = len(column) // 2
    by_name = {name: column}
    if column.dtype == object:
        kinds = _categories(column, name)
        by_name = {f"{name}={k}": 1.0 * (column == k) for k in (kinds if len(kinds) != 2 else kinds[:1])}
    return {key: value[:rows] - value[rows:] for key, value in by_name.items()}


def item_labels_from_sides(comparisons: Comparisons, left: Any, right: Any, name: str) -> ObjectArray:
    """Return one label per item, from columns about the left and the right item of each row; "" if none says."""
    codes = np.concatenate((comparisons.left, comparisons.right))
    labels = np.concatenate((np.asarray(left, dtype=object), np.asarray(right, dtype=object)))
    codes, labels = codes[labels != ""], labels[labels != ""]
    found = np.full(len(comparisons.items), "", dtype=object)
    found[codes] = labels
    if (other := np.flatnonzero(found[codes] != labels)).size:
        item, label = int(codes[other[0]]), labels[other[0]]
        raise DataError(
            f"Item {comparisons.items.name(item)} has more than one {name}: {label!r} and {found[item]!r}. "
            "Give each its own item label, or name the query that distinguishes them."
        )
    return found


def typical_size(column: FloatArray, weight: FloatArray) -> float:
    """Typical size of a feature: its root mean square, or 1 if it is −1, 0 or 1 already."""
    size = np.abs(column[:1] if column.strides == (0,) else column)  # a broadcast column: one number for all rows
    largest = float(size.max())
    if np.all((size == 0) | (size == 1)):
        return 1.0
    # divided by the largest first, so that squares cannot overflow
    return largest * float(np.sqrt(np.average((size / largest) ** 2, weights=weight)))


def numbers_or_text(values: Any) -> AnyArray:
    """Return numbers with NaN where missing, or text with "" where missing if any value is not a number."""
    column = np.asarray(values)
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    cells = [None if cell is None or cell != cell else cell for cell in column.tolist()]
    if all(cell is None or isinstance(cell, int | float) for cell in cells):
        return np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    return np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)


def _categories(column: AnyArray, name: str) -> list[str]:
    found = sorted(set(column.tolist()))
    if len(found) > MAX_CATEGORIES:
        raise DataError(
            f"Feature {name!r} has {len(found):,} categories, such as {found[0]!r}; the maximum is {MAX_CATEGORIES}.",
            remedy="Use a number, or fewer categories.",
        )
    return found


def _require_positions(comparisons: Comparisons, name: str) -> None:
    if not comparisons.positions_known:
        raise DataError(
            f"Feature {name!r} needs screen positions, and the judgments do not say which item was on the left.",
            remedy=f"Leave {name!r} out of features.",
        )


def _refuse_missing(column: AnyArray, name: str, items: Items | None = None) -> None:
    missing = np.flatnonzero(column == "" if column.dtype == object else ~np.isfinite(column))
    if not missing.size:
        return
    rows, examples = "comparisons", ""
    if items is not None:
        rows, shown = "items", [items.name(int(index)) for index in missing[:_MAX_ITEMS_SHOWN]]
        examples = f" ({', '.join(shown)}{', …' if missing.size > _MAX_ITEMS_SHOWN else ''})"
    raise DataError(
        f"Feature {name!r} has missing values: {missing.size:,} of {len(column):,} {rows}{examples}.",
        remedy="Fill them in, or leave the feature out.",
    )
