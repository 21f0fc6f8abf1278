"""Direction of an order: which end is the top, if a minority of the annotators may answer in reverse?

Negating all scores and replacing every quality η by 1 − η leaves the likelihood unchanged, so only the distribution of
quality among annotators decides which end of the order is the top. A Beta distribution decides badly if a minority
always answers in reverse, as spammers may. It has room for a few perfect annotators among many who answer slightly
worse than at random, but not for many decent annotators beside a few who are perfectly reversed. Here a share ρ of the
annotators may come from a distribution of their own near η = 0.
"""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.models.crowd.hyperparameters import QUALITY_PRIORS
from crowdrank.models.crowd.quality_priors import EffectGrids, QualityDistribution

# Values of log α and log β, in standard deviations of their prior.
_POINTS = np.linspace(-2.0, 2.0, 9)
# Shares of annotators who answer in reverse, with their prior weights: half of all crowds have none. Chosen by
# simulation, on seeds 2000 to 2014.
_REVERSED_SHARES = ((0.0, 0.5), (0.05, 0.1), (0.1, 0.1), (0.2, 0.1), (0.3, 0.1), (0.4, 0.1))
# Keeps logarithms finite where a grid leaves an answer impossible.
_TINY = 1e-300
# The distribution is judged by about this many annotators.
_MOST_ANNOTATORS = 2_000


def log_odds_of_direction(tables: FloatArray, grids: EffectGrids) -> float:
    """Log posterior odds of an order against its mirror image, given the scores up to their sign.

    Parameters
    ----------
    tables : array of float, annotators × grid points
        Log-likelihood of every annotator's answers at the points of their grid.
    grids : EffectGrids
        The grids. Annotators of known quality must not be among them.

    Notes
    -----
    The evidence of either direction is Σ π(α) π(β) π(ρ) Π_k [(1 − ρ)·m_k(α, β) + ρ·m_k(b, a)], where m_k(α, β) is the
    likelihood of annotator k averaged over Beta(α, β), and a and b are the prior medians of α and β. In the mirror
    image, the two arguments of m_k change places.
    """
    step = max(1, len(tables) // _MOST_ANNOTATORS)
    (mean_a, scale_a), (mean_b, scale_b) = QUALITY_PRIORS
    log_alpha, log_beta = np.meshgrid(mean_a + scale_a * _POINTS, mean_b + scale_b * _POINTS)
    # the medians of the prior come last, for annotators in reverse
    alpha, beta = np.exp(np.append(log_alpha, mean_a)), np.exp(np.append(log_beta, mean_b))
    tables, grid_of = tables[::step], grids.grid_of[::step]
    *as_found, at_medians = _log_evidences(tables, grids, grid_of, alpha, beta)
    *swapped, at_swapped_medians = _log_evidences(tables, grids, grid_of, beta, alpha)
    log_prior = -np.add.outer(_POINTS**2, _POINTS**2).ravel() / 2.0
    odds = np.logaddexp.reduce(log_prior + [_log_mixture(honest, at_swapped_medians) for honest in as_found])
    odds -= np.logaddexp.reduce(log_prior + [_log_mixture(honest, at_medians) for honest in swapped])
    return step * float(odds)


def _log_evidences(
    tables: FloatArray, grids: EffectGrids, grid_of: Int32Array, alpha: FloatArray, beta: FloatArray
) -> FloatArray:
    """Log-likelihood of every annotator (columns) averaged over each of several Beta distributions (rows)."""
    largest = tables.max(axis=1)
    relative = np.exp(tables - largest[:, None])
    weights = [grids.log_weights(QualityDistribution(a / (a + b), a + b)) for a, b in zip(alpha, beta, strict=True)]
    by_grid = np.exp(np.array(weights))
    found = np.empty((len(alpha), len(tables)))
    for grid in np.unique(grid_of):
        rows = grid_of == grid
        found[:, rows] = by_grid[:, grid] @ relative[rows].T
    return np.asarray(np.log(np.maximum(found, _TINY)) + largest)


def _log_mixture(honest: FloatArray, reverse: FloatArray) -> float:
    """Log evidence with a share of the annotators in reverse, averaged over that share."""
    parts = []
    for share, weight in _REVERSED_SHARES:
        mixed = np.logaddexp(np.log1p(-share) + honest, np.log(share) + reverse) if share else honest
        parts.append(np.log(weight) + float(np.sum(mixed)))
    return float(np.logaddexp.reduce(parts))
