"""Which policy asks best: each asks the same crowds, and what is believed on the way is compared with the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from crowdrank.active.collection import Collection, play_all
from crowdrank.active.planning import Patient
from crowdrank.active.policies import Chooser
from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import SettingError
from crowdrank.evaluation import accuracy
from crowdrank.online import Beliefs, CrowdBT, OnlineModel, Posterior
from crowdrank.simulation.crowd import Respondents, respondents

Progress = Callable[[int, int], None]
"""Told how many collections are done, and of how many."""

BASELINE = "random"
"""The policy that others are compared with, where it is among them."""
_LOOKS = 20
_CLEAR = 2.0
"""Standard errors from which a lead is told."""
_FEW = 5
"""Trials below which a standard error is itself a guess."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """How close each policy came to the truth, as votes grew."""

    items: int
    annotators: int
    beliefs: str
    votes: tuple[int, ...]
    """After how many votes it was looked at, evenly spaced; the last is the budget."""
    accuracy: Mapping[str, FloatArray]
    """Of each policy: the share of pairs in the right order, a row a trial and a column for each number of votes."""

    @property
    def trials(self) -> int:
        return len(next(iter(self.accuracy.values())))

    def frame(self) -> pl.DataFrame:
        """A row for each policy and number of votes: accuracy, and its difference from random's, trial by trial."""
        rows = [
            (name, votes, *self._measured(name, slice(n, n + 1)))
            for name in self.accuracy
            for n, votes in enumerate(self.votes)
        ]
        return _table(rows, policy=pl.String, votes=pl.Int64, accuracy=pl.Float64)

    def areas(self) -> pl.DataFrame:
        """A row for each policy: the area under its curve for each vote, which is its accuracy averaged on the way."""
        rows = [(name, *self._measured(name, slice(None))) for name in self.accuracy]
        return _table(rows, policy=pl.String, area=pl.Float64)

    def _measured(self, name: str, looks: slice) -> tuple[float | None, ...]:
        """Over the trials; the difference from random is paired, because both asked the same crowds."""
        ours = self.accuracy[name][:, looks].mean(axis=1)
        if BASELINE not in self.accuracy or name == BASELINE:
            return *_mean(ours), None, None
        return *_mean(ours), *_mean(ours - self.accuracy[BASELINE][:, looks].mean(axis=1))

    @property
    def best(self) -> str:
        """The policy with the largest area."""
        return str(self.areas().sort("area", descending=True, maintain_order=True)["policy"][0])

    def lines(self) -> list[str]:
        """In plain words."""
        collections = "one collection" if self.trials == 1 else f"{self.trials} collections"
        steered = "refits" if self.beliefs == "refits" else "online beliefs"
        return [
            f"{self.items:,} items, {self.annotators:,} annotators, {self.votes[-1]:,} votes; {collections} a policy, "
            f"steered by {steered}.",
            self._verdict(),
        ]

    def _verdict(self) -> str:
        row = self.areas().row(by_predicate=pl.col("policy") == self.best, named=True)
        if len(self.accuracy) == 1:
            return f"Name a second policy to compare {self.best} with."
        if self.best == BASELINE:
            return "None did better than random."
        if row["difference"] is None:
            return f"{self.best} had the largest area; name random as well, to see what choosing is worth."
        lead, error = row["difference"], row["difference_std_error"]
        if error is None:
            return f"{self.best} had the largest area, {lead:.3f} above random's, but one trial says little: take more."
        said = f"{self.best} had the largest area; its lead over random, {lead:.3f} ± {error:.3f}, is"
        if lead > _CLEAR * error:
            few = "" if self.trials >= _FEW else f", but {self.trials} trials are few"
            return f"{said} more than two standard errors{few}."
        return f"{said} not more than two standard errors: take more trials."


