"""Log posterior of the scores with the annotators integrated out, and its curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.engines import ShardedData
from crowdrank.inference.curvature import DampedCurvature
from crowdrank.inference.newton import Evaluation
from crowdrank.models.crowd.marginal_likelihood import (
    QUALITY_RANK,
    TIE_RANK,
    GridPoints,
    GridPosterior,
    GridTables,
    MarginalTerms,
    annotator_gradients,
    curvature_matrix,
    curvature_product,
    every_nth_annotator,
    grid_tables,
    margin_terms,
    project,
    replicate,
)
from crowdrank.models.crowd.quality_priors import (
    EffectGrids,
    QualityDistribution,
    TieDistribution,
    WeighedGrids,
    grid_log_evidence,
    grid_log_evidences,
    grid_posterior,
    weigh_grids,
)

# Up to this many items the curvature is a matrix; beyond it, it is known by its products.
MAX_DENSE_ITEMS = 800
LOG_FACTOR = 0.25
"""Largest change of the logarithm of the scale of the scores in one step."""
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Distributions of the scores, of quality and of the tendency to tie.

    Parameters
    ----------
    scale : float
        Standard deviation of the scores.
    quality : QualityDistribution
        Distribution of quality among annotators.
    tie : TieDistribution
        Distribution of the tendency to tie.
    """

    scale: float
    quality: QualityDistribution
    tie: TieDistribution


@dataclass(frozen=True, eq=False)
class MarginalCurvature:
    """Negative Hessian of the marginal log posterior by the scores.

    Parameters
    ----------
    rows : sharded data
        Shards of `MarginRows`.
    terms : MarginalTerms
        Gradient and positive diagonal of the likelihood.
    precision : float
        1/σ² of the prior on scores.
    annotators : int
        Number of annotators.
    tables : GridTables
        Log-likelihoods of the annotators at their grid points.
    replicates : int, default 1
        How many times the items are repeated. The matrix is the sum of those of all replicates.
    """

    rows: ShardedData
    terms: MarginalTerms
    precision: float
    annotators: int
    tables: GridTables
    replicates: int = 1

    @property
    def size(self) -> int:
        return len(self.terms.gradient)

    @property
    def diagonal(self) -> FloatArray:
        return np.asarray(self.terms.fisher + self.precision)

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        matrix = (lambda: self.matrix) if self.size <= MAX_DENSE_ITEMS else None
        return DampedCurvature(self._product, self.diagonal, matrix).solve(vector, tolerance)

    def cholesky(self) -> FloatArray:
        """Cholesky factor L of the curvature, LLᵀ."""
        return DampedCurvature(self._product, self.diagonal, lambda: self.matrix).cholesky()

    @cached_property
    def matrix(self) -> FloatArray:
        items = self.size // self.replicates
        (own,) = self.rows.sum(curvature_matrix, items)
        (gradients,) = self.rows.sum(annotator_gradients, items, self.annotators)
        outer = gradients.T @ gradients
        own = own - (outer if isinstance(outer, np.ndarray) else outer.toarray())
        own.flat[:: items + 1] += self.replicates * self.precision
        return np.asarray(own)

    def _product(self, vector: FloatArray) -> FloatArray:
        (projected,) = self.rows.sum(project, vector, self.annotators)
        (found,) = self.rows.sum(curvature_product, vector, projected)
        return np.asarray(found + self.precision * vector)


def marginal_curvature(evaluation: Evaluation) -> MarginalCurvature:
    """The curvature of an evaluation of `MarginalObjective`."""
    assert isinstance(evaluation.curvature, MarginalCurvature)
    return evaluation.curvature


class MeanEvaluation(NamedTuple):
    """Means over several vectors of scores.

    Parameters
    ----------
    gradient : array of float
        Mean gradient of the log posterior.
    matrix, diagonal : arrays of float
        Mean curvature, and a positive diagonal for damping.
    tables : array of float, (draws · annotators) × points
        Log-likelihoods of the annotators at their grid points, for every draw.
    """

    gradient: FloatArray
    matrix: FloatArray
    diagonal: FloatArray
    tables: FloatArray


