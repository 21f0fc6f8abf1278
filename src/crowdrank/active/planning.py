"""How many judgments will it take? Collections like the one planned are played through until they are good enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, cast

import numpy as np

from crowdrank.active.collection import Collection, play_all
from crowdrank.active.policies import Adaptive, Chooser
from crowdrank.active.stopping import Accuracy, Kendall, Order, Top, decision
from crowdrank.arrays import FloatArray
from crowdrank.errors import SettingError
from crowdrank.evaluation import accuracy, kendall_correlation, top_k_overlap
from crowdrank.online import Beliefs, Posterior, Refits, Roll
from crowdrank.online.sequential import Answers
from crowdrank.simulation.crowd import respondents

Progress = Callable[[int, int], None]
"""Told how many trials are done, and of how many."""

PER_ITEM = 100
"""Votes for each item after which a plan gives up, unless told."""
_SELDOM, _SHARE = 25, 20
"""The posterior is walked on after so many votes at most at first, then after one vote in so many that there are."""
_KEPT, _LOOKS = 1.25, 6
"""A target is kept when it still holds after so many times the votes, and at so many looks."""
_PATIENCE = 2.0
"""A trial is given up when an error that went down as 1 / votes would be so many times too large in the end."""
_GRID = 1.15


class Goal(NamedTuple):
    """How close a board is to the truth, and from where on it is close enough."""

    closeness: Callable[[FloatArray, FloatArray], float]
    enough: float
    probability: float
    """The share of collections that must get there."""


class Point(NamedTuple):
    """How close boards are after so many votes, over the trials."""

    votes: int
    mean: float
    std_error: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many judgments it took in collections that were played through."""

    target: str
    items: int
    annotators: int
    policy: str
    price: float
    probability: float
    """The share of trials that `votes` are enough for."""
    most: int
    """Votes after which a trial was given up."""
    reached: tuple[float, ...]
    """Of each trial: the votes at which it reached the target for good; infinite where it never did."""
    curve: tuple[Point, ...]
    """How close boards came, as votes grew; a trial that was done counts with the last it reached."""

    @property
    def votes(self) -> float:
        return self._quantile(self.probability)

    @property
    def interval(self) -> tuple[float, float]:
        """Eight trials in ten took between so many votes."""
        return self._quantile(0.1), self._quantile(0.9)

    @property
    def cost(self) -> float:
        return self.price * self.votes

    @property
    def never(self) -> int:
        """Trials that did not reach the target."""
        return int(np.sum(np.isinf(self.reached)))

    def _quantile(self, share: float) -> float:
        """Infinite as soon as a trial without end has part in it."""
        found = float(np.ceil(np.quantile(np.minimum(self.reached, 1e15), share)))
        return found if found <= self.most else float("inf")

    def lines(self) -> list[str]:
        """In plain words."""
        told = [
            f"{self.items:,} items, {self.annotators:,} annotators, questions chosen by {self.policy}, "
            f"{len(self.reached)} collections played through until {self.target}."
        ]
        if np.isinf(self.votes):
            last = self.curve[-1]
            told.append(
                f"Out of reach: {self.never} of {len(self.reached)} did not get there within {self.most:,} votes "
                f"(after {last.votes:,} votes they stood at {last.mean:.2f} on average)."
            )
            return told
        low, high = self.interval
        above = f"{high:,.0f}" if np.isfinite(high) else f"more than {self.most:,}"
        told.append(
            f"About {self.votes:,.0f} votes, {self.votes / self.items:.0f} for each item, cost {self.cost:,.2f}."
        )
        told.append(f"Eight in ten took between {low:,.0f} and {above}.")
        if self.never:
            told.append(f"{self.never} of {len(self.reached)} did not get there within {self.most:,} votes.")
        return told


