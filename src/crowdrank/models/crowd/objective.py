"""The log posterior of a model of the Crowd-BT family, with its gradient and curvature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.engines import ShardedData
from crowdrank.inference.curvature import DAMPINGS, DampedCurvature
from crowdrank.inference.newton import Evaluation
from crowdrank.models.crowd import hessian, likelihood
from crowdrank.models.crowd.likelihood import Derivatives
from crowdrank.models.crowd.priors import LogPrior, PairCurvatures, Priors

# Up to this many parameters the full matrix is factored; beyond it, conjugate gradients are faster.
_MAX_FACTORED = 300
# The Hessian's own diagonal is used where it is at least this share of the Fisher information.
_MIN_FISHER_SHARE = 0.1


@dataclass(frozen=True)
class Layout:
    """Order of the parameters in one vector: scores, then one logit per annotator, then feature weights by annotator.

    Parameters
    ----------
    items, annotators, features : int
        How many there are.
    """

    items: int
    annotators: int
    features: int = 0

    @property
    def size(self) -> int:
        return self.items + self.annotators * (1 + self.features)

    def split(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, logits and feature weights (annotators × features)."""
        scores, logits, feature_weights = np.split(x, (self.items, self.items + self.annotators))
        return scores, logits, feature_weights.reshape(self.annotators, self.features)

    def join(self, scores: FloatArray, logits: FloatArray, feature_weights: FloatArray) -> FloatArray:
        return np.concatenate((scores, logits, np.ravel(feature_weights)))