@dataclass(frozen=True, eq=False)
class MarginalObjective:
    """Log posterior of the scores, up to a constant, with quality and tendency to tie integrated out.

    Parameters
    ----------
    shards : sharded data
        The answers.
    grids : EffectGrids
        Grid of each annotator.
    hyper : Hyperparameters
        Distributions of the scores and of the annotators.
    formula : int
        CROWD_BT or CROWD_BT_PROBIT.
    compile_loops : bool, default False
        Whether loops over the answers are compiled, which pays off if there are many.
    replicates : int, default 1
        How many times the answers are repeated, each time with other scores.
    """

    shards: ShardedData
    grids: EffectGrids
    hyper: Hyperparameters
    formula: int
    compile_loops: bool = False
    replicates: int = 1

    @property
    def points(self) -> GridPoints:
        """The grid points of both random effects."""
        points, count = self.grids.points(self.hyper.tie), self.replicates
        if count == 1:
            return points
        grid_of, effect = np.tile(points.grid_of, count), np.tile(points.tie_effect, count)
        return points._replace(grid_of=grid_of, tie_effect=effect)

    def at(self, hyper: Hyperparameters) -> MarginalObjective:
        return replace(self, hyper=hyper)

    def of_some_annotators(self, step: int) -> MarginalObjective:
        """The objective of the answers of every `step`-th annotator."""
        if step == 1:
            return self
        shards, _ = self.shards.map_and_sum(every_nth_annotator, step)
        return replace(self, shards=shards, grids=replace(self.grids, grid_of=self.grids.grid_of[::step]))

    def replicated(self, count: int, items: int) -> MarginalObjective:
        """The objective of several vectors of scores in a row: evaluating them together takes less time."""
        if count == 1:
            return self
        shards, _ = self.shards.map_and_sum(replicate, count, items, len(self.grids.grid_of))
        return replace(self, shards=shards, replicates=count)

    def mean_over(self, draws: FloatArray) -> MeanEvaluation:
        """Means over vectors of scores (draws × items), as many as there are replicates or a multiple of that."""
        count, items = draws.shape
        gradient, diagonal, matrix = np.zeros(items), np.zeros(items), np.zeros((items, items))
        tables = []
        for scores in draws.reshape(-1, self.replicates * items):
            evaluation = self(scores)
            curvature = marginal_curvature(evaluation)
            gradient += evaluation.gradient.reshape(-1, items).sum(axis=0)
            diagonal += curvature.diagonal.reshape(-1, items).sum(axis=0)
            matrix += curvature.matrix
            tables.append(curvature.tables.quality)
        return MeanEvaluation(gradient / count, matrix / count, diagonal / count, np.concatenate(tables))

    @cached_property
    def log_weights(self) -> FloatArray:
        """Log prior weights of the points of every grid."""
        return self.grids.log_weights(self.hyper.quality)

    @cached_property
    def log_tie_weights(self) -> FloatArray:
        return self.grids.log_tie_weights(self.hyper.tie)

    def __call__(self, scores: FloatArray) -> Evaluation:
        points = self.points
        tables = self.tables(scores)
        quality = weigh_grids(
            tables.quality, self.log_weights, points.eta, points.grid_of, QUALITY_RANK, self.compile_loops
        )
        tie = WeighedGrids(np.zeros((1 + TIE_RANK, *tables.tie.shape)), 0.0)
        if len(points.nu):
            log_nu, same = np.log(points.nu)[None], np.zeros_like(points.grid_of)
            tie = weigh_grids(tables.tie, self.log_tie_weights[None], log_nu, same, TIE_RANK, self.compile_loops)
        stacked = GridPosterior(quality.weights, tie.weights)
        rows, terms = self.shards.map_and_sum(margin_terms, scores, points, stacked, self.formula, self.compile_loops)
        precision = self.hyper.scale**-2.0
        value = quality.log_evidence + tie.log_evidence - 0.5 * precision * float(scores @ scores)
        curvature = MarginalCurvature(rows, terms, precision, len(points.grid_of), tables, self.replicates)
        return Evaluation(value, terms.gradient - precision * scores, curvature)

    def tables(self, scores: FloatArray) -> GridTables:
        """Log-likelihoods of the annotators at their grid points."""
        found: Any = self.shards.sum(grid_tables, scores, self.points, self.formula, self.compile_loops)
        return GridTables(*found)

    def log_likelihood(self, tables: GridTables) -> float:
        """Marginal log-likelihood of the answers."""
        value = grid_log_evidence(tables.quality, self.log_weights[self.grids.grid_of])
        return value + (grid_log_evidence(tables.tie, self.log_tie_weights) if len(self.grids.nu) else 0.0)

    def log_densities(self, draws: FloatArray) -> FloatArray:
        """Log posterior density of vectors of scores (draws × items), a multiple of the number of replicates."""
        rows = draws.reshape(-1, self.replicates * draws.shape[1])
        value = np.concatenate([self._log_likelihoods(self.tables(scores)) for scores in rows])
        return np.asarray(value - 0.5 * self.hyper.scale**-2.0 * np.sum(draws**2, axis=1))

    def _log_likelihoods(self, tables: GridTables) -> FloatArray:
        """Marginal log-likelihood of each replicate."""
        grid_of = np.tile(self.grids.grid_of, self.replicates)
        value = grid_log_evidences(tables.quality, self.log_weights[grid_of])
        if len(self.grids.nu):
            value = value + grid_log_evidences(tables.tie, self.log_tie_weights)
        return np.asarray(value.reshape(self.replicates, -1).sum(axis=1))

    def posterior(self, tables: GridTables) -> GridTables:
        """Posterior weights of the grid points of every annotator."""
        tie = grid_posterior(tables.tie, self.log_tie_weights) if len(self.grids.nu) else tables.tie
        return GridTables(grid_posterior(tables.quality, self.log_weights[self.grids.grid_of]), tie)


