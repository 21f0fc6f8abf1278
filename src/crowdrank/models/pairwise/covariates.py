"""Covariates of comparisons: effects that are estimated next to the scores of bradley-terry and thurstone.

The margin of a comparison is d = sₗ − sᵣ + ⟨x, β⟩ with x the covariates, positive where they favour the left item, and
β their coefficients. The parameters are (scores, θ, β), with θ only where ties are modelled. Covariates differ from
comparison to comparison, so judgments cannot be reduced to counts per pair, and the curvature is a full matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.data.features import feature_columns, typical_size
from crowdrank.engines import ShardedData
from crowdrank.errors import DataError
from crowdrank.inference.curvature import DenseCurvature
from crowdrank.inference.laplace import draw_from_covariance
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize
from crowdrank.models.base import FitOptions, build_ranking, check_connected, diagnose
from crowdrank.models.pairwise.likelihood import DAVIDSON, FORMULAS, THRESHOLD, gaussian, virtual_node
from crowdrank.models.pairwise.paired import (
    TIE_SCALE,
    WITHOUT_TIES,
    Objective,
    PairwiseModel,
    choose_formula,
    reduce,
    without_both_bad,
)
from crowdrank.models.pairwise.spread import SpreadPosterior, learn_spread, neighbours_only
from crowdrank.results import Convergence, Ranking, Uncertainty
from crowdrank.results.covariates import COVARIATE_ERROR_PREFIX, COVARIATE_PREFIX, FEATURE_UNIT_PREFIX

MAX_ITEMS = 3_000
"""The curvature is a full matrix, so covariates are refused beyond this many items."""
# Standard deviation of the prior on a coefficient per typical difference: keeps it finite, and shrinks nothing else.
EFFECT_SCALE = 10.0
# A covariate is confounded if less than this share of its sum of squares is left over by items and other covariates.
_CONFOUNDED = 1e-6
_DRAWS = 1000


class CovariatePairs(NamedTuple):
    """One shard of comparisons with their covariates, one column each, in units of their typical size."""

    left: Int32Array
    right: Int32Array
    outcome: AnyArray
    weight: FloatArray
    covariates: FloatArray
    start: int = 0

    @property
    def rows(self) -> int:
        return len(self.left)

    def split(self, parts: int) -> list[CovariatePairs]:
        cuts = np.linspace(0, self.rows, parts + 1).astype(np.int64)
        return [
            CovariatePairs(
                self.left[a:b],
                self.right[a:b],
                self.outcome[a:b],
                self.weight[a:b],
                self.covariates[a:b],
                self.start + int(a),
            )
            for a, b in pairwise(cuts)
        ]


class CovariateTerms(NamedTuple):
    """Log-likelihood of a shard with its gradient and its curvature in all parameters."""

    value: float
    gradient: FloatArray
    curvature: FloatArray


def encode_pairs(comparisons: Comparisons, names: Sequence[str], units: FloatArray) -> CovariatePairs:
    """Comparisons as a shard."""
    columns = feature_columns(comparisons, names).values()
    covariates = np.stack([column / unit for column, unit in zip(columns, units, strict=True)], axis=1)
    return CovariatePairs(comparisons.left, comparisons.right, comparisons.outcome, comparisons.weights, covariates)


def _per_item(shard: CovariatePairs, column: FloatArray, size: int) -> FloatArray:
    """Sum over comparisons of column·(eₗ − eᵣ)."""
    return np.asarray(np.bincount(shard.left, column, size) - np.bincount(shard.right, column, size))


def _laplacian(shard: CovariatePairs, weight: FloatArray, size: int) -> FloatArray:
    """Sum over comparisons of weight·(eₗ − eᵣ)(eₗ − eᵣ)ᵀ."""
    matrix = np.bincount(shard.left * np.int64(size) + shard.right, -weight, size * size).reshape(size, size)
    matrix += matrix.T
    matrix.flat[:: size + 1] -= matrix.sum(axis=1)
    return np.asarray(matrix)


def normal_equations(shard: CovariatePairs, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted sums of squares and products of items with items, items with covariates, and covariates."""
    weighted = shard.covariates * shard.weight[:, None]
    mixed = np.stack([_per_item(shard, column, size) for column in weighted.T], axis=1)
    return _laplacian(shard, shard.weight, size), mixed, shard.covariates.T @ weighted


