"""Errors that know which comparisons belong together: the sandwich estimate of bradley-terry and thurstone.

Votes on one prompt, or by one annotator, share what the model does not know, so they tell less than as many independent
votes. With g_c the gradient of the log-likelihood over cluster c, Λ the precision of the prior and H the curvature of
the log posterior, the covariance of the estimate is

    H⁻¹ (Σ_c g_c g_cᵀ + Λ) H⁻¹,

which is H⁻¹ itself if comparisons are independent and the model is true (Liang & Zeger 1986). Few clusters vary by
chance: the sum is multiplied by C/(C − p), with p the effective number of parameters, and by the variance of Student's
t distribution.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.data.features import feature_columns
from crowdrank.errors import DataError
from crowdrank.inference.laplace import draw_from_covariance
from crowdrank.models.pairwise.covariates import EFFECT_SCALE, MAX_ITEMS, CovariatePairs, evaluate
from crowdrank.models.pairwise.likelihood import DAVIDSON, FORMULAS, THRESHOLD, virtual_node
from crowdrank.models.pairwise.paired import TIE_SCALE, WITHOUT_TIES, PairwiseModel, choose_formula, without_both_bad
from crowdrank.results import Ranking, Uncertainty
from crowdrank.results.bias_effects import FEATURE_UNIT_PREFIX
from crowdrank.results.covariates import COVARIATE_ERROR_PREFIX, COVARIATE_PREFIX

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
        return Uncertainty(ranking.scores + around, spread, f"sandwich over {count:,} clusters")

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
