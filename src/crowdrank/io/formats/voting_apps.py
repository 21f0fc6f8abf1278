"""Voting apps: All Our Ideas (votes and non-votes), Gavel (decisions) and Jury (ranked projects of each judge)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray
from crowdrank.io.formats.base import Format, assign_roles, find_optional, find_required, reads_columns, words
from crowdrank.io.source_table import SourceTable, table_from_frame, with_columns_computed
from crowdrank.io.sources import Source

_SHOWN = {"left": "Left Choice ID", "right": "Right Choice ID", "annotator": "Session ID"}
_WHEN = {"time": "Created at?", "duration": "Response Time (s)?"}


def _read_votes(source: Source) -> SourceTable:
    table = assign_roles(source.table, "all-our-ideas", winner="Winner ID", **_SHOWN, **_WHEN)
    return replace(table, set_aside=_invalid(table))


def _read_non_votes(source: Source) -> SourceTable:
    table = with_columns_computed(
        source.table, pl.DataFrame({"winner": pl.repeat("skip", source.table.rows, eager=True)})
    )
    table = assign_roles(table, "all-our-ideas-non-votes", winner="winner", **_SHOWN, **_WHEN)
    return replace(table, set_aside=_invalid(table))


def _invalid(table: SourceTable) -> dict[str, BoolArray]:
    column = find_optional(table, "Valid")
    if column is None:
        return {}
    return {"marked invalid": words(table.load([column], None)[column]).is_in(("false", "f", "0", "no")).to_numpy()}


ALL_OUR_IDEAS = Format(
    name="all-our-ideas",
    description="All Our Ideas' votes, ideas by their ids; invalid votes are set aside.",
    known_by="columns Vote ID, Session ID, Winner ID, Loser ID, Left Choice ID and Right Choice ID",
    read=_read_votes,
)
ALL_OUR_IDEAS_NON_VOTES = Format(
    name="all-our-ideas-non-votes",
    description="All Our Ideas' non-votes: pairs that were shown but not answered, counted as skips.",
    known_by="columns Record Type, Skip ID, Session ID, Left Choice ID and Right Choice ID",
    read=_read_non_votes,
)


GAVEL = Format(
    name="gavel",
    description="Gavel's decisions.csv: Annotator ID, Winner ID, Loser ID, Time.",
    known_by="columns Annotator ID, Winner ID, Loser ID and Time",
    read=reads_columns("gavel", annotator="Annotator ID", winner="Winner ID", loser="Loser ID", time="Time?"),
)


def _read_jury(source: Source) -> SourceTable:
    table = source.table
    column = find_required(table, "Ranked", "jury")
    ranked = table.load([column], None)[column].cast(pl.String)
    items = ranked.str.strip_chars(" []").str.split(",").list.eval(pl.element().str.strip_chars(' "'))
    items = items.list.eval(pl.element().filter(pl.element() != ""))
    judges = pl.Series([f"judge {n}" for n in range(1, table.rows + 1)], dtype=pl.String)
    # Judges are numbered, because their names and codes are personal.
    bare = table_from_frame(pl.DataFrame({"annotator": judges, "Ranked": items}), table.name)
    few = (items.list.len().fill_null(0) < 2).to_numpy() if table.rows else np.zeros(0, bool)
    blank_rows = None if table.blank_rows is None else table.blank_rows & (words(ranked) == "").to_numpy()
    table_with_roles = assign_roles(bare, "jury", annotator="annotator", order="Ranked")
    return replace(
        table_with_roles,
        locate=table.locate,
        unit=table.unit,
        blank_rows=blank_rows,
        set_aside={"fewer than two projects ranked": few},
    )


JURY = Format(
    name="jury",
    description="Jury's rankings: Name, Code, Ranked and Unranked, one judge per row; judges are numbered, not named.",
    known_by="columns Name, Code, Ranked and Unranked",
    read=_read_jury,
)
