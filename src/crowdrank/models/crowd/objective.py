"""The log posterior of a model of the Crowd-BT family, with its gradient and curvature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray
from crowdrank.engines import ShardedData
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled
from crowdrank.inference.curvature import DAMPINGS, DampedCurvature, PairCurvature, solve_positive
from crowdrank.inference.newton import Evaluation
from crowdrank.inference.special import register_numba_overloads
from crowdrank.models.crowd import likelihood
from crowdrank.models.crowd.likelihood import (
    FACTOR_BT,
    FORMULAS,
    MIN_PROBABILITY,
    AnswerCurvature,
    Answers,
    Derivatives,
    crowd_bt,
    crowd_bt_probit,
    factor_bt,
    sigmoid_pair,
    sum_per_feature,
    variance_bt,
)
from crowdrank.models.crowd.priors import LogPrior, PairCurvatures, Priors

# The negative Hessian of the Crowd-BT family over a shard: products, the full matrix, blocks, margins only.


def hessian_product(
    shard: AnswerCurvature, scores: AnyArray, logits: AnyArray, feature_weights: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Negative Hessian times a vector, which is given in three parts."""
    (winner, loser, who, _, features, _), second = shard
    if shard.rows >= COMPILE_MIN_ROWS and len(second) == 3:
        # what a row reads and writes for an item or an annotator lies side by side in memory
        items, people = (np.stack((column, np.zeros(len(column))), axis=1) for column in (scores, logits))
        _product_loop(winner, loser, who, *second, items, people)
        return items[:, 1].copy(), people[:, 1].copy(), np.zeros_like(feature_weights)
    if shard.rows >= COMPILE_MIN_ROWS:
        out = np.zeros_like(scores), np.zeros_like(logits), np.zeros_like(feature_weights)
        _product_with_features_loop(winner, loser, who, features, *second, scores, logits, feature_weights, *out)
        return out
    d, g = scores[winner] - scores[loser], logits[who]
    by_d, by_g, by_weight = second[0] * d + second[1] * g, second[1] * d + second[2] * g, np.zeros_like(feature_weights)
    if len(second) > 3:
        z = np.einsum("mf,mf->m", features, feature_weights[who])
        by_d, by_g, by_z = by_d + second[3] * z, by_g + second[4] * z, second[3] * d + second[4] * g + second[5] * z
        by_weight = sum_per_feature(who, by_z, features, feature_weights)
    size = len(scores)
    by_score = np.bincount(winner, by_d, size) - np.bincount(loser, by_d, size)
    return by_score, np.bincount(who, by_g, len(logits)), by_weight


@compiled()
def _product_loop(winner, loser, annotator, dd, dg, gg, items, people):  # type: ignore[no-untyped-def]
    for row in range(len(winner)):
        better, worse, person = items[winner[row]], items[loser[row]], people[annotator[row]]
        d, g = better[0] - worse[0], person[0]
        by_d = dd[row] * d + dg[row] * g
        better[1] += by_d
        worse[1] -= by_d
        person[1] += dg[row] * d + gg[row] * g


@compiled()
def _product_with_features_loop(  # type: ignore[no-untyped-def]
    winner,
    loser,
    annotator,
    features,
    dd,
    dg,
    gg,
    dz,
    gz,
    zz,
    scores,
    logits,
    feature_weights,
    score_out,
    logit_out,
    weight_out,
):
    for row in range(len(winner)):
        i, j, k = winner[row], loser[row], annotator[row]
        d, g, z = scores[i] - scores[j], logits[k], 0.0
        for f in range(features.shape[1]):
            z += features[row, f] * feature_weights[k, f]
        by_d = dd[row] * d + dg[row] * g + dz[row] * z
        score_out[i] += by_d
        score_out[j] -= by_d
        logit_out[k] += dg[row] * d + gg[row] * g + gz[row] * z
        by_z = dz[row] * d + gz[row] * g + zz[row] * z
        for f in range(features.shape[1]):
            weight_out[k, f] += by_z * features[row, f]


