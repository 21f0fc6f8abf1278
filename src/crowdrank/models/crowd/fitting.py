"""Scores and qualities in turn (Crowd-BT §3.3): the scores climb with the annotators held, then each η is set exactly.

log(η·p + (1−η)·q) is concave in η, so an annotator's best η between 0 and 1 is one number, found without a start.

From judgments to the summit: where to start, how to climb, and which way is up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, EncodedSideInformation, agreed_pairs
from crowdrank.errors import SettingError
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize, maximize_nonlinear_cg
from crowdrank.models.base import FitOptions, IterativeModel, SolverSettings
from crowdrank.models.crowd import encoding, likelihood
from crowdrank.models.crowd.encoding import (
    Features,
    Ties,
    agreement,
    first_scores,
    right_on_gold,
    table_of,
    turned,
)
from crowdrank.models.crowd.estimate import Summit
from crowdrank.models.crowd.likelihood import PROBIT, RELIABLE, SCALED, sigmoid
from crowdrank.models.crowd.objective import Objective
from crowdrank.models.crowd.priors import Layout, Priors
from crowdrank.models.crowd.side_information import PERFECT, hints_of

# No score moves further than this in one step of a climb that is not concave.
LONGEST_STEP = 2.0
_MOST_HALVINGS = 60


def climb_in_turns(objective: Objective, start: FloatArray, *, tolerance: float, max_steps: int) -> OptimizeResult:
    """Turns until scores and qualities together are within `tolerance` standard errors of the summit."""
    x = start
    for step in range(1, max_steps + 1):
        x = one_turn(objective, x, tolerance)
        point = objective(x)
        distance = _distance(point)
        if distance <= tolerance:
            return OptimizeResult(x, point, step, distance, True)
    return OptimizeResult(x, point, max_steps, distance, False)


def one_turn(objective: Objective, x: FloatArray, tolerance: float) -> FloatArray:
    """Scores, then qualities; what is known of annotators is on the scale of gates, so there these end."""
    scores, gates, pulls = objective.layout.split(x)
    found = maximize(objective.of_scores(gates, pulls), scores, tolerance=tolerance / 3, max_step=LONGEST_STEP)
    scores, gates = found.parameters, best_gates(objective, found.parameters)
    if hints := objective.priors.hints:
        of_gates = objective.of_gates(scores, pulls)
        gates = maximize(of_gates, hints.held(gates), tolerance=tolerance / 3, max_step=LONGEST_STEP).parameters
    return objective.layout.join(scores, gates, pulls)


def best_gates(objective: Objective, scores: FloatArray) -> FloatArray:
    """The logit of the best η of each annotator given the scores: Newton's steps inside a bracket that halves.

    What is known of single annotators is not asked here.
    """
    truths, lies = objective.priors.quality or (0.0, 0.0)
    low, high = np.zeros(objective.layout.annotators), np.ones(objective.layout.annotators)
    eta = np.full(len(low), 0.75)
    for _ in range(_MOST_HALVINGS):
        slope, bend = objective.held.sum(likelihood.by_truth, scores, eta, objective.formula)
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


def _distance(point: Evaluation) -> float:
    """How far the summit of scores and qualities together is, in standard errors."""
    gain = float(point.gradient @ point.curvature.solve(point.gradient, 1e-3))
    return float(np.sqrt(max(gain, 0.0)))


Start = Literal["several", "one", "gold"]
Solver = Literal["joint", "alternating", "conjugate-gradients"]


# A gate beyond this has so little slope left that a joint climb would take it for settled.
_STEEP = 4.0
# A summit fewer standard errors away than this is in sight: its height is known.
_IN_SIGHT = 1.0
# Solving more closely than this far from the summit costs more than it saves.
_LOOSEST = 0.3
# From so many answers on one start is chosen outright, by what it says of a sample; tried as it is, wider and surer.
_MANY, _SAMPLE = 400_000, 5_000
_FACTORS = tuple((wider, surer) for wider in (1.0, 1.5, 2.0, 3.0) for surer in (1.0, 1.6, 2.5))
# So many steps of conjugate gradients cost what one of Newton's does.
_CONJUGATE_STEPS = 25


def climb_from(
    model: IterativeModel,
    comparisons: Comparisons,
    formula: int,
    priors: Priors,
    options: FitOptions,
    features: Features | None = None,
    *,
    ties: Ties = "half",
    start: Start = "several",
    solver: Solver = "joint",
) -> Summit:
    """Climb from each start and keep the highest summit; where both ways up are equal, the side of the most."""
    known = options.side_information
    judge = known.gold_annotator(comparisons)
    table = table_of(comparisons, features, ties, known)
    held = options.engine.load(table)
    people = max(1, len(comparisons.annotators)) + (judge is not None)
    layout = Layout(len(comparisons.items), people, 0 if features is None else len(features))
    (spoken,) = held.sum(encoding.spoken, people)
    priors = replace(priors, hints=hints_of(known, formula, judge, spoken))
    objective = Objective(held, layout, formula, priors)
    starts = Starts(comparisons, objective, options, table.rows, model.tolerance).named(start, solver)
    best = _highest(model, objective, starts, solver)
    if start == "several" and formula in (RELIABLE, PROBIT):
        other = mirrored(objective, best.parameters, comparisons, known)
        if other is not None:
            best = _highest(model, objective, [other], solver)
    return Summit(best, objective, comparisons, model.seed)


def _highest(model: SolverSettings, objective: Objective, starts: list[FloatArray], solver: Solver) -> OptimizeResult:
    """The summit of the start that leads highest: all climb until theirs is in sight, one goes on."""
    if len(starts) == 1:
        return _climb(model, objective, starts[0], solver, model.tolerance, model.max_steps)
    scouts = [_climb(model, objective, start, solver, _IN_SIGHT, model.max_steps) for start in starts]
    best = scouts[0]
    for scout in scouts[1:]:
        # equal summits are one: the first stands, so that rounding never chooses
        if _foreseen(scout) > _foreseen(best) + 0.01 + 1e-7 * abs(best.evaluation.value):
            best = scout
    left = model.max_steps - best.steps // (_CONJUGATE_STEPS if solver == "conjugate-gradients" else 1)
    if left < 1:
        return replace(best, converged=best.distance <= model.tolerance)
    last = _climb(model, objective, best.parameters, solver, model.tolerance, left)
    return replace(last, steps=best.steps + last.steps)


def _foreseen(scout: OptimizeResult) -> float:
    """How high the summit in sight is, the ground being a parabola from here on."""
    return scout.evaluation.value + 0.5 * scout.distance**2


def _climb(
    model: SolverSettings, objective: Objective, start: FloatArray, solver: Solver, tolerance: float, max_steps: int
) -> OptimizeResult:
    if solver == "alternating":
        return climb_in_turns(objective, start, tolerance=tolerance, max_steps=max_steps)
    if solver == "conjugate-gradients":
        most = _CONJUGATE_STEPS * max_steps
        return maximize_nonlinear_cg(objective, start, tolerance=tolerance, max_steps=most)
    return maximize(
        objective, start, tolerance=tolerance, max_steps=max_steps, max_step=LONGEST_STEP, cg_tolerance=_LOOSEST
    )


class Starts:
    """Where a climb may begin."""

    def __init__(
        self, comparisons: Comparisons, objective: Objective, options: FitOptions, rows: int, tolerance: float
    ):
        self.comparisons, self.objective, self.rows, self.tolerance = comparisons, objective, rows, tolerance
        self.init, self.known = options.init, options.side_information

    def named(self, start: Start, solver: Solver) -> list[FloatArray]:
        if start == "several":
            return self._several()
        gates = np.full(self.objective.layout.annotators, PERFECT)
        if start == "gold":
            gates[: max(1, len(self.comparisons.annotators))] = self._gates_on_gold()
        first = self._joined(np.zeros(self.objective.layout.items), gates)
        if solver == "alternating":
            return [first]
        scores, gates, pulls = self.objective.layout.split(one_turn(self.objective, first, self.tolerance))
        return [self.objective.layout.join(scores, np.clip(gates, -_STEEP, _STEEP), pulls)]

    def _several(self) -> list[FloatArray]:
        """Everyone trusted, and everyone trusted as far as they agree with the crowd, or with the gold.

        After an earlier fit: its scores, and everyone trusted as far as they agree with these.
        """
        people, items, held = self.objective.layout.annotators, self.comparisons.items, self.objective.held
        earlier, scaled = self.init, self.objective.formula == SCALED
        trusted = first_scores(held, items) if earlier is None else np.nan_to_num(earlier)
        if scaled or earlier is not None:
            return [self._joined(trusted, np.zeros(people) if scaled else agreement(held, trusted, people))]
        starts = [
            self._joined(trusted, np.full(people, 1.5)),
            self._weighed(agreement(held, trusted, people)),
        ]
        if self.known.has_gold:
            gates = np.full(people, 1.5)
            gates[: max(1, len(self.comparisons.annotators))] = np.clip(self._gates_on_gold(), -1.5, 1.5)
            starts.append(self._weighed(gates))
        return starts if self.rows < _MANY else [self._promising(starts)]

    def _weighed(self, gates: FloatArray) -> FloatArray:
        scores = first_scores(self.objective.held, self.comparisons.items, 2 * sigmoid(gates) - 1)
        return self._joined(scores, gates)

    def _promising(self, starts: list[FloatArray]) -> FloatArray:
        """The start that does best on a sample, its scores and gates multiplied by what does best.

        Noise, and opponents of all strengths, make the shares of wins that starts are made of too even.
        """
        parts = [self.objective.layout.split(start) for start in starts]
        points = [(wider * scores, surer * gates) for scores, gates, _ in parts for wider, surer in _FACTORS]
        every = max(1, self.rows // _SAMPLE)
        (heights,) = self.objective.held.sum(encoding.heights, points, self.objective.formula, every)
        return self._joined(*points[int(np.argmax(heights))])

    def _joined(self, scores: FloatArray, gates: FloatArray) -> FloatArray:
        layout, hints = self.objective.layout, self.objective.priors.hints
        return layout.join(scores, hints.held(gates), np.zeros((layout.annotators, layout.features)))

    def _gates_on_gold(self) -> FloatArray:
        better, worse = self.known.gold_better, self.known.gold_worse
        if not len(better):
            better, worse = agreed_pairs(self.comparisons)
        if not len(better):
            raise SettingError(
                'start="gold" needs gold pairs, or pairs that more than 10 annotators nearly all agree on.'
            )
        share = right_on_gold(self.comparisons, better, worse)
        with np.errstate(divide="ignore"):
            return np.asarray(np.clip(np.log(share) - np.log1p(-share), -PERFECT, PERFECT))


def mirrored(
    objective: Objective, x: FloatArray, comparisons: Comparisons, known: EncodedSideInformation
) -> FloatArray | None:
    """The other way up, where that is the better one; None where this one is.

    Negating all scores and turning every η into 1 − η leaves the likelihood as it is. Gold decides first, then what is
    known of annotators, and else the most of them, each counted once: by the priors, few who are surely reversed would
    outweigh many who are right more often than not.
    """
    layout = objective.layout
    scores, gates, pulls = layout.split(x)
    people = max(1, len(comparisons.annotators))
    other = layout.join(-scores, np.append(-gates[:people], gates[people:]), pulls)
    if len(known.gold_better):
        agreed = np.sign(scores[known.gold_better] - scores[known.gold_worse]).sum()
        return other if agreed < 0 else None
    if known.has_annotators:
        this, that = (objective.priors.at(*layout.split(way), objective.formula).value for way in (x, other))
        return other if that > this + 1e-6 else None
    net, total = objective.held.sum(encoding.sidings, scores, layout.annotators)
    return other if turned((total + net)[:people] / 2, total[:people]) else None
