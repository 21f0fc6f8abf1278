"""What a column's cells say: labels, numbers, moments; null or NaN where they say nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.errors import FormatError
from crowdrank.files.values import series_of

Numbers = npt.NDArray[np.float64]

_DATES = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%d")
# A clock of 1970 read in milli-, micro- or nanoseconds passes these around 1973; in seconds, in the year 5138.
_CLOCKS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def labels(column: pl.Series, trimmed: bool) -> pl.Series:
    """Text; null where a cell is empty. Whole numbers lose the ".0" that a missing neighbour gave them."""
    text = _text(column)
    if trimmed:
        text = text.str.strip_chars()
    empty = text.str.len_bytes() == 0
    return text.set(empty, None) if empty.any() else text


def _text(column: pl.Series) -> pl.Series:
    # Under a name of our own: polars takes a series called "*" or "^…$" for a pattern.
    name, column = column.name, column.alias("cell")
    if column.dtype == pl.Object:
        column = series_of("cell", column.to_list())
    kind = column.dtype
    if kind == pl.String:
        return column
    if kind.is_nested() or kind == pl.Object:
        raise FormatError(f"column {name!r} holds lists or objects, where one value a row is needed.")
    try:
        if kind.is_float() or kind.is_decimal():
            return _number_text(column.cast(pl.Float64))
        return column.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        raise FormatError(f"column {name!r} ({kind}) cannot be read as text.") from error


def _number_text(column: pl.Series) -> pl.Series:
    value = pl.col("cell")
    whole = (value == value.floor()) & (value.abs() < 2**53)
    text = pl.when(whole).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))
    return column.fill_nan(None).to_frame().select(text).to_series()


def numbers(column: pl.Series) -> Numbers:
    """Numbers; NaN where a cell is none."""
    if column.dtype == pl.Duration:
        column = column.alias("cell").dt.total_nanoseconds() / 1e9
    if not column.dtype.is_numeric() and column.dtype != pl.Boolean:
        column = labels(column, trimmed=True)
    return column.alias("cell").cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def moments(column: pl.Series) -> Numbers:
    """Seconds since 1970, from dates, ISO text or a clock's number; NaN where a cell is none of them."""
    if column.dtype.is_temporal() and column.dtype not in (pl.Duration, pl.Time):
        return _seconds(column.cast(pl.Datetime) if column.dtype == pl.Date else column)
    if column.dtype.is_numeric():
        return _clock(numbers(column))
    text = labels(column, trimmed=True)
    clock = text.cast(pl.Float64, strict=False)
    if clock.null_count() > text.null_count():
        return np.where(clock.is_null().to_numpy(), _iso(text), clock.fill_null(np.nan).to_numpy())
    return _clock(clock.fill_null(np.nan).to_numpy())


def _iso(text: pl.Series) -> Numbers:
    """The first way of writing dates that fits, cell by cell; most files need only one."""
    cell = text.str.replace(" ?(UTC|GMT|Z)$", "").str.replace(r"^(\d{4}-\d\d-\d\d) ", "${1}T")
    found = np.full(len(text), np.nan)
    for form in _DATES:
        missing = np.isnan(found)
        if np.count_nonzero(missing) <= text.null_count():
            break
        found = np.where(missing, _seconds(cell.str.to_datetime(form, strict=False, time_unit="us")), found)
    return found


def _seconds(column: pl.Series) -> Numbers:
    micros = column.alias("cell").dt.timestamp("us").cast(pl.Float64)
    return (micros / 1e6).fill_null(np.nan).to_numpy()


def _clock(values: Numbers) -> Numbers:
    """Seconds, whatever unit the clock counted in."""
    seen = np.abs(values[np.isfinite(values)])
    middle = float(np.median(seen)) if seen.size else 0.0
    return values / next((unit for limit, unit in _CLOCKS if middle > limit), 1.0)


def values_of(column: pl.Series) -> npt.NDArray[Any]:
    """Numbers where every cell that holds something holds one, text otherwise."""
    text = labels(column, trimmed=True)
    found = numbers(column)
    if np.count_nonzero(np.isnan(found)) <= text.null_count():
        return found
    return np.array(text.fill_null("").to_list(), dtype=object)
