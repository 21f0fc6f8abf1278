"""Compare policies by simulation: all ask the same crowds, and their beliefs are compared with the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from crowdrank.active.collection import SimulatedCollection, run_trials
from crowdrank.active.planning import ThrottledMCMC
from crowdrank.active.policies import BasePolicy
from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import SettingError
from crowdrank.evaluation import accuracy
from crowdrank.online import Beliefs, CrowdBT, OnlineModel, Posterior
from crowdrank.simulation.crowd import Respondents, respondents

Progress = Callable[[int, int], None]
"""Called with the number of finished collections and the number of all collections."""

BASELINE = "random"
"""The policy that others are compared with, if it is among them."""
_N_CHECKPOINTS = 20
_CLEAR_Z = 2.0
"""Standard errors from which on a difference counts as clear."""
_FEW_TRIALS = 5
"""Number of trials below which a standard error is itself uncertain."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PolicyComparison:
    """Accuracy of each policy as votes grew.

    Parameters
    ----------
    items, annotators : int
        Size of the simulated collections.
    beliefs : {"mcmc", "online"}
        Which beliefs the policies used.
    votes : tuple of int
        Numbers of votes at which accuracy was measured, evenly spaced up to the budget.
    accuracy : mapping of str to array of shape (trials, len(votes))
        Share of pairs in the right order, by policy.
    """

    items: int
    annotators: int
    beliefs: str
    votes: tuple[int, ...]
    accuracy: Mapping[str, FloatArray]

    @property
    def trials(self) -> int:
        """Number of simulated crowds."""
        return len(next(iter(self.accuracy.values())))

    def frame(self) -> pl.DataFrame:
        """Return one row per policy and number of votes: accuracy, and its difference from that of random."""
        rows = [
            (name, votes, *self._statistics(name, slice(n, n + 1)))
            for name in self.accuracy
            for n, votes in enumerate(self.votes)
        ]
        return _table(rows, {"policy": pl.String, "votes": pl.Int64, "accuracy": pl.Float64})

    def areas(self) -> pl.DataFrame:
        """Return one row per policy: the area under its curve, which is its accuracy averaged over the votes."""
        rows = [(name, *self._statistics(name, slice(None))) for name in self.accuracy]
        return _table(rows, {"policy": pl.String, "area": pl.Float64})

    def _statistics(self, name: str, checkpoints: slice) -> tuple[float | None, ...]:
        """Mean and standard error over the trials, of accuracy and of its difference from random.

        The difference is paired, because all policies asked the same crowds.
        """
        values = self.accuracy[name][:, checkpoints].mean(axis=1)
        if BASELINE not in self.accuracy or name == BASELINE:
            return *_mean(values), None, None
        return *_mean(values), *_mean(values - self.accuracy[BASELINE][:, checkpoints].mean(axis=1))

    @property
    def best(self) -> str:
        """The policy with the largest area."""
        return str(self.areas().sort("area", descending=True, maintain_order=True)["policy"][0])

    def lines(self) -> list[str]:
        """Describe the result in sentences."""
        collections = "one collection" if self.trials == 1 else f"{self.trials} collections"
        beliefs = "MCMC" if self.beliefs == "mcmc" else "online updates"
        return [
            f"{self.items:,} items, {self.annotators:,} annotators, {self.votes[-1]:,} votes; {collections} per "
            f"policy, beliefs by {beliefs}.",
            self._verdict(),
        ]

    def _verdict(self) -> str:
        row = self.areas().row(by_predicate=pl.col("policy") == self.best, named=True)
        if len(self.accuracy) == 1:
            return f"Add a second policy to compare {self.best} with."
        if self.best == BASELINE:
            return "No policy did better than random."
        if row["difference"] is None:
            return f"{self.best} had the largest area. Add random to see how much choosing questions helps."
        lead, error = row["difference"], row["difference_std_error"]
        if error is None:
            return f"{self.best} had the largest area, {lead:.3f} above random, but one trial says little: run more."
        sentence = f"{self.best} had the largest area; its lead over random, {lead:.3f} ± {error:.3f}, is"
        if lead > _CLEAR_Z * error:
            few = "" if self.trials >= _FEW_TRIALS else f", but {self.trials} trials are few"
            return f"{sentence} more than two standard errors{few}."
        return f"{sentence} not more than two standard errors: run more trials."


