"""Columns that are made of others: `type+level` joins cells, and `label:0=left,1=right` says what codes mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.source_table import SourceTable

JOIN = "+"
# What a code can mean, in words that the outcome parser knows.
CODE_MEANINGS = ("left", "right", "tie", "both_bad", "skip")
_CODES = re.compile(r"(?P<column>.+):(?P<codes>[^:=,]+=\w+(?:,[^:=,]+=\w+)*)")


def resolve_expression(table: SourceTable, text: str, find: Callable[[SourceTable, str], str]) -> str:
    """Return an expression in the spelling of the table; `find` finds a single column, or raises an error."""
    if text in table.columns:
        return find(table, text)
    if (found := _CODES.fullmatch(text)) is not None:
        meanings = split_codes(text)[1]
        if unknown := [word for word in meanings.values() if word not in CODE_MEANINGS]:
            known = ", ".join(CODE_MEANINGS)
            raise FormatError(f"{text!r}: a code can mean {known}, got {unknown[0]!r}.")
        return f"{find(table, found['column'])}:{found['codes']}"
    parts = [part.strip() for part in text.split(JOIN)]
    if len(parts) > 1 and all(parts):
        return JOIN.join(find(table, part) for part in parts)
    return find(table, text)


def split_codes(text: str) -> tuple[str, dict[str, str]]:
    """Split `label:0=left,1=right` into the column and the meaning of each code."""
    found = _CODES.fullmatch(text)
    if found is None:
        return text, {}
    pairs = (pair.partition("=") for pair in found["codes"].split(","))
    return found["column"], {code.strip(): word.lower() for code, _, word in pairs}


def stored_columns(expression: str, columns: Sequence[str]) -> list[str]:
    """Return the columns of a table that an expression reads."""
    if expression in columns:
        return [expression]
    column = split_codes(expression)[0]
    return [column] if column in columns else column.split(JOIN)


def load_expressions(table: SourceTable, expressions: Sequence[str], rows: int | None = None) -> pl.DataFrame:
    """Load columns and expressions; each is a column of the result under its own text."""
    stored = {e: stored_columns(e, table.columns) for e in expressions}
    frame = table.load(list(dict.fromkeys(c for columns in stored.values() for c in columns)), rows)
    return pl.DataFrame({e: _evaluate(frame, e, columns) for e, columns in stored.items()})


def _evaluate(frame: pl.DataFrame, expression: str, columns: Sequence[str]) -> pl.Series:
    from crowdrank.io.rows import parse_labels

    if columns == [expression]:
        return frame.get_column(expression)
    cells = [parse_labels(frame.get_column(column), strip_spaces=True) for column in columns]
    if len(cells) == 1:
        meanings = split_codes(expression)[1]
        return cells[0].replace(list(meanings), list(meanings.values()))
    # A part that is missing is left out, so that a reference without a level keeps its name.
    joined = pl.select(pl.concat_str(cells, separator=JOIN, ignore_nulls=True)).to_series()
    return joined.set((joined == "").fill_null(True), None)
