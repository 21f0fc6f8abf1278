"""Likelihood of the multinomial preference model (Volkovs & Zemel 2012).

An annotator's preferences are drawn among all ordered pairs of a set of n items, with adherence θ:

    P(i ≻ j) = exp(θ·(sᵢ − sⱼ)/2) / Z,     Z = Σ_{k≠l} exp(θ·(sₖ − sₗ)/2) = (Σ e^x)·(Σ e^−x) − n,   x = θ·s/2

The sufficient statistics of a set are the wins less losses of each item and the number of answers. The Hessian of log Z
by x is F = diag(D) − e·fᵀ − f·eᵀ − p·pᵀ, so products with it need no sum over pairs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray

# Up to this many cells, matrices of items and annotators are full.
_MOST_DENSE = 2_000_000


class ChoiceSets(NamedTuple):
    """Sets of items among which an annotator expressed preferences. The items of a set stand side by side.

    Parameters
    ----------
    items, annotators : int
        How many there are in all.
    annotator : array of int
        Annotator of each set.
    weight : array of float
        Weight of the answers of each set.
    start : array of int
        Where the items of each set begin.
    set_of : array of int
        Set of each entry; an entry is one item of one set.
    item : array of int
        Item of each entry.
    half_net_wins : array of float
        Half of the wins less losses of each entry.
    """

    items: int
    annotators: int
    annotator: IntArray
    weight: FloatArray
    start: IntArray
    set_of: IntArray
    item: IntArray
    half_net_wins: FloatArray

    @property
    def rows(self) -> int:
        return len(self.item)

    def split(self, parts: int) -> list[ChoiceSets]:
        """Shards of whole sets, with about as many entries each."""
        ends = np.append(self.start, self.rows)
        cuts = np.unique(np.searchsorted(ends, np.linspace(0, self.rows, parts + 1)))
        return [self._between(int(a), int(b), slice(ends[a], ends[b])) for a, b in pairwise(cuts)]

    def _between(self, a: int, b: int, own: slice) -> ChoiceSets:
        return self._replace(
            annotator=self.annotator[a:b],
            weight=self.weight[a:b],
            start=self.start[a:b] - own.start,
            set_of=self.set_of[own] - a,
            item=self.item[own],
            half_net_wins=self.half_net_wins[own],
        )


class Derivatives(NamedTuple):
    """Log-likelihood of a shard and its gradient by scores and adherences."""

    value: float
    by_score: FloatArray
    by_adherence: FloatArray


class ChoiceCurvature(NamedTuple):
    """A shard at some scores and adherences, with what its curvature is made of.

    Parameters
    ----------
    sets : ChoiceSets
        The shard.
    scores, adherence : arrays of float
        The parameters.
    residual : array of float
        Half net wins of each entry less their expectation.
    weight : array of float
        Factor of F for each set: a quarter of the weight of its answers.
    d, e, f, p : arrays of float
        D, e, f and p of F, per entry.
    """

    sets: ChoiceSets
    scores: FloatArray
    adherence: FloatArray
    residual: FloatArray
    weight: FloatArray
    d: FloatArray
    e: FloatArray
    f: FloatArray
    p: FloatArray


def evaluate(sets: ChoiceSets, scores: FloatArray, adherence: FloatArray) -> tuple[ChoiceCurvature, Derivatives]:
    """Log-likelihood, gradient and curvature of a shard, in one pass over its entries."""
    theta, at = adherence[sets.annotator][sets.set_of], scores[sets.item]
    x = 0.5 * theta * at
    top, low = np.maximum.reduceat(x, sets.start), np.minimum.reduceat(x, sets.start)
    # relative to the largest power: nothing overflows, and Z is at least 1
    up, down = np.exp(x - top[sets.set_of]), np.exp(low[sets.set_of] - x)
    ups, downs = _sum_per_set(sets, up), _sum_per_set(sets, down)
    size = np.diff(np.append(sets.start, len(sets.item)))
    z = ups * downs - size * np.exp(low - top)
    for_all, against_all = (up * (downs / z)[sets.set_of], down * (ups / z)[sets.set_of])
    p, root = for_all - against_all, np.sqrt(z)[sets.set_of]
    residual = sets.half_net_wins - 0.5 * sets.weight[sets.set_of] * p
    value = float(sets.half_net_wins @ (theta * at) - sets.weight @ (top - low + np.log(z)))
    found = ChoiceCurvature(
        sets,
        scores,
        adherence,
        residual=residual,
        weight=0.25 * sets.weight,
        d=for_all + against_all,
        e=up / root,
        f=down / root,
        p=p,
    )
    by_score = _sum_at(sets.item, theta * residual, sets.items)
    by_adherence = _sum_at(sets.annotator[sets.set_of], at * residual, sets.annotators)
    return found, Derivatives(value, by_score, by_adherence)


def hessian_product(
    shard: ChoiceCurvature, by_score: FloatArray, by_adherence: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Negative Hessian times a vector, which is given in two parts."""
    sets = shard.sets
    if sets.rows == len(sets.annotator) * sets.items:
        return _product_of_full_sets(shard, by_score, by_adherence)
    who = sets.annotator[sets.set_of]
    theta, at = shard.adherence[who], shard.scores[sets.item]
    along_score, along_theta = by_score[sets.item], by_adherence[who]
    product = shard.weight[sets.set_of] * _f_product(shard, theta * along_score + at * along_theta)
    return (
        _sum_at(sets.item, theta * product - shard.residual * along_theta, sets.items),
        _sum_at(who, at * product - shard.residual * along_score, sets.annotators),
    )


