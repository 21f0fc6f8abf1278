"""Information retrieval: LETOR or SVMlight with queries, and TREC's relevance judgments (qrels) and runs.

A line of LETOR is one item: `2 qid:10032 1:0.05 2:0.7 # docid = GX029-35`. Read as judgments, it is the grade of a
document in its query; the features are for learning to rank.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Rankings, Ratings
from crowdrank.errors import FormatError
from crowdrank.io.formats.base import (
    Format,
    Writer,
    all_lines_match,
    assign_roles,
    optional,
    split_lines,
    table_from_lines,
)
from crowdrank.io.source_table import RowLocation, SourceTable, table_from_frame
from crowdrank.io.sources import Source, as_utf8, decompress, read_file
from crowdrank.io.writer import write_lines

_SUFFIXES = (".letor", ".svmlight", ".libsvm", ".svm")
_POSSIBLE_SUFFIXES = (".txt", ".dat", "")
_FIRST_LINE = re.compile(r"\s*[-+.\d][^\s:]*(\s+qid:\S+)?(\s+\d+:\S+)+\s*(#|$)")
# Lines parsed at a time: a few million cells.
_CHUNK = 20_000
# Bytes that contain the first line.
_HEAD = 1 << 20
# A larger index is a mistake, and its matrix would not fit in memory.
_MAX_FEATURES = 100_000


@dataclass(frozen=True, eq=False)
class Letor:
    """The content of a LETOR file.

    Parameters
    ----------
    grade : array of float
        The grade of each line.
    query : polars.Series, optional
        The query of each line.
    item : polars.Series
        The name of each item.
    values : array of float
        The features; feature 1 is the first column, and missing ones are zero.
    line : array of int
        The line of each row in the file, from 1.
    notes : tuple of str
        Remarks for the import report.
    """

    grade: FloatArray
    query: pl.Series | None
    item: pl.Series
    values: FloatArray
    line: IntArray
    notes: tuple[str, ...] = ()


def looks_like_letor(path: Path) -> bool:
    """Return whether a file is LETOR: by its suffix, or for .txt, .dat and no suffix by its first line."""
    name = Path(path.stem if path.suffix.lower() == ".gz" else path.name)
    if name.suffix.lower() in _SUFFIXES:
        return True
    if name.suffix.lower() not in _POSSIBLE_SUFFIXES or not path.is_file():
        return False
    first = next((line for line in _head(path) if line.strip() and not line.lstrip().startswith("#")), "")
    return bool(_FIRST_LINE.match(first))


def _head(path: Path) -> list[str]:
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return file.read(_HEAD).decode("utf-8", errors="replace").splitlines()
    except (OSError, EOFError, zlib.error):  # the reader will report what is wrong
        return []


def read_letor(path: Path, features: bool = True) -> Letor:
    """Read a file, with or without its features; a line that cannot be parsed is an error."""
    if not path.is_file():
        raise FormatError(f"{path}: there is no such file.")
    text = as_utf8(decompress(read_file(path), path.name), path.name).decode()
    lines = pl.Series("line", [text], dtype=pl.String).str.split("\n").explode()
    body = lines.str.extract(r"^([^#]*)").str.strip_chars()
    kept = (body.str.len_bytes() > 0).to_numpy().nonzero()[0]
    if not len(kept):
        raise FormatError(f"{path.name}: is empty.")
    body, remark = body[kept], lines[kept].str.extract(r"#\s*(.*)$").str.strip_chars()
    number = kept.astype(np.int64) + 1
    grade = _grades(body, number, path.name)
    query = _queries(body, number, path.name)
    values = _values(body, number, path.name) if features else np.zeros((len(body), 0))
    item, notes = _items(remark, query)
    return Letor(grade, query, item, values, number, notes)


def _grades(body: pl.Series, number: IntArray, name: str) -> FloatArray:
    first = body.str.extract(r"^(\S+)")
    found = first.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    _refuse(~np.isfinite(found), number, name, lambda row: f"the grade must be a number, got {first[row]!r}")
    return found


def _queries(body: pl.Series, number: IntArray, name: str) -> pl.Series | None:
    found = body.str.extract(r"^\S+\s+qid:(\S+)")
    if found.null_count() == len(found):
        return None
    _refuse(found.is_null().to_numpy(), number, name, lambda row: "no qid:, though other lines have one")
    return found


def _values(body: pl.Series, number: IntArray, name: str) -> FloatArray:
    values = np.zeros((len(body), 0))
    for row, column, value in _cells(body, number, name):
        if (wider := int(column.max(initial=0)) - values.shape[1]) > 0:
            values = np.pad(values, ((0, 0), (0, wider)))
        values[row, column - 1] = value
    if not values.shape[1]:
        raise FormatError(f"{name}: no line has features, such as 1:0.5.")
    return values


def _cells(body: pl.Series, number: IntArray, name: str) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Iterate over row, column and value of all cells, many lines at a time."""
    rest = body.str.replace(r"^\S+(\s+qid:\S+)?\s*", "")
    for start in range(0, len(rest), _CHUNK):
        here = rest[start : start + _CHUNK]
        words = here.str.extract_all(r"\S+")
        row = start + np.repeat(np.arange(len(here)), words.list.len().to_numpy().astype(np.int64))
        cell = words.explode().drop_nulls()  # a line without features has one empty cell
        halves = cell.str.split_exact(":", 1).struct
        column = halves.field("field_0").cast(pl.Int64, strict=False).fill_null(0).to_numpy()
        value = halves.field("field_1").cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        wrong = (column < 1) | (column > _MAX_FEATURES) | ~np.isfinite(value)
        _refuse(wrong, number[row], name, partial(_describe_cell, cell))
        _refuse_repeated_features(row, column, number, name)
        yield row, column, value


