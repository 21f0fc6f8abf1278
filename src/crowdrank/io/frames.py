"""Python values as columns of text.

Data frames of any kind, and plain columns, as tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.tables import Table, table_of


def series_of(name: str, values: Sequence[Any]) -> pl.Series:
    """Text where values are plain; lists and objects are kept as they are, for whoever can read them."""
    if any(isinstance(value, list | tuple | dict | set) for value in values):
        return _nested(name, values)
    texts = [text_of(value) for value in values]
    try:
        return pl.Series(name, texts, pl.String)
    except UnicodeEncodeError:
        return pl.Series(name, [None if t is None else whole_text(t) for t in texts], pl.String)


def _nested(name: str, values: Sequence[Any]) -> pl.Series:
    try:
        return pl.Series(name, values)
    except Exception:  # whatever polars cannot type, some format may still read
        return pl.Series(name, values, pl.Object)


def text_of(value: Any) -> str | None:
    """One value as a person would have typed it; None where it is missing."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return None if value != value else str(int(value)) if value.is_integer() else repr(float(value))
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas' own words for missing, without importing it
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def whole_text(text: str) -> str:
    """Without halves of characters, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


NATIVES = ("polars", "pandas", "pyarrow")


def read_frame(source: Any) -> Table:
    """A polars, pandas or Arrow frame; its columns become polars' when they are asked for."""
    import narwhals as nw

    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, pl.DataFrame):
        return table_of(source, "the data frame")
    try:
        frame = nw.from_native(source, eager_only=True)
    except TypeError as error:
        raise FormatError(
            f"Judgments come from a file, a data frame or a dict of columns, not from {type(source).__name__}."
        ) from error
    except nw.exceptions.NarwhalsError as error:
        raise FormatError(f"the data frame: {' '.join(str(error).split())}.") from error
    keys = {str(text_of(column)): column for column in frame.columns}
    if len(keys) < len(frame.columns):
        raise FormatError("the data frame: two columns have the same name.")

    def load(columns: Sequence[str], rows: int | None) -> pl.DataFrame:
        chosen = frame if rows is None else frame.head(rows)
        return pl.DataFrame({name: _series(name, chosen.get_column(keys[name])) for name in columns})

    native = frame.implementation.name.lower()
    return Table(
        name="the data frame",
        columns=tuple(keys),
        load=load,
        rows=len(frame),
        native=native if native in NATIVES else "polars",
    )


def _series(name: str, column: Any) -> pl.Series:
    import narwhals as nw

    if column.dtype != nw.Unknown:
        try:
            series: pl.Series = column.to_polars()
            return series.alias(name)
        except Exception:  # mixed objects, or pandas without pyarrow: read value by value
            pass
    return series_of(name, column.to_list())


def read_columns(source: Mapping[Any, Any]) -> Table:
    """A dict of columns: lists, arrays, series."""
    columns = {str(name): _column(str(name), values) for name, values in source.items()}
    heights = {name: len(column) for name, column in columns.items()}
    if len(set(heights.values())) > 1:
        raise FormatError(
            "the columns differ in length: " + ", ".join(f"{n} has {h}" for n, h in heights.items()) + "."
        )
    return table_of(pl.DataFrame(columns), "the columns")


def _column(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    if not hasattr(values, "__len__") or isinstance(values, str | bytes):
        raise FormatError(f"column {name!r} must be a list or an array, got {type(values).__name__}.")
    try:
        return pl.Series(name, values)
    except Exception:  # mixed values: text, one by one
        return series_of(name, list(values))
