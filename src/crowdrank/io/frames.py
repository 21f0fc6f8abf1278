"""Read data frames of any kind and dicts of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from crowdrank.data.tables import FRAME_BACKENDS
from crowdrank.errors import FormatError
from crowdrank.io.source_table import SourceTable, table_from_frame


def text_series(name: str, values: Sequence[Any]) -> pl.Series:
    """Return a series of text; lists and objects are kept as they are, because some formats read them."""
    if any(isinstance(value, list | tuple | dict | set) for value in values):
        return _nested(name, values)
    texts = [as_text(value) for value in values]
    try:
        return pl.Series(name, texts, pl.String)
    except UnicodeEncodeError:
        return pl.Series(name, [None if t is None else replace_surrogates(t) for t in texts], pl.String)


def _nested(name: str, values: Sequence[Any]) -> pl.Series:
    try:
        return pl.Series(name, values)
    except Exception:  # values that polars cannot type may still be read by a format
        return pl.Series(name, values, pl.Object)


def as_text(value: Any) -> str | None:
    """Return a value as text, the way a person would type it; None if it is missing."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return None if value != value else str(int(value)) if value.is_integer() else repr(float(value))
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas' missing values, without importing pandas
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_frame(source: Any) -> SourceTable:
    """Read a polars, pandas or Arrow frame; columns are converted to polars when they are loaded."""
    import narwhals as nw

    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, pl.DataFrame):
        return table_from_frame(source, "the data frame")
    try:
        frame = nw.from_native(source, eager_only=True)
    except TypeError as error:
        raise FormatError(
            f"Cannot read judgments from {type(source).__name__}.",
            remedy="Pass the path of a file, a data frame or a dict of columns.",
        ) from error
    except nw.exceptions.NarwhalsError as error:
        raise FormatError(f"the data frame: {' '.join(str(error).split())}.") from error
    keys = {str(as_text(column)): column for column in frame.columns}
    if len(keys) < len(frame.columns):
        raise FormatError("the data frame: two columns have the same name.", remedy="Rename one of them.")

    def load(columns: Sequence[str], rows: int | None) -> pl.DataFrame:
        chosen = frame if rows is None else frame.head(rows)
        return pl.DataFrame({name: _series(name, chosen.get_column(keys[name])) for name in columns})

    frame_backend = frame.implementation.name.lower()
    return SourceTable(
        name="the data frame",
        columns=tuple(keys),
        load=load,
        rows=len(frame),
        frame_backend=frame_backend if frame_backend in FRAME_BACKENDS else "polars",
    )


def _series(name: str, column: Any) -> pl.Series:
    import narwhals as nw

    if column.dtype != nw.Unknown:
        try:
            series: pl.Series = column.to_polars()
            return series.alias(name)
        except Exception:  # mixed objects, or pandas without pyarrow: convert value by value
            pass
    return text_series(name, column.to_list())


def read_columns(source: Mapping[Any, Any]) -> SourceTable:
    """Read a dict of lists, arrays or series."""
    columns = {str(name): _column(str(name), values) for name, values in source.items()}
    row_counts = {name: len(column) for name, column in columns.items()}
    if len(set(row_counts.values())) > 1:
        raise FormatError(
            "the columns differ in length: " + ", ".join(f"{n} has {h}" for n, h in row_counts.items()) + ".",
            remedy="Give one value per row.",
        )
    return table_from_frame(pl.DataFrame(columns), "the columns")


def _column(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    if not hasattr(values, "__len__") or isinstance(values, str | bytes):
        raise FormatError(f"column {name!r} must be a list or an array, got {type(values).__name__}.")
    try:
        return pl.Series(name, values)
    except Exception:  # mixed values: convert one by one
        return text_series(name, list(values))
