"""Thurstonian pairwise preferences (Wang et al. 2016) as a whole posterior: annotators know some domains of queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.errors import DataError, SettingError
from crowdrank.judgments import Comparisons, Judgments
from crowdrank.models.conclude import check_connected, conclude, health_of, need, with_annotators
from crowdrank.models.tpp_sampling import Sampler, State
from crowdrank.results import Convergence, Ranking, Uncertainty
from crowdrank.solvers.chains import Samples, sample

Vector = npt.NDArray[np.float64]

_MET = 1.1
_THIN = 5


@dataclass(frozen=True, kw_only=True)
class TPP:
    """Thurstone's noise twice, in what an annotator sees and in what they say; whom to believe depends on the query.

    Queries belong to domains, which are learnt; scores are posterior means. The unit of scores is what an annotator's
    sight errs by in a query of middling difficulty. Ties are left out.
    """

    reads: ClassVar[type] = Comparisons
    weighs_annotators: ClassVar[bool] = True
    samples: ClassVar[bool] = True

    domains: int = 10
    """At most so many; those that are not needed stay empty."""
    chains: int = 4
    """Walks through the posterior, from different starts; they must meet."""
    draws: int = 250
    """Kept of each chain, one in five."""
    warmup: int = 500
    """Sweeps forgotten at the start of each chain."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.domains < 1:
            raise SettingError(f"domains must be at least 1, got {self.domains}.")
        if self.chains < 2 or self.draws < 10 or self.warmup < 0:
            raise SettingError("chains must be at least 2, draws at least 10 and warmup not negative.")

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        comparisons = need(Comparisons, judgments, self)
        decided = comparisons.take(np.flatnonzero(comparisons.outcome))
        check_connected(health_of(decided if len(decided) else comparisons), has_prior=True)
        sampler = self.sampler(comparisons)
        samples = sample(
            sampler.init, sampler.walk, lambda state: _read(sampler, state), chains=self.chains, warmup=self.warmup,
            draws=self.draws, thin=_THIN, seed=self.seed,
        )  # fmt: skip
        return self._conclude(comparisons, samples)

    def sampler(self, comparisons: Comparisons) -> Sampler:
        from crowdrank.likelihoods.thurstonian import sights_of

        rows = _repeated(comparisons)
        won = comparisons.outcome[rows] > 0
        left, right = comparisons.left[rows], comparisons.right[rows]
        who = np.zeros(len(rows), np.int32) if comparisons.annotator is None else comparisons.annotator[rows]
        sights = sights_of(np.where(won, left, right), np.where(won, right, left), who, comparisons.items.starts)
        domains = min(self.domains, len(comparisons.items.queries))
        return Sampler(sights, comparisons.items, max(1, len(comparisons.annotators)), domains)

    def _conclude(self, comparisons: Comparisons, samples: Samples) -> Ranking:
        count = len(comparisons.items)
        scores, quality = samples.together[:, :count], samples.together[:, count:-1]
        steps = self.warmup + _THIN * self.draws
        unit = "of R̂ above 1, so the chains have not met"
        convergence = Convergence(samples.r_hat < _MET, steps, samples.r_hat - 1.0, unit, "raise draws and warmup")
        method = f"{len(scores):,} draws from the posterior, of scores, annotators and domains together"
        parameters = {
            "prior_scale": float(np.exp(samples.together[:, -1].mean())),
            "r_hat": samples.r_hat, "effective_size": samples.effective_size, "accepted": samples.accepted,
        }  # fmt: skip
        ranking = conclude(
            self, comparisons, scores.mean(axis=0), parameters=parameters, convergence=convergence,
            measure=lambda: Uncertainty(scores, scores.std(axis=0), method, sampled=True),
        )  # fmt: skip
        return with_annotators(ranking, comparisons, lambda: {"quality": _interval(quality)})


def _read(sampler: Sampler, state: State) -> Vector:
    upright = sampler.upright(state)
    scores = sampler.items.centre(upright.scores)
    return np.concatenate((scores, sampler.quality(upright), 0.5 * np.log(upright.scale)))


def _interval(draws: Vector) -> tuple[Vector, Vector, Vector]:
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    return draws.mean(axis=0), low, high


def _repeated(comparisons: Comparisons) -> npt.NDArray[np.int64]:
    """The rows that were decided, each as often as its weight says."""
    times = np.where(comparisons.outcome == 0, 0, comparisons.weights)
    broken = np.flatnonzero(times != np.round(times))
    if len(broken):
        row = int(broken[0])
        raise DataError(
            f"Row {row + 1}: TPP counts whole judgments, got a weight of {times[row]}: round weights, or drop them."
        )
    return np.repeat(np.arange(len(comparisons)), times.astype(np.int64))
