"""Crowd-BT's likelihood with the annotators integrated out, as sums over a shard of answers.

Estimating every annotator's quality η together with the scores is inconsistent when annotators give few answers each
(Neyman & Scott 1948): each answer comes with a parameter of its own, and the scores spread too far. Here the quality is
a random effect. The answers of annotator k have the likelihood

    Lₖ(s) = Σ_g wₖ_g Πᵣ (η_g·F(dᵣ) + (1−η_g)·F(−dᵣ)),        dᵣ = score of the winner less score of the loser,

a sum over a grid of qualities η_g with prior weights w. With posterior weights p_g ∝ w_g Πᵣ P_rg, the gradient of
log Lₖ is the mean over p of the gradients at each η_g, and its negative Hessian the mean of their curvatures less the
covariance of their gradients. The gradients are smooth in η, so two orthogonal polynomials of η hold nearly all of
that covariance, which makes the Hessian one number per answer plus rank two per annotator.

Ties have a factor of their own, after Davidson (1970). With C = 2·cosh(κ·d/2)·exp(−tᵢ−tⱼ), annotator k ties with
probability ν/(C + ν). The tendency ν to tie is a random effect as well. The slope κ is common to all. The item effect t
is for items that are tied often whatever they meet, such as bad ones: two bad answers are often called a tie although
their scores differ. In Davidson's model κ is 1 and t is 0. Given that an answer is decided, it has the probability
above, so both random effects can be integrated out separately.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array
from crowdrank.engines.compilation import compiled
from crowdrank.inference.curvature import PairCurvature
from crowdrank.inference.special import HALF_LOG_TWO_PI, ROOT_HALF, log_normal_cdf
from crowdrank.models.crowd.likelihood import CROWD_BT, Answers, sigmoid_pair

# Rank of the covariance between grid points that is kept, per annotator: of the quality, and of the tendency to tie.
QUALITY_RANK, TIE_RANK = 2, 1
# A product of this many probabilities of at least 1e-18 does not underflow.
_FACTORS = 16
# Draws of the scores are evaluated in blocks of about this many probabilities, which stay in the processor's cache.
_CELLS_AT_ONCE = 1 << 17
# Up to this many numbers, the gradients of all annotators are held as a dense matrix.
_MAX_DENSE_CELLS = 1_000_000
COMPILE_MIN_ROWS = 3_000
"""From this many answers on, loops are compiled: fewer than elsewhere, as one fit evaluates them a hundred times."""


class GridPoints(NamedTuple):
    """The values of both random effects that the likelihood sums over.

    Parameters
    ----------
    eta : array of float, grids × points
        Qualities.
    grid_of : array of int
        Which grid each annotator has.
    nu : array of float
        Tendencies to tie, the same for all annotators; empty if ties are not modelled.
    tie_slope : float
        How much a difference of scores counts for ties.
    tie_effect : array of float
        How often each item is tied, as an addition to log ν; empty if ties are not modelled.
    """

    eta: FloatArray
    grid_of: Int32Array
    nu: FloatArray
    tie_slope: float
    tie_effect: FloatArray


class MarginRows(NamedTuple):
    """The curvature of a shard: per answer c·(eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ, less the outer products of each annotator's gradients.

    Parameters
    ----------
    winner, loser, annotator : arrays of int
        Codes.
    curvature : array of float
        Mean curvature of each answer, c.
    loadings : array of float, rank × answers
        Gradient of each answer along each orthogonal polynomial.
    """

    winner: Int32Array
    loser: Int32Array
    annotator: Int32Array
    curvature: FloatArray
    loadings: FloatArray

    @property
    def rows(self) -> int:
        return len(self.winner)


class GridTables(NamedTuple):
    """Log-likelihood of each annotator's answers at each grid point (annotators × points)."""

    quality: FloatArray
    tie: FloatArray


class MarginalTerms(NamedTuple):
    """Gradient of the marginal log-likelihood by the scores, and a positive diagonal for damping."""

    gradient: FloatArray
    fisher: FloatArray


def link_terms(margin: AnyArray, formula: int) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """F(d), F(−d), F′(d) and F″(d) of the logistic or the normal link."""
    if formula == CROWD_BT:
        won, lost = sigmoid_pair(margin)
        slope = won * lost
        return won, lost, slope, slope * (lost - won)
    x = margin * ROOT_HALF
    won, lost = np.exp(log_normal_cdf(x)), np.exp(log_normal_cdf(-x))
    density = ROOT_HALF * np.exp(-0.5 * x * x - HALF_LOG_TWO_PI)
    return won, lost, density, -density * x * ROOT_HALF


def is_tie(shard: Answers) -> AnyArray:
    """Which rows are ties: the only feature column of tables that model ties."""
    return shard.features[:, 0] != 0 if shard.features.shape[1] else np.zeros(shard.rows, bool)


def every_nth_annotator(shard: Answers, step: int) -> tuple[Answers, tuple[FloatArray]]:
    """The answers of every n-th annotator, with new codes of annotators, and their total weight."""
    rows = np.flatnonzero(shard.annotator % step == 0)
    who, weight = shard.annotator[rows] // np.int32(step), shard.weight[rows]
    kept = Answers(shard.winner[rows], shard.loser[rows], who, weight, shard.features[rows], shard.start)
    return kept, (np.array([weight.sum()]),)


def replicate(shard: Answers, count: int, items: int, annotators: int) -> tuple[Answers, tuple[FloatArray]]:
    """The answers `count` times over, each time about other items by other annotators, and their total weight."""
    copy = np.repeat(np.arange(count, dtype=np.int32), shard.rows)
    winner, loser = (np.tile(codes, count) + copy * np.int32(items) for codes in (shard.winner, shard.loser))
    who = np.tile(shard.annotator, count) + copy * np.int32(annotators)
    weight, features = np.tile(shard.weight, count), np.tile(shard.features, (count, 1))
    return Answers(winner, loser, who, weight, features), (np.array([weight.sum()]),)


def weight_of_ties(shard: Answers) -> tuple[FloatArray]:
    """Total weight of the ties and of the decided answers."""
    return (np.asarray(np.bincount(~is_tie(shard), shard.weight, 2), dtype=np.float64),)


def decided_odds(shard: Answers, margin: AnyArray, points: GridPoints) -> AnyArray:
    """C: the odds of a decided answer against a tie, for an annotator with ν = 1."""
    effect = points.tie_effect[shard.winner] + points.tie_effect[shard.loser]
    return np.asarray(2.0 * np.cosh(0.5 * points.tie_slope * margin) * np.exp(-effect))


def grid_tables(
    shard: Answers, scores: FloatArray, points: GridPoints, formula: int, compile_loops: bool
) -> GridTables:
    """Log-likelihood of every annotator's answers at every grid point."""
    margin = scores[shard.winner] - scores[shard.loser]
    annotators, size = len(points.grid_of), points.eta.shape[1]
    quality, tie = np.zeros((annotators, size)), np.zeros((annotators, len(points.nu)))
    won, lost, *_ = link_terms(margin, formula)
    tied = is_tie(shard)
    if compile_loops:
        weight = np.ascontiguousarray(shard.weight)
        _quality_table_loop(won, lost, tied, shard.annotator, weight, points.eta, points.grid_of, quality, _FACTORS)
        if len(points.nu):
            _tie_table_loop(decided_odds(shard, margin, points), tied, shard.annotator, weight, points.nu, tie)
        return GridTables(quality, tie)
    decided = ~tied
    who = shard.annotator[decided]
    eta = points.eta[points.grid_of[who]] if len(points.eta) > 1 else points.eta
    probability = lost[decided, None] + (won - lost)[decided, None] * eta
    _Runs.of(who, shard.weight[decided]).add_logs(quality, probability)
    if len(points.nu):
        odds = decided_odds(shard, margin, points)[:, None]
        share = np.where(tied[:, None], points.nu, odds) / (odds + points.nu)
        _Runs.of(shard.annotator, shard.weight).add_logs(tie, share)
    return GridTables(quality, tie)


def tables_of_draws(
    shard: Answers, draws: FloatArray, points: GridPoints, formula: int
) -> tuple[FloatArray, FloatArray]:
    """`grid_tables` for many vectors of scores at once (draws × annotators × points)."""
    annotators, size = len(points.grid_of), points.eta.shape[1]
    quality = np.zeros((len(draws), annotators, size))
    tie = np.zeros((len(draws), annotators, len(points.nu)))
    tied, who = is_tie(shard), shard.annotator
    decided = ~tied
    eta = points.eta[points.grid_of[who[decided]]] if len(points.eta) > 1 else points.eta
    decided_runs, all_runs = _Runs.of(who[decided], shard.weight[decided]), _Runs.of(who, shard.weight)
    block = max(1, _CELLS_AT_ONCE // max(1, shard.rows * size))
    for low in range(0, len(draws), block):
        part = slice(low, low + block)
        margin = draws[part][:, shard.winner] - draws[part][:, shard.loser]
        won, lost, *_ = link_terms(margin[:, decided], formula)
        probability = (won - lost)[..., None] * eta
        probability += lost[..., None]
        decided_runs.add_logs(quality[part], probability)
        if len(points.nu):
            odds = decided_odds(shard, margin, points)[..., None]
            share = np.where(tied[:, None], points.nu, odds)
            share /= odds + points.nu
            all_runs.add_logs(tie[part], share)
    return quality, tie


class _Runs(NamedTuple):
    """Consecutive rows of one annotator whose logs are added up together.

    Parameters
    ----------
    starts : array of int
        First row of each run.
    who : array of int
        Annotator of each run.
    weight : array of float or None
        Weight of each row; None if all are 1.
    """

    starts: AnyArray
    who: AnyArray
    weight: AnyArray | None

    @classmethod
    def of(cls, who: AnyArray, weight: AnyArray) -> _Runs:
        if not len(who):
            return cls(np.zeros(0, np.intp), who, None)
        is_first = np.append(True, who[1:] != who[:-1])
        if not np.all(weight == 1.0):
            starts = np.flatnonzero(is_first)
            return cls(starts, who[starts], weight)
        # one logarithm serves the product of up to sixteen rows of an annotator
        first = np.maximum.accumulate(np.where(is_first, np.arange(len(who)), 0))
        starts = np.flatnonzero((np.arange(len(who)) - first) % _FACTORS == 0)
        return cls(starts, who[starts], None)

    def add_logs(self, table: FloatArray, values: FloatArray) -> None:
        """Add weight·log of each row of values (the last axis but one) to the row of its annotator."""
        if not len(self.starts):
            return
        if self.weight is None:
            logs = np.log(np.multiply.reduceat(values, self.starts, axis=-2))
        else:
            logs = np.add.reduceat(self.weight[:, None] * np.log(values), self.starts, axis=-2)
        np.add.at(table, (..., self.who, slice(None)), logs)  # type: ignore[arg-type]


@compiled()
def _quality_table_loop(won, lost, tied, annotator, weight, eta, grid_of, table, factors):  # type: ignore[no-untyped-def]
    size = eta.shape[1]
    product = np.ones(size)
    pending, current = 0, -1
    for row in range(len(won)):
        k = annotator[row]
        if k != current or pending == factors:
            if pending:
                for g in range(size):
                    table[current, g] += np.log(product[g])
                    product[g] = 1.0
            pending, current = 0, k
        if tied[row]:
            continue
        points, low, lead, w = eta[grid_of[k]], lost[row], won[row] - lost[row], weight[row]
        if w == 1.0:
            for g in range(size):
                product[g] *= low + lead * points[g]
            pending += 1
        else:
            for g in range(size):
                table[k, g] += w * np.log(low + lead * points[g])
    if pending:
        for g in range(size):
            table[current, g] += np.log(product[g])


@compiled()
def _tie_table_loop(odds, tied, annotator, weight, nu, table):  # type: ignore[no-untyped-def]
    for row in range(len(odds)):
        k, w, c = annotator[row], weight[row], odds[row]
        for h in range(len(nu)):
            table[k, h] += w * np.log((nu[h] if tied[row] else c) / (c + nu[h]))


class GridPosterior(NamedTuple):
    """Posterior weights of the grid points of each annotator, alone and times orthogonal polynomials.

    Parameters
    ----------
    quality : array of float, (1 + QUALITY_RANK) × annotators × points
        Weights p, p·z₁ and p·z₂ with polynomials z of η that are orthonormal under p.
    tie : array of float, (1 + TIE_RANK) × annotators × points
        The same for the tendency to tie.
    """

    quality: FloatArray
    tie: FloatArray


def margin_terms(
    shard: Answers,
    scores: FloatArray,
    points: GridPoints,
    posterior: GridPosterior,
    formula: int,
    compile_loops: bool,
) -> tuple[MarginRows, MarginalTerms]:
    """Curvature of each answer, and the gradient by the scores, given the posterior weights of the grid points."""
    margin = scores[shard.winner] - scores[shard.loser]
    won, lost, slope, second = link_terms(margin, formula)
    tied, who = is_tie(shard), shard.annotator
    rank = QUALITY_RANK + (TIE_RANK if len(points.nu) else 0)
    # sums over the grid per answer: mean gradient, gradients along the polynomials, and mean squared gradient
    sums = np.zeros((2 + rank, shard.rows))
    if compile_loops:
        weights = np.ascontiguousarray(posterior.quality.transpose(1, 0, 2))
        _quality_terms_loop(won, lost, slope, tied, who, points.eta, points.grid_of, weights, sums)
    else:
        decided = np.flatnonzero(~tied)
        people = who[decided]
        eta = points.eta[points.grid_of[people]] if len(points.eta) > 1 else points.eta
        gradient = (2.0 * eta - 1.0) / (lost[decided, None] + (won - lost)[decided, None] * eta)
        gradient *= slope[decided, None]
        weights = posterior.quality[:, people]
        sums[: 1 + QUALITY_RANK, decided] = np.einsum("nrg,rg->nr", weights, gradient)
        sums[-1, decided] = np.einsum("rg,rg,rg->r", weights[0], gradient, gradient)
    # −∂² log P = (∂ log P)² − F″/F′ · ∂ log P at each grid point, and the mean of that over the grid
    relative = np.divide(second, slope, out=np.zeros_like(second), where=slope > 0)
    gradient, curvature = sums[0], sums[-1] - relative * sums[0]
    fisher = sums[-1].copy()
    if len(points.nu):
        of_ties = _tie_terms(shard, margin, tied, points, posterior.tie)
        gradient, curvature = gradient + of_ties[0], curvature + of_ties[1]
        fisher += np.abs(of_ties[1])
        sums[1 + QUALITY_RANK] = of_ties[2]
    weight = shard.weight
    rows = MarginRows(shard.winner, shard.loser, who, weight * curvature, weight * sums[1 : 1 + rank])
    size = len(scores)
    return rows, MarginalTerms(_scatter(shard, weight * gradient, size, -1.0), _scatter(shard, weight * fisher, size))


def _scatter(shard: Answers | MarginRows, values: AnyArray, size: int, sign: float = 1.0) -> FloatArray:
    """Sum of the values of the answers that each item won, plus `sign` times those that it lost."""
    won, lost = np.bincount(shard.winner, values, size), np.bincount(shard.loser, values, size)
    return np.asarray(won + sign * lost)


@compiled()
def _quality_terms_loop(won, lost, slope, tied, annotator, eta, grid_of, weights, sums):  # type: ignore[no-untyped-def]
    size, rank = eta.shape[1], weights.shape[1]
    for row in range(len(won)):
        if tied[row]:
            continue
        k = annotator[row]
        points, own = eta[grid_of[k]], weights[k]
        low, lead, steep = lost[row], won[row] - lost[row], slope[row]
        mean, first, second, square = 0.0, 0.0, 0.0, 0.0
        for g in range(size):
            gradient = (2.0 * points[g] - 1.0) * steep / (low + lead * points[g])
            part = own[0, g] * gradient
            mean += part
            square += part * gradient
            first += own[1, g] * gradient
            if rank > 2:
                second += own[2, g] * gradient
        sums[0, row], sums[1, row], sums[2, row], sums[-1, row] = mean, first, second, square


def _tie_terms(
    shard: Answers, margin: AnyArray, tied: AnyArray, points: GridPoints, posterior: FloatArray
) -> FloatArray:
    """Gradient, curvature and gradient along the polynomial of the tie factor of each answer.

    With x = κ·d for the slope κ, ∂C/∂x = C·tanh(x/2)/2: log P(tie) = log ν − log(C + ν) and
    log P(decided) = log C − log(C + ν).
    """
    slope_of_ties, nu, who = points.tie_slope, points.nu, shard.annotator
    half_tanh = 0.5 * np.tanh(0.5 * slope_of_ties * margin)
    odds = decided_odds(shard, margin, points)
    own = np.where(tied, 0.0, half_tanh)
    own_curvature = np.where(tied, 0.0, 0.25 - half_tanh**2)
    found = np.empty((3, len(margin)))
    block = max(1, (1 << 22) // len(nu))
    for low in range(0, len(margin), block):
        rows = slice(low, low + block)
        weights = posterior[:, who[rows]]
        decided = odds[rows, None] / (odds[rows, None] + nu)
        slope = half_tanh[rows, None] * decided
        mean, along = (np.einsum("rh,rh->r", weights[n], slope) for n in range(2))
        second = np.einsum("rh,rh->r", weights[0], 0.25 * decided - slope**2)
        found[0, rows], found[1, rows], found[2, rows] = own[rows] - mean, second - own_curvature[rows], -along
    return np.asarray(found * np.array([slope_of_ties, slope_of_ties**2, slope_of_ties])[:, None])


def tie_counts(
    shard: Answers, scores: FloatArray, points: GridPoints, posterior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ties of each item less those expected, and the variance of that, given weights of each annotator's ν."""
    odds = decided_odds(shard, scores[shard.winner] - scores[shard.loser], points)
    expected = np.empty(shard.rows)
    block = max(1, (1 << 22) // len(points.nu))
    for low in range(0, shard.rows, block):
        rows = slice(low, low + block)
        share = points.nu / (odds[rows, None] + points.nu)
        expected[rows] = np.einsum("rh,rh->r", posterior[shard.annotator[rows]], share)
    size = len(scores)
    excess, variance = shard.weight * (is_tie(shard) - expected), shard.weight * expected * (1.0 - expected)
    return _scatter(shard, excess, size), _scatter(shard, variance, size)


# Products with the curvature


def project(rows: MarginRows, vector: FloatArray, annotators: int) -> tuple[FloatArray]:
    """Inner products of each annotator's gradients with a vector of scores (rank × annotators)."""
    change = vector[rows.winner] - vector[rows.loser]
    return (np.stack([np.bincount(rows.annotator, one * change, annotators) for one in rows.loadings]),)


def curvature_product(rows: MarginRows, vector: FloatArray, projected: FloatArray) -> tuple[FloatArray]:
    """The curvature times a vector, given its projections on each annotator's gradients."""
    values = rows.curvature * (vector[rows.winner] - vector[rows.loser])
    for one, inner in zip(rows.loadings, projected, strict=True):
        values = values - one * inner[rows.annotator]
    return (_scatter(rows, values, len(vector), -1.0),)


def curvature_matrix(rows: MarginRows, size: int) -> tuple[FloatArray]:
    """The part of the curvature that belongs to single answers, as a matrix. Replicates are added up."""
    cell = (rows.winner % size).astype(np.int64) * size + rows.loser % size
    off = np.bincount(cell, rows.curvature, size * size).reshape(size, size)
    matrix: FloatArray = np.asarray(-off - off.T, dtype=np.float64)
    matrix.flat[:: size + 1] += off.sum(axis=0) + off.sum(axis=1)
    return (matrix,)


def annotator_gradients(rows: MarginRows, size: int, annotators: int) -> tuple[Any]:
    """Gradients of the annotators along their polynomials (rank·annotators × items), dense or, if large, sparse."""
    rank, lines = len(rows.loadings), len(rows.loadings) * annotators
    line = (np.arange(rank)[:, None] * annotators + rows.annotator).ravel()
    winner, loser = (np.tile(codes % size, rank) for codes in (rows.winner, rows.loser))
    values = rows.loadings.ravel()
    if lines * size <= _MAX_DENSE_CELLS:
        cell = line.astype(np.int64) * size
        dense = np.bincount(cell + winner, values, lines * size) - np.bincount(cell + loser, values, lines * size)
        return (dense.reshape(lines, size),)
    from scipy.sparse import coo_array

    places = (np.concatenate((line, line)), np.concatenate((winner, loser)))
    return (coo_array((np.concatenate((values, -values)), places), shape=(lines, size)).tocsr(),)


def pair_curvature(rows: MarginRows, size: int) -> tuple[PairCurvature, tuple[FloatArray]]:
    """The curvature of each answer with the annotators held fixed, made non-negative, and its diagonal."""
    curvature = np.maximum(rows.curvature, 0.0).astype(np.float32)
    return PairCurvature(rows.winner, rows.loser, curvature), (_scatter(rows, curvature, size),)