def compare_policies(
    policies: Mapping[str, Chooser],
    *,
    items: int = 100,
    annotators: int = 100,
    quality: str | float = "beta(2,1)",
    labels: Literal["order", "logistic"] = "order",
    scale: float = 2.0,
    budget: int = 1000,
    trials: int = 5,
    beliefs: Literal["refits", "online"] = "refits",
    seed: int = 0,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> Curves:
    """Lets each policy spend the budget on the same crowds, drawn as `simulated.respondents` draws them.

    More than one process can only be started from a program that guards its main part.
    """
    contest = Contest(tuple(policies.values()), items, annotators, quality, labels, scale, budget, beliefs, seed)
    contest.check(trials)
    found: list[list[float]] = []
    for course in play_all(contest.play, trials * len(policies), processes):
        found.append(course)
        if on_progress is not None:
            on_progress(len(found), trials * len(policies))
    courses = np.array(found).reshape(trials, len(policies), -1)
    return Curves(
        items=items,
        annotators=annotators,
        beliefs=beliefs,
        votes=tuple(contest.looks.tolist()),
        accuracy={name: courses[:, n] for n, name in enumerate(policies)},
    )


class Contest(NamedTuple):
    """What is compared, for one collection after another."""

    policies: tuple[Chooser, ...]
    items: int
    annotators: int
    quality: str | float
    labels: Literal["order", "logistic"]
    scale: float
    budget: int
    beliefs: Literal["refits", "online"]
    seed: int

    def check(self, trials: int) -> None:
        if not self.policies:
            raise SettingError("Name a policy at least, better two: there is nothing to compare.")
        if trials < 1:
            raise SettingError(f"trials must be at least 1, got {trials}.")
        if self.beliefs not in ("refits", "online"):
            raise SettingError(f"beliefs must be 'refits' or 'online', got {self.beliefs!r}.")
        if not self.scale:
            raise SettingError("scale must be above zero: items that are all equal have no order to find.")
        if self.seed < 0:
            raise SettingError(f"seed must be zero or more, got {self.seed}.")
        self.crowd(0)  # which refuses what crowds cannot be
        most = self.annotators * self.items * (self.items - 1) // 2
        if not 1 <= self.budget <= most:
            raise SettingError(
                f"budget must be at least 1 and at most {most:,}, all there is to ask, got {self.budget}."
            )

    @property
    def looks(self) -> IntArray:
        looks = min(_LOOKS, self.budget)
        return -(-self.budget * np.arange(1, looks + 1, dtype=np.int64) // looks)  # rounded up

    def crowd(self, trial: int) -> Respondents:
        drawn = int(np.random.default_rng([self.seed, trial]).integers(2**31))
        return respondents(self.items, self.annotators, self.quality, self.labels, self.scale, seed=drawn)

    def play(self, number: int) -> list[float]:
        """One collection: the crowd of a trial, asked by one policy after another."""
        from threadpoolctl import threadpool_limits

        trial, place = divmod(number, len(self.policies))
        crowd, rng = self.crowd(trial), np.random.default_rng([self.seed, trial, 1])
        model = self._model(trial)
        collection, found = Collection(policy=self.policies[place], model=model), []
        looks = set(self.looks.tolist())
        with threadpool_limits(1):
            start = model.start(crowd.items, crowd.annotators)
            for votes, beliefs, _ in collection.run(crowd, start, self.budget, rng):
                if votes in looks:
                    found.append(accuracy(_heard(model, beliefs).mean, crowd.truth))
        return found

    def _model(self, trial: int) -> OnlineModel:
        return CrowdBT() if self.beliefs == "online" else Patient(warmup=50, keep=100, seed=trial)


def _heard(model: OnlineModel, beliefs: Beliefs) -> Beliefs:
    """Beliefs that no vote waits to join; those that steer are left as they were."""
    if isinstance(model, Patient) and isinstance(beliefs, Posterior) and beliefs.waiting:
        return model.longer(beliefs, times=1)
    return beliefs


def _mean(values: FloatArray) -> tuple[float, float | None]:
    """With its standard error; of a single trial there is none."""
    count = len(values)
    return float(values.mean()), float(np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else None


def _table(rows: list[tuple[Any, ...]], **columns: Any) -> pl.DataFrame:
    errors = dict.fromkeys(("std_error", "difference", "difference_std_error"), pl.Float64)
    return pl.DataFrame(rows, schema=columns | errors, orient="row")
