"""What should not matter, as columns of numbers: positive where it speaks for the left item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, ObjectArray
from crowdrank.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from crowdrank.data.comparisons import Comparisons
    from crowdrank.data.labels import Items


POSITION = "position"
"""The feature every comparison has: something stood on the left."""
# A text column of more values than this holds names, not kinds.
MOST_CATEGORIES = 50
_FIRST_FEW = 3


def feature_columns(comparisons: Comparisons, names: Sequence[str]) -> dict[str, FloatArray]:
    """Features by name, each a column of numbers; a feature that is text becomes one column a category.

    `position` is 1 in every row. The text `layout` becomes `layout=grid`, … : 1 where the task was shown so, and 0
    elsewhere. The categories of items that `with_item_features` made go by their common name, too.

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
        _need_sides(comparisons, name)
        return {name: np.broadcast_to(1.0, len(comparisons))}
    if name in given:
        column = numbers_or_text(given[name])
        _refuse_missing(column, name)
        if column.dtype != object:
            return {name: column}
        _need_sides(comparisons, name)  # what holds of both items can draw to a side only
        return {f"{name}={kind}": 1.0 * (column == kind) for kind in _categories(column, name)}
    if not (of_items := {key: numbers_or_text(v) for key, v in given.items() if key.startswith(f"{name}=")}):
        raise UnknownNameError("feature", name, [POSITION, *given])
    return of_items


def item_features(items: Items, left: Any, right: Any, columns: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Columns about items as features of comparisons: left less right.

    Of a text, one feature a category: (left is of it) − (right is of it), called `style=bold`. Of two categories the
    first alone: the second is its opposite, and would share its pull.
    """
    found: dict[str, FloatArray] = {}
    for name, values in columns.items():
        column = numbers_or_text(values)
        if len(column) != len(items):
            raise DataError(f"Feature {name!r}: {len(column)} values for {len(items)} items.")
        _refuse_missing(column, name, items)
        by_name = {name: column}
        if column.dtype == object:
            kinds = _categories(column, name)
            by_name = {f"{name}={k}": 1.0 * (column == k) for k in (kinds if len(kinds) != 2 else kinds[:1])}
        found |= {key: value[left] - value[right] for key, value in by_name.items()}
    return found


def column_of_items(comparisons: Comparisons, left: Any, right: Any, name: str) -> ObjectArray:
    """One label an item, from what the rows say of their left and their right item, which must agree; else ""."""
    codes = np.concatenate((comparisons.left, comparisons.right))
    labels = np.concatenate((np.asarray(left, dtype=object), np.asarray(right, dtype=object)))
    codes, labels = codes[labels != ""], labels[labels != ""]
    found = np.full(len(comparisons.items), "", dtype=object)
    found[codes] = labels
    if (other := np.flatnonzero(found[codes] != labels)).size:
        item, label = int(codes[other[0]]), labels[other[0]]
        raise DataError(
            f"Item {comparisons.items.name(item)} has more than one {name}: {label!r} and {found[item]!r}. "
            "Give the items of each their own labels, or name the query that tells them apart."
        )
    return found


def numbers_or_text(values: Any) -> AnyArray:
    """Numbers as they are, NaN where missing; anything else as text, "" where missing."""
    column = np.asarray(values)
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    cells = [None if cell is None or cell != cell else cell for cell in column.tolist()]
    if all(cell is None or isinstance(cell, int | float) for cell in cells):
        return np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    return np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)


def _categories(column: AnyArray, name: str) -> list[str]:
    found = sorted(set(column.tolist()))
    if len(found) > MOST_CATEGORIES:
        raise DataError(
            f"Feature {name!r} has {len(found):,} categories, such as {found[0]!r}; at most {MOST_CATEGORIES} can be "
            "told apart. Make it numbers, or put its values into fewer kinds."
        )
    return found


def _need_sides(comparisons: Comparisons, name: str) -> None:
    if not comparisons.sided:
        raise DataError(f"The judgments do not say what stood left and right: leave the feature {name} out.")


def _refuse_missing(column: AnyArray, name: str, items: Items | None = None) -> None:
    missing = np.flatnonzero(column == "" if column.dtype == object else ~np.isfinite(column))
    if not missing.size:
        return
    where, of_which = "comparisons", ""
    if items is not None:
        where, few = "items", [items.name(int(place)) for place in missing[:_FIRST_FEW]]
        of_which = f" ({', '.join(few)}{', …' if missing.size > _FIRST_FEW else ''})"
    raise DataError(
        f"Feature {name!r} has missing values: {missing.size:,} of {len(column):,} {where}{of_which}. "
        "Fill them in, or leave the feature out."
    )