def _describe_cell(cell: pl.Series, at: int) -> str:
    return f"a feature must be index:value, such as 3:0.5, got {cell[at]!r}"


def _refuse_repeated_features(row: IntArray, column: IntArray, number: IntArray, name: str) -> None:
    key = np.sort(row * (_MAX_FEATURES + 1) + column)
    if (twice := np.flatnonzero(key[1:] == key[:-1])).size:
        line, feature = divmod(int(key[twice[0]]), _MAX_FEATURES + 1)
        raise FormatError(f"{name}: line {int(number[line])}: feature {feature} is given twice.")


def _items(remark: pl.Series, query: pl.Series | None) -> tuple[pl.Series, tuple[str, ...]]:
    """Return the names in the comments (`docid = …`, or one word), or else numbers within the query."""
    named = remark.str.extract(r"docid\s*[=:]\s*(\S+)")
    if named.null_count():
        named = remark.str.extract(r"^([^\s=:]+)$")
    if not named.null_count():
        return named, ()
    queries = (pl.repeat("", len(remark), eager=True) if query is None else query).alias("query")
    number = queries.to_frame().select(pl.int_range(1, pl.len() + 1).over("query")).to_series()
    note = "The file does not name its items, so they are numbered within each query, from 1."
    return number.cast(pl.String), (note,)


def _refuse(wrong: BoolArray, number: IntArray, name: str, why: Callable[[int], str]) -> None:
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise FormatError(f"{name}: line {int(number[at])}: {why(at)}.")


_LINE = re.compile(r"[-+.\d]\S*\s+qid:\S+(\s+\d+:\S+)*\s*(#.*)?")


def _recognises(source: Source) -> bool:
    lines = [line.strip() for line in source.head if not line.lstrip().startswith("#")]
    return bool(lines) and all(_LINE.fullmatch(line) for line in lines)


def _read(source: Source) -> SourceTable:
    if source.path is None:
        raise FormatError(f"{source.name}: LETOR must be read from a file.")
    found = read_letor(source.path, features=False)
    columns = {"item": found.item, "grade": pl.Series(found.grade)}
    if found.query is not None:
        columns["query"] = found.query
    table = replace(
        table_from_frame(pl.DataFrame(columns), source.name),
        unit="line",
        notes=found.notes,
        locate=lambda rows: [RowLocation(int(found.line[row])) for row in rows],
    )
    return assign_roles(table, "letor", item="item", grade="grade", query="query?")


LETOR = Format(
    name="letor",
    description="LETOR and SVMlight ranking files, as ratings: the grade of each document in its query.",
    known_by="lines such as 2 qid:10 1:0.5 2:0.7",
    recognises=_recognises,
    read=_read,
)


