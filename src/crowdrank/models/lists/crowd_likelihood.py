"""Plackett-Luce likelihood of lists by annotators of unknown precision.

An annotator of precision κ draws a list from the top, each next item with probability ∝ e^{κs} among the remaining.
κ = 0 is a random order, and an annotator with κ < 0 answers in reverse. The precisions are a fixed grid with weights
w_c, the classes of annotators, so the lists of annotator k have the likelihood

    P(lists of k | s) = Σ_c w_c · Π_{lists} P_c(list | s).

With r_c the posterior probability of class c and g_c the gradient of the log-likelihood under it, the gradient of log P
is ḡ = Σ_c r_c·g_c, and the negative Hessian is Σ_c r_c·H_c − (Σ_c r_c·g_c·g_cᵀ − ḡ·ḡᵀ): the information given the
class, minus what is lost because the class is unknown.

Two-sided: drawn from the top, the first places of a list count most. People do not always order that way, so a list can
also be drawn from the bottom, each next item from below with probability ∝ e^{−κs}; that is the same formula for the
reversed list with −κ. A two-sided likelihood adds both logarithms, each with the weight `SIDE_WEIGHT`. Lists that are
tied at one end only have one side: top-k lists and choices of the best item are drawn from the top, their mirror images
from the bottom. So does a list of two, for which both sides are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Items, Rankings

SIDE_WEIGHT = 0.55
"""Weight of each side of a two-sided list.

The two sides tell little more than one. If all items are alike, the gradients of both have correlation ρ, and weights
of 1/(1 + ρ) make the variance of their sum equal to the information, as in a likelihood. ρ falls from 1 for lists of
two to π²/6 − 1 for long lists, so these weights rise from 0.5 to 0.61. Simulations with lists of 10 to 20 items,
random ones included, are best calibrated slightly below.
"""
# Rows (items of lists) that are worked on at once; every array then has this many cells per class.
_ROWS_AT_ONCE = 1 << 14
# κ·s is cut off this far below the best item of a list: e^−300 vanishes in every sum, yet can still be divided by.
_LOWEST = -300.0


class ListBlock(NamedTuple):
    """Lists of one length, one per column, with the items in the order in which they are drawn.

    Parameters
    ----------
    number : array of int
        Number of each list within its chunk.
    item, cell : array of int, positions × lists
        The items, and where the chunk keeps the gradient of an annotator and an item.
    sign : array of float
        +1 for a list that is drawn from the top, −1 for one from the bottom.
    drawn : array of bool, positions × lists
        False for the items on the last place, which are what remains.
    first, last : array of int, positions × lists, or None
        First and last position of the tie that an item belongs to; None if nothing is tied.
    """

    number: IntArray
    item: IntArray
    cell: IntArray
    sign: FloatArray
    drawn: BoolArray
    first: IntArray | None
    last: IntArray | None


class Chunk(NamedTuple):
    """All lists of some annotators.

    Parameters
    ----------
    annotators : slice
        Codes of the annotators.
    annotator, weight : array
        Annotator of each list, counted from the first of the chunk, and its weight in that annotator's likelihood.
    lists : sequence of ListBlock
        The lists, by length; a two-sided list is there twice.
    cell_annotator, cell_item : array of int
        The distinct pairs of an annotator and an item, sorted.
    units : sequence of arrays of int, units × cells
        Cells of one annotator in one block of the Hessian, in groups of equal size.
    """

    annotators: slice
    annotator: IntArray
    weight: FloatArray
    lists: Sequence[ListBlock]
    cell_annotator: IntArray
    cell_item: IntArray
    units: Sequence[IntArray]


class Blocks(NamedTuple):
    """A block-diagonal matrix over the items, stored block by block.

    Parameters
    ----------
    starts : array of int
        First item of each block, and the number of items at the end.
    block, row : array of int
        Block of each item, and where its row begins in the store.
    """

    starts: IntArray
    block: IntArray
    row: IntArray

    @classmethod
    def of(cls, starts: IntArray) -> Blocks:
        sizes = np.diff(starts)
        block = np.repeat(np.arange(len(sizes)), sizes)
        begins = np.append(0, np.cumsum(sizes**2))[:-1]
        return cls(starts, block, begins[block] + (np.arange(starts[-1]) - starts[block]) * sizes[block])

    @property
    def cells(self) -> int:
        return int(np.sum(np.diff(self.starts) ** 2))

    def at(self, rows: IntArray, columns: IntArray) -> IntArray:
        """Where pairs of items of one block are stored."""
        return np.asarray(self.row[rows] + columns - self.starts[self.block[columns]])

    def matrices(self, stored: FloatArray) -> list[FloatArray]:
        """The blocks as matrices."""
        cuts = np.append(0, np.cumsum(np.diff(self.starts) ** 2))
        sizes = np.diff(self.starts)
        return [stored[a:b].reshape(n, n) for (a, b), n in zip(pairwise(cuts), sizes, strict=True)]


class CrowdLogLikelihood(NamedTuple):
    """Log-likelihood and its derivatives.

    Parameters
    ----------
    value : float
        The log-likelihood.
    gradient : array of float
        Its gradient.
    hessian, information : array of float
        Blocks of the negative Hessian, and of the information given the classes, which is positive semidefinite.
    classes : array of float, annotators × classes
        log P(lists | class).
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray
    information: FloatArray
    classes: FloatArray