@dataclass(frozen=True)
class Curvature:
    """Negative Hessian of the log posterior at one point.

    Parameters
    ----------
    rows : sharded data
        Shards of `AnswerCurvature`.
    derivatives : Derivatives
        Log-likelihood, its gradient and diagonals.
    prior : LogPrior
        The priors there.
    layout : Layout
        Order of the parameters.
    """

    rows: ShardedData
    derivatives: Derivatives
    prior: LogPrior
    layout: Layout

    @property
    def diagonal(self) -> FloatArray:
        """Fisher information, which is positive even where the negative Hessian is not."""
        found = self.derivatives
        own = self.layout.join(found.scores_fisher, found.logits_fisher, found.feature_weights_fisher)
        return np.asarray(np.maximum(own + self.prior.curvature, 1e-8))

    @property
    def scale(self) -> FloatArray:
        """Diagonal preconditioner: that of the negative Hessian, or Fisher's where that is not clearly positive."""
        found, fisher = self.derivatives, self.diagonal
        own = self.layout.join(found.scores_curvature, found.logits_curvature, found.feature_weights_fisher)
        own = own + self.prior.curvature
        return np.asarray(np.where(own > _MIN_FISHER_SHARE * fisher, own, fisher))

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        return self.damped(factored=self.layout.size <= _MAX_FACTORED).solve(vector, tolerance)

    def damped(self, factored: bool) -> DampedCurvature:
        return DampedCurvature(self.product, self.diagonal, self.matrix if factored else None, self.scale)

    def product(self, vector: FloatArray) -> FloatArray:
        found = self.layout.join(*self.rows.sum(hessian.hessian_product, *self.layout.split(vector)))
        found += self.prior.curvature * vector
        first, second, curvature = self._pairs
        np.subtract.at(found, first, curvature * vector[second])
        np.subtract.at(found, second, curvature * vector[first])
        return found

    def matrix(self) -> FloatArray:
        layout = self.layout
        (matrix,) = self.rows.sum(hessian.hessian_matrix, layout.items, layout.annotators, layout.features)
        matrix[np.diag_indices(layout.size)] += self.prior.curvature
        first, second, curvature = self._pairs
        np.subtract.at(matrix, (first, second), curvature)
        np.subtract.at(matrix, (second, first), curvature)
        return np.asarray(matrix)

    @property
    def _pairs(self) -> PairCurvatures:
        """Curvature between logits, with their places among all parameters."""
        first, second, curvature = self.prior.pairs
        return PairCurvatures(self.layout.items + first, self.layout.items + second, curvature)

    def marginal(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of the scores and standard errors of annotators' parameters, each with all others unknown."""
        return self._by_inversion() if len(self.prior.pairs.curvature) else self._by_elimination()

    def _by_inversion(self) -> tuple[FloatArray, FloatArray]:
        layout = self.layout
        root = self.damped(factored=True).cholesky()
        inverse = np.linalg.inv(root)
        covariance = inverse.T @ inverse
        _, logits, feature_weights = layout.split(np.sqrt(np.diag(covariance)))
        return covariance[: layout.items, : layout.items], np.column_stack((logits, feature_weights))

    def _by_elimination(self) -> tuple[FloatArray, FloatArray]:
        """Schur complement: annotators are independent given the scores, so each is eliminated as one small block."""
        from scipy.sparse import bsr_array

        layout, width = self.layout, 1 + self.layout.features
        own, across, small = self.rows.sum(hessian.hessian_blocks, layout.items, layout.annotators, layout.features)
        diagonal, logits, feature_weights = layout.split(self.diagonal)
        small_diagonal = np.column_stack((logits, feature_weights))
        prior, logit_prior, weight_prior = layout.split(self.prior.curvature)
        own.flat[:: layout.items + 1] += prior
        small[:, range(width), range(width)] += np.column_stack((logit_prior, weight_prior))
        for damping in DAMPINGS:
            blocks = small + damping * small_diagonal[:, :, None] * np.eye(width)
            try:
                np.linalg.cholesky(blocks)
                inverse = np.linalg.inv(blocks)
                people = np.arange(layout.annotators)
                block = bsr_array((inverse, people, np.append(people, layout.annotators)), shape=(across.shape[1],) * 2)
                through = (across @ block).tocsr()
                rest = own + np.diag(damping * diagonal) - (through @ across.T).toarray()
                np.linalg.cholesky(rest)
                break
            except np.linalg.LinAlgError:
                continue
        covariance = np.linalg.inv(rest)
        from_scores = np.asarray(through.multiply((through.T @ covariance).T).sum(axis=0)).ravel()
        own_part = inverse[:, range(width), range(width)].ravel()
        return covariance, np.sqrt(own_part + from_scores).reshape(layout.annotators, width)


@dataclass(frozen=True)
class Objective:
    """Log posterior as a function of all parameters.

    Parameters
    ----------
    shards : sharded data
        The answers.
    layout : Layout
        Order of the parameters.
    formula : int
        Which likelihood: CROWD_BT, CROWD_BT_PROBIT, VARIANCE_BT or FACTOR_BT.
    priors : Priors
        Priors and constraints.
    """

    shards: ShardedData
    layout: Layout
    formula: int
    priors: Priors

    def __call__(self, x: FloatArray) -> Evaluation:
        parts = self.layout.split(x)
        rows, found = self.shards.map_and_sum(likelihood.evaluate, *parts, self.formula)
        prior = self.priors.evaluate(*parts, self.formula)
        gradient = self.layout.join(found.scores, found.logits, found.feature_weights) + prior.gradient
        return Evaluation(found.value + prior.value, gradient, Curvature(rows, found, prior, self.layout))

    def of_scores(self, logits: FloatArray, feature_weights: FloatArray) -> Callable[[FloatArray], Evaluation]:
        """The same as a function of the scores, with the annotators fixed."""
        part = slice(0, self.layout.items)
        return lambda scores: self._restricted(self.layout.join(scores, logits, feature_weights), part)

    def of_logits(self, scores: FloatArray, feature_weights: FloatArray) -> Callable[[FloatArray], Evaluation]:
        """The same as a function of the logits, with all else fixed."""
        part = slice(self.layout.items, self.layout.items + self.layout.annotators)
        return lambda logits: self._restricted(self.layout.join(scores, logits, feature_weights), part)

    def _restricted(self, x: FloatArray, part: slice) -> Evaluation:
        found = self(x)
        assert isinstance(found.curvature, Curvature)
        return Evaluation(found.value, found.gradient[part], HessianBlock(found.curvature, part))


@dataclass(frozen=True)
class HessianBlock:
    """The diagonal block of the curvature that belongs to some of the parameters."""

    whole: Curvature
    part: slice

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        factored = len(vector) <= _MAX_FACTORED
        matrix = (lambda: self.whole.matrix()[self.part, self.part]) if factored else None
        scales = (self.whole.diagonal[self.part], matrix, self.whole.scale[self.part])
        return DampedCurvature(self._product, *scales).solve(vector, tolerance)

    def _product(self, vector: FloatArray) -> FloatArray:
        padded = np.zeros(self.whole.layout.size)
        padded[self.part] = vector
        return self.whole.product(padded)[self.part]
