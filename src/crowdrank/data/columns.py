"""Numeric columns: read, checked once, then frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np

from crowdrank.arrays import AnyArray, BoolArray, FloatArray
from crowdrank.errors import DataError


def numbers(values: Any, name: str, rows: int) -> FloatArray:
    """A column of finite numbers, one for each row."""
    try:
        column = np.array(values, dtype=np.float64)  # a copy: what the caller does to his own is no matter here
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, got {error}.") from error
    if column.shape != (rows,):
        raise DataError(f"{name}: {column.size} values for {rows} rows.")
    if (bad := np.flatnonzero(~np.isfinite(column))).size:
        raise DataError(f"Row {int(bad[0]) + 1}: {name} must be a finite number, got {column[bad[0]]}.")
    return column


# Beyond these, sums of weights lose what the lighter ones say.
LIGHTEST, HEAVIEST = 1e-9, 1e9


def fine_weights(weight: FloatArray) -> BoolArray:
    return (weight >= LIGHTEST) & (weight <= HEAVIEST)


def check_weight(weight: FloatArray) -> FloatArray:
    if (bad := np.flatnonzero(~fine_weights(weight))).size:
        got = weight[bad[0]]
        need = "positive" if got <= 0 else f"between {LIGHTEST:g} and {HEAVIEST:g}"
        raise DataError(f"Row {int(bad[0]) + 1}: weight must be {need}, got {got}.")
    return weight


def freeze(table: Any) -> None:
    """Make every array of a frozen dataclass read-only, and every mapping a view."""
    for entry in fields(table):
        value = getattr(table, entry.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(table, entry.name, _read_only(value))
        elif isinstance(value, Mapping):
            frozen = {k: _read_only(v) for k, v in value.items()}
            object.__setattr__(table, entry.name, MappingProxyType(frozen))


def _read_only(array: AnyArray) -> AnyArray:
    view = array.view()
    view.flags.writeable = False
    return view
