"""Features of items: one row an item of a query, its features as columns of numbers; grades where they are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, ObjectArray
from crowdrank.errors import FormatError
from crowdrank.io import cells
from crowdrank.io.column_roles import each
from crowdrank.io.formats.letor import looks_like_letor, read_letor
from crowdrank.io.role_matching import Match, Search, find_column, refuse_repeated, told_roles
from crowdrank.io.rows import Rows
from crowdrank.io.sources import open_table
from crowdrank.io.tables import Table

_ROLES = ("item", "query", "grade")
_GRADES = each("grade relevance label gold truth")


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureColumns:
    """What a source says of items: rows in its own order."""

    source: str
    """How messages call it."""
    item: ObjectArray
    query: ObjectArray | None
    names: tuple[str, ...]
    values: FloatArray
    """One row an item, one column a feature; NaN where a cell holds no number."""
    grade: FloatArray | None = None
    """How good an item truly is, where the source says so; NaN where it does not."""
    native: str = "polars"
    left_out: tuple[str, ...] = ()
    """Columns that hold no numbers."""
    notes: tuple[str, ...] = ()
    where: Callable[[int], str] = lambda row: f"row {row + 1}"
    """The place of a row in its source, in words."""


def read_features(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    features: Sequence[str] | None = None,
    encoding: str | None = None,
) -> FeatureColumns:
    """Features from a CSV, Parquet or LETOR file, a data frame or a dict of columns.

    `columns` names the column of a role, `item`, `query` or `grade` (None for "there is none"). All others that hold
    numbers are features, unless `features` says which.

    >>> read_features({"query": [1, 1], "doc": ["a", "b"], "label": [0, 1], "length": [3, 5]}).names
    ('length',)
    """
    if isinstance(source, str | PathLike) and looks_like_letor(Path(source)):
        return _of_letor(Path(source), columns, features)
    table = open_table(source, encoding)
    search = Search(table, told_roles(table, columns, _ROLES))
    roles: dict[str, str] = {}
    search.add(roles, "item")
    search.add(roles, "query")
    search.add(roles, "grade", _GRADES)
    if "item" not in roles:
        raise FormatError(f"{table.name}: no column is the item; name it: columns={{'item': 'COLUMN'}}.")
    chosen = _chosen(table, roles, features)
    rows = Rows(table, Match("features", roles), chosen, strict=True)
    item, query = rows.labels("item"), rows.maybe_labels("query")
    rows.settle()
    numbers = {name: cells.numbers(rows.usable(rows.frame[name])) for name in chosen}
    names, left_out = _features_among(rows, numbers, chosen if features is not None else ())
    if not names:
        raise FormatError(f"{table.name}: no column holds features: numbers that describe the items.")
    kept = np.flatnonzero(rows.problems.usable)
    grade = cells.numbers(rows.usable(rows.column("grade"))) if "grade" in roles else None
    return FeatureColumns(
        source=table.name,
        item=_texts(rows.usable(item)),
        query=None if query is None else _texts(rows.usable(query)),
        names=tuple(names),
        values=np.column_stack([numbers[name] for name in names]),
        grade=grade,
        native=table.native,
        left_out=tuple(left_out),
        notes=(*table.notes, *search.notes, *_notes(roles)),
        where=lambda row: f"{table.unit} {table.locate([int(kept[row])])[0].line or int(kept[row]) + 1}",
    )


def _of_letor(path: Path, columns: Mapping[str, str | None] | None, features: Sequence[str] | None) -> FeatureColumns:
    if columns:
        raise FormatError(f"{path.name}: is a LETOR file, in which columns have no names; leave their roles out.")
    found = read_letor(path)
    names = tuple(f"f{n}" for n in range(1, found.values.shape[1] + 1))
    picked = slice(None) if features is None else [_among(names, name, path.name) for name in features]
    return FeatureColumns(
        source=path.name,
        item=_objects(found.item),
        query=None if found.query is None else _objects(found.query),
        names=names if features is None else tuple(features),
        values=found.values[:, picked],
        grade=found.grade,
        notes=found.notes,
        where=lambda row: f"line {int(found.line[row])}",
    )


def _objects(labels: pl.Series) -> ObjectArray:
    return np.array(labels.to_list(), dtype=object)


def _among(names: tuple[str, ...], name: str, source: str) -> int:
    if name not in names:
        raise FormatError(f"{source}: features are called f1 to {names[-1]}, got {name!r}.")
    return names.index(name)


def _chosen(table: Table, roles: Mapping[str, str], features: Sequence[str] | None) -> list[str]:
    if features is not None:
        return [find_column(table, name) for name in features]
    return [refuse_repeated(table, column) for column in table.columns if column not in roles.values()]


def _features_among(rows: Rows, numbers: dict[str, FloatArray], told: Sequence[str]) -> tuple[list[str], list[str]]:
    """Columns in which some cell holds a number, and those left out: all text, or nothing at all."""
    names, left_out = [], []
    for name, column in numbers.items():
        if not np.isnan(column).all():
            names.append(name)
        elif name in told:
            raise FormatError(f"{rows.table.name}: feature {name!r} holds no numbers.")
        else:
            left_out.append(name)
    return names, left_out


def _notes(roles: Mapping[str, str]) -> list[str]:
    return [f"{roles['grade']!r} was read as the grade of relevance, not as a feature."] if "grade" in roles else []


def _texts(column: pl.Series) -> ObjectArray:
    return np.array(column.to_list(), dtype=object)
