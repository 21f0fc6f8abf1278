"""Moment matching for Crowd-BT (Chen et al. 2013, §4.1): sᵢ ~ N(μᵢ, σᵢ²), ηₖ ~ Beta(α, β), all independent.

Annotator k says that i beats j. With d = μᵢ − μⱼ, p = 1/(1 + e⁻ᵈ) and q = αp/(αp + β(1 − p)):

μᵢ ← μᵢ + σᵢ²(q − p),   μⱼ ← μⱼ − σⱼ²(q − p)                     (12, 13)
σ² ← σ²·max(1 + σ²(q(1 − q) − p(1 − p)), κ)   of both               (14, 15)
C₁ = E[1/(1 + e⁻⁽ˢⁱ⁻ˢʲ⁾)],   C = (αC₁ + β(1 − C₁))/(α + β)        (16)

and α, β from the mean and variance of η after the answer (17, 18). Eq. 19 approximates C₁ by a Taylor series, which
leaves [0, 1] when σᵢ² + σⱼ² is large; MacKay's scaling, C₁ ≈ 1/(1 + exp(−d/√(1 + π(σᵢ² + σⱼ²)/8))), never does.

The formulas are elementwise, so that the same code runs on arrays and in compiled loops. `exact_score_derivatives`,
`fold` and `fantasize` work on single numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from crowdrank.arrays import IntArray
from crowdrank.engines.compilation import compiled
from crowdrank.online.beliefs import Beliefs

_LARGEST_EXPONENT = 700.0
MIN_VARIANCE_FACTOR = 1e-4
"""κ: an update leaves at least this share of a variance."""

Triplet = tuple[int, int, int]
"""Codes of two items, the smaller first, and of an annotator."""


def score_derivatives(lead: Any, alpha: Any, beta: Any) -> tuple[Any, Any]:
    """First and second derivative of the answer's log likelihood in d: q − p and q(1 − q) − p(1 − p).

    `lead` is d = μᵢ − μⱼ. The first moves the means, the second scales the variances.
    """
    p = 1.0 / (1.0 + np.exp(np.minimum(-lead, 700.0)))
    p_variance = p * (1.0 - p)
    evidence = alpha * p + beta * (1.0 - p)
    return (alpha - beta) * p_variance / evidence, p_variance * (alpha * beta / (evidence * evidence) - 1.0)


def variance_factor(variance: Any, curvature: Any) -> Any:
    """Factor by which an answer scales a variance (14, 15)."""
    return np.maximum(1.0 + variance * curvature, MIN_VARIANCE_FACTOR)


def win_probability(lead: Any, variance: Any) -> Any:
    """C₁ by MacKay's scaling: probability that a truthful annotator prefers i; `variance` is σᵢ² + σⱼ²."""
    return 1.0 / (1.0 + np.exp(np.minimum(-lead / np.sqrt(1.0 + 0.125 * np.pi * variance), 700.0)))


def win_probability_taylor(lead: Any, variance: Any) -> Any:
    """C₁ by the Taylor series of (19), which leaves [0, 1] for large variances."""
    p = 1.0 / (1.0 + np.exp(np.minimum(-lead, 700.0)))
    return p + 0.5 * variance * p * (1.0 - p) * (1.0 - 2.0 * p)


def answer_probability(truthful: Any, alpha: Any, beta: Any) -> Any:
    """C (16): probability of the answer that a truthful annotator gives with probability `truthful`."""
    return (alpha * truthful + beta * (1.0 - truthful)) / (alpha + beta)


def update_quality(truthful: Any, alpha: Any, beta: Any) -> tuple[Any, Any]:
    """α and β after the answer (17, 18).

    The posterior of η is the mixture w·Beta(α + 1, β) + (1 − w)·Beta(α, β + 1) with w = αC₁/(αC₁ + β(1 − C₁)); its
    mean and variance are matched by one Beta distribution.
    """
    total = alpha + beta
    weight = alpha * truthful / (alpha * truthful + beta * (1.0 - truthful))
    mean = (alpha + weight) / (total + 1.0)
    # α′ + β′ = E[η(1 − η)] / Var η, written without Var η itself: that is a difference of two close numbers
    numerator = alpha * beta + weight * beta + (1.0 - weight) * alpha
    count = (total + 1.0) * numerator / (numerator + (total + 2.0) * weight * (1.0 - weight))
    return count * mean, count * (1.0 - mean)