@dataclass(frozen=True, eq=False)
class AveragedTables:
    """Likelihoods of annotators at their grid points, for draws of the scores.

    Parameters
    ----------
    likelihood : array of float, rows × points
        Likelihood relative to the largest one of each row; a row is an annotator at one draw.
    log_scale : float
        Sum of the logs of those largest ones.
    grid_of : array of int
        Grid of each row.
    share : float
        Annotators that a row stands for: less than 1 if there are several draws of the scores.
    """

    likelihood: FloatArray
    log_scale: float
    grid_of: Int32Array
    share: float

    @classmethod
    def of(cls, tables: FloatArray, grid_of: Int32Array, share: float) -> AveragedTables:
        """From log-likelihoods (rows × points)."""
        largest = np.max(tables, axis=1)
        return cls(np.exp(tables - largest[:, None]), float(np.sum(largest)), grid_of, share)

    def log_likelihood(self, log_weights: FloatArray) -> float:
        """Marginal log-likelihood for prior weights of the points of every grid, averaged over the draws."""
        largest = np.max(log_weights, axis=1)
        weights = np.exp(log_weights - largest[:, None])
        total = self.likelihood @ weights[0]
        own = self._own_grids
        total[own] = np.einsum("kg,kg->k", self.likelihood[own], weights[self.grid_of[own]])
        logs = np.log(np.maximum(total, _TINY)) + largest[self.grid_of]
        return self.share * (self.log_scale + float(np.sum(logs)))

    @cached_property
    def _own_grids(self) -> Int32Array:
        return np.flatnonzero(self.grid_of).astype(np.int32)


@dataclass(frozen=True, eq=False)
class ScaledTables:
    """Log-likelihoods of annotators at their grid points, as functions of a common factor eᵘ of the scores.

    Parameters
    ----------
    coefficients : array of float, coefficients × rows × points
        The parabola in u through three values. Every annotator has two rows, for two opposite draws of the scores.
    grid_of : array of int
        Grid of each row.
    share : float
        Annotators that a row stands for.
    """

    coefficients: FloatArray
    grid_of: Int32Array
    share: float

    @classmethod
    def around(
        cls, objective: MarginalObjective, scores: FloatArray, noise: FloatArray, repeats: float
    ) -> ScaledTables:
        """Tables at two opposite draws from the posterior of the scores, each multiplied by three factors."""
        parabolas = [
            _parabola([objective.tables(np.exp(u) * drawn).quality for u in (-LOG_FACTOR, 0.0, LOG_FACTOR)])
            for drawn in (scores + noise, scores - noise)
        ]
        return cls(np.concatenate(parabolas, axis=1), np.tile(objective.grids.grid_of, 2), 0.5 * repeats)

    def at(self, u: float) -> AveragedTables:
        """The tables for one factor. They are kept, because the weights change more often than the factor."""
        if u not in self._kept:
            constant, linear, quadratic = self.coefficients
            tables = constant + u * (linear + u * quadratic)
            self._kept[u] = AveragedTables.of(tables, self.grid_of, self.share)
        return self._kept[u]

    @cached_property
    def _kept(self) -> dict[float, AveragedTables]:
        return {}


def _parabola(values: list[FloatArray]) -> FloatArray:
    """Coefficients of 1, u and u² of the parabola through the values at −LOG_FACTOR, 0 and LOG_FACTOR."""
    behind, middle, ahead = values
    return np.stack(
        (middle, (ahead - behind) / (2.0 * LOG_FACTOR), 0.5 * (ahead + behind - 2.0 * middle) / LOG_FACTOR**2)
    )
