"""A collection played through: a policy asks, a crowd answers, beliefs follow, and every question is on record.

Trials of a simulation, one after another or in several processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from crowdrank.active.batches import batch
from crowdrank.active.history import Asked
from crowdrank.active.policies import Policy
from crowdrank.active.question import Question, Rules
from crowdrank.data import Comparisons
from crowdrank.errors import SettingError
from crowdrank.online import Beliefs, OnlineModel


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
            [q.left for q in asked],
            [q.right for q in asked],
            [self.winners[n] for n in rows],
            annotator=[q.annotator for q in asked],
            query=queries if any(queries) else None,
        )


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


Played = TypeVar("Played")


def play_all(play: Callable[[int], Played], trials: int, processes: int = 1) -> Iterator[Played]:
    """What comes of each trial, in their order, whatever the number of processes.

    More than one process can only be started from a program that guards its main part.
    """
    if processes < 1:
        raise SettingError(f"processes must be at least 1, got {processes}.")
    if min(processes, trials) == 1:
        yield from map(play, range(trials))
        return
    import signal
    from concurrent.futures import ProcessPoolExecutor
    from functools import partial
    from multiprocessing import get_context

    # an interrupted process ends at once, without a traceback of its own
    quietly = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    # threads of ours may hold locks that a forked process would wait for
    with ProcessPoolExecutor(min(processes, trials), get_context("spawn"), quietly) as pool:
        yield from pool.map(play, range(trials))
