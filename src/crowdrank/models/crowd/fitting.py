"""Fit a model of the Crowd-BT family: encode the judgments, choose a start, maximise the posterior, fix the sign.

Crowd-BT's published procedure (§3.3) is one of the solvers, `coordinate_ascent`: optimise the scores with the
annotators fixed, then set each η, and repeat. log(η·p + (1−η)·q) is concave in η, so the best η of an annotator between
0 and 1 is unique and needs no start.

Where annotators can be reversed, an order and its reverse fit the answers equally well: negating all scores and
replacing every η by 1 − η leaves the likelihood unchanged. The majority of annotators decides (`flipped_if_better`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, EncodedSideInformation, agreed_pairs
from crowdrank.engines.local import limit_blas_threads
from crowdrank.errors import SettingError
from crowdrank.inference.laplace import LaplaceApproximation, draw_from_covariance
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize, maximize_nonlinear_cg
from crowdrank.models.base import FitOptions, IterativeModel, Model, SolverSettings, build_ranking, with_annotators
from crowdrank.models.coin_tosses import calibrate_on_coin_tosses
from crowdrank.models.crowd import likelihood
from crowdrank.models.crowd import objective as crowd_objective
from crowdrank.models.crowd.encoding import (
    FeatureEncoder,
    Start,
    Ties,
    agreement_counts,
    agreement_logits,
    answer_table,
    gold_accuracy,
    initial_scores,
    is_reversed,
    sampled_log_likelihoods,
    weight_by_annotator,
)
from crowdrank.models.crowd.few_answers import FewAnswers, FewCurvature, with_few_answers
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT, VARIANCE_BT, sigmoid
from crowdrank.models.crowd.objective import Curvature, Layout, Objective
from crowdrank.models.crowd.priors import PERFECT_LOGIT, Priors, quality_constraints
from crowdrank.results import Convergence, Ranking, Uncertainty

# The MAP estimate of a model of the Crowd-BT family, its uncertainty, and the ranking made from it.

# Up to this many items the covariance of scores and annotators is computed exactly.
MAX_INVERTED_ITEMS = 2_000


@dataclass(frozen=True)
class MapEstimate:
    """Maximum a posteriori estimate with its Laplace approximation.

    Parameters
    ----------
    found : OptimizeResult
        Result of the solver.
    objective : Objective
        The log posterior.
    comparisons : Comparisons
        The judgments.
    seed : int
        Seed of the draws behind rank intervals.
    """

    found: OptimizeResult
    objective: Objective
    comparisons: Comparisons
    seed: int

    @property
    def curvature(self) -> Curvature:
        found = self.found.evaluation.curvature
        whole = found.whole if isinstance(found, FewCurvature) else found
        assert isinstance(whole, Curvature)
        return whole

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the judgments."""
        found = self.found.evaluation.curvature
        return found.log_likelihood if isinstance(found, FewCurvature) else self.curvature.derivatives.value

    @cached_property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, logits and feature weights, without the annotator of the gold pairs."""
        people = max(1, len(self.comparisons.annotators))
        scores, logits, feature_weights = self.objective.layout.split(self.found.parameters)
        return scores, logits[:people], feature_weights[:people]

    @property
    def _exact(self) -> bool:
        return self.objective.layout.items <= MAX_INVERTED_ITEMS

    @cached_property
    def _marginal(self) -> tuple[FloatArray, FloatArray]:
        with limit_blas_threads(self.objective.layout.items):
            return self.curvature.marginal()

    def uncertainty(self) -> Uncertainty:
        """Laplace approximation of the scores: joint with the annotators, or given them if there are too many items."""
        items, centre = self.comparisons.items, self.comparisons.items.centre
        if self._exact:
            error, around = draw_from_covariance(self._marginal[0], centre, self.seed)
            known = "scores and annotators jointly"
        else:
            parts, shards = self.objective.layout.split(self.found.parameters), self.objective.shards
            curvature, _ = shards.map_and_sum(crowd_objective.margin_curvature, *parts, self.objective.formula)
            prior = self.curvature.prior.curvature[: len(items)]
            laplace = LaplaceApproximation(
                curvature, self.curvature.derivatives.scores_fisher + prior, prior, items.starts
            )
            error, around = laplace.draw(self.seed)
            known = "the scores, given the annotators"
        return Uncertainty(centre(self.parts[0]) + around, error, f"Laplace approximation of {known}")

    def logit_interval(self, through: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The logits and their 95 % intervals, transformed by an increasing function."""
        return interval(self.parts[1], self.annotator_errors[:, 0], through)

    @cached_property
    def annotator_errors(self) -> FloatArray:
        """Standard errors of each annotator's logit (first column) and feature weights."""
        people = len(self.parts[1])
        if self._exact:
            return self._marginal[1][:people]
        _, logits, feature_weights = self.objective.layout.split(1.0 / np.sqrt(self.curvature.diagonal))
        return np.column_stack((logits, feature_weights))[:people]


