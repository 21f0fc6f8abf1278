"""Posterior of the graded response model for given prior widths: its mode, and the normal approximation there.

The curvature has one row per item, three per annotator, and one per threshold. Scores do not interact with each other,
nor do annotators, so the larger of the two groups is eliminated (a Schur complement) and what remains is factored as a
dense matrix. That gives Newton steps, the determinant for the evidence, exact marginal variances and joint draws.
Where both groups are large, Newton steps use conjugate gradients, and each variance is that with the other
parameters of its own group known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines import ShardedData
from crowdrank.inference.curvature import DAMPINGS, DampedCurvature
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize
from crowdrank.models.ratings import graded_response_likelihood as formulas
from crowdrank.models.ratings.graded_response_layout import ParameterLayout, PriorScales
from crowdrank.models.ratings.graded_response_likelihood import HessianBlocks

# The eliminated × remaining block is held as a dense matrix up to so many cells, if so large a share is not zero.
_DENSE_CELLS, _DENSE_SHARE = 4_000_000, 0.1
_MAX_STEP_NORM = 2.0


@dataclass(frozen=True)
class Factors:
    """The curvature after elimination of scores or annotators.

    Parameters
    ----------
    eliminated, kept : array of int
        Positions of the parameters of the two parts.
    inverse : sparse array
        Inverse of the block-diagonal curvature of the eliminated part.
    root : sparse array
        A square root of that inverse: root · rootᵀ = inverse.
    response : array or sparse array, eliminated × kept
        How the eliminated part responds to the kept one: inverse · cross.
    cross : array or sparse array
        The block of the curvature between the two parts.
    cholesky : array
        Lower Cholesky factor of the Schur complement.
    log_determinant : float
        Log determinant of the whole curvature.
    """

    eliminated: IntArray
    kept: IntArray
    inverse: Any
    root: Any
    response: Any
    cross: Any
    cholesky: FloatArray
    log_determinant: float

    def solve(self, vector: FloatArray) -> FloatArray:
        """Curvature⁻¹ · vector."""
        from scipy.linalg import cho_solve

        own = self.inverse @ vector[self.eliminated]
        answer = np.empty(len(vector))
        answer[self.kept] = cho_solve((self.cholesky, True), vector[self.kept] - self.cross.T @ own)
        answer[self.eliminated] = own - self.response @ answer[self.kept]
        return answer

    @cached_property
    def variances(self) -> FloatArray:
        """Marginal variance of each parameter."""
        from scipy.linalg import solve_triangular

        half = solve_triangular(self.cholesky, np.eye(len(self.kept)), lower=True)
        variance = np.empty(len(self.kept) + len(self.eliminated))
        variance[self.kept] = np.sum(half**2, axis=0)
        own = self.inverse.diagonal()
        rows = max(1, _DENSE_CELLS // len(self.kept))
        for low in range(0, len(own), rows):
            part = self.response[low : low + rows] @ half.T
            own[low : low + rows] += np.sum(np.asarray(part) ** 2, axis=1)
        variance[self.eliminated] = own
        return variance

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Joint draws of the parameters around zero, as rows."""
        from scipy.linalg import solve_triangular

        noise = rng.standard_normal((len(self.kept), count))
        kept = solve_triangular(self.cholesky, noise, lower=True, trans="T")
        drawn = np.empty((count, len(self.kept) + len(self.eliminated)))
        drawn[:, self.kept] = kept.T
        own = self.root @ rng.standard_normal((len(self.eliminated), count)) - self.response @ kept
        drawn[:, self.eliminated] = own.T
        return drawn


