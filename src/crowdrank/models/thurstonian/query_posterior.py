"""Gaussian approximation of the posterior of one query's scores and perceived utilities, for compiled loops.

Given domain, expertise τ, difficulty δ² and score variance ω², the posterior is a Gaussian prior times probit factors,
one per judgment, and log-concave. Parallel expectation propagation (Minka 2001; Rasmussen & Williams 2006, §3.6)
replaces each factor by a Gaussian one. Given the scores, annotators perceive independently of each other, so the
precision matrix is factored in one block per annotator and one for the scores.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.inference.special import hazard_by_table, log_cdf_by_table

_ROUNDS = 8
_DAMPING = 0.8


class Blocks(NamedTuple):
    """The judgments of one query by annotator. One block is one annotator."""

    row: AnyArray
    """Where the judgments of each block start, and where the last one ends."""
    utility: AnyArray
    """Where the perceived utilities of each block start in `order`, and where the last one ends."""
    order: AnyArray
    """Perceived utilities, block by block."""
    place: AnyArray
    """The place of each perceived utility in its block."""
    matrix: AnyArray
    """Where the matrix of each block starts, and where the last one ends."""


def _blocks(sights: Any, query: Any) -> Any:
    start, end = sights.judgment_starts[query], sights.judgment_starts[query + 1]
    low = sights.sight_starts[sights.item_starts[query]]
    high = sights.sight_starts[sights.item_starts[query + 1]]
    place, order = np.full(high - low, -1), np.empty(high - low, np.int64)
    row, utility = np.empty(end - start + 1, np.int64), np.empty(end - start + 1, np.int64)
    blocks, count = 0, 0
    for judgment in range(start, end):
        if judgment == start or sights.annotator[judgment] != sights.annotator[judgment - 1]:
            row[blocks], utility[blocks] = judgment, count
            blocks += 1
        for seen in (sights.winner[judgment], sights.loser[judgment]):
            if place[seen - low] < 0:
                place[seen - low] = count - utility[blocks - 1]
                order[count] = seen
                count += 1
    row[blocks], utility[blocks] = end, count
    matrix = np.zeros(blocks + 1, np.int64)
    for block in range(blocks):
        matrix[block + 1] = matrix[block] + (utility[block + 1] - utility[block]) ** 2
    return Blocks(row[: blocks + 1], utility[: blocks + 1], order, place, matrix)


def _cholesky(matrix: Any) -> None:
    """The lower factor, in place; what is above the diagonal is left as it was."""
    size = len(matrix)
    for column in range(size):
        for row in range(column, size):
            total = matrix[row, column]
            for k in range(column):
                total -= matrix[row, k] * matrix[column, k]
            matrix[row, column] = math.sqrt(total) if row == column else total / matrix[column, column]


def _invert(matrix: Any, inverse: Any) -> None:
    """The inverse of a positive definite matrix, which becomes its Cholesky factor."""
    _cholesky(matrix)
    size = len(matrix)
    for column in range(size):  # L⁻¹, held in the upper triangle of the inverse: row by column
        for row in range(column, size):
            total = 1.0 if row == column else 0.0
            for k in range(column, row):
                total -= matrix[row, k] * inverse[column, k]
            inverse[column, row] = total / matrix[row, row]
    for one in range(size):  # L⁻ᵀ L⁻¹; entry (one, other) needs only entries to its right
        for other in range(one, size):
            total = 0.0
            for k in range(other, size):
                total += inverse[one, k] * inverse[other, k]
            inverse[one, other] = total
    for one in range(size):
        for other in range(one):
            inverse[one, other] = inverse[other, one]


def _place(noise: Any, factor: Any, mean: Any, point: Any, draw: Any) -> Any:
    """A point with precision L Lᵀ about the mean, or the noise of a given point; the log density, without 2π."""
    size, density = len(mean), 0.0
    if not draw:
        for row in range(size):
            total = 0.0
            for k in range(row, size):
                total += factor[k, row] * (point[k] - mean[k])
            noise[row] = total
    else:
        for row in range(size - 1, -1, -1):
            total = noise[row]
            for k in range(row + 1, size):
                total -= factor[k, row] * (point[k] - mean[k])
            point[row] = mean[row] + total / factor[row, row]
    for row in range(size):
        density += math.log(factor[row, row]) - 0.5 * noise[row] ** 2
    return density


class Approximation(NamedTuple):
    """A Gaussian in two stages: the scores, and given them the perceived utilities of each annotator."""

    blocks: Any
    first: int
    """The first item of the query, …"""
    low: int
    """… and its first perceived utility."""
    spread: float
    """ω²"""
    blur: float
    """δ²"""
    factor: AnyArray
    """Cholesky factor of the precision of the scores, …"""
    covariance: AnyArray
    mean: AnyArray
    """… and their mean."""
    factors: AnyArray
    """Cholesky factor of the precision of each block given the scores, one after another, …"""
    covariances: AnyArray
    pull: AnyArray
    """… and what the judgments add to precision times mean, by perceived utility in block order."""


def _assemble(sights: Any, slope: Any, sites: Any, q: Any) -> None:
    """Precisions, covariances and means from one Gaussian factor per judgment (precision, precision times mean)."""
    q.factor[:], q.mean[:] = 0.0, 0.0
    for item in range(len(q.mean)):
        q.factor[item, item] = 1.0 / q.spread
    begin = q.blocks.row[0]
    for block in range(len(q.blocks.row) - 1):
        start, end = q.blocks.utility[block], q.blocks.utility[block + 1]
        size, held = end - start, slice(q.blocks.matrix[block], q.blocks.matrix[block + 1])
        factor, covariance = q.factors[held].reshape(size, size), q.covariances[held].reshape(size, size)
        pull = q.pull[start:end]
        factor[:], pull[:] = 0.0, 0.0
        for k in range(size):
            factor[k, k] = 1.0 / q.blur
        for row in range(q.blocks.row[block], q.blocks.row[block + 1]):
            one, other = q.blocks.place[sights.winner[row] - q.low], q.blocks.place[sights.loser[row] - q.low]
            steep = slope[sights.annotator[row]]
            told, push = steep * steep * sites[0, row - begin], steep * sites[1, row - begin]
            factor[one, one] += told
            factor[other, other] += told
            factor[one, other] -= told
            factor[other, one] -= told
            pull[one] += push
            pull[other] -= push
        _invert(factor, covariance)
        # The scores' precision is what is left when the block is integrated out.
        for k in range(size):
            one = sights.item[q.blocks.order[start + k]] - q.first
            q.factor[one, one] += 1.0 / q.blur
            for j in range(size):
                other = sights.item[q.blocks.order[start + j]] - q.first
                q.factor[one, other] -= covariance[k, j] / (q.blur * q.blur)
                q.mean[one] += covariance[k, j] * pull[j] / q.blur
    _invert(q.factor, q.covariance)
    q.mean[:] = q.covariance @ q.mean


def _refine(sights: Any, slope: Any, sites: Any, q: Any) -> None:
    """One round of expectation propagation: each judgment's factor is matched to its tilted margin."""
    begin = q.blocks.row[0]
    for block in range(len(q.blocks.row) - 1):
        start, end = q.blocks.utility[block], q.blocks.utility[block + 1]
        size = end - start
        covariance = q.covariances[q.blocks.matrix[block] : q.blocks.matrix[block + 1]].reshape(size, size)
        for row in range(q.blocks.row[block], q.blocks.row[block + 1]):
            one, other = q.blocks.place[sights.winner[row] - q.low], q.blocks.place[sights.loser[row] - q.low]
            steep = slope[sights.annotator[row]]
            if steep == 0.0:
                continue
            variance, mean = covariance[one, one] + covariance[other, other] - 2.0 * covariance[one, other], 0.0
            for k in range(size):
                item, total = sights.item[q.blocks.order[start + k]] - q.first, 0.0
                weight = covariance[k, one] - covariance[k, other]
                mean += weight * (q.mean[item] / q.blur + q.pull[start + k])
                for j in range(size):
                    across = q.covariance[item, sights.item[q.blocks.order[start + j]] - q.first]
                    total += across * (covariance[j, one] - covariance[j, other])
                variance += weight * total / (q.blur * q.blur)
            variance, mean = steep * steep * variance, steep * mean
            # Without the factor itself, …
            cavity = 1.0 / max(1.0 / variance - sites[0, row - begin], 1e-9)
            middle = cavity * (mean / variance - sites[1, row - begin])
            # … the moments of the margin times Φ, and the factor that has them.
            root = math.sqrt(1.0 + cavity)
            hazard = hazard_by_table(middle / root)
            bend = max(1e-9, hazard * (hazard + middle / root)) / (1.0 + cavity)
            precision = bend / max(1e-9, 1.0 - cavity * bend)
            natural = precision * middle + (1.0 + precision * cavity) * hazard / root
            sites[0, row - begin] += _DAMPING * (precision - sites[0, row - begin])
            sites[1, row - begin] += _DAMPING * (natural - sites[1, row - begin])


