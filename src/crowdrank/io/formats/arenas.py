"""Chatbot arenas: two models, who won and who said so (LMSYS 33k, 100k, 140k, MT-bench's human votes).

FastChat's own log of an arena: one event a line; only four kinds of event are votes.

MT-bench's judge: each pair is judged twice, the second time with the sides exchanged.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from crowdrank.data import Comparisons
from crowdrank.io.formats.base import Format, Writer, has, held, labelled, need, playing, sides
from crowdrank.io.formats.records import records_of
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table, with_computed
from crowdrank.io.writer import TABLES, write_table

_FIELDS = dict.fromkeys(("model_a", "model_b", "winner", "judge", "judge_hash", "tstamp", "query", "weight"), pl.String)
_MORE = {"conversationa", "questionid", "tstamp", "judge", "judgehash", "convmetadata"}
_ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie|winner_model_tie")
_pair_and_winner = has("model_a,model_b,winner")


def _recognises_lmsys(source: Source) -> bool:
    return _pair_and_winner(source) and bool(_MORE & source.names)


def _read_lmsys(source: Source) -> Table:
    table = _without_conversations(source) if source.json else source.table
    return playing(
        table,
        "lmsys",
        left="model_a",
        right="model_b",
        winner="winner",
        annotator="judge|judge_hash?",
        time="tstamp?",
        query="query?",
        weight="weight?",
    )


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
    recognises=_recognises_lmsys,
    read=_read_lmsys,
    writer=Writer(("comparisons",), TABLES, held("annotator query weight time"), _write),
)
LMSYS_55K = Format(
    name="lmsys-55k",
    description="The arena's votes as on Kaggle: model_a, model_b and one column for each of the three outcomes.",
    known_by="columns model_a, model_b, winner_model_a and winner_model_b",
    recognises=has("model_a,model_b,winner_model_a,winner_model_b"),
    read=_read_one_hot,
)


_VOTES = {"leftvote": "left", "rightvote": "right", "tievote": "tie", "bothbad_vote": "tie"}
_SCHEMA = {
    "tstamp": pl.Float64,
    "type": pl.String,
    "models": pl.List(pl.String),
    "states": pl.List(pl.Struct({"model_name": pl.String})),
    "ip": pl.String,
}


def _recognises_fastchat(source: Source) -> bool:
    return any({"tstamp", "type", "models"} <= record.keys() for record in source.records)


def _read_fastchat(source: Source) -> Table:
    found = records_of(source, _SCHEMA)
    first_seen = pl.col("record").min().over("ip")
    frame = found.frame.select(
        "record",
        # An address is nobody's name to keep: voters are numbered as they come.
        annotator=pl.when(pl.col("ip").is_not_null()).then(pl.lit("voter ") + first_seen.rank("dense").cast(pl.String)),
        left=_model(0),
        right=_model(1),
        winner=pl.col("type").replace_strict(_VOTES, default=None),
        time=pl.col("tstamp"),
    )
    other = frame["winner"].is_null().to_numpy() & ~np.isin(frame["record"].to_numpy(), list(found.broken))
    table = found.table(frame, set_aside={"no vote": other})
    who = "annotator" if frame["annotator"].null_count() < frame.height else "no ip?"
    return playing(table, "fastchat", annotator=who, left="left", right="right", winner="winner", time="time")


def _model(side: int) -> pl.Expr:
    """The name that was shown, or the one behind it where the two were anonymous."""
    shown = pl.col("models").list.get(side, null_on_oob=True)
    hidden = pl.col("states").list.get(side, null_on_oob=True).struct.field("model_name")
    return pl.when(shown.str.len_chars() > 0).then(shown).otherwise(hidden)


FASTCHAT = Format(
    name="fastchat",
    description="FastChat's log of an arena, one event a line; voters are numbered, their addresses are not kept.",
    known_by="objects with tstamp, type and models",
    recognises=_recognises_fastchat,
    read=_read_fastchat,
)


_TEXT = ("model_1", "model_2", "g1_winner", "g2_winner")


def _read_mt_bench(source: Source) -> Table:
    listed = any(isinstance(record.get("judge"), list) for record in source.records)
    schema = {**dict.fromkeys(_TEXT, pl.String), "judge": pl.List(pl.String) if listed else pl.String}
    found = records_of(source, {**schema, "tstamp": pl.Float64})
    judge = pl.col("judge").list.join(" ") if found.frame["judge"].dtype == pl.List else pl.col("judge")
    frame = pl.concat(
        found.frame.select(
            "record", annotator=judge, left=pl.col(left), right=pl.col(right), winner=_winner(game), time="tstamp"
        )
        for game, left, right in ((1, "model_1", "model_2"), (2, "model_2", "model_1"))
    )
    table = found.table(frame)
    return playing(table, "mt-bench", annotator="annotator", left="left", right="right", winner="winner", time="time")


def _winner(game: int) -> pl.Expr:
    """By name, as the second game calls them in the order of the first; a judge who made an error said nothing."""
    said = pl.col(f"g{game}_winner").str.strip_chars().str.to_lowercase()
    return (
        pl.when(said == "model_1")
        .then(pl.col("model_1"))
        .when(said == "model_2")
        .then(pl.col("model_2"))
        .when(said == "error")
        .then(pl.lit("skip"))
        .otherwise(said)
    )


MT_BENCH = Format(
    name="mt-bench",
    description="Judgments of MT-bench's judge: two votes a line, the second with the sides exchanged.",
    known_by="columns model_1, model_2, g1_winner and g2_winner",
    recognises=has("model_1,model_2,g1_winner,g2_winner"),
    read=_read_mt_bench,
)
