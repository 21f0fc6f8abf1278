"""Plackett 1975, Luce 1959: a list is drawn from the top, each next item with chance ∝ e^s among those left.

log P = Σ_j s_j − log Σ_{k not above j} e^{s_k}, over all places but the last: what is tied there was left unordered,
which makes top-k lists and best-of-a-set choices the same formula. Items tied higher up share one denominator
(Breslow 1974). With Dₚ the denominator of place p and cₚ its number of items, let Aₚ = Σ_{q≤p} c_q/D_q and
Bₚ = Σ_{q≤p} c_q/D_q²: then ∂/∂s_k = 1 − e^{s_k}·A and −∂²/∂s_k∂s_l = [k=l]·e^{s_k}·A − e^{s_k}e^{s_l}·B.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.engines.compilation import compiled

# The loops below also run uncompiled; up to this many rows that is quicker than loading the compiler.
_PLAIN_UP_TO = 2_000


class Lists(NamedTuple):
    """One shard of lists: items best first, their places, where each list begins, and its weight."""

    item: Int32Array
    place: Int32Array
    offsets: IntArray
    weight: FloatArray
    start: int = 0
    """Which list this shard begins with."""

    @property
    def rows(self) -> int:
        return len(self.item)

    def split(self, parts: int) -> list[Lists]:
        wanted = np.linspace(0, self.rows, parts + 1)
        cuts = np.unique(np.searchsorted(self.offsets, wanted))
        return [self._between(a, b) for a, b in pairwise(cuts)]

    def _between(self, a: int, b: int) -> Lists:
        rows = slice(self.offsets[a], self.offsets[b])
        offsets = self.offsets[a : b + 1] - self.offsets[a]
        return Lists(self.item[rows], self.place[rows], offsets, self.weight[a:b], self.start + int(a))


class ListSlopes(NamedTuple):
    value: float
    gradient: FloatArray
    diagonal: FloatArray


def slopes(shard: Lists, scores: FloatArray) -> ListSlopes:
    """Log-likelihood of a shard, its gradient, and the diagonal of its curvature."""
    gradient, diagonal = np.zeros(len(scores)), np.zeros(len(scores))
    value = _run(_slopes_loop, shard, scores, gradient, diagonal)
    return ListSlopes(value, gradient, diagonal)


def product(shard: Lists, scores: FloatArray, vector: FloatArray) -> tuple[FloatArray]:
    """Curvature times a vector."""
    out = np.zeros(len(scores))
    _run(_product_loop, shard, scores, vector, out)
    return (out,)


def matrix(shard: Lists, scores: FloatArray) -> tuple[FloatArray]:
    """The curvature as a full matrix."""
    out = np.zeros((len(scores), len(scores)))
    _run(_matrix_loop, shard, scores, out, work=int(np.sum(np.diff(shard.offsets) ** 2)))
    return (out,)


def noise(shard: Lists, scores: FloatArray, seed: int) -> tuple[FloatArray]:
    """A random vector whose covariance is this shard's curvature: for each item ranked, one is drawn from all left."""
    rng = np.random.default_rng([seed, shard.start])
    out = np.zeros(len(scores))
    _run(_noise_loop, shard, scores, 1.0 - rng.random(shard.rows), out)
    return (out,)


