"""Jury's judges: one row a judge, the ranked projects as a list in one cell. What is unranked was not judged yet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from crowdrank.files.formats.columns import has, need, playing, words
from crowdrank.files.formats.format import Format
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table, table_of


def _read(source: Source) -> Table:
    table = source.table
    column = need(table, "Ranked", "jury")
    ranked = table.load([column], None)[column].cast(pl.String)
    items = ranked.str.strip_chars(" []").str.split(",").list.eval(pl.element().str.strip_chars(' "'))
    items = items.list.eval(pl.element().filter(pl.element() != ""))
    judges = pl.Series([f"judge {n}" for n in range(1, table.rows + 1)], dtype=pl.String)
    # Judges are numbered: their names and codes are theirs.
    bare = table_of(pl.DataFrame({"annotator": judges, "Ranked": items}), table.name)
    few = (items.list.len().fill_null(0) < 2).to_numpy() if table.rows else np.zeros(0, bool)
    blank = None if table.blank is None else table.blank & (words(ranked) == "").to_numpy()
    told = playing(bare, "jury", annotator="annotator", order="Ranked")
    return replace(
        told, locate=table.locate, unit=table.unit, blank=blank, set_aside={"fewer than two projects ranked": few}
    )


JURY = Format(
    name="jury",
    description="Jury's rankings: Name, Code, Ranked and Unranked, a judge a row; judges are numbered, not named.",
    known_by="columns Name, Code, Ranked and Unranked",
    recognises=has("Name,Code,Ranked,Unranked"),
    read=_read,
)
