"""Tables of features of items, for learning to rank: one row per item of a query, and grades if they are known."""

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
from crowdrank.io.column_roles import (
    RoleMatch,
    RoleMatcher,
    each,
    find_column,
    refuse_repeated_name,
    require_role,
    resolve_columns,
)
from crowdrank.io.formats.retrieval import looks_like_letor, read_letor
from crowdrank.io.rows import Rows, parse_numbers
from crowdrank.io.source_table import SourceTable
from crowdrank.io.sources import open_table

_ROLES = ("item", "query", "grade")
_GRADES = each("grade relevance label gold truth")


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureTable:
    """Features of items, in the order of the source.

    Parameters
    ----------
    source : str
        The name in messages.
    item : array of str
        The label of each row.
    query : array of str, optional
        The query of each row.
    names : tuple of str
        Names of the features.
    values : array of float, shape (rows, features)
        The features; NaN if a cell is not a number.
    grade : array of float, optional
        The true grade of each row, NaN if unknown.
    frame_backend : {"polars", "pandas", "pyarrow"}
        The kind of data frame the source is.
    left_out : tuple of str
        Columns that contain no numbers.
    notes : tuple of str
        Remarks on how columns were understood.
    where : callable
        Returns the place of a row in the source, in words.
    """

    source: str
    item: ObjectArray
    query: ObjectArray | None
    names: tuple[str, ...]
    values: FloatArray
    grade: FloatArray | None = None
    frame_backend: str = "polars"
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    where: Callable[[int], str] = lambda row: f"row {row + 1}"


def read_features(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    features: Sequence[str] | None = None,
    encoding: str | None = None,
) -> FeatureTable:
    """Read features of items from a CSV, Parquet or LETOR file, a data frame or a dict of columns.

    Parameters
    ----------
    source : path, data frame or mapping of str to sequence
        One row per item of a query.
    columns : mapping of str to str or None, optional
        The column of the roles `item`, `query` and `grade`; None for a role without a column.
    features : sequence of str, optional
        Names of the features. By default all other columns that contain numbers.
    encoding : str, optional
        The encoding of a text file that is not UTF-8.

    Returns
    -------
    FeatureTable

    Examples
    --------
    >>> read_features({"query": [1, 1], "doc": ["a", "b"], "label": [0, 1], "length": [3, 5]}).names
    ('length',)
    """
    if isinstance(source, str | PathLike) and looks_like_letor(Path(source)):
        return _from_letor(Path(source), columns, features)
    table = open_table(source, encoding)
    matcher = RoleMatcher(table, resolve_columns(table, columns, _ROLES))
    roles: dict[str, str] = {}
    matcher.add(roles, "item")
    matcher.add(roles, "query")
    matcher.add(roles, "grade", _GRADES)
    require_role(table, roles, "item")
    chosen = _candidates(table, roles, features)
    rows = Rows(table, RoleMatch("features", roles), chosen, strict=True)
    item, query = rows.labels("item"), rows.optional_labels("query")
    rows.finish_checks()
    numbers = {name: parse_numbers(rows.usable(rows.frame[name])) for name in chosen}
    names, left_out = _split_features(rows, numbers, chosen if features is not None else ())
    if not names:
        raise FormatError(f"{table.name}: no column contains numbers that could be features of the items.")
    kept = np.flatnonzero(rows.errors.usable)
    grade = parse_numbers(rows.usable(rows.column("grade"))) if "grade" in roles else None
    return FeatureTable(
        source=table.name,
        item=_as_objects(rows.usable(item)),
        query=None if query is None else _as_objects(rows.usable(query)),
        names=tuple(names),
        values=np.column_stack([numbers[name] for name in names]),
        grade=grade,
        frame_backend=table.frame_backend,
        left_out=tuple(left_out),
        notes=(*table.notes, *matcher.notes, *_notes(roles)),
        where=lambda row: f"{table.unit} {table.locate([int(kept[row])])[0].line or int(kept[row]) + 1}",
    )


def _from_letor(path: Path, columns: Mapping[str, str | None] | None, features: Sequence[str] | None) -> FeatureTable:
    if columns:
        raise FormatError(f"{path.name}: the columns of a LETOR file have no names.", remedy="Leave columns out.")
    found = read_letor(path)
    names = tuple(f"f{n}" for n in range(1, found.values.shape[1] + 1))
    picked = slice(None) if features is None else [_feature_index(names, name, path.name) for name in features]
    return FeatureTable(
        source=path.name,
        item=_as_objects(found.item),
        query=None if found.query is None else _as_objects(found.query),
        names=names if features is None else tuple(features),
        values=found.values[:, picked],
        grade=found.grade,
        notes=found.notes,
        where=lambda row: f"line {int(found.line[row])}",
    )


def _as_objects(labels: pl.Series) -> ObjectArray:
    return np.array(labels.to_list(), dtype=object)


def _feature_index(names: tuple[str, ...], name: str, source: str) -> int:
    if name not in names:
        raise FormatError(f"{source}: the features of a LETOR file are called f1 to {names[-1]}, got {name!r}.")
    return names.index(name)


def _candidates(table: SourceTable, roles: Mapping[str, str], features: Sequence[str] | None) -> list[str]:
    if features is not None:
        return [find_column(table, name) for name in features]
    return [refuse_repeated_name(table, column) for column in table.columns if column not in roles.values()]


def _split_features(rows: Rows, numbers: dict[str, FloatArray], required: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that contain a number, and those that do not."""
    names, left_out = [], []
    for name, column in numbers.items():
        if not np.isnan(column).all():
            names.append(name)
        elif name in required:
            raise FormatError(f"{rows.table.name}: feature {name!r} contains no numbers.")
        else:
            left_out.append(name)
    return names, left_out


def _notes(roles: Mapping[str, str]) -> list[str]:
    return [f"{roles['grade']!r} was read as the relevance grade, not as a feature."] if "grade" in roles else []