def evaluate(shard: CovariatePairs, x: FloatArray, size: int, formula: int) -> CovariateTerms:
    """Log-likelihood terms of one shard at x = (scores, θ, β)."""
    has_theta = formula in (DAVIDSON, THRESHOLD)
    first = size + has_theta
    scores, theta, effects = x[:size], float(x[size]) if has_theta else 0.0, x[first:]
    margin = scores[shard.left] - scores[shard.right] + shard.covariates @ effects
    parts = FORMULAS[formula](margin, shard.outcome, theta)
    value, slope, curvature, theta_slope, cross, theta_curvature = (shard.weight * part for part in parts)
    gradient, matrix = np.empty(len(x)), np.empty((len(x), len(x)))
    gradient[:size] = _per_item(shard, slope, size)
    gradient[first:] = shard.covariates.T @ slope
    matrix[:size, :size] = _laplacian(shard, curvature, size)
    weighted = shard.covariates * curvature[:, None]
    matrix[first:, first:] = shard.covariates.T @ weighted
    for n, column in enumerate(weighted.T, start=first):
        matrix[:size, n] = matrix[n, :size] = _per_item(shard, column, size)
    if has_theta:
        gradient[size] = theta_slope.sum()
        matrix[size, size] = theta_curvature.sum()
        matrix[:size, size] = matrix[size, :size] = _per_item(shard, cross, size)
        matrix[first:, size] = matrix[size, first:] = shard.covariates.T @ cross
    return CovariateTerms(float(value.sum()), gradient, matrix)


@dataclass(frozen=True)
class CovariateCurvature:
    """Curvature of the log posterior as a matrix, with the log-likelihood at the same point."""

    full: FloatArray
    log_likelihood: float

    @property
    def diagonal(self) -> FloatArray:
        return np.diag(self.full)

    def matrix(self) -> FloatArray:
        return self.full

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        return DenseCurvature(self.full).solve(vector)


@dataclass(frozen=True)
class CovariateObjective:
    """Log posterior at x = (scores, θ, β); see `Objective` for the settings."""

    held: ShardedData
    items: Items
    formula: int
    prior_scale: float | None
    virtual_weight: float
    tie_scale: float | None
    effect_scale: float | None

    def __call__(self, x: FloatArray) -> Evaluation:
        size, has_theta = len(self.items), self.formula in (DAVIDSON, THRESHOLD)
        if self.formula == THRESHOLD and x[size] <= 0:  # outside the domain: no tie would be possible
            return Evaluation(-np.inf, np.zeros_like(x), DenseCurvature(np.eye(len(x))))
        terms = self.held.sum(evaluate, x, size, self.formula)
        precision = np.zeros(len(x))
        precision[size + has_theta :] = _precision(self.effect_scale)
        if has_theta:
            precision[size] = _precision(self.tie_scale)
        value = terms.value - 0.5 * float(precision @ x**2)
        gradient, curvature = terms.gradient - precision * x, terms.curvature + np.diag(precision)
        scores, on_diagonal = x[:size], np.arange(size)
        priors = [] if self.prior_scale is None else [gaussian(scores, self.prior_scale)]
        if self.virtual_weight:
            priors.append(virtual_node(scores, self.virtual_weight, WITHOUT_TIES[self.formula]))
        for prior in priors:
            value += prior.value
            gradient[:size] += prior.gradient
            curvature[on_diagonal, on_diagonal] += prior.curvature
        if not priors:  # a common shift of a query's scores changes nothing: hold it fixed
            together = self.items.query[:, None] == self.items.query
            curvature[:size, :size] += together * (np.diag(curvature)[:size].mean() / size)
        return Evaluation(value, gradient, CovariateCurvature(curvature, terms.value))


def _precision(scale: float | None) -> float:
    return 0.0 if scale is None else 1.0 / scale**2


