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
import numpy.typing as npt

from crowdrank.likelihoods.compiled import compiled

Vector = npt.NDArray[np.float64]

# The loops below also run uncompiled; up to this many rows that is quicker than loading the compiler.
_PLAIN_UP_TO = 2_000


class Lists(NamedTuple):
    """One shard of lists: items best first, their places, where each list begins, and its weight."""

    item: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    weight: Vector

    @property
    def rows(self) -> int:
        return len(self.item)

    def split(self, parts: int) -> list[Lists]:
        wanted = np.linspace(0, self.rows, parts + 1)
        cuts = np.unique(np.searchsorted(self.offsets, wanted))
        return [self._between(a, b) for a, b in pairwise(cuts)]

    def _between(self, a: int, b: int) -> Lists:
        rows = slice(self.offsets[a], self.offsets[b])
        return Lists(self.item[rows], self.place[rows], self.offsets[a : b + 1] - self.offsets[a], self.weight[a:b])


class ListSlopes(NamedTuple):
    value: float
    gradient: Vector
    diagonal: Vector


def slopes(shard: Lists, scores: Vector) -> ListSlopes:
    """Log-likelihood of a shard, its gradient, and the diagonal of its curvature."""
    gradient, diagonal = np.zeros(len(scores)), np.zeros(len(scores))
    value = _run(_slopes_loop, shard, scores, gradient, diagonal)
    return ListSlopes(value, gradient, diagonal)


def product(shard: Lists, scores: Vector, vector: Vector) -> tuple[Vector]:
    """Curvature times a vector."""
    out = np.zeros(len(scores))
    _run(_product_loop, shard, scores, vector, out)
    return (out,)


def matrix(shard: Lists, scores: Vector) -> tuple[Vector]:
    """The curvature as a full matrix."""
    out = np.zeros((len(scores), len(scores)))
    _run(_matrix_loop, shard, scores, out)
    return (out,)


def redraw(shard: Lists, scores: Vector, rng: np.random.Generator) -> Lists:
    """The same lists with orders drawn from the model: its gradients have the curvature as their covariance."""
    keys = scores[shard.item] + rng.gumbel(size=shard.rows)
    of_row = np.repeat(np.arange(len(shard.weight)), np.diff(shard.offsets))
    return shard._replace(item=shard.item[np.lexsort((-keys, of_row))])


def _run(loop: Any, shard: Lists, scores: Vector, *others: Any) -> Any:
    call = loop.function if shard.rows <= _PLAIN_UP_TO else loop
    return call(shard.item, shard.place, shard.offsets, shard.weight, scores, *others)


@compiled()
def _slopes_loop(item, place, offsets, weight, scores, gradient, diagonal):  # type: ignore[no-untyped-def]
    value = 0.0
    for n in range(len(weight)):
        begin, end, w = offsets[n], offsets[n + 1], weight[n]
        last = place[end - 1]
        top = max([scores[item[row]] for row in range(begin, end)])
        left = 0.0
        remaining = np.empty(end - begin)
        for row in range(end - 1, begin - 1, -1):
            left += np.exp(scores[item[row]] - top)
            remaining[row - begin] = left
        a = b = denominator = 0.0
        for row in range(begin, end):
            k = item[row]
            strength = np.exp(scores[k] - top)
            open_place = place[row] < last
            if row == begin or place[row] != place[row - 1]:
                denominator = remaining[row - begin]
                count = 1
                while row + count < end and place[row + count] == place[row]:
                    count += 1
                if open_place:
                    a += count / denominator
                    b += count / (denominator * denominator)
            if open_place:
                value += w * (scores[k] - top - np.log(denominator))
                gradient[k] += w
            gradient[k] -= w * strength * a
            diagonal[k] += w * strength * (a - strength * b)
    return value


@compiled()
def _product_loop(item, place, offsets, weight, scores, vector, out):  # type: ignore[no-untyped-def]
    for n in range(len(weight)):
        begin, end, w = offsets[n], offsets[n + 1], weight[n]
        last = place[end - 1]
        top = max([scores[item[row]] for row in range(begin, end)])
        left = pushed = 0.0
        remaining, moved = np.empty(end - begin), np.empty(end - begin)
        for row in range(end - 1, begin - 1, -1):
            strength = np.exp(scores[item[row]] - top)
            left += strength
            pushed += strength * vector[item[row]]
            remaining[row - begin], moved[row - begin] = left, pushed
        a = c = 0.0
        for row in range(begin, end):
            if place[row] < last and (row == begin or place[row] != place[row - 1]):
                count = 1
                while row + count < end and place[row + count] == place[row]:
                    count += 1
                denominator = remaining[row - begin]
                a += count / denominator
                c += count * moved[row - begin] / (denominator * denominator)
            k = item[row]
            out[k] += w * np.exp(scores[k] - top) * (a * vector[k] - c)


@compiled()
def _matrix_loop(item, place, offsets, weight, scores, out):  # type: ignore[no-untyped-def]
    for n in range(len(weight)):
        begin, end, w = offsets[n], offsets[n + 1], weight[n]
        last = place[end - 1]
        top = max([scores[item[row]] for row in range(begin, end)])
        left = 0.0
        remaining = np.empty(end - begin)
        for row in range(end - 1, begin - 1, -1):
            left += np.exp(scores[item[row]] - top)
            remaining[row - begin] = left
        a = b = 0.0
        for row in range(begin, end):
            if place[row] < last and (row == begin or place[row] != place[row - 1]):
                count = 1
                while row + count < end and place[row + count] == place[row]:
                    count += 1
                denominator = remaining[row - begin]
                a += count / denominator
                b += count / (denominator * denominator)
            k = item[row]
            strength = np.exp(scores[k] - top)
            out[k, k] += w * strength * (a - strength * b)
            # every later item of the list, and the rest of this place, stand under the same denominators
            for other in range(row + 1, end):
                m = item[other]
                shared = w * strength * np.exp(scores[m] - top) * b
                out[k, m] -= shared
                out[m, k] -= shared
