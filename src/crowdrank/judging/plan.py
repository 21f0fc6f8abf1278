"""What will be asked: every pair, of every model, with one prompt each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdrank.errors import SettingError
from crowdrank.judging.asking import LLMJudge, Question, check_at_least, make_question
from crowdrank.judging.budget import Prices
from crowdrank.judging.journal import Journal
from crowdrank.judging.prompts import Template, answer_instruction, answer_schema
from crowdrank.judging.questions import ItemTexts, Pair

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
        How often a question is asked until its answer is understood.
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
