"""Tables of totals: how often each side of a pair won, or the grades of an item by several annotators in one row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import polars as pl

from crowdrank.errors import CrowdrankError
from crowdrank.io.column_roles import RoleMatcher
from crowdrank.io.rows import parse_numbers
from crowdrank.io.source_table import SourceTable
from crowdrank.io.synonyms import ANNOTATOR_WORDS, ITEM_WORDS, normalize_name
from crowdrank.io.wide_tables import free_name, is_numeric, list_names, unpivot

_WINS = re.compile(r"(?:wins?|count|votes|n)(a|b|1|2|left|right)|(a|b|left|right)(?:wins?|count|votes)")
_FIRST = ("a", "1", "left")
_RATER = re.compile(rf"(?:{'|'.join(ANNOTATOR_WORDS)}|participant|subject|subj|sub|user|student|obs)(?:id)?\d+")
_MIN_RATERS = 2


def read_tallies(table: SourceTable, kind: str | None) -> SourceTable | None:
    """Return one row per side with its wins as the weight, or one row per grade; None if the columns are neither."""
    if kind in (None, "comparisons") and (found := _wins(table)) is not None:
        return found
    return _raters(table) if kind in (None, "ratings") else None


def _wins(table: SourceTable) -> SourceTable | None:
    sides: dict[str, str] = {}
    for column in table.columns:
        if (match := _WINS.fullmatch(normalize_name(column))) is not None:
            side = "left" if (match[1] or match[2]) in _FIRST else "right"
            if sides.setdefault(side, column) != column:
                return None
    pair = _named_sides(table)
    group = [sides[side] for side in ("left", "right") if side in sides]
    if len(group) < 2 or not pair or not all(is_numeric(table, column) for column in group):
        return None
    winner, weight = free_name(table, "winner"), free_name(table, "weight")
    names = {column: side for side, column in sides.items()}
    found = unpivot(table, group, names, winner, weight)
    never = np.nan_to_num(parse_numbers(found.load([weight], None)[weight]), nan=1.0) == 0
    note = f"{list_names(group)} were read as how often each side won."
    return replace(
        found,
        blank_rows=never if found.blank_rows is None else found.blank_rows | never,
        roles={**table.roles, **pair, "winner": winner, "weight": weight},
        notes=(*table.notes, note),
    )


def _named_sides(table: SourceTable) -> dict[str, str] | None:
    with suppress(CrowdrankError):
        return RoleMatcher(table, {}).pair(("left", "right"))
    return {}


def _raters(table: SourceTable) -> SourceTable | None:
    if _named_sides(table) is not None:  # answers to comparisons, not grades
        return None
    group = [column for column in table.columns if _RATER.fullmatch(normalize_name(column))]
    item = _item_column(table, [column for column in table.columns if column not in group])
    if len(group) < _MIN_RATERS or not item or not all(is_numeric(table, column) for column in group):
        return None
    who, grade = free_name(table, "annotator"), free_name(table, "grade")
    note = (
        f"Each row is an item, and its grades by {len(group)} annotators are in {list_names(group)}: larger is better."
    )
    found = unpivot(table, group, {column: column for column in group}, who, grade)
    roles = {**table.roles, "item": item, "annotator": who, "grade": grade}
    return replace(found, roles=roles, notes=(*table.notes, note))


def _item_column(table: SourceTable, columns: Sequence[str]) -> str:
    """Return the column that names the item of each row: known by its name, or the only one with a value per row."""
    if not table.rows:
        return ""
    named = {normalize_name(column): column for column in columns}
    found = [named[name] for word in ITEM_WORDS for name in (f"{word}name", word, f"{word}id") if name in named]
    if found:
        return found[0]
    cells = table.load(columns, None) if columns else pl.DataFrame()
    plain = [c for c in columns if not _holds_objects(cells[c]) and cells[c].n_unique() == table.rows]
    return plain[0] if len(plain) == 1 else ""


def _holds_objects(column: pl.Series) -> bool:
    return column.dtype.is_nested() or column.dtype == pl.Object
