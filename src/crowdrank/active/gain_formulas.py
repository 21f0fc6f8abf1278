"""Expected information gain of an answer (Chen et al. 2013, eq. 10).

Annotator k, of quality ηₖ ~ Beta(α, β), compares i with j, believed to be sᵢ ~ N(μᵢ, u) and sⱼ ~ N(μⱼ, v):

C·[KL(i | i wins) + KL(j | i wins) + γ·KL(k | i wins)] + (1 − C)·[… | j wins]

KL of an item of variance u = ½[x − ln(1 + x) + u·slope²],   x = max(u·curvature, κ − 1)
KL of the annotator = h(α, α′) + h(β, β′) − h(α + β, α′ + β′),   h(x, y) = lnΓ(x) − lnΓ(y) − (x − y)ψ(y)

where slope, curvature, α′ and β′ are those of `crowdrank.online.moments`. The gain depends on |μᵢ − μⱼ| and on u and v
in either order, and does not change when α and β are exchanged.

The formulas are elementwise, so that the same code runs on arrays and in compiled loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.inference.special import log_gamma_bregman, x_minus_log1p
from crowdrank.online.moments import MIN_VARIANCE_FACTOR, answer_probability, score_derivatives, win_probability


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
