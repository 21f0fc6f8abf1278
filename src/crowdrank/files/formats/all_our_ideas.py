"""All Our Ideas: votes with the two ideas as they were shown; and non-votes, all of them skips."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from crowdrank.files.formats.columns import find, has, playing, words
from crowdrank.files.formats.format import Format
from crowdrank.files.sources import Source
from crowdrank.files.tables import Mask, Table, with_computed

_SHOWN = {"left": "Left Choice ID", "right": "Right Choice ID", "annotator": "Session ID"}
_WHEN = {"time": "Created at?", "duration": "Response Time (s)?"}


def _read(source: Source) -> Table:
    table = playing(source.table, "all-our-ideas", winner="Winner ID", **_SHOWN, **_WHEN)
    return replace(table, set_aside=_invalid(table))


def _read_non_votes(source: Source) -> Table:
    table = with_computed(source.table, pl.DataFrame({"winner": pl.repeat("skip", source.table.rows, eager=True)}))
    table = playing(table, "all-our-ideas-non-votes", winner="winner", **_SHOWN, **_WHEN)
    return replace(table, set_aside=_invalid(table))


def _invalid(table: Table) -> dict[str, Mask]:
    column = find(table, "Valid")
    if column is None:
        return {}
    return {"marked invalid": words(table.load([column], None)[column]).is_in(("false", "f", "0", "no")).to_numpy()}


ALL_OUR_IDEAS = Format(
    name="all-our-ideas",
    description="All Our Ideas' votes, ideas by their ids; those marked invalid are set aside.",
    known_by="columns Vote ID, Session ID, Winner ID, Loser ID, Left Choice ID and Right Choice ID",
    recognises=has("Vote ID,Session ID,Winner ID,Loser ID,Left Choice ID,Right Choice ID"),
    read=_read,
)
ALL_OUR_IDEAS_NON_VOTES = Format(
    name="all-our-ideas-non-votes",
    description="All Our Ideas' non-votes: pairs that were shown and not answered, all counted as skips.",
    known_by="columns Record Type, Skip ID, Session ID, Left Choice ID and Right Choice ID",
    recognises=has("Record Type,Skip ID,Session ID,Left Choice ID,Right Choice ID"),
    read=_read_non_votes,
)