@dataclass(frozen=True, eq=False)
class CrowdLists:
    """Lists laid out for the classes of annotators.

    Parameters
    ----------
    chunks : sequence of Chunk
        The lists, in chunks of annotators.
    precision : array of float
        Precision κ of each class.
    blocks : Blocks
        Layout of the Hessian. Its other entries, which couple queries with a common annotator, are left out.
    annotator_weight : array of float
        How often each annotator counts.
    """

    chunks: Sequence[Chunk]
    precision: FloatArray
    blocks: Blocks
    annotator_weight: FloatArray

    @classmethod
    def of(cls, lists: Rankings, precision: FloatArray, block_starts: IntArray, *, two_sided: bool) -> CrowdLists:
        """Lay out the lists. Without annotators, every list has its own, who counts as often as the list."""
        named = lists.annotator is not None
        who = np.asarray(lists.annotator, np.int64) if named else np.arange(len(lists))
        size = len(lists.annotators) if named else len(lists)
        within, outer = (lists.weights, np.ones(size)) if named else (np.ones(len(lists)), lists.weights)
        drawn = np.flatnonzero(lists.lengths > 1)
        side = end_ties(lists)[drawn] if two_sided else np.ones(len(drawn), np.int64)
        free = drawn[(side == 0) & (lists.lengths[drawn] > 2)]
        weight = np.where((side == 0) & (lists.lengths[drawn] > 2), SIDE_WEIGHT, 1.0) * within[drawn]
        layout = _Layout(
            lists.take(np.concatenate((drawn, free))),
            annotator=who[np.concatenate((drawn, free))],
            weight=np.concatenate((weight, SIDE_WEIGHT * within[free])),
            from_top=np.concatenate((side >= 0, np.zeros(len(free), bool))),
            blocks=Blocks.of(block_starts),
        )
        return cls([layout.chunk(a, b) for a, b in layout.cuts(size)], precision, layout.blocks, outer)

    def evaluate(self, scores: FloatArray, log_weight: FloatArray) -> CrowdLogLikelihood:
        """Log-likelihood and its derivatives, given the log weight of each class."""
        value, gradient = 0.0, np.zeros(len(scores))
        hessian, information = np.zeros(self.blocks.cells), np.zeros(self.blocks.cells)
        classes = np.zeros((len(self.annotator_weight), len(log_weight)))
        for chunk in self.chunks:
            weight = self.annotator_weight[chunk.annotators]
            drawn = [_draw(block, scores, self.precision) for block in chunk.lists]
            classes[chunk.annotators] = _class_sums(chunk, drawn, len(weight), len(log_weight))
            posterior, total = class_posterior(classes[chunk.annotators], log_weight)
            value += float(weight @ total)
            table = _gradients(chunk, drawn, len(log_weight))
            expected = np.einsum("nc,nc->n", table, posterior[chunk.cell_annotator])
            gradient += np.bincount(chunk.cell_item, expected * weight[chunk.cell_annotator], minlength=len(scores))
            _add_information(information, chunk, drawn, posterior * weight[:, None], self.blocks)
            table -= expected[:, None]
            table *= np.sqrt(posterior * weight[:, None])[chunk.cell_annotator]
            _subtract_covariance(hessian, chunk, table, self.blocks)
        return CrowdLogLikelihood(value, gradient, information + hessian, information, classes)


