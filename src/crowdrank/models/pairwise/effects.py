"""Scores and tie tendencies that are sums of random effects, whose spreads are learnt by the Laplace evidence.

An item of a query (a cell) has a score u and a tie tendency e, and a comparison of cells a and b has

    d = u_a − u_b,        θ = e_a + e_b

in the formulas of `likelihood` (of a threshold, e_a + e_b is the logarithm). Both are sums of blocks of parameters:

    u = overall score of the label + deviation of the cell     (partial pooling), or the score of the cell
    e = θ₀/2 + tendency of the item + ½ · effect of the query  (the second and third where they are asked for)

The parameters of a block have the prior N(0, scale²). The curvature in all parameters is a full matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items
from crowdrank.engines import ShardedData
from crowdrank.inference.newton import Evaluation, maximize
from crowdrank.inference.positive_definite import invert_triangular
from crowdrank.models.pairwise.covariates import CovariateCurvature
from crowdrank.models.pairwise.likelihood import DAVIDSON, FORMULAS, THRESHOLD, Pairs
from crowdrank.models.pairwise.spread import LARGEST, SMALLEST, SpreadPrior, information_of, scale_slope

SCORE, OVERALL, TIE_EFFECT, QUERY_TIE, TIE = "score", "overall", "tie_effect", "query_tie", "tie"
_LOOSE = 0.1
_MAX_ROUNDS = 25
# Scales have settled if the next step is below this share of their own standard error.
_SETTLED = 0.1


class Block(NamedTuple):
    """A block of parameters: the score (or tie tendency) of cell n has `coefficient` times parameter `member[n]`."""

    name: str
    of_ties: bool
    member: IntArray
    size: int
    coefficient: float = 1.0


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks of which scores and tie tendencies are made.

    Parameters
    ----------
    items : Items
        The cells: items within queries.
    pooled : bool
        Whether cells with the same label share an overall score.
    item_ties : bool
        Whether each item has a tie tendency of its own.
    has_ties : bool
        Whether ties are modelled at all.
    """

    items: Items
    pooled: bool
    item_ties: bool
    has_ties: bool

    @cached_property
    def labels(self) -> tuple[list[str], IntArray]:
        """The distinct labels, and the label of each cell as a position among them."""
        names, code = np.unique(self.items.labels.astype(str), return_inverse=True)
        return names.tolist(), code.astype(np.int64).ravel()

    @cached_property
    def blocks(self) -> list[Block]:
        cells = np.arange(len(self.items))
        names, label = self.labels
        found = [Block(SCORE, False, cells, len(cells))]
        if self.pooled:
            found.append(Block(OVERALL, False, label, len(names)))
        if self.has_ties and self.item_ties:
            own = (label, len(names)) if self.pooled else (cells, len(cells))
            found.append(Block(TIE_EFFECT, True, *own))
        if self.has_ties and self.pooled:
            found.append(Block(QUERY_TIE, True, self.items.query.astype(np.int64), len(self.items.queries), 0.5))
        if self.has_ties:
            found.append(Block(TIE, True, np.zeros_like(cells), 1, 0.5))
        return found

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each block lies in the parameters."""
        ends = np.cumsum([block.size for block in self.blocks]).tolist()
        return {b.name: slice(end - b.size, end) for b, end in zip(self.blocks, ends, strict=True)}

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)

    def part(self, x: FloatArray, name: str) -> FloatArray:
        """A block spread over the cells; zero if the layout does not have it. Parameters are the last axis of x."""
        for block in self.blocks:
            if block.name == name:
                return np.asarray(block.coefficient * x[..., self.slices[name]][..., block.member])
        return np.zeros((*x.shape[:-1], len(self.items)))

    def scores(self, x: FloatArray) -> FloatArray:
        """Scores of the cells."""
        return self.part(x, SCORE) + self.part(x, OVERALL)

    def tie_effects(self, x: FloatArray) -> FloatArray:
        """Tie tendencies of the cells beside θ₀."""
        return self.part(x, TIE_EFFECT) + self.part(x, QUERY_TIE)

    def collect_vector(self, of_score: FloatArray, of_ties: FloatArray) -> FloatArray:
        """The gradient in the parameters from those in scores and tie tendencies."""
        return np.concatenate(
            [b.coefficient * np.bincount(b.member, of_ties if b.of_ties else of_score, b.size) for b in self.blocks]
        )

    def collect_matrix(self, terms: EffectTerms) -> FloatArray:
        """The curvature in the parameters from those in scores and tie tendencies."""
        found = np.empty((self.size, self.size))
        for n, a in enumerate(self.blocks):
            for b in self.blocks[n:]:
                source = terms.mixed if a.of_ties != b.of_ties else terms.ties if a.of_ties else terms.scores
                part = a.coefficient * b.coefficient * _collapse(_collapse(source, a).T, b).T
                rows, columns = self.slices[a.name], self.slices[b.name]
                found[rows, columns] = part
                found[columns, rows] = part.T
        return found


def _collapse(matrix: FloatArray, block: Block) -> FloatArray:
    """Sums of the rows that share a parameter of the block."""
    if block.size == len(block.member) and block.name in (SCORE, TIE_EFFECT):
        return matrix
    members = np.zeros((block.size, len(block.member)))
    members[block.member, np.arange(len(block.member))] = 1.0
    return np.asarray(members @ matrix)


class EffectTerms(NamedTuple):
    """Log-likelihood of a shard with gradients and curvatures in scores and tie tendencies of the cells."""

    value: float
    of_score: FloatArray
    of_ties: FloatArray
    scores: FloatArray
    mixed: FloatArray
    ties: FloatArray


def evaluate(shard: Pairs, scores: FloatArray, ties: FloatArray, formula: int) -> EffectTerms:
    """Log-likelihood terms of one shard."""
    left, right, size = shard.left, shard.right, len(scores)
    theta = ties[left] + ties[right]
    if formula == THRESHOLD:  # the logarithm of a threshold, which must be positive
        theta = np.exp(theta)
    parts = FORMULAS[formula](scores[left] - scores[right], shard.outcome, theta)
    value, slope, curvature, tie_slope, cross, tie_curvature = (shard.weight * part for part in parts)
    if formula == THRESHOLD:
        tie_slope, cross, tie_curvature = theta * tie_slope, theta * cross, theta**2 * tie_curvature
        # The curvature of the exponential itself, −θ·∂/∂θ, is left out (Gauss-Newton) where it would make the matrix
        # of a comparison indefinite. It is zero in expectation.
        exact = tie_curvature - tie_slope
        tie_curvature = np.where(exact * curvature >= cross**2, exact, tie_curvature)
    nothing = np.zeros((0, 0))
    has_ties = formula in (DAVIDSON, THRESHOLD)
    return EffectTerms(
        value=float(value.sum()),
        of_score=np.asarray(np.bincount(left, slope, size) - np.bincount(right, slope, size), np.float64),
        of_ties=np.asarray(np.bincount(left, tie_slope, size) + np.bincount(right, tie_slope, size), np.float64),
        scores=_products(shard, curvature, size, -1, -1),
        mixed=_products(shard, cross, size, -1, 1) if has_ties else nothing,
        ties=_products(shard, tie_curvature, size, 1, 1) if has_ties else nothing,
    )


def _products(shard: Pairs, weight: FloatArray, size: int, p: int, q: int) -> FloatArray:
    """Sum over comparisons of weight·(eₗ + p·eᵣ)(eₗ + q·eᵣ)ᵀ."""
    left, right = shard.left, shard.right
    between = np.bincount(left * np.int64(size) + right, weight, size * size).reshape(size, size)
    matrix = q * between + p * between.T
    matrix.flat[:: size + 1] += np.bincount(left, weight, size) + p * q * np.bincount(right, weight, size)
    return np.asarray(matrix)


@dataclass(frozen=True)
class EffectObjective:
    """Log posterior at given scales of the blocks."""

    held: ShardedData
    layout: Layout
    formula: int
    scales: Mapping[str, float]

    def __call__(self, x: FloatArray) -> Evaluation:
        layout = self.layout
        ties = layout.tie_effects(x) + layout.part(x, TIE)
        terms: EffectTerms = self.held.sum(evaluate, layout.scores(x), ties, self.formula)
        precision = np.concatenate([np.full(b.size, self.scales[b.name] ** -2.0) for b in layout.blocks])
        value = terms.value - 0.5 * float(precision @ x**2)
        gradient = layout.collect_vector(terms.of_score, terms.of_ties) - precision * x
        curvature = layout.collect_matrix(terms)
        curvature.flat[:: len(x) + 1] += precision
        return Evaluation(value, gradient, CovariateCurvature(curvature, terms.value))


def learn_scales(
    objective_at: Callable[[Mapping[str, float]], EffectObjective],
    start: FloatArray,
    layout: Layout,
    first: Mapping[str, float],
    priors: Mapping[str, SpreadPrior],
    max_steps: int,
) -> tuple[dict[str, float], FloatArray]:
    """The scales with the largest evidence, and the parameters there. Scales without a prior are kept."""
    scales, x = dict(first), start
    for _ in range(_MAX_ROUNDS):
        found = maximize(objective_at(scales), x, tolerance=_LOOSE, max_steps=max_steps)
        x = found.parameters
        curvature = found.evaluation.curvature
        assert isinstance(curvature, CovariateCurvature)
        factor = np.asarray(np.linalg.cholesky(curvature.matrix()), np.float64)
        variance = np.sum(invert_triangular(factor) ** 2, axis=0)
        largest = 0.0
        for name in priors:
            values, own = x[layout.slices[name]], variance[layout.slices[name]]
            here = float(np.log(scales[name]))
            information = information_of(own, here)
            step = float(np.clip(scale_slope(values, float(own.sum()), here, priors[name]) / information, -1.0, 1.0))
            there = float(np.clip(here + step, np.log(SMALLEST), np.log(LARGEST)))
            largest = max(largest, abs(there - here) * information**0.5)
            scales[name] = float(np.exp(there))
        if largest < _SETTLED:
            break
    return scales, x
