"""Expected information gain of an answer (Chen et al. 2013, eq. 10), and its upper bounds.

Annotator k, of quality ηₖ ~ Beta(α, β), compares i with j, believed to be sᵢ ~ N(μᵢ, u) and sⱼ ~ N(μⱼ, v):

C·[KL(i | i wins) + KL(j | i wins) + γ·KL(k | i wins)] + (1 − C)·[… | j wins]

KL of an item of variance u = ½[x − ln(1 + x) + u·gradient²],   x = max(u·curvature, κ − 1)
KL of the annotator = h(α, α′) + h(β, β′) − h(α + β, α′ + β′),   h(x, y) = lnΓ(x) − lnΓ(y) − (x − y)ψ(y)

where gradient, curvature, α′ and β′ are those of `crowdrank.online.moments`. The gain depends on |μᵢ − μⱼ| and on u and
v in either order, and does not change when α and β are exchanged.

The formulas are elementwise, so that the same code runs on arrays and in compiled loops.

Upper bounds over a box of beliefs, for the branch-and-bound search. A box: the lead |μᵢ − μⱼ| from `low` to `high`,
variances up to u and v, their sum from `min_sum` to `max_sum`. Without loss of generality α ≥ β. C is the probability
of the answer, C₁ that of a truthful annotator, L the logistic function, ℓ = ln α/β.

Proven. At a given lead and C, the divergence of an item grows with its variance, as x − ln(1 + x) grows with |x|. The
gain is linear in C, and C lies between its values at the smallest and the largest variance. The slope of the log
likelihood, L(d + ℓ) − L(d), falls with d ≥ 0; that of the other answer, L(d) − L(d − ℓ), is largest at d = ℓ/2. Their
derivatives are the curvatures, whose own second derivative is at most 1/6 in absolute value, as that of L′ lies between
−1/8 and 1/24.

Checked on wide grids by the tests, but not proven:
- the annotator's part K grows with |C₁ − ½|; in y = logit C₁ it is concave by at most QUALITY_CONCAVITY·K(1), in y² by
  at most QUALITY_CONCAVITY_SQUARED·K(1); `quality_gain_bound` interpolates it to within INTERPOLATION_ERROR·K(1);
- with variances up to MAX_CHORD_VARIANCE, the items' part falls with the lead d; it is concave in d by at most
  M = tanh²(ℓ/4)·[(u + v)/2 + 0.17(u² + v²)/2], in d² by at most ITEM_CONCAVITY_SQUARED·M.

So, up to MAX_CHORD_VARIANCE, the gain over a box is at most the items' part at `low` plus the annotator's at `high`. A
sharper bound for small boxes is the larger of the values at both ends plus concavity·width²/8, where the width is that
of d or of d². For larger variances every gradient and curvature is replaced by its largest value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.inference.special import log_gamma_bregman, x_minus_log1p
from crowdrank.online.moments import MIN_VARIANCE_FACTOR, answer_probability, score_derivatives, win_probability

MAX_CHORD_VARIANCE = 2.8
QUALITY_CONCAVITY = 0.25
ITEM_CONCAVITY_SQUARED = 0.12
QUALITY_CONCAVITY_SQUARED = 0.125
INTERPOLATION_ERROR = 6.2e-7
_KNOTS_PER_UNIT = 16.0
N_KNOTS = 24 * 16 + 3
"""Knots up to y = 24: beyond, C₁ differs from 1 by less than 4e-11, and K(1) is used."""


def item_gain(lead: Any, variance: Any, other: Any, truthful: Any, alpha: Any, beta: Any) -> Any:
    """Expected gain about both items; `lead` is μᵢ − μⱼ, `truthful` the C₁ of the pair."""
    won, lost = item_divergences(lead, variance, other, alpha, beta)
    chance = answer_probability(truthful, alpha, beta)
    return chance * won + (1.0 - chance) * lost


def item_divergences(lead: Any, variance: Any, other: Any, alpha: Any, beta: Any) -> tuple[Any, Any]:
    """KL divergence of both items' posteriors from their priors, after either answer."""
    grad_won, curvature_won = score_derivatives(lead, alpha, beta)
    grad_lost, curvature_lost = score_derivatives(-lead, alpha, beta)
    won = item_divergence(variance, grad_won, curvature_won) + item_divergence(other, grad_won, curvature_won)
    lost = item_divergence(variance, grad_lost, curvature_lost) + item_divergence(other, grad_lost, curvature_lost)
    return won, lost


