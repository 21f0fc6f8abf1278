"""Simulate a collection: a policy asks, a crowd answers, and the beliefs are updated. Budget of a collection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from crowdrank.active.policies import Policy, batch
from crowdrank.active.questions import Question, QuestionHistory, Rules
from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.errors import SettingError
from crowdrank.online import Beliefs, OnlineModel
from crowdrank.simulation import Respondents


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits to the questions of a collection. A question counts as soon as it is asked, answered or not.

    Parameters
    ----------
    votes : int, optional
        Total number of questions; unlimited by default.
    money : float, optional
        Total cost, at the prices of the rules; unlimited by default.
    per_annotator : int, optional
        Number of questions per annotator, in addition to the quotas of the rules; unlimited by default.

    Examples
    --------
    >>> from crowdrank.online import CrowdBT
    >>> history = QuestionHistory(CrowdBT().start(["a", "b", "c"], ["ann", "bob"]))
    >>> Budget(votes=10, per_annotator=3).remaining(history)
    6.0
    """

    votes: int | None = None
    money: float | None = None
    per_annotator: int | None = None

    def __post_init__(self) -> None:
        for name in ("votes", "money", "per_annotator"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise SettingError(f"{name} must be zero or more, or None for no limit, got {value!r}.")

    def remaining(self, history: QuestionHistory) -> float:
        """Return how many questions can still be asked if the cheapest annotators are asked first; inf if unlimited."""
        return min(self._votes_left(history), self._affordable(history))

    def exhausted(self, history: QuestionHistory) -> bool:
        """Return whether no further question may be asked."""
        return self.remaining(history) < 1

    def limit_reached(self, history: QuestionHistory) -> str:
        """Return a sentence that says which limit was reached; empty if none was."""
        if self._votes_left(history) < 1:
            return f"All {self.votes:,} questions of the budget were asked."
        free = self._free(history)
        if not len(history.prices[history.available]):
            return "No annotator is available now."
        if not (free > 0).any():
            return "Every available annotator has reached their maximum number of questions" + (
                "."
                if self.per_annotator is None
                else f" ({self.per_annotator:,} by the budget, or fewer by the rules)."
            )
        if self._affordable(history) < 1:
            price = history.prices[free > 0].min()
            return f"{history.spent:,.2f} of {self.money:,.2f} is spent, and the cheapest answer costs {price:,.2f}."
        return ""

    def _votes_left(self, history: QuestionHistory) -> float:
        return np.inf if self.votes is None else self.votes - int(history.annotator_counts.sum())

    def _free(self, history: QuestionHistory) -> FloatArray:
        """How many questions each annotator may still get."""
        limit = np.minimum(history.quotas, np.inf if self.per_annotator is None else self.per_annotator)
        return np.where(history.available, np.maximum(limit - history.annotator_counts, 0), 0.0)

    def _affordable(self, history: QuestionHistory) -> float:
        free = self._free(history)
        if self.money is None:
            return float(free.sum())
        money, count = self.money - history.spent, 0.0
        for annotator in np.argsort(history.prices, kind="stable"):
            # the small addition keeps ten times 0.1 from costing more than 1
            bought = min(free[annotator], np.floor(money / history.prices[annotator] + 1e-9))
            if bought > 0:
                count, money = count + bought, money - bought * history.prices[annotator]
        return float(count)


class AnswerSource(Protocol):
    """Anything that answers questions."""

    def winner(self, left: str, right: str, annotator: str, rng: np.random.Generator) -> str: ...


class Step(NamedTuple):
    """State of a simulated collection after a number of votes."""

    votes: int
    beliefs: Beliefs
    log: AnswerLog


class AnswerLog:
    """Questions with their answers, in the order of asking."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.winners: list[str] = []

    def __len__(self) -> int:
        return len(self.questions)

    def add(self, question: Question, winner: str) -> None:
        """Append a question and its answer."""
        self.questions.append(question)
        self.winners.append(winner)

    def comparisons(self, select: Callable[[Question], bool] | None = None) -> Comparisons:
        """Return the judgments, or only those of the selected questions."""
        rows = [n for n, question in enumerate(self.questions) if select is None or select(question)]
        questions = [self.questions[n] for n in rows]
        queries = [question.query for question in questions]
        return Comparisons.of(
            [question.left for question in questions],
            [question.right for question in questions],
            [self.winners[n] for n in rows],
            annotator=[question.annotator for question in questions],
            query=queries if any(queries) else None,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedCollection:
    """A collection to be simulated.

    Parameters
    ----------
    policy : Policy
        The policy that chooses the questions.
    model : OnlineModel
        The model that updates the beliefs.
    rules : Rules, optional
        Limits to what may be asked; none by default.
    batch_size : int, default 1
        Number of questions that are open at the same time.
    lag : int, default 0
        Number of answers that the beliefs are behind.

    Examples
    --------
    >>> from crowdrank.active import Random
    >>> from crowdrank.online import CrowdBT
    >>> from crowdrank.simulation import respondents
    >>> crowd, model = respondents(items=4, annotators=2), CrowdBT()
    >>> collection = SimulatedCollection(policy=Random(), model=model)
    >>> beliefs = model.start(crowd.items, crowd.annotators)
    >>> steps = list(collection.run(crowd, beliefs, budget=5, rng=np.random.default_rng(0)))
    >>> steps[-1].votes, len(steps[-1].log)
    (5, 5)
    """

    policy: Policy
    model: OnlineModel
    rules: Rules | None = None
    batch_size: int = 1
    lag: int = 0

    def run(self, crowd: AnswerSource, beliefs: Beliefs, budget: int, rng: np.random.Generator) -> Iterator[Step]:
        """Ask until the budget is spent or no question is left; yields a step after each batch of answers."""
        history, log = QuestionHistory(beliefs, self.rules), AnswerLog()
        unprocessed = deque[tuple[Question, str]]()
        while len(log) < budget:
            count = min(self.batch_size, budget - len(log))
            questions = list(batch(self.policy, beliefs, history, count, rng))
            for question in questions:
                winner = crowd.winner(question.left, question.right, question.annotator, rng)
                log.add(question, winner)
                unprocessed.append((question, winner))
            while len(unprocessed) > self.lag:
                question, winner = unprocessed.popleft()
                beliefs = self.model.update(beliefs, question.answered(winner))
                history.resolve(question)
            yield Step(len(log), beliefs, log)
            if not questions:
                return


def run_collection(
    policy: Policy, crowd: Respondents, votes: int, model: OnlineModel, rng: np.random.Generator
) -> AnswerLog:
    """Simulate a whole collection and return its log.

    Parameters
    ----------
    policy : Policy
        The policy that chooses the questions.
    crowd : Respondents
        The simulated annotators.
    votes : int
        Number of questions.
    model : OnlineModel
        The model that updates the beliefs.
    rng : numpy.random.Generator
        Source of randomness.
    """
    log = AnswerLog()
    beliefs = model.start(crowd.items, crowd.annotators)
    for step in SimulatedCollection(policy=policy, model=model).run(crowd, beliefs, votes, rng):
        log = step.log
    return log


Result = TypeVar("Result")


def run_trials(run: Callable[[int], Result], trials: int, processes: int = 1) -> Iterator[Result]:
    """Yield the result of each trial, in order, whatever the number of processes.

    More than one process can only be started from a program that guards its main part
    (``if __name__ == "__main__":``).
    """
    if processes < 1:
        raise SettingError(f"processes must be at least 1, got {processes}.")
    if min(processes, trials) == 1:
        yield from map(run, range(trials))
        return
    import signal
    from concurrent.futures import ProcessPoolExecutor
    from functools import partial
    from multiprocessing import get_context

    # an interrupted worker ends at once, without a traceback of its own
    ignore_traceback = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    # spawn, because our threads may hold locks that a forked process would wait for
    with ProcessPoolExecutor(min(processes, trials), get_context("spawn"), ignore_traceback) as pool:
        yield from pool.map(run, range(trials))
