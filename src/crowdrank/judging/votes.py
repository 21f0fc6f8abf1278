"""What language models answered: votes, a table of the models, and what is left to ask."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from crowdrank.io import write_table
from crowdrank.io.source_table import replace_surrogates
from crowdrank.io.synonyms import normalize_name
from crowdrank.judging.asking import LLMJudge, Question
from crowdrank.judging.budget import expected_tokens
from crowdrank.judging.journal import Journal
from crowdrank.judging.plan import JudgingPlan

_TIE_WORDS = ("tie", "draw", "equal", "undecided")
_TOKENS_OF_ANSWER, _TOKENS_WITH_REASON = 10, 60
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgeRun:
    """What language models answered, and what is left to ask.

    Parameters
    ----------
    votes : polars.DataFrame
        One row per answer: query (if there are queries), annotator, left, right, winner, and reason on request.
    people : polars.DataFrame
        One row per model: annotator, kind, family, and the mean price of an answer (missing if it was free).
    n_questions : int
        Pairs × orders × models.
    n_answered : int
        Questions with an answer, from this run or an earlier one.
    n_from_journal : int
        Questions that were answered by earlier runs.
    n_no_answer : int
        Questions that were asked as often as allowed without an answer that could be understood.
    n_left : int
        Questions that are still to be asked.
    spent : float
        The cost of all requests in the journal.
    expected_cost, most_cost : float
        About what the questions that are left will cost, and what they can cost if each is asked once.
    prompt : str
        The first prompt.
    notes : tuple of str
        Caveats: why the run stopped, and what went wrong.
    """

    votes: pl.DataFrame
    people: pl.DataFrame
    n_questions: int
    n_answered: int
    n_from_journal: int
    n_no_answer: int
    n_left: int
    spent: float
    expected_cost: float
    most_cost: float
    prompt: str
    notes: tuple[str, ...]


def collect_run(plan: JudgingPlan, log: Journal, before: int, notes: Sequence[str] = ()) -> JudgeRun:
    """What the journal says about the questions of a plan; `before` of them were answered by earlier runs."""
    rows, n_left, no_answer, expected, most, prompt = [], 0, 0, 0.0, 0.0, ""
    cost: dict[str, list[float]] = {judge.annotator: [] for judge in plan.judges}
    tie = next((w for w in _TIE_WORDS if not any(normalize_name(label) == w for label in plan.items.queries)), "tie")
    tokens_out = _TOKENS_WITH_REASON if plan.reasons else _TOKENS_OF_ANSWER
    for question in plan.questions():
        prompt = prompt or question.prompt
        answer = log.answers.get(question.key)
        if answer is not None:
            rows.append(_row(question, answer, tie))
            cost[question.judge.annotator].append(answer["cost"])
        elif log.unreadable.get(question.key, 0) >= plan.asks:
            no_answer += 1
        else:
            n_left += 1
            expected += question.judge.prices.of(expected_tokens(question.prompt), tokens_out)
            most += question.most_cost
    if no_answer:
        notes = [*notes, f"{no_answer:,} questions got no answer that can be understood, in {plan.asks} asks each."]
    return JudgeRun(
        votes=_votes(rows, plan),
        people=_people(plan.judges, cost),
        n_questions=len(plan.pairs) * len(plan.judges),
        n_answered=len(rows),
        n_from_journal=before,
        n_no_answer=no_answer,
        n_left=n_left,
        spent=log.spent,
        expected_cost=expected,
        most_cost=most,
        prompt=prompt,
        notes=tuple(notes),
    )


def _row(question: Question, answer: Mapping[str, Any], tie: str) -> dict[str, str]:
    pair = question.pair
    winner = {"left": pair.left, "right": pair.right}.get(answer["winner"], tie)
    reason = replace_surrogates(str(answer["reason"]))
    # The reason is the model's text: a spreadsheet must not read it as a formula.
    safe = f"'{reason}" if reason.startswith(_FORMULA_STARTS) else reason
    return {**pair._asdict(), "annotator": question.judge.annotator, "winner": winner, "reason": safe}


def _votes(rows: Sequence[Mapping[str, str]], plan: JudgingPlan) -> pl.DataFrame:
    names = ["query"] * plan.items.has_queries + ["annotator", "left", "right", "winner"] + ["reason"] * plan.reasons
    return pl.DataFrame({name: pl.Series([row[name] for row in rows], dtype=pl.String) for name in names})


def _people(judges: Sequence[LLMJudge], cost: Mapping[str, Sequence[float]]) -> pl.DataFrame:
    prices = [sum(of) / len(of) if (of := cost[judge.annotator]) and sum(of) else None for judge in judges]
    return pl.DataFrame(
        {
            "annotator": [judge.annotator for judge in judges],
            "kind": ["llm"] * len(judges),
            "family": [judge.model for judge in judges],
            "price": pl.Series(prices, dtype=pl.Float64),
        }
    )


def write_whole(table: pl.DataFrame, path: str | PathLike[str] | None) -> None:
    """Write a table that has rows: whole, or not at all."""
    if path is None or not len(table):
        return
    target = Path(path)
    part = target.with_name(f".{target.stem}.part{target.suffix}")
    write_table(table, part)
    os.replace(part, target)