def plan(
    items: int,
    annotators: int,
    *,
    quality: str | float = "beta(5,2)",
    target: str = "tau 0.9",
    probability: float | None = None,
    labels: Literal["order", "logistic"] = "logistic",
    scale: float = 2.0,
    policy: Chooser | None = None,
    price: float = 1.0,
    trials: int = 10,
    most: int | None = None,
    seed: int = 0,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> Plan:
    """How many votes it takes to come as close to the truth as `target` says: "tau 0.9", "accuracy 0.95", "top 3".

    Crowds are drawn as `simulated.respondents` draws them, asked by `policy` (Adaptive unless told), and their boards
    compared with the truth as votes come in. Votes are enough for half of the collections, or for the share of them
    that `probability` says; of targets that are met or not ("top 3", "order") for nine in ten. More than one process
    can only be started from a program that guards its main part.
    """
    _check(trials, price, scale, probability)
    goal = _goal(target, probability)
    most = PER_ITEM * items if most is None else most
    scenario = Scenario(
        items, annotators, quality, labels, scale, Adaptive() if policy is None else policy, goal, most, seed
    )
    courses: list[Course] = []
    for course in play_all(scenario.play, trials, processes):
        courses.append(course)
        if on_progress is not None:
            on_progress(len(courses), trials)
    return Plan(
        target=target,
        items=items,
        annotators=annotators,
        policy=scenario.policy.name,
        price=price,
        probability=goal.probability,
        most=most,
        reached=tuple(course.reached(goal.enough) for course in courses),
        curve=_curve(courses),
    )


class Scenario(NamedTuple):
    """What is planned, for one trial after another."""

    items: int
    annotators: int
    quality: str | float
    labels: Literal["order", "logistic"]
    scale: float
    policy: Chooser
    goal: Goal
    most: int
    seed: int

    def play(self, trial: int) -> Course:
        """One collection, until the target is kept, out of sight, or everything is asked."""
        from threadpoolctl import threadpool_limits

        crowd_seed = int(np.random.default_rng([self.seed, trial]).integers(2**31))
        crowd = respondents(self.items, self.annotators, self.quality, self.labels, self.scale, seed=crowd_seed)
        model = Patient(every=min(max(self.items // 4, 1), _SELDOM), warmup=50, keep=100, seed=crowd_seed)
        collection, course = Collection(policy=self.policy, model=model), Course([], [])
        start, rng = model.start(crowd.items, crowd.annotators), np.random.default_rng([self.seed, trial, 1])
        with threadpool_limits(1):
            for votes, beliefs, _ in collection.run(crowd, start, self.most, rng):
                if cast(Posterior, beliefs).waiting and votes < self.most:
                    continue
                course.votes.append(votes)
                course.closeness.append(self.goal.closeness(beliefs.mean, crowd.truth))
                if course.over(self.goal.enough, self.most):
                    break
        return course


class Course(NamedTuple):
    """How close a board came in one trial, as votes grew."""

    votes: list[int]
    closeness: list[float]

    def reached(self, enough: float) -> float:
        """The votes from which it was close enough for good, between the last time it was not and the next look."""
        short = np.flatnonzero(np.array(self.closeness) < enough)
        if not len(short):
            return float(self.votes[0]) if self.votes else float("inf")
        last = int(short[-1])
        if last == len(self.votes) - 1:
            return float("inf")
        part = (enough - self.closeness[last]) / (self.closeness[last + 1] - self.closeness[last])
        return float(self.votes[last] * (self.votes[last + 1] / self.votes[last]) ** part)

    def over(self, enough: float, most: int) -> bool:
        """Whether the target is kept, or out of sight."""
        now, since = self.votes[-1], self.reached(enough)
        if now >= _KEPT * since and np.sum(np.array(self.votes) >= since) >= _LOOKS:
            return True
        return (1 - self.closeness[-1]) * now / most > _PATIENCE * (1 - enough)


@dataclass(frozen=True, kw_only=True)
class Patient(Refits):
    """Refits that waits for more votes the more there are."""

    def after(self, beliefs: Beliefs, items: Roll, annotators: Roll, answers: Answers) -> Posterior:
        every = max(self.every, beliefs.judged // _SHARE)
        return Refits.after(replace(self, every=every), beliefs, items, annotators, answers)


def _curve(courses: list[Course]) -> tuple[Point, ...]:
    """On a grid of votes, each so many times the last, as far as the longest trial went."""
    first = max(course.votes[0] for course in courses)
    last = max(course.votes[-1] for course in courses)
    votes = np.unique(np.geomspace(first, last, 2 + int(np.log(last / first) / np.log(_GRID))).round())
    points = []
    for count in votes:
        # between looks on the scale of ratios; beyond the last one, the last
        close = [np.interp(np.log(count), np.log(course.votes), course.closeness) for course in courses]
        error = np.std(close, ddof=1) / np.sqrt(len(close)) if len(close) > 1 else np.nan
        points.append(Point(int(count), float(np.mean(close)), float(error)))
    return tuple(points)


def _goal(target: str, probability: float | None) -> Goal:
    wanted = decision(target)
    if isinstance(wanted, Kendall):
        return Goal(kendall_correlation, wanted.share, probability or 0.5)
    if isinstance(wanted, Accuracy):
        return Goal(accuracy, wanted.share, probability or 0.5)
    if isinstance(wanted, Top):  # the share of the top that is right: enough is all of it
        return Goal(partial(top_k_overlap, k=wanted.k), 1 - 0.5 / wanted.k, probability or 0.9)
    if isinstance(wanted, Order):
        return Goal(accuracy, 1 - 1e-9, probability or 0.9)
    raise SettingError(f'A plan is for "tau 0.9", "accuracy 0.95", "top 3" or "order", got {target!r}.')


def _check(trials: int, price: float, scale: float, probability: float | None) -> None:
    if trials < 1:
        raise SettingError(f"trials must be at least 1, got {trials}.")
    if not 0 < scale < np.inf:
        raise SettingError(f"scale must be above zero, or there is no order to find, got {scale!r}.")
    if not 0 <= price < np.inf:
        raise SettingError(f"price must be zero or more, got {price!r}.")
    if probability is not None and not 0 < probability < 1:
        raise SettingError(f"probability must lie between 0 and 1, got {probability!r}.")