def hessian_matrix(shard: AnswerCurvature, items: int, annotators: int, features: int) -> tuple[AnyArray]:
    """The full negative Hessian: scores first, then logits, then feature weights annotator by annotator."""
    (winner, loser, who, _, x, _), second = shard
    size = items + annotators * (1 + features)
    # the parameters that each answer depends on: their places, which of (d, g, z) they enter, and with which factor
    touched: list[tuple[Any, int, Any]] = [(winner, 0, 1.0), (loser, 0, -1.0), (items + who, 1, 1.0)]
    base = items + annotators + who.astype(np.int64) * features
    touched += [(base + f, 2, x[:, f]) for f in range(features)]
    place = {(0, 0): 0, (0, 1): 1, (1, 1): 2, (0, 2): 3, (1, 2): 4, (2, 2): 5}
    out = np.zeros(size * size)
    for first, a, by_first in touched:
        for other, b, by_other in touched:
            curvature = second[place[min(a, b), max(a, b)]]
            out += np.bincount(first.astype(np.int64) * size + other, curvature * by_first * by_other, size * size)
    return (out.reshape(size, size),)


def hessian_off_diagonal(shard: AnswerCurvature, items: int, annotators: int) -> tuple[AnyArray, AnyArray]:
    """The negative Hessian between items, and between items and logits, as full matrices without the diagonal."""
    (winner, loser, who, *_), second = shard
    own = np.bincount(winner * np.int64(items) + loser, second[0], items * items).reshape(items, items)
    size = items * annotators
    across = np.bincount(winner * np.int64(annotators) + who, second[1], size)
    across -= np.bincount(loser * np.int64(annotators) + who, second[1], size)
    return -own - own.T, across.reshape(items, annotators)


def hessian_blocks(
    shard: AnswerCurvature, items: int, annotators: int, features: int
) -> tuple[AnyArray, Any, AnyArray]:
    """The negative Hessian in blocks: items × items, items × annotators' parameters (sparse), one block per annotator.

    The parameters of an annotator stand side by side here, the logit first.
    """
    from scipy.sparse import coo_array

    (winner, loser, who, _, x, _), second = shard
    own = np.bincount(winner * np.int64(items) + loser, -second[0], items * items).reshape(items, items)
    own = own + own.T
    own.flat[:: items + 1] -= own.sum(axis=1)
    width = 1 + features
    # −∂² log P by the margin and each parameter of the annotator, and by two parameters of the annotator
    by_margin = [second[1], *(second[3] * x[:, f] for f in range(features))]
    first = who.astype(np.int64) * width
    column = np.concatenate([first + n for n in range(width)] * 2)
    row = np.concatenate([np.tile(winner, width), np.tile(loser, width)])
    value = np.concatenate([*by_margin, *(-part for part in by_margin)])
    across = coo_array((value, (row, column)), shape=(items, annotators * width)).tocsr()
    small = np.empty((annotators, width, width))
    for a in range(width):
        for b in range(width):
            curvature = second[2] if a + b == 0 else second[4] if a * b == 0 else second[5]
            by_a, by_b = (1.0 if n == 0 else x[:, n - 1] for n in (a, b))
            small[:, a, b] = np.bincount(who, curvature * by_a * by_b, annotators)
    return own, across, small


def margin_curvature(
    shard: Answers, scores: AnyArray, logits: AnyArray, feature_weights: AnyArray, formula: int
) -> tuple[PairCurvature, tuple[()]]:
    """Fisher information of each answer by its margin, with the annotators fixed: never negative."""
    winner, loser, who, weight, features, _ = shard
    if shard.rows >= COMPILE_MIN_ROWS:
        register_numba_overloads()
        found = np.empty(shard.rows, np.float32)
        _margin_loop(winner, loser, who, weight, features, scores, logits, feature_weights, formula, found)
        return PairCurvature(winner, loser, found, shard.start), ()
    bias = np.einsum("mf,mf->m", features, feature_weights[who]) if formula == FACTOR_BT else 0.0
    p, other, d, *_ = FORMULAS[formula](scores[winner] - scores[loser], logits[who], bias)
    fisher = weight * d * d / (np.maximum(p, MIN_PROBABILITY) * np.maximum(other, MIN_PROBABILITY))
    return PairCurvature(winner, loser, fisher.astype(np.float32), shard.start), ()


