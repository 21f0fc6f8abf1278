"""Crowd-BT (Chen et al. 2013) as a whole posterior: what scores and qualities the judgments leave possible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import SettingError
from crowdrank.inference.mcmc import Samples, sample_until
from crowdrank.models.base import (
    FitOptions,
    Model,
    build_ranking,
    check_connected,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.crowd import Priors, Ties, check_ties, climb_from, counted
from crowdrank.models.crowd.crowd_bt import CrowdBT
from crowdrank.models.crowd.encoding import answers_of
from crowdrank.models.crowd.likelihood import PROBIT, RELIABLE
from crowdrank.models.crowd.sampler import Sampler, State, limits_of
from crowdrank.models.pairwise.likelihood import LOGISTIC, outcome_probabilities
from crowdrank.models.pairwise.likelihood import PROBIT as THURSTONE
from crowdrank.results import Convergence, Ranking, Uncertainty

# Sweeps of the first round, for each draw that is kept.
_THIN = 4
# R̂ is computed from at least this many draws of each chain: of few draws, even independent ones, it exceeds 1.05.
_DIAGNOSED = 250


@dataclass(frozen=True, kw_only=True)
class BayesianCrowdBT(Model):
    """Crowd-BT's posterior, sampled: scores are posterior means, intervals hold what they say.

    How far scores are spread and how good annotators are as a crowd is learnt with the rest.
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True
    samples: ClassVar[bool] = True

    prior_scale: float | Literal["learnt"] = "learnt"
    """Standard deviation of the normal prior on scores."""
    quality_prior: tuple[float, float] | Literal["learnt"] = "learnt"
    """Beta prior on η: truths and lies each annotator is credited with beforehand."""
    link: Literal["logistic", "probit"] = "logistic"
    """The noise of a truthful answer: Bradley and Terry's, or Thurstone's."""
    ties: Ties = "drop"
    """A tie says nothing of who tells the truth: left out, or half an answer each way."""
    chains: int = 4
    """Markov chains, from different starts."""
    draws: int = 250
    """Draws kept of each chain, evenly spaced: what intervals and probabilities are computed from."""
    warmup: int = 300
    """Sweeps that tune each chain before each round; they are discarded."""
    r_hat: float = 1.05
    """Sampling stops when R̂ of every score, quality and learnt prior parameter is at most this."""
    max_sweeps: int = 40_000
    """Maximum number of sweeps per chain, warm-up not counted. Chains that have not converged by then are warned of."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_ties(self.ties)
        scale, quality = self.prior_scale, self.quality_prior
        if scale != "learnt" and (isinstance(scale, str) or not 0 < scale < np.inf):
            raise SettingError(f'prior_scale must be positive, or "learnt", got {scale!r}.')
        if quality != "learnt" and (isinstance(quality, str) or len(quality) != 2 or not min(quality) > 0):
            raise SettingError(f'quality_prior must be two positive numbers, or "learnt", got {quality!r}.')
        if self.link not in ("logistic", "probit"):
            raise SettingError(f"link must be logistic or probit, got {self.link!r}.")
        if self.chains < 2 or self.draws < 10 or self.warmup < 0:
            raise SettingError("chains must be at least 2, draws at least 10 and warmup not negative.")
        if not self.r_hat > 1:
            raise SettingError(f"r_hat must be above 1, got {self.r_hat}.")
        if self.max_sweeps < 10:
            raise SettingError(f"max_sweeps must be at least 10, got {self.max_sweeps}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        check_connected(diagnose(counted(comparisons, self.ties)), has_prior=True)
        sampler = self.sampler(comparisons, options)
        samples, sweeps = sample_until(
            sampler.init,
            partial(sampler.tune, steps=self.warmup),
            sampler.walk,
            _read,
            converged=lambda found: Draws.of(found, comparisons, sampler).samples.r_hat <= self.r_hat,
            chains=self.chains,
            initial_sweeps=_THIN * self.draws,
            max_sweeps=self.max_sweeps,
            draws=max(self.draws, _DIAGNOSED),
            seed=self.seed,
            engine=options.engine,
        )
        return self._conclude(comparisons, Draws.of(samples, comparisons, sampler), sweeps)

    def sampler(self, comparisons: Comparisons, options: FitOptions | None = None) -> Sampler:
        """Around the summit of Crowd-BT with middling priors, which also says which way is up."""
        from crowdrank.models.crowd.sampler_kernels import thread

        options = options or FitOptions()
        scale = None if self.prior_scale == "learnt" else self.prior_scale
        quality = None if self.quality_prior == "learnt" else self.quality_prior
        formula = RELIABLE if self.link == "logistic" else PROBIT
        priors = Priors(scale=scale or 3.0, quality=quality or (2.0, 1.0))
        summit = climb_from(CrowdBT(tolerance=1e-8), comparisons, formula, priors, options, ties=self.ties)
        layout = summit.objective.layout
        answers = answers_of(comparisons, ties=self.ties, known=options.side_information)
        # rounded: whatever order the sums were taken in, the chains begin at the same place
        scores, gates, _ = layout.split(np.round(summit.found.parameters, 4))
        limits = limits_of(summit.objective.priors.hints, layout.annotators)
        threads = thread(answers, layout.items, layout.annotators, formula)
        return Sampler(threads, comparisons.items, scores, gates, limits, scale, quality)

    def _conclude(self, comparisons: Comparisons, drawn: Draws, sweeps: int) -> Ranking:
        samples, scores, kept = drawn.samples, drawn.scores, drawn.kept(self.draws)
        unit = "of R̂ above 1, so the chains have not converged"
        met = samples.r_hat <= self.r_hat
        convergence = Convergence(met, sweeps, samples.r_hat - 1.0, unit, "raise max_sweeps")
        error = scores.std(axis=0)
        method = f"{len(kept):,} draws from the posterior, of scores and annotators together"
        ranking = build_ranking(
            self,
            comparisons,
            scores.mean(axis=0),
            parameters=drawn.parameters(),
            convergence=convergence,
            measure=lambda: Uncertainty(kept, error, method, sampled=True),
        )
        return with_annotators(ranking, comparisons, lambda: {"quality": drawn.quality_interval()})

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns, over the posterior of the scores."""
        draws, formula = ranking.uncertainty.draws, LOGISTIC if self.link == "logistic" else THURSTONE
        truthful = np.zeros(len(comparisons))
        for scores in draws:
            truthful += outcome_probabilities(scores[comparisons.left] - scores[comparisons.right], 0.0, formula)[
                :, 0
            ] / len(draws)
        quality = ranking.annotators.estimate("quality")[comparisons.annotator]
        chance = quality * truthful + (1 - quality) * (1 - truthful)
        return np.stack((chance, np.zeros(len(chance)), 1 - chance), axis=1)


