"""Plackett-Luce likelihood: a list is drawn from the top, each next item with probability ∝ e^s among the remaining.

log P = Σ_j s_j − log Σ_{k not above j} e^{s_k}, over all places but the last. Items tied on the last place were left
unordered, so top-k lists and best-of-a-set choices follow the same formula. Items tied higher up share one denominator
(Breslow 1974). With Dₚ the denominator of place p and cₚ its number of items, let Aₚ = Σ_{q≤p} c_q/D_q and
Bₚ = Σ_{q≤p} c_q/D_q². Then ∂/∂s_k = 1 − e^{s_k}·A and −∂²/∂s_k∂s_l = [k=l]·e^{s_k}·A − e^{s_k}e^{s_l}·B.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, Int32Array, IntArray
from crowdrank.engines.compilation import compiled

# The loops below also run uncompiled; up to this many rows that is faster than loading the compiler.
_PLAIN_UP_TO = 2_000
# Up to this many cells, lists are laid out as a table of lists × places, and nothing is compiled; the same for tables
# of lists × places × places. Most of the cells of a table must be used, and scores must not be too far apart for e^s.
_MOST_CELLS, _MOST_PAIRS, _MOST_CELLS_PER_ROW, _LARGEST_SPREAD = 100_000, 1_000_000, 4, 300.0


class RankedLists(NamedTuple):
    """A shard of lists, laid end to end.

    Parameters
    ----------
    item : array
        Item of each row; the rows of a list are consecutive, best first.
    place : array
        Place of each row in its list; equal for tied items.
    offsets : array
        First row of each list, and the number of rows at the end.
    weight : array
        Weight of each list.
    start : int, default 0
        Number of the first list of this shard among all lists.
    """

    item: Int32Array
    place: Int32Array
    offsets: IntArray
    weight: FloatArray
    start: int = 0

    @property
    def rows(self) -> int:
        return len(self.item)

    def split(self, parts: int) -> list[RankedLists]:
        """Cut between lists, into shards of about equally many rows."""
        wanted = np.linspace(0, self.rows, parts + 1)
        cuts = np.unique(np.searchsorted(self.offsets, wanted))
        return [self._between(a, b) for a, b in pairwise(cuts)]

    def _between(self, a: int, b: int) -> RankedLists:
        rows = slice(self.offsets[a], self.offsets[b])
        offsets = self.offsets[a : b + 1] - self.offsets[a]
        return RankedLists(self.item[rows], self.place[rows], offsets, self.weight[a:b], self.start + int(a))


class ListLogLikelihood(NamedTuple):
    """Log-likelihood, its gradient, and the diagonal of the negative Hessian."""

    value: float
    gradient: FloatArray
    hessian_diag: FloatArray


class ListTable(NamedTuple):
    """A few lists as a table, one row per list, with what the likelihood needs at some scores.

    Parameters
    ----------
    item : array
        Item of each cell; that of some row of the shard in the cells beyond the end of a list.
    weight : array
        Weight of each list, as a column.
    scored : array of bool
        The cells above the last place of their list.
    log_denominator : array
        Log of the denominator of each place times its number of items, at its first cell; 0 elsewhere.
    strength : array
        e^s relative to the largest one of the list; 0 beyond its end.
    a, b : arrays
        A and B of the cell's place, in the same unit.
    """

    item: Int32Array
    weight: FloatArray
    scored: BoolArray
    log_denominator: FloatArray
    strength: FloatArray
    a: FloatArray
    b: FloatArray

    @classmethod
    def fits(cls, shard: RankedLists, scores: FloatArray) -> bool:
        """Whether a table is faster than loading the compiler, and precise."""
        cells = len(shard.weight) * int(np.diff(shard.offsets).max(initial=0))
        few = cells <= min(_MOST_CELLS, _MOST_CELLS_PER_ROW * shard.rows)
        return few and float(np.ptp(scores)) <= _LARGEST_SPREAD

    @classmethod
    def of(cls, shard: RankedLists, scores: FloatArray) -> ListTable:
        lengths = np.diff(shard.offsets)
        columns = np.arange(lengths.max())
        within = columns < lengths[:, None]
        rows = np.minimum(shard.offsets[:-1, None] + columns, shard.rows - 1)
        item, place = shard.item[rows], shard.place[rows]
        own = np.where(within, scores[item], -np.inf)
        top = own.max(axis=1, keepdims=True)
        strength = np.exp(own - top)
        denominator = np.cumsum(strength[:, ::-1], axis=1)[:, ::-1]  # from the bottom: no digit of small ones is lost
        scored = within & (place < shard.place[shard.offsets[1:] - 1][:, None])
        first = scored.copy()
        first[:, 1:] &= place[:, 1:] != place[:, :-1]
        cell = np.cumsum(first).reshape(first.shape)
        count = np.bincount(cell[scored], minlength=int(cell[-1, -1]) + 1)[cell]
        count = np.where(first, count, 0)
        denominator = np.where(first, denominator, 1.0)
        a, b = (np.cumsum(count / denominator**power, axis=1) for power in (1, 2))
        log_denominator = count * (np.log(denominator) + top)
        return cls(item, shard.weight[:, None], scored, log_denominator, strength, a, b)

    def log_likelihood(self, scores: FloatArray) -> ListLogLikelihood:
        size, item = len(scores), self.item.ravel()
        value = np.sum(self.weight * (np.where(self.scored, scores[self.item], 0.0) - self.log_denominator))
        explained = self.strength * self.a
        gradient = self.weight * (self.scored - explained)
        diagonal = self.weight * (explained - self.strength**2 * self.b)
        sums = (np.bincount(item, part.ravel(), size).astype(np.float64) for part in (gradient, diagonal))
        return ListLogLikelihood(float(value), *sums)

    def hessian(self, scores: FloatArray) -> FloatArray:
        size, left, right = len(scores), self.item[:, :, None], self.item[:, None, :]
        shared = (self.weight * self.strength)[:, :, None] * self.strength[:, None, :]
        shared *= np.minimum(self.b[:, :, None], self.b[:, None, :])  # B grows along a list: that of the upper item
        cells = left.astype(np.int64) * size + right
        matrix: FloatArray = -np.bincount(cells.ravel(), shared.ravel(), size * size).reshape(size, size)  # type: ignore[assignment]
        linear = np.bincount(self.item.ravel(), (self.weight * self.strength * self.a).ravel(), size)
        matrix.flat[:: size + 1] += linear
        return matrix


def log_likelihood(shard: RankedLists, scores: FloatArray) -> ListLogLikelihood:
    """Log-likelihood of a shard with its derivatives."""
    if ListTable.fits(shard, scores):
        return ListTable.of(shard, scores).log_likelihood(scores)
    gradient, hessian_diag = np.zeros(len(scores)), np.zeros(len(scores))
    value = _run(_log_likelihood_loop, shard, scores, gradient, hessian_diag)
    return ListLogLikelihood(value, gradient, hessian_diag)


def hessian_product(shard: RankedLists, scores: FloatArray, vector: FloatArray) -> tuple[FloatArray]:
    """Negative Hessian times a vector."""
    out = np.zeros(len(scores))
    _run(_hessian_product_loop, shard, scores, vector, out)
    return (out,)


def hessian(shard: RankedLists, scores: FloatArray) -> tuple[FloatArray]:
    """Negative Hessian as a dense matrix."""
    pairs = int(len(shard.weight) * np.diff(shard.offsets).max(initial=0) ** 2)
    if pairs <= _MOST_PAIRS and ListTable.fits(shard, scores):
        return (ListTable.of(shard, scores).hessian(scores),)
    out = np.zeros((len(scores), len(scores)))
    _run(_hessian_loop, shard, scores, out, work=int(np.sum(np.diff(shard.offsets) ** 2)))
    return (out,)


def gradient_noise(shard: RankedLists, scores: FloatArray, seed: int) -> tuple[FloatArray]:
    """A random vector whose covariance is the negative Hessian: a simulated gradient.

    At every place, the item is redrawn from those that remain there, with the model's probabilities.
    """
    rng = np.random.default_rng([seed, shard.start])
    out = np.zeros(len(scores))
    _run(_gradient_noise_loop, shard, scores, 1.0 - rng.random(shard.rows), out)
    return (out,)


def _run(loop: Any, shard: RankedLists, scores: FloatArray, *others: Any, work: int = 0) -> Any:
    call = loop.function if max(shard.rows, work // 10) <= _PLAIN_UP_TO else loop
    return call(shard.item, shard.place, shard.offsets, shard.weight, scores, *others)


def _log_remaining(item: Any, scores: Any, begin: int, end: int, log_remaining: Any) -> None:
    """log Σ e^s over each row of a list and all rows below it, rescaled by the running maximum to avoid overflow."""
    top, total = scores[item[end - 1]], 0.0
    for row in range(end - 1, begin - 1, -1):
        score = scores[item[row]]
        if score > top:
            total *= np.exp(top - score)
            top = score
        total += np.exp(score - top)
        log_remaining[row - begin] = top + np.log(total)


def _tie_size(place: Any, row: int, end: int) -> int:
    """The number of items on the place that begins at this row."""
    count = 1
    while row + count < end and place[row + count] == place[row]:
        count += 1
    return count


# The loops carry A·D and B·D² instead of A and B, with D the latest denominator. Each denominator is smaller than the
# one before, so nothing overflows, and e^s/D is a probability.


@compiled(_log_remaining, _tie_size)
def _log_likelihood_loop(item, place, offsets, weight, scores, gradient, hessian_diag):  # type: ignore[no-untyped-def]
    value = 0.0
    for n in range(len(weight)):
        begin, end, w = offsets[n], offsets[n + 1], weight[n]
        last = place[end - 1]
        log_remaining = np.empty(end - begin)
        _log_remaining(item, scores, begin, end, log_remaining)
        log_d, a, b = log_remaining[0], 0.0, 0.0
        for row in range(begin, end):
            k = item[row]
            if place[row] < last:
                if row == begin or place[row] != place[row - 1]:
                    shrink = np.exp(log_remaining[row - begin] - log_d)
                    count = _tie_size(place, row, end)
                    log_d, a, b = log_remaining[row - begin], a * shrink + count, b * shrink * shrink + count
                value += w * (scores[k] - log_d)
                gradient[k] += w
            probability = np.exp(scores[k] - log_d)
            gradient[k] -= w * probability * a
            hessian_diag[k] += w * probability * (a - probability * b)
    return value


@compiled(_log_remaining, _tie_size)
def _hessian_product_loop(item, place, offsets, weight, scores, vector, out):  # type: ignore[no-untyped-def]
    for n in range(len(weight)):
        begin, end, w = offsets[n], offsets[n + 1], weight[n]
        last = place[end - 1]
        log_remaining, mean = np.empty(end - begin), np.empty(end - begin)
        _log_remaining(item, scores, begin, end, log_remaining)
        # The mean of the vector over each row and all rows below it, weighted by probability.
        mean[end - begin - 1] = vector[item[end - 1]]
        for row in range(end - 2, begin - 1, -1):
            k, at = item[row], row - begin
            mean[at] = mean[at + 1] + np.exp(scores[k] - log_remaining[at]) * (vector[k] - mean[at + 1])
        log_d, a, c = log_remaining[0], 0.0, 0.0
        for row in range(begin, end):
            k = item[row]
            if place[row] < last and (row == begin or place[row] != place[row - 1]):
                shrink = np.exp(log_remaining[row - begin] - log_d)
                count = _tie_size(place, row, end)
                log_d, a, c = log_remaining[row - begin], a * shrink + count, c * shrink + count * mean[row - begin]
            out[k] += w * np.exp(scores[k] - log_d) * (a * vector[k] - c)


@compiled(_log_remaining, _tie_size)
def _hessian_loop(item, place, offsets, weight, scores, out):  # type: ignore[no-untyped-def]
    for n in range(len(weight)):
        begin, end, w = offsets[n], offsets[n + 1], weight[n]
        last = place[end - 1]
        log_remaining = np.empty(end - begin)
        _log_remaining(item, scores, begin, end, log_remaining)
        log_d, a, b = log_remaining[0], 0.0, 0.0
        for row in range(begin, end):
            k = item[row]
            if place[row] < last and (row == begin or place[row] != place[row - 1]):
                shrink = np.exp(log_remaining[row - begin] - log_d)
                count = _tie_size(place, row, end)
                log_d, a, b = log_remaining[row - begin], a * shrink + count, b * shrink * shrink + count
            probability = np.exp(scores[k] - log_d)
            out[k, k] += w * probability * (a - probability * b)
            # Every later item of the list, and the rest of this place, shares these denominators.
            for other in range(row + 1, end):
                m = item[other]
                shared = w * probability * np.exp(scores[m] - log_d) * b
                out[k, m] -= shared
                out[m, k] -= shared


@compiled(_log_remaining, _tie_size)
def _gradient_noise_loop(item, place, offsets, weight, scores, uniforms, out):  # type: ignore[no-untyped-def]
    for n in range(len(weight)):
        begin, end, root = offsets[n], offsets[n + 1], np.sqrt(weight[n])
        last = place[end - 1]
        log_remaining = np.empty(end - begin)
        _log_remaining(item, scores, begin, end, log_remaining)
        log_d, a, first = log_remaining[0], 0.0, begin
        for row in range(begin, end):
            k = item[row]
            if place[row] < last:
                if row == begin or place[row] != place[row - 1]:
                    first = row
                    a = a * np.exp(log_remaining[row - begin] - log_d) + _tie_size(place, row, end)
                    log_d = log_remaining[row - begin]
                # Inverse transform sampling: the last row with at least the fraction `uniforms` of e^s at or below it.
                goal = log_d + np.log(uniforms[row])
                low, high = first, end - 1
                while low < high:
                    middle = (low + high + 1) // 2
                    if log_remaining[middle - begin] >= goal:
                        low = middle
                    else:
                        high = middle - 1
                out[item[low]] += root
            out[k] -= root * np.exp(scores[k] - log_d) * a
