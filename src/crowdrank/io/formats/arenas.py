"""Arenas and benchmarks of language models: LMSYS, FastChat, MT-bench, AlpacaEval, JudgeBench, PandaLM and others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from crowdrank.data import Comparisons
from crowdrank.io.formats.base import (
    Format,
    Writer,
    assign_roles,
    find_required,
    load_records,
    optional,
    renamed_frame,
    true_rows,
    winner_sides,
)
from crowdrank.io.rows import parse_labels
from crowdrank.io.source_table import SourceTable, with_columns_computed
from crowdrank.io.sources import Source
from crowdrank.io.writer import TABLE_SUFFIXES, write_table

_FIELDS = dict.fromkeys(("model_a", "model_b", "winner", "judge", "judge_hash", "tstamp", "query", "weight"), pl.String)
_ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie|winner_model_tie")


def _read_lmsys(source: Source) -> SourceTable:
    table = _without_conversations(source) if source.json else source.table
    return assign_roles(
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


def _without_conversations(source: Source) -> SourceTable:
    """Load only the fields of the vote: most of such a file is conversations."""
    found = load_records(source, _FIELDS)
    present = [name for name in found.frame.columns if found.frame[name].null_count() < found.frame.height]
    return found.table(found.frame.select(present))


def _read_one_hot(source: Source) -> SourceTable:
    table = source.table
    columns = [find_required(table, names, "lmsys-55k") for names in _ONE_HOT]
    marks = [pl.col(column).cast(pl.String).str.strip_chars().is_in(("1", "1.0", "true", "True")) for column in columns]
    words = (pl.when(mark).then(pl.lit(word)) for mark, word in zip(marks, ("left", "right", "tie"), strict=True))
    # If several outcomes are marked, or none, the winner is unknown.
    winner = pl.when(pl.sum_horizontal(mark.cast(pl.Int8) for mark in marks) == 1).then(pl.coalesce(words))
    table = with_columns_computed(table, table.load(columns, None).select(winner.alias("winner")))
    return assign_roles(table, "lmsys-55k", left="model_a", right="model_b", winner="winner")


def _write(votes: Comparisons, path: Path) -> list[str]:
    frame = renamed_frame(votes, {"left": "model_a", "right": "model_b"})
    more = {} if votes.annotator is None else {"judge": votes.to_polars()["annotator"]}
    # The column tstamp makes the file recognisable as an arena's, even if the times are unknown.
    times = pl.Series([None] * len(votes), dtype=pl.Float64) if votes.time is None else pl.Series(votes.time)
    frame = frame.with_columns(
        winner=winner_sides(votes, "model_a", "model_b", "tie", "tie (bothbad)"), **more, tstamp=times
    )
    write_table(frame, path)
    return []


LMSYS = Format(
    name="lmsys",
    description="Votes of a chatbot arena: model_a, model_b, winner and judge (LMSYS 33k, 100k, 140k, MT-bench).",
    known_by="columns model_a, model_b and winner, with judge, judge_hash, tstamp, question_id or conversation_a",
    read=_read_lmsys,
    writer=Writer(("comparisons",), TABLE_SUFFIXES, optional("annotator query weight time both_bad"), _write),
)
LMSYS_55K = Format(
    name="lmsys-55k",
    description="The arena's votes as on Kaggle: model_a, model_b and one column for each of the three outcomes.",
    known_by="columns model_a, model_b, winner_model_a and winner_model_b",
    read=_read_one_hot,
)


def _read_comparia(source: Source) -> SourceTable:
    table = source.table
    chosen, equal = (find_required(table, name, "comparia") for name in ("chosen_model_name", "both_equal"))
    tied = true_rows(table, equal)
    names = parse_labels(table.load([chosen], None)[chosen], strip_spaces=True)
    winner = pl.select(pl.when(pl.lit(pl.Series(tied))).then(pl.lit("tie")).otherwise(names).alias("winner"))
    return assign_roles(
        with_columns_computed(table, winner),
        "comparia",
        left="model_a_name",
        right="model_b_name",
        winner="winner",
        annotator="visitor_id?",
        time="timestamp?",
    )


COMPARIA = Format(
    name="comparia",
    description="Votes of the arena compar:IA: two models, the chosen one, and whether both were equal.",
    known_by="columns model_a_name, model_b_name, chosen_model_name and both_equal",
    read=_read_comparia,
)


_VOTES = {"leftvote": "left", "rightvote": "right", "tievote": "tie", "bothbad_vote": "both_bad"}
_SCHEMA = {
    "tstamp": pl.Float64,
    "type": pl.String,
    "models": pl.List(pl.String),
    "states": pl.List(pl.Struct({"model_name": pl.String})),
    "ip": pl.String,
}


def _recognises_fastchat(source: Source) -> bool:
    return any({"tstamp", "type", "models"} <= record.keys() for record in source.records)


def _read_fastchat(source: Source) -> SourceTable:
    found = load_records(source, _SCHEMA)
    first_seen = pl.col("record").min().over("ip")
    frame = found.frame.select(
        "record",
        # IP addresses are not kept: voters are numbered in the order in which they appear.
        annotator=pl.when(pl.col("ip").is_not_null()).then(pl.lit("voter ") + first_seen.rank("dense").cast(pl.String)),
        left=_model(0),
        right=_model(1),
        winner=pl.col("type").replace_strict(_VOTES, default=None),
        time=pl.col("tstamp"),
    )
    other = frame["winner"].is_null().to_numpy() & ~np.isin(frame["record"].to_numpy(), list(found.unreadable_rows))
    table = found.table(frame, set_aside={"not a vote": other})
    who = "annotator" if frame["annotator"].null_count() < frame.height else "no ip?"
    return assign_roles(table, "fastchat", annotator=who, left="left", right="right", winner="winner", time="time")


def _model(side: int) -> pl.Expr:
    """Return the name that was shown, or the hidden name of an anonymous model."""
    shown = pl.col("models").list.get(side, null_on_oob=True)
    hidden = pl.col("states").list.get(side, null_on_oob=True).struct.field("model_name")
    return pl.when(shown.str.len_chars() > 0).then(shown).otherwise(hidden)


FASTCHAT = Format(
    name="fastchat",
    description="FastChat's log of an arena, one event per line; voters are numbered, their addresses are not kept.",
    known_by="objects with tstamp, type and models",
    recognises=_recognises_fastchat,
    read=_read_fastchat,
)


_TEXT = ("model_1", "model_2", "g1_winner", "g2_winner")


def _read_mt_bench(source: Source) -> SourceTable:
    listed = any(isinstance(record.get("judge"), list) for record in source.records)
    schema = {**dict.fromkeys(_TEXT, pl.String), "judge": pl.List(pl.String) if listed else pl.String}
    found = load_records(source, {**schema, "tstamp": pl.Float64})
    judge = pl.col("judge").list.join(" ") if found.frame["judge"].dtype == pl.List else pl.col("judge")
    frame = pl.concat(
        found.frame.select(
            "record", annotator=judge, left=pl.col(left), right=pl.col(right), winner=_winner(game), time="tstamp"
        )
        for game, left, right in ((1, "model_1", "model_2"), (2, "model_2", "model_1"))
    )
    table = found.table(frame)
    return assign_roles(
        table, "mt-bench", annotator="annotator", left="left", right="right", winner="winner", time="time"
    )


def _winner(game: int) -> pl.Expr:
    """Return the winner by name: the second game names the models in the order of the first. An error is a skip."""
    verdict = pl.col(f"g{game}_winner").str.strip_chars().str.to_lowercase()
    return (
        pl.when(verdict == "model_1")
        .then(pl.col("model_1"))
        .when(verdict == "model_2")
        .then(pl.col("model_2"))
        .when(verdict == "error")
        .then(pl.lit("skip"))
        .otherwise(verdict)
    )


MT_BENCH = Format(
    name="mt-bench",
    description="MT-bench's judgments: two votes per line, the second with the sides exchanged.",
    known_by="columns model_1, model_2, g1_winner and g2_winner",
    read=_read_mt_bench,
)


_GRADE_FIELDS = {"model": pl.String, "judge": pl.List(pl.String), "score": pl.Float64}


def _read_mt_bench_grades(source: Source) -> SourceTable:
    found = load_records(source, _GRADE_FIELDS)
    frame = found.frame.select(
        "record", annotator=pl.col("judge").list.join(" "), item=pl.col("model"), grade=pl.col("score")
    )
    # The judge's text contained no rating.
    missing = (frame["grade"] < 0).fill_null(False).to_numpy()
    table = found.table(frame, set_aside={"no rating": missing})
    return assign_roles(table, "mt-bench-grades", annotator="annotator", item="item", grade="grade")


MT_BENCH_GRADES = Format(
    name="mt-bench-grades",
    description="MT-bench's grades of single answers: a model, a judge and a score from 1 to 10.",
    known_by="columns question_id, model, judge, judgment and score, with a list as the judge",
    recognises=lambda source: any(isinstance(record.get("judge"), list) for record in source.records),
    read=_read_mt_bench_grades,
)


# AlpacaEval's annotations: a preference from 1 (the first output) to 2 (the second).
#
# A preference of 1.8 becomes 0.8 of a vote for the second output and 0.2 of a vote for the first, so that shares of
# votes are AlpacaEval's win rates. Outputs were shuffled before they were shown, so their positions are unknown.

_ALPACA_EVAL_FIELDS = {
    "generator_1": pl.String,
    "generator_2": pl.String,
    "annotator": pl.String,
    "preference": pl.Float64,
}
_ALPACA_EVAL_TIES = (0.0, 1.5)
# Smaller parts of a vote are dropped.
_MIN_PART = 1e-6


def _read_alpaca_eval(source: Source) -> SourceTable:
    found = load_records(source, _ALPACA_EVAL_FIELDS)
    frame = found.frame.with_columns(pl.col("preference").cast(pl.Float64, strict=False).fill_nan(None))
    second = pl.col("preference") - 1
    tie = pl.col("preference").is_in(_ALPACA_EVAL_TIES)
    in_range = second.is_between(0, 1)
    first_winner = (
        pl.when(pl.col("preference").is_null())
        .then(pl.lit("skip"))
        .when(tie)
        .then(pl.lit("tie"))
        .when(~in_range)
        .then(pl.format("preference {}", "preference"))
    )
    graded = in_range & ~tie
    whole = frame.filter((~graded).fill_null(True)).select(
        "record",
        left="generator_1",
        right="generator_2",
        annotator="annotator",
        winner=first_winner,
        weight=pl.lit(1.0),
    )
    parts = [
        frame.filter(graded & (share > _MIN_PART)).select(
            "record", left="generator_1", right="generator_2", annotator="annotator", winner=winner, weight=share
        )
        for winner, share in (("generator_1", 1 - second), ("generator_2", second))
    ]
    frame = pl.concat([whole, *parts]).sort("record", maintain_order=True)
    table = found.table(frame, positions_known=False, part_of=frame["record"].to_numpy())
    return assign_roles(
        table, "alpaca-eval", left="left", right="right", winner="winner", annotator="annotator", weight="weight"
    )


ALPACA_EVAL = Format(
    name="alpaca-eval",
    description="AlpacaEval's annotations; a graded preference is split between the two outputs as weights.",
    known_by="columns generator_1, generator_2, preference, output_1 and output_2",
    read=_read_alpaca_eval,
)


# Pairs of texts by language models: JudgeBench, PandaLM, Arena-Hard, and OpenAI's comparisons of summaries.

_VERDICT = pl.Struct({"judgment": pl.Struct({"judge_model": pl.String}), "decision": pl.String})
_JUDGEBENCH_FIELDS = {
    "pair_id": pl.String,
    "label": pl.String,
    "judge_name": pl.String,
    "judgments": pl.List(_VERDICT),
}
_FIRST, _SECOND = "response_A", "response_B"


def _recognises_judgebench(source: Source) -> bool:
    return all(isinstance(record.get("judgments", []), list) for record in source.records)


def _read_judgebench(source: Source) -> SourceTable:
    """Read the verdicts of a judge: the first of a pair as written, the second with the responses exchanged."""
    if "judgments" not in source.names:
        sides = pl.DataFrame(
            {"left": [_FIRST] * source.table.rows, "right": [_SECOND] * source.table.rows},
            schema=dict.fromkeys(("left", "right"), pl.String),
        )
        table = with_columns_computed(source.table, sides)
        return assign_roles(table, "judgebench", left="left", right="right", winner="label", query="pair_id")
    found = load_records(source, _JUDGEBENCH_FIELDS)
    frame = found.explode_lists("judgments").with_columns(turn=pl.int_range(pl.len()).over("record"))
    exchanged = pl.col("turn") % 2 == 1
    verdict = pl.col("judgments").struct
    frame = frame.select(
        "record",
        query="pair_id",
        left=pl.when(exchanged).then(pl.lit(_SECOND)).otherwise(pl.lit(_FIRST)),
        right=pl.when(exchanged).then(pl.lit(_FIRST)).otherwise(pl.lit(_SECOND)),
        winner=verdict.field("decision").fill_null("skip"),
        annotator=pl.coalesce(verdict.field("judgment").struct.field("judge_model"), "judge_name"),
    )
    note = (
        "Each pair has the verdicts of a judge on both orders of its two responses. 'label' is the truth and was not "
        "read as a verdict."
    )
    table = found.table(frame, notes=(note,))
    return assign_roles(
        table, "judgebench", left="left", right="right", winner="winner", annotator="annotator", query="query"
    )


JUDGEBENCH = Format(
    name="judgebench",
    description="JudgeBench: pairs of responses; verdicts of a judge on both orders, or the labels alone.",
    known_by="columns pair_id, response_A, response_B and label",
    recognises=_recognises_judgebench,
    read=_read_judgebench,
)


def _read_pandalm(source: Source) -> SourceTable:
    """Take the two models of each row from the key of the comparison; the annotators' columns are read as usual."""
    table = source.table
    column = find_required(table, "cmp_key", "pandalm")
    models = split_pairs(table.load([column], None)[column].cast(pl.String).to_list())
    frame = pl.DataFrame(
        {name: [pair[n] for pair in models] for n, name in enumerate(("model1", "model2"))},
        schema=dict.fromkeys(("model1", "model2"), pl.String),
    )
    note = (
        f"The items are the models of {column!r}: the first wrote 'response1', the second 'response2'. To rank the "
        "responses, read the source with columns={'left': 'response1', 'right': 'response2'}."
    )
    found = with_columns_computed(table, frame)
    return replace(found, roles={"left": "model1", "right": "model2"}, notes=(*table.notes, note))


