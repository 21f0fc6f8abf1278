"""Monte Carlo EM for Thurstonian pairwise preferences as published (Wang et al. 2016), as compiled loops.

Query l has a domain m_l ~ Mult(θ), difficulty δ_l² and true scores s_i; annotator k perceives s⁽ᵏ⁾_i ~ N(s_i, δ_l²)
and says a above b where the noisy difference Δs ~ N(sgn(τ_km)(s⁽ᵏ⁾_a − s⁽ᵏ⁾_b), 2τ_km⁻²) is positive. The E-step is the
paper's blocked Gibbs sampler: m_l given Δs (8), s⁽ᵏ⁾_i (10; the first term of 11 misprints s_i), Δs (13). The M-step's
Newton for τ is (21, 22), with f of (23) through logs: what is printed for large x is a constant, where f(x) ≈ x.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import compiled
from crowdrank.inference.special import HALF_LOG_TWO_PI, ROOT_HALF, log_cdf_of_number
from crowdrank.inference.truncated_normal import positive_normal
from crowdrank.models.thurstonian.layout import Sights

LEAST, LARGEST = 1e-3, 100.0
"""Where |τ| is kept: noisy differences are of width 1/|τ|, and unanimous answers would have it grow for ever."""


class Parameters(NamedTuple):
    """Θ, what EM climbs in."""

    scores: AnyArray
    difficulty: AnyArray
    """δ² of each query."""
    shares: AnyArray
    """θ, the share of each domain."""
    expertise: AnyArray
    """τ, annotators × domains; never zero."""


class Latent(NamedTuple):
    """Z and V, where the chain is; a walk changes them in place."""

    domain: AnyArray
    seen: AnyArray
    """The perceived score of each sight."""
    noisy: AnyArray
    """Δs of each judgment."""


class Draws(NamedTuple):
    """What a walk passed through, one row a sweep that was kept."""

    domain: AnyArray
    seen: AnyArray


def walk(rng: np.random.Generator, sights: Sights, at: Parameters, latent: Latent, warmup: int, sweeps: int) -> Draws:
    """The E-step: so many sweeps after a warm-up."""
    s = sights
    draws = Draws(np.empty((sweeps, len(latent.domain)), np.int64), np.empty((sweeps, len(latent.seen))))
    _walk(
        rng,
        *at,
        *latent,
        *draws,
        s.winner,
        s.loser,
        s.annotator,
        s.judgment_starts,
        s.item_starts,
        s.sight_starts,
        s.touch_starts,
        s.touch_row,
        s.touch_other,
        s.touch_sign,
        s.annotator_of_sight,
        s.item,
        warmup,
    )
    return draws


def slopes(sights: Sights, draws: Draws, expertise: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The part of Q (7) that τ is in, with its first and second derivatives (21, 22); annotators × domains."""
    value, slope, bend = (np.zeros(expertise.shape) for _ in range(3))
    s = sights
    _slopes(expertise, *draws, s.winner, s.loser, s.annotator, s.judgment_starts, value, slope, bend)
    return value, slope, bend


def climb(sights: Sights, draws: Draws, expertise: AnyArray, steps: int, longest: float = math.inf) -> AnyArray:
    """Newton's method for every τ at once: so many steps, none longer than `longest`.

    Q is concave in each τ, so the sign of its slope says on which side the top lies: a step that would leave the
    interval known to hold it halves the interval instead. A τ that no judgment tells of stays where it is.
    """
    low, high = np.full(expertise.shape, -LARGEST), np.full(expertise.shape, LARGEST)
    for _ in range(steps):
        _, slope, bend = slopes(sights, draws, expertise)
        low, high = np.where(slope > 0, expertise, low), np.where(slope < 0, expertise, high)
        there = expertise + np.clip(slope / np.maximum(-bend, 1e-100), -longest, longest)
        inside = (low < there) & (there < high) | (slope == 0)
        expertise = np.where(inside, there, 0.5 * (low + high))
    return expertise


def bounded(expertise: AnyArray) -> AnyArray:
    """τ with |τ| brought between `LEAST` and `LARGEST`."""
    return np.asarray(np.copysign(np.clip(np.abs(expertise), LEAST, LARGEST), expertise))


def log_joint(sights: Sights, draws: Draws, at: Parameters) -> float:
    """The mean over the draws of ln P(D, Z | Θ) (6)."""
    value, _, _ = slopes(sights, draws, at.expertise)
    belonging = np.log(at.shares[draws.domain]).sum() / len(draws.domain)
    spread = at.difficulty[np.searchsorted(sights.item_starts, sights.item, side="right") - 1]
    blur = np.mean((draws.seen - at.scores[sights.item]) ** 2, axis=0)
    return float(value.sum() + belonging - np.sum(0.5 * blur / spread + 0.5 * np.log(spread) + HALF_LOG_TWO_PI))


