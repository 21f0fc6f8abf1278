"""Fit a model of the Crowd-BT family: encode the judgments, choose a start, maximise the posterior, fix the sign."""

from __future__ import annotations

from dataclasses import replace

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.inference.newton import OptimizeResult, maximize, maximize_nonlinear_cg
from crowdrank.models.base import FitOptions, IterativeModel, SolverSettings
from crowdrank.models.crowd.answer_counts import weight_by_annotator
from crowdrank.models.crowd.coordinate_ascent import MAX_STEP, coordinate_ascent
from crowdrank.models.crowd.encoding import FeatureEncoder, Ties, answer_table
from crowdrank.models.crowd.estimate import MapEstimate
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT
from crowdrank.models.crowd.objective import Layout, Objective
from crowdrank.models.crowd.priors import Priors
from crowdrank.models.crowd.quality_constraints import quality_constraints
from crowdrank.models.crowd.sign_resolution import flipped_if_better
from crowdrank.models.crowd.starting_values import Solver, Start, StartingValues

# Within this many standard errors of its optimum, a start's final log posterior can be predicted.
_PREDICTABLE = 1.0
# Solving a Newton step more exactly than this, far from the optimum, costs more than it saves.
_LOOSE_CG_TOLERANCE = 0.3
# This many steps of nonlinear conjugate gradients cost as much as one Newton step.
_CG_STEPS = 25


def fit_map(
    model: IterativeModel,
    comparisons: Comparisons,
    formula: int,
    priors: Priors,
    options: FitOptions,
    features: FeatureEncoder | None = None,
    *,
    ties: Ties = "half",
    start: Start = "several",
    solver: Solver = "joint",
) -> MapEstimate:
    """Maximise the log posterior from each start, keep the best optimum and resolve its sign.

    Parameters
    ----------
    model : IterativeModel
        Gives `tolerance`, `max_steps` and `seed`.
    comparisons : Comparisons
        The judgments.
    formula : int
        Which likelihood: CROWD_BT, CROWD_BT_PROBIT, VARIANCE_BT or FACTOR_BT.
    priors : Priors
        Priors, without the constraints of the side information.
    options : FitOptions
        Engine, starting scores and side information.
    features : FeatureEncoder, optional
        Makes the features of factor-bt.
    ties : "half" or "drop"
        How ties count.
    start : "several", "one" or "gold"
        Where the solver starts.
    solver : "joint", "alternating" or "conjugate-gradients"
        How it proceeds.
    """
    known = options.side_information
    gold_annotator = known.gold_annotator(comparisons)
    table = answer_table(comparisons, features, ties, known)
    shards = options.engine.load(table)
    people = max(1, len(comparisons.annotators)) + (gold_annotator is not None)
    layout = Layout(len(comparisons.items), people, 0 if features is None else len(features))
    (weight,) = shards.sum(weight_by_annotator, people)
    priors = replace(priors, constraints=quality_constraints(known, formula, gold_annotator, weight))
    objective = Objective(shards, layout, formula, priors)
    starts = StartingValues(comparisons, objective, options, table.rows, model.tolerance).candidates(start, solver)
    best = _best_of_starts(model, objective, starts, solver)
    if start == "several" and formula in (CROWD_BT, CROWD_BT_PROBIT):
        flipped = flipped_if_better(objective, best.parameters, comparisons, known)
        if flipped is not None:
            best = _best_of_starts(model, objective, [flipped], solver)
    return MapEstimate(best, objective, comparisons, model.seed)


def _best_of_starts(
    model: SolverSettings, objective: Objective, starts: list[FloatArray], solver: Solver
) -> OptimizeResult:
    """Solve roughly from every start; continue from the one with the highest predicted maximum."""
    if len(starts) == 1:
        return _solve(objective, starts[0], solver, model.tolerance, model.max_steps)
    rough = [_solve(objective, start, solver, _PREDICTABLE, model.max_steps) for start in starts]
    best = rough[0]
    for found in rough[1:]:
        # nearly equal optima are the same one: the first is kept, so that rounding never chooses
        if _predicted_maximum(found) > _predicted_maximum(best) + 0.01 + 1e-7 * abs(best.evaluation.value):
            best = found
    left = model.max_steps - best.steps // (_CG_STEPS if solver == "conjugate-gradients" else 1)
    if left < 1:
        return replace(best, converged=best.distance <= model.tolerance)
    last = _solve(objective, best.parameters, solver, model.tolerance, left)
    return replace(last, steps=best.steps + last.steps)


def _predicted_maximum(found: OptimizeResult) -> float:
    """The maximum of the parabola with this value, gradient and curvature: value + ½·gᵀH⁻¹g."""
    return found.evaluation.value + 0.5 * found.distance**2


def _solve(objective: Objective, start: FloatArray, solver: Solver, tolerance: float, max_steps: int) -> OptimizeResult:
    if solver == "alternating":
        return coordinate_ascent(objective, start, tolerance=tolerance, max_steps=max_steps)
    if solver == "conjugate-gradients":
        steps = _CG_STEPS * max_steps
        return maximize_nonlinear_cg(objective, start, tolerance=tolerance, max_steps=steps)
    return maximize(
        objective, start, tolerance=tolerance, max_steps=max_steps, max_step=MAX_STEP, cg_tolerance=_LOOSE_CG_TOLERANCE
    )