def approximate(sights: Any, query: Any, slope: Any, spread: Any, blur: Any) -> Any:
    """The Gaussian for a query, with everyone's slope τ / √2. It depends on nothing that is drawn from it."""
    blocks = _blocks(sights, query)
    first, last = sights.item_starts[query], sights.item_starts[query + 1]
    low, rows = sights.sight_starts[first], sights.judgment_starts[query + 1] - sights.judgment_starts[query]
    items, many = last - first, blocks.matrix[-1]
    q = Approximation(
        blocks,
        first,
        low,
        spread,
        blur,
        np.empty((items, items)),
        np.empty((items, items)),
        np.empty(items),
        np.empty(many),
        np.empty(many),
        np.empty(len(blocks.order)),
    )
    sites = np.zeros((2, rows))
    for _ in range(_ROUNDS):
        _assemble(sights, slope, sites, q)
        _refine(sights, slope, sites, q)
    _assemble(sights, slope, sites, q)
    return q


def place(sights: Any, q: Any, noise: Any, scores: Any, seen: Any, draw: Any) -> Any:
    """Scores and perceived utilities made of noise, or the noise that they are made of; their log density, without 2π.

    Noise is standard normal: first of the scores, then of the perceived utilities in block order.
    """
    items = len(scores)
    density = _place(noise[:items], q.factor, q.mean, scores, draw)
    for block in range(len(q.blocks.row) - 1):
        start, end = q.blocks.utility[block], q.blocks.utility[block + 1]
        size, held = end - start, slice(q.blocks.matrix[block], q.blocks.matrix[block + 1])
        factor, covariance = q.factors[held].reshape(size, size), q.covariances[held].reshape(size, size)
        point, pull = np.empty(size), q.pull[start:end].copy()
        for k in range(size):
            point[k] = seen[q.blocks.order[start + k] - q.low]
            pull[k] += scores[sights.item[q.blocks.order[start + k]] - q.first] / q.blur
        density += _place(noise[items + start : items + end], factor, covariance @ pull, point, draw)
        for k in range(size):
            seen[q.blocks.order[start + k] - q.low] = point[k]
    return density


def log_posterior(sights: Any, query: Any, slope: Any, q: Any, scores: Any, seen: Any) -> Any:
    """What is approximated, by the formula; without 2π."""
    total = 0.0
    for row in range(sights.judgment_starts[query], sights.judgment_starts[query + 1]):
        apart = seen[sights.winner[row] - q.low] - seen[sights.loser[row] - q.low]
        total += log_cdf_by_table(slope[sights.annotator[row]] * apart)
    total -= 0.5 * np.sum(scores**2) / q.spread + 0.5 * len(scores) * math.log(q.spread)
    for utility in range(len(seen)):
        blur = seen[utility] - scores[sights.item[q.low + utility] - q.first]
        total -= 0.5 * blur * blur / q.blur
    return total - 0.5 * len(seen) * math.log(q.blur)


QUERY_POSTERIOR = (
    hazard_by_table,
    log_cdf_by_table,
    _blocks,
    _cholesky,
    _invert,
    _place,
    _assemble,
    _refine,
    approximate,
    place,
    log_posterior,
)