def item_divergence(variance: Any, grad: Any, curvature: Any) -> Any:
    """KL divergence of one item's posterior from its prior."""
    return 0.5 * (x_minus_log1p(np.maximum(variance * curvature, MIN_VARIANCE_FACTOR - 1.0)) + variance * grad * grad)


def quality_gain(truthful: Any, alpha: Any, beta: Any) -> Any:
    """Expected gain about the annotator's quality."""
    chance = answer_probability(truthful, alpha, beta)
    return chance * quality_divergence(truthful, alpha, beta) + (1.0 - chance) * quality_divergence(
        1.0 - truthful, alpha, beta
    )


def quality_divergence(truthful: Any, alpha: Any, beta: Any) -> Any:
    """KL divergence of the posterior of a quality from its prior."""
    alpha_change, beta_change = quality_increments(truthful, alpha, beta)
    a, b = alpha + alpha_change, beta + beta_change
    return log_gamma_bregman(alpha, a) + log_gamma_bregman(beta, b) - log_gamma_bregman(alpha + beta, a + b)


def quality_increments(truthful: Any, alpha: Any, beta: Any) -> tuple[Any, Any]:
    """α′ − α and β′ − β of `moments.update_quality`, without the digits that the subtraction would lose."""
    total = alpha + beta
    weight = alpha * truthful / (alpha * truthful + beta * (1.0 - truthful))
    mixture = weight * (1.0 - weight)
    a, b = alpha + weight, beta + (1.0 - weight)
    shrinkage = (total + 2.0) * mixture / (a * b + (total + 1.0) * mixture)
    return weight - a * shrinkage, (1.0 - weight) - b * shrinkage


def expected_gain(lead: Any, variance: Any, other: Any, alpha: Any, beta: Any, exploration: Any) -> Any:
    """Eq. 10, in nats; `exploration` is γ."""
    truthful = win_probability(lead, variance + other)
    return item_gain(lead, variance, other, truthful, alpha, beta) + exploration * quality_gain(truthful, alpha, beta)


FORMULAS = (
    x_minus_log1p,
    log_gamma_bregman,
    score_derivatives,
    answer_probability,
    win_probability,
    item_gain,
    item_divergences,
    item_divergence,
    quality_gain,
    quality_divergence,
    quality_increments,
    expected_gain,
)
"""Functions that a compiled loop calls."""


def quality_gain_bound(y: float, alpha: float, beta: float, table: FloatArray) -> float:
    """Upper bound of K(L(y)), at most 2·INTERPOLATION_ERROR·K(1) above it.

    Cubic interpolation through four knots. `table` holds the values at the knots, and nan where none was needed yet.
    """
    place = y * _KNOTS_PER_UNIT
    last = len(table) - 1
    if not place < last - 2.0:
        return float(_knot_value(last, alpha, beta, table))
    k = int(place)
    t = place - k
    before, here = _knot_value(abs(k - 1), alpha, beta, table), _knot_value(k, alpha, beta, table)
    after, beyond = _knot_value(k + 1, alpha, beta, table), _knot_value(k + 2, alpha, beta, table)
    inner = (t + 1.0) * (t - 2.0) * ((t - 1.0) * here - t * after) / 2.0
    outer = t * (t - 1.0) * ((t + 1.0) * beyond - (t - 2.0) * before) / 6.0
    # the interpolation error is this multiple of the fourth derivative; 1e-15 covers rounding
    error = (t + 1.0) * t * (1.0 - t) * (2.0 - t) / 0.5625
    return float(inner + outer + (INTERPOLATION_ERROR * error + 1e-15) * _knot_value(last, alpha, beta, table))


def _knot_value(k: int, alpha: float, beta: float, table: FloatArray) -> Any:
    if np.isnan(table[k]):
        truthful = 1.0 if k == len(table) - 1 else 1.0 / (1.0 + np.exp(-k / _KNOTS_PER_UNIT))
        table[k] = quality_gain(truthful, alpha, beta)
    return table[k]


def item_gain_bound(lead: Any, u: Any, v: Any, min_sum: Any, max_sum: Any, alpha: Any, beta: Any) -> Any:
    """Bound of the items' part at one lead."""
    won, lost = item_divergences(lead, u, v, alpha, beta)
    return _larger_expectation(won, lost, lead, lead, min_sum, max_sum, alpha, beta)


