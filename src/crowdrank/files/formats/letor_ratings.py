"""LETOR and SVMlight ranking files as ratings: the grade of each document in its query. Features are for learning."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.files.formats.columns import playing
from crowdrank.files.formats.format import Format
from crowdrank.files.letor import read_letor
from crowdrank.files.sources import Source
from crowdrank.files.tables import Place, Table, table_of

_LINE = re.compile(r"[-+.\d]\S*\s+qid:\S+(\s+\d+:\S+)*\s*(#.*)?")


def _recognises(source: Source) -> bool:
    lines = [line.strip() for line in source.head if not line.lstrip().startswith("#")]
    return bool(lines) and all(_LINE.fullmatch(line) for line in lines)


def _read(source: Source) -> Table:
    if source.path is None:
        raise FormatError(f"{source.name}: LETOR is a format of files.")
    found = read_letor(source.path, features=False)
    columns = {"item": found.item, "grade": pl.Series(found.grade)}
    if found.query is not None:
        columns["query"] = found.query
    table = replace(
        table_of(pl.DataFrame(columns), source.name), unit="line", notes=found.notes,
        locate=lambda rows: [Place(int(found.line[row])) for row in rows],
    )  # fmt: skip
    return playing(table, "letor", item="item", grade="grade", query="query?")


LETOR = Format(
    name="letor",
    description="LETOR and SVMlight ranking files, as ratings: the grade of each document in its query.",
    known_by="lines such as 2 qid:10 1:0.5 2:0.7",
    recognises=_recognises,
    read=_read,
)
