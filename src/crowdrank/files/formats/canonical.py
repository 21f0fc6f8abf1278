"""The long row of a collection: an answer with how it came about, whether it was a gold question, whether it stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdrank.files.formats.columns import find, playing, truths, words
from crowdrank.files.formats.format import Format
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table

_PAIR = {"annotator", "left", "right", "winner"}
_MORE = {"isgold", "valid", "responsems", "answeredat"}


def _read(source: Source) -> Table:
    table = playing(
        source.table, "crowdrank", annotator="annotator", left="left", right="right", winner="winner",
        query="query|context?", time="answered_at|time?", duration="response_ms|duration?", weight="weight?",
    )  # fmt: skip
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
