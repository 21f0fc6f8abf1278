"""The MCMC sampler of TPP: starting values, tuning, the orientation of domains, and estimates from the draws."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.data import Comparisons, Items
from crowdrank.errors import DataError
from crowdrank.models.base import with_annotators
from crowdrank.models.thurstonian import gibbs
from crowdrank.models.thurstonian.gibbs import Prior, State
from crowdrank.models.thurstonian.initialization import (
    GridPrior,
    InitialValues,
    fit_scores,
    initial_values,
    initial_values_from_prior,
    majority_scores,
    marginal_slope,
    recluster,
)
from crowdrank.models.thurstonian.layout import Layout, judgment_counts, layout_from_comparisons
from crowdrank.results import Domains, Ranking

# Sweeps after each of which the preconditioners and the domain proposals are computed again.
_TUNING_SWEEPS = (10, 8, 8)
_NEWTON_ROUNDS = 6
# With more judgments, chains are tuned in one round only, as these sweeps cost as much as those that are kept.
_MAX_TUNED_JUDGMENTS, _SHORT_TUNING_SWEEPS = 200_000, (5,)
# Number of judgments times domains up to which domains are proposed by their evidence, and above uniformly.
_MAX_COMPARED = 20_000_000
# Items judged per annotator up to which the exact approximation of the evidence is worth its time.
_MAX_EXACT_ITEMS = 40
# Rounds of a pilot chain, after each of which the domains are searched again.
_PILOT_ROUNDS = 3
# A pilot chain is worth its time up to this number of judgments and of queries.
_MAX_PILOT_JUDGMENTS, _MAX_PILOT_QUERIES = 10_000, 400
# Domains whose rough log evidence is within this distance of the best get the exact approximation.
_EVIDENCE_RANGE = 20.0


class Info(NamedTuple):
    acceptance_rate: float


@dataclass(frozen=True)
class Sampler:
    """Sampler of the posterior of TPP, for `crowdrank.inference.mcmc`.

    Parameters
    ----------
    layout : Layout
    items : Items
    start : InitialValues
        Chains start around these values.
    prior : Prior
    orientation_known : bool, default False
        Whether the prior determines the sign of scores and expertise.
    """

    layout: Layout
    items: Items
    start: InitialValues
    prior: Prior = field(default_factory=Prior)
    orientation_known: bool = False

    @classmethod
    def of(
        cls, comparisons: Comparisons, count: int | None, seed: int, transferred: TransferredPrior | None = None
    ) -> Sampler:
        """Sampler for these judgments, with `count` domains (None: chosen by evidence), or with transferred ones."""
        layout, items = layout_from_comparisons(comparisons), comparisons.items
        rng, majority = np.random.default_rng(seed), majority_scores(layout, items)
        if transferred is None:
            prior = Prior()
            grid_prior = GridPrior.normal(prior.expertise_mean, prior.expertise_std)
            n_annotators = max(1, len(comparisons.annotators))
            start = initial_values(rng, layout, majority, n_annotators, grid_prior, count)
            return cls(layout, items, start, prior)._after_pilot(rng, grid_prior, count)
        prior = transferred.for_annotators(comparisons.annotators)
        start = initial_values_from_prior(layout, majority, prior, transferred.variance)
        return cls(layout, items, start, prior, orientation_known=True)

    def _after_pilot(self, rng: np.random.Generator, grid_prior: GridPrior, count: int | None) -> Sampler:
        """The same sampler with starting values from a pilot chain, and domains searched again given its scores.

        Scores fitted to the judgments one by one are rough where annotators judged little, and may leave a domain too
        many. Chains take long to empty it, and each may move its queries to other domains.
        """
        sampler, few = self, len(self.items.queries) <= _MAX_PILOT_QUERIES
        if not few or len(self.layout.winner_utility) > _MAX_PILOT_JUDGMENTS:
            return self
        for _ in range(_PILOT_ROUNDS):
            if sampler.start.expertise.shape[1] == 1:
                break
            state = sampler.tune(rng, sampler.init(rng))
            reached = InitialValues(state.scores, state.domain, state.expertise, float(state.score_variance[0]))
            sampler = replace(sampler, start=recluster(rng, self.layout, reached, grid_prior, count))
        return sampler

    @cached_property
    def _judgment_counts(self) -> IntArray:
        return judgment_counts(self.layout, len(self.start.expertise))

    @cached_property
    def _prior(self) -> Prior:
        return self.prior.broadcast(*self.start.expertise.shape)

    def init(self, rng: np.random.Generator) -> State:
        """A random state around the starting values."""
        start, layout = self.start, self.layout
        scores = start.scores + rng.normal(scale=0.5, size=len(start.scores))
        perceived = scores[layout.utility_item] + rng.normal(size=len(layout.utility_item))
        expertise = start.expertise + rng.normal(scale=0.2, size=start.expertise.shape)
        domains = expertise.shape[1]
        domain_probs = (np.bincount(start.domain, minlength=domains) + 1.0) / (len(start.domain) + domains)
        return gibbs.make_state(
            layout,
            scores,
            perceived,
            np.ones(len(start.domain)),
            start.domain.copy(),
            expertise,
            domain_probs,
            np.full(1, start.variance),
        )

    def tune(self, rng: np.random.Generator, state: State) -> State:
        """Adapt the step size, the preconditioners and the domain proposals in some sweeps that are discarded."""
        adapted, judgments = _copy(state), len(self.layout.winner_utility)
        for sweeps in _TUNING_SWEEPS if judgments <= _MAX_TUNED_JUDGMENTS else _SHORT_TUNING_SWEEPS:
            gibbs.update_preconditioners(self.layout, adapted)
            if judgments * len(state.domain_probs) <= _MAX_COMPARED:
                adapted.domain_proposals[:] = domain_proposals(self.layout, adapted)
            gibbs.run(rng, self.layout, self._prior, adapted, sweeps, tune=True)
        return adapted

    def run(self, rng: np.random.Generator, state: State, sweeps: int) -> tuple[State, Info]:
        """Run a number of sweeps from a state, which stays as it is."""
        new = _copy(state)
        return new, Info(gibbs.run(rng, self.layout, self._prior, new, sweeps))

    def resolve_orientation(self, state: State) -> State:
        """Choose the sign of each domain so that most of its judgments are expected to be right.

        Negating the scores and the expertise of a domain leaves the likelihood unchanged. Scores do not enter the
        decision: if little is known about them, aligning them in every draw would make them look certain.
        """
        from scipy.special import ndtr

        if self.orientation_known:
            return state
        counts = self._judgment_counts.T @ (state.domain[:, None] == np.arange(len(state.domain_probs)))
        right = ndtr(state.expertise * np.sqrt(state.difficulty.mean() / 2.0))
        sign = np.where(np.sum(counts * (right - 0.5), axis=0) < 0, -1.0, 1.0)
        item_sign = np.repeat(sign[state.domain], np.diff(self.items.starts))
        return state._replace(
            scores=item_sign * state.scores,
            perceived=item_sign[self.layout.utility_item] * state.perceived,
            expertise=sign * state.expertise,
        )


def domain_proposals(layout: Layout, state: State) -> FloatArray:
    """Probability of proposing each domain for each query: the square root of its approximate evidence, normalised.

    The square root spreads the proposals, because the evidence is approximate and depends on the state of the chain. A
    rough evidence, with judgments treated as independent, decides for which domains the better one is computed.
    """
    from scipy.special import log_ndtr

    slopes, domains = marginal_slope(state.expertise), len(state.domain_probs)
    judgment_query = np.repeat(np.arange(len(state.domain)), np.diff(layout.judgment_starts))
    item_query = np.repeat(np.arange(len(state.domain)), np.diff(layout.item_starts))
    evidence = np.empty((len(state.domain), domains))
    for domain in range(domains):
        variance, everywhere = float(state.score_variance[0]), np.full(len(state.domain), domain)
        start = np.zeros(len(state.scores))
        scores, curvature = fit_scores(layout, start, slopes, everywhere, variance, _NEWTON_ROUNDS)
        margin = slopes[layout.annotator, domain] * (scores[layout.winner_item] - scores[layout.loser_item])
        log_prior = -0.5 * (scores**2 / variance + np.log(curvature * variance))
        by_judgment = np.bincount(judgment_query, log_ndtr(margin), len(evidence))
        evidence[:, domain] = by_judgment + np.bincount(item_query, log_prior, len(evidence))
    evidence -= evidence.max(axis=1, keepdims=True)
    close = evidence > -_EVIDENCE_RANGE
    # A complete list of n items gives (n − 1) / 2 judgments per item, and the approximation takes n³ operations.
    utilities = np.diff(layout.utility_starts[layout.item_starts])
    short = 2.0 * np.diff(layout.judgment_starts) <= (_MAX_EXACT_ITEMS - 1) * utilities
    mask = close & short[:, None] & (np.sum(close, axis=1, keepdims=True) > 1)
    better = gibbs.log_evidence(layout, state, mask)
    evidence = np.where(mask, better - np.fmax.reduce(better, axis=1, keepdims=True), evidence)
    weight = np.exp(0.5 * evidence) * state.domain_probs**0.5
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _copy(state: State) -> State:
    return State._make(part.copy() for part in state)


# From draws of the TPP sampler to estimates: units, labels of domains, intervals, and a prior for new queries.

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
