"""Gaussian approximation of the posterior of one query's scores and perceived utilities, for compiled loops.

Given the domain, expertise τ, difficulty δ² and score variance ω², the posterior is a Gaussian prior times one probit
factor per judgment, and log-concave. Parallel expectation propagation (Minka 2001; Rasmussen & Williams 2006, §3.6)
replaces each factor by a Gaussian one. Given the scores, annotators perceive independently of each other, so the
precision matrix is factored in one block per annotator and one for the scores.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.inference.special import inverse_mills_table, log_normal_cdf_table

_ROUNDS = 8
_DAMPING = 0.8
# Matrices up to this size are faster in plain loops than by LAPACK.
_SMALL = 16


class Blocks(NamedTuple):
    """The judgments of one query grouped by annotator; one block per annotator.

    Parameters
    ----------
    judgment_starts, utility_starts, matrix_starts : integer arrays
        Start of each block's judgments, perceived utilities (in `order`) and matrix, and the end of the last one.
    order : integer array
        Perceived utilities, block by block.
    position : integer array
        Position of each perceived utility within its block.
    """

    judgment_starts: AnyArray
    utility_starts: AnyArray
    order: AnyArray
    position: AnyArray
    matrix_starts: AnyArray


def _blocks(layout: Any, query: Any) -> Any:
    start, end = layout.judgment_starts[query], layout.judgment_starts[query + 1]
    low = layout.utility_starts[layout.item_starts[query]]
    high = layout.utility_starts[layout.item_starts[query + 1]]
    position, order = np.full(high - low, -1), np.empty(high - low, np.int64)
    judgment_starts, utility_starts = np.empty(end - start + 1, np.int64), np.empty(end - start + 1, np.int64)
    blocks, count = 0, 0
    for judgment in range(start, end):
        if judgment == start or layout.annotator[judgment] != layout.annotator[judgment - 1]:
            judgment_starts[blocks], utility_starts[blocks] = judgment, count
            blocks += 1
        for own in (layout.winner_utility[judgment], layout.loser_utility[judgment]):
            if position[own - low] < 0:
                position[own - low] = count - utility_starts[blocks - 1]
                order[count] = own
                count += 1
    judgment_starts[blocks], utility_starts[blocks] = end, count
    matrix_starts = np.zeros(blocks + 1, np.int64)
    for block in range(blocks):
        size = utility_starts[block + 1] - utility_starts[block]
        matrix_starts[block + 1] = matrix_starts[block] + size**2
    return Blocks(judgment_starts[: blocks + 1], utility_starts[: blocks + 1], order, position, matrix_starts)


def _cholesky(matrix: Any) -> None:
    """Lower Cholesky factor, in place. Entries above the diagonal stay as they were."""
    size = len(matrix)
    for column in range(size):
        for row in range(column, size):
            total = matrix[row, column]
            for k in range(column):
                total -= matrix[row, k] * matrix[column, k]
            matrix[row, column] = math.sqrt(total) if row == column else total / matrix[column, column]


def _invert(matrix: Any, inverse: Any) -> None:
    """Inverse of a positive definite matrix. Overwrites the matrix by its Cholesky factor."""
    size = len(matrix)
    if size > _SMALL:
        matrix[:] = np.linalg.cholesky(matrix)
        root = np.linalg.inv(matrix)
        inverse[:] = root.T @ root
        return
    _cholesky(matrix)
    for column in range(size):  # L⁻¹, stored in the upper triangle of the inverse: row by column
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


def _transform(noise: Any, factor: Any, mean: Any, point: Any, draw: Any) -> Any:
    """A point from standard normal noise, with precision L Lᵀ around the mean, or the noise of a given point.

    Returns the log density of the point without the factors of 2π.
    """
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
    """A Gaussian in two stages: the scores, and given them the perceived utilities of each annotator.

    Parameters
    ----------
    blocks : Blocks
    first, low : int
        The query's first item and first perceived utility.
    score_variance, noise_variance : float
        ω² and δ².
    factor, covariance, mean : arrays
        Of the scores: Cholesky factor of the precision, covariance, and mean.
    factors, covariances : arrays
        Of each block given the scores: Cholesky factor of the precision and covariance, one block after another.
    linear : array
        What the judgments add to precision × mean, by perceived utility in block order.
    """

    blocks: Any
    first: int
    low: int
    score_variance: float
    noise_variance: float
    factor: AnyArray
    covariance: AnyArray
    mean: AnyArray
    factors: AnyArray
    covariances: AnyArray
    linear: AnyArray


def _assemble(layout: Any, slopes: Any, sites: Any, q: Any) -> None:
    """Precisions, covariances and means from one Gaussian site per judgment (precision, precision × mean)."""
    q.factor[:], q.mean[:] = 0.0, 0.0
    for item in range(len(q.mean)):
        q.factor[item, item] = 1.0 / q.score_variance
    offset = q.blocks.judgment_starts[0]
    for block in range(len(q.blocks.judgment_starts) - 1):
        start, end = q.blocks.utility_starts[block], q.blocks.utility_starts[block + 1]
        size, own = end - start, slice(q.blocks.matrix_starts[block], q.blocks.matrix_starts[block + 1])
        factor, covariance = q.factors[own].reshape(size, size), q.covariances[own].reshape(size, size)
        linear = q.linear[start:end]
        factor[:], linear[:] = 0.0, 0.0
        for k in range(size):
            factor[k, k] = 1.0 / q.noise_variance
        for row in range(q.blocks.judgment_starts[block], q.blocks.judgment_starts[block + 1]):
            one, other = (
                q.blocks.position[layout.winner_utility[row] - q.low],
                q.blocks.position[layout.loser_utility[row] - q.low],
            )
            slope = slopes[layout.annotator[row]]
            precision_update, linear_update = slope * slope * sites[0, row - offset], slope * sites[1, row - offset]
            factor[one, one] += precision_update
            factor[other, other] += precision_update
            factor[one, other] -= precision_update
            factor[other, one] -= precision_update
            linear[one] += linear_update
            linear[other] -= linear_update
        _invert(factor, covariance)
        # Integrate the block out: its Schur complement goes into the precision of the scores.
        for k in range(size):
            one = layout.utility_item[q.blocks.order[start + k]] - q.first
            q.factor[one, one] += 1.0 / q.noise_variance
            for j in range(size):
                other = layout.utility_item[q.blocks.order[start + j]] - q.first
                q.factor[one, other] -= covariance[k, j] / (q.noise_variance * q.noise_variance)
                q.mean[one] += covariance[k, j] * linear[j] / q.noise_variance
    _invert(q.factor, q.covariance)
    q.mean[:] = q.covariance @ q.mean


def _block_moments(layout: Any, q: Any, start: Any, covariance: Any, joint: Any, product: Any, block_mean: Any) -> None:
    """Covariance and mean of the perceived utilities of a block, with the scores integrated out.

    Once per block instead of once per judgment: an annotator who ranks n items gives n (n − 1) / 2 judgments.
    """
    size, scale = len(covariance), q.noise_variance * q.noise_variance
    for one in range(size):
        own = layout.utility_item[q.blocks.order[start + one]] - q.first
        block_mean[one] = q.mean[own] / q.noise_variance + q.linear[start + one]
        for k in range(size):
            other = layout.utility_item[q.blocks.order[start + k]] - q.first
            product[one, k] = q.covariance[own, other] / scale
    joint[:] = covariance + covariance @ product @ covariance
    block_mean[:] = covariance @ block_mean


def _refine(layout: Any, slopes: Any, sites: Any, q: Any) -> None:
    """One round of expectation propagation: match each judgment's site to the moments of its tilted margin."""
    offset = q.blocks.judgment_starts[0]
    for block in range(len(q.blocks.judgment_starts) - 1):
        start, end = q.blocks.utility_starts[block], q.blocks.utility_starts[block + 1]
        size = end - start
        covariance = q.covariances[q.blocks.matrix_starts[block] : q.blocks.matrix_starts[block + 1]].reshape(
            size, size
        )
        joint, product, block_mean = np.empty((size, size)), np.empty((size, size)), np.empty(size)
        _block_moments(layout, q, start, covariance, joint, product, block_mean)
        for row in range(q.blocks.judgment_starts[block], q.blocks.judgment_starts[block + 1]):
            one, other = (
                q.blocks.position[layout.winner_utility[row] - q.low],
                q.blocks.position[layout.loser_utility[row] - q.low],
            )
            slope = slopes[layout.annotator[row]]
            if slope == 0.0:
                continue
            variance = joint[one, one] + joint[other, other] - 2.0 * joint[one, other]
            mean = block_mean[one] - block_mean[other]
            variance, mean = slope * slope * variance, slope * mean
            # Cavity: the margin without its own site.
            cavity_variance = 1.0 / max(1.0 / variance - sites[0, row - offset], 1e-9)
            cavity_mean = cavity_variance * (mean / variance - sites[1, row - offset])
            # Site that gives the moments of the cavity times Φ (Rasmussen & Williams 2006, eq. 3.58, 3.59).
            root = math.sqrt(1.0 + cavity_variance)
            mills = inverse_mills_table(cavity_mean / root)
            curvature = max(1e-9, mills * (mills + cavity_mean / root)) / (1.0 + cavity_variance)
            precision = curvature / max(1e-9, 1.0 - cavity_variance * curvature)
            precision_mean = precision * cavity_mean + (1.0 + precision * cavity_variance) * mills / root
            sites[0, row - offset] += _DAMPING * (precision - sites[0, row - offset])
            sites[1, row - offset] += _DAMPING * (precision_mean - sites[1, row - offset])


