"""Compiled kernels that sum the qualities out over a grid, and draw them from it (collapsed Gibbs steps)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Points of the grid, where its steps begin to widen, and its largest logit.
GRID_POINTS, _GRID_LINEAR_RANGE, MAX_LOGIT = 24, 3.0, 34.5


def build_grids(
    quality: Any,
    low: Any,
    high: Any,
    collapsed: Any,
    free: Any,
    eta: Any,
    log_eta: Any,
    log_one_minus_eta: Any,
    jacobian: Any,
    place: Any,
) -> Any:
    """Build a grid through the η of every annotator: equal steps in x, where logit η = _GRID_LINEAR_RANGE·sinh x.

    Every point of a grid would build the same grid. Given the grid η is therefore a discrete variable, and summing it
    out is exact however coarse the grid is. `jacobian` is dη/dx over η(1 − η), up to a constant, and 0 outside the
    bounds; annotators that are not `collapsed` have their own η only.
    """
    step = 2.0 * math.asinh(MAX_LOGIT / _GRID_LINEAR_RANGE) / GRID_POINTS
    growth = math.exp(step)
    for k in range(len(quality)):
        logit = math.log(quality[k]) - math.log1p(-quality[k]) if free[k] else 0.0
        position = math.asinh(logit / _GRID_LINEAR_RANGE) / step + 0.5 * GRID_POINTS
        own = min(GRID_POINTS - 1, max(0, math.floor(position)))
        place[k] = own
        power = math.exp((position - own - 0.5 * GRID_POINTS) * step)
        for g in range(GRID_POINTS):
            logit = 0.5 * _GRID_LINEAR_RANGE * (power - 1.0 / power)
            smaller_odds = math.exp(-abs(logit))
            log_larger = -math.log1p(smaller_odds)
            larger = 1.0 / (1.0 + smaller_odds)
            if logit > 0:
                eta[k, g], log_eta[k, g], log_one_minus_eta[k, g] = larger, log_larger, log_larger - logit
            else:
                eta[k, g], log_eta[k, g], log_one_minus_eta[k, g] = (
                    smaller_odds * larger,
                    log_larger + logit,
                    log_larger,
                )
            inside = low[k] < eta[k, g] < high[k] and abs(logit) < MAX_LOGIT
            jacobian[k, g] = power + 1.0 / power if collapsed[k] and inside else 0.0
            power *= growth
        eta[k, own] = quality[k]
        if not jacobian[k, own] > 0.0:
            jacobian[k, own] = 1.0
        if not free[k]:
            log_eta[k, own], log_one_minus_eta[k, own] = 0.0, 0.0


def grid_log_likelihoods(
    eta: Any,
    starts: Any,
    rows: Any,
    weight: Any,
    p_truthful: Any,
    found: Any,
) -> Any:
    """Log-likelihood of every annotator's answers at every point of its grid."""
    product = np.empty(GRID_POINTS)
    for k in range(len(eta)):
        found[k, :] = 0.0
        product[:] = 1.0
        pending = 0
        for at in range(starts[k], starts[k + 1]):
            row = rows[at]
            p_if_untruthful, gain = 1.0 - p_truthful[row], 2.0 * p_truthful[row] - 1.0
            if weight[row] == 1.0:
                for g in range(GRID_POINTS):
                    product[g] *= p_if_untruthful + gain * eta[k, g]
                pending += 1
                if pending == 16:  # a probability is at least 1e-16, so a product of sixteen does not underflow
                    for g in range(GRID_POINTS):
                        found[k, g] += math.log(product[g])
                        product[g] = 1.0
                    pending = 0
            else:
                for g in range(GRID_POINTS):
                    found[k, g] += weight[row] * math.log(p_if_untruthful + gain * eta[k, g])
        if pending:
            for g in range(GRID_POINTS):
                found[k, g] += math.log(product[g])


def log_marginal(
    alpha: Any,
    beta: Any,
    log_eta: Any,
    log_one_minus_eta: Any,
    jacobian: Any,
    log_lik: Any,
    mass: Any,
) -> Any:
    """Log posterior with every η summed out over its grid. Writes the terms of each sum to `mass`."""
    total = 0.0
    for k in range(len(log_lik)):
        largest = -np.inf
        for g in range(GRID_POINTS):
            if jacobian[k, g] > 0.0:
                mass[k, g] = alpha * log_eta[k, g] + beta * log_one_minus_eta[k, g] + log_lik[k, g]
                largest = max(largest, mass[k, g])
        total_mass = 0.0
        for g in range(GRID_POINTS):
            if jacobian[k, g] > 0.0:
                mass[k, g] = jacobian[k, g] * math.exp(mass[k, g] - largest) if mass[k, g] > largest - 40.0 else 0.0
                total_mass += mass[k, g]
            else:
                mass[k, g] = 0.0
        total += largest + math.log(total_mass)
    return total


def draw_quality_from_grid(
    rng: Any,
    mass: Any,
    eta: Any,
    place: Any,
    quality: Any,
    starts: Any,
    rows: Any,
    p_truthful: Any,
    p_answer: Any,
) -> Any:
    """Gibbs draw of every η from its grid."""
    for k in range(len(quality)):
        remaining = rng.random() * np.sum(mass[k])
        g = 0
        while g < GRID_POINTS - 1 and remaining >= mass[k, g]:
            remaining -= mass[k, g]
            g += 1
        if mass[k, g] > 0.0:
            quality[k] = eta[k, g]
        for at in range(starts[k], starts[k + 1]):
            row = rows[at]
            p_answer[row] = 1.0 - quality[k] + (2.0 * quality[k] - 1.0) * p_truthful[row]
