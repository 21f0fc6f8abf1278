"""Chess games in portable game notation (PGN): the players and the result of each game; moves are not read."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.formats.base import Format, assign_roles
from crowdrank.io.source_table import RowLocation, SourceTable, table_from_frame
from crowdrank.io.sources import Source

_TAG = re.compile(r'\[(\w+)\s+"(.*)"\]\s*')
# The tags that are read, in the order of the columns.
_COLUMNS = ("White", "Black", "Result", "Date")


def _read(source: Source) -> SourceTable:
    """Read one comparison per game; tags after moves, or a tag that is there already, begin the next game."""
    games: list[dict[str, str]] = []
    lines: list[int] = []
    within_tags = False
    for number, line in enumerate(source.text.decode().split("\n"), 1):
        if (tag := _TAG.fullmatch(line)) is not None:
            if not within_tags or tag[1] in games[-1]:
                games.append({})
                lines.append(number)
            games[-1][tag[1]] = "" if tag[2] == "?" else tag[2]
            within_tags = True
        elif line.strip():
            within_tags = False
    if not games:
        raise FormatError(f'{source.name}: contains no games; the tags of one look like [White "Kasparov"].')
    frame = pl.DataFrame(
        {name: [game.get(name) for game in games] for name in _COLUMNS}, dict.fromkeys(_COLUMNS, pl.String)
    )
    table = replace(
        table_from_frame(frame, source.name),
        unit="line",
        strip_spaces=True,
        locate=lambda rows: [RowLocation(lines[row]) for row in rows],
    )
    return assign_roles(table, "pgn", left="White", right="Black", winner="Result", time="Date")


PGN = Format(
    name="pgn",
    description="Chess games in portable game notation: white is left, black is right.",
    known_by='a first line such as [Event "…"] or [White "…"]',
    read=_read,
)
