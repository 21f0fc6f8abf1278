"""From draws of the TPP sampler to estimates: units, labels of domains, intervals, and a prior for new queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.data import Comparisons, Items
from crowdrank.errors import DataError
from crowdrank.models.base import with_annotators
from crowdrank.models.thurstonian.gibbs import Prior, State
from crowdrank.results import Domains, Ranking

if TYPE_CHECKING:
    from crowdrank.models.thurstonian.sampler import Sampler

Estimate = tuple[FloatArray, FloatArray, FloatArray]

INTERVAL_LEVEL = 0.9
# Number of scores that a transferred variance counts for at most, because new queries may differ.
_MAX_VARIANCE_COUNT = 50.0


def state_to_draw(sampler: Sampler, state: State) -> FloatArray:
    """One draw as a vector: scores, difficulty, τ, domain, and the standard deviation of scores.

    Scores are in units of their own standard deviation, because the judgments hardly determine how widely scores are
    spread relative to the perception noise. Difficulty has mean one, and τ is in that unit.
    """
    oriented = sampler.resolve_orientation(state)
    scores, mean = sampler.items.centre(oriented.scores), oriented.difficulty.mean()
    spread = max(float(np.sqrt(np.mean(scores**2))), 1e-12)
    tau = oriented.expertise.ravel() * np.sqrt(mean)
    parts = scores / spread, oriented.difficulty / mean, tau, oriented.domain, [spread / np.sqrt(mean)]
    return np.concatenate(parts)


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws of the posterior, one row per draw.

    Parameters
    ----------
    scores : array of draws × items
    difficulty : array of draws × queries
    expertise : array of draws × annotators × domains
    domain : integer array of draws × queries
    spread : array per draw
        Standard deviation of the scores, in units of the perception noise.
    """

    scores: FloatArray
    difficulty: FloatArray
    expertise: FloatArray
    domain: IntArray
    spread: FloatArray

    @classmethod
    def from_matrix(cls, draws: FloatArray, items: Items, annotators: int, domains: int) -> PosteriorDraws:
        """From rows made by `state_to_draw`, with the labels of domains aligned."""
        queries = len(items.queries)
        cuts = np.cumsum([len(items), queries, annotators * domains, queries])
        scores, difficulty, tau, domain, spread = np.split(draws, cuts, axis=1)
        expertise = tau.reshape(len(draws), annotators, domains)
        return cls(scores, difficulty, expertise, np.rint(domain).astype(np.int64), spread[:, 0]).with_aligned_domains()

    def with_aligned_domains(self) -> PosteriorDraws:
        """The same draws with the same label for a domain in each: first as in the first draw, then as in most."""
        aligned = self
        for _ in range(2):
            reference = np.argmax(aligned.membership, axis=1) if aligned is not self else self.domain[0]
            aligned = aligned._aligned_to(reference)
        return aligned

    def _aligned_to(self, reference: IntArray) -> PosteriorDraws:
        """Relabel domains so that as many queries as possible agree with the reference (assignment problem)."""
        from scipy.optimize import linear_sum_assignment

        domains = self.expertise.shape[2]
        expertise, domain = self.expertise.copy(), self.domain.copy()
        for row, drawn in enumerate(self.domain):
            overlap = np.bincount(drawn * domains + reference, minlength=domains**2).reshape(domains, domains)
            _, label = linear_sum_assignment(-overlap)
            expertise[row][:, label] = self.expertise[row]
            domain[row] = label[drawn]
        return PosteriorDraws(self.scores, self.difficulty, expertise, domain, self.spread)

    @property
    def membership(self) -> FloatArray:
        """Posterior probability of each domain for each query, as queries × domains."""
        domains = np.arange(self.expertise.shape[2])
        return np.stack([np.mean(self.domain == domain, axis=0) for domain in domains], axis=1)

    def quality(self, counts: IntArray) -> FloatArray:
        """Probability of naming the better of two items perceived one unit apart, as draws × annotators.

        Averaged over the annotator's judgments, counted as queries × annotators; over all queries if there are none.
        """
        from scipy.special import ndtr

        weight = (counts + 1e-9) / (counts + 1e-9).sum(axis=0)
        return np.stack(
            [
                np.sum(weight.T * ndtr(expertise / np.sqrt(2))[:, domain], axis=1)
                for expertise, domain in zip(self.expertise, self.domain, strict=True)
            ]
        )


