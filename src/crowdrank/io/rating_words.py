"""Grades in words: the usual scales of questionnaires, as numbers."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from crowdrank.io.column_expressions import load_expressions
from crowdrank.io.rows import parse_labels
from crowdrank.io.source_table import SourceTable, with_columns_computed
from crowdrank.io.synonyms import normalize_name

# Each scale from worst to best; words of one step are separated by bars.
_SCALES = (
    "strongly disagree|disagree|somewhat disagree|neutral/neither agree nor disagree/undecided/not sure|somewhat agree"
    "|agree|strongly agree",
    "terrible/awful/very poor/very bad|bad|poor|fair/average/ok/okay/acceptable/neutral|good|very good|excellent/great",
    "very dissatisfied|dissatisfied|somewhat dissatisfied|neutral/neither|somewhat satisfied|satisfied|very satisfied",
    "very unlikely|unlikely|neutral/neither likely nor unlikely|likely|very likely",
    "never|rarely/seldom|sometimes/occasionally|often/frequently|always",
    "not at all|slightly/a little|moderately/somewhat|very/a lot|extremely",
    "very low|low|medium/moderate|high|very high",
)


def _steps(scale: str) -> dict[str, int]:
    return {normalize_name(word): n for n, step in enumerate(scale.split("|"), 1) for word in step.split("/")}


def with_numbers_for_words(table: SourceTable, column: str) -> SourceTable:
    """Replace the words of a scale (poor, good, excellent) by numbers; other columns are left as they are."""
    cells = load_expressions(table, [column])[column]
    if cells.dtype != pl.String:
        return table
    labels = parse_labels(cells, strip_spaces=True)
    words = {word: normalize_name(word) for word in labels.drop_nulls().unique().to_list()}
    if not 2 <= len(words) <= 20:
        return table
    known = next((steps for scale in _SCALES if {*words.values()} <= (steps := _steps(scale)).keys()), None)
    if known is None:
        return table
    # The steps that occur are numbered from 1, so that a scale of five words has grades from 1 to 5.
    found = {step: n for n, step in enumerate(sorted({known[name] for name in words.values()}), 1)}
    grades = {word: str(found[known[name]]) for word, name in words.items()}
    listed = ", ".join(f"{word} {grade}" for word, grade in sorted(grades.items(), key=lambda pair: pair[1]))
    numbers = labels.replace_strict(list(grades), list(grades.values()), default=None, return_dtype=pl.String)
    note = f"The words in {column!r} were read as {listed}."
    changed = with_columns_computed(table, pl.DataFrame({column: numbers}))
    return replace(changed, columns=table.columns, notes=(*table.notes, note))
