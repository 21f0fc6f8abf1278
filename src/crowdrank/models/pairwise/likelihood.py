"""Likelihoods of one comparison: P(left wins) as a function of d = sₗ − sᵣ, with or without ties.

logistic    Bradley & Terry 1952    P(left) = σ(d); a tie counts half to each side
probit      Thurstone 1927, case V  P(left) = Φ(d/√2); a tie counts half to each side
davidson    Davidson 1970           P(left) : P(tie) : P(right) = e^{d/2} : e^θ : e^{−d/2}
threshold   Glenn & David 1960      P(left) = Φ((d−θ)/√2), P(right) = Φ((−d−θ)/√2), the rest are ties

Each formula takes the margin d, the outcome (1 left, 0 tie, −1 right; values in between are shares of wins) and θ, and
returns log P and its derivatives: value, ∂/∂d, −∂²/∂d², ∂/∂θ, −∂²/∂d∂θ, −∂²/∂θ². The formulas use elementwise
operations only, so the same code runs on whole arrays and, compiled by Numba, on single numbers.

There are also priors on scores, with log density, gradient and curvature (negative second derivative) per item:

gaussian       s ~ N(0, scale²)
virtual_node   Chen et al. 2013, §3.2: λ wins and λ losses of each item against a virtual item with score 0
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled
from crowdrank.inference.curvature import MatrixCurvature, PairCurvature
from crowdrank.inference.special import (
    HALF_LOG_TWO_PI,
    ROOT_HALF,
    inverse_mills,
    log_normal_cdf,
    register_numba_overloads,
)

LOGISTIC, PROBIT, DAVIDSON, THRESHOLD = 0, 1, 2, 3


class Pairs(NamedTuple):
    """One shard of comparisons: codes of both items, the outcome and its weight."""

    left: Int32Array
    right: Int32Array
    outcome: AnyArray
    weight: FloatArray
    start: int = 0
    """Where this shard begins in the whole."""

    @property
    def rows(self) -> int:
        return len(self.left)

    def split(self, parts: int) -> list[Pairs]:
        cuts = np.linspace(0, self.rows, parts + 1).astype(np.int64)
        return [
            Pairs(self.left[a:b], self.right[a:b], self.outcome[a:b], self.weight[a:b], self.start + int(a))
            for a, b in pairwise(cuts)
        ]


class WinMatrix(NamedTuple):
    """All comparisons of a few items as a table, for the logistic formula.

    Parameters
    ----------
    total : array of float, items × items
        How often each two items were compared.
    won : array of float
        How often each item won, with half of its ties.
    """

    total: FloatArray
    won: FloatArray
    net: FloatArray
    """Wins of the row's item over the column's minus its losses."""

    @classmethod
    def of(cls, size: int, left: AnyArray, right: AnyArray, outcome: AnyArray, weight: FloatArray | None) -> WinMatrix:
        """Count comparisons."""
        cells = left * np.int64(size) + right
        lead = outcome if weight is None else outcome * weight
        total = np.bincount(cells, weight, size * size).reshape(size, size)
        net = np.bincount(cells, lead, size * size).reshape(size, size)
        total, net = total + total.T, net - net.T
        return cls(total.astype(np.float64, copy=False), 0.5 * (total + net).sum(axis=1), net)

    @property
    def rows(self) -> int:
        return len(self.won)

    def split(self, parts: int) -> list[WinMatrix]:
        return [self]

    def pairs(self) -> Pairs:
        """One row per pair, with the share of wins as its outcome."""
        left, right = (ends.astype(np.int32) for ends in np.nonzero(np.triu(self.total)))
        total = self.total[left, right]
        return Pairs(left, right, self.net[left, right] / total, total)


class LikelihoodTerms(NamedTuple):
    """Log-likelihood of a shard with its first and second derivatives.

    `diagonal` holds −∂²/∂sᵢ², `border` −∂²/∂sᵢ∂θ and `corner` −∂²/∂θ²; the off-diagonal part of the curvature of the
    scores is in `PairCurvature`.
    """

    value: float
    gradient: AnyArray
    diagonal: AnyArray
    border: AnyArray
    theta_gradient: float
    corner: float


def logistic(d: Any, outcome: Any, theta: Any) -> Any:
    shrink = np.exp(-np.abs(d))
    ahead = (d >= 0) * 1.0
    larger = 1.0 / (1.0 + shrink)  # probability that the item with the higher score wins
    chance = (ahead + (1.0 - ahead) * shrink) * larger
    share = 0.5 + 0.5 * outcome
    value = share * d - ahead * d + np.log(larger)
    return value, share - chance, shrink * larger * larger, 0.0, 0.0, 0.0


def probit(d: Any, outcome: Any, theta: Any) -> Any:
    x = d * ROOT_HALF
    won, lost = 0.5 + 0.5 * outcome, 0.5 - 0.5 * outcome
    up, down = inverse_mills(x), inverse_mills(-x)
    value = won * log_normal_cdf(x) + lost * log_normal_cdf(-x)
    curvature = 0.5 * (won * up * (up + x) + lost * down * (down - x))
    return value, ROOT_HALF * (won * up - lost * down), curvature, 0.0, 0.0, 0.0


def davidson(d: Any, outcome: Any, theta: Any) -> Any:
    # divide by the largest of the three terms, so that none overflows
    top = np.maximum(0.5 * np.abs(d), theta)
    left, right, tie = np.exp(0.5 * d - top), np.exp(-0.5 * d - top), np.exp(theta - top)
    total = left + right + tie
    ahead, drawn = (left - right) / total, tie / total
    is_tie = 1.0 - np.abs(outcome)
    value = 0.5 * outcome * d + is_tie * theta - top - np.log(total)
    curvature = 0.25 * ((left + right) / total - ahead * ahead)
    return value, 0.5 * (outcome - ahead), curvature, is_tie - drawn, -0.5 * drawn * ahead, drawn * (1.0 - drawn)


def threshold(d: Any, outcome: Any, theta: Any) -> Any:
    decided = np.abs(outcome)
    # a decided answer: log Φ(u)
    u = (outcome * d - theta) * ROOT_HALF
    h = inverse_mills(u)
    c = 0.5 * h * (h + u)
    # a tie: log(Φ(b) − Φ(a)), computed in the tail where both are small, so that no digits cancel
    b, a = (theta - np.abs(d)) * ROOT_HALF, (-theta - np.abs(d)) * ROOT_HALF
    log_b = log_normal_cdf(b)
    log_tie = log_b + np.log(-np.expm1(log_normal_cdf(a) - log_b))
    at_b = np.exp(-0.5 * b * b - HALF_LOG_TWO_PI - log_tie)
    at_a = np.exp(-0.5 * a * a - HALF_LOG_TWO_PI - log_tie)
    side = (d >= 0) * 2.0 - 1.0
    tie_d, tie_t = -side * ROOT_HALF * (at_b - at_a), ROOT_HALF * (at_b + at_a)
    own = 0.5 * (b * at_b - a * at_a)
    mixed = side * 0.5 * (b * at_b + a * at_a)
    t = 1.0 - decided
    return (
        decided * log_normal_cdf(u) + t * log_tie,
        ROOT_HALF * outcome * h + t * tie_d,
        decided * c + t * (tie_d * tie_d + own),
        -decided * ROOT_HALF * h + t * tie_t,
        -outcome * c + t * (tie_d * tie_t - mixed),
        decided * c + t * (tie_t * tie_t + own),
    )


FORMULAS = (logistic, probit, davidson, threshold)


def outcome_probabilities(margin: AnyArray, theta: float | FloatArray, formula: int) -> AnyArray:
    """P(left), P(tie) and P(right) at each margin, as columns."""
    columns = [np.exp(FORMULAS[formula](margin, outcome, theta)[0]) for outcome in (1.0, 0.0, -1.0)]
    if formula in (LOGISTIC, PROBIT):  # the formula has no ties
        columns[1] = np.zeros(len(margin))
    return np.stack(columns, axis=1)


def win_loss_counts(shard: Pairs | WinMatrix, size: int) -> tuple[AnyArray, AnyArray]:
    """Wins minus losses of each item, and its number of comparisons (weighted)."""
    if isinstance(shard, WinMatrix):
        compared = shard.total.sum(axis=1)
        return 2.0 * shard.won - compared, compared
    left, right, outcome, weight, _ = shard
    if shard.rows < COMPILE_MIN_ROWS:
        lead = outcome * weight
        net = np.bincount(left, lead, size) - np.bincount(right, lead, size)
        return net, np.bincount(left, weight, size) + np.bincount(right, weight, size)
    found: tuple[AnyArray, AnyArray] = np.zeros(size), np.zeros(size)
    _win_loss_loop(left, right, outcome, weight, *found)
    return found


@compiled()
def _win_loss_loop(left, right, outcome, weight, net, total):  # type: ignore[no-untyped-def]
    for row in range(len(left)):
        i, j, w = left[row], right[row], weight[row]
        net[i] += w * outcome[row]
        net[j] -= w * outcome[row]
        total[i] += w
        total[j] += w


def evaluate(
    shard: Pairs | WinMatrix, scores: AnyArray, theta: float, formula: int
) -> tuple[PairCurvature | MatrixCurvature, LikelihoodTerms]:
    """Curvature and log-likelihood terms of one shard at `scores` and θ."""
    if isinstance(shard, WinMatrix):
        if np.max(np.abs(scores)) <= _MAX_SCORE:
            return _evaluate_wins(shard, scores)
        shard = shard.pairs()
    if shard.rows < COMPILE_MIN_ROWS:
        return _evaluate_arrays(shard, scores, theta, formula)
    curvature = np.empty(shard.rows, np.float32)
    if formula == LOGISTIC and shard.weight.strides == (0,) and np.max(np.abs(scores)) <= _MAX_SCORE:
        return _equal_weight_logistic(shard, scores, curvature)
    register_numba_overloads()
    gradient, diagonal, border = (np.zeros(len(scores)) for _ in range(3))
    columns = (gradient, diagonal, border)
    value, theta_gradient, corner = _evaluate_loop(*shard[:4], scores, theta, formula, curvature, *columns)
    return PairCurvature(shard.left, shard.right, curvature, shard.start), LikelihoodTerms(
        value, *columns, theta_gradient, corner
    )


def _evaluate_arrays(
    shard: Pairs, scores: AnyArray, theta: float, formula: int
) -> tuple[PairCurvature, LikelihoodTerms]:
    left, right, outcome, weight, _ = shard
    size = len(scores)
    parts = FORMULAS[formula](scores[left] - scores[right], outcome, theta)
    value, gradient_term, curvature, theta_gradient_term, cross, theta_curvature = (weight * part for part in parts)

    def against(column: AnyArray) -> AnyArray:
        return np.bincount(left, column, size) - np.bincount(right, column, size)

    found = LikelihoodTerms(
        value=float(value.sum()),
        gradient=against(gradient_term),
        diagonal=np.bincount(left, curvature, size) + np.bincount(right, curvature, size),
        border=against(cross) if formula >= DAVIDSON else np.zeros(size),
        theta_gradient=float(theta_gradient_term.sum()),
        corner=float(theta_curvature.sum()),
    )
    return PairCurvature(left, right, curvature, shard.start), found


def _evaluate_wins(shard: WinMatrix, scores: AnyArray) -> tuple[MatrixCurvature, LikelihoodTerms]:
    """Logistic likelihood of a table of wins: one exponential per item."""
    strength = np.exp(scores)
    both = strength[:, None] + strength
    share = shard.total / both
    value = shard.won @ scores - 0.5 * float(np.vdot(shard.total, np.log(both)))
    gradient = shard.won - strength * share.sum(axis=1)
    share /= both
    share *= strength
    share *= -strength[:, None]
    diagonal = -share.sum(axis=1)
    share.flat[:: len(scores) + 1] = diagonal
    return MatrixCurvature(share), LikelihoodTerms(value, gradient, diagonal, np.zeros(len(scores)), 0.0, 0.0)


# A product of 16 terms of size e^40 stays well inside the range of a double.
_MAX_SCORE, _FACTORS = 40.0, 16


def _equal_weight_logistic(
    shard: Pairs, scores: AnyArray, curvature: AnyArray
) -> tuple[PairCurvature, LikelihoodTerms]:
    """Logistic likelihood for rows of equal weight: one exponential per item and one logarithm per 16 rows."""
    # what a row reads and writes for an item is contiguous in memory: its e^s, score, gradient and diagonal
    table = np.stack((np.exp(scores), scores, np.zeros(len(scores)), np.zeros(len(scores))), axis=1)
    value = _equal_weight_logistic_loop(shard.left, shard.right, shard.outcome, table, curvature, _FACTORS)
    gradient, diagonal = np.ascontiguousarray(table[:, 2:].T)
    weight = float(shard.weight[0])
    if weight != 1.0:
        value, gradient, diagonal, curvature = (
            value * weight,
            gradient * weight,
            diagonal * weight,
            curvature * np.float32(weight),
        )
    zeros = np.zeros(len(scores))
    return PairCurvature(shard.left, shard.right, curvature, shard.start), LikelihoodTerms(
        value, gradient, diagonal, zeros, 0.0, 0.0
    )


@compiled()
def _equal_weight_logistic_loop(left, right, outcome, table, curvature, factors):  # type: ignore[no-untyped-def]
    value, together = 0.0, 1.0
    for row in range(len(left)):
        one, other = table[left[row]], table[right[row]]
        share = 0.5 + 0.5 * outcome[row]
        both = one[0] + other[0]
        inverse = 1.0 / both
        value += share * one[1] + (1.0 - share) * other[1]
        together *= both
        if row % factors == factors - 1:
            value -= np.log(together)
            together = 1.0
        chance = one[0] * inverse
        unsure = chance * other[0] * inverse
        one[2] += share - chance
        other[2] -= share - chance
        one[3] += unsure
        other[3] += unsure
        curvature[row] = unsure
    return value - np.log(together)


@compiled(logistic, probit, davidson, threshold, inverse_mills)
def _evaluate_loop(left, right, outcome, weight, scores, theta, formula, curvature, gradient, diagonal, border):  # type: ignore[no-untyped-def]
    value = theta_gradient = corner = 0.0
    for row in range(len(left)):
        i, j, w = left[row], right[row], weight[row]
        d = scores[i] - scores[j]
        if formula == 0:
            v, s, b, ts, c, tb = logistic(d, outcome[row], theta)
        elif formula == 1:
            v, s, b, ts, c, tb = probit(d, outcome[row], theta)
        elif formula == 2:
            v, s, b, ts, c, tb = davidson(d, outcome[row], theta)
        else:
            v, s, b, ts, c, tb = threshold(d, outcome[row], theta)
        value += w * v
        gradient[i] += w * s
        gradient[j] -= w * s
        b *= w
        curvature[row] = b
        diagonal[i] += b
        diagonal[j] += b
        if formula >= 2:
            border[i] += w * c
            border[j] -= w * c
            theta_gradient += w * ts
            corner += w * tb
    return value, theta_gradient, corner


# Priors on scores


class PriorTerms(NamedTuple):
    value: float
    gradient: FloatArray
    curvature: FloatArray


def gaussian(scores: FloatArray, scale: float) -> PriorTerms:
    precision = 1.0 / scale**2
    return PriorTerms(-0.5 * precision * float(scores @ scores), -precision * scores, np.full(len(scores), precision))


def virtual_node(scores: FloatArray, weight: float, formula: int) -> PriorTerms:
    """λ wins and losses of every item against a virtual item; `formula` is LOGISTIC or PROBIT."""
    # a win and a loss of weight λ equal one tied answer of weight 2λ
    value, gradient, curvature, *_ = FORMULAS[formula](scores, 0.0, 0.0)
    return PriorTerms(2 * weight * float(value.sum()), 2 * weight * gradient, 2 * weight * curvature)