@dataclass(frozen=True)
class NegativeHessian:
    """Negative Hessian of the log posterior at `x`.

    Parameters
    ----------
    held : ShardedData
        The shards of ratings.
    layout : ParameterLayout
        Positions of the parameters.
    x : array
        The parameters.
    log_likelihood : float
        Log-likelihood of the grades at `x`, without the priors.
    prior : array
        Prior precision of each parameter.
    is_expected : bool, default False
        Whether terms of expectation zero are left out. Newton steps need them. The normal approximation does without:
        where discriminations are uncertain, they make the observed curvature nearly singular, and its determinant
        useless as evidence.
    """

    held: ShardedData
    layout: ParameterLayout
    x: FloatArray
    log_likelihood: float
    prior: FloatArray
    is_expected: bool = False

    @cached_property
    def expected(self) -> NegativeHessian:
        """The same without the terms of expectation zero."""
        return replace(self, is_expected=True)

    @cached_property
    def blocks(self) -> HessianBlocks:
        """The blocks of the likelihood and the prior together."""
        from scipy.sparse import diags_array

        blocks: HessianBlocks = self.held.sum(formulas.hessian, self.x, 0.0 if self.is_expected else 1.0)
        item, *annotator, threshold = np.split(self.prior, self.layout.groups[1:-1])
        own = blocks.annotator.copy()
        own[:, range(3), range(3)] += np.stack(annotator, axis=1)
        return blocks._replace(
            item=blocks.item + item,
            annotator=own,
            threshold=blocks.threshold + diags_array(threshold),
            positive=blocks.positive + self.prior,
        )

    @cached_property
    def factors(self) -> Factors:
        """The factored curvature, damped as little as makes it positive definite."""
        for damping in DAMPINGS:
            try:
                return self._factor(damping)
            except np.linalg.LinAlgError:
                continue
        return self._factor(100.0)

    def _factor(self, damping: float) -> Factors:
        blocks, layout = self.blocks, self.layout
        added = np.split(damping * blocks.positive, layout.groups[1:-1])
        item, people = blocks.item + added[0], layout.annotators
        own = blocks.annotator.copy()
        own[:, range(3), range(3)] += np.stack(added[1:4], axis=1)
        threshold = blocks.threshold.toarray()
        threshold[np.diag_indices_from(threshold)] += added[4]
        positions = np.split(np.arange(layout.groups[-1]), [layout.items, layout.items + 3 * people])
        if 3 * people <= layout.items:
            from scipy.sparse import diags_array, hstack

            if not (item > 0).all():
                raise np.linalg.LinAlgError("indefinite")
            matrix = np.zeros((3 * people + len(threshold),) * 2)
            _scatter(own, matrix)
            across = blocks.annotator_threshold.toarray()
            matrix[: 3 * people, 3 * people :], matrix[3 * people :, : 3 * people] = across, across.T
            matrix[3 * people :, 3 * people :] = threshold
            cross = hstack((blocks.item_annotator, blocks.item_threshold), format="csr")
            inverse, root = diags_array(1 / item), diags_array(item**-0.5)
            return _eliminate(
                positions[0], np.concatenate(positions[1:]), inverse, root, float(np.sum(np.log(item))), cross, matrix
            )
        return self._without_annotators(item, own, threshold, positions)

    def _without_annotators(
        self, item: FloatArray, own: FloatArray, threshold: FloatArray, positions: list[IntArray]
    ) -> Factors:
        from scipy.sparse import hstack

        items = self.layout.items
        lower = np.linalg.cholesky(own)
        root = np.linalg.inv(lower).transpose(0, 2, 1)
        matrix = np.zeros((items + len(threshold),) * 2)
        matrix[range(items), range(items)] = item
        across = self.blocks.item_threshold.toarray()
        matrix[:items, items:], matrix[items:, :items] = across, across.T
        matrix[items:, items:] = threshold
        cross = hstack((self.blocks.item_annotator.T, self.blocks.annotator_threshold), format="csr")
        determinant = 2 * float(np.sum(np.log(lower[:, range(3), range(3)])))
        kept = np.concatenate((positions[0], positions[2]))
        inverse = _block_diagonal(root @ root.transpose(0, 2, 1))
        return _eliminate(positions[1], kept, inverse, _block_diagonal(root), determinant, cross, matrix)

    @cached_property
    def _approximate_variances(self) -> FloatArray:
        """Variances with the other parameters of the same group known, and the other group unknown."""
        blocks, people = self.blocks, self.layout.annotators
        between = blocks.item_annotator.tocoo()
        row, column = between.coords
        order = np.lexsort((column // people, column % people, row))
        cross = between.data[order].reshape(-1, 3)
        item, who = row[order][::3], (column[order] % people)[::3]
        inverse = np.linalg.inv(blocks.annotator)
        explained = np.einsum("ra,rab,rb->r", cross, inverse[who], cross)
        precision = blocks.item - np.bincount(item, explained, self.layout.items)
        score = 1 / np.maximum(precision, 0.05 * blocks.item)
        # a score's own uncertainty adds to that of the annotators who graded it: the inverse of the Schur complement
        outer = cross[:, :, None] * cross[:, None, :] / blocks.item[item][:, None, None]
        removed = [np.bincount(who, outer[:, a, b], people) for a in range(3) for b in range(3)]
        schur = blocks.annotator - np.stack(removed, axis=1).reshape(people, 3, 3)
        try:
            np.linalg.cholesky(schur)
            own = np.linalg.inv(schur)
        except np.linalg.LinAlgError:
            own = inverse
        annotator = own[:, range(3), range(3)].T.ravel()
        return np.concatenate((score, annotator, 1 / blocks.threshold.diagonal()))

    @cached_property
    def _common(self) -> tuple[FloatArray, float]:
        """Response z of all parameters to a push v on the mean discrimination, and vᵀz: the variance of that mean."""
        push = self.layout.push
        response = self._solve(push, 1e-6)
        return response, float(push @ response)

    @property
    def variances(self) -> FloatArray:
        """Marginal variance of each parameter, given the mean discrimination."""
        free = self.factors.variances if self.layout.is_factored else self._approximate_variances
        response, variance = self._common
        return np.maximum(free - response**2 / variance, 0.0) if self.layout.is_factored else free

    @property
    def log_determinant(self) -> float:
        """Log determinant of the curvature where the mean discrimination is fixed."""
        return self.factors.log_determinant + float(np.log(self._common[1]))

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Joint draws of the scores around zero, as rows."""
        drawn = self.factors.draw(rng, count)
        response, variance = self._common
        shift = drawn @ self.layout.push / variance
        return (drawn - shift[:, None] * response)[:, : self.layout.items]

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        """The step that leaves the mean discrimination at 1 (conditioning by kriging)."""
        direction = self._solve(vector, tolerance)
        response, variance = self._common
        return direction - response * (float(self.layout.push @ direction) / variance)

    def _solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        if self.layout.is_factored:
            return self.factors.solve(vector)
        blocks, items, people = self.blocks, self.layout.items, self.layout.annotators
        own = _block_diagonal(blocks.annotator)

        def multiply(v: FloatArray) -> FloatArray:
            score, annotator, threshold = np.split(v, [items, items + 3 * people])
            return np.concatenate(
                (
                    blocks.item * score + blocks.item_annotator @ annotator + blocks.item_threshold @ threshold,
                    blocks.item_annotator.T @ score + own @ annotator + blocks.annotator_threshold @ threshold,
                    blocks.item_threshold.T @ score
                    + blocks.annotator_threshold.T @ annotator
                    + blocks.threshold @ threshold,
                )
            )

        return DampedCurvature(multiply, blocks.positive).solve(vector, tolerance)


def _eliminate(
    eliminated: IntArray, kept: IntArray, inverse: Any, root: Any, determinant: float, cross: Any, matrix: FloatArray
) -> Factors:
    """Factor the Schur complement of the eliminated part."""
    cells = cross.shape[0] * cross.shape[1]
    if cells <= _DENSE_CELLS and cross.nnz >= _DENSE_SHARE * cells:
        cross = cross.toarray()
    response = inverse @ cross
    product = cross.T @ response
    schur = matrix - (product if isinstance(product, np.ndarray) else product.toarray())
    cholesky = np.linalg.cholesky(schur)
    determinant += 2 * float(np.sum(np.log(np.diag(cholesky))))
    return Factors(eliminated, kept, inverse, root, response, cross, cholesky, determinant)


def _positions(people: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of the 3 × 3 blocks of annotators, whose parameters lie `people` apart."""
    first = np.arange(people)[:, None, None] + people * np.arange(3)[None, :, None]
    rows = np.broadcast_to(first, (people, 3, 3))
    return rows, rows.transpose(0, 2, 1)


def _scatter(blocks: FloatArray, matrix: FloatArray) -> None:
    """Write the annotators' blocks into a dense matrix."""
    matrix[_positions(len(blocks))] = blocks


def _block_diagonal(blocks: FloatArray) -> Any:
    """The annotators' blocks as a sparse matrix."""
    from scipy.sparse import coo_array

    rows, columns = _positions(len(blocks))
    size = 3 * len(blocks)
    return coo_array((blocks.ravel(), (rows.ravel(), columns.ravel())), shape=(size, size)).tocsr()


@dataclass(frozen=True)
class LogPosterior:
    """log P(grades | parameters) + log prior, as a function of the parameter vector."""

    held: ShardedData
    layout: ParameterLayout
    scales: PriorScales

    @cached_property
    def _precision(self) -> FloatArray:
        return self.layout.prior_scales(self.scales) ** -2.0

    def __call__(self, x: FloatArray) -> Evaluation:
        value, gradient = self.held.sum(formulas.log_likelihood, x)
        prior_gradient = self._precision * x
        hessian = NegativeHessian(self.held, self.layout, x, value, self._precision)
        return Evaluation(value - 0.5 * float(x @ prior_gradient), gradient - prior_gradient, hessian)

    def maximise(self, start: FloatArray, tolerance: float, max_steps: int) -> OptimizeResult:
        """The posterior mode reached from a starting point."""
        return maximize(self, start, tolerance=tolerance, max_steps=max_steps, max_step=_MAX_STEP_NORM)