def near_sums(lead: float, variance: float, step: float, n_steps: int) -> tuple[float, float, float, float]:
    """Weighted sums of 1, F, f′ and f″ for F = σ(d) over d = lead ± n·step, with weights exp(−½(n·step)²/variance).

    Exponentials follow from those of the neighbouring d by a multiplication.
    """
    above = below = math.exp(lead)
    grow = math.exp(step)
    shrink = 1.0 / grow
    weight, ratio = 1.0, math.exp(-0.5 * step * step / variance)
    square = ratio * ratio
    inverse = 1.0 / (1.0 + above)
    truthful = above * inverse
    first = truthful * inverse
    total, second = 1.0, first * (inverse - truthful)
    for _ in range(n_steps):
        weight *= ratio
        ratio *= square
        above *= grow
        below *= shrink
        a, b = 1.0 / (1.0 + above), 1.0 / (1.0 + below)
        p, q = above * a, below * b
        total += 2.0 * weight
        truthful += weight * (p + q)
        first += weight * (p * a + q * b)
        second += weight * (p * a * (a - p) + q * b * (b - q))
    return total, truthful, first, second


def far_sums(lead: float, variance: float, step: float, n_steps: int) -> tuple[float, float, float, float]:
    """Like `near_sums`, where e^d would overflow."""
    total = truthful = first = second = 0.0
    for n in range(-n_steps, n_steps + 1):
        weight = math.exp(-0.5 * (n * step) ** 2 / variance)
        d = lead + n * step
        e = math.exp(-abs(d))
        p_variance = e / ((1.0 + e) * (1.0 + e))
        p = (1.0 if d > 0 else e) / (1.0 + e)
        total += weight
        truthful += weight * p
        first += weight * p_variance
        second += weight * p_variance * (1.0 - 2.0 * p)
    return total, truthful, first, second


def exact_score_derivatives(lead: float, variance: float, alpha: float, beta: float) -> tuple[float, float, float]:
    """Like `score_derivatives`, but averaged over d by numerical integration; the third number is C₁.

    `variance` is σᵢ² + σⱼ². The answer depends on d = sᵢ − sⱼ ~ N(lead, variance) alone, with likelihood proportional
    to f(d) = β + (α − β)·F(d), F logistic. By Stein's lemma the posterior moments of d, and so those of both scores,
    follow from E f′/E f and E f″/E f.
    """
    # Trapezoidal rule: its errors are exp(−2π²/step), from the poles of F at ±iπ, and exp(−2π²·variance/step²).
    deviation = math.sqrt(variance)
    step = min(0.6, 0.7 * deviation)
    n_steps = int(9.0 * deviation / step)
    if abs(lead) + 10.0 * deviation < _LARGEST_EXPONENT:
        total, truthful, first, second = near_sums(lead, variance, step, n_steps)
    else:
        total, truthful, first, second = far_sums(lead, variance, step, n_steps)
    scale = (alpha - beta) / (beta * total + (alpha - beta) * truthful)
    return scale * first, scale * second - (scale * first) ** 2, truthful / total


@compiled(
    score_derivatives,
    win_probability,
    win_probability_taylor,
    update_quality,
    near_sums,
    far_sums,
    exact_score_derivatives,
)
def fold(  # type: ignore[no-untyped-def]
    left, right, outcome, annotator, weight, mean, variance, alpha, beta, exact, taylor, ties
):
    """Update the columns in place, row by row. An answer of weight w is applied w times, a fraction in part.

    If `ties`, a tie counts as half an answer for each side; else it is dropped. Returns how often eq. 19 left [0, 1].
    """
    outside = 0
    for row in range(len(left)):
        i, j, k = left[row], right[row], annotator[row]
        rest = weight[row] if ties or outcome[row] != 0 else 0.0
        while rest > 0.0:
            part = min(rest, 1.0)
            rest -= part
            lead, both = mean[i] - mean[j], variance[i] + variance[j]
            shift = alpha_change = beta_change = 0.0
            factor_i = factor_j = 1.0
            for side in (1, -1):
                share = part * 0.5 * (1.0 + side * outcome[row])
                if share == 0.0:
                    continue
                if exact:
                    gradient, curvature, truthful = exact_score_derivatives(side * lead, both, alpha[k], beta[k])
                else:
                    gradient, curvature = score_derivatives(side * lead, alpha[k], beta[k])
                    truthful = win_probability(side * lead, both)
                    if taylor:
                        series = win_probability_taylor(side * lead, both)
                        if 0.0 < series < 1.0:
                            truthful = series
                        else:
                            outside += 1
                new_alpha, new_beta = update_quality(truthful, alpha[k], beta[k])
                shift += share * side * gradient
                # `variance_factor` without NumPy's function, which takes long on a single number
                factor_i += share * (max(1.0 + variance[i] * curvature, MIN_VARIANCE_FACTOR) - 1.0)
                factor_j += share * (max(1.0 + variance[j] * curvature, MIN_VARIANCE_FACTOR) - 1.0)
                alpha_change += share * (new_alpha - alpha[k])
                beta_change += share * (new_beta - beta[k])
            mean[i] += variance[i] * shift
            mean[j] -= variance[j] * shift
            variance[i] *= factor_i
            variance[j] *= factor_j
            alpha[k] += alpha_change
            beta[k] += beta_change
    return outside