def fit_with_covariates(model: PairwiseModel, comparisons: Comparisons, options: FitOptions) -> Ranking:
    """Fit scores and coefficients together by Newton's method."""
    if len(comparisons.items) > MAX_ITEMS:
        raise DataError(
            f"Covariates are estimated for up to {MAX_ITEMS:,} items, got {len(comparisons.items):,}: their curvature "
            "is a full matrix."
        )
    tie_share = comparisons.ties / len(comparisons)
    comparisons, formula = choose_formula(model, comparisons)
    check_connected(diagnose(comparisons), model.prior_scale is not None or model.virtual_weight > 0)
    units = covariate_units(comparisons, model.covariates)
    encode = partial(encode_pairs, names=model.covariates, units=np.array(list(units.values())))
    held, items = options.engine.load(comparisons.map_chunks(encode)), comparisons.items
    check_identified(held, items, list(units))
    given = None if model.prior_scale == "auto" else model.prior_scale
    tie_scale = TIE_SCALE if model.prior_scale == "auto" else given
    effect_scale = None if model.prior_scale is None else EFFECT_SCALE

    def objective_at(scale: float | None) -> CovariateObjective:
        return CovariateObjective(held, items, formula, scale, model.virtual_weight, tie_scale, effect_scale)

    plain = Objective(options.engine.load(reduce(comparisons, formula)), items, formula, None, 0.0)
    start = np.append(plain.start(tie_share, options.init), np.zeros(len(units)))
    if model.prior_scale == "auto":
        by_wins = plain.scores_from_win_rates()
        posterior = learn_spread(
            objective_at,
            start,
            float(np.std(by_wins)),
            items,
            model.tolerance,
            model.max_steps,
            neighbours_only(comparisons, by_wins),
        )
        return _ranking(model, comparisons, posterior, units)
    found = maximize(objective_at(given), start, tolerance=model.tolerance, max_steps=model.max_steps)
    return _ranking(model, comparisons, found, units)


def covariate_units(comparisons: Comparisons, names: Sequence[str]) -> dict[str, float]:
    """The typical size of each covariate; raises if one is zero throughout."""
    units = {name: typical_size(c, comparisons.weights) for name, c in feature_columns(comparisons, names).items()}
    for name, column in feature_columns(comparisons, names).items():
        if not np.any(column):
            raise DataError(f"Covariate {name!r} is 0 in every comparison.", remedy="Leave it out.")
    return units


def check_identified(held: ShardedData, items: Items, names: Sequence[str]) -> None:
    """Raise DataError for a covariate that the items or the other covariates explain completely."""
    laplacian, mixed, squares = held.sum(normal_equations, len(items))
    # The null space of the Laplacian, a common shift, explains nothing: a little on the diagonal makes it invertible.
    laplacian.flat[:: len(laplacian) + 1] += 1e-9 * np.diag(laplacian).mean()
    left_over = squares - mixed.T @ np.linalg.solve(laplacian, mixed)
    for n, name in enumerate(names):
        share = left_over[n, n] / squares[n, n]
        if share < _CONFOUNDED:
            raise DataError(
                f"Covariate {name!r} is the same for an item wherever it appears, so its effect cannot be "
                "separated from the scores.",
                remedy="Leave it out, or give its value for each comparison.",
            )
        others = left_over[:n, :n]
        explained = left_over[n, :n] @ np.linalg.solve(others, left_over[:n, n]) if n else 0.0
        if left_over[n, n] - explained < _CONFOUNDED * squares[n, n]:
            raise DataError(
                f"Covariate {name!r} follows from {', '.join(map(repr, names[:n]))} and the items, so their effects "
                "cannot be separated.",
                remedy="Leave one of them out.",
            )


def _ranking(
    model: PairwiseModel, comparisons: Comparisons, found: OptimizeResult | SpreadPosterior, units: dict[str, float]
) -> Ranking:
    items, seed = comparisons.items, model.seed
    first = -len(units)
    spread_found: dict[str, float] = {}
    if isinstance(found, SpreadPosterior):
        fits, weights, x, optimum = found.fits, found.weights, found.parameters, found.slowest
        spread_found = {"prior_scale": found.scale}
        modes = np.array([fit.found.parameters[first:] for fit in fits])
        variances = np.array([np.sum(fit.root[:, first:] ** 2, axis=0) for fit in fits])
        error = np.sqrt(weights @ (variances + (modes - x[first:]) ** 2))
    else:
        x, optimum = found.parameters, found
        error = np.sqrt(np.diag(_covariance(found))[first:])

    def measure() -> Uncertainty:
        if isinstance(found, SpreadPosterior) and len(found.fits) > 1:
            mixture = found.mixture
            return Uncertainty(
                mixture.draw(_DRAWS, seed),
                mixture.std_error,
                "Laplace approximation, averaged over the spread of scores",
                sampled=True,
            )
        covariance = _covariance(optimum)[: len(items), : len(items)]
        spread, around = draw_from_covariance(covariance, items.centre, seed)
        return Uncertainty(items.centre(x[: len(items)]) + around, spread, "Laplace approximation")

    parameters = {"tie": float(x[len(items)])} if len(x) > len(items) + len(units) else {}
    parameters |= spread_found
    for (name, unit), effect, its_error in zip(units.items(), x[first:], error, strict=True):
        parameters |= {
            f"{COVARIATE_PREFIX}{name}": float(effect) / unit,
            f"{COVARIATE_ERROR_PREFIX}{name}": float(its_error) / unit,
            f"{FEATURE_UNIT_PREFIX}{name}": unit,
        }
    return build_ranking(
        model,
        comparisons,
        x[: len(items)],
        parameters=parameters,
        log_likelihood=_curvature(optimum).log_likelihood,
        convergence=Convergence(optimum.converged, optimum.steps, optimum.distance),
        measure=measure,
    )


