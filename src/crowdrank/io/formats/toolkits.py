"""Toolkits for pairwise comparisons: tables of crowd-kit, evalica and pwcmp, and ASAP's matrix of wins."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from crowdrank.data import LEFT, Comparisons
from crowdrank.errors import FormatError
from crowdrank.io.formats.base import (
    Format,
    Writer,
    assign_roles,
    find_required,
    optional,
    reads_columns,
    renamed_frame,
    winner_sides,
    without_ties,
    words,
)
from crowdrank.io.source_table import SourceTable, table_from_frame, with_columns_computed
from crowdrank.io.sources import Source
from crowdrank.io.writer import TABLE_SUFFIXES, write_table

# crowd-kit: worker, left, right, label; the label is one of the two items, and there are no ties.


def _write_crowd_kit(votes: Comparisons, path: Path) -> list[str]:
    if votes.annotator is None:
        raise FormatError(
            f"{path.name}: crowd-kit needs a worker in every row, and these judgments have no annotators."
        )
    kept, notes = without_ties(votes, "crowd-kit")
    names = {"annotator": "worker", "left": "left", "right": "right", "winner": "label"}
    write_table(renamed_frame(kept, names), path)
    return notes


CROWD_KIT = Format(
    name="crowd-kit",
    description="crowd-kit's frames of comparisons: worker, left, right and the label of the better one.",
    known_by="columns worker, left, right and label, and no winner",
    read=reads_columns(
        "crowd-kit", annotator="worker", left="left", right="right", winner="label", query="query?", weight="weight?"
    ),
    writer=Writer(("comparisons",), TABLE_SUFFIXES, optional("annotator query weight"), _write_crowd_kit),
)


# evalica: left, right, winner; the winner is left, right or tie, whatever the items are called.

_WINNERS = ("left", "right", "tie")


def _recognises_evalica(source: Source) -> bool:
    winners = words(source.table.sample[find_required(source.table, "winner", "evalica")])
    return bool(winners.is_in(_WINNERS).all()) and not winners.is_empty()


def _read_evalica(source: Source) -> SourceTable:
    table = assign_roles(
        source.table,
        "evalica",
        left="left",
        right="right",
        winner="winner",
        annotator="worker?",
        query="query?",
        weight="weight?",
    )
    roles = table.roles
    frame = table.load([roles["left"], roles["right"], roles["winner"]], None)
    side = words(frame[roles["winner"]])
    # By name, so that an item called "right" that was shown on the left is not mistaken for the one on the right.
    winner = pl.select(
        pl.when(side == "left")
        .then(frame[roles["left"]].cast(pl.String))
        .when(side == "right")
        .then(frame[roles["right"]].cast(pl.String))
        .otherwise(frame[roles["winner"]].cast(pl.String))
        .alias("winner")
    )
    return replace(with_columns_computed(table, winner), roles={**roles, "winner": "winner"})


def _write_evalica(votes: Comparisons, path: Path) -> list[str]:
    names = {"annotator": "worker", "left": "left", "right": "right"}
    frame = renamed_frame(votes, names).with_columns(winner=winner_sides(votes, *_WINNERS))
    write_table(frame, path)
    return []


EVALICA = Format(
    name="evalica",
    description="evalica's tables: left, right, and a winner that is left, right or tie.",
    known_by="columns left, right and winner (also worker, id, prompt, model_x, model_y); winners left, right or tie",
    recognises=_recognises_evalica,
    read=_read_evalica,
    writer=Writer(("comparisons",), TABLE_SUFFIXES, optional("annotator query weight"), _write_evalica),
)


# pwcmp: observers, scenes, two conditions, and whether the first was selected.

_SIDES = {"1": "left", "1.0": "left", "true": "left", "0": "right", "0.0": "right", "false": "right"}


def _read_pwcmp(source: Source) -> SourceTable:
    table = source.table
    column = find_required(table, "is_A_selected", "pwcmp")
    selected = words(table.load([column], None)[column])
    table = with_columns_computed(table, pl.DataFrame({"winner": selected.replace_strict(_SIDES, default=selected)}))
    return assign_roles(
        table, "pwcmp", annotator="observer?", query="scene?", left="condition_A", right="condition_B", winner="winner"
    )


def _write_pwcmp(votes: Comparisons, path: Path) -> list[str]:
    kept, notes = without_ties(votes, "pwcmp")
    frame, none = kept.to_polars(), pl.repeat("", len(kept), eager=True)
    table = pl.DataFrame(
        {
            "observer": frame["annotator"] if kept.annotator is not None else none.replace("", "1"),
            "session": pl.repeat(1, len(kept), eager=True),
            "scene": frame["query"] if kept.items.has_queries else none.replace("", "1"),
            "condition_A": frame["left"],
            "condition_B": frame["right"],
            "is_A_selected": pl.Series(kept.outcome == LEFT).cast(pl.Int8),
        }
    )
    write_table(table, path)
    return notes


PWCMP = Format(
    name="pwcmp",
    description="pwcmp's tables of image quality: observer, scene, condition_A, condition_B, is_A_selected.",
    known_by="columns condition_A, condition_B and is_A_selected",
    read=_read_pwcmp,
    writer=Writer(("comparisons",), TABLE_SUFFIXES, optional("annotator query"), _write_pwcmp),
)


# ASAP's matrix of wins: row i, column j counts how often i beat j. Items are numbered from 1 if they have no names.

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


def _recognises_asap(source: Source) -> bool:
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


def _read_asap(source: Source) -> SourceTable:
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
    note = "Each cell was read as how often the item of its row beat the item of its column."
    if names:
        grades = ",".join(map(str, labels))
        note += (
            " If the cells are grades that the people of the rows gave to those of the columns, pass format='tidy' and "
            f"columns={{'grade': {grades!r}}}."
        )
    if won.size and matrix.max() <= 1 and (matrix % 1 > 0).any():
        note += (
            " The cells look like shares, not counts, so each pair counts as one judgment: multiply them by the number "
            "of judgments of each pair, or the errors will be too large."
        )
    table = replace(table_from_frame(frame, source.name), notes=(note,))
    return assign_roles(table, "asap", winner="winner", loser="loser", weight="weight")


def _write_asap(votes: Comparisons, path: Path) -> list[str]:
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
    recognises=_recognises_asap,
    read=_read_asap,
    writer=Writer(("comparisons",), (".csv", ".tsv"), optional("weight"), _write_asap),
)
