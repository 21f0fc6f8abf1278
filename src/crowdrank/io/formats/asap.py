"""ASAP's matrix of wins: row i, column j counts how often i beat j. Items are numbered from 1 if they have no names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl

from crowdrank.data import Comparisons
from crowdrank.errors import FormatError
from crowdrank.io.formats.base import Format, Writer, assign_roles, optional
from crowdrank.io.source_table import SourceTable, table_from_frame
from crowdrank.io.sources import Source
from crowdrank.io.writer import write_table

_COUNT = re.compile(r"\d+(\.\d*)?([eE][-+]?\d+)?|nan|", re.IGNORECASE)
_ZERO = re.compile(r"0(\.0*)?(e[-+]?0+)?|nan|", re.IGNORECASE)


def _separator(line: str) -> str:
    """Return the character between cells, or a space for any amount of white space."""
    return next((sign for sign in ",;\t" if sign in line), " ")


def _row(line: str) -> list[str]:
    sign = _separator(line)
    return [cell.strip(' "') for cell in (line.split() if sign == " " else line.split(sign))]


def _named(rows: list[list[str]]) -> bool:
    """Return whether the matrix has names: the first row equals the first column."""
    return rows[0][0] == "" and rows[0][1 : len(rows)] == [row[0] for row in rows[1:]]


def _recognises(source: Source) -> bool:
    """Return whether the text is a square matrix of counts with an empty diagonal."""
    if source.json or len(source.head) < 2:
        return False
    rows = [_row(line) for line in source.head]
    names = _named(rows)
    size = source.text.strip(b"\n").count(b"\n") + 1 - names
    counts = [row[1:] for row in rows[1:]] if names else rows
    return size > 1 and all(
        len(row) == size and all(map(_COUNT.fullmatch, row)) and _ZERO.fullmatch(row[n]) is not None
        for n, row in enumerate(counts)
    )


def _read(source: Source) -> SourceTable:
    text, sign = source.text, _separator(source.head[0]) if source.head else ","
    if sign == " ":
        text, sign = re.sub(rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", text)), "\t"
    cells = pl.read_csv(text, has_header=False, separator=sign, infer_schema=False, truncate_ragged_lines=True)
    cells = cells.filter(~pl.all_horizontal(pl.all().is_null()))
    names = _named([_row(line) for line in source.head])
    labels = cells.to_series(0)[1:] if names else pl.Series(range(1, cells.height + 1)).cast(pl.String)
    counts = cells[1:, 1:] if names else cells
    matrix = (
        counts.select(pl.all().str.strip_chars().cast(pl.Float64, strict=False).fill_nan(0)).fill_null(0).to_numpy()
    )
    if matrix.shape[0] != matrix.shape[1]:
        raise FormatError(
            f"{source.name}: a matrix of wins must be square, got {matrix.shape[0]} rows and {matrix.shape[1]} columns."
        )
    won, lost = np.nonzero(matrix)
    frame = pl.DataFrame({"winner": labels.gather(won), "loser": labels.gather(lost), "weight": matrix[won, lost]})
    return assign_roles(table_from_frame(frame, source.name), "asap", winner="winner", loser="loser", weight="weight")


def _write(votes: Comparisons, path: Path) -> list[str]:
    if votes.items.has_queries:
        raise FormatError(
            f"{path.name}: a matrix of wins cannot hold the queries of these judgments.", remedy="Use another format."
        )
    wins = np.zeros((len(votes.items), len(votes.items)))
    first, second = (
        np.where(votes.outcome >= 0, a, b) for a, b in ((votes.left, votes.right), (votes.right, votes.left))
    )
    tied = votes.outcome == 0
    np.add.at(wins, (first, second), votes.weights * np.where(tied, 0.5, 1.0))
    np.add.at(wins, (second, first), votes.weights * np.where(tied, 0.5, 0.0))
    names = votes.items.labels.tolist()
    frame = pl.DataFrame({"": names} | {name: wins[:, n] for n, name in enumerate(names)})
    write_table(frame, path)
    return ["Each tie was written as half a win for both items."] if votes.ties else []


ASAP = Format(
    name="asap",
    description="ASAP's matrix of wins: row i, column j counts how often i beat j.",
    known_by="a square matrix of counts with an empty diagonal; names, if any, are the same for rows and columns",
    recognises=_recognises,
    read=_read,
    writer=Writer(("comparisons",), (".csv", ".tsv"), optional("weight"), _write),
)
