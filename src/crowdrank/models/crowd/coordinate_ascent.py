"""Crowd-BT's published procedure (§3.3): optimise the scores with the annotators fixed, then set each η, and repeat.

log(η·p + (1−η)·q) is concave in η, so the best η of an annotator between 0 and 1 is unique and needs no start.
"""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize
from crowdrank.models.crowd import likelihood
from crowdrank.models.crowd.objective import Objective
from crowdrank.models.crowd.quality_constraints import PERFECT_LOGIT

# No score moves further in one Newton step, because the objective is not concave.
MAX_STEP = 2.0
_MAX_BISECTIONS = 60


def coordinate_ascent(objective: Objective, start: FloatArray, *, tolerance: float, max_steps: int) -> OptimizeResult:
    """Alternate until scores and qualities together are within `tolerance` standard errors of the optimum."""
    x = start
    for step in range(1, max_steps + 1):
        x = alternate_once(objective, x, tolerance)
        found = objective(x)
        distance = _distance(found)
        if distance <= tolerance:
            return OptimizeResult(x, found, step, distance, True)
    return OptimizeResult(x, found, max_steps, distance, False)


def alternate_once(objective: Objective, x: FloatArray, tolerance: float) -> FloatArray:
    """Optimise the scores, then the qualities; with constraints, which are on the logits, also by Newton's method."""
    scores, logits, feature_weights = objective.layout.split(x)
    found = maximize(objective.of_scores(logits, feature_weights), scores, tolerance=tolerance / 3, max_step=MAX_STEP)
    scores, logits = found.parameters, best_logits(objective, found.parameters)
    if constraints := objective.priors.constraints:
        of_logits = objective.of_logits(scores, feature_weights)
        start = constraints.project(logits)
        logits = maximize(of_logits, start, tolerance=tolerance / 3, max_step=MAX_STEP).parameters
    return objective.layout.join(scores, logits, feature_weights)


def best_logits(objective: Objective, scores: FloatArray) -> FloatArray:
    """Logit of the best η of each annotator given the scores, without constraints: Newton's method with bisection."""
    alpha, beta = objective.priors.quality or (0.0, 0.0)
    low, high = np.zeros(objective.layout.annotators), np.ones(objective.layout.annotators)
    eta = np.full(len(low), 0.75)
    for _ in range(_MAX_BISECTIONS):
        gradient, curvature = objective.shards.sum(likelihood.quality_derivatives, scores, eta, objective.formula)
        with np.errstate(divide="ignore", invalid="ignore"):
            gradient = gradient + np.where(alpha > 0, alpha / eta, 0.0) - np.where(beta > 0, beta / (1 - eta), 0.0)
            curvature = curvature + np.where(alpha > 0, alpha / eta**2, 0.0)
            curvature = curvature + np.where(beta > 0, beta / (1 - eta) ** 2, 0.0)
            newton = eta + gradient / curvature
        low, high = np.where(gradient > 0, eta, low), np.where(gradient < 0, eta, high)
        # a Newton step that leaves the bracket, or is undefined, is replaced by bisection
        inside = np.isfinite(newton) & (newton > low) & (newton < high)
        moved = np.where(gradient == 0, eta, np.where(inside, newton, (low + high) / 2))
        settled = np.abs(moved - eta) <= 1e-13
        eta = moved
        if settled.all():
            break
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(eta) - np.log1p(-eta), -PERFECT_LOGIT, PERFECT_LOGIT))


def _distance(found: Evaluation) -> float:
    """Distance to the joint optimum of scores and qualities, in standard errors: √(gᵀH⁻¹g)."""
    gain = float(found.gradient @ found.curvature.solve(found.gradient, 1e-3))
    return float(np.sqrt(max(gain, 0.0)))
