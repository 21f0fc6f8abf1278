"""A collection played through: a policy asks, a crowd answers, beliefs follow, and every question is on record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from crowdrank.judgments import Comparisons
from crowdrank.online import Beliefs, OnlineModel
from crowdrank.questions.asked import Asked
from crowdrank.questions.batch import batch
from crowdrank.questions.policies import Policy
from crowdrank.questions.question import Question
from crowdrank.questions.rules import Rules


class Crowd(Protocol):
    """Anyone who answers."""

    def winner(self, left: str, right: str, annotator: str, rng: np.random.Generator) -> str: ...


class Step(NamedTuple):
    """After so many answers, what is believed."""

    votes: int
    beliefs: Beliefs
    log: Log


class Log:
    """Every question with its answer, in the order of asking."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.winners: list[str] = []

    def __len__(self) -> int:
        return len(self.questions)

    def add(self, question: Question, winner: str) -> None:
        self.questions.append(question)
        self.winners.append(winner)

    def comparisons(self, chosen: Callable[[Question], bool] | None = None) -> Comparisons:
        """The judgments; of the chosen questions only, where some are."""
        rows = [n for n, q in enumerate(self.questions) if chosen is None or chosen(q)]
        asked = [self.questions[n] for n in rows]
        queries = [q.query for q in asked]
        return Comparisons.of(
            [q.left for q in asked], [q.right for q in asked], [self.winners[n] for n in rows],
            annotator=[q.annotator for q in asked], query=queries if any(queries) else None,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Collection:
    """How a collection goes."""

    policy: Policy
    model: OnlineModel
    rules: Rules | None = None
    at_once: int = 1
    """How many annotators hold a question at the same time."""
    lag: int = 0
    """How many answers the beliefs are behind."""

    def run(self, crowd: Crowd, beliefs: Beliefs, budget: int, rng: np.random.Generator) -> Iterator[Step]:
        """Asks until the budget is spent or nothing is left to ask; a step for each round of answers."""
        asked, log, late = Asked(beliefs, self.rules), Log(), deque[tuple[Question, str]]()
        while len(log) < budget:
            questions = list(batch(self.policy, beliefs, asked, min(self.at_once, budget - len(log)), rng))
            for question in questions:
                winner = crowd.winner(question.left, question.right, question.annotator, rng)
                log.add(question, winner)
                late.append((question, winner))
            while len(late) > self.lag:
                question, winner = late.popleft()
                beliefs = self.model.update(beliefs, question.answered(winner))
                asked.settle(question)
            yield Step(len(log), beliefs, log)
            if not questions:
                return
