"""Thurstonian pairwise preferences by Monte Carlo EM, as published: Algorithm 1 of Wang et al. (2016)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray
from crowdrank.data import Comparisons, Items
from crowdrank.engines.compilation import compiled
from crowdrank.errors import SettingError
from crowdrank.inference.special import HALF_LOG_TWO_PI, ROOT_HALF, log_normal_cdf_scalar, sample_positive_normal
from crowdrank.models.base import build_ranking
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.thurstonian.layout import Layout, judgment_counts, layout_from_comparisons
from crowdrank.models.thurstonian.sampler import attach_domains
from crowdrank.results import Convergence, Ranking

if TYPE_CHECKING:
    from crowdrank.models.thurstonian.tpp import TPP


# Bounds on |τ|: noisy differences have width 1 / |τ|, and unanimous answers would let |τ| grow without end.
MIN_EXPERTISE, MAX_EXPERTISE = 1e-3, 100.0


class Parameters(NamedTuple):
    """Θ, the parameters that EM estimates.

    Parameters
    ----------
    scores : array per item
    difficulty : array per query
        δ².
    domain_probs : array per domain
        θ.
    expertise : array of annotators × domains
        τ, never zero.
    """

    scores: AnyArray
    difficulty: AnyArray
    domain_probs: AnyArray
    expertise: AnyArray


class Latent(NamedTuple):
    """Latent variables, the state of the Gibbs sampler. The E-step updates them in place.

    Parameters
    ----------
    domain : integer array per query
    perceived : array per perceived utility
    noisy_difference : array per judgment
        Δs.
    """

    domain: AnyArray
    perceived: AnyArray
    noisy_difference: AnyArray


class Draws(NamedTuple):
    """Draws of an E-step, one row per sweep that is kept."""

    domain: AnyArray
    perceived: AnyArray


def e_step(
    rng: np.random.Generator, layout: Layout, parameters: Parameters, latent: Latent, warmup: int, sweeps: int
) -> Draws:
    """Run the Gibbs sampler for `warmup` sweeps, then keep the draws of `sweeps` more."""
    draws = Draws(np.empty((sweeps, len(latent.domain)), np.int64), np.empty((sweeps, len(latent.perceived))))
    _e_step(
        rng,
        *parameters,
        *latent,
        *draws,
        layout.winner_utility,
        layout.loser_utility,
        layout.annotator,
        layout.judgment_starts,
        layout.item_starts,
        layout.utility_starts,
        layout.edge_starts,
        layout.edge_judgment,
        layout.edge_opponent,
        layout.edge_sign,
        layout.utility_annotator,
        layout.utility_item,
        warmup,
    )
    return draws


class ExpertiseDerivatives(NamedTuple):
    """The terms of Q (7) in τ with first and second derivatives (21, 22), as annotators × domains."""

    value: AnyArray
    gradient: AnyArray
    curvature: AnyArray


def expertise_derivatives(layout: Layout, draws: Draws, expertise: AnyArray) -> ExpertiseDerivatives:
    """The terms of Q in τ; most of the time of an M-step."""
    value, gradient, curvature = (np.zeros(expertise.shape) for _ in range(3))
    _expertise_derivatives(
        expertise,
        *draws,
        layout.winner_utility,
        layout.loser_utility,
        layout.annotator,
        layout.judgment_starts,
        value,
        gradient,
        curvature,
    )
    return ExpertiseDerivatives(value, gradient, curvature)


def update_expertise(
    layout: Layout,
    draws: Draws,
    expertise: AnyArray,
    steps: int,
    max_step: float = math.inf,
    first: ExpertiseDerivatives | None = None,
) -> AnyArray:
    """Newton steps for all τ at once, each at most `max_step` long; `first` are the derivatives at the start, if known.

    Q is concave in each τ, so the sign of its gradient brackets the optimum: a step that would leave the bracket halves
    it instead. A τ without judgments stays where it is.
    """
    low, high = np.full(expertise.shape, -MAX_EXPERTISE), np.full(expertise.shape, MAX_EXPERTISE)
    for _ in range(steps):
        _, gradient, curvature = first or expertise_derivatives(layout, draws, expertise)
        first = None
        low, high = np.where(gradient > 0, expertise, low), np.where(gradient < 0, expertise, high)
        proposal = expertise + np.clip(gradient / np.maximum(-curvature, 1e-100), -max_step, max_step)
        inside = (low < proposal) & (proposal < high) | (gradient == 0)
        expertise = np.where(inside, proposal, 0.5 * (low + high))
    return expertise


def clip_expertise(expertise: AnyArray) -> AnyArray:
    """τ with |τ| between `MIN_EXPERTISE` and `MAX_EXPERTISE`."""
    return np.asarray(np.copysign(np.clip(np.abs(expertise), MIN_EXPERTISE, MAX_EXPERTISE), expertise))


def log_joint(layout: Layout, draws: Draws, parameters: Parameters, terms: ExpertiseDerivatives | None = None) -> float:
    """Mean of ln P(D, Z | Θ) (6) over the draws; `terms` are those in τ, if known."""
    value, _, _ = terms or expertise_derivatives(layout, draws, parameters.expertise)
    log_prior = np.log(parameters.domain_probs[draws.domain]).sum() / len(draws.domain)
    variance = parameters.difficulty[np.searchsorted(layout.item_starts, layout.utility_item, side="right") - 1]
    noise_square = np.mean((draws.perceived - parameters.scores[layout.utility_item]) ** 2, axis=0)
    return float(
        value.sum() + log_prior - np.sum(0.5 * noise_square / variance + 0.5 * np.log(variance) + HALF_LOG_TWO_PI)
    )


def inverse_mills_scalar(x: float) -> float:
    """φ(x) / Φ(x), which is f(−x) of (23), accurate in both tails."""
    return _inverse_mills(x, log_normal_cdf_scalar(x))


def _inverse_mills(x: float, log_cdf: float) -> float:
    if x > -35.0:
        return math.exp(-0.5 * x * x - HALF_LOG_TWO_PI - log_cdf)
    # Asymptotic series of the Mills ratio: log Φ loses digits this far out.
    y = 1.0 / (x * x)
    return -x / (1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))


@compiled(log_normal_cdf_scalar, _inverse_mills)
def _expertise_derivatives(  # type: ignore[no-untyped-def]
    expertise, domains, perceived, winner, loser, annotator, judgment_starts, value, gradient, curvature
):
    for draw in range(len(domains)):
        for query in range(len(judgment_starts) - 1):
            m = domains[draw, query]
            for row in range(judgment_starts[query], judgment_starts[query + 1]):
                k = annotator[row]
                difference = ROOT_HALF * (perceived[draw, winner[row]] - perceived[draw, loser[row]])
                x = expertise[k, m] * difference
                log_cdf = log_normal_cdf_scalar(x)
                f = _inverse_mills(x, log_cdf)
                value[k, m] += log_cdf
                gradient[k, m] += difference * f
                curvature[k, m] -= difference * difference * f * max(f + x, 0.0)
    value /= len(domains)
    gradient /= len(domains)
    curvature /= len(domains)


def _draw_domain(
    rng: Any,
    expertise: Any,
    domain_probs: Any,
    perceived: Any,
    noisy_difference: Any,
    winner: Any,
    loser: Any,
    annotator: Any,
    start: Any,
    end: Any,
    count: Any,
    squares: Any,
    products: Any,
    weights: Any,
) -> Any:
    """Draw a domain from (8). It depends on Δs² + (s_a − s_b)² and Δs(s_a − s_b), summed per annotator."""
    count[:], squares[:], products[:] = 0.0, 0.0, 0.0
    for row in range(start, end):
        k, difference = annotator[row], perceived[winner[row]] - perceived[loser[row]]
        count[k] += 1.0
        squares[k] += noisy_difference[row] * noisy_difference[row] + difference * difference
        products[k] += noisy_difference[row] * difference
    for m in range(len(domain_probs)):
        weights[m] = math.log(domain_probs[m]) if domain_probs[m] > 0.0 else -math.inf
        for k in range(len(count)):
            if count[k] > 0.0:
                tau = expertise[k, m]
                distance = squares[k] - 2.0 * math.copysign(1.0, tau) * products[k]
                weights[m] += count[k] * math.log(abs(tau)) - 0.25 * tau * tau * distance
    best, total = np.argmax(weights), 0.0
    largest = weights[best]
    for m in range(len(domain_probs)):
        weights[m] = math.exp(weights[m] - largest)
        total += weights[m]
    remaining = total * rng.random()
    for m in range(len(domain_probs)):
        remaining -= weights[m]
        if remaining < 0.0:
            return m
    return best


@compiled(_draw_domain, sample_positive_normal)
def _e_step(  # type: ignore[no-untyped-def]
    rng,
    scores,
    difficulty,
    domain_probs,
    expertise,
    domain,
    perceived,
    noisy_difference,
    kept_domain,
    kept_perceived,
    winner,
    loser,
    annotator,
    judgment_starts,
    item_starts,
    utility_starts,
    edge_starts,
    edge_judgment,
    edge_opponent,
    edge_sign,
    utility_annotator,
    utility_item,
    warmup,
):
    n_annotators, weights = len(expertise), np.empty(len(domain_probs))
    count, squares, products = np.empty(n_annotators), np.empty(n_annotators), np.empty(n_annotators)
    for sweep in range(warmup + len(kept_domain)):
        for query in range(len(domain)):
            start, end = judgment_starts[query], judgment_starts[query + 1]
            domain[query] = _draw_domain(
                rng,
                expertise,
                domain_probs,
                perceived,
                noisy_difference,
                winner,
                loser,
                annotator,
                start,
                end,
                count,
                squares,
                products,
                weights,
            )
            m, noise_precision = domain[query], 1.0 / difficulty[query]
            first, last = utility_starts[item_starts[query]], utility_starts[item_starts[query + 1]]
            for utility in range(first, last):
                tau = expertise[utility_annotator[utility], m]
                weight, sign = 0.5 * tau * tau, math.copysign(1.0, tau)
                linear, precision = noise_precision * scores[utility_item[utility]], noise_precision
                for edge in range(edge_starts[utility], edge_starts[utility + 1]):
                    offset = edge_sign[edge] * sign * noisy_difference[edge_judgment[edge]]
                    linear += weight * (perceived[edge_opponent[edge]] + offset)
                    precision += weight
                perceived[utility] = linear / precision + rng.standard_normal() / math.sqrt(precision)
            for row in range(start, end):
                tau = expertise[annotator[row], m]
                margin = tau * ROOT_HALF * (perceived[winner[row]] - perceived[loser[row]])
                noisy_difference[row] = sample_positive_normal(rng, margin) / (ROOT_HALF * abs(tau))
        if sweep >= warmup:
            kept_domain[sweep - warmup] = domain
            kept_perceived[sweep - warmup] = perceived


# Thurstonian pairwise preferences by Monte Carlo EM, as published: Algorithm 1 of Wang et al. (2016).

# Lower bound on δ², as a share of its mean: where all perceived utilities agree it would vanish, and the likelihood
# would grow without bound.
_MIN_DIFFICULTY = 1e-3
_CALM_ITERATIONS = 3
_BOOTSTRAP_REPLICATES = 20


@dataclass(frozen=True)
class MCEMResult:
    """Estimate of the published Monte Carlo EM. Numbers in brackets are equations of the paper.

    Parameters
    ----------
    scores : array per item
        The lowest score of each query is 0 (17).
    difficulty : array per query
        δ², with mean 1 (16).
    domain_probs : array per domain
        θ.
    membership : array of queries × domains
        Probability of each domain.
    expertise : array of annotators × domains
        τ, negative if answers are reversed.
    log_likelihood : array per iteration
        Mean of ln P(D, Z | Θ) (6) over the draws of the E-step, at the Θ that they were drawn with.
    domain_path : integer array of iterations + 1 × queries
        Most probable domain of each query, at the start and after each iteration.
    converged : bool
    """

    scores: FloatArray
    difficulty: FloatArray
    domain_probs: FloatArray
    membership: FloatArray
    expertise: FloatArray
    log_likelihood: FloatArray
    domain_path: AnyArray
    converged: bool


@dataclass(frozen=True, kw_only=True)
class MonteCarloEM:
    """Settings of the published Monte Carlo EM. Choices that the paper leaves open are made so as to match its tables.

    Parameters
    ----------
    domains : int, default 10
        Number of domains.
    expertise : {"each", "shared"}, default "each"
        τ per annotator and domain, or one per domain for all annotators (the paper's TPPUNIEXP).
    difficulty : {"each", "shared"}, default "each"
        δ² per query, or one for all queries (TPPUNIDIFF).
    iterations : int, default 40
        Maximum number of iterations.
    sweeps : int, default 50
        Sweeps kept in each E-step.
    warmup : int, default 10
        Sweeps discarded at the start of each E-step.
    tolerance : float, default 0.05
        EM has converged if the median relative change of τ is below this value and no query changes its domain in three
        consecutive iterations. Scores always change, because they carry the noise of the chain.
    seed : int, default 0
        Seed of all random draws.

    Notes
    -----
    Each query starts in a random domain, which is kept through the first E-step. Scores start at the majority, so that
    the orientation is normally right; every τ and δ² starts at 1. Each M-step takes one Newton step for τ, of length at
    most 1: the paper calls its Newton method inexact. An exact one would send each τ with a few unanimous answers far
    out at once. The domain given Δs (8) would then hardly ever change, and domains would die out. The likelihood has no
    maximum, as δ² may vanish and |τ| grow, so more iterations are not better.
    """

    domains: int = 10
    expertise: Literal["each", "shared"] = "each"
    difficulty: Literal["each", "shared"] = "each"
    iterations: int = 40
    sweeps: int = 50
    warmup: int = 10
    tolerance: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.domains < 1:
            raise SettingError(f"domains must be at least 1, got {self.domains}.")
        for name, choice in (("expertise", self.expertise), ("difficulty", self.difficulty)):
            if choice not in ("each", "shared"):
                raise SettingError(f'{name} must be "each" or "shared", got {choice!r}.')
        for name, value, least in (
            ("iterations", self.iterations, 1),
            ("sweeps", self.sweeps, 1),
            ("warmup", self.warmup, 0),
        ):
            if value < least:
                raise SettingError(f"{name} must be at least {least}, got {value}.")
        if not self.tolerance >= 0:
            raise SettingError(f"tolerance must not be negative, got {self.tolerance}.")

    def fit(self, layout: Layout, items: Items, n_annotators: int) -> MCEMResult:
        """Estimate all parameters from judgments in the form of `build_layout`."""
        rows = n_annotators
        if self.expertise == "shared":
            rows, layout = 1, _with_one_annotator(layout)
        rng = np.random.default_rng(self.seed)
        parameters, latent = self._start(rng, layout, items, rows)
        domain_path, calm = [latent.domain.copy()], 0
        values: list[float] = []
        has_judgments = np.diff(layout.judgment_starts) > 0
        while len(values) < self.iterations and calm < _CALM_ITERATIONS:
            draws = e_step(rng, layout, parameters, latent, self.warmup, self.sweeps)
            if not values:
                # All τ are still equal, so the perceived utilities did not depend on the domains.
                latent.domain[:] = domain_path[0]
                draws = draws._replace(domain=np.tile(domain_path[0], (self.sweeps, 1)))
            terms = expertise_derivatives(layout, draws, parameters.expertise)
            values.append(log_joint(layout, draws, parameters, terms))
            membership = np.mean(draws.domain[..., None] == np.arange(self.domains), axis=0)
            before = parameters
            updated = self._m_step(layout, items, draws, parameters, membership, terms)
            parameters, latent = _rescale(updated, latent, layout, items)
            domain_path.append(np.argmax(membership, axis=1))
            same = np.array_equal(domain_path[-1][has_judgments], domain_path[-2][has_judgments])
            change = _median_relative_change(before.expertise, parameters.expertise)
            calm = calm + 1 if same and change < self.tolerance else 0
        return MCEMResult(
            parameters.scores,
            parameters.difficulty,
            parameters.domain_probs,
            membership,
            np.array(np.broadcast_to(parameters.expertise, (n_annotators, self.domains))),
            np.array(values),
            np.array(domain_path),
            calm == _CALM_ITERATIONS,
        )

    def _start(
        self, rng: np.random.Generator, layout: Layout, items: Items, n_annotators: int
    ) -> tuple[Parameters, Latent]:
        queries, judgments = len(items.queries), len(layout.winner_utility)
        utilities = (layout.winner_utility, layout.loser_utility)
        won, lost = (np.bincount(layout.utility_item[side], minlength=len(items)) for side in utilities)
        scores = 3.0 * (won - lost) / (won + lost + 1.0)
        domain_probs, expertise = np.full(self.domains, 1.0 / self.domains), np.ones((n_annotators, self.domains))
        latent = Latent(rng.integers(self.domains, size=queries), scores[layout.utility_item], np.ones(judgments))
        return _rescale(Parameters(scores, np.ones(queries), domain_probs, expertise), latent, layout, items)

    def _m_step(
        self,
        layout: Layout,
        items: Items,
        draws: Draws,
        parameters: Parameters,
        membership: FloatArray,
        terms: ExpertiseDerivatives | None = None,
    ) -> Parameters:
        """The M-step (18) to (22). An item without judgments gets the mean of its query."""
        queries, query = len(items.queries), items.query[layout.utility_item]
        perceived = draws.perceived.mean(axis=0)
        query_mean = _mean_by(query, perceived, queries, 0.0)
        scores = _mean_by(layout.utility_item, perceived, len(items), query_mean[items.query])
        noise_square = np.mean((draws.perceived - scores[layout.utility_item]) ** 2, axis=0)
        overall = noise_square.mean() if len(noise_square) else 1.0
        difficulty = np.full(queries, overall)
        if self.difficulty == "each":
            difficulty = _mean_by(query, noise_square, queries, overall)
        difficulty = np.maximum(difficulty, _MIN_DIFFICULTY * difficulty.mean())
        expertise = update_expertise(layout, draws, parameters.expertise, 1, max_step=1.0, first=terms)
        return Parameters(scores, difficulty, membership.mean(axis=0), expertise)


def _with_one_annotator(layout: Layout) -> Layout:
    """As if one annotator had all perceived utilities."""
    annotator, utility_annotator = np.zeros_like(layout.annotator), np.zeros_like(layout.utility_annotator)
    return layout._replace(annotator=annotator, utility_annotator=utility_annotator)


def _rescale(parameters: Parameters, latent: Latent, layout: Layout, items: Items) -> tuple[Parameters, Latent]:
    """Mean δ² to 1 (16) and the lowest score of each query to 0 (17), by (15)."""
    lowest = np.full(len(items.queries), np.inf)
    np.minimum.at(lowest, items.query, parameters.scores)
    unit, base = np.sqrt(parameters.difficulty.mean()), lowest[items.query]
    scores = (parameters.scores - base) / unit
    expertise = clip_expertise(parameters.expertise * unit)
    perceived = (latent.perceived - base[layout.utility_item]) / unit
    return (
        Parameters(scores, parameters.difficulty / unit**2, parameters.domain_probs, expertise),
        Latent(latent.domain, perceived, latent.noisy_difference / unit),
    )


def _mean_by(codes: AnyArray, values: FloatArray, size: int, default: Any) -> FloatArray:
    """Mean of the values of each code; `default` where there are none."""
    count = np.bincount(codes, minlength=size)
    return np.where(count > 0, np.bincount(codes, values, size) / np.maximum(count, 1), default)


def _median_relative_change(before: FloatArray, after: FloatArray) -> float:
    return float(np.median(np.abs(after / before - 1.0)))


def fit_mcem(model: TPP, comparisons: Comparisons) -> Ranking:
    """The published estimate as a ranking, with bootstrap errors. "auto" means the paper's ten domains."""
    items = comparisons.items
    domains = min(10 if model.domains == "auto" else model.domains, len(items.queries))
    method = MonteCarloEM(domains=domains, expertise=model.expertise, difficulty=model.difficulty, seed=model.seed)
    n_annotators = max(1, len(comparisons.annotators))

    def estimate(sample: Comparisons) -> tuple[MCEMResult, FloatArray, float]:
        result = method.fit(layout_from_comparisons(sample), items, n_annotators)
        scores = items.centre(result.scores)
        spread = max(float(np.sqrt(np.mean(scores**2))), 1e-12)
        return result, scores / spread, spread

    result, scores, spread = estimate(comparisons)
    unit, remedy = "as a share of the median τ", "the published method may never settle"
    ranking = build_ranking(
        model,
        comparisons,
        scores,
        parameters={"domains": float(domains), "spread": spread},
        log_likelihood=float(result.log_likelihood[-1]),
        measure=lambda: bootstrap(
            comparisons, lambda sample: estimate(sample)[1], seed=model.seed, replicates=_BOOTSTRAP_REPLICATES
        ),
        convergence=Convergence(result.converged, len(result.log_likelihood), method.tolerance, unit, remedy),
    )
    counts = judgment_counts(layout_from_comparisons(comparisons), n_annotators)
    expertise = _without_interval(result.expertise)
    difficulty = _without_interval(result.difficulty)
    return attach_domains(ranking, comparisons, expertise, difficulty, result.membership, counts)


def _without_interval(estimate: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    return estimate, estimate, estimate
