"""Log posterior of the scores with the annotators integrated out, and its curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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
    with_polynomials,
)
from crowdrank.models.crowd.quality_priors import (
    EffectGrids,
    QualityDistribution,
    TieDistribution,
    grid_log_evidence,
    grid_posterior,
)

# Up to this many items the curvature is a matrix; beyond it, it is known by its products.
MAX_DENSE_ITEMS = 800
STRETCH = 0.25
"""Scores are stretched by a factor of at most e to this power in one step."""


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
    """

    rows: ShardedData
    terms: MarginalTerms
    precision: float
    annotators: int
    tables: GridTables

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
        (own,) = self.rows.sum(curvature_matrix, self.size)
        (gradients,) = self.rows.sum(annotator_gradients, self.size, self.annotators)
        outer = gradients.T @ gradients
        own = own - (outer if isinstance(outer, np.ndarray) else outer.toarray())
        own.flat[:: self.size + 1] += self.precision
        return np.asarray(own)

    def _product(self, vector: FloatArray) -> FloatArray:
        (projected,) = self.rows.sum(project, vector, self.annotators)
        (found,) = self.rows.sum(curvature_product, vector, projected)
        return np.asarray(found + self.precision * vector)


def marginal_curvature(evaluation: Evaluation) -> MarginalCurvature:
    """The curvature of an evaluation of `MarginalObjective`."""
    assert isinstance(evaluation.curvature, MarginalCurvature)
    return evaluation.curvature


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
    """

    shards: ShardedData
    grids: EffectGrids
    hyper: Hyperparameters
    formula: int

    @property
    def points(self) -> GridPoints:
        """The grid points of both random effects."""
        return self.grids.points(self.hyper.tie)

    def at(self, hyper: Hyperparameters) -> MarginalObjective:
        return replace(self, hyper=hyper)

    def of_some_annotators(self, step: int) -> MarginalObjective:
        """The objective of the answers of every `step`-th annotator."""
        if step == 1:
            return self
        shards, _ = self.shards.map_and_sum(every_nth_annotator, step)
        return replace(self, shards=shards, grids=replace(self.grids, grid_of=self.grids.grid_of[::step]))

    @cached_property
    def log_weights(self) -> FloatArray:
        """Log prior weights of the grid points of every annotator."""
        return np.asarray(self.grids.log_weights(self.hyper.quality)[self.grids.grid_of])

    @cached_property
    def log_tie_weights(self) -> FloatArray:
        return self.grids.log_tie_weights(self.hyper.tie)

    def __call__(self, scores: FloatArray) -> Evaluation:
        points = self.points
        tables = self.tables(scores)
        value = self.log_likelihood(tables)
        posterior = self.posterior(tables)
        eta = points.eta[points.grid_of]
        log_nu = np.broadcast_to(np.log(points.nu), posterior.tie.shape)
        stacked = GridPosterior(
            with_polynomials(posterior.quality, eta, QUALITY_RANK),
            with_polynomials(posterior.tie, log_nu, TIE_RANK),
        )
        rows, terms = self.shards.map_and_sum(margin_terms, scores, points, stacked, self.formula)
        precision = self.hyper.scale**-2.0
        value -= 0.5 * precision * float(scores @ scores)
        curvature = MarginalCurvature(rows, terms, precision, len(points.grid_of), tables)
        return Evaluation(value, terms.gradient - precision * scores, curvature)

    def tables(self, scores: FloatArray) -> GridTables:
        """Log-likelihoods of the annotators at their grid points."""
        found: Any = self.shards.sum(grid_tables, scores, self.points, self.formula)
        return GridTables(*found)

    def log_likelihood(self, tables: GridTables) -> float:
        """Marginal log-likelihood of the answers."""
        value = grid_log_evidence(tables.quality, self.log_weights)
        return value + (grid_log_evidence(tables.tie, self.log_tie_weights) if len(self.grids.nu) else 0.0)

    def posterior(self, tables: GridTables) -> GridTables:
        """Posterior weights of the grid points of every annotator."""
        tie = grid_posterior(tables.tie, self.log_tie_weights) if len(self.grids.nu) else tables.tie
        return GridTables(grid_posterior(tables.quality, self.log_weights), tie)


@dataclass(frozen=True, eq=False)
class StretchedTables:
    """Log-likelihoods of annotators at their grid points, as functions of a common factor eᵘ of the scores.

    Parameters
    ----------
    quality, tie : arrays of float, draws × coefficients × annotators × points
        Coefficients of the parabola in u through three values, at two opposite draws of the scores.
    grid_of : array of int
        Grid of each annotator.
    repeats : float
        Annotators that each of these stands for.
    """

    quality: FloatArray
    tie: FloatArray
    grid_of: Int32Array
    repeats: float

    @classmethod
    def around(
        cls, objective: MarginalObjective, scores: FloatArray, noise: FloatArray, repeats: float
    ) -> StretchedTables:
        """Tables at two opposite draws from the posterior of the scores, each stretched by three factors."""
        quality, tie = [], []
        for drawn in (scores + noise, scores - noise):
            tables = [objective.tables(np.exp(u) * drawn) for u in (-STRETCH, 0.0, STRETCH)]
            quality.append(_parabola([table.quality for table in tables]))
            tie.append(_parabola([table.tie for table in tables]))
        return cls(np.array(quality), np.array(tie), objective.grids.grid_of, repeats)

    def log_likelihood(self, log_weights: FloatArray, log_tie_weights: FloatArray, u: float) -> float:
        """Marginal log-likelihood for these prior weights and this stretch, averaged over the draws."""
        total = sum(grid_log_evidence(_at(one, u), log_weights[self.grid_of]) for one in self.quality)
        return 0.5 * self.repeats * total + self.tie_log_likelihood(log_tie_weights, u)

    def tie_log_likelihood(self, log_weights: FloatArray, u: float) -> float:
        if not len(log_weights):
            return 0.0
        return 0.5 * self.repeats * sum(grid_log_evidence(_at(one, u), log_weights) for one in self.tie)


def _parabola(values: list[FloatArray]) -> FloatArray:
    """Coefficients of 1, u and u² of the parabola through the values at −STRETCH, 0 and STRETCH."""
    behind, middle, ahead = values
    return np.stack((middle, (ahead - behind) / (2.0 * STRETCH), 0.5 * (ahead + behind - 2.0 * middle) / STRETCH**2))


def _at(coefficients: FloatArray, u: float) -> FloatArray:
    constant, linear, quadratic = coefficients
    return np.asarray(constant + u * (linear + u * quadratic))