def _curvature(found: OptimizeResult) -> CovariateCurvature:
    assert isinstance(found.evaluation.curvature, CovariateCurvature)
    return found.evaluation.curvature


def _covariance(found: OptimizeResult) -> FloatArray:
    return np.asarray(np.linalg.inv(_curvature(found).matrix()))


def covariate_margin(ranking: Ranking, comparisons: Comparisons, names: Sequence[str]) -> Any:
    """What the covariates add to the margin of each comparison. Categories that were not fitted add nothing."""
    margin = np.zeros(len(comparisons))
    for name, column in feature_columns(comparisons, names).items():
        margin += ranking.parameters.get(f"{COVARIATE_PREFIX}{name}", 0.0) * column
    return margin


# Errors that know which comparisons belong together: the sandwich estimate of bradley-terry and thurstone.
#
# Votes on one prompt, or by one annotator, share what the model does not know, so they tell less than as many
# independent votes. With g_c the gradient of the log-likelihood over cluster c, Λ the precision of the prior and H
# the curvature of the log posterior, the covariance of the estimate is
#
# H⁻¹ (Σ_c g_c g_cᵀ + Λ) H⁻¹,
#
# which is H⁻¹ itself if comparisons are independent and the model is true (Liang & Zeger 1986). Few clusters vary by
# chance: the sum is multiplied by C/(C − p), with p the effective number of parameters, and by the variance of
# Student's t distribution.

_CELLS_AT_ONCE = 4_000_000
_LARGEST_SHARE_FITTED = 0.5


def with_sandwich(model: PairwiseModel, comparisons: Comparisons, ranking: Ranking, clusters: IntArray) -> Ranking:
    """Return the ranking with errors that take comparisons of one cluster as dependent.

    Parameters
    ----------
    model : BradleyTerry or Thurstone
        The model that was fitted.
    comparisons : Comparisons
        The judgments that it was fitted to.
    ranking : Ranking
        The fitted ranking.
    clusters : array of int
        The cluster of each comparison, counted from 0.
    """
    items = ranking.items
    if len(items) > MAX_ITEMS:
        raise DataError(
            f"Errors by cluster are computed for up to {MAX_ITEMS:,} items, got {len(items):,}.",
            remedy="Pass uncertainty='bootstrap'.",
            option="uncertainty",
            value="bootstrap",
        )
    judged = without_both_bad(model, comparisons)
    if len(judged) < len(comparisons) and comparisons.both_bad is not None:
        clusters = clusters[~comparisons.both_bad]
    kept, formula = choose_formula(model, judged)
    if len(kept) < len(judged):
        clusters = clusters[judged.outcome != 0]
    count = int(clusters.max()) + 1
    shard, x, names = _encode(model, kept, ranking)
    covariance = _sandwich(model, shard, x, formula, ranking, clusters)
    first = len(x) - len(names)
    errors = np.sqrt(np.diag(covariance)[first:])
    parameters = dict(ranking.parameters)
    for name, error in zip(names, errors, strict=True):
        parameters[f"{COVARIATE_ERROR_PREFIX}{name}"] = float(error) / parameters[f"{FEATURE_UNIT_PREFIX}{name}"]

    def measure() -> Uncertainty:
        spread, around = draw_from_covariance(covariance[: len(items), : len(items)], items.centre, model.seed)
        return Uncertainty(ranking.scores + around, spread, f"sandwich estimator over {count:,} clusters")

    return replace(ranking.with_parts(uncertainty=measure), parameters=parameters)


