"""Scores and qualities in turn (Crowd-BT §3.3): the scores climb with the annotators held, then each η is set exactly.

log(η·p + (1−η)·q) is concave in η, so an annotator's best η between 0 and 1 is one number, found without a start.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdrank.likelihoods import annotated as likelihood
from crowdrank.models.annotated.hints import PERFECT
from crowdrank.models.annotated.objective import Objective
from crowdrank.solvers.newton import Found, Point, climb

Vector = npt.NDArray[np.float64]

# No score moves further than this in one step of a climb that is not concave.
LONGEST_STEP = 2.0
_MOST_HALVINGS = 60


def climb_in_turns(objective: Objective, start: Vector, *, tolerance: float, max_steps: int) -> Found:
    """Turns until scores and qualities together are within `tolerance` standard errors of the summit."""
    x = start
    for step in range(1, max_steps + 1):
        x = one_turn(objective, x, tolerance)
        point = objective(x)
        distance = _distance(point)
        if distance <= tolerance:
            return Found(x, point, step, distance, True)
    return Found(x, point, max_steps, distance, False)


def one_turn(objective: Objective, x: Vector, tolerance: float) -> Vector:
    """Scores, then qualities; what is known of annotators is on the scale of gates, so there these end."""
    scores, gates, pulls = objective.layout.split(x)
    found = climb(objective.of_scores(gates, pulls), scores, tolerance=tolerance / 3, longest=LONGEST_STEP)
    scores, gates = found.parameters, best_gates(objective, found.parameters)
    if hints := objective.priors.hints:
        of_gates = objective.of_gates(scores, pulls)
        gates = climb(of_gates, hints.held(gates), tolerance=tolerance / 3, longest=LONGEST_STEP).parameters
    return objective.layout.join(scores, gates, pulls)


def best_gates(objective: Objective, scores: Vector) -> Vector:
    """The logit of the best η of each annotator given the scores: Newton's steps inside a bracket that halves.

    What is known of single annotators is not asked here.
    """
    truths, lies = objective.priors.quality or (0.0, 0.0)
    low, high = np.zeros(objective.layout.annotators), np.ones(objective.layout.annotators)
    eta = np.full(len(low), 0.75)
    for _ in range(_MOST_HALVINGS):
        slope, bend = objective.held.total(likelihood.by_truth, scores, eta, objective.formula)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = slope + np.where(truths > 0, truths / eta, 0.0) - np.where(lies > 0, lies / (1 - eta), 0.0)
            bend = bend + np.where(truths > 0, truths / eta**2, 0.0) + np.where(lies > 0, lies / (1 - eta) ** 2, 0.0)
            wished = eta + slope / bend
        low, high = np.where(slope > 0, eta, low), np.where(slope < 0, eta, high)
        # a step that leaves the bracket, or has nowhere to go, halves it instead; its ends are tried as they are
        inside = np.isfinite(wished) & (wished > low) & (wished < high)
        moved = np.where(slope == 0, eta, np.where(inside, wished, (low + high) / 2))
        settled = np.abs(moved - eta) <= 1e-13
        eta = moved
        if settled.all():
            break
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(eta) - np.log1p(-eta), -PERFECT, PERFECT))


def _distance(point: Point) -> float:
    """How far the summit of scores and qualities together is, in standard errors."""
    gain = float(point.gradient @ point.curvature.solve(point.gradient, 1e-3))
    return float(np.sqrt(max(gain, 0.0)))
