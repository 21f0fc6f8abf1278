"""The negative Hessian of the Crowd-BT family over a shard: products, the full matrix, blocks, margins only."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled
from crowdrank.inference.pair_curvature import PairCurvature
from crowdrank.inference.special import register_numba_overloads
from crowdrank.models.crowd.likelihood import (
    FACTOR_BT,
    FORMULAS,
    MIN_PROBABILITY,
    AnswerCurvature,
    Answers,
    crowd_bt,
    crowd_bt_probit,
    factor_bt,
    sigmoid_pair,
    sum_per_feature,
    variance_bt,
)


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