def attach_domains(
    ranking: Ranking,
    comparisons: Comparisons,
    expertise: Estimate,
    difficulty: Estimate,
    membership: FloatArray,
    counts: IntArray,
    quality: Estimate | None = None,
) -> Ranking:
    """The ranking with its domains, and with its annotators if the judgments name them."""
    from scipy.special import ndtr

    annotators = slice(None) if comparisons.annotator is not None else slice(0)
    estimate, low, high = (part[annotators] for part in expertise)
    most_probable = np.argmax(membership, axis=1)[:, None] == np.arange(membership.shape[1])
    n_judgments = (counts.T @ most_probable).astype(np.int64)[annotators]
    domains = Domains(
        annotators=comparisons.annotators,
        queries=comparisons.items.queries,
        expertise=(estimate, low, high),
        membership=membership,
        difficulty=difficulty,
        n_judgments=n_judgments,
        level=INTERVAL_LEVEL,
    )
    if quality is None:
        weight = (n_judgments + 1e-9) / (n_judgments + 1e-9).sum(axis=1, keepdims=True)
        overall = np.sum(weight * ndtr(estimate / np.sqrt(2)), axis=1)
        quality = overall, overall, overall
    estimates = {"quality": quality}
    return with_annotators(ranking.with_parts(domains=lambda: domains), comparisons, lambda: estimates)


def mean_and_interval(draws: FloatArray, level: float) -> Estimate:
    """Mean over draws, and the ends of the central interval."""
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return draws.mean(axis=0), low, high


@dataclass(frozen=True)
class TransferredPrior:
    """What a fit has learned about annotators and domains, as a prior for new queries.

    Parameters
    ----------
    annotators : array of labels
    expertise_mean, expertise_std : arrays of annotators × domains
    domain_concentration : array per domain
        Number of queries of each domain, plus one.
    variance : float
        Variance of the scores, in units of the perception noise.
    """

    annotators: ObjectArray
    expertise_mean: FloatArray
    expertise_std: FloatArray
    domain_concentration: FloatArray
    variance: float

    @classmethod
    def from_ranking(cls, ranking: Ranking) -> TransferredPrior:
        """Normal priors of τ with the means and interval widths of a fit."""
        from scipy.special import ndtri

        if not ranking.has_domains or "spread" not in ranking.parameters:
            raise DataError(f"A {ranking.model} ranking has no domains to transfer. Fit tpp and update its ranking.")
        domains = ranking.domains
        mean, low, high = domains.expertise
        std = (high - low) / (2.0 * ndtri(0.5 + 0.5 * domains.level))
        if not np.all(std > 0):
            raise DataError(
                'This tpp ranking has no intervals of expertise to transfer. Fit it with inference="posterior".'
            )
        concentration = domains.membership.sum(axis=0) + 1.0
        return cls(domains.annotators, mean, std, concentration, ranking.parameters["spread"] ** 2)

    def for_annotators(self, annotators: ObjectArray) -> Prior:
        """The prior for these annotators. New annotators get the default prior of expertise."""
        default = Prior()
        shape = (max(1, len(annotators)), len(self.domain_concentration))
        mean, std = np.full(shape, default.expertise_mean), np.full(shape, default.expertise_std)
        row_of = {str(label): row for row, label in enumerate(self.annotators)}
        for row, label in enumerate(annotators):
            known = row_of.get(str(label))
            if known is not None:
                mean[row], std[row] = self.expertise_mean[known], self.expertise_std[known]
        half = 0.5 * _MAX_VARIANCE_COUNT
        return Prior(mean, std, self.domain_concentration, variance_shape=half, variance_rate=half * self.variance)
