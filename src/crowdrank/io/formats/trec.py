"""TREC's files: relevance judgments (qrels), and ranked lists of systems (runs)."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from crowdrank.data import Rankings, Ratings
from crowdrank.io.formats.base import (
    Format,
    Writer,
    all_lines_match,
    assign_roles,
    optional,
    split_lines,
    table_from_lines,
)
from crowdrank.io.source_table import SourceTable
from crowdrank.io.sources import Source
from crowdrank.io.writer import write_lines

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_QRELS = rf"(?<query>\S+)\s+(?:\d+|Q0)\s+(?<item>\S+)\s+(?<grade>{_NUMBER})"
_RUN = rf"(?<query>\S+)\s+(?:\d+|Q0)\s+(?<item>\S+)\s+\d+\s+(?<score>{_NUMBER})\s+(?<annotator>\S+)"
_QRELS_LINE, _RUN_LINE = (re.compile(pattern.replace("(?<", "(?P<")) for pattern in (_QRELS, _RUN))
# Degrees of relevance have few digits; a longer last word is the time of a rating: user, item, rating, time.
_TIME = re.compile(r".*\s\d{5,}\s*")
_SUFFIXES = (".txt", ".qrels", ".run", ".trec", "")


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
    writer=Writer(("ratings",), _SUFFIXES, optional("query"), _write_qrels),
)
TREC_RUN = Format(
    name="trec-run",
    description="TREC's runs, as rankings by a system: topic, Q0, document, rank, score, tag; ordered by score.",
    known_by="lines of six words: topic, Q0, document, rank, score, tag",
    recognises=lambda source: all_lines_match(source, _RUN_LINE),
    read=_read_run,
    writer=Writer(("rankings",), _SUFFIXES, optional("query annotator"), _write_run),
)
