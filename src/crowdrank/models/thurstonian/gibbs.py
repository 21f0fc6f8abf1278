"""Sweeps of the sampler of Thurstonian pairwise preferences, as compiled loops.

Wang et al. (2016): query l has a domain m_l ~ Mult(θ), a difficulty δ_l² and true scores s_i. Annotator k perceives the
utility s⁽ᵏ⁾_i = s_i + δ_l e with e standard normal, once per item, and prefers a to b with probability
Φ(τ_km (s⁽ᵏ⁾_a − s⁽ᵏ⁾_b) / √2). The noisy differences of the paper are integrated out everywhere, because chains mix
badly given them. The state keeps one perceived utility per annotator and item judged.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import compiled
from crowdrank.inference.special import ROOT_HALF, log_normal_cdf_scalar, log_normal_cdf_table
from crowdrank.models.thurstonian.expectation_propagation import (
    EXPECTATION_PROPAGATION,
    approximate,
    log_posterior,
    transform,
)
from crowdrank.models.thurstonian.layout import Layout
from crowdrank.models.thurstonian.parameter_moves import (
    PARAMETER_MOVES,
    change_unit,
    draw_difficulty,
    draw_expertise,
    scale_all,
    scale_expertise_and_noise,
    scale_query,
    shift_query,
)
from crowdrank.models.thurstonian.score_moves import (
    SCORE_MOVES,
    Workspace,
    compute_preconditioner,
    elliptical_slice_step,
    gibbs_step,
    hmc_step,
    preconditioner_sizes,
    random_walk_step,
)

_TARGET_ACCEPTANCE = 0.75
# Share of the sweeps in which a query's domain is updated, given its perceived utilities or jointly with them.
_GIBBS_DOMAIN_SHARE = 0.2
_DOMAIN_PROPOSAL_SHARE = 0.3
# Items judged per annotator and query above which another domain is proposed less often: the cost of a proposal grows
# with their third power.
_FREE_PROPOSAL_ITEMS = 10.0
# Share of the Gibbs updates of a domain that also consider the mirror image of the query.
_MIRROR_SHARE = 0.25


class Prior(NamedTuple):
    """Prior of the model. The prior of δ², with mean one, sets the unit of scores and of τ.

    Parameters
    ----------
    expertise_mean, expertise_std : float or array of annotators × domains
        Normal prior of τ.
    domain_concentration : float or array per domain
        Dirichlet prior of θ.
    difficulty_shape, difficulty_rate : float
        Gamma prior of δ².
    variance_shape, variance_rate : float
        Inverse gamma prior of ω², the variance of the true scores.
    """

    expertise_mean: Any = 1.0
    expertise_std: Any = 1.5
    domain_concentration: Any = 1.0
    difficulty_shape: float = 1.5
    difficulty_rate: float = 1.5
    variance_shape: float = 1.0
    variance_rate: float = 4.0

    def broadcast(self, annotators: int, domains: int) -> Prior:
        """The same prior with arrays for every annotator and domain."""
        shape = (annotators, domains)
        mean = np.array(np.broadcast_to(self.expertise_mean, shape), np.float64)
        std = np.array(np.broadcast_to(self.expertise_std, shape), np.float64)
        concentration = np.array(np.broadcast_to(self.domain_concentration, domains), np.float64)
        return Prior(mean, std, concentration, *(float(value) for value in self[3:]))


class State(NamedTuple):
    """State of one chain. Arrays are updated in place.

    Parameters
    ----------
    scores : array per item
    perceived : array per perceived utility
    difficulty : array per query
        δ².
    domain : integer array per query
    expertise : array of annotators × domains
        τ.
    domain_probs : array per domain
        θ.
    score_variance : array of one number
        ω².
    preconditioners : array
        Preconditioners of HMC for all queries, one after another.
    step_size : array of one number
        Step size of HMC.
    domain_proposals : array of queries × domains
        Probability of proposing each domain for each query; rows add up to one.
    """

    scores: AnyArray
    perceived: AnyArray
    difficulty: AnyArray
    domain: AnyArray
    expertise: AnyArray
    domain_probs: AnyArray
    score_variance: AnyArray
    preconditioners: AnyArray
    step_size: AnyArray
    domain_proposals: AnyArray


def make_state(
    layout: Layout,
    scores: AnyArray,
    perceived: AnyArray,
    difficulty: AnyArray,
    domain: AnyArray,
    expertise: AnyArray,
    domain_probs: AnyArray,
    score_variance: AnyArray,
) -> State:
    """A state with preconditioners computed from its values, and uniform domain proposals."""
    preconditioners = np.empty(int(np.sum(preconditioner_sizes(np.diff(layout.item_starts)))))
    proposals = np.full((len(domain), len(domain_probs)), 1.0 / len(domain_probs))
    state = State(
        scores,
        perceived,
        difficulty,
        domain,
        expertise,
        domain_probs,
        score_variance,
        preconditioners,
        np.ones(1),
        proposals,
    )
    update_preconditioners(layout, state)
    return state


def update_preconditioners(layout: Layout, state: State) -> None:
    """Recompute the preconditioners from the current state. Only valid while tuning."""
    _update_preconditioners(layout, state, _preconditioner_starts(layout))


def log_evidence(layout: Layout, state: State, mask: AnyArray) -> AnyArray:
    """Approximate log evidence of each query's judgments in each domain, given expertise; nan outside the mask."""
    evidence: AnyArray = _log_evidence(layout, state, mask)
    return evidence


