"""All Our Ideas: votes with the two ideas as they were shown; and non-votes, all of them skips.

Gavel's decisions: ids only; who they are stands in judges.csv, with secrets, and is not read.

Jury's judges: one row a judge, the ranked projects as a list in one cell. What is unranked was not judged yet.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray
from crowdrank.io.formats.base import Format, declared, find, has, need, playing, words
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table, table_of, with_computed

_SHOWN = {"left": "Left Choice ID", "right": "Right Choice ID", "annotator": "Session ID"}
_WHEN = {"time": "Created at?", "duration": "Response Time (s)?"}


def _read_votes(source: Source) -> Table:
    table = playing(source.table, "all-our-ideas", winner="Winner ID", **_SHOWN, **_WHEN)
    return replace(table, set_aside=_invalid(table))


def _read_non_votes(source: Source) -> Table:
    table = with_computed(source.table, pl.DataFrame({"winner": pl.repeat("skip", source.table.rows, eager=True)}))
    table = playing(table, "all-our-ideas-non-votes", winner="winner", **_SHOWN, **_WHEN)
    return replace(table, set_aside=_invalid(table))


def _invalid(table: Table) -> dict[str, BoolArray]:
    column = find(table, "Valid")
    if column is None:
        return {}
    return {"marked invalid": words(table.load([column], None)[column]).is_in(("false", "f", "0", "no")).to_numpy()}


ALL_OUR_IDEAS = Format(
    name="all-our-ideas",
    description="All Our Ideas' votes, ideas by their ids; those marked invalid are set aside.",
    known_by="columns Vote ID, Session ID, Winner ID, Loser ID, Left Choice ID and Right Choice ID",
    recognises=has("Vote ID,Session ID,Winner ID,Loser ID,Left Choice ID,Right Choice ID"),
    read=_read_votes,
)
ALL_OUR_IDEAS_NON_VOTES = Format(
    name="all-our-ideas-non-votes",
    description="All Our Ideas' non-votes: pairs that were shown and not answered, all counted as skips.",
    known_by="columns Record Type, Skip ID, Session ID, Left Choice ID and Right Choice ID",
    recognises=has("Record Type,Skip ID,Session ID,Left Choice ID,Right Choice ID"),
    read=_read_non_votes,
)


GAVEL = Format(
    name="gavel",
    description="Gavel's decisions.csv: Annotator ID, Winner ID, Loser ID, Time.",
    known_by="columns Annotator ID, Winner ID, Loser ID and Time",
    recognises=has("Annotator ID,Winner ID,Loser ID,Time"),
    read=declared("gavel", annotator="Annotator ID", winner="Winner ID", loser="Loser ID", time="Time?"),
)


def _read_jury(source: Source) -> Table:
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
    read=_read_jury,
)