def _product_of_full_sets(
    shard: ChoiceCurvature, by_score: FloatArray, by_adherence: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same where every set has all items, as it is with one query: products of matrices and vectors."""
    who, at, w = shard.sets.annotator, shard.scores, shard.weight
    d, e, f, p, residual = (
        values.reshape(len(who), -1) for values in (shard.d, shard.e, shard.f, shard.p, shard.residual)
    )
    theta, along_theta = shard.adherence[who], by_adherence[who]
    e_at, f_at, p_at = e @ at, f @ at, p @ at
    e_sum, f_sum, p_sum = (
        theta * (table @ by_score) + along_theta * total for table, total in ((e, e_at), (f, f_at), (p, p_at))
    )
    own = by_score * ((theta**2 * w) @ d) + at * ((theta * w * along_theta) @ d) - along_theta @ residual
    crossed = (theta * w * f_sum) @ e + (theta * w * e_sum) @ f + (theta * w * p_sum) @ p
    product = theta * (d @ (at * by_score)) + along_theta * (d @ at**2) - f_sum * e_at - e_sum * f_at - p_sum * p_at
    return own - crossed, _sum_at(who, w * product - residual @ by_score, shard.sets.annotators)


def hessian_diagonal(shard: ChoiceCurvature) -> tuple[FloatArray, FloatArray]:
    """Diagonal of the negative Hessian, which is never negative."""
    sets = shard.sets
    who, at = sets.annotator[sets.set_of], shard.scores[sets.item]
    own = shard.weight[sets.set_of] * (shard.d - 2.0 * shard.e * shard.f - shard.p**2)
    product = shard.weight[sets.set_of] * _f_product(shard, at)
    by_score = np.bincount(sets.item, shard.adherence[who] ** 2 * own, sets.items)
    return np.maximum(by_score, 0.0), np.maximum(np.bincount(who, at * product, sets.annotators), 0.0)


def hessian_blocks(shard: ChoiceCurvature) -> tuple[FloatArray, Any]:
    """Blocks of the negative Hessian: items × items, items × annotators (sparse if large). The third is diagonal."""
    if is_dense(shard.sets.items, shard.sets.annotators):
        return _dense_blocks(shard)
    from scipy.sparse import coo_array

    sets = shard.sets
    who = sets.annotator[sets.set_of]
    theta, at = shard.adherence[who], shard.scores[sets.item]

    def per_set(values: FloatArray) -> Any:
        return coo_array((values * theta, (sets.set_of, sets.item)), shape=(len(sets.annotator), sets.items)).tocsr()

    e, f, p = per_set(shard.e), per_set(shard.f), per_set(shard.p)
    crossed = (e.T @ f.multiply(shard.weight[:, None])).toarray()
    own = -(crossed + crossed.T) - (p.T @ p.multiply(shard.weight[:, None])).toarray()
    own.flat[:: sets.items + 1] += np.bincount(sets.item, theta**2 * (shard.weight[sets.set_of] * shard.d), sets.items)
    across = theta * shard.weight[sets.set_of] * _f_product(shard, at) - shard.residual
    return own, coo_array((across, (sets.item, who)), shape=(sets.items, sets.annotators)).tocsr()


def is_dense(items: int, annotators: int) -> bool:
    """Whether the block of items and annotators is a full matrix."""
    return items * annotators <= _MOST_DENSE


def _dense_blocks(shard: ChoiceCurvature) -> tuple[FloatArray, FloatArray]:
    """Sums over sets as products of matrices, some sets at a time."""
    sets, own = shard.sets, np.zeros((shard.sets.items, shard.sets.items))
    who = sets.annotator[sets.set_of]
    theta, at = shard.adherence[who], shard.scores[sets.item]
    ends, at_once = np.append(sets.start, sets.rows), max(1, _MOST_DENSE // sets.items)
    for first in range(0, len(sets.annotator), at_once):
        last = min(first + at_once, len(sets.annotator))
        rows = slice(ends[first], ends[last])
        e, f, p = np.zeros((3, last - first, sets.items))
        for table, values in ((e, shard.e), (f, shard.f), (p, shard.p)):
            table[sets.set_of[rows] - first, sets.item[rows]] = values[rows] * theta[rows]
        weight = shard.weight[first:last, None]
        crossed = e.T @ (weight * f)
        own -= crossed + crossed.T + p.T @ (weight * p)
    own.flat[:: sets.items + 1] += np.bincount(sets.item, theta**2 * (shard.weight[sets.set_of] * shard.d), sets.items)
    across = theta * shard.weight[sets.set_of] * _f_product(shard, at) - shard.residual
    cells = _sum_at(sets.item * sets.annotators + who, across, sets.items * sets.annotators)
    return own, cells.reshape(sets.items, sets.annotators)


def _f_product(shard: ChoiceCurvature, vector: FloatArray) -> FloatArray:
    """F times a vector, set by set."""
    sets = shard.sets
    e, f, p = (_sum_per_set(sets, part * vector)[sets.set_of] for part in (shard.e, shard.f, shard.p))
    return np.asarray(shard.d * vector - shard.e * f - shard.f * e - shard.p * p)


def _sum_per_set(sets: ChoiceSets, values: FloatArray) -> FloatArray:
    return np.asarray(np.add.reduceat(values, sets.start))


def _sum_at(where: IntArray, values: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(where, values, size), np.float64)
