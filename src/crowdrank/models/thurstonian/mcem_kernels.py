"""Compiled loops of the Monte Carlo EM of Thurstonian pairwise preferences, as published (Wang et al. 2016).

Query l has a domain m_l ~ Mult(θ), a difficulty δ_l² and true scores s_i. Annotator k perceives s⁽ᵏ⁾_i ~ N(s_i, δ_l²)
and prefers a to b if the noisy difference Δs ~ N(sgn(τ_km)(s⁽ᵏ⁾_a − s⁽ᵏ⁾_b), 2τ_km⁻²) is positive. Numbers in brackets
are equations of the paper. The E-step is its blocked Gibbs sampler: m_l given Δs (8), s⁽ᵏ⁾_i (10; the first term of 11
misprints s_i), Δs (13). The M-step updates τ by Newton's method (21, 22), with f of (23) computed through logarithms:
the printed approximation for large x is a constant, whereas f(x) ≈ x.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import compiled
from crowdrank.inference.special import HALF_LOG_TWO_PI, ROOT_HALF, log_normal_cdf_scalar, sample_positive_normal
from crowdrank.models.thurstonian.layout import Layout

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


def expertise_derivatives(layout: Layout, draws: Draws, expertise: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The terms of Q (7) in τ with first and second derivatives (21, 22), as annotators × domains."""
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
    return value, gradient, curvature


def update_expertise(
    layout: Layout, draws: Draws, expertise: AnyArray, steps: int, max_step: float = math.inf
) -> AnyArray:
    """Newton steps for all τ at once, each at most `max_step` long.

    Q is concave in each τ, so the sign of its gradient brackets the optimum: a step that would leave the bracket halves
    it instead. A τ without judgments stays where it is.
    """
    low, high = np.full(expertise.shape, -MAX_EXPERTISE), np.full(expertise.shape, MAX_EXPERTISE)
    for _ in range(steps):
        _, gradient, curvature = expertise_derivatives(layout, draws, expertise)
        low, high = np.where(gradient > 0, expertise, low), np.where(gradient < 0, expertise, high)
        proposal = expertise + np.clip(gradient / np.maximum(-curvature, 1e-100), -max_step, max_step)
        inside = (low < proposal) & (proposal < high) | (gradient == 0)
        expertise = np.where(inside, proposal, 0.5 * (low + high))
    return expertise


def clip_expertise(expertise: AnyArray) -> AnyArray:
    """τ with |τ| between `MIN_EXPERTISE` and `MAX_EXPERTISE`."""
    return np.asarray(np.copysign(np.clip(np.abs(expertise), MIN_EXPERTISE, MAX_EXPERTISE), expertise))


def log_joint(layout: Layout, draws: Draws, parameters: Parameters) -> float:
    """Mean of ln P(D, Z | Θ) (6) over the draws."""
    value, _, _ = expertise_derivatives(layout, draws, parameters.expertise)
    log_prior = np.log(parameters.domain_probs[draws.domain]).sum() / len(draws.domain)
    variance = parameters.difficulty[np.searchsorted(layout.item_starts, layout.utility_item, side="right") - 1]
    noise_square = np.mean((draws.perceived - parameters.scores[layout.utility_item]) ** 2, axis=0)
    return float(
        value.sum() + log_prior - np.sum(0.5 * noise_square / variance + 0.5 * np.log(variance) + HALF_LOG_TWO_PI)
    )


def inverse_mills_scalar(x: float) -> float:
    """φ(x) / Φ(x), which is f(−x) of (23), accurate in both tails."""
    if x > -35.0:
        return math.exp(-0.5 * x * x - HALF_LOG_TWO_PI - log_normal_cdf_scalar(x))
    # Asymptotic series of the Mills ratio: log Φ loses digits this far out.
    y = 1.0 / (x * x)
    return -x / (1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))


@compiled(log_normal_cdf_scalar, inverse_mills_scalar)
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
                f = inverse_mills_scalar(x)
                value[k, m] += log_normal_cdf_scalar(x)
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
