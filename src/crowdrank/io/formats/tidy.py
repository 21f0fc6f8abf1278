"""Files that lie beside judgments and are none: told apart by their columns, so that nobody ranks them by mistake.

The long row of a collection: an answer with how it came about, whether it was a gold question, whether it stands.

One row a judgment, a header, columns called by their role or a synonym of it; what crowdrank itself writes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.data import Rankings
from crowdrank.errors import FormatError
from crowdrank.io.formats.base import Format, Writer, find, has, held, playing, truths, words
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table
from crowdrank.io.writer import SUFFIXES, write_table

_OTHERS = (
    ("QR Code,Scaled Score,True Score", "No More Marking's results about pupils; the judgments are in its decisions"),
    ("Name,Email,Secret", "Gavel's list of judges, with their secrets; the judgments are in decisions.csv"),
    ("Mu,Sigma Squared,Name,Active", "Gavel's list of projects; the judgments are in decisions.csv"),
    ("Name,Email,Code,ReadWelcome,Seen", "Jury's list of judges, with their codes; export the rankings"),
    ("Name,Table,ChallengeList,Seen,Active", "Jury's list of projects; export the rankings"),
    ("Idea ID,Idea Text,Wins,Losses", "All Our Ideas' list of ideas; the judgments are in its votes"),
)


def refuse_others(source: Source) -> None:
    for columns, told in _OTHERS:
        if has(columns)(source):
            raise FormatError(f"{source.name}: this is {told}.")


_PAIR = {"annotator", "left", "right", "winner"}
_MORE = {"isgold", "valid", "responsems", "answeredat"}


def _read(source: Source) -> Table:
    table = playing(
        source.table,
        "crowdrank",
        annotator="annotator",
        left="left",
        right="right",
        winner="winner",
        query="query|context?",
        time="answered_at|time?",
        duration="response_ms|duration?",
        weight="weight?",
    )
    valid = find(table, "valid")
    void = np.zeros(table.rows, bool)
    if valid is not None:
        void = words(table.load([valid], None)[valid]).is_in(("false", "0", "no", "f")).to_numpy()
    return replace(table, set_aside={"gold": truths(table, find(table, "is_gold")), "marked invalid": void})


CANONICAL = Format(
    name="crowdrank",
    description="The log of a collection: annotator, left, right, winner, answered_at, response_ms, is_gold, valid.",
    known_by="columns annotator, left, right and winner, with two of answered_at, response_ms, is_gold and valid",
    recognises=lambda source: source.names >= _PAIR and len(source.names & _MORE) > 1,
    read=_read,
)


def _write(judgments: Any, path: Path) -> list[str]:
    frame = judgments.to_frame()
    if isinstance(judgments, Rankings) and judgments.weight is not None:
        frame = frame.with_columns(weight=pl.Series(judgments.weight[judgments.list_of_row]))
    write_table(frame, path)
    return []


TIDY = Format(
    name="tidy",
    description="One row a judgment; columns such as annotator, left, right, winner, or synonyms of these.",
    known_by="nothing else: what no other format knows is read by the names of its columns",
    recognises=lambda source: True,
    read=lambda source: source.table,
    writer=Writer(
        ("comparisons", "ratings", "rankings"), SUFFIXES, held("annotator query weight time duration features"), _write
    ),
)