def _run(loop: Any, shard: Lists, scores: FloatArray, *others: Any, work: int = 0) -> Any:
    call = loop.function if max(shard.rows, work // 10) <= _PLAIN_UP_TO else loop
    return call(shard.item, shard.place, shard.offsets, shard.weight, scores, *others)


def _log_left(item: Any, scores: Any, begin: int, end: int, log_left: Any) -> None:
    """log Σ e^s over each row of a list and all rows below it, whatever the spread of the scores."""
    top, total = scores[item[end - 1]], 0.0
    for row in range(end - 1, begin - 1, -1):
        score = scores[item[row]]
        if score > top:
            total *= np.exp(top - score)
            top = score
        total += np.exp(score - top)
        log_left[row - begin] = top + np.log(total)


def _tied(place: Any, row: int, end: int) -> int:
    """How many items stand on the place that begins at this row."""
    count = 1
    while row + count < end and place[row + count] == place[row]:
        count += 1
    return count


# In the loops A and B are carried as A·D and B·D², D being the latest denominator: each new one is smaller than the
# one before, so nothing overflows, and e^s/D is a chance.


@compiled(_log_left, _tied)
def _slopes_loop(item, place, offsets, weight, scores, gradient, diagonal):  # type: ignore[no-untyped-def]
    value = 0.0
    for n in range(len(weight)):
        begin, end, w = offsets[n], offsets[n + 1], weight[n]
        last = place[end - 1]
        log_left = np.empty(end - begin)
        _log_left(item, scores, begin, end, log_left)
        log_d, a, b = log_left[0], 0.0, 0.0
        for row in range(begin, end):
            k = item[row]
            if place[row] < last:
                if row == begin or place[row] != place[row - 1]:
                    shrink = np.exp(log_left[row - begin] - log_d)
                    count = _tied(place, row, end)
                    log_d, a, b = log_left[row - begin], a * shrink + count, b * shrink * shrink + count
                value += w * (scores[k] - log_d)
                gradient[k] += w
            chance = np.exp(scores[k] - log_d)
            gradient[k] -= w * chance * a
            diagonal[k] += w * chance * (a - chance * b)
    return value


@compiled(_log_left, _tied)
def _product_loop(item, place, offsets, weight, scores, vector, out):  # type: ignore[no-untyped-def]
    for n in range(len(weight)):
        begin, end, w = offsets[n], offsets[n + 1], weight[n]
        last = place[end - 1]
        log_left, mean = np.empty(end - begin), np.empty(end - begin)
        _log_left(item, scores, begin, end, log_left)
        # the mean of the vector over each row and all below it, every item counted by its chance
        mean[end - begin - 1] = vector[item[end - 1]]
        for row in range(end - 2, begin - 1, -1):
            k, at = item[row], row - begin
            mean[at] = mean[at + 1] + np.exp(scores[k] - log_left[at]) * (vector[k] - mean[at + 1])
        log_d, a, c = log_left[0], 0.0, 0.0
        for row in range(begin, end):
            k = item[row]
            if place[row] < last and (row == begin or place[row] != place[row - 1]):
                shrink = np.exp(log_left[row - begin] - log_d)
                count = _tied(place, row, end)
                log_d, a, c = log_left[row - begin], a * shrink + count, c * shrink + count * mean[row - begin]
            out[k] += w * np.exp(scores[k] - log_d) * (a * vector[k] - c)


@compiled(_log_left, _tied)
def _matrix_loop(item, place, offsets, weight, scores, out):  # type: ignore[no-untyped-def]
    for n in range(len(weight)):
        begin, end, w = offsets[n], offsets[n + 1], weight[n]
        last = place[end - 1]
        log_left = np.empty(end - begin)
        _log_left(item, scores, begin, end, log_left)
        log_d, a, b = log_left[0], 0.0, 0.0
        for row in range(begin, end):
            k = item[row]
            if place[row] < last and (row == begin or place[row] != place[row - 1]):
                shrink = np.exp(log_left[row - begin] - log_d)
                count = _tied(place, row, end)
                log_d, a, b = log_left[row - begin], a * shrink + count, b * shrink * shrink + count
            chance = np.exp(scores[k] - log_d)
            out[k, k] += w * chance * (a - chance * b)
            # every later item of the list, and the rest of this place, stand under the same denominators
            for other in range(row + 1, end):
                m = item[other]
                shared = w * chance * np.exp(scores[m] - log_d) * b
                out[k, m] -= shared
                out[m, k] -= shared


@compiled(_log_left, _tied)
def _noise_loop(item, place, offsets, weight, scores, luck, out):  # type: ignore[no-untyped-def]
    for n in range(len(weight)):
        begin, end, root = offsets[n], offsets[n + 1], np.sqrt(weight[n])
        last = place[end - 1]
        log_left = np.empty(end - begin)
        _log_left(item, scores, begin, end, log_left)
        log_d, a, first = log_left[0], 0.0, begin
        for row in range(begin, end):
            k = item[row]
            if place[row] < last:
                if row == begin or place[row] != place[row - 1]:
                    first = row
                    a = a * np.exp(log_left[row - begin] - log_d) + _tied(place, row, end)
                    log_d = log_left[row - begin]
                # drawn is the last row that still has a share `luck` of the strength at or below it
                goal = log_d + np.log(luck[row])
                low, high = first, end - 1
                while low < high:
                    middle = (low + high + 1) // 2
                    if log_left[middle - begin] >= goal:
                        low = middle
                    else:
                        high = middle - 1
                out[item[low]] += root
            out[k] -= root * np.exp(scores[k] - log_d) * a
