"""How two scores make an answer: P(left wins) as a function of d = sₗ − sᵣ, with or without room for ties.

logistic    Bradley & Terry 1952    P(left) = σ(d); a tie counts half to each side
probit      Thurstone 1927, case V  P(left) = Φ(d/√2); a tie counts half to each side
davidson    Davidson 1970           P(left) : P(tie) : P(right) = e^{d/2} : e^θ : e^{−d/2}
threshold   Glenn & David 1960      P(left) = Φ((d−θ)/√2), P(right) = Φ((−d−θ)/√2), the rest are ties

Each formula takes the margin d, the outcome (1 left, 0 tie, −1 right; anything between is a share) and θ, and
returns log P with −∂²: value, ∂/∂d, −∂²/∂d², ∂/∂θ, −∂²/∂d∂θ, −∂²/∂θ². Written with elementwise operations
only, so that the same text runs on whole arrays and, compiled, on single numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray
from crowdrank.engines.compilation import COMPILE_FROM, compiled
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


class Bends(NamedTuple):
    """A shard of curvature: how strongly each row ties its two items together."""

    left: Int32Array
    right: Int32Array
    bend: AnyArray
    start: int = 0

    @property
    def rows(self) -> int:
        return len(self.left)


class Slopes(NamedTuple):
    """What one pass over a shard adds up: the log-likelihood with its first two derivatives.

    `diagonal` holds −∂²/∂sᵢ²; `border` −∂²/∂sᵢ∂θ; the off-diagonal rest is in `Bends`.
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
    larger = 1.0 / (1.0 + shrink)  # the chance of whichever is ahead
    chance = (ahead + (1.0 - ahead) * shrink) * larger
    share = 0.5 + 0.5 * outcome
    value = share * d - ahead * d + np.log(larger)
    return value, share - chance, shrink * larger * larger, 0.0, 0.0, 0.0


def probit(d: Any, outcome: Any, theta: Any) -> Any:
    x = d * ROOT_HALF
    won, lost = 0.5 + 0.5 * outcome, 0.5 - 0.5 * outcome
    up, down = inverse_mills(x), inverse_mills(-x)
    value = won * log_normal_cdf(x) + lost * log_normal_cdf(-x)
    bend = 0.5 * (won * up * (up + x) + lost * down * (down - x))
    return value, ROOT_HALF * (won * up - lost * down), bend, 0.0, 0.0, 0.0


def davidson(d: Any, outcome: Any, theta: Any) -> Any:
    # divided by the largest of the three terms, so that none overflows
    top = np.maximum(0.5 * np.abs(d), theta)
    left, right, tie = np.exp(0.5 * d - top), np.exp(-0.5 * d - top), np.exp(theta - top)
    total = left + right + tie
    ahead, drawn = (left - right) / total, tie / total
    is_tie = 1.0 - np.abs(outcome)
    value = 0.5 * outcome * d + is_tie * theta - top - np.log(total)
    bend = 0.25 * ((left + right) / total - ahead * ahead)
    return value, 0.5 * (outcome - ahead), bend, is_tie - drawn, -0.5 * drawn * ahead, drawn * (1.0 - drawn)


def threshold(d: Any, outcome: Any, theta: Any) -> Any:
    decided = np.abs(outcome)
    # a decided answer: log Φ(u)
    u = (outcome * d - theta) * ROOT_HALF
    h = inverse_mills(u)
    c = 0.5 * h * (h + u)
    # a tie: log(Φ(b) − Φ(a)), taken on the side where both are small
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


def chances(margin: AnyArray, theta: float, formula: int) -> AnyArray:
    """P(left), P(tie) and P(right) at each margin, as columns."""
    columns = [np.exp(FORMULAS[formula](margin, outcome, theta)[0]) for outcome in (1.0, 0.0, -1.0)]
    if formula in (LOGISTIC, PROBIT):  # no room for ties
        columns[1] = np.zeros(len(margin))
    return np.stack(columns, axis=1)