def build_crowd_ranking(
    model: Model,
    estimate: MapEstimate,
    estimates: Callable[[], Mapping[str, Any]],
    refit: Callable[[Comparisons], MapEstimate] | None = None,
) -> Ranking:
    """The ranking of an estimate, with the annotators if they have names.

    With `refit`, which fits other answers to the same questions, errors are calibrated on coin tosses.
    """
    found = estimate.found

    def calibrated() -> Uncertainty:
        def tossed(comparisons: Comparisons) -> tuple[FloatArray, FloatArray]:
            assert refit is not None
            again = refit(comparisons)
            return again.parts[0], again.uncertainty().std_error

        comparisons = estimate.comparisons
        centred = comparisons.items.centre(estimate.parts[0])
        return calibrate_on_coin_tosses(comparisons, centred, estimate.uncertainty(), tossed, estimate.seed)

    ranking = build_ranking(
        model,
        estimate.comparisons,
        estimate.parts[0],
        log_likelihood=estimate.log_likelihood,
        convergence=Convergence(found.converged, found.steps, found.distance),
        measure=estimate.uncertainty if refit is None else calibrated,
    )
    return with_annotators(ranking, estimate.comparisons, estimates)


def interval(
    centre: FloatArray, error: FloatArray, through: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """An estimate and its 95 % interval, transformed by an increasing function."""
    return through(centre), through(centre - 1.96 * error), through(centre + 1.96 * error)


Solver = Literal["joint", "alternating", "conjugate-gradients"]

# A larger logit has so small a gradient that a joint solver would take it for converged.
_MAX_START_LOGIT = 4.0
# From this many answers on only one start is used: the one with the highest likelihood on a sample of answers.
_MANY_ROWS, _SAMPLE_ROWS = 400_000, 5_000
# Factors of scores and logits that are tried on that sample.
_FACTORS = tuple((wider, surer) for wider in (1.0, 1.5, 2.0, 3.0) for surer in (1.0, 1.6, 2.5))

# Within this many standard errors of its optimum, a start's final log posterior can be predicted.
_PREDICTABLE = 1.0
# Solving a Newton step more exactly than this, far from the optimum, costs more than it saves.
_LOOSE_CG_TOLERANCE = 0.3
# This many steps of nonlinear conjugate gradients cost as much as one Newton step.
_CG_STEPS = 25
# No score moves further in one Newton step, because the objective is not concave.
MAX_STEP = 2.0
_MAX_BISECTIONS = 60


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
    maximised = with_few_answers(objective) if solver == "joint" else objective
    best = _best_of_starts(model, maximised, starts, solver)
    if start == "several" and formula in (CROWD_BT, CROWD_BT_PROBIT):
        flipped = flipped_if_better(objective, best.parameters, comparisons, known)
        if flipped is not None:
            best = _best_of_starts(model, maximised, [flipped], solver)
    return MapEstimate(best, objective, comparisons, model.seed)


def _best_of_starts(
    model: SolverSettings, objective: Objective | FewAnswers, starts: list[FloatArray], solver: Solver
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
    last = _solve(objective, best.parameters, solver, model.tolerance, left, best.evaluation)
    return replace(last, steps=best.steps + last.steps)


def _predicted_maximum(found: OptimizeResult) -> float:
    """The maximum of the parabola with this value, gradient and curvature: value + ½·gᵀH⁻¹g."""
    return found.evaluation.value + 0.5 * found.distance**2


def _solve(
    objective: Objective | FewAnswers,
    start: FloatArray,
    solver: Solver,
    tolerance: float,
    max_steps: int,
    evaluation: Evaluation | None = None,
) -> OptimizeResult:
    if solver == "alternating":
        assert isinstance(objective, Objective)
        return coordinate_ascent(objective, start, tolerance=tolerance, max_steps=max_steps)
    if solver == "conjugate-gradients":
        steps = _CG_STEPS * max_steps
        return maximize_nonlinear_cg(objective, start, tolerance=tolerance, max_steps=steps)
    return maximize(
        objective,
        start,
        tolerance=tolerance,
        max_steps=max_steps,
        max_step=MAX_STEP,
        cg_tolerance=_LOOSE_CG_TOLERANCE,
        evaluation=evaluation,
    )


# Starting values: the objective has several local optima


class StartingValues:
    """Vectors of parameters from which a solver may start.

    Parameters
    ----------
    comparisons : Comparisons
        The judgments.
    objective : Objective
        What is to be maximised.
    options : FitOptions
        Starting scores and side information given to `fit`.
    rows : int
        Number of answers.
    tolerance : float
        Tolerance of the solver.
    """

    def __init__(
        self, comparisons: Comparisons, objective: Objective, options: FitOptions, rows: int, tolerance: float
    ):
        self.comparisons, self.objective, self.rows, self.tolerance = comparisons, objective, rows, tolerance
        self.init, self.known = options.init, options.side_information

    def candidates(self, start: Start, solver: Solver) -> list[FloatArray]:
        """The starts of a strategy: "several"; or everyone trusted ("one") or by their gold accuracy ("gold")."""
        if start == "several":
            return self._several()
        logits = np.full(self.objective.layout.annotators, PERFECT_LOGIT)
        if start == "gold":
            logits[: max(1, len(self.comparisons.annotators))] = self._gold_logits()
        first = self._joined(np.zeros(self.objective.layout.items), logits)
        if solver == "alternating":
            return [first]
        layout = self.objective.layout
        scores, logits, feature_weights = layout.split(alternate_once(self.objective, first, self.tolerance))
        return [layout.join(scores, np.clip(logits, -_MAX_START_LOGIT, _MAX_START_LOGIT), feature_weights)]

    def _several(self) -> list[FloatArray]:
        """Everyone trusted equally; trusted by agreement with the crowd; trusted by agreement with the gold pairs.

        After an earlier fit: its scores, with everyone trusted by agreement with them.
        """
        people, items, shards = self.objective.layout.annotators, self.comparisons.items, self.objective.shards
        earlier, no_logits = self.init, self.objective.formula == VARIANCE_BT
        scores = initial_scores(shards, items) if earlier is None else np.nan_to_num(earlier)
        if no_logits or earlier is not None:
            logits = np.zeros(people) if no_logits else agreement_logits(shards, scores, people)
            return [self._joined(scores, logits)]
        starts = [
            self._joined(scores, np.full(people, 1.5)),
            self._trusting(agreement_logits(shards, scores, people)),
        ]
        if self.known.has_gold:
            logits = np.full(people, 1.5)
            logits[: max(1, len(self.comparisons.annotators))] = np.clip(self._gold_logits(), -1.5, 1.5)
            starts.append(self._trusting(logits))
        return starts if self.rows < _MANY_ROWS else [self._most_promising(starts)]

    def _trusting(self, logits: FloatArray) -> FloatArray:
        """Scores from answers weighted by 2η − 1."""
        scores = initial_scores(self.objective.shards, self.comparisons.items, 2 * sigmoid(logits) - 1)
        return self._joined(scores, logits)

    def _most_promising(self, starts: list[FloatArray]) -> FloatArray:
        """The start with the highest likelihood on a sample, with its scores and logits multiplied by the best factors.

        Shares of wins are closer to ½ than the scores imply, because of noise and of opponents of all strengths.
        """
        parts = [self.objective.layout.split(start) for start in starts]
        points = [(wider * scores, surer * logits) for scores, logits, _ in parts for wider, surer in _FACTORS]
        every = max(1, self.rows // _SAMPLE_ROWS)
        shards, formula = self.objective.shards, self.objective.formula
        (log_likelihoods,) = shards.sum(sampled_log_likelihoods, points, formula, every)
        return self._joined(*points[int(np.argmax(log_likelihoods))])

    def _joined(self, scores: FloatArray, logits: FloatArray) -> FloatArray:
        layout, constraints = self.objective.layout, self.objective.priors.constraints
        return layout.join(scores, constraints.project(logits), np.zeros((layout.annotators, layout.features)))

    def _gold_logits(self) -> FloatArray:
        better, worse = self.known.gold_better, self.known.gold_worse
        if not len(better):
            better, worse = agreed_pairs(self.comparisons)
        if not len(better):
            raise SettingError(
                'start="gold" needs gold pairs, or pairs that more than 10 annotators answered, 90 % of them alike. '
                "Pass side_information=SideInformation(gold=…) to fit."
            )
        share = gold_accuracy(self.comparisons, better, worse)
        with np.errstate(divide="ignore"):
            return np.asarray(np.clip(np.log(share) - np.log1p(-share), -PERFECT_LOGIT, PERFECT_LOGIT))


# Crowd-BT's published procedure


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


# The sign of the scores


def flipped_if_better(
    objective: Objective, x: FloatArray, comparisons: Comparisons, known: EncodedSideInformation
) -> FloatArray | None:
    """The parameters with the opposite sign if that is the right one, None if `x` already has it.

    Gold pairs decide first, then what is known about annotators, else the majority of annotators. The priors alone
    would let a few who are certainly reversed outweigh many who are right more often than not.
    """
    layout = objective.layout
    scores, logits, feature_weights = layout.split(x)
    people = max(1, len(comparisons.annotators))
    # the annotator of the gold pairs stays as it is
    flipped = layout.join(-scores, np.append(-logits[:people], logits[people:]), feature_weights)
    if len(known.gold_better):
        agreed = np.sign(scores[known.gold_better] - scores[known.gold_worse]).sum()
        return flipped if agreed < 0 else None
    if known.has_annotators:
        before, after = (objective.priors.evaluate(*layout.split(at), objective.formula).value for at in (x, flipped))
        return flipped if after > before + 1e-6 else None
    net, total = objective.shards.sum(agreement_counts, scores, layout.annotators)
    return flipped if is_reversed((total + net)[:people] / 2, total[:people]) else None
