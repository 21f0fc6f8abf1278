"""Plan a collection: simulate collections like it, and see how many votes they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, cast

import numpy as np

from crowdrank.active.collection import SimulatedCollection, run_trials
from crowdrank.active.policies import Adaptive, BasePolicy
from crowdrank.active.stopping import Accuracy, Kendall, Order, Top, decision
from crowdrank.arrays import FloatArray
from crowdrank.errors import SettingError
from crowdrank.evaluation import accuracy, kendall_correlation, top_k_overlap
from crowdrank.online import Beliefs, Posterior, SequentialMCMC, Vocabulary
from crowdrank.online.beliefs import Answers
from crowdrank.simulation.crowd import respondents

Progress = Callable[[int, int], None]
"""Called with the number of finished trials and the number of all trials."""

VOTES_PER_ITEM = 100
"""Default maximum of votes, per item."""
_MAX_REFIT_EVERY, _REFIT_SHARE = 25, 20
"""The chain runs again after at most this many votes at first, later whenever the votes have grown by 1/20."""
_HOLD_FACTOR, _HOLD_LOOKS = 1.25, 6
"""A target is reached for good if it still holds after 1.25 times the votes, and in at least six evaluations."""
_GIVE_UP_FACTOR = 2.0
"""A trial is given up if an error that falls as 1 / votes would still be twice too large at the maximum of votes."""
_GRID_RATIO = 1.15


class Goal(NamedTuple):
    """A measure of closeness to the truth, the value to reach, and the share of collections that must reach it."""

    closeness: Callable[[FloatArray, FloatArray], float]
    threshold: float
    probability: float


class CurvePoint(NamedTuple):
    """Mean closeness of the leaderboards after a number of votes, over the trials, with its standard error."""

    votes: int
    mean: float
    std_error: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many votes simulated collections needed.

    Parameters
    ----------
    target : str
        The target, such as ``"tau 0.9"``.
    items, annotators : int
        Size of the collection.
    policy : str
        Name of the policy.
    price : float
        Price of one vote.
    probability : float
        Share of trials for which `votes` is enough.
    max_votes : int
        Number of votes after which a trial was given up.
    reached : tuple of float
        Votes after which each trial reached the target for good; infinite if it never did.
    curve : tuple of CurvePoint
        Closeness to the truth as votes grew. A finished trial counts with its last value.
    """

    target: str
    items: int
    annotators: int
    policy: str
    price: float
    probability: float
    max_votes: int
    reached: tuple[float, ...]
    curve: tuple[CurvePoint, ...]

    @property
    def votes(self) -> float:
        """Number of votes that is enough for the share `probability` of the trials; infinite if out of reach."""
        return self._quantile(self.probability)

    @property
    def interval(self) -> tuple[float, float]:
        """Between these numbers of votes lie eight trials in ten."""
        return self._quantile(0.1), self._quantile(0.9)

    @property
    def cost(self) -> float:
        """Price of `votes`."""
        return self.price * self.votes

    @property
    def n_failed(self) -> int:
        """Number of trials that did not reach the target."""
        return int(np.sum(np.isinf(self.reached)))

    def _quantile(self, share: float) -> float:
        # infinite as soon as an infinite trial enters the interpolation
        found = float(np.ceil(np.quantile(np.minimum(self.reached, 1e15), share)))
        return found if found <= self.max_votes else float("inf")

    def lines(self) -> list[str]:
        """Describe the plan in sentences."""
        trials = len(self.reached)
        lines = [
            f"{self.items:,} items, {self.annotators:,} annotators, questions chosen by {self.policy}, "
            f"target {self.target}; {trials} simulated collections."
        ]
        if np.isinf(self.votes):
            last = self.curve[-1]
            lines.append(
                f"Out of reach: {self.n_failed} of {trials} collections missed the target within "
                f"{self.max_votes:,} votes (average after {last.votes:,} votes: {last.mean:.2f})."
            )
            return lines
        low, high = self.interval
        above = f"{high:,.0f}" if np.isfinite(high) else f"more than {self.max_votes:,}"
        lines.append(
            f"About {self.votes:,.0f} votes, {self.votes / self.items:.0f} per item, at a cost of {self.cost:,.2f}."
        )
        lines.append(f"Eight collections in ten needed between {low:,.0f} and {above} votes.")
        if self.n_failed:
            lines.append(f"{self.n_failed} of {trials} collections missed the target within {self.max_votes:,} votes.")
        return lines


