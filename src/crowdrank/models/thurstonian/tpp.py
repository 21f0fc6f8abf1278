"""Thurstonian pairwise preferences (Wang et al. 2016): whom to believe depends on what the query is about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.engines import LOCAL, Engine
from crowdrank.errors import SettingError
from crowdrank.inference.mcmc import Samples, effective_size, r_hat, sample_until
from crowdrank.models.base import FitOptions, Model, build_ranking, check_connected, diagnose, require_kind
from crowdrank.models.thurstonian.postprocess import LEVEL, Reading, given_in, interval, read, with_domains
from crowdrank.models.thurstonian.transfer import Known, known_of
from crowdrank.results import Convergence, Ranking, Uncertainty

_OF_SCORES = 0.95
# Sweeps of the first walk, and how many times a judgment may be looked at in it: few sweeps where judgments are many.
_FIRST, _AT_LEAST, _LOOKS = 400, 100, 4_000_000
# R̂ to reach where chains run that many sweeps at first, and where they run fewer.
_R_HAT, _R_HAT_OF_MANY = 1.05, 1.2
_ANYONE = 1.0


@dataclass(frozen=True, kw_only=True)
class TPP(Model):
    """Thurstone's noise twice, in what an annotator sees and in what they say; queries have domains and difficulties.

    Annotators have an expertise in every domain, below zero where they answer the wrong way round. Scores are posterior
    means in units of their spread. Ties are left out.
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    samples: ClassVar[bool] = True
    drops_ties: ClassVar[bool] = True

    domains: int | Literal["auto"] = "auto"
    """How many there are, at most one a query; "auto" lets the judgments decide."""
    inference: Literal["posterior", "mcem"] = "posterior"
    """The whole posterior, or the published Monte Carlo EM."""
    expertise: Literal["each", "shared"] = "each"
    """With mcem: an expertise for each annotator, or one for all (TPPUNIEXP)."""
    difficulty: Literal["each", "shared"] = "each"
    """With mcem: a difficulty for each query, or one for all (TPPUNIDIFF)."""
    chains: int = 2
    """Walks through the posterior; they must meet."""
    draws: int = 250
    """Kept of each chain, at most."""
    r_hat: float | Literal["auto"] = "auto"
    """The chains have converged when R̂ of 95 % of the scores is below this; "auto" is 1.05, or 1.2 beyond 10,000
    judgments, where 1.05 would take several times as long."""
    max_sweeps: int = 3000
    """Chains that have not met by then are warned of."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.domains != "auto" and (isinstance(self.domains, str) or self.domains < 1):
            raise SettingError(f'domains must be at least 1, or "auto", got {self.domains!r}.')
        if self.inference not in ("posterior", "mcem"):
            raise SettingError(f"inference must be posterior or mcem, got {self.inference!r}.")
        for name, value in (("expertise", self.expertise), ("difficulty", self.difficulty)):
            if value not in ("each", "shared"):
                raise SettingError(f"{name} must be each or shared, got {value!r}.")
            if value == "shared" and self.inference != "mcem":
                raise SettingError(f'{name}="shared" is a variant of the published method: set inference="mcem".')
        if self.chains < 2 or self.draws < 10 or self.max_sweeps < 10:
            raise SettingError("chains must be at least 2, draws and max_sweeps at least 10.")
        if self.r_hat != "auto" and (isinstance(self.r_hat, str) or not self.r_hat > 1):
            raise SettingError(f'r_hat must be above 1, or "auto", got {self.r_hat!r}.')

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = self._checked(judgments)
        if self.inference == "mcem":
            from crowdrank.models.thurstonian.mcem import conclude_published

            return conclude_published(self, comparisons)
        return self._sample(comparisons, options.engine)

    def update(self, ranking: Ranking, judgments: Judgments, engine: Engine = LOCAL) -> Ranking:
        """Rank new queries with what a fit has learnt of annotators and domains."""
        return self._sample(self._checked(judgments), engine, known_of(ranking))

    def _checked(self, judgments: Judgments) -> Comparisons:
        comparisons = require_kind(Comparisons, judgments, self)
        decided = comparisons.take(np.flatnonzero(comparisons.outcome))
        check_connected(diagnose(decided if len(decided) else comparisons), has_prior=True)
        return comparisons

    def _sample(self, comparisons: Comparisons, engine: Engine, known: Known | None = None) -> Ranking:
        from crowdrank.models.thurstonian.sampler import Sampler

        count = None if self.domains == "auto" else self.domains
        sampler = Sampler.of(comparisons, count, self.seed, known)
        size = len(comparisons.items)
        samples, taken = sample_until(
            sampler.init,
            sampler.tune,
            sampler.walk,
            partial(read, sampler),
            chains=self.chains,
            first=_first(len(sampler.sights.winner)),
            most=self.max_sweeps,
            draws=self.draws,
            seed=self.seed,
            settled=lambda found: _apart(found, size) < self._target(len(sampler.sights.winner)),
            engine=engine,
        )
        reading = Reading.of(samples.together, comparisons.items, *sampler.start.expertise.shape)
        given = given_in(sampler.sights, len(sampler.start.expertise))
        return self._conclude(comparisons, reading, samples, taken, given)

    def _target(self, judgments: int) -> float:
        """R̂ below which the chains have converged."""
        if self.r_hat != "auto":
            return self.r_hat
        return _R_HAT if judgments * _FIRST <= _LOOKS else _R_HAT_OF_MANY

    def _conclude(
        self, comparisons: Comparisons, reading: Reading, samples: Samples, taken: int, given: IntArray
    ) -> Ranking:
        scores = reading.scores
        apart = _apart(samples, scores.shape[1])
        unit = "of R̂ above 1, so the chains have not met"
        convergence = Convergence(apart < self._target(int(given.sum())), taken, apart - 1.0, unit, "raise max_sweeps")
        method = f"{len(scores):,} draws from the posterior, of scores, annotators and domains together"
        parameters = {
            "domains": float(reading.expertise.shape[2]),
            "spread": float(reading.spread.mean()),
            "r_hat": apart,
            "effective_size": _worth(samples, scores.shape[1]),
            "accepted": samples.accepted,
        }
        ranking = build_ranking(
            self,
            comparisons,
            scores.mean(axis=0),
            parameters=parameters,
            convergence=convergence,
            measure=lambda: Uncertainty(scores, scores.std(axis=0), method, sampled=True),
        )
        return with_domains(
            ranking,
            comparisons,
            interval(reading.expertise, LEVEL),
            interval(reading.difficulty, LEVEL),
            reading.membership,
            given,
            interval(reading.quality(given), 0.95),
        )

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns, over the posterior of scores and domains."""
        from scipy.special import ndtr

        domains, query = ranking.domains, comparisons.items.query[comparisons.left]
        who = np.zeros(len(comparisons), np.int64) if comparisons.annotator is None else comparisons.annotator
        table = domains.expertise[0] if len(domains.annotators) else np.full((1, len(domains)), _ANYONE)
        tau, blur = table[who], domains.difficulty[0][query, None]
        slope = ranking.parameters["spread"] * tau / np.sqrt(2.0 * (1.0 + tau**2 * blur))
        draws = ranking.scores[None] if self.inference == "mcem" else ranking.uncertainty.draws
        chance = np.zeros(len(comparisons))
        for scores in draws:
            apart = scores[comparisons.left] - scores[comparisons.right]
            chance += np.sum(domains.membership[query] * ndtr(slope * apart[:, None]), axis=1) / len(draws)
        return np.stack((chance, np.zeros(len(chance)), 1 - chance), axis=1)


def _first(judgments: int) -> int:
    return int(np.clip(_LOOKS // max(1, judgments), _AT_LEAST, _FIRST))


def _worth(samples: Samples, size: int) -> float:
    """Independent draws that all but one score in twenty are worth."""
    found = effective_size(samples.draws[..., :size])
    count = float(samples.draws.shape[0] * samples.draws.shape[1])
    return count if np.all(np.isnan(found)) else float(np.nanquantile(found, 1.0 - _OF_SCORES))


def _apart(samples: Samples, size: int) -> float:
    """R̂ that all but one score in twenty keep below."""
    found = r_hat(samples.draws[..., :size])
    return 1.0 if np.all(np.isnan(found)) else float(np.nanquantile(found, _OF_SCORES))
