"""pwcmp: observers, scenes, two conditions, and whether the first was selected."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crowdrank.data import LEFT, Comparisons
from crowdrank.io.formats.base import Format, Writer, decided, has, held, need, playing, words
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table, with_computed
from crowdrank.io.writer import TABLES, write_table

_SAID = {"1": "left", "1.0": "left", "true": "left", "0": "right", "0.0": "right", "false": "right"}


def _read(source: Source) -> Table:
    table = source.table
    column = need(table, "is_A_selected", "pwcmp")
    said = words(table.load([column], None)[column])
    table = with_computed(table, pl.DataFrame({"winner": said.replace_strict(_SAID, default=said)}))
    return playing(
        table, "pwcmp", annotator="observer?", query="scene?", left="condition_A", right="condition_B", winner="winner"
    )


def _write(votes: Comparisons, path: Path) -> list[str]:
    kept, lost = decided(votes, "pwcmp")
    frame, none = kept.to_frame(), pl.repeat("", len(kept), eager=True)
    told = pl.DataFrame(
        {
            "observer": frame["annotator"] if kept.annotator is not None else none.replace("", "1"),
            "session": pl.repeat(1, len(kept), eager=True),
            "scene": frame["query"] if kept.items.has_queries else none.replace("", "1"),
            "condition_A": frame["left"],
            "condition_B": frame["right"],
            "is_A_selected": pl.Series(kept.outcome == LEFT).cast(pl.Int8),
        }
    )
    write_table(told, path)
    return lost


PWCMP = Format(
    name="pwcmp",
    description="pwcmp's tables of image quality: observer, scene, condition_A, condition_B, is_A_selected.",
    known_by="columns condition_A, condition_B and is_A_selected",
    recognises=has("condition_A,condition_B,is_A_selected"),
    read=_read,
    writer=Writer(("comparisons",), TABLES, held("annotator query"), _write),
)
