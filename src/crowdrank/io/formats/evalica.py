"""evalica: left, right, winner, where the winner is left, right or tie, whatever the items are called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from crowdrank.data import Comparisons
from crowdrank.io.formats.base import Format, Writer, held, labelled, need, playing, sides, words
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table, with_computed
from crowdrank.io.writer import TABLES, write_table

_COLUMNS = {"left", "right", "winner"}
_ALSO = {"id", "prompt", "modelx", "modely", "worker", "query", "weight", ""}
_WINNERS = ("left", "right", "tie")


def _recognises(source: Source) -> bool:
    if not _COLUMNS <= source.names <= _COLUMNS | _ALSO:
        return False
    said = words(source.table.sample[need(source.table, "winner", "evalica")])
    return bool(said.is_in(_WINNERS).all()) and not said.is_empty()


def _read(source: Source) -> Table:
    table = playing(
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
    said = words(frame[roles["winner"]])
    # By name, so that an item called "right" on the left is not taken for the one on the right.
    winner = pl.select(
        pl.when(said == "left")
        .then(frame[roles["left"]].cast(pl.String))
        .when(said == "right")
        .then(frame[roles["right"]].cast(pl.String))
        .otherwise(frame[roles["winner"]].cast(pl.String))
        .alias("winner")
    )
    return replace(with_computed(table, winner), roles={**roles, "winner": "winner"})


def _write(votes: Comparisons, path: Path) -> list[str]:
    names = {"annotator": "worker", "left": "left", "right": "right"}
    frame = labelled(votes, names).with_columns(winner=sides(votes, *_WINNERS))
    write_table(frame, path)
    return []


EVALICA = Format(
    name="evalica",
    description="evalica's tables: left, right, and a winner that is left, right or tie.",
    known_by="columns left, right and winner (worker, id, prompt, model_x, model_y beside them), all winners left, "
    "right or tie",
    recognises=_recognises,
    read=_read,
    writer=Writer(("comparisons",), TABLES, held("annotator query weight"), _write),
)
