"""Thurstonian ranking model (Thurstone 1927; Wang et al. 2016, §II): a list is the order of what someone perceived."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items, Judgments, Rankings
from crowdrank.engines import Engine, here
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.mcmc import Samples, sample
from crowdrank.models.base import BaseModel, check_connected, conclude, health_of, need
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.thurstonian.trm_kernels import State, lists_of
from crowdrank.models.thurstonian.trm_sampler import Sampler
from crowdrank.results import Convergence, Domains, Ranking, Uncertainty

_MET = 1.1
_THIN = 3
_SETTLED = 0.1


@dataclass(frozen=True, kw_only=True)
class TRM(BaseModel):
    """Normal noise on each item of a list, the same for all items of a query: harder queries have more of it.

    The unit of scores is the noise of a query of middling difficulty. Items on one place of a list are not ordered
    among themselves.

    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> TRM().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings
    distributable: ClassVar[bool] = True
    samples: ClassVar[bool] = True

    inference: Literal["posterior", "mcem"] = "posterior"
    """Means of the posterior; or the likeliest scores by Monte Carlo EM, as published, without any prior."""
    chains: int = 4
    """Walks through the posterior, from different starts; they must meet."""
    draws: int = 250
    """Kept of each chain, one in three."""
    warmup: int = 250
    """Sweeps forgotten at the start of each chain."""
    rounds: int = 100
    """Of EM; the scores are means over the last quarter of them."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.inference not in ("posterior", "mcem"):
            raise SettingError(f"inference must be posterior or mcem, got {self.inference!r}.")
        if self.chains < 2 or self.draws < 10 or self.warmup < 0:
            raise SettingError("chains must be at least 2, draws at least 10 and warmup not negative.")
        if self.rounds < 4:
            raise SettingError(f"rounds must be at least 4, got {self.rounds}.")

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        rankings = need(Rankings, judgments, self)
        sampler = self.sampler(rankings)
        check_connected(health_of(rankings), has_prior=True)
        if self.inference == "mcem":
            return self._climb(rankings, sampler)
        return self._sample(rankings, sampler, engine)

    def sampler(self, rankings: Rankings) -> Sampler:
        """Of the lists that order something, each as often as its weight says."""
        if not np.any(rankings.place):
            raise DataError("These lists order no two items: nothing can be ranked.")
        told = rankings.take(_repeated(rankings))
        return Sampler(lists_of(told.item, told.place, told.offsets, told.items.starts), rankings.items)

    def _sample(self, rankings: Rankings, sampler: Sampler, engine: Engine) -> Ranking:
        samples = sample(
            sampler.init,
            sampler.walk,
            partial(_read, sampler),
            chains=self.chains,
            warmup=self.warmup,
            draws=self.draws,
            thin=_THIN,
            seed=self.seed,
            engine=engine,
        )
        scores = samples.together[:, : len(rankings.items)]
        steps = self.warmup + _THIN * self.draws
        unit = "of R̂ above 1, so the chains have not met"
        convergence = Convergence(samples.r_hat < _MET, steps, samples.r_hat - 1.0, unit, "raise draws and warmup")
        method = f"{len(scores):,} draws from the posterior, of scores and difficulties together"
        parameters = {
            "prior_scale": float(np.exp(samples.together[:, -1].mean())),
            "r_hat": samples.r_hat,
            "effective_size": samples.effective_size,
        }
        ranking = conclude(
            self,
            rankings,
            scores.mean(axis=0),
            parameters=parameters,
            convergence=convergence,
            measure=lambda: Uncertainty(scores, scores.std(axis=0), method, sampled=True),
        )
        if len(rankings.items.queries) == 1:  # of one query the difficulty is the unit
            return ranking
        return ranking.with_parts(domains=lambda: _chart(samples, rankings.items))

    def _climb(self, rankings: Rankings, sampler: Sampler) -> Ranking:
        scores, moved = climbed(sampler, self.rounds, self.seed)
        unit = "of the noise from where it was a quarter of the rounds before"
        return conclude(
            self,
            rankings,
            scores,
            convergence=Convergence(moved < _SETTLED, self.rounds, moved, unit, "raise rounds"),
            measure=lambda: bootstrap(rankings, self._climb_again, seed=self.seed),
        )

    def _climb_again(self, rankings: Rankings) -> FloatArray:
        if not np.any(rankings.place):  # a resample of few lists may order nothing
            return np.zeros(len(rankings.items))
        return climbed(self.sampler(rankings), self.rounds, self.seed)[0]


def difficulty_of(samples: Samples, items: Items) -> tuple[FloatArray, FloatArray, FloatArray]:
    """δ² of each query, one on average: its mean over the posterior, and the ends of its 90 % interval."""
    draws = np.exp(samples.together[:, len(items) : -1])
    low, high = np.quantile(draws, (0.05, 0.95), axis=0)
    return draws.mean(axis=0), low, high


def _chart(samples: Samples, items: Items) -> Domains:
    """How hard queries are; all of one domain, and nothing of annotators."""
    nobody = np.zeros((0, 1))
    return Domains(
        annotators=np.array([], object),
        queries=items.queries,
        expertise=(nobody, nobody, nobody),
        membership=np.ones((len(items.queries), 1)),
        difficulty=difficulty_of(samples, items),
        n_judgments=np.zeros((0, 1), np.int64),
    )


def climbed(sampler: Sampler, rounds: int, seed: int) -> tuple[FloatArray, float]:
    """Scores by EM, averaged over the last quarter of the rounds, and how far the worst has come since the third."""
    rng, quarter = np.random.default_rng(seed), rounds // 4
    state = sampler.init(rng)
    then, now, scores = np.zeros((3, len(sampler.items)))
    for left in range(rounds, 0, -1):
        state = sampler.climb(rng, state)
        if left <= quarter:
            now += sampler.items.centre(state.scores) / quarter
            scores += sampler.published(state)[0] / quarter
        elif left <= 2 * quarter:
            then += sampler.items.centre(state.scores) / quarter
    return scores, float(np.max(np.abs(now - then)))


def _read(sampler: Sampler, state: State) -> FloatArray:
    scores, difficulty = sampler.published(state)
    scale = state.scale * difficulty[0] / state.difficulty[0]
    return np.concatenate((scores, np.log(difficulty), 0.5 * np.log(scale)))


def _repeated(rankings: Rankings) -> IntArray:
    """The lists that order something, each as often as its weight says."""
    times = np.where(rankings.place[rankings.offsets[1:] - 1] > 0, rankings.weights, 0.0)
    broken = np.flatnonzero(times != np.round(times))
    if len(broken):
        raise DataError(
            f"List {broken[0] + 1}: TRM counts whole lists, got a weight of {times[broken[0]]}: round weights, or drop "
            f"them."
        )
    return np.repeat(np.arange(len(rankings)), times.astype(np.int64))