def split_pairs(keys: Sequence[str | None]) -> list[tuple[str | None, str | None]]:
    """Split keys such as llama-7b_opt-7b at the underscore that separates two names.

    A name may contain underscores itself: of several ways to split a key, the one whose names occur in most other
    keys is taken.
    """
    ways = {key: [(key[:n], key[n + 1 :]) for n, c in enumerate(key) if c == "_"] for key in keys if key}
    ways = {key: [pair for pair in pairs if all(pair)] for key, pairs in ways.items()}
    names = Counter(name for pairs in ways.values() for name in {name for pair in pairs for name in pair})
    chosen: dict[str | None, tuple[str | None, str | None]] = {
        key: max(pairs, key=lambda pair: min(names[name] for name in pair)) for key, pairs in ways.items() if pairs
    }
    return [chosen.get(key, (None, None)) for key in keys]


PANDALM = Format(
    name="pandalm",
    description="PandaLM's test set: two models per row, and a column of codes for each annotator.",
    known_by="columns cmp_key, response1, response2 and annotator1",
    read=_read_pandalm,
)


_ARENA_HARD_FIELDS = {
    "question_id": pl.String,
    "model": pl.String,
    "baseline": pl.String,
    "judge": pl.String,
    "games": pl.List(pl.Struct({"score": pl.String})),
}
_BASELINE = "baseline"


