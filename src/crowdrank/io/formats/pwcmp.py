"""pwcmp: observers, scenes, two conditions, and whether the first was selected."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crowdrank.data import LEFT, Comparisons
from crowdrank.io.formats.base import Format, Writer, assign_roles, find_required, optional, without_ties, words
from crowdrank.io.source_table import SourceTable, with_columns_computed
from crowdrank.io.sources import Source
from crowdrank.io.writer import TABLE_SUFFIXES, write_table

_SIDES = {"1": "left", "1.0": "left", "true": "left", "0": "right", "0.0": "right", "false": "right"}


def _read(source: Source) -> SourceTable:
    table = source.table
    column = find_required(table, "is_A_selected", "pwcmp")
    selected = words(table.load([column], None)[column])
    table = with_columns_computed(table, pl.DataFrame({"winner": selected.replace_strict(_SIDES, default=selected)}))
    return assign_roles(
        table, "pwcmp", annotator="observer?", query="scene?", left="condition_A", right="condition_B", winner="winner"
    )


def _write(votes: Comparisons, path: Path) -> list[str]:
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
    read=_read,
    writer=Writer(("comparisons",), TABLE_SUFFIXES, optional("annotator query"), _write),
)