def _encode(
    model: PairwiseModel, comparisons: Comparisons, ranking: Ranking
) -> tuple[CovariatePairs, FloatArray, list[str]]:
    """The comparisons as one shard, the parameters x = (scores, θ, β), and the names of the covariates."""
    columns = feature_columns(comparisons, model.covariates)
    names = [name for name in columns if f"{COVARIATE_PREFIX}{name}" in ranking.parameters]
    units = [ranking.parameters[f"{FEATURE_UNIT_PREFIX}{name}"] for name in names]
    table = np.zeros((len(comparisons), len(names)))
    for n, (name, unit) in enumerate(zip(names, units, strict=True)):
        table[:, n] = columns[name] / unit
    effects = [ranking.parameters[f"{COVARIATE_PREFIX}{name}"] * unit for name, unit in zip(names, units, strict=True)]
    tie = [ranking.parameters["tie"]] if "tie" in ranking.parameters else []
    shard = CovariatePairs(comparisons.left, comparisons.right, comparisons.outcome, comparisons.weights, table)
    return shard, np.concatenate((ranking.scores, tie, effects)), names


def _sandwich(
    model: PairwiseModel, shard: CovariatePairs, x: FloatArray, formula: int, ranking: Ranking, clusters: IntArray
) -> FloatArray:
    size, items = len(ranking.items), ranking.items
    precision = _prior_precision(model, ranking, x, formula)
    information = evaluate(shard, x, size, formula).curvature
    hessian = information + np.diag(precision)
    if not precision[:size].any():  # a common shift of a query's scores changes nothing: hold it fixed
        hessian[:size, :size] += (items.query[:, None] == items.query) * (np.diag(hessian)[:size].mean() / size)
    count = int(clusters.max()) + 1
    bread = np.linalg.inv(hessian)
    # The estimate follows each cluster a little, so that gradients at the estimate are too small.
    fitted = min(float(np.sum(bread * information)), _LARGEST_SHARE_FITTED * count)
    meat = _meat(shard, x, size, formula, clusters) * count / (count - fitted)
    covariance = bread @ (meat + np.diag(precision)) @ bread
    student = (count - 1) / max(count - 3, 1)
    jitter = 1e-12 * float(np.trace(covariance)) / len(x)  # fewer clusters than items leave directions without error
    return np.asarray(student * covariance + jitter * np.eye(len(x)))


def _prior_precision(model: PairwiseModel, ranking: Ranking, x: FloatArray, formula: int) -> FloatArray:
    """Curvature of the log prior in each parameter."""
    size, has_theta = len(ranking.items), formula in (DAVIDSON, THRESHOLD)
    learns = model.prior_scale == "auto"
    scale = ranking.parameters["prior_scale"] if learns else model.prior_scale
    precision = np.zeros(len(x))
    if scale is not None:
        precision[:size] += 1.0 / float(scale) ** 2
        precision[size + has_theta :] = 1.0 / EFFECT_SCALE**2
        if has_theta:
            precision[size] = 1.0 / (TIE_SCALE if learns else float(scale)) ** 2
    if model.virtual_weight:
        precision[:size] += virtual_node(x[:size], model.virtual_weight, WITHOUT_TIES[formula]).curvature
    return precision


def _meat(shard: CovariatePairs, x: FloatArray, size: int, formula: int, clusters: IntArray) -> FloatArray:
    """Sum over clusters of the outer product of their gradients, around its mean."""
    has_theta = formula in (DAVIDSON, THRESHOLD)
    first, count = size + has_theta, int(clusters.max()) + 1
    margin = x[shard.left] - x[shard.right] + shard.covariates @ x[first:]
    _, slope, _, theta_slope, *_ = FORMULAS[formula](margin, shard.outcome, float(x[size]) if has_theta else 0.0)
    slope = shard.weight * slope
    total, mean = np.zeros((len(x), len(x))), np.zeros(len(x))
    order = np.argsort(clusters, kind="stable")
    starts = np.searchsorted(clusters[order], np.arange(count + 1))
    block = max(1, _CELLS_AT_ONCE // len(x))
    for low in range(0, count, block):
        high = min(low + block, count)
        rows = order[starts[low] : starts[high]]
        gradient = np.zeros((high - low, len(x)))
        own = clusters[rows] - low
        np.add.at(gradient, (own, shard.left[rows]), slope[rows])
        np.add.at(gradient, (own, shard.right[rows]), -slope[rows])
        np.add.at(gradient[:, first:], own, shard.covariates[rows] * slope[rows, None])
        if has_theta:
            np.add.at(gradient[:, size], own, (shard.weight * theta_slope)[rows])
        total += gradient.T @ gradient
        mean += gradient.sum(axis=0)
    return np.asarray(total - np.outer(mean, mean) / count)
