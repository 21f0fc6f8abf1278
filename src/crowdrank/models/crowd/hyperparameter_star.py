"""Integration over the hyperparameters of Crowd-BT where data are more than few: some points around their best value.

The posterior of the hyperparameters is then narrow and nearly normal. The scores are another matter: with few answers
per item their posterior is skewed at any value of the hyperparameters. Laplace's approximation makes scores and spread
too small there, and variational inference takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.inference.differences import derivatives
from crowdrank.inference.gaussian_variational import NormalApproximation, refine
from crowdrank.inference.newton import maximize
from crowdrank.models.crowd.hyperparameters import (
    IMPLAUSIBLE,
    LARGEST_SCALE,
    MAX_STEP,
    QUALITY_PRIORS,
    SPREAD_PRIOR,
    Explorer,
    Mode,
    coordinates,
    shown_spread,
)
from crowdrank.models.crowd.marginal_objective import Hyperparameters, marginal_curvature

# Up to this many answers several points are used; beyond, the best one.
_STAR_ROWS = 300_000
# Rounds of maximisation over hyperparameters and scores in turn, and the change of a coordinate at which they end.
_MAX_ROUNDS, _ROUND_TOLERANCE = 12, 0.1
# Variational inference is used if it moves scores by this many standard errors, and up to this many answers.
_SKEWED, _REFINED_ROWS = 0.1, 50_000
# Its rounds, and the changes of a coordinate and of the scores, in standard errors, at which they end.
_REFINED_ROUNDS, _REFINED_TOLERANCE, _REFINED_SHIFT = 8, 0.04, 0.1
# If it changes a coordinate by more than this, Laplace's approximation led to the wrong place.
_FAR = 0.7
# It uses this many pairs of opposite draws, the fewer the more items there are.
_PAIRS, _DRAWN_SCORES = (2, 8), 800
# Newton's method is trusted to gain at most this many times what its first step predicts.
_REVERSED_GAIN = 3.0
# Largest distances between points from which the curvature of the evidence is computed, and its least plausible value.
_DIFFERENCES, _LEAST_CURVATURE = np.array([0.3, 0.4, 0.6]), 0.15
# Answers that tell as much about the distribution of quality as one annotator of known quality.
_ANSWERS_PER_ANNOTATOR = 10.0


@dataclass(frozen=True, eq=False)
class StarExplorer(Explorer):
    """Finds the best value of the hyperparameters, and represents their posterior by some points around it."""

    def explore(self, starts: list[FloatArray]) -> list[Mode]:
        """Modes at these points, the most probable reading of the crowd first."""
        centre = self._alternate(self.best_start(starts))
        if (reflected := self.reflected(centre)) is not None:
            centre = self._alternate(reflected)
        if centre.root is None:
            return [centre]
        refined = self._refined_if_skewed(centre)
        if refined is not None and _distance(refined.hyper, centre.hyper) > _FAR:
            centre = self._alternate(self.mode(coordinates(refined.hyper), refined.scores, refined.hyper.tie))
            refined = self._refined_if_skewed(centre)
        found, log_volume = [centre], 0.0
        if self.rows <= _STAR_ROWS and self.free:
            found, log_volume = self._star(centre)
            found[0] = replace(found[0], found=centre.found)  # which was searched for most closely
        null = self._null(found[0], log_volume)
        if refined is not None:
            found = [self._moved(mode, centre, refined) for mode in found]
        if self._may_be_reversed(centre):
            reversed_mode = self.mode(coordinates(centre.hyper), -centre.scores, centre.hyper.tie)
            behind = reversed_mode.log_weight - centre.log_weight
            if centre.distance_to(reversed_mode.scores) > 1.0 and behind > -IMPLAUSIBLE:
                total = np.logaddexp.reduce([mode.log_weight for mode in found])
                found.append(replace(reversed_mode, log_weight=float(total) + behind, is_reversed=True))
        return found + null

    def _alternate(self, best: Mode) -> Mode:
        """Maximise over hyperparameters and scores in turn (EM; σ by MacKay's fixed point)."""
        mode = best
        for _ in range(min(_MAX_ROUNDS, self.max_steps)):
            hyper, stretch = self.improved(mode)
            change = _distance(hyper, mode.hyper)
            mode = self.mode(coordinates(hyper), stretch * mode.scores, hyper.tie)
            if change < _ROUND_TOLERANCE:
                break
        found = maximize(
            self.objective.at(mode.hyper),
            mode.scores,
            tolerance=self.tolerance,
            max_steps=self.max_steps,
            max_step=MAX_STEP,
        )
        return self.weighed(mode.hyper, found)

    def _refined_if_skewed(self, mode: Mode) -> Mode | None:
        """The variational approximation and the hyperparameters that belong to it, if it differs from Laplace's."""
        assert mode.root is not None
        if self.rows > _REFINED_ROWS or not self.free:  # with all hyperparameters given, the mode is the estimate
            return None
        first = self._refine(mode.hyper, mode.scores, mode.root)
        if first.shift < _SKEWED:
            return None
        mode = replace(mode, scores=first.mean, root=first.root)
        for _ in range(min(_REFINED_ROUNDS, self.max_steps)):
            assert mode.root is not None
            hyper, stretch = self.improved(mode)
            change = _distance(hyper, mode.hyper)
            if hyper.scale == mode.hyper.scale:  # at its upper bound
                stretch = 1.0
            found = self._refine(hyper, stretch * mode.scores, mode.root / stretch)
            mode = replace(mode, hyper=hyper, scores=found.mean, root=found.root)
            if change < _REFINED_TOLERANCE and found.shift < _REFINED_SHIFT:
                break
        return mode

    def _refine(self, hyper: Hyperparameters, scores: FloatArray, root: FloatArray) -> NormalApproximation:
        objective = self.objective.at(hyper)
        return refine(objective, marginal_curvature, scores, root, self._noise, hyper.scale**-2.0)

    @cached_property
    def _noise(self) -> FloatArray:
        """The standard normal numbers behind every variational approximation."""
        size = self.items
        pairs = int(np.clip(_DRAWN_SCORES // size, *_PAIRS))
        return np.random.default_rng(size).standard_normal((pairs, size))

    def _moved(self, mode: Mode, centre: Mode, refined: Mode) -> Mode:
        """A mode moved as the refinement moved the centre: hyperparameters, mean and precision."""
        assert mode.root is not None
        assert centre.root is not None
        assert refined.root is not None
        at = np.array(coordinates(mode.hyper)) + coordinates(refined.hyper) - np.array(coordinates(centre.hyper))
        hyper = self.hyperparameters((at[0], at[1], at[2]), refined.hyper.tie)
        root = refined.root @ np.linalg.solve(centre.root, mode.root)
        return replace(mode, hyper=hyper, scores=mode.scores + refined.scores - centre.scores, root=root)

    def _star(self, centre: Mode) -> tuple[list[Mode], float]:
        """The centre and two points along each principal axis of the hyperparameters' posterior, with their weights.

        Also returns the log volume of that posterior, Σ log of its standard deviations.

        The points and weights are those of the unscented transform (Julier & Uhlmann 1997), with the evidence at each
        point in place of its normal approximation.
        """
        free, at = self.free, np.array(coordinates(centre.hyper))
        size = len(free)
        # how far the scores move with each coordinate, as far as is known yet: starting values
        moves: FloatArray = np.zeros((size, len(centre.scores)))

        def mode(shift: FloatArray) -> Mode:
            moved = at.copy()
            moved[free] += shift
            start, to = centre.scores + shift @ moves, (moved[0], moved[1], moved[2])
            found = self.mode(to, start, centre.hyper.tie)
            found = self.reflected(found) or found  # far from the centre, the mode may have turned
            if np.count_nonzero(shift) == 1 and not moves[axis := int(np.argmax(shift != 0))].any():
                moves[axis] = (found.scores - centre.scores) / shift[axis]
            return found

        steps = self._difference_steps(len(centre.scores))[free]
        gradient, curvature = derivatives(lambda x: mode(x).log_weight, centre.log_weight, steps)
        values, axes = np.linalg.eigh(curvature)
        values = np.maximum(values, _LEAST_CURVATURE)
        middle = np.clip(axes @ ((axes.T @ gradient) / values), -steps, steps)
        improved = mode(middle)
        if improved.log_weight < centre.log_weight:  # the evidence is not a parabola here
            middle, improved = np.zeros(size), centre
        radius = np.sqrt(size + 1.0)
        found = [_reweighted(improved, np.log(1.0 / (size + 1.0)))]
        for n in range(size):
            for sign in (-1.0, 1.0):
                shift = middle + sign * radius * axes[:, n] / np.sqrt(values[n])
                log_share = np.log(0.5 / (size + 1.0)) + 0.5 * radius**2
                found.append(_reweighted(mode(shift), log_share))
        return found, -0.5 * float(np.sum(np.log(values)))

    def _difference_steps(self, items: int) -> FloatArray:
        """About one standard deviation of log σ, log α and log β, given the numbers of items and of annotators."""
        people = min(len(self.objective.grids.grid_of), self.rows / _ANSWERS_PER_ANNOTATOR)
        return np.asarray(np.minimum(_DIFFERENCES, [1 / np.sqrt(2 * items), 2 / np.sqrt(people), 2 / np.sqrt(people)]))

    def _null(self, centre: Mode, log_volume: float) -> list[Mode]:
        """Items that do not differ, if that is a separate mode of the spread's posterior.

        The prior of the spread has two modes, and so may the posterior: the points around its highest mode miss the
        other one. Its weight is that at the centre of its prior, times the volume of the prior, relative to the volume
        of the posterior around the highest mode.
        """
        (_, spread, width), (alpha, beta) = SPREAD_PRIOR[1], QUALITY_PRIORS
        if self.fixed[0] or shown_spread(coordinates(centre.hyper)) < spread + 2.0 * width:
            return []
        if self.largest_scale > LARGEST_SCALE:  # by Bradley-Terry, which sees that they differ
            return []
        given = coordinates(centre.hyper)
        log_alpha, log_beta = (given[n + 1] if self.fixed[n + 1] else prior[0] for n, prior in enumerate((alpha, beta)))
        log_scale = spread - shown_spread((0.0, log_alpha, log_beta))
        null = self.mode((log_scale, log_alpha, log_beta), np.zeros(self.items), centre.hyper.tie)
        widths = [(width, alpha[1], beta[1])[axis] for axis in self.free]
        null = _reweighted(null, float(np.sum(np.log(widths))) - log_volume)
        return [null] if null.log_weight > centre.log_weight - IMPLAUSIBLE else []

    def _may_be_reversed(self, mode: Mode) -> bool:
        """Whether the opposite scores may lead to a mode of similar height: a cheap bound by one evaluation."""
        there = self.objective.at(mode.hyper)(-mode.scores)
        gain = float(there.gradient @ there.curvature.solve(there.gradient, 0.1))
        return there.value + _REVERSED_GAIN * gain > mode.found.evaluation.value - IMPLAUSIBLE


def _reweighted(mode: Mode, log_share: float) -> Mode:
    return replace(mode, log_weight=mode.log_weight + log_share)


def _distance(one: Hyperparameters, other: Hyperparameters) -> float:
    """The largest difference of any coordinate or number of the tie distribution."""
    numbers = np.array([[*coordinates(hyper), *hyper.tie.numbers] for hyper in (one, other)])
    return float(np.max(np.abs(numbers[0] - numbers[1])))
