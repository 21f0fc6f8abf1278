"""What language models answered: votes, a table of the models, and what is left to ask."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from crowdrank.errors import SettingError
from crowdrank.io import write_table
from crowdrank.io.column_roles import normalize_name
from crowdrank.io.source_table import replace_surrogates
from crowdrank.judging.asking import LLMJudge, Question, check_at_least, make_question
from crowdrank.judging.journal import Journal, Prices, expected_tokens
from crowdrank.judging.prompts import ItemTexts, Pair, Template, answer_instruction, answer_schema

# What will be asked: every pair, of every model, with one prompt each.

_RESERVED_SETTINGS = ("model", "messages", "n", "stream", "response_format", "max_tokens", "max_completion_tokens")


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgingPlan:
    """All questions, and what is needed to write their prompts.

    Parameters
    ----------
    items : ItemTexts
        The items.
    pairs : sequence of Pair
        The pairs, in the order of asking.
    judges : sequence of LLMJudge
        The models.
    template : Template
        The prompt.
    question : str
        What is asked.
    url : str
        The endpoint.
    settings : mapping
        The other parameters of a request.
    ties, reasons : bool
        Whether a tie is an answer, and whether a reason is part of it.
    asks : int
        How often to ask a question before giving up on a valid answer.
    """

    items: ItemTexts
    pairs: Sequence[Pair]
    judges: Sequence[LLMJudge]
    template: Template
    question: str
    url: str
    settings: Mapping[str, Any]
    ties: bool
    reasons: bool
    asks: int

    def questions(self) -> Iterator[Question]:
        """One question per pair and model. The prompts are made one by one, because they may be long."""
        instruction = answer_instruction(self.ties, self.reasons)
        form = answer_schema(self.ties, self.reasons)
        for pair in self.pairs:
            left, right = self.items[pair.query, pair.left], self.items[pair.query, pair.right]
            prompt = f"{self.template.fill(self.question, left, right)}\n\n{instruction}"
            for judge in self.judges:
                yield make_question(judge, pair, prompt, self.url, self.settings, form)

    def count_answered(self, journal: Journal) -> int:
        return sum(question.key in journal.answers for question in self.questions())

    def left_to_ask(self, journal: Journal) -> Iterator[Question]:
        for question in self.questions():
            if question.key not in journal.answers and journal.unreadable.get(question.key, 0) < self.asks:
                yield question


def make_judges(
    llm: str | Sequence[str],
    annotator: str | None,
    price_in: float | Sequence[float],
    price_out: float | Sequence[float],
) -> list[LLMJudge]:
    """The models, with one name and one pair of prices each."""
    models = [llm] if isinstance(llm, str) else list(llm)
    if not models or not all(model.strip() for model in models):
        raise SettingError("Name at least one model: llm='my-model'.")
    if len(set(models)) < len(models):
        raise SettingError("A model is named twice.")
    if annotator is not None and len(models) > 1:
        raise SettingError("Several models cannot be one annotator.")
    prices = zip(_per_model(price_in, models, "price_in"), _per_model(price_out, models, "price_out"), strict=True)
    return [
        LLMJudge(model=model, annotator=annotator or model, prices=Prices(*each))
        for model, each in zip(models, prices, strict=True)
    ]


def _per_model(price: float | Sequence[float], models: Sequence[str], name: str) -> list[float]:
    given = list(price) if isinstance(price, Sequence) else [price]
    if len(given) not in (1, len(models)):
        raise SettingError(f"{name} takes one price, or one per model: got {len(given)} for {len(models)} models.")
    return given if len(given) == len(models) else given * len(models)


def request_settings(temperature: float | None, max_tokens: int, more: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters of a request besides its model and its prompt."""
    check_at_least(max_tokens=(max_tokens, 1))
    if wrong := [name for name in more or {} if name in _RESERVED_SETTINGS]:
        raise SettingError(f"The parameter {wrong[0]!r} of a request cannot be set.")
    given = {} if temperature is None else {"temperature": temperature}
    return {**given, "max_tokens": max_tokens, **(more or {})}


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