def fantasized(beliefs: Beliefs, pending: Iterable[Triplet]) -> Beliefs:
    """Return the beliefs expected once pending answers have come, whatever they say.

    Means stay as they are. Variances shrink, and the pseudo-counts of annotators grow, by their expected amounts.
    """
    mean, variance = beliefs.mean, beliefs.variance.copy()
    alpha, beta = beliefs.alpha.copy(), beliefs.beta.copy()
    for i, j, k in _independent_groups(pending):
        a, b, lead = alpha[k], beta[k], mean[i] - mean[j]
        truthful = win_probability(lead, variance[i] + variance[j])
        chance = answer_probability(truthful, a, b)
        won, lost = (score_derivatives(d, a, b)[1] for d in (lead, -lead))
        for item in (i, j):
            before = variance[item]
            factor = chance * variance_factor(before, won) + (1 - chance) * variance_factor(before, lost)
            variance[item] = before * factor
        count_won, count_lost = (sum(update_quality(p, a, b)) for p in (truthful, 1 - truthful))
        growth = (chance * count_won + (1 - chance) * count_lost) / (a + b)
        alpha[k], beta[k] = a * growth, b * growth
    return beliefs.replace(
        item_columns={**beliefs.item_columns, "variance": variance},
        annotator_columns={**beliefs.annotator_columns, "alpha": alpha, "beta": beta},
    )


@compiled(answer_probability, win_probability, score_derivatives, update_quality, variance_factor)
def fantasize(pending, mean, variance, alpha, beta):  # type: ignore[no-untyped-def]
    """Like `fantasized`, but compiled, in place and one triplet after the other.

    For the server, which asks so often that the compiler is loaded anyway. `pending` has one triplet per row.
    """
    for row in range(len(pending)):
        i, j, k = pending[row]
        a, b, lead = alpha[k], beta[k], mean[i] - mean[j]
        truthful = win_probability(lead, variance[i] + variance[j])
        chance = answer_probability(truthful, a, b)
        won, lost = score_derivatives(lead, a, b)[1], score_derivatives(-lead, a, b)[1]
        for item in (i, j):
            before = variance[item]
            variance[item] = before * (
                chance * variance_factor(before, won) + (1 - chance) * variance_factor(before, lost)
            )
        after_win, after_loss = update_quality(truthful, a, b), update_quality(1 - truthful, a, b)
        growth = (chance * (after_win[0] + after_win[1]) + (1 - chance) * (after_loss[0] + after_loss[1])) / (a + b)
        alpha[k], beta[k] = a * growth, b * growth


def _independent_groups(triplets: Iterable[Triplet]) -> Iterator[IntArray]:
    """Group triplets that share no item and no annotator, keeping their order; yields the rows i, j and k."""
    groups: list[list[Triplet]] = []
    next_of_item: dict[int, int] = {}
    next_of_annotator: dict[int, int] = {}
    for i, j, k in triplets:
        n = max(next_of_item.get(i, 0), next_of_item.get(j, 0), next_of_annotator.get(k, 0))
        if n == len(groups):
            groups.append([])
        groups[n].append((i, j, k))
        next_of_item[i] = next_of_item[j] = next_of_annotator[k] = n + 1
    for group in groups:
        yield np.array(group, np.int64).T