def _larger_expectation(
    won: Any, lost: Any, low: Any, high: Any, min_sum: Any, max_sum: Any, alpha: Any, beta: Any
) -> Any:
    """Expected divergence at the end of the range of C where it is larger."""
    one = answer_probability(win_probability(low, max_sum), alpha, beta)
    other = answer_probability(win_probability(high, min_sum), alpha, beta)
    return lost + np.maximum(one * (won - lost), other * (won - lost))


def wide_item_gain_bound(low: Any, high: Any, u: Any, v: Any, min_sum: Any, max_sum: Any, alpha: Any, beta: Any) -> Any:
    """Bound of the items' part over the box for any variances: every gradient and curvature at its largest."""
    margin = (high - low) ** 2 / 48.0
    grad_won, first = score_derivatives(low, alpha, beta)
    _, last = score_derivatives(high, alpha, beta)
    curvature = np.maximum(np.minimum(first, last) - margin, -0.25)
    won = item_divergence(u, grad_won, curvature) + item_divergence(v, grad_won, curvature)
    steepest = np.minimum(np.maximum(0.5 * np.log(alpha / beta), low), high)
    grad_lost, _ = score_derivatives(-steepest, alpha, beta)
    _, first = score_derivatives(-low, alpha, beta)
    _, last = score_derivatives(-high, alpha, beta)
    smallest = np.maximum(np.minimum(first, last) - margin, -0.25)
    largest = np.minimum(np.maximum(first, last) + margin, 0.25)
    lost = np.maximum(item_divergence(u, grad_lost, smallest), item_divergence(u, grad_lost, largest)) + np.maximum(
        item_divergence(v, grad_lost, smallest), item_divergence(v, grad_lost, largest)
    )
    return _larger_expectation(won, lost, low, high, min_sum, max_sum, alpha, beta)


def gain_bound(
    low: float,
    high: float,
    u: float,
    v: float,
    min_sum: float,
    max_sum: float,
    alpha: float,
    beta: float,
    exploration: float,
    table: FloatArray,
) -> float:
    """Upper bound of the gain over the box."""
    scale = np.sqrt(1.0 + 0.125 * np.pi * min_sum)
    quality_high = exploration * quality_gain_bound(high / scale, alpha, beta, table) if exploration > 0.0 else 0.0
    if max(u, v) > MAX_CHORD_VARIANCE:
        return float(wide_item_gain_bound(low, high, u, v, min_sum, max_sum, alpha, beta) + quality_high)
    items_low = float(item_gain_bound(low, u, v, min_sum, max_sum, alpha, beta))
    if exploration == 0.0:
        return items_low
    quality_low = exploration * quality_gain_bound(low / scale, alpha, beta, table)
    bulge = chord_bound(low, high, u, v, scale, alpha, beta, exploration * table[-1])
    if bulge >= quality_high - quality_low:
        return float(items_low + quality_high)
    items_high = float(item_gain_bound(high, u, v, min_sum, max_sum, alpha, beta))
    return float(min(items_low + quality_high, max(items_low + quality_low, items_high + quality_high) + bulge))


def chord_bound(low: Any, high: Any, u: Any, v: Any, scale: Any, alpha: Any, beta: Any, quality: Any) -> Any:
    """How far the gain can exceed the chord between both ends; `quality` is γK(1), `scale` √(1 + π·min_sum/8)."""
    # tanh(ℓ/4), of ℓ = ln α/β
    tanh = (np.sqrt(alpha) - np.sqrt(beta)) / (np.sqrt(alpha) + np.sqrt(beta))
    items = tanh * tanh * (0.5 * (u + v) + 0.085 * (u * u + v * v))
    quality = quality / (scale * scale)
    width, square_width = high - low, (high - low) * (high + low)
    concavity = items + QUALITY_CONCAVITY * quality
    square_concavity = ITEM_CONCAVITY_SQUARED * items + QUALITY_CONCAVITY_SQUARED * quality / (scale * scale)
    return 0.125 * np.minimum(concavity * width * width, square_concavity * square_width * square_width)


BOUND_FORMULAS = (
    *FORMULAS,
    quality_gain_bound,
    _knot_value,
    item_gain_bound,
    _larger_expectation,
    wide_item_gain_bound,
    gain_bound,
    chord_bound,
)
"""Functions that a compiled loop calls, with the bounds."""
