"""Chatbot arenas: two models, who won and who said so (LMSYS 33k, 100k, 140k, MT-bench's human votes)."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crowdrank.files.formats.columns import has, need, playing
from crowdrank.files.formats.format import Format, Writer, held
from crowdrank.files.formats.nested import records_of
from crowdrank.files.formats.writing import labelled, sides
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table, with_computed
from crowdrank.files.writing import TABLES, write_table
from crowdrank.judgments import Comparisons

_FIELDS = dict.fromkeys(("model_a", "model_b", "winner", "judge", "judge_hash", "tstamp", "query", "weight"), pl.String)
_MORE = {"conversationa", "questionid", "tstamp", "judge", "judgehash", "convmetadata"}
_ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie|winner_model_tie")
_pair_and_winner = has("model_a,model_b,winner")


def _recognises(source: Source) -> bool:
    return _pair_and_winner(source) and bool(_MORE & source.names)


def _read(source: Source) -> Table:
    table = _without_conversations(source) if source.json else source.table
    return playing(
        table, "lmsys", left="model_a", right="model_b", winner="winner", annotator="judge|judge_hash?", time="tstamp?",
        query="query?", weight="weight?",
    )  # fmt: skip


def _without_conversations(source: Source) -> Table:
    """Most of such a file is what was said to the models."""
    found = records_of(source, _FIELDS)
    there = [name for name in found.frame.columns if found.frame[name].null_count() < found.frame.height]
    return found.table(found.frame.select(there))


def _read_one_hot(source: Source) -> Table:
    table = source.table
    columns = [need(table, names, "lmsys-55k") for names in _ONE_HOT]
    said = [pl.col(column).cast(pl.String).str.strip_chars().is_in(("1", "1.0", "true", "True")) for column in columns]
    words = (pl.when(mark).then(pl.lit(word)) for mark, word in zip(said, ("left", "right", "tie"), strict=True))
    # Where several are marked, or none, nobody knows who won.
    winner = pl.when(pl.sum_horizontal(mark.cast(pl.Int8) for mark in said) == 1).then(pl.coalesce(words))
    table = with_computed(table, table.load(columns, None).select(winner.alias("winner")))
    return playing(table, "lmsys-55k", left="model_a", right="model_b", winner="winner")


def _write(votes: Comparisons, path: Path) -> list[str]:
    frame = labelled(votes, {"left": "model_a", "right": "model_b"})
    more = {} if votes.annotator is None else {"judge": votes.to_frame()["annotator"]}
    # A column of times tells an arena's file from other tables, even where they are not known.
    times = pl.Series([None] * len(votes), dtype=pl.Float64) if votes.time is None else pl.Series(votes.time)
    frame = frame.with_columns(winner=sides(votes, "model_a", "model_b", "tie"), **more, tstamp=times)
    write_table(frame, path)
    return []


LMSYS = Format(
    name="lmsys",
    description="Votes of a chatbot arena: model_a, model_b, winner, and judge (LMSYS 33k, 100k, 140k, MT-bench).",
    known_by="columns model_a, model_b and winner, with judge, judge_hash, tstamp, question_id or conversations",
    recognises=_recognises,
    read=_read,
    writer=Writer(("comparisons",), TABLES, held("annotator query weight time"), _write),
)
LMSYS_55K = Format(
    name="lmsys-55k",
    description="The arena's votes as on Kaggle: model_a, model_b and one column for each of the three outcomes.",
    known_by="columns model_a, model_b, winner_model_a and winner_model_b",
    recognises=has("model_a,model_b,winner_model_a,winner_model_b"),
    read=_read_one_hot,
)