def run(rng: np.random.Generator, layout: Layout, prior: Prior, state: State, sweeps: int, tune: bool = False) -> float:
    """Run a number of sweeps in place. Returns the mean acceptance probability of HMC. `tune` adapts the step size."""
    acceptance_sum: float = _run(rng, layout, prior, state, _preconditioner_starts(layout), sweeps, tune)
    return acceptance_sum / max(1, sweeps)


def _preconditioner_starts(layout: Layout) -> AnyArray:
    return np.concatenate(([0], np.cumsum(preconditioner_sizes(np.diff(layout.item_starts)))))


@compiled(log_normal_cdf_scalar, *SCORE_MOVES)
def _update_preconditioners(layout, state, preconditioner_starts):  # type: ignore[no-untyped-def]
    for query in range(len(state.domain)):
        slopes = ROOT_HALF * state.expertise[:, state.domain[query]]
        own = state.preconditioners[preconditioner_starts[query] : preconditioner_starts[query + 1]]
        compute_preconditioner(layout, state, query, slopes, own)


@compiled(log_normal_cdf_scalar, *EXPECTATION_PROPAGATION)
def _log_evidence(layout, state, mask):  # type: ignore[no-untyped-def]
    evidence = np.full(mask.shape, np.nan)
    for query in range(len(mask)):
        first, last = layout.item_starts[query], layout.item_starts[query + 1]
        utilities = layout.utility_starts[last] - layout.utility_starts[first]
        scores, perceived = np.empty(last - first), np.empty(utilities)
        for domain in range(mask.shape[1]):
            if mask[query, domain]:
                slopes = ROOT_HALF * state.expertise[:, domain]
                approximation = approximate(layout, query, slopes, state.score_variance[0], state.difficulty[query])
                # At the mean of the approximation, posterior over approximate density is the evidence.
                noise = np.zeros(len(scores) + len(perceived))
                density = transform(layout, approximation, noise, scores, perceived, True)
                joint = log_posterior(layout, query, slopes, approximation, scores, perceived)
                evidence[query, domain] = joint - density
    return evidence


def _draw_domain(rng: Any, layout: Any, state: Any, query: Any, log_weights: Any) -> None:
    """Draw the domain of a query given its perceived utilities.

    Sometimes the mirror image of the query is a candidate too, because the orientation may differ between domains.
    """
    domains = len(state.domain_probs)
    orientations = 2 if rng.random() < _MIRROR_SHARE else 1
    candidates = orientations * domains
    start, end = layout.judgment_starts[query], layout.judgment_starts[query + 1]
    for choice in range(candidates):
        log_weights[choice] = math.log(state.domain_probs[choice % domains])
    for row in range(start, end):
        who = layout.annotator[row]
        winner, loser = layout.winner_utility[row], layout.loser_utility[row]
        difference = ROOT_HALF * (state.perceived[winner] - state.perceived[loser])
        for m in range(domains):
            log_weights[m] += log_normal_cdf_table(state.expertise[who, m] * difference)
        for m in range(domains, candidates):
            log_weights[m] += log_normal_cdf_table(-state.expertise[who, m - domains] * difference)
    cumulative = np.cumsum(np.exp(log_weights[:candidates] - np.max(log_weights[:candidates])))
    choice = min(np.searchsorted(cumulative, cumulative[-1] * rng.random(), side="right"), candidates - 1)
    state.domain[query] = choice % domains
    if choice >= domains:
        first, last = layout.item_starts[query], layout.item_starts[query + 1]
        state.scores[first:last] *= -1.0
        state.perceived[layout.utility_starts[first] : layout.utility_starts[last]] *= -1.0


def proposal_share(layout: Any, query: Any) -> Any:
    """How often to propose another domain: less if annotators judged many items, so that it costs no more."""
    judgments = layout.judgment_starts[query + 1] - layout.judgment_starts[query]
    first, last = layout.item_starts[query], layout.item_starts[query + 1]
    utilities = layout.utility_starts[last] - layout.utility_starts[first]
    # A complete list of n items gives (n − 1) / 2 judgments per item.
    rarer = 0.5 * _FREE_PROPOSAL_ITEMS * utilities / max(judgments, 1)
    return _DOMAIN_PROPOSAL_SHARE * min(1.0, rarer * rarer)