def tallies(shard: Pairs, size: int) -> tuple[AnyArray, AnyArray]:
    """Wins less losses of each item, and all its comparisons."""
    left, right, outcome, weight, _ = shard
    if shard.rows < COMPILE_FROM:
        lead = outcome * weight
        net = np.bincount(left, lead, size) - np.bincount(right, lead, size)
        return net, np.bincount(left, weight, size) + np.bincount(right, weight, size)
    found: tuple[AnyArray, AnyArray] = np.zeros(size), np.zeros(size)
    _tallies_loop(left, right, outcome, weight, *found)
    return found


@compiled()
def _tallies_loop(left, right, outcome, weight, net, total):  # type: ignore[no-untyped-def]
    for row in range(len(left)):
        i, j, w = left[row], right[row], weight[row]
        net[i] += w * outcome[row]
        net[j] -= w * outcome[row]
        total[i] += w
        total[j] += w


def slopes(shard: Pairs, scores: AnyArray, theta: float, formula: int) -> tuple[Bends, Slopes]:
    """One pass over a shard, at `scores` and θ."""
    if shard.rows < COMPILE_FROM:
        return _slopes_of_arrays(shard, scores, theta, formula)
    bend = np.empty(shard.rows, np.float32)
    if formula == LOGISTIC and shard.weight.strides == (0,) and np.max(np.abs(scores)) <= _FARTHEST:
        return _plain_logistic(shard, scores, bend)
    register_numba_overloads()
    gradient, diagonal, border = (np.zeros(len(scores)) for _ in range(3))
    columns = (gradient, diagonal, border)
    value, theta_gradient, corner = _slopes_loop(*shard[:4], scores, theta, formula, bend, *columns)
    return Bends(shard.left, shard.right, bend, shard.start), Slopes(value, *columns, theta_gradient, corner)


def _slopes_of_arrays(shard: Pairs, scores: AnyArray, theta: float, formula: int) -> tuple[Bends, Slopes]:
    left, right, outcome, weight, _ = shard
    size = len(scores)
    parts = FORMULAS[formula](scores[left] - scores[right], outcome, theta)
    value, slope, bend, theta_slope, cross, theta_bend = (weight * part for part in parts)

    def against(column: AnyArray) -> AnyArray:
        return np.bincount(left, column, size) - np.bincount(right, column, size)

    found = Slopes(
        value=float(value.sum()),
        gradient=against(slope),
        diagonal=np.bincount(left, bend, size) + np.bincount(right, bend, size),
        border=against(cross) if formula >= DAVIDSON else np.zeros(size),
        theta_gradient=float(theta_slope.sum()),
        corner=float(theta_bend.sum()),
    )
    return Bends(left, right, bend, shard.start), found


# e^40 and sixteen-fold products of it stay well inside what a double holds.
_FARTHEST, _FACTORS = 40.0, 16


def _plain_logistic(shard: Pairs, scores: AnyArray, bend: AnyArray) -> tuple[Bends, Slopes]:
    """The logistic pass for rows of one weight: e^s once an item, and one logarithm for sixteen rows."""
    # what a row reads and writes of an item lies side by side: its e^s, score, gradient and diagonal
    table = np.stack((np.exp(scores), scores, np.zeros(len(scores)), np.zeros(len(scores))), axis=1)
    value = _plain_logistic_loop(shard.left, shard.right, shard.outcome, table, bend, _FACTORS)
    gradient, diagonal = np.ascontiguousarray(table[:, 2:].T)
    weight = float(shard.weight[0])
    if weight != 1.0:
        value, gradient, diagonal, bend = (
            value * weight,
            gradient * weight,
            diagonal * weight,
            bend * np.float32(weight),
        )
    zeros = np.zeros(len(scores))
    return Bends(shard.left, shard.right, bend, shard.start), Slopes(value, gradient, diagonal, zeros, 0.0, 0.0)


@compiled()
def _plain_logistic_loop(left, right, outcome, table, bend, factors):  # type: ignore[no-untyped-def]
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
        bend[row] = unsure
    return value - np.log(together)


@compiled(logistic, probit, davidson, threshold, inverse_mills)
def _slopes_loop(left, right, outcome, weight, scores, theta, formula, bend, gradient, diagonal, border):  # type: ignore[no-untyped-def]
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
        bend[row] = b
        diagonal[i] += b
        diagonal[j] += b
        if formula >= 2:
            border[i] += w * c
            border[j] -= w * c
            theta_gradient += w * ts
            corner += w * tb
    return value, theta_gradient, corner