def _read(state: State) -> FloatArray:
    return np.concatenate((state.scores, state.quality, np.log((state.scale, state.truths, state.lies))))


@dataclass(frozen=True)
class Draws:
    """What was drawn, centred in each query, all of it the same way up."""

    samples: Samples
    scores: FloatArray
    quality: FloatArray
    spreads: FloatArray
    """Posterior means of the spread of scores, and of the truths and lies of the Beta behind qualities."""
    turned: float
    """The share of draws that were found upside down and turned."""

    @classmethod
    def of(cls, samples: Samples, comparisons: Comparisons, around: Sampler) -> Draws:
        """A draw that runs against the summit in its scores and in its qualities is a mirror image, and is turned.

        With anything known there is no mirror: such a draw is what it is.
        """
        items, people = len(comparisons.items), max(1, len(comparisons.annotators))
        scores, quality = (
            comparisons.items.centre(samples.draws[..., :items]),
            samples.draws[..., items : items + people],
        )
        against = scores @ comparisons.items.centre(around.summit) < 0
        against &= (quality - 0.5) @ np.sign(around.gates[:people]) < 0
        against &= around.limits.even_handed
        scores = np.where(against[..., None], -scores, scores)
        quality = np.where(against[..., None], 1 - quality, quality)
        spreads = samples.draws[..., -3:]
        spreads = np.where(against[..., None], spreads[..., [0, 2, 1]], spreads)
        upright = Samples(np.concatenate((scores, quality, spreads), axis=-1), samples.acceptance_rate)
        return cls(
            upright,
            scores.reshape(-1, items),
            quality.reshape(-1, people),
            np.exp(spreads).reshape(-1, 3).mean(axis=0),
            float(against.mean()),
        )

    def kept(self, draws: int) -> FloatArray:
        """Scores, at most so many draws of each chain, evenly spaced."""
        count, items = self.samples.draws.shape[1], self.scores.shape[1]
        places = np.linspace(0, count - 1, min(draws, count)).round().astype(np.int64)
        return self.samples.draws[:, places, :items].reshape(-1, items)

    def quality_interval(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        low, high = np.quantile(self.quality, (0.025, 0.975), axis=0)
        return self.quality.mean(axis=0), low, high

    def parameters(self) -> dict[str, float]:
        scale, truths, lies = self.spreads.tolist()
        return {
            "prior_scale": scale,
            "quality_prior_truths": truths,
            "quality_prior_lies": lies,
            "r_hat": self.samples.r_hat,
            "effective_size": self.samples.effective_sample_size,
            "accepted": self.samples.acceptance_rate,
            "turned": self.turned,
        }