def _propose_domain(rng: Any, layout: Any, state: Any, query: Any) -> None:
    """Propose another domain together with new scores and perceived utilities from its Gaussian approximation.

    A query that fits two domains has different scores in each, so given its scores it would not change its domain.
    """
    current, cumulative = state.domain[query], np.cumsum(state.domain_proposals[query])
    proposal = min(np.searchsorted(cumulative, cumulative[-1] * rng.random(), side="right"), len(cumulative) - 1)
    if proposal == current:
        return
    first, last = layout.item_starts[query], layout.item_starts[query + 1]
    low, high = layout.utility_starts[first], layout.utility_starts[last]
    variance, difficulty = state.score_variance[0], state.difficulty[query]
    scores, perceived, noise = np.empty(last - first), np.empty(high - low), np.empty(last - first + high - low)
    for k in range(len(noise)):
        noise[k] = rng.standard_normal()
    # Metropolis–Hastings ratio: target and proposal density of the new state, then of the current one.
    slopes = ROOT_HALF * state.expertise[:, proposal]
    approximation = approximate(layout, query, slopes, variance, difficulty)
    log_ratio = -transform(layout, approximation, noise, scores, perceived, True)
    log_ratio += log_posterior(layout, query, slopes, approximation, scores, perceived)
    slopes = ROOT_HALF * state.expertise[:, current]
    approximation = approximate(layout, query, slopes, variance, difficulty)
    old_scores, old_perceived = state.scores[first:last].copy(), state.perceived[low:high].copy()
    log_ratio += transform(layout, approximation, noise, old_scores, old_perceived, False)
    log_ratio -= log_posterior(
        layout, query, slopes, approximation, state.scores[first:last], state.perceived[low:high]
    )
    log_ratio += math.log(state.domain_probs[proposal] / state.domain_probs[current]) + math.log(
        state.domain_proposals[query, current] / state.domain_proposals[query, proposal]
    )
    if math.log(rng.random()) < log_ratio:
        state.domain[query] = proposal
        state.scores[first:last], state.perceived[low:high] = scores, perceived


def _inverse_gamma(rng: Any, shape: float, rate: float) -> Any:
    return rate / rng.standard_gamma(shape)


@compiled(
    log_normal_cdf_scalar,
    *SCORE_MOVES,
    *PARAMETER_MOVES,
    *EXPECTATION_PROPAGATION,
    _draw_domain,
    proposal_share,
    _propose_domain,
    _inverse_gamma,
)
def _run(rng, layout, prior, state, preconditioner_starts, sweeps, tune):  # type: ignore[no-untyped-def]
    queries, domains = len(state.domain), len(state.domain_probs)
    items, utilities = len(state.scores), len(state.perceived)
    rows, n_annotators = len(layout.winner_utility), len(state.expertise)
    log_weights, counts, buffers = np.empty(2 * domains), np.empty(domains), np.empty((7, *state.expertise.shape))
    workspace = Workspace(
        np.empty(items),
        np.empty(items),
        np.empty(items),
        np.empty(utilities),
        np.empty(rows),
        np.empty(rows),
        np.empty(rows),
        np.empty(n_annotators),
        np.empty(n_annotators),
    )
    acceptance_sum = 0.0
    for sweep in range(sweeps):
        counts[:] = prior.domain_concentration
        acceptance = 0.0
        for query in range(queries):
            if rng.random() < _GIBBS_DOMAIN_SHARE:
                _draw_domain(rng, layout, state, query, log_weights)
            if domains > 1 and rng.random() < proposal_share(layout, query):
                _propose_domain(rng, layout, state, query)
            counts[state.domain[query]] += 1.0
            slopes = ROOT_HALF * state.expertise[:, state.domain[query]]
            preconditioner = state.preconditioners[preconditioner_starts[query] : preconditioner_starts[query + 1]]
            acceptance += hmc_step(rng, layout, state, query, slopes, preconditioner, workspace) / queries
            elliptical_slice_step(rng, layout, state, query, slopes, workspace)
            gibbs_step(rng, layout, state, query)
            random_walk_step(rng, layout, state, query, slopes)
            scale_query(rng, layout, prior, state, query, slopes, workspace)
            draw_difficulty(rng, layout, prior, state, query, slopes, workspace)
            shift_query(rng, layout, state, query)
        acceptance_sum += acceptance
        if tune:
            state.step_size[0] *= math.exp((acceptance - _TARGET_ACCEPTANCE) / math.sqrt(1.0 + 0.2 * sweep))
        draw_expertise(rng, layout, prior, state, buffers)
        if rng.random() < 0.5:
            scale_expertise_and_noise(rng, layout, prior, state, buffers)
        else:
            scale_all(rng, layout, prior, state, workspace)
        # θ by normalised gamma draws: a Dirichlet draw given the domains of all queries.
        for m in range(domains):
            state.domain_probs[m] = max(rng.standard_gamma(counts[m]), 1e-300)
            change_unit(rng, layout, prior, state, m)
        state.domain_probs[:] /= np.sum(state.domain_probs)
        squares = np.sum(state.scores * state.scores)
        shape, rate = prior.variance_shape + 0.5 * items, prior.variance_rate + 0.5 * squares
        state.score_variance[0] = _inverse_gamma(rng, shape, rate)
    return acceptance_sum
