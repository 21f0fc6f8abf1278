"""A source as a table: named columns that are loaded when needed, and the line of the file that each row comes from.

Data frames of any kind and dicts of columns are read here; files are opened by `sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, IntArray
from crowdrank.data.tables import FRAME_BACKENDS
from crowdrank.errors import FormatError

SAMPLE_ROWS = 100


class RowLocation(NamedTuple):
    """Where a row is in its source.

    Parameters
    ----------
    line : int
        The line of a file, or the row counted from 1; 0 if unknown.
    remark : str, default ""
        A fault of the whole line rather than of one cell, such as too few fields.
    file : str, default ""
        The file, if there are several.
    """

    line: int
    remark: str = ""
    file: str = ""


UNKNOWN_LOCATION = RowLocation(0)


def count_from_one(rows: Sequence[int]) -> list[RowLocation]:
    return [RowLocation(row + 1) for row in rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceTable:
    """The columns of a source, before they have a meaning.

    Parameters
    ----------
    name : str
        The name in messages: a file name, or "the data frame".
    columns : tuple of str
        Names of the columns.
    load : callable
        Loads the named columns: all rows, or the first n.
    rows : int
        Number of rows.
    frame_backend : {"polars", "pandas", "pyarrow"}
        The kind of data frame the source is.
    repeated_names : frozenset of str
        Names of more than one column.
    strip_spaces : bool
        Whether spaces around a cell are ignored, as in text files.
    blank_rows : array of bool, optional
        Rows that are empty lines, not judgments.
    unreadable_rows : mapping of int to str
        Rows that could not be parsed, and why.
    unit : {"line", "row"}
        What `locate` counts.
    locate : callable
        Returns the locations of rows.
    notes : tuple of str
        Remarks for the import report.
    roles : mapping of str to str
        Roles that the format assigns to columns, "" for a role without a column. Other roles are guessed from names.
    short_names : mapping of str to str
        Columns without a platform's prefix, for guessing: INPUT:image_left is image_left.
    set_aside : mapping of str to array of bool
        Rows that the platform itself marks as not being judgments, by reason: gold, rejected.
    shown_swapped : array of bool, optional
        Rows that were shown with left and right exchanged.
    positions_known : bool
        Whether left and right are positions on the screen.
    has_header : bool
        Whether the source names its columns; otherwise they are numbered from 1.
    entries : int
        Number of rows or objects of the source, if each holds several judgments; else 0.
    part_of : array of int, optional
        Number of the judgment that each row is a part of, if judgments are split into several rows with weights.
    """

    name: str
    columns: tuple[str, ...]
    load: Callable[[Sequence[str], int | None], pl.DataFrame]
    rows: int
    frame_backend: str = "polars"
    repeated_names: frozenset[str] = frozenset()
    strip_spaces: bool = False
    blank_rows: BoolArray | None = None
    unreadable_rows: Mapping[int, str] = field(default_factory=dict)
    unit: str = "row"
    locate: Callable[[Sequence[int]], list[RowLocation]] = count_from_one
    notes: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    short_names: Mapping[str, str] = field(default_factory=dict)
    set_aside: Mapping[str, BoolArray] = field(default_factory=dict)
    shown_swapped: BoolArray | None = None
    positions_known: bool = True
    has_header: bool = True
    entries: int = 0
    part_of: IntArray | None = None

    @property
    def sample(self) -> pl.DataFrame:
        """The first rows, for recognising a format."""
        return self.load(self.columns, SAMPLE_ROWS)


def table_from_frame(frame: pl.DataFrame, name: str, *, frame_backend: str = "polars") -> SourceTable:
    def load(columns: Sequence[str], rows: int | None) -> pl.DataFrame:
        # Not `select`, which reads column names such as "*" or "^…$" as patterns.
        return pl.DataFrame(
            {column: frame.get_column(column).head(frame.height if rows is None else rows) for column in columns}
        )

    return SourceTable(
        name=name, columns=tuple(frame.columns), load=load, rows=frame.height, frame_backend=frame_backend
    )


def with_columns_computed(table: SourceTable, computed: pl.DataFrame, **changes: Any) -> SourceTable:
    """Add or replace columns; the others are loaded as before."""

    def load(columns: Sequence[str], rows: int | None) -> pl.DataFrame:
        kept = table.load([c for c in columns if c not in computed.columns], rows)
        fresh = computed if rows is None else computed.head(rows)
        return pl.DataFrame({c: (fresh if c in computed.columns else kept).get_column(c) for c in columns})

    kept = [column for column in table.columns if column not in computed.columns]
    return replace(table, columns=(*kept, *computed.columns), load=load, **changes)


def with_fields(table: SourceTable) -> SourceTable:
    """Return a table that has the fields of objects as columns: verdict.winner, which is also known as winner.

    Lists of two texts in every row are two columns besides, models_1 and models_2; beside them, so are lists of two
    numbers.
    """
    return _with_objects(_with_pairs(table))


def _with_pairs(table: SourceTable) -> SourceTable:
    types = table.load(table.columns, 1).schema if table.columns else {}
    texts = [column for column, kind in types.items() if kind == pl.List(pl.String)]
    numbers = [c for c, kind in types.items() if isinstance(kind, pl.List) and kind.inner.is_numeric()]
    lists = [*texts, *numbers] if texts else []
    frame = table.load(lists, None) if lists else pl.DataFrame()
    pairs = [column for column in lists if table.rows and bool((frame[column].list.len() == 2).all())]
    if not {*pairs} & {*texts}:
        return table
    sides = {f"{column}_{n + 1}": frame[column].list.get(n) for column in pairs for n in range(2)}
    new = {name: cells for name, cells in sides.items() if name not in table.columns}
    return with_columns_computed(table, pl.DataFrame(new)) if new else table


def _with_objects(table: SourceTable) -> SourceTable:
    types = table.load(table.columns, 1).schema if table.columns else {}
    objects = {column: kind for column, kind in types.items() if isinstance(kind, pl.Struct) and kind.fields}
    if not objects:
        return table
    frame = table.load(list(objects), None)
    paths = [(column, field.name) for column, kind in objects.items() for field in kind.fields]
    names, _ = dedupe_names([*(c for c in table.columns if c not in objects), *(f"{c}.{name}" for c, name in paths)])
    fields = {
        name: frame[column].struct.field(part) for name, (column, part) in zip(names[-len(paths) :], paths, strict=True)
    }
    found = with_columns_computed(table, pl.DataFrame(fields))
    parts = [part for _, part in paths]
    alone = {n: part for n, part in zip(fields, parts, strict=True) if parts.count(part) == 1 and part not in names}
    # Again, because a field may be an object itself.
    return _with_objects(replace(found, columns=names, short_names={**table.short_names, **alone}))


def combine_tables(tables: Sequence[SourceTable]) -> SourceTable:
    """Put the rows of several tables below each other; a column that one lacks is empty there."""
    if len(tables) == 1:
        return tables[0]
    first = tables[0]
    other = next((t for t in tables if t.roles != first.roles or not {*t.columns} & {*first.columns}), None)
    if other is not None:
        raise FormatError(f"{first.name} and {other.name} have different columns.", remedy="Read them one by one.")
    starts = np.cumsum([0, *(table.rows for table in tables)])
    columns = tuple(dict.fromkeys(column for table in tables for column in table.columns))

    def load(names: Sequence[str], rows: int | None) -> pl.DataFrame:
        frames = []
        for table, start in zip(tables, starts[:-1], strict=True):
            most = None if rows is None else max(rows - int(start), 0)
            found = table.load([name for name in names if name in table.columns], most)
            height = table.rows if most is None else min(most, table.rows)
            empty = pl.Series([None] * height, dtype=pl.Null)
            # By numbers, because polars reads names such as "" and "^left$" as patterns.
            cells = {str(n): found.get_column(name) if name in found else empty for n, name in enumerate(names)}
            frames.append(pl.DataFrame(cells))
        combined = pl.concat(_as_same_types(frames), how="vertical_relaxed") if names else pl.DataFrame()
        return pl.DataFrame({name: combined.get_column(str(n)) for n, name in enumerate(names)})

    def locate(rows: Sequence[int]) -> list[RowLocation]:
        found = []
        for row in rows:
            n = int(np.searchsorted(starts, row, side="right")) - 1
            found.append(tables[n].locate([row - int(starts[n])])[0]._replace(file=tables[n].name))
        return found

    def masks(of: Callable[[SourceTable], BoolArray | None]) -> BoolArray:
        return np.concatenate([np.zeros(t.rows, bool) if (mask := of(t)) is None else mask for t in tables])

    parts = None
    if any(table.part_of is not None for table in tables):
        each = [np.arange(t.rows) if t.part_of is None else t.part_of for t in tables]
        parts = np.concatenate([numbers + start for numbers, start in zip(each, starts[:-1], strict=True)])
    reasons = dict.fromkeys(reason for table in tables for reason in table.set_aside)
    return replace(
        first,
        name=f"{first.name} and {len(tables) - 1} more",
        columns=columns,
        load=load,
        rows=int(starts[-1]),
        repeated_names=frozenset().union(*(table.repeated_names for table in tables)),
        blank_rows=masks(lambda table: table.blank_rows),
        unreadable_rows={
            row + int(start): why
            for table, start in zip(tables, starts, strict=False)
            for row, why in table.unreadable_rows.items()
        },
        locate=locate,
        notes=tuple(dict.fromkeys(note for table in tables for note in table.notes)),
        set_aside={reason: masks(lambda table, reason=reason: table.set_aside.get(reason)) for reason in reasons},  # type: ignore[misc]
        shown_swapped=masks(lambda table: table.shown_swapped)
        if any(table.shown_swapped is not None for table in tables)
        else None,
        entries=sum(table.entries for table in tables),
        part_of=parts,
    )


def _as_same_types(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Return frames whose columns of one name have one type: text, if they differ."""
    types: dict[str, set[pl.DataType]] = {}
    for frame in frames:
        for name, kind in frame.schema.items():
            if kind != pl.Null:  # an empty column fits any
                types.setdefault(name, set()).add(kind)
    mixed = {name for name, kinds in types.items() if len(kinds) > 1}
    mixed |= frames[0].columns - types.keys()
    return [
        pl.DataFrame([text_series(s.name, s.to_list()) if s.name in mixed else s for s in frame.iter_columns()])
        for frame in frames
    ]


def dedupe_names(names: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Make names unique; returns them and the names that occurred more than once."""
    unique: dict[str, None] = {}
    repeated = set()
    for number, name in enumerate(names, 1):
        if name in unique:
            repeated.add(name)
        free = f"{name} (column {number})" if name in unique else name
        while free in unique:
            free += "'"
        unique[free] = None
    return tuple(unique), frozenset(repeated)


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
