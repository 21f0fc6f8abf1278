"""Integration over the hyperparameters of Crowd-BT where items have few answers: points along the spread of the scores.

The posterior of the spread is then broad and skewed, and may have a second mode at which items do not differ. At each
point the scores have their own variational approximation, and quality among annotators has its best distribution.
Points are weighted by a lower bound of their evidence. Laplace's approximation of the evidence is far too small where
scores are uncertain, and would prefer items that do not differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.inference.laplace import gauss_hermite_draws, log_evidence, refine
from crowdrank.inference.newton import OptimizeResult, derivatives, maximize_within
from crowdrank.models.crowd.hyperparameters import (
    IMPLAUSIBLE,
    LARGEST_SCALE,
    QUALITY_BOUNDS,
    QUALITY_PRIORS,
    SPREAD_PRIOR,
    Coordinates,
    Explorer,
    Mode,
    coordinates,
    fit_ties,
    log_normal,
    shown_spread,
)
from crowdrank.models.crowd.marginal_objective import AveragedTables, MarginalObjective
from crowdrank.models.crowd.quality_priors import TieDistribution

# Up to how many items this is used, and with fewer answers per item than this; with more, if there are few in all.
_MAX_ITEMS, _THIN, _LESS_THIN, _FEW_ROWS = 200, 100, 300, 2_500
# Distance between points along log σ, and the lowest of them.
_STEP, _LOWEST = 0.4, float(np.log(0.12))
# Where the posterior is narrower than this, points are this many of its standard deviations apart.
_NARROW, _SPACING = 0.27, 1.5
# The grid along log σ goes on beyond points with e⁻¹·⁵ of the best weight or more.
_NEGLIGIBLE = 1.5
# Rounds at each point, and the changes of the scores, in standard errors, and of log α and log β that end them. Where
# items hardly differ, α and β converge slowly, and matter little: after some rounds they are no longer waited for.
_MAX_ROUNDS, _QUALITY_ROUNDS, _SHIFT, _CHANGE = 40, 6, 0.05, 0.05
# Scores that have not settled after some rounds may oscillate: from then on rounds are damped.
_UNDAMPED_ROUNDS, _DAMPING = 12, 0.5
# Pairs of opposite draws for the approximation (a multiple of three), and for its evidence (a multiple of those). Up to
# about this many answers are evaluated at a time.
_PAIRS, _EVIDENCE_PAIRS, _REPLICATED_ROWS = 6, 30, 16_384
_QUALITY_DIFFERENCE, _LEAST_CURVATURE = 0.1, 0.15
# By about this much the log evidence of items that differ is still too small (by importance sampling with 6,000 draws,
# 1,500 answers about 100 items): two cumulants of a few draws miss the tails. That of equal items is exact.
_SHORTFALL = 1.5


def is_thin(rows: int, items: int) -> bool:
    """Whether items have so few answers that the spread of the scores is uncertain."""
    return items <= _MAX_ITEMS and rows < (_LESS_THIN if rows <= _FEW_ROWS else _THIN) * items


class _State(NamedTuple):
    """Where the search at a point starts: mean and precision root of the scores, and the coordinates they are for."""

    scores: FloatArray
    root: FloatArray
    at: Coordinates


@dataclass(frozen=True, eq=False)
class ProfileExplorer(Explorer):
    """Finds the points along the spread of the scores that matter, and approximates the scores at each."""

    def explore(self, starts: list[FloatArray]) -> list[Mode]:
        """Approximations at these points, the most probable one first, then items that do not differ."""
        first = self.best_start(starts)
        null = self._null(first)
        least = max((mode.log_weight for mode in null), default=-np.inf) - IMPLAUSIBLE
        found = self._profile(first, least)
        if found[0].hyper.quality.mean < 0.5 and not self.fixed[1] and self.is_allowed(-found[0].scores):
            log_scale, log_alpha, log_beta = coordinates(found[0].hyper)
            reflected = self._profile(self.mode((log_scale, log_beta, log_alpha), -found[0].scores), least)
            found = max(found, reflected, key=lambda modes: modes[0].log_weight)
        best = found[0]
        if self.may_be_reversed(best):
            at, tie = coordinates(best.hyper), best.hyper.tie
            as_is, negated = self.mode(at, best.scores, tie), self.mode(at, -best.scores, tie)
            behind = negated.log_weight - as_is.log_weight
            if as_is.distance_to(negated.scores) > 1.0 and behind > -IMPLAUSIBLE:
                total = np.logaddexp.reduce([mode.log_weight for mode in found])
                found.append(replace(negated, log_weight=float(total) + behind, is_reversed=True))
        return found + [mode for mode in null if mode.log_weight > best.log_weight - IMPLAUSIBLE]

    def _profile(self, start: Mode, least: float) -> list[Mode]:
        """Points along log σ from a first mode, the best one first. Peaks below the least weight are not resolved."""
        assert start.root is not None
        state = _State(start.scores, start.root, coordinates(start.hyper))
        tie = start.hyper.tie
        if len(self.objective.grids.nu):
            tie = fit_ties(self.objective.at(start.hyper), start.scores)
        if self.fixed[0]:
            return [self._mode_at(state.at[0], state, tie)]
        grid = _SpreadGrid(self, tie, _STEP, [self._mode_at(min(state.at[0], self._largest_log_scale), state, tie)])
        grid.ascend()
        peak = grid.parabola
        if grid.best.log_weight < least:
            return sorted(grid.modes, key=lambda mode: -mode.log_weight)
        if peak is not None and peak[1] < _NARROW:
            best = grid.best
            first = self._mode_at(min(peak[0], self._largest_log_scale), _state(best), tie)
            grid = _SpreadGrid(self, tie, _SPACING * peak[1], [first])
        grid.extend()
        return sorted(grid.modes, key=lambda mode: -mode.log_weight)

    @property
    def _largest_log_scale(self) -> float:
        return float(np.log(self.largest_scale))

    def _mode_at(self, log_scale: float, state: _State, tie: TieDistribution) -> Mode:
        """Scores and quality at one spread: variational inference and maximisation over α and β in turn (EM)."""
        factor = float(np.exp(log_scale - state.at[0]))
        scores, root, at = factor * state.scores, state.root / factor, (log_scale, *state.at[1:])
        for rounds in range(1, min(_MAX_ROUNDS, self.max_steps) + 1):
            hyper = self.hyperparameters(at, tie)
            damping = _DAMPING if rounds > _UNDAMPED_ROUNDS else 0.0
            found = refine(self._replicas.at(hyper).mean_over, scores, root, self._noise, hyper.scale**-2.0, damping)
            scores, root = found.mean, found.root
            expected = _Expected(self, at, self._averaged(found.evaluation.tables))
            log_alpha, log_beta = expected.best
            change = max(abs(log_alpha - at[1]), abs(log_beta - at[2]))
            at = (log_scale, log_alpha, log_beta)
            converged = found.shift < _SHIFT
            if converged and (change < _CHANGE or rounds >= _QUALITY_ROUNDS):
                break
        log_prior = self._slab_log_prior(at)
        hyper = self.hyperparameters(at, tie)
        value = log_evidence(self._replicas.at(hyper).log_densities, scores, root, self._normal_noise)
        log_weight = value - self.items * float(np.log(hyper.scale)) + log_prior + expected.log_volume
        result = OptimizeResult(scores, self.objective.at(hyper)(scores), rounds, found.shift, converged)
        return Mode(hyper, result, scores, log_weight, root, log_prior)

    def _averaged(self, tables: FloatArray) -> AveragedTables:
        grid_of = self.objective.grids.grid_of
        draws = len(tables) // len(grid_of)
        return AveragedTables.of(tables, np.tile(grid_of, draws), 1.0 / draws)

    def _slab_log_prior(self, at: Coordinates) -> float:
        """Log prior density of hyperparameters, given that items differ."""
        log_prior = sum(log_normal(at[axis], *QUALITY_PRIORS[axis - 1]) for axis in self.free if axis > 0)
        if self.fixed[0]:
            return log_prior
        weight, mean, scale = SPREAD_PRIOR[0]
        return log_prior + float(np.log(weight)) + log_normal(shown_spread(at), mean, scale)

    def _null(self, first: Mode) -> list[Mode]:
        """Items that do not differ: the other part of the prior of the spread."""
        if self.fixed[0] or self.largest_scale > LARGEST_SCALE:  # by Bradley-Terry, which sees that they differ
            return []
        weight, spread, _ = SPREAD_PRIOR[1]
        given = coordinates(first.hyper)
        log_alpha, log_beta = (given[n] if self.fixed[n] else QUALITY_PRIORS[n - 1][0] for n in (1, 2))
        log_scale = spread - shown_spread((0.0, log_alpha, log_beta))
        null = self.mode((log_scale, log_alpha, log_beta), np.zeros(self.items), first.hyper.tie)
        # so little is known about quality and the spread then that their prior is their posterior
        volume = float(np.log(weight) + 0.5 * np.log(2.0 * np.pi)) - _SHORTFALL
        return [replace(null, log_weight=null.log_weight - null.log_prior + volume)]

    @cached_property
    def _replicas(self) -> MarginalObjective:
        """The objective at several draws of the scores at once."""
        draws, most = 2 * len(self._noise), max(1, _REPLICATED_ROWS // self.rows)
        count = max(n for n in range(1, draws + 1) if draws % n == 0 and n <= most)
        return self.objective.replicated(count, self.items)

    @cached_property
    def _normal_noise(self) -> FloatArray:
        """The same for every point, so that the points can be compared."""
        return np.random.default_rng(self.items).standard_normal((_EVIDENCE_PAIRS, self.items))

    @cached_property
    def _noise(self) -> FloatArray:
        return gauss_hermite_draws(_PAIRS, self.items, np.random.default_rng(self.items))


@dataclass(frozen=True, eq=False)
class _Expected:
    """The log posterior of log α and log β, with the log-likelihood averaged over draws of the scores."""

    explorer: ProfileExplorer
    at: Coordinates
    averaged: AveragedTables

    def __call__(self, logs: FloatArray) -> float:
        explorer, at = self.explorer, (self.at[0], float(logs[0]), float(logs[1]))
        quality = explorer.hyperparameters(at, explorer.objective.hyper.tie).quality
        log_weights = explorer.objective.grids.log_weights(quality)
        return self.averaged.log_likelihood(log_weights) + explorer._slab_log_prior(at)

    @property
    def _free(self) -> list[int]:
        return [axis - 1 for axis in self.explorer.free if axis > 0]

    @cached_property
    def best(self) -> tuple[float, float]:
        start = np.array(self.at[1:])
        if not self._free:
            return self.at[1:]
        log_alpha, log_beta = maximize_within(self, start, self._free, QUALITY_BOUNDS)
        return float(log_alpha), float(log_beta)

    @property
    def log_volume(self) -> float:
        """Half the log determinant of the covariance of log α and log β."""
        free, best = self._free, np.array(self.best)
        if not free:
            return 0.0
        steps = np.full(len(free), _QUALITY_DIFFERENCE)
        _, curvature = derivatives(lambda shift: self(best + shift), self(best), steps)
        return -0.5 * float(np.sum(np.log(np.maximum(np.linalg.eigvalsh(curvature), _LEAST_CURVATURE))))


def _state(mode: Mode) -> _State:
    assert mode.root is not None
    return _State(mode.scores, mode.root, coordinates(mode.hyper))


@dataclass(frozen=True, eq=False)
class _SpreadGrid:
    """Points at equal distances along log σ.

    Parameters
    ----------
    explorer : ProfileExplorer
        Approximates the posterior at each point.
    tie : TieDistribution
        Distribution of the tendency to tie.
    step : float
        The distance.
    points : list of Mode
        The points so far, in order. Their weights are densities.
    """

    explorer: ProfileExplorer
    tie: TieDistribution
    step: float
    points: list[Mode]

    @property
    def best(self) -> Mode:
        return max(self.points, key=lambda mode: mode.log_weight)

    @property
    def modes(self) -> list[Mode]:
        """The points, weighted by the interval of log σ that each stands for."""
        return [replace(mode, log_weight=mode.log_weight + float(np.log(self.step))) for mode in self.points]

    def ascend(self) -> None:
        """Go uphill until the best point has neighbours on both sides, or lies at a bound."""
        for is_up in (True, False):
            while self.points[-1 if is_up else 0] is self.best and self._add_point(is_up):
                pass

    def extend(self) -> None:
        """Go on in both directions until weights are negligible."""
        for is_up in (True, False):
            while self._has_weight(self.points[-1 if is_up else 0]) and self._add_point(is_up):
                pass

    def _has_weight(self, mode: Mode) -> bool:
        return mode.log_weight > self.best.log_weight - _NEGLIGIBLE

    def _add_point(self, is_up: bool) -> bool:
        """Add a point at one end; False at a bound."""
        end, highest = self.points[-1 if is_up else 0], self.explorer._largest_log_scale
        log_scale = coordinates(end.hyper)[0] + (self.step if is_up else -self.step)
        if log_scale < _LOWEST or log_scale > highest + 0.5 * self.step:
            return False
        point = self.explorer._mode_at(min(log_scale, highest), _state(end), self.tie)
        self.points.insert(len(self.points) if is_up else 0, point)
        return True

    @property
    def parabola(self) -> tuple[float, float] | None:
        """Mean and standard deviation of log σ by the parabola through the best point and its neighbours."""
        index = self.points.index(self.best)
        if not 0 < index < len(self.points) - 1:
            return None
        near = self.points[index - 1 : index + 2]
        x = np.log([mode.hyper.scale for mode in near])
        second, first, _ = np.polyfit(x - x[1], [mode.log_weight for mode in near], 2)
        return (float(x[1] - 0.5 * first / second), float((-2.0 * second) ** -0.5)) if second < 0 else None