def compare_policies(
    policies: Mapping[str, BasePolicy],
    *,
    items: int = 100,
    annotators: int = 100,
    quality: str | float = "beta(2,1)",
    labels: Literal["order", "logistic"] = "order",
    scale: float = 2.0,
    budget: int = 1000,
    trials: int = 5,
    beliefs: Literal["mcmc", "online"] = "mcmc",
    seed: int = 0,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> PolicyComparison:
    """Let each policy spend the same budget on the same simulated crowds.

    Parameters
    ----------
    policies : mapping of str to BasePolicy
        The policies, by name. Include ``"random"`` as a baseline.
    items, annotators : int, default 100
        Size of each collection.
    quality, labels, scale
        How the crowd answers, as in `crowdrank.simulation.respondents`.
    budget : int, default 1000
        Number of votes per collection.
    trials : int, default 5
        Number of crowds.
    beliefs : {"mcmc", "online"}, default "mcmc"
        Whether policies use the sampled posterior or online Crowd-BT.
    seed : int, default 0
        Seed of the simulation.
    processes : int, default 1
        Number of collections simulated in parallel. More than one process can only be started from a program that
        guards its main part (``if __name__ == "__main__":``).
    on_progress : callable, optional
        Called with the number of finished collections and the number of all collections.

    Returns
    -------
    PolicyComparison

    Examples
    --------
    >>> from crowdrank.active import Coverage, Random
    >>> policies = {"coverage": Coverage(), "random": Random()}
    >>> found = compare_policies(policies, items=5, annotators=3, budget=20, trials=2, beliefs="online")
    >>> found.areas().height, found.votes[-1]
    (2, 20)
    """
    experiment = _Experiment(tuple(policies.values()), items, annotators, quality, labels, scale, budget, beliefs, seed)
    experiment.check(trials)
    found: list[list[float]] = []
    for accuracies in run_trials(experiment.run, trials * len(policies), processes):
        found.append(accuracies)
        if on_progress is not None:
            on_progress(len(found), trials * len(policies))
    curves = np.array(found).reshape(trials, len(policies), -1)
    return PolicyComparison(
        items=items,
        annotators=annotators,
        beliefs=beliefs,
        votes=tuple(experiment.checkpoints.tolist()),
        accuracy={name: curves[:, n] for n, name in enumerate(policies)},
    )


class _Experiment(NamedTuple):
    """The settings of a comparison, run once per trial and policy."""

    policies: tuple[BasePolicy, ...]
    items: int
    annotators: int
    quality: str | float
    labels: Literal["order", "logistic"]
    scale: float
    budget: int
    beliefs: Literal["mcmc", "online"]
    seed: int

    def check(self, trials: int) -> None:
        if not self.policies:
            raise SettingError("Name at least one policy to compare, preferably two.")
        if trials < 1:
            raise SettingError(f"trials must be at least 1, got {trials}.")
        if self.beliefs not in ("mcmc", "online"):
            raise SettingError(f"beliefs must be 'mcmc' or 'online', got {self.beliefs!r}.")
        if not self.scale:
            raise SettingError("scale must be above zero: items that are all equal have no order to find.")
        if self.seed < 0:
            raise SettingError(f"seed must be zero or more, got {self.seed}.")
        self.crowd(0)  # checks the settings of the crowd
        n_triplets = self.annotators * self.items * (self.items - 1) // 2
        if not 1 <= self.budget <= n_triplets:
            raise SettingError(
                f"budget must be at least 1 and at most {n_triplets:,}, the number of possible questions, got "
                f"{self.budget}."
            )

    @property
    def checkpoints(self) -> IntArray:
        count = min(_N_CHECKPOINTS, self.budget)
        return -(-self.budget * np.arange(1, count + 1, dtype=np.int64) // count)  # rounded up

    def crowd(self, trial: int) -> Respondents:
        crowd_seed = int(np.random.default_rng([self.seed, trial]).integers(2**31))
        return respondents(self.items, self.annotators, self.quality, self.labels, self.scale, seed=crowd_seed)

    def run(self, number: int) -> list[float]:
        """Simulate one collection and return its accuracies; all policies of a trial ask the same crowd."""
        from threadpoolctl import threadpool_limits

        trial, place = divmod(number, len(self.policies))
        crowd, rng = self.crowd(trial), np.random.default_rng([self.seed, trial, 1])
        model = self._model(trial)
        collection, found = SimulatedCollection(policy=self.policies[place], model=model), []
        checkpoints = set(self.checkpoints.tolist())
        with threadpool_limits(1):
            start = model.start(crowd.items, crowd.annotators)
            for votes, beliefs, _ in collection.run(crowd, start, self.budget, rng):
                if votes in checkpoints:
                    found.append(accuracy(_up_to_date(model, beliefs).mean, crowd.truth))
        return found

    def _model(self, trial: int) -> OnlineModel:
        return CrowdBT() if self.beliefs == "online" else ThrottledMCMC(warmup=50, draws=100, seed=trial)


def _up_to_date(model: OnlineModel, beliefs: Beliefs) -> Beliefs:
    """Return beliefs that include every vote; those that the policy uses are not changed."""
    if isinstance(model, ThrottledMCMC) and isinstance(beliefs, Posterior) and beliefs.n_pending:
        return model.resample(beliefs, times=1)
    return beliefs


def _mean(values: FloatArray) -> tuple[float, float | None]:
    """Mean and standard error; None for a single trial."""
    count = len(values)
    return float(values.mean()), float(np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else None


def _table(rows: Sequence[tuple[object, ...]], columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    errors = dict.fromkeys(("std_error", "difference", "difference_std_error"), pl.Float64)
    return pl.DataFrame(rows, schema={**columns, **errors}, orient="row")
