"""Questionnaires: responses exported by Qualtrics and SurveyMonkey, with more rows of names below the header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from crowdrank.io.column_roles import normalize_name
from crowdrank.io.formats.base import Format, words
from crowdrank.io.source_table import RowLocation, SourceTable, dedupe_names, table_from_frame
from crowdrank.io.sources import Source

# What Qualtrics adds to the answers. ResponseId stays, because it stands for the annotator.
_METADATA = frozenset(
    [
        "startdate",
        "enddate",
        "status",
        "ipaddress",
        "progress",
        "durationinseconds",
        "finished",
        "recordeddate",
        "recipientlastname",
        "recipientfirstname",
        "recipientemail",
        "externalreference",
        "locationlatitude",
        "locationlongitude",
        "distributionchannel",
        "userlanguage",
    ]
)
_MARK = '"ImportId"'
_ROWS_BELOW_HEADER = 3
# Two items, a tie and a skip.
_MOST_CHOICES = 4


def _mark_row(table: SourceTable) -> int | None:
    """Return the row that holds Qualtrics' own ids of the questions."""
    head = table.load(table.columns, _ROWS_BELOW_HEADER)
    return next((n for n, row in enumerate(head.rows()) if any(_MARK in str(cell) for cell in row)), None)


def _read_qualtrics(source: Source) -> SourceTable:
    """Name the columns by their questions (Rank the drinks [tea]), and leave out the rows of names."""
    table = source.table
    mark = _mark_row(table)
    skipped = 0 if mark is None else mark + 1
    frame = table.load(table.columns, None)
    texts = frame.row(0) if skipped > 1 else frame.columns
    names = [
        _question(column, str(text or ""), frame[column][skipped:])
        for column, text in zip(frame.columns, texts, strict=True)
    ]
    columns, repeated = dedupe_names(names)
    frame = frame.slice(skipped)
    frame.columns = list(columns)
    status = next((words(frame[c]) for c in columns if normalize_name(c) == "status"), pl.Series(dtype=pl.String))
    preview = status.is_in(["survey preview", "survey test", "1", "2"]).to_numpy()
    frame = frame.select(pl.col([c for c in columns if normalize_name(c) not in _METADATA]))

    def locate(rows: Sequence[int]) -> list[RowLocation]:
        return table.locate([row + skipped for row in rows])

    return replace(
        table_from_frame(frame, table.name),
        repeated_names=repeated,
        strip_spaces=True,
        unit=table.unit,
        locate=locate,
        notes=(*table.notes, f"The {skipped} rows below the header were read as names of the questions."),
        blank_rows=None if table.blank_rows is None else table.blank_rows[skipped:],
        set_aside={"preview of the survey": preview} if preview.any() else {},
    )


def _question(column: str, text: str, answers: pl.Series) -> str:
    """Return the name of a column: an item in brackets, if the text of the question ends with one.

    A question about two items keeps its text, because it names them.
    """
    if normalize_name(column) in _METADATA | {"responseid"} or answers.dtype.is_nested():
        return column
    question, dash, item = text.rpartition(" - ")
    if dash and item.strip():
        return f"{' '.join(question.split())} [{item.strip()}]"
    chosen = [answer for answer in words(answers).unique().to_list() if answer]
    about = 0 < len(chosen) <= _MOST_CHOICES and sum(answer in text.lower() for answer in chosen) == min(len(chosen), 2)
    return " ".join(text.split()) if about and not any(map(str.isdecimal, chosen)) else column


QUALTRICS = Format(
    name="qualtrics",
    description="Responses of a Qualtrics survey; questions about several items are read as ratings or rankings.",
    known_by="columns StartDate, EndDate and ResponseId, and a row of import ids",
    recognises=lambda source: _mark_row(source.table) is not None,
    read=_read_qualtrics,
)


# What SurveyMonkey adds to the answers, and what its second row says of a question without choices.
_COLLECTED = frozenset(
    "collectorid startdate enddate ipaddress emailaddress firstname lastname customdata1".split()  # noqa: SIM905
)
_OPEN = re.compile(r"response|open-ended response|other \(please specify\)", re.IGNORECASE)


def _read_surveymonkey(source: Source) -> SourceTable:
    """Name the columns by question and choice: the question is above the first of its choices only."""
    table = source.table
    frame = table.load(table.columns, None)
    choices = [str(cell or "").strip() for cell in (frame.row(0) if frame.height else frame.columns)]
    second = choices[0] == ""
    names, question = [], ""
    for column, choice in zip(frame.columns, choices, strict=True):
        bare = re.sub(r" ?\(column \d+\)$", "", column)
        question = bare or question
        named = second and choice and not _OPEN.fullmatch(choice)
        names.append(f"{' '.join(question.split())} [{choice}]" if named else column)
    columns, repeated = dedupe_names(names)
    skipped = int(second)
    frame = frame.slice(skipped)
    frame.columns = list(columns)
    frame = frame.select(pl.col([c for c in columns if normalize_name(c) not in _COLLECTED]))
    return replace(
        table_from_frame(frame, table.name),
        repeated_names=repeated,
        strip_spaces=True,
        unit=table.unit,
        locate=lambda rows: table.locate([row + skipped for row in rows]),
        notes=(*table.notes, *(["The row below the header was read as the choices of the questions."] * skipped)),
        blank_rows=None if table.blank_rows is None else table.blank_rows[skipped:],
    )


SURVEYMONKEY = Format(
    name="surveymonkey",
    description="Responses of a SurveyMonkey survey; a question about several items is read as ratings or a ranking.",
    known_by="columns Respondent ID and Collector ID",
    read=_read_surveymonkey,
)