def approximate(layout: Any, query: Any, slopes: Any, score_variance: Any, noise_variance: Any) -> Any:
    """Gaussian approximation for a query, given every annotator's probit slope τ / √2. Deterministic."""
    blocks = _blocks(layout, query)
    first, last = layout.item_starts[query], layout.item_starts[query + 1]
    low, rows = layout.utility_starts[first], layout.judgment_starts[query + 1] - layout.judgment_starts[query]
    items, matrix_size = last - first, blocks.matrix_starts[-1]
    q = Approximation(
        blocks,
        first,
        low,
        score_variance,
        noise_variance,
        np.empty((items, items)),
        np.empty((items, items)),
        np.empty(items),
        np.empty(matrix_size),
        np.empty(matrix_size),
        np.empty(len(blocks.order)),
    )
    sites = np.zeros((2, rows))
    for _ in range(_ROUNDS):
        _assemble(layout, slopes, sites, q)
        _refine(layout, slopes, sites, q)
    _assemble(layout, slopes, sites, q)
    return q


def transform(layout: Any, q: Any, noise: Any, scores: Any, perceived: Any, draw: Any) -> Any:
    """Scores and perceived utilities from standard normal noise, or the noise of given ones.

    The noise of the scores comes first, then that of the perceived utilities in block order. Returns the log density
    without the factors of 2π.
    """
    items = len(scores)
    density = _transform(noise[:items], q.factor, q.mean, scores, draw)
    for block in range(len(q.blocks.judgment_starts) - 1):
        start, end = q.blocks.utility_starts[block], q.blocks.utility_starts[block + 1]
        size, own = end - start, slice(q.blocks.matrix_starts[block], q.blocks.matrix_starts[block + 1])
        factor, covariance = q.factors[own].reshape(size, size), q.covariances[own].reshape(size, size)
        point, linear = np.empty(size), q.linear[start:end].copy()
        for k in range(size):
            point[k] = perceived[q.blocks.order[start + k] - q.low]
            linear[k] += scores[layout.utility_item[q.blocks.order[start + k]] - q.first] / q.noise_variance
        density += _transform(noise[items + start : items + end], factor, covariance @ linear, point, draw)
        for k in range(size):
            perceived[q.blocks.order[start + k] - q.low] = point[k]
    return density


def log_posterior(layout: Any, query: Any, slopes: Any, q: Any, scores: Any, perceived: Any) -> Any:
    """Exact log posterior that is approximated, without the factors of 2π."""
    total = 0.0
    for row in range(layout.judgment_starts[query], layout.judgment_starts[query + 1]):
        difference = perceived[layout.winner_utility[row] - q.low] - perceived[layout.loser_utility[row] - q.low]
        total += log_normal_cdf_table(slopes[layout.annotator[row]] * difference)
    total -= 0.5 * np.sum(scores**2) / q.score_variance + 0.5 * len(scores) * math.log(q.score_variance)
    for utility in range(len(perceived)):
        noise = perceived[utility] - scores[layout.utility_item[q.low + utility] - q.first]
        total -= 0.5 * noise * noise / q.noise_variance
    return total - 0.5 * len(perceived) * math.log(q.noise_variance)


EXPECTATION_PROPAGATION = (
    inverse_mills_table,
    log_normal_cdf_table,
    _blocks,
    _cholesky,
    _invert,
    _transform,
    _assemble,
    _block_moments,
    _refine,
    approximate,
    transform,
    log_posterior,
)
