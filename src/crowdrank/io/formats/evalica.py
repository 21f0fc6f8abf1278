"""evalica: left, right, winner; the winner is left, right or tie, whatever the items are called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from crowdrank.data import Comparisons
from crowdrank.io.formats.base import (
    Format,
    Writer,
    assign_roles,
    find_required,
    optional,
    renamed_frame,
    winner_sides,
    words,
)
from crowdrank.io.source_table import SourceTable, with_columns_computed
from crowdrank.io.sources import Source
from crowdrank.io.writer import TABLE_SUFFIXES, write_table

_WINNERS = ("left", "right", "tie")


def _recognises(source: Source) -> bool:
    winners = words(source.table.sample[find_required(source.table, "winner", "evalica")])
    return bool(winners.is_in(_WINNERS).all()) and not winners.is_empty()


def _read(source: Source) -> SourceTable:
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


def _write(votes: Comparisons, path: Path) -> list[str]:
    names = {"annotator": "worker", "left": "left", "right": "right"}
    frame = renamed_frame(votes, names).with_columns(winner=winner_sides(votes, *_WINNERS))
    write_table(frame, path)
    return []


EVALICA = Format(
    name="evalica",
    description="evalica's tables: left, right, and a winner that is left, right or tie.",
    known_by="columns left, right and winner (also worker, id, prompt, model_x, model_y); winners left, right or tie",
    recognises=_recognises,
    read=_read,
    writer=Writer(("comparisons",), TABLE_SUFFIXES, optional("annotator query weight"), _write),
)
