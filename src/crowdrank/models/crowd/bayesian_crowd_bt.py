"""Bayesian Crowd-BT: the full posterior of Crowd-BT (Chen et al. 2013), sampled by MCMC."""

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
from crowdrank.models.crowd import Priors, Ties, check_ties, fit_map, select_judgments
from crowdrank.models.crowd.crowd_bt import CrowdBT
from crowdrank.models.crowd.encoding import encode_answers, index_answers
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT
from crowdrank.models.crowd.sampler import Sampler, State, quality_bounds
from crowdrank.models.pairwise.likelihood import LOGISTIC, PROBIT, outcome_probabilities
from crowdrank.results import Convergence, Ranking, Uncertainty

# Sweeps of the first round per draw that is kept; fewer where that makes more than this many updates of answers. The
# chains must then also have this many effective draws of every parameter.
_THIN, _INITIAL_UPDATES, _FEWEST_EFFECTIVE = 4, 6_500_000, 100.0
# R̂ is computed from at least this many draws per chain: with fewer it exceeds 1.05 even for independent draws.
_DIAGNOSTIC_DRAWS = 250


@dataclass(frozen=True, kw_only=True)
class BayesianCrowdBT(Model):
    """Crowd-BT with its full posterior sampled by MCMC: scores are posterior means, intervals are credible intervals.

    Parameters
    ----------
    prior_scale : float or "learnt", default "learnt"
        Standard deviation of the normal prior on scores. "learnt" samples it with the rest.
    quality_prior : (float, float) or "learnt", default "learnt"
        Beta prior on the quality: truthful and untruthful answers that each annotator is credited with beforehand.
        "learnt" samples it with the rest.
    link : "logistic" or "probit", default "logistic"
        Noise of a truthful answer: that of Bradley and Terry, or Thurstone's normal noise.
    ties : "drop" or "half", default "drop"
        Whether ties are ignored or count as half an answer each way.
    chains : int, default 4
        Number of Markov chains, from different starts.
    draws : int, default 250
        Draws kept per chain, evenly spaced, from which intervals and probabilities are computed.
    warmup : int, default 300
        Sweeps that tune each chain before each round; they are discarded.
    r_hat : float, default 1.05
        Sampling stops when R̂ of every score, quality and learnt prior parameter is at most this. With more than 6,500
        comparisons the first check is made earlier, and also asks for 100 effective draws of each.
    max_sweeps : int, default 40000
        Maximum number of sweeps per chain, without warm-up. A warning says if R̂ is still above `r_hat` then.
    seed : int, default 0
        Seed of the chains.

    Notes
    -----
    Annotator k prefers a to b with probability ηₖ·σ(sₐ − s_b) + (1 − ηₖ)·σ(s_b − sₐ). The priors are s ~ N(0, τ²) and
    η ~ Beta(α, β), with log-normal priors on τ, α and β where they are learnt. One sweep combines Hamiltonian Monte
    Carlo with Metropolis and Gibbs steps. Draws with all scores and qualities reversed are flipped to the sign of the
    MAP estimate, because the likelihood does not distinguish them.

    X. Chen, P. N. Bennett, K. Collins-Thompson, E. Horvitz (2013). Pairwise ranking aggregation in a crowdsourced
    setting. WSDM.

    Examples
    --------
    >>> from crowdrank.simulation import mixed_crowd
    >>> crowd = mixed_crowd(items=8, kinds={"good": 5}, votes_each=25, seed=1)
    >>> ranking = BayesianCrowdBT(chains=2, seed=1).fit(crowd.judgments)
    >>> ranking.convergence.converged
    True
    >>> ranking.uncertainty.draws.shape
    (500, 8)
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True
    samples: ClassVar[bool] = True

    prior_scale: float | Literal["learnt"] = "learnt"
    quality_prior: tuple[float, float] | Literal["learnt"] = "learnt"
    link: Literal["logistic", "probit"] = "logistic"
    ties: Ties = "drop"
    chains: int = 4
    draws: int = 250
    warmup: int = 300
    r_hat: float = 1.05
    max_sweeps: int = 40_000
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
        check_connected(diagnose(select_judgments(comparisons, self.ties)), has_prior=True)
        sampler = self.sampler(comparisons, options)
        usual = _THIN * self.draws
        first = self.draws * int(np.clip(_INITIAL_UPDATES // (self.draws * len(comparisons)), 1, _THIN))

        def converged(found: Samples) -> bool:
            samples = PosteriorDraws.of(found, comparisons, sampler).samples
            enough = first == usual or samples.effective_sample_size >= _FEWEST_EFFECTIVE
            return samples.r_hat <= self.r_hat and enough

        samples, sweeps = sample_until(
            sampler.init,
            partial(sampler.tune, steps=self.warmup),
            sampler.sample,
            _parameters,
            converged=converged,
            chains=self.chains,
            initial_sweeps=first,
            max_sweeps=self.max_sweeps,
            draws=max(self.draws, _DIAGNOSTIC_DRAWS),
            seed=self.seed,
            engine=options.engine,
        )
        return self._ranking(comparisons, PosteriorDraws.of(samples, comparisons, sampler), sweeps)

    def sampler(self, comparisons: Comparisons, options: FitOptions | None = None) -> Sampler:
        """A sampler whose chains start near the MAP estimate of Crowd-BT with moderate priors, which fixes the sign."""
        options = options or FitOptions()
        scale = None if self.prior_scale == "learnt" else self.prior_scale
        quality = None if self.quality_prior == "learnt" else self.quality_prior
        formula = CROWD_BT if self.link == "logistic" else CROWD_BT_PROBIT
        priors = Priors(scale=scale or 3.0, quality=quality or (2.0, 1.0))
        estimate = fit_map(CrowdBT(tolerance=1e-8), comparisons, formula, priors, options, ties=self.ties)
        layout = estimate.objective.layout
        answers = encode_answers(comparisons, ties=self.ties, known=options.side_information)
        # rounded, so that the chains do not depend on the order in which the sums were taken
        scores, logits, _ = layout.split(np.round(estimate.found.parameters, 4))
        bounds = quality_bounds(estimate.objective.priors.constraints, layout.annotators)
        index = index_answers(answers, layout.items, layout.annotators, formula)
        return Sampler(index, comparisons.items, scores, logits, bounds, scale, quality)

    def _ranking(self, comparisons: Comparisons, drawn: PosteriorDraws, sweeps: int) -> Ranking:
        samples, scores, kept = drawn.samples, drawn.scores, drawn.kept(self.draws)
        unit = "of R̂ above 1, so the chains have not converged"
        converged = samples.r_hat <= self.r_hat
        convergence = Convergence(converged, sweeps, samples.r_hat - 1.0, unit, "raise max_sweeps")
        error = scores.std(axis=0)
        method = f"{len(kept):,} posterior draws of scores and annotators"
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
        """Probabilities of left, tie and right for each comparison, as columns, averaged over the draws of scores."""
        draws, formula = ranking.uncertainty.draws, LOGISTIC if self.link == "logistic" else PROBIT
        truthful = np.zeros(len(comparisons))
        for scores in draws:
            margin = scores[comparisons.left] - scores[comparisons.right]
            truthful += outcome_probabilities(margin, 0.0, formula)[:, 0] / len(draws)
        quality = ranking.annotators.estimate("quality")[comparisons.annotator]
        left = quality * truthful + (1 - quality) * (1 - truthful)
        return np.stack((left, np.zeros(len(left)), 1 - left), axis=1)


def _parameters(state: State) -> FloatArray:
    return np.concatenate((state.scores, state.quality, np.log((state.scale, state.alpha, state.beta))))


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws from the posterior, all with the same sign, scores centred in each query.

    Parameters
    ----------
    samples : Samples
        All draws, by chain.
    scores, quality : arrays of float
        One row per draw.
    hyper : array of float
        Posterior means of the prior scale, α and β.
    flipped : float
        Share of the draws whose sign was flipped.
    """

    samples: Samples
    scores: FloatArray
    quality: FloatArray
    hyper: FloatArray
    flipped: float

    @classmethod
    def of(cls, samples: Samples, comparisons: Comparisons, sampler: Sampler) -> PosteriorDraws:
        """Flip the draws that contradict the starting values in their scores and in their qualities.

        Side information breaks the symmetry: then no draw is flipped.
        """
        items, people = len(comparisons.items), max(1, len(comparisons.annotators))
        scores, quality = (
            comparisons.items.centre(samples.draws[..., :items]),
            samples.draws[..., items : items + people],
        )
        reversed_ = scores @ comparisons.items.centre(sampler.start_scores) < 0
        reversed_ &= (quality - 0.5) @ np.sign(sampler.start_logits[:people]) < 0
        reversed_ &= sampler.bounds.symmetric
        scores = np.where(reversed_[..., None], -scores, scores)
        quality = np.where(reversed_[..., None], 1 - quality, quality)
        hyper = samples.draws[..., -3:]
        hyper = np.where(reversed_[..., None], hyper[..., [0, 2, 1]], hyper)
        oriented = Samples(np.concatenate((scores, quality, hyper), axis=-1), samples.acceptance_rate)
        return cls(
            oriented,
            scores.reshape(-1, items),
            quality.reshape(-1, people),
            np.exp(hyper).reshape(-1, 3).mean(axis=0),
            float(reversed_.mean()),
        )

    def kept(self, draws: int) -> FloatArray:
        """Scores of at most `draws` draws per chain, evenly spaced."""
        count, items = self.samples.draws.shape[1], self.scores.shape[1]
        places = np.linspace(0, count - 1, min(draws, count)).round().astype(np.int64)
        return self.samples.draws[:, places, :items].reshape(-1, items)

    def quality_interval(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        low, high = np.quantile(self.quality, (0.025, 0.975), axis=0)
        return self.quality.mean(axis=0), low, high

    def parameters(self) -> dict[str, float]:
        scale, alpha, beta = self.hyper.tolist()
        return {
            "prior_scale": scale,
            "quality_prior_alpha": alpha,
            "quality_prior_beta": beta,
            "r_hat": self.samples.r_hat,
            "effective_size": self.samples.effective_sample_size,
            "accepted": self.samples.acceptance_rate,
            "flipped": self.flipped,
        }
