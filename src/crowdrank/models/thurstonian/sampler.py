"""The MCMC sampler of TPP: starting values, tuning, and the orientation of domains."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items
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
from crowdrank.models.thurstonian.postprocess import TransferredPrior

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
