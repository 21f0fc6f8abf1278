"""Pairs of texts by language models: JudgeBench, PandaLM, Arena-Hard, and OpenAI's comparisons of summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from crowdrank.io.formats.base import Format, assign_roles, find_required, load_records
from crowdrank.io.source_table import SourceTable, with_columns_computed
from crowdrank.io.sources import Source

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