def hazard_of_number(x: float) -> float:
    """φ(x) / Φ(x), which is f(−x) of (23), however far out."""
    if x > -35.0:
        return math.exp(-0.5 * x * x - HALF_LOG_TWO_PI - log_cdf_of_number(x))
    y = 1.0 / (x * x)
    return -x / (1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))


@compiled(log_cdf_of_number, hazard_of_number)
def _slopes(  # type: ignore[no-untyped-def]
    expertise, domains, seen, winner, loser, annotator, judgment_starts, value, slope, bend
):
    for draw in range(len(domains)):
        for query in range(len(judgment_starts) - 1):
            m = domains[draw, query]
            for row in range(judgment_starts[query], judgment_starts[query + 1]):
                k = annotator[row]
                apart = ROOT_HALF * (seen[draw, winner[row]] - seen[draw, loser[row]])
                x = expertise[k, m] * apart
                f = hazard_of_number(x)
                value[k, m] += log_cdf_of_number(x)
                slope[k, m] += apart * f
                bend[k, m] -= apart * apart * f * max(f + x, 0.0)
    value /= len(domains)
    slope /= len(domains)
    bend /= len(domains)


def _draw_domain(
    rng: Any,
    expertise: Any,
    shares: Any,
    seen: Any,
    noisy: Any,
    winner: Any,
    loser: Any,
    annotator: Any,
    start: Any,
    end: Any,
    count: Any,
    squares: Any,
    along: Any,
    gain: Any,
) -> Any:
    """(8); Δs² + (s_a − s_b)² and Δs(s_a − s_b) summed by annotator are all that it depends on."""
    count[:], squares[:], along[:] = 0.0, 0.0, 0.0
    for row in range(start, end):
        k, apart = annotator[row], seen[winner[row]] - seen[loser[row]]
        count[k] += 1.0
        squares[k] += noisy[row] * noisy[row] + apart * apart
        along[k] += noisy[row] * apart
    for m in range(len(shares)):
        gain[m] = math.log(shares[m]) if shares[m] > 0.0 else -math.inf
        for k in range(len(count)):
            if count[k] > 0.0:
                tau = expertise[k, m]
                off = squares[k] - 2.0 * math.copysign(1.0, tau) * along[k]
                gain[m] += count[k] * math.log(abs(tau)) - 0.25 * tau * tau * off
    best, total = np.argmax(gain), 0.0
    top = gain[best]
    for m in range(len(shares)):
        gain[m] = math.exp(gain[m] - top)
        total += gain[m]
    left = total * rng.random()
    for m in range(len(shares)):
        left -= gain[m]
        if left < 0.0:
            return m
    return best


@compiled(_draw_domain, positive_normal)
def _walk(  # type: ignore[no-untyped-def]
    rng,
    scores,
    difficulty,
    shares,
    expertise,
    domain,
    seen,
    noisy,
    kept_domain,
    kept_seen,
    winner,
    loser,
    annotator,
    judgment_starts,
    item_starts,
    sight_starts,
    touch_starts,
    touch_row,
    touch_other,
    touch_sign,
    who,
    item,
    warmup,
):
    people, gain = len(expertise), np.empty(len(shares))
    count, squares, along = np.empty(people), np.empty(people), np.empty(people)
    for sweep in range(warmup + len(kept_domain)):
        for query in range(len(domain)):
            start, end = judgment_starts[query], judgment_starts[query + 1]
            domain[query] = _draw_domain(
                rng, expertise, shares, seen, noisy, winner, loser, annotator, start, end, count, squares, along, gain
            )
            m, precise = domain[query], 1.0 / difficulty[query]
            first, last = sight_starts[item_starts[query]], sight_starts[item_starts[query + 1]]
            for sight in range(first, last):
                tau = expertise[who[sight], m]
                weight, side = 0.5 * tau * tau, math.copysign(1.0, tau)
                linear, precision = precise * scores[item[sight]], precise
                for touch in range(touch_starts[sight], touch_starts[sight + 1]):
                    told = touch_sign[touch] * side * noisy[touch_row[touch]]
                    linear += weight * (seen[touch_other[touch]] + told)
                    precision += weight
                seen[sight] = linear / precision + rng.standard_normal() / math.sqrt(precision)
            for row in range(start, end):
                tau = expertise[annotator[row], m]
                margin = tau * ROOT_HALF * (seen[winner[row]] - seen[loser[row]])
                noisy[row] = positive_normal(rng, margin) / (ROOT_HALF * abs(tau))
        if sweep >= warmup:
            kept_domain[sweep - warmup] = domain
            kept_seen[sweep - warmup] = seen