def plan(
    items: int,
    annotators: int,
    *,
    quality: str | float = "beta(5,2)",
    target: str = "tau 0.9",
    probability: float | None = None,
    labels: Literal["order", "logistic"] = "logistic",
    scale: float = 2.0,
    policy: BasePolicy | None = None,
    price: float = 1.0,
    trials: int = 10,
    max_votes: int | None = None,
    seed: int = 0,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> Plan:
    """Estimate by simulation how many votes a collection needs to reach a target.

    Parameters
    ----------
    items, annotators : int
        Size of the collection.
    quality : str or float, default "beta(5,2)"
        Distribution of the annotators' quality, as in `crowdrank.simulation.respondents`.
    target : str, default "tau 0.9"
        Closeness to the truth to reach: "tau 0.9", "accuracy 0.95", "top 3" or "order".
    probability : float, optional
        Share of collections that must reach the target: by default one half for "tau" and "accuracy", and 0.9 for "top"
        and "order".
    labels : {"logistic", "order"}, default "logistic"
        How answers are simulated: close items are hard to tell apart, or a truthful answer is always right.
    scale : float, default 2.0
        Standard deviation of the true scores.
    policy : BasePolicy, default Adaptive()
        The policy that chooses the questions.
    price : float, default 1.0
        Price of one vote.
    trials : int, default 10
        Number of simulated collections.
    max_votes : int, optional
        Number of votes after which a collection is given up; by default 100 per item.
    seed : int, default 0
        Seed of the simulation.
    processes : int, default 1
        Number of collections simulated in parallel. More than one process can only be started from a program that
        guards its main part (``if __name__ == "__main__":``).
    on_progress : callable, optional
        Called with the number of finished trials and the number of all trials.

    Returns
    -------
    Plan

    Examples
    --------
    >>> found = plan(items=4, annotators=3, quality=0.95, target="tau 0.5", labels="order", trials=2)
    >>> found.n_failed, 1 <= found.votes <= 400
    (0, True)
    """
    _check(trials, price, scale, probability)
    goal = _goal(target, probability)
    max_votes = VOTES_PER_ITEM * items if max_votes is None else max_votes
    policy = Adaptive() if policy is None else policy
    trial = _Trial(items, annotators, quality, labels, scale, policy, goal, max_votes, seed)
    found: list[Trajectory] = []
    for trajectory in run_trials(trial.run, trials, processes):
        found.append(trajectory)
        if on_progress is not None:
            on_progress(len(found), trials)
    return Plan(
        target=target,
        items=items,
        annotators=annotators,
        policy=policy.name,
        price=price,
        probability=goal.probability,
        max_votes=max_votes,
        reached=tuple(trajectory.reached(goal.threshold) for trajectory in found),
        curve=_curve(found),
    )


class _Trial(NamedTuple):
    """The collection that is planned, simulated once per trial."""

    items: int
    annotators: int
    quality: str | float
    labels: Literal["order", "logistic"]
    scale: float
    policy: BasePolicy
    goal: Goal
    max_votes: int
    seed: int

    def run(self, trial: int) -> Trajectory:
        """Simulate one collection until the target is reached for good, out of reach, or nothing is left to ask."""
        from threadpoolctl import threadpool_limits

        crowd_seed = int(np.random.default_rng([self.seed, trial]).integers(2**31))
        crowd = respondents(self.items, self.annotators, self.quality, self.labels, self.scale, seed=crowd_seed)
        refit_every = min(max(self.items // 4, 1), _MAX_REFIT_EVERY)
        model = ThrottledMCMC(refit_every=refit_every, warmup=50, draws=100, seed=crowd_seed)
        collection, trajectory = SimulatedCollection(policy=self.policy, model=model), Trajectory([], [])
        start, rng = model.start(crowd.items, crowd.annotators), np.random.default_rng([self.seed, trial, 1])
        with threadpool_limits(1):
            for votes, beliefs, _ in collection.run(crowd, start, self.max_votes, rng):
                if cast(Posterior, beliefs).n_pending and votes < self.max_votes:
                    continue
                trajectory.votes.append(votes)
                trajectory.closeness.append(self.goal.closeness(beliefs.mean, crowd.truth))
                if trajectory.is_over(self.goal.threshold, self.max_votes):
                    break
        return trajectory


class Trajectory(NamedTuple):
    """Closeness of the leaderboard to the truth in one trial, evaluated as votes grew."""

    votes: list[int]
    closeness: list[float]

    def reached(self, threshold: float) -> float:
        """Return the votes at which the threshold was crossed for the last time, interpolated between evaluations."""
        below = np.flatnonzero(np.array(self.closeness) < threshold)
        if not len(below):
            return float(self.votes[0]) if self.votes else float("inf")
        last = int(below[-1])
        if last == len(self.votes) - 1:
            return float("inf")
        part = (threshold - self.closeness[last]) / (self.closeness[last + 1] - self.closeness[last])
        return float(self.votes[last] * (self.votes[last + 1] / self.votes[last]) ** part)

    def is_over(self, threshold: float, max_votes: int) -> bool:
        """Return whether the target is reached for good, or out of reach."""
        now, since = self.votes[-1], self.reached(threshold)
        if now >= _HOLD_FACTOR * since and np.sum(np.array(self.votes) >= since) >= _HOLD_LOOKS:
            return True
        return (1 - self.closeness[-1]) * now / max_votes > _GIVE_UP_FACTOR * (1 - threshold)


@dataclass(frozen=True, kw_only=True)
class ThrottledMCMC(SequentialMCMC):
    """SequentialMCMC that runs its chain less often as votes grow."""

    def apply(self, beliefs: Beliefs, items: Vocabulary, annotators: Vocabulary, answers: Answers) -> Posterior:
        refit_every = max(self.refit_every, beliefs.n_judgments // _REFIT_SHARE)
        return SequentialMCMC.apply(replace(self, refit_every=refit_every), beliefs, items, annotators, answers)


def _curve(trajectories: list[Trajectory]) -> tuple[CurvePoint, ...]:
    """Average the trajectories on a geometric grid of votes, up to the end of the longest."""
    first = max(trajectory.votes[0] for trajectory in trajectories)
    last = max(trajectory.votes[-1] for trajectory in trajectories)
    votes = np.unique(np.geomspace(first, last, 2 + int(np.log(last / first) / np.log(_GRID_RATIO))).round())
    points = []
    for count in votes:
        # linear in log votes between evaluations; constant beyond the last
        values = [np.interp(np.log(count), np.log(one.votes), one.closeness) for one in trajectories]
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        points.append(CurvePoint(int(count), float(np.mean(values)), float(error)))
    return tuple(points)


def _goal(target: str, probability: float | None) -> Goal:
    wanted = decision(target)
    if isinstance(wanted, Kendall):
        return Goal(kendall_correlation, wanted.share, probability or 0.5)
    if isinstance(wanted, Accuracy):
        return Goal(accuracy, wanted.share, probability or 0.5)
    if isinstance(wanted, Top):  # the overlap must be complete; the threshold leaves room for rounding
        return Goal(partial(top_k_overlap, k=wanted.k), 1 - 0.5 / wanted.k, probability or 0.9)
    if isinstance(wanted, Order):
        return Goal(accuracy, 1 - 1e-9, probability or 0.9)
    raise SettingError(f'The target of a plan must be "tau 0.9", "accuracy 0.95", "top 3" or "order", got {target!r}.')


def _check(trials: int, price: float, scale: float, probability: float | None) -> None:
    if trials < 1:
        raise SettingError(f"trials must be at least 1, got {trials}.")
    if not 0 < scale < np.inf:
        raise SettingError(f"scale must be above zero, or there is no order to find, got {scale!r}.")
    if not 0 <= price < np.inf:
        raise SettingError(f"price must be zero or more, got {price!r}.")
    if probability is not None and not 0 < probability < 1:
        raise SettingError(f"probability must lie between 0 and 1, got {probability!r}.")