def class_posterior(classes: FloatArray, log_weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior of the classes of each annotator, and log P of the annotator's lists."""
    joint = classes + log_weight
    highest = joint.max(axis=1, keepdims=True)
    posterior = np.exp(joint - highest)
    total = posterior.sum(axis=1, keepdims=True)
    posterior /= total
    return posterior, np.asarray((highest + np.log(total))[:, 0])


class _Drawn(NamedTuple):
    """Terms of a block under every class: (positions ×) lists × classes."""

    block: ListBlock
    log_likelihood: FloatArray
    probability: FloatArray
    inverse: FloatArray
    inverse_square: FloatArray
    kappa: FloatArray


def _draw(block: ListBlock, scores: FloatArray, precision: FloatArray) -> _Drawn:
    """With D the sum of e^{κs} over what remains: e^{κs}, Σ 1/D and Σ 1/D² over the draws that an item took part in."""
    kappa = block.sign[:, None] * precision
    # κ·s less its largest value in the list, which is at the largest or the smallest score
    score = scores[block.item]
    highest = np.where(kappa > 0, score.max(axis=0)[:, None], score.min(axis=0)[:, None])
    exponent = np.maximum((score[:, :, None] - highest) * kappa, _LOWEST)
    probability = np.exp(exponent)
    remaining = np.empty_like(probability)
    running = np.zeros(kappa.shape)
    for p in range(len(score) - 1, -1, -1):
        running += probability[p]
        remaining[p] = running
    if block.first is not None:
        remaining = np.take_along_axis(remaining, block.first[:, :, None], axis=0)
    log_likelihood = np.where(block.drawn[:, :, None], exponent - np.log(remaining), 0.0).sum(axis=0)
    inverse = block.drawn[:, :, None] / remaining
    square = inverse * inverse
    for p in range(1, len(score)):
        inverse[p] += inverse[p - 1]
        square[p] += square[p - 1]
    if block.last is not None:
        inverse = np.take_along_axis(inverse, block.last[:, :, None], axis=0)
        square = np.take_along_axis(square, block.last[:, :, None], axis=0)
    return _Drawn(block, log_likelihood, probability, inverse, square, kappa)


def _class_sums(chunk: Chunk, drawn: Sequence[_Drawn], annotators: int, n_classes: int) -> FloatArray:
    """log P(lists | class): annotators × classes."""
    of_list = np.zeros((len(chunk.weight), n_classes))
    for terms in drawn:
        of_list[terms.block.number] = terms.log_likelihood
    of_list *= chunk.weight[:, None]
    return _sum_rows(chunk.annotator, of_list, annotators)


def _gradients(chunk: Chunk, drawn: Sequence[_Drawn], n_classes: int) -> FloatArray:
    """Gradient of log P(lists | class): pairs of an annotator and an item × classes."""
    cells, rows = [], []
    for terms in drawn:
        block = terms.block
        each = terms.probability * terms.inverse
        np.subtract(block.drawn[:, :, None], each, out=each)
        each *= terms.kappa * chunk.weight[block.number, None]
        cells.append(block.cell.ravel())
        rows.append(each.reshape(-1, n_classes))
    if not rows:
        return np.zeros((0, n_classes))
    return _sum_rows(np.concatenate(cells), np.concatenate(rows), len(chunk.cell_item))


def _sum_rows(group: IntArray, rows: FloatArray, size: int) -> FloatArray:
    """Sums of the rows of each group."""
    columns = rows.shape[1]
    cell = (group[:, None] * columns + np.arange(columns)).ravel()
    return np.asarray(np.bincount(cell, rows.ravel(), size * columns).reshape(size, columns), np.float64)


def _add_information(out: FloatArray, chunk: Chunk, drawn: Sequence[_Drawn], share: FloatArray, blocks: Blocks) -> None:
    """Σ_c r_c·H_c: per list, κ²·([p=q]·e_p·A_p − e_p·e_q·B_min(p,q)), with A and B the sums of 1/D and 1/D²."""
    for terms in drawn:
        block = terms.block
        weight = share[chunk.annotator[block.number]] * chunk.weight[block.number, None] * terms.kappa**2
        left = weight * terms.probability * terms.inverse_square
        diagonal = np.einsum("lc,plc,plc->pl", weight, terms.probability, terms.inverse)
        products = np.matmul(left.transpose(1, 0, 2), terms.probability.transpose(1, 2, 0))
        upper = np.triu(products, 1)
        symmetric = upper + upper.transpose(0, 2, 1)
        on = np.arange(len(diagonal))
        symmetric[:, on, on] = products[:, on, on] - diagonal.T
        item = block.item.T
        _subtract_at(out, blocks, item, symmetric)


def _subtract_covariance(out: FloatArray, chunk: Chunk, table: FloatArray, blocks: Blocks) -> None:
    """Subtract the covariance of the gradient over the classes, annotator by annotator."""
    for cells in chunk.units:
        rows, item = table[cells], chunk.cell_item[cells]
        covariance = np.matmul(rows, rows.transpose(0, 2, 1))
        _subtract_at(out, blocks, item, covariance)


def _subtract_at(out: FloatArray, blocks: Blocks, item: IntArray, matrices: FloatArray) -> None:
    """Subtract one matrix over some items per row of `item`."""
    at = blocks.at(item[:, :, None], item[:, None, :]).ravel()
    if at.size > len(out) // 4:
        out -= np.bincount(at, matrices.ravel(), len(out))
    else:
        np.subtract.at(out, at, matrices.ravel())


# Layout


def end_ties(lists: Rankings) -> IntArray:
    """+1 for lists whose last place alone is tied, −1 for those whose first place alone is, else 0."""
    begin, end = lists.offsets[:-1], lists.offsets[1:] - 1
    second, before = np.minimum(begin + 1, end), np.maximum(end - 1, begin)
    tied_first = (second > begin) & (lists.place[second] == lists.place[begin])
    tied_last = (before < end) & (lists.place[before] == lists.place[end])
    return np.asarray(tied_last.astype(np.int64) - tied_first)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Lists with the side that they are drawn from, to be cut into chunks of annotators."""

    lists: Rankings
    annotator: IntArray
    weight: FloatArray
    from_top: BoolArray
    blocks: Blocks

    def cuts(self, annotators: int) -> list[tuple[int, int]]:
        """First and last annotator (exclusive) of each chunk."""
        rows = np.bincount(self.annotator, self.lists.lengths, annotators)
        chunk = (np.cumsum(rows) - rows) // _ROWS_AT_ONCE
        begins = np.flatnonzero(np.append(True, chunk[1:] != chunk[:-1]))
        return list(pairwise(np.append(begins, annotators).tolist()))

    def chunk(self, begin: int, end: int) -> Chunk:
        mine = np.flatnonzero((self.annotator >= begin) & (self.annotator < end))
        some, who = self.lists.take(mine), self.annotator[mine] - begin
        size = len(some.items)
        cells, cell = np.unique(who[some.list_of_row] * size + some.item, return_inverse=True)
        cell_annotator, cell_item = np.divmod(cells, size)
        lengths = np.unique(some.lengths)
        return Chunk(
            annotators=slice(begin, end),
            annotator=who,
            weight=self.weight[mine],
            lists=[_list_block(some, np.flatnonzero(some.lengths == n), cell, self.from_top[mine]) for n in lengths],
            cell_annotator=cell_annotator,
            cell_item=cell_item,
            units=_equal_runs(cell_annotator * len(self.blocks.starts) + self.blocks.block[cell_item]),
        )


def _list_block(some: Rankings, number: IntArray, cell: IntArray, from_top: BoolArray) -> ListBlock:
    """Lists of equal length."""
    length, top = int(some.lengths[number[0]]), from_top[number]
    step = np.arange(length)[:, None]
    rows = some.offsets[:-1][number] + np.where(top, step, length - 1 - step)
    place = np.where(top, 1, -1) * some.place[rows]
    ends = np.ones((1, len(number)), bool)
    new = np.vstack((ends, place[1:] != place[:-1]))
    first = last = None
    if not new.all():
        first = np.maximum.accumulate(np.where(new, step, 0), axis=0)
        last = np.minimum.accumulate(np.where(np.vstack((new[1:], ends)), step, length)[::-1], axis=0)[::-1]
    sign = np.where(top, 1.0, -1.0)
    return ListBlock(number, some.item[rows].astype(np.int64), cell[rows], sign, place < place[-1], first, last)


def _equal_runs(unit: IntArray) -> list[IntArray]:
    """Positions of each run of equal values, as one table per length of run."""
    if not len(unit):
        return []
    begins = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    sizes = np.diff(np.append(begins, len(unit)))
    return [begins[sizes == size][:, None] + np.arange(size) for size in np.unique(sizes)]


# Classes of annotators who make lists: a grid of precisions, with weights learnt from all annotators.
#
# A regular annotator has a precision κ with log κ ~ N(0, ω²), cut to the grid; some annotators answer at random (κ =
# 0), and a few in reverse (κ = −1). The unit of the scores is that of an annotator with κ = 1.

_LOG_PRECISION = np.log(2.0) * 0.75 * np.arange(-4, 5)
PRECISION = np.concatenate((np.exp(_LOG_PRECISION), [0.0], [-1.0]))
"""Precision κ of each class: regular, random, reversed."""
_KIND = np.repeat([0, 1, 2], [len(_LOG_PRECISION), 1, 1])
SPREADS = (0.7, 0.25, 1.3)
"""Values of ω, the standard deviation of log κ, that are tried, the most usual first."""
# The Dirichlet prior of the shares, as a number of regular, random and reversed annotators seen before.
_SEEN = np.array([6.0, 0.6, 0.15])
_EM_STEPS = 30
_EM_TOLERANCE = 1e-4
# Pairs of items over which the quality of annotators is averaged: of this many queries, and items of each.
_QUERIES_IN_QUALITY, _ITEMS_IN_QUALITY = 200, 50


@dataclass(frozen=True, eq=False)
class Population:
    """Weights of the classes.

    Parameters
    ----------
    spread : float
        Standard deviation ω of the log precision of regular annotators; 0 if all annotators are alike.
    shares : array of float
        Shares of regular, random and reversed annotators.
    """

    spread: float
    shares: FloatArray

    @classmethod
    def prior(cls, spread: float) -> Population:
        """What is assumed before any list is seen; all annotators are regular if the spread is 0."""
        return cls(spread, _SEEN / _SEEN.sum() if spread else np.array([1.0, 0.0, 0.0]))

    @property
    def log_weight(self) -> FloatArray:
        """Log weight of each class."""
        regular = -0.5 * (_LOG_PRECISION / max(self.spread, 1e-3)) ** 2
        regular -= np.logaddexp.reduce(regular)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.shares)[_KIND] + np.append(regular, [0.0, 0.0]))

    @property
    def log_prior(self) -> float:
        """Log prior density of the shares, up to a constant."""
        return float(_SEEN @ np.log(self.shares)) if self.spread else 0.0

    def learn(self, classes: FloatArray, annotator_weight: FloatArray) -> Population:
        """The most probable shares given log P(lists | class), annotators × classes, by EM."""
        found = self
        for _ in range(_EM_STEPS if self.spread else 0):
            posterior, _ = class_posterior(classes, found.log_weight)
            shares = np.bincount(_KIND, annotator_weight @ posterior) + _SEEN
            before, found = found, replace(found, shares=shares / shares.sum())
            if np.max(np.abs(found.shares - before.shares)) < _EM_TOLERANCE:
                break
        return found

    def log_posterior(self, classes: FloatArray, annotator_weight: FloatArray) -> float:
        """log P(lists | this population) plus the log prior of its shares."""
        _, total = class_posterior(classes, self.log_weight)
        return float(annotator_weight @ total) + self.log_prior


def class_quality(items: Items, scores: FloatArray) -> FloatArray:
    """Probability that an annotator of each class orders two items of a query right, on average over pairs."""
    gaps = []
    queries = np.linspace(0, len(items.queries) - 1, min(len(items.queries), _QUERIES_IN_QUALITY)).astype(int)
    for query in queries:
        own = np.sort(scores[items.of_query(query)])
        own = own[np.linspace(0, len(own) - 1, min(len(own), _ITEMS_IN_QUALITY)).astype(int)]
        first, second = np.triu_indices(len(own), 1)
        gaps.append(own[second] - own[first])
    gap = np.concatenate(gaps)
    if not len(gap):
        return np.full(len(PRECISION), 0.5)
    return np.array([float(np.mean(1 / (1 + np.exp(-np.clip(kappa * gap, -500, 500))))) for kappa in PRECISION])


def summarise(
    posterior: FloatArray, value: FloatArray, level: float = 0.95
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior mean of a value of the classes for each annotator, and the ends of its interval."""
    order: IntArray = np.argsort(value, kind="stable")
    below = np.cumsum(posterior[:, order], axis=1)
    tail = (1 - level) / 2
    low = value[order][np.argmax(below > tail, axis=1)]
    high = value[order][np.argmax(below >= 1 - tail - 1e-12, axis=1)]
    mean = posterior @ value
    # On a grid, a small share of a distant class can move the mean beyond the quantiles.
    return mean, np.minimum(low, mean), np.maximum(high, mean)