def _read_arena_hard(source: Source) -> SourceTable:
    """Read two games per question: the baseline is A in the first, and the model is A in the second."""
    found = load_records(source, _ARENA_HARD_FIELDS)
    frame = found.explode_lists("games").with_columns(
        pl.col("baseline").fill_null(_BASELINE), second=pl.int_range(pl.len()).over("record") % 2 == 1
    )
    frame = frame.select(
        "record",
        left=pl.when("second").then("model").otherwise("baseline"),
        right=pl.when("second").then("baseline").otherwise("model"),
        winner=pl.col("games").struct.field("score").fill_null("skip"),
        annotator="judge",
    )
    note = "Each question has two games: the baseline is A in the first, and the model is A in the second."
    table = found.table(frame, notes=(note,))
    return assign_roles(table, "arena-hard", left="left", right="right", winner="winner", annotator="annotator")


ARENA_HARD = Format(
    name="arena-hard",
    description="Arena-Hard's judgments: a model against the baseline, two games per question.",
    known_by="columns question_id, model and games",
    recognises=lambda source: any(isinstance(record.get("games"), list) for record in source.records),
    read=_read_arena_hard,
)


_SUMMARIES_FIELDS = {
    "summaries": pl.List(pl.Struct({"policy": pl.String})),
    "choice": pl.Int64,
    "worker": pl.String,
}


def _read_summaries(source: Source) -> SourceTable:
    found = load_records(source, _SUMMARIES_FIELDS)
    frame = found.frame.select(
        "record",
        left=pl.col("summaries").list.get(0, null_on_oob=True).struct.field("policy"),
        right=pl.col("summaries").list.get(1, null_on_oob=True).struct.field("policy"),
        winner=pl.col("choice").cast(pl.String).replace_strict({"0": "left", "1": "right"}, default=None),
        annotator="worker",
    )
    table = found.table(frame, notes=("The items are the policies that wrote the summaries.",))
    return assign_roles(table, "openai-summaries", left="left", right="right", winner="winner", annotator="annotator")


OPENAI_SUMMARIES = Format(
    name="openai-summaries",
    description="OpenAI's comparisons of summaries: two summaries with their policies, and the choice of a worker.",
    known_by="columns summaries, choice and worker, with a policy in each summary",
    recognises=lambda source: any(
        isinstance(summaries := record.get("summaries"), list) and summaries and "policy" in (summaries[0] or ())
        for record in source.records
    ),
    read=_read_summaries,
)
