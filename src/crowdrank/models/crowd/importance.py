"""Importance sampling of the scores, with annotators and hyperparameters integrated out exactly.

With few answers the posterior of the scores is skewed: if annotators may be less reliable than they look, the scores
may be much wider apart, but hardly closer. Normal approximations at the modes miss that. They are a good proposal,
though: draws from a mixture of heavy-tailed versions of them are weighted by the exact posterior density. The weights
of the mixture are adapted to the posterior first (population Monte Carlo, Cappé et al. 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items
from crowdrank.models.crowd.hyperparameters import Mode
from crowdrank.models.crowd.marginal_likelihood import tables_of_draws
from crowdrank.models.crowd.marginal_objective import MarginalObjective

# Data that are small enough for this to be fast and, with so few scores, accurate.
MAX_ROWS, MAX_ITEMS = 1_000, 40
_ADAPTATION_DRAWS, _DRAWS, _KEPT = 500, 2_000, 1_000
# Modes behind the proposal, the factors by which each is scaled up, and degrees of freedom of its tails.
_MOST_MODES, _SCALES, _FREEDOM = 12, (1.0, 1.4, 2.0), 6.0
_FIRST_SHARES = (0.5, 0.3, 0.2)
# A component keeps at least this share of the draws while weights are adapted.
_LEAST_SHARE = 1e-3
# Keeps the logarithm finite where an annotator of known quality gave an answer that a draw makes impossible.
_TINY = 1e-300


class WeightedDraws(NamedTuple):
    """Draws of the centred scores from their posterior, with the mean and standard deviation that belong to them."""

    draws: FloatArray
    mean: FloatArray
    std_error: FloatArray

    def with_share_negated(self, share: float) -> WeightedDraws:
        """The same distribution, mixed with its mirror image."""
        count = round(share * len(self.draws))
        draws = self.draws.copy()
        draws[np.arange(count) * len(draws) // max(1, count)] *= -1.0
        mean = (1.0 - 2.0 * share) * self.mean
        return WeightedDraws(draws, mean, np.sqrt(self.std_error**2 + self.mean**2 - mean**2))


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mixture of multivariate t distributions.

    Parameters
    ----------
    centres : array of float, components × items
        Their centres.
    roots : array of float, components × items × items
        Cholesky factors of their precision.
    shares : array of float
        Their weights.
    """

    centres: FloatArray
    roots: FloatArray
    shares: FloatArray

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        size = self.centres.shape[1]
        which = np.sort(rng.choice(len(self.shares), size=count, p=self.shares))
        noise = rng.standard_normal((count, size))
        noise /= np.sqrt(rng.chisquare(_FREEDOM, size=count) / _FREEDOM)[:, None]
        found = np.empty((count, size))
        for n in np.unique(which):
            rows = which == n
            found[rows] = self.centres[n] + np.linalg.solve(self.roots[n].T, noise[rows].T).T
        return found

    def log_densities(self, draws: FloatArray) -> FloatArray:
        """Log density of every component at every draw (draws × components), up to a constant."""
        size = draws.shape[1]
        found = np.empty((len(draws), len(self.shares)))
        for n, (centre, root) in enumerate(zip(self.centres, self.roots, strict=True)):
            square = np.sum(((draws - centre) @ root) ** 2, axis=1)
            log_determinant = float(np.sum(np.log(np.diag(root))))
            found[:, n] = log_determinant - 0.5 * (_FREEDOM + size) * np.log1p(square / _FREEDOM)
        return found


def sample_posterior(objective: MarginalObjective, modes: list[Mode], items: Items, seed: int) -> WeightedDraws:
    """Draw the scores from their posterior, starting from the normal approximations at the modes."""
    rng = np.random.default_rng(seed)
    target = _CollapsedPosterior(objective, modes)
    proposal = _first_proposal(modes)
    draws = proposal.draw(rng, _ADAPTATION_DRAWS)
    densities = proposal.log_densities(draws)
    weights = _normalised(target(draws), densities, proposal.shares)
    responsibility = np.exp(densities - densities.max(axis=1, keepdims=True)) * proposal.shares
    responsibility /= responsibility.sum(axis=1, keepdims=True)
    shares = weights @ responsibility + _LEAST_SHARE
    proposal = Proposal(proposal.centres, proposal.roots, shares / shares.sum())
    draws = proposal.draw(rng, _DRAWS)
    weights = _normalised(target(draws), proposal.log_densities(draws), proposal.shares)
    centred = items.centre(draws)
    mean = weights @ centred
    error = np.sqrt(weights @ (centred - mean) ** 2)
    return WeightedDraws(centred[_resampled(weights, _KEPT, rng)], mean, error)


def _first_proposal(modes: list[Mode]) -> Proposal:
    best = sorted(modes, key=lambda mode: -mode.log_weight)[:_MOST_MODES]
    log_weight = np.array([mode.log_weight for mode in best])
    weight = np.exp(log_weight - log_weight.max())
    weight = weight / weight.sum() + _LEAST_SHARE
    centres, roots, shares = [], [], []
    for mode, own in zip(best, weight / weight.sum(), strict=True):
        for scale, share in zip(_SCALES, _FIRST_SHARES, strict=True):
            assert mode.root is not None
            centres.append(scale * mode.scores)
            roots.append(mode.root / scale)
            shares.append(share * own)
    return Proposal(np.array(centres), np.array(roots), np.array(shares))


class _CollapsedPosterior:
    """Log posterior density of scores, summed over the hyperparameters of the modes."""

    def __init__(self, objective: MarginalObjective, modes: list[Mode]):
        self.objective = objective
        own = {(m.hyper.scale, m.hyper.quality): m for m in modes}
        self.hypers = [mode.hyper for mode in own.values()]
        self.log_prior = np.array([mode.log_prior for mode in own.values()])

    def __call__(self, draws: FloatArray) -> FloatArray:
        objective, size = self.objective, draws.shape[1]
        quality, tie = objective.shards.sum(tables_of_draws, draws, objective.points, objective.formula)
        largest = quality.max(axis=2)
        relative = np.exp(quality - largest[:, :, None])
        squares = np.sum(draws**2, axis=1)
        of_quality = {hyper.quality: objective.at(hyper).log_weights[objective.grids.grid_of] for hyper in self.hypers}
        likelihood = {
            name: np.sum(largest + np.log(np.einsum("nkg,kg->nk", relative, np.exp(weights)) + _TINY), axis=1)
            for name, weights in of_quality.items()
        }
        found = np.full(len(draws), -np.inf)
        for hyper, log_prior in zip(self.hypers, self.log_prior, strict=True):
            density = likelihood[hyper.quality] - 0.5 * squares / hyper.scale**2 - size * np.log(hyper.scale)
            found = np.logaddexp(found, density + log_prior)
        if tie.shape[2]:
            joint = tie + objective.at(self.hypers[0]).log_tie_weights
            found = found + np.sum(np.logaddexp.reduce(joint, axis=2), axis=1)
        return found


def _normalised(target: FloatArray, densities: FloatArray, shares: FloatArray) -> FloatArray:
    """Importance weights, truncated at √n times their mean (Ionides 2008), which bounds their variance."""
    log_weight = target - np.logaddexp.reduce(densities + np.log(shares), axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight = np.minimum(weight, weight.mean() * np.sqrt(len(weight)))
    return np.asarray(weight / weight.sum())


def _resampled(weights: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Systematic resampling: places of `count` draws, each in proportion to its weight."""
    positions = (np.arange(count) + rng.random()) / count
    edges = np.cumsum(weights)
    edges[-1] = 1.0
    return np.searchsorted(edges, positions).astype(np.int64)