# TREC's files: relevance judgments (qrels), and ranked lists of systems (runs).

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_QRELS = rf"(?<query>\S+)\s+(?:\d+|Q0)\s+(?<item>\S+)\s+(?<grade>{_NUMBER})"
_RUN = rf"(?<query>\S+)\s+(?:\d+|Q0)\s+(?<item>\S+)\s+\d+\s+(?<score>{_NUMBER})\s+(?<annotator>\S+)"
_QRELS_LINE, _RUN_LINE = (re.compile(pattern.replace("(?<", "(?P<")) for pattern in (_QRELS, _RUN))
# Degrees of relevance have few digits; a longer last word is the time of a rating: user, item, rating, time.
_TIME = re.compile(r".*\s\d{5,}\s*")
_TREC_SUFFIXES = (".txt", ".qrels", ".run", ".trec", "")


def _fields(source: Source, pattern: str) -> tuple[pl.Series, pl.DataFrame]:
    lines = split_lines(source)
    return lines, lines.str.extract_groups(f"^{pattern}$").struct.unnest()


def _read_qrels(source: Source) -> SourceTable:
    lines, frame = _fields(source, _QRELS)
    return assign_roles(table_from_lines(source, lines, frame), "trec-qrels", query="query", item="item", grade="grade")


def _read_run(source: Source) -> SourceTable:
    lines, frame = _fields(source, _RUN)
    # Like trec_eval, order by the scores (larger is better) and ignore the ranks.
    frame = frame.with_columns(rank=-pl.col("score").cast(pl.Float64)).drop("score")
    table = table_from_lines(source, lines, frame)
    return assign_roles(table, "trec-run", query="query", annotator="annotator", item="item", rank="rank")


def _write_qrels(grades: Ratings, path: Path) -> list[str]:
    frame, notes = _named(grades)
    write_lines(frame.select(pl.format("{} 0 {} {}", "query", "item", _whole("grade"))).to_series(), path)
    return notes


def _write_run(lists: Rankings, path: Path) -> list[str]:
    frame, notes = _named(lists)
    if "annotator" not in frame.columns:
        frame = frame.with_columns(annotator=pl.format("list{}", pl.col("list") + 1))
    last = pl.col("rank").max().over("list")
    line = pl.format("{} Q0 {} {} {} {}", "query", "item", "rank", last - pl.col("rank") + 1, _word("annotator"))
    write_lines(frame.select(line).to_series(), path)
    return notes


def _named(judgments: Ratings | Rankings) -> tuple[pl.DataFrame, list[str]]:
    """Add a query, and replace spaces in names, which would end a field."""
    frame = judgments.to_polars()
    spaced = frame.select(pl.any_horizontal(pl.col(pl.String).str.contains(r"\s").any())).item()
    if "query" not in frame.columns:
        frame = frame.with_columns(query=pl.lit("1"))
    notes = ["Spaces in names were replaced by underscores, because TREC's fields end with a space."] if spaced else []
    return frame.with_columns(_word("query"), _word("item")), notes


def _word(column: str) -> pl.Expr:
    return pl.col(column).str.replace_all(r"\s", "_")


def _whole(column: str) -> pl.Expr:
    """Write whole numbers without a decimal point."""
    value = pl.col(column)
    return (
        pl.when(value == value.round())
        .then(value.cast(pl.Int64, strict=False).cast(pl.String))
        .otherwise(value.cast(pl.String))
    )


TREC_QRELS = Format(
    name="trec-qrels",
    description="TREC's relevance judgments, as ratings: topic, iteration, document, relevance.",
    known_by="lines of four words: topic, a number, document, a number",
    recognises=lambda source: all_lines_match(source, _QRELS_LINE) and not all_lines_match(source, _TIME),
    read=_read_qrels,
    writer=Writer(("ratings",), _TREC_SUFFIXES, optional("query"), _write_qrels),
)
TREC_RUN = Format(
    name="trec-run",
    description="TREC's runs, as rankings by a system: topic, Q0, document, rank, score, tag; ordered by score.",
    known_by="lines of six words: topic, Q0, document, rank, score, tag",
    recognises=lambda source: all_lines_match(source, _RUN_LINE),
    read=_read_run,
    writer=Writer(("rankings",), _TREC_SUFFIXES, optional("query annotator"), _write_run),
)