def product(shard: Bends, vector: AnyArray) -> tuple[AnyArray]:
    """Curvature times a vector (or each row of a matrix): Σ bend·(vₗ − vᵣ)·(eₗ − eᵣ)."""
    left, right, bend, _ = shard
    if vector.ndim == 1 and shard.rows < COMPILE_FROM:
        pull = bend * (vector[left] - vector[right])
        return (np.bincount(left, pull, len(vector)) - np.bincount(right, pull, len(vector)),)
    out = np.zeros_like(vector)
    (_product_loop if vector.ndim == 1 else _block_product_loop)(left, right, bend, vector, out)
    return (out,)


@compiled()
def _product_loop(left, right, bend, vector, out):  # type: ignore[no-untyped-def]
    for row in range(len(left)):
        i, j = left[row], right[row]
        pull = bend[row] * (vector[i] - vector[j])
        out[i] += pull
        out[j] -= pull


@compiled()
def _block_product_loop(left, right, bend, vectors, out):  # type: ignore[no-untyped-def]
    for row in range(len(left)):
        i, j, b = left[row], right[row], bend[row]
        for k in range(vectors.shape[1]):
            pull = b * (vectors[i, k] - vectors[j, k])
            out[i, k] += pull
            out[j, k] -= pull


def matrix(shard: Bends, size: int) -> tuple[AnyArray]:
    """The same curvature as a full matrix, for few items."""
    left, right, bend, _ = shard
    out = np.bincount(left * np.int64(size) + right, -bend, size * size).reshape(size, size)
    out += out.T
    out.flat[:: size + 1] -= out.sum(axis=1)
    return (out,)


def blocks(shard: Bends, base: IntArray, local: IntArray, cells: int) -> tuple[AnyArray]:
    """Bends laid into the cells of one small matrix per query: row `left`, column `right`."""
    left, right, bend, _ = shard
    return (np.bincount(base[left] + local[right], bend, cells),)


def rows_of(shard: Bends) -> tuple[int]:
    """How many there are."""
    return (shard.rows,)


def strip(shard: Bends, low: int, high: int, size: int) -> tuple[AnyArray]:
    """Bends laid into some rows of one large matrix, from `low` up to `high`: row and column either way round."""
    left, right, bend, _ = shard
    out = np.zeros(((high - low), size), np.float32)
    if shard.rows >= COMPILE_FROM:
        _strip_loop(left, right, bend, low, high, out)
        return (out,)
    for one, other in ((left, right), (right, left)):
        inside = np.flatnonzero((one >= low) & (one < high))
        np.add.at(out, (one[inside] - low, other[inside]), bend[inside])
    return (out,)


@compiled()
def _strip_loop(left, right, bend, low, high, out):  # type: ignore[no-untyped-def]
    for row in range(len(left)):
        i, j, b = left[row], right[row], bend[row]
        if low <= i < high:
            out[i - low, j] += b
        if low <= j < high:
            out[j - low, i] += b


def noise(shard: Bends, size: int, columns: int, seed: int) -> tuple[AnyArray]:
    """Random vectors whose covariance is this shard's curvature: Σ ±√bend·(eₗ − eᵣ), a sign a row and column."""
    out = np.zeros((size, columns), np.float32)
    # another stream of signs for each shard
    first = np.random.default_rng([seed, shard.start]).integers(1 << 63, dtype=np.uint64)
    _noise_loop(shard.left, shard.right, shard.bend, out, first)
    return (out,)


@compiled()
def _noise_loop(left, right, bend, out, seed):  # type: ignore[no-untyped-def]
    state = seed
    for row in range(len(left)):
        i, j, root = left[row], right[row], np.sqrt(bend[row])
        for k in range(out.shape[1]):
            if k % 64 == 0:  # splitmix64: sixty-four signs at a time
                state += np.uint64(0x9E3779B97F4A7C15)
                bits = state
                bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                bits = bits ^ (bits >> np.uint64(31))
            shake = root if bits & np.uint64(1) else -root
            bits >>= np.uint64(1)
            out[i, k] += shake
            out[j, k] -= shake
