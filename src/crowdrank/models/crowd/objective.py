"""log P(answers | scores, gates, pulls) + log prior, with its curvature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.engines import ShardedData
from crowdrank.inference.curvature import DAMPINGS, DampedCurvature
from crowdrank.inference.newton import Evaluation
from crowdrank.models.crowd import likelihood
from crowdrank.models.crowd.likelihood import LikelihoodTerms
from crowdrank.models.crowd.priors import Layout, PriorPoint, Priors
from crowdrank.models.crowd.side_information import Bonds

_LARGEST_FACTORED = 300
# Of Fisher's diagonal, below which the curvature's own is no measure of anything.
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Curvature:
    """The curvature of the answers' likelihood and of the priors at one point."""

    rows: ShardedData
    slopes: LikelihoodTerms
    prior: PriorPoint
    layout: Layout

    @property
    def diagonal(self) -> FloatArray:
        """Fisher's, so that it is positive even where the curvature is not."""
        own = self.layout.join(self.slopes.scores_bend, self.slopes.gates_bend, self.slopes.pulls_bend)
        return np.asarray(np.maximum(own + self.prior.bend, 1e-8))

    @property
    def scale(self) -> FloatArray:
        """To precondition with: the curvature's own diagonal, but for where that is not positive, or nearly."""
        slopes, fisher = self.slopes, self.diagonal
        own = self.layout.join(slopes.scores_own, slopes.gates_own, slopes.pulls_bend) + self.prior.bend
        return np.asarray(np.where(own > _LEAST_SHARE * fisher, own, fisher))

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        return self.damped(factored=self.layout.size <= _LARGEST_FACTORED).solve(vector, tolerance)

    def damped(self, factored: bool) -> DampedCurvature:
        return DampedCurvature(self.product, self.diagonal, self.matrix if factored else None, self.scale)

    def product(self, vector: FloatArray) -> FloatArray:
        found = self.layout.join(*self.rows.sum(likelihood.product, *self.layout.split(vector)))
        found += self.prior.bend * vector
        first, second, bend = self._bonds
        np.subtract.at(found, first, bend * vector[second])
        np.subtract.at(found, second, bend * vector[first])
        return found

    def matrix(self) -> FloatArray:
        (matrix,) = self.rows.sum(likelihood.matrix, self.layout.items, self.layout.annotators, self.layout.features)
        matrix[np.diag_indices(self.layout.size)] += self.prior.bend
        first, second, bend = self._bonds
        np.subtract.at(matrix, (first, second), bend)
        np.subtract.at(matrix, (second, first), bend)
        return np.asarray(matrix)

    @property
    def _bonds(self) -> Bonds:
        """Between gates, where these stand among all parameters."""
        first, second, bend = self.prior.bonds
        return Bonds(self.layout.items + first, self.layout.items + second, bend)

    def marginal(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of the scores, and standard errors of annotators' parameters, each with the others unknown."""
        return self._by_inverting() if len(self.prior.bonds.bend) else self._by_eliminating()

    def _by_inverting(self) -> tuple[FloatArray, FloatArray]:
        layout = self.layout
        root = self.damped(factored=True).cholesky()
        inverse = np.linalg.inv(root)
        covariance = inverse.T @ inverse
        _, gates, pulls = layout.split(np.sqrt(np.diag(covariance)))
        return covariance[: layout.items, : layout.items], np.column_stack((gates, pulls))

    def _by_eliminating(self) -> tuple[FloatArray, FloatArray]:
        """An annotator's parameters touch no other annotator's: they are eliminated one small block at a time."""
        from scipy.sparse import bsr_array

        layout, width = self.layout, 1 + self.layout.features
        own, across, small = self.rows.sum(likelihood.blocks, layout.items, layout.annotators, layout.features)
        diagonal, gates, pulls = layout.split(self.diagonal)
        spare = np.column_stack((gates, pulls))
        prior, gate_prior, pull_prior = layout.split(self.prior.bend)
        own.flat[:: layout.items + 1] += prior
        small[:, range(width), range(width)] += np.column_stack((gate_prior, pull_prior))
        for damping in DAMPINGS:
            held = small + damping * spare[:, :, None] * np.eye(width)
            try:
                np.linalg.cholesky(held)
                inverse = np.linalg.inv(held)
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
    """What is to be climbed."""

    held: ShardedData
    layout: Layout
    formula: int
    priors: Priors

    def __call__(self, x: FloatArray) -> Evaluation:
        parts = self.layout.split(x)
        rows, slopes = self.held.map_and_sum(likelihood.slopes, *parts, self.formula)
        prior = self.priors.at(*parts, self.formula)
        gradient = self.layout.join(slopes.scores, slopes.gates, slopes.pulls) + prior.slope
        return Evaluation(slopes.value + prior.value, gradient, Curvature(rows, slopes, prior, self.layout))

    def of_scores(self, gates: FloatArray, pulls: FloatArray) -> Callable[[FloatArray], Evaluation]:
        """The same with the annotators held as they are."""
        part = slice(0, self.layout.items)
        return lambda scores: self._corner(self.layout.join(scores, gates, pulls), part)

    def of_gates(self, scores: FloatArray, pulls: FloatArray) -> Callable[[FloatArray], Evaluation]:
        """The same with all but the gates held."""
        part = slice(self.layout.items, self.layout.items + self.layout.annotators)
        return lambda gates: self._corner(self.layout.join(scores, gates, pulls), part)

    def _corner(self, x: FloatArray, part: slice) -> Evaluation:
        point = self(x)
        assert isinstance(point.curvature, Curvature)
        return Evaluation(point.value, point.gradient[part], Corner(point.curvature, part))


@dataclass(frozen=True)
class Corner:
    """The part of the curvature that belongs to some of the parameters."""

    whole: Curvature
    part: slice

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        factored = len(vector) <= _LARGEST_FACTORED
        matrix = (lambda: self.whole.matrix()[self.part, self.part]) if factored else None
        scales = (self.whole.diagonal[self.part], matrix, self.whole.scale[self.part])
        return DampedCurvature(self._product, *scales).solve(vector, tolerance)

    def _product(self, vector: FloatArray) -> FloatArray:
        padded = np.zeros(self.whole.layout.size)
        padded[self.part] = vector
        return self.whole.product(padded)[self.part]