@compiled(sigmoid_pair, crowd_bt, crowd_bt_probit, variance_bt, factor_bt)
def _margin_loop(  # type: ignore[no-untyped-def]
    winner, loser, annotator, weight, features, scores, logits, feature_weights, formula, out
):
    for row in range(len(winner)):
        k = annotator[row]
        margin, logit, bias = scores[winner[row]] - scores[loser[row]], logits[k], 0.0
        if formula == 0:
            found = crowd_bt(margin, logit, bias)
        elif formula == 1:
            found = crowd_bt_probit(margin, logit, bias)
        elif formula == 2:
            found = variance_bt(margin, logit, bias)
        else:
            for f in range(features.shape[1]):
                bias += features[row, f] * feature_weights[k, f]
            found = factor_bt(margin, logit, bias)
        out[row] = weight[row] * found[2] * found[2] / (max(found[0], 1e-300) * max(found[1], 1e-300))


# Up to this many parameters the full matrix is factored; beyond it, conjugate gradients are faster.
MAX_FACTORED = 300
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
        # slices: np.split takes ten times as long
        scores, logits = x[: self.items], x[self.items : self.items + self.annotators]
        return scores, logits, x[self.items + self.annotators :].reshape(self.annotators, self.features)

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
        few = self.layout.size <= MAX_FACTORED
        if few and not self.layout.features and not len(self.prior.pairs.curvature):
            return self._solve_by_elimination(vector)
        return self.damped(factored=few).solve(vector, tolerance)

    def _solve_by_elimination(self, vector: FloatArray) -> FloatArray:
        """Solve for the scores with the annotators eliminated, each of which has one parameter; damped as necessary."""
        layout, found = self.layout, self.derivatives
        own, across = self.rows.sum(hessian_off_diagonal, layout.items, layout.annotators)
        prior_of_scores, prior_of_logits = np.split(self.prior.curvature, [layout.items])
        of_scores, of_logits = np.split(vector, [layout.items])
        for damping in DAMPINGS:
            diagonal, small = found.scores_curvature + prior_of_scores, found.logits_curvature + prior_of_logits
            if damping:
                extra = damping * self.diagonal
                diagonal, small = diagonal + extra[: layout.items], small + extra[layout.items :]
            if not small.min() > 0:
                continue
            through = across / small
            matrix = own - through @ across.T
            matrix.flat[:: layout.items + 1] += diagonal
            scores = solve_positive(matrix, of_scores - through @ of_logits)
            if scores is not None:
                return np.concatenate((scores, (of_logits - scores @ across) / small))
        return vector / self.diagonal

    def damped(self, factored: bool) -> DampedCurvature:
        return DampedCurvature(self.product, self.diagonal, self.matrix if factored else None, self.scale)

    def product(self, vector: FloatArray) -> FloatArray:
        found = self.layout.join(*self.rows.sum(hessian_product, *self.layout.split(vector)))
        found += self.prior.curvature * vector
        first, second, curvature = self._pairs
        np.subtract.at(found, first, curvature * vector[second])
        np.subtract.at(found, second, curvature * vector[first])
        return found

    def matrix(self) -> FloatArray:
        layout = self.layout
        (matrix,) = self.rows.sum(hessian_matrix, layout.items, layout.annotators, layout.features)
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
        own, across, small = self.rows.sum(hessian_blocks, layout.items, layout.annotators, layout.features)
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
        factored = len(vector) <= MAX_FACTORED
        matrix = (lambda: self.whole.matrix()[self.part, self.part]) if factored else None
        scales = (self.whole.diagonal[self.part], matrix, self.whole.scale[self.part])
        return DampedCurvature(self._product, *scales).solve(vector, tolerance)

    def _product(self, vector: FloatArray) -> FloatArray:
        padded = np.zeros(self.whole.layout.size)
        padded[self.part] = vector
        return self.whole.product(padded)[self.part]
