"""Integration over the hyperparameters of Crowd-BT, at a lattice of points or at some points around the best one.

The lattice is for few data, and is explored from its best point. If a crowd and its mirror image (all scores negated,
all annotators reversed) are both plausible, both are explored.

With more data, the posterior of the hyperparameters is narrow and nearly normal, and a star of points around the best
one is enough. The scores are another matter: with few answers per item their posterior is skewed at any value of the
hyperparameters. Laplace's approximation makes scores and spread too small there, and variational inference takes its
place.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.inference.laplace import NormalApproximation, gauss_hermite_draws, refine
from crowdrank.inference.newton import Evaluation, derivatives, maximize
from crowdrank.models.crowd.hyperparameters import (
    IMPLAUSIBLE,
    LARGEST_SCALE,
    MAX_STEP,
    QUALITY_PRIORS,
    SPREAD_PRIOR,
    Coordinates,
    Explorer,
    Mode,
    coordinates,
    fit_ties,
    shown_spread,
)
from crowdrank.models.crowd.marginal_objective import Hyperparameters, MarginalObjective, MeanEvaluation

# Up to this many answers several points are used; beyond, the best one.
_STAR_ROWS = 300_000
# Rounds of maximisation over hyperparameters and scores in turn, and the change of a coordinate at which they end.
_MAX_ROUNDS, _ROUND_TOLERANCE = 12, 0.1
# Each change is about a constant times the one before; ratios beyond these are not extrapolated, nor more than this.
_RATIOS, _LONGEST_EXTRAPOLATION = (-1.0, 0.7), 0.6
# Variational inference is used if it moves scores by this many standard errors, and a cheaper form of it beyond this
# many items or answers.
_SKEWED, _REFINED_ITEMS, _REFINED_ROWS = 0.05, 200, 50_000
# The cheaper form is used between these numbers of answers per item. With more, posteriors are not skewed; with fewer,
# it predicts held-out answers worse than the mode.
_SOME_ANSWERS, _MANY_ANSWERS = 10, 1_000
# Steps of the hyperparameters, the distance to their best value, in standard errors, at which these end, and the
# longest step; the same for the scores at each step.
_REFINED_ROUNDS, _REFINED_TOLERANCE, _LONGEST_STEP = 10, 0.15, 0.3
_MOST_REFINEMENTS, _REFINED_SHIFT = 6, 0.01
# It uses this many pairs of opposite draws (multiples of three); fewer if each item has this many answers. Up to about
# this many answers are evaluated at a time.
_PAIRS, _FEWER_PAIRS, _THICK, _REPLICATED_ROWS = 12, 3, 100, 16_384
# With many items or answers there are fewer rounds; each ends at this many standard errors per item.
_SMOOTHED_ROUNDS, _SMOOTHED_TOLERANCE = 2, 0.05
# Largest distances between points from which the curvature of the evidence is computed, and its least plausible value.
_DIFFERENCES, _LEAST_CURVATURE = np.array([0.3, 0.4, 0.6]), 0.15
# Answers that tell as much about the distribution of quality as one annotator of known quality.
_ANSWERS_PER_ANNOTATOR = 10.0


@dataclass(frozen=True, eq=False)
class Star:
    """Points that represent the posterior of the hyperparameters.

    Parameters
    ----------
    modes : list of Mode
        The mode of the scores at each point, that at the centre first.
    curvature : array of float
        Precision of the hyperparameters' posterior in the free coordinates.
    """

    modes: list[Mode]
    curvature: FloatArray

    @property
    def log_volume(self) -> float:
        """Half the log determinant of the covariance of the hyperparameters."""
        return -0.5 * float(np.linalg.slogdet(self.curvature)[1])


@dataclass(frozen=True, eq=False)
class StarExplorer(Explorer):
    """Finds the best value of the hyperparameters, and represents their posterior by some points around it."""

    def explore(self, starts: list[FloatArray]) -> list[Mode]:
        """Modes at these points, the most probable reading of the crowd first."""
        centre = self._alternate(self.best_start(starts))
        if (reflected := self.reflected(centre)) is not None:
            centre = self._alternate(reflected)
        if centre.root is None:
            return [self._smoothed(centre) if self.free and self._has_some_answers else centre]
        star = self._star(centre) if self.rows <= _STAR_ROWS and self.free else Star([centre], np.eye(len(self.free)))
        null = self._null(star)
        found = star.modes
        if (refined := self._refined_if_skewed(centre, star.curvature)) is not None:
            found = [self._shifted_like(mode, centre, refined) for mode in found]
        if self.may_be_reversed(centre):
            reversed_mode = self.mode(coordinates(centre.hyper), -centre.scores, centre.hyper.tie)
            behind = reversed_mode.log_weight - centre.log_weight
            if centre.distance_to(reversed_mode.scores) > 1.0 and behind > -IMPLAUSIBLE:
                total = np.logaddexp.reduce([mode.log_weight for mode in found])
                found.append(replace(reversed_mode, log_weight=float(total) + behind, is_reversed=True))
        return found + null

    def _alternate(self, best: Mode) -> Mode:
        """Maximise over hyperparameters and scores in turn (EM; σ by MacKay's fixed point)."""
        mode, before = best, None
        for _ in range(min(_MAX_ROUNDS, self.max_steps)):
            hyper, factor = self.improved(mode)
            distance = _distance(hyper, mode.hyper)
            change = np.array(coordinates(hyper)) - coordinates(mode.hyper)
            ahead = change * _extrapolation(change, before)
            log_scale, log_alpha, log_beta = coordinates(hyper) + ahead
            scores = float(factor * np.exp(ahead[0])) * mode.scores
            mode, before = self.mode((log_scale, log_alpha, log_beta), scores, hyper.tie), change
            if distance < _ROUND_TOLERANCE:
                break
        found = maximize(
            self.objective.at(mode.hyper),
            mode.scores,
            tolerance=self.tolerance,
            max_steps=self.max_steps,
            max_step=MAX_STEP,
        )
        return self.with_evidence(mode.hyper, found)

    def _refined_if_skewed(self, mode: Mode, curvature: FloatArray) -> Mode | None:
        """The variational approximation and the hyperparameters that belong to it, if it differs from Laplace's.

        The evidence is maximised by a quasi-Newton method (BFGS). Its curvature by Laplace's approximation is given,
        without which it would take many steps: quality and the scale of the scores are hard to tell apart.
        """
        assert mode.root is not None
        if not self.free:  # with all hyperparameters given, the mode is the estimate
            return None
        if self.rows > _REFINED_ROWS or self.items > _REFINED_ITEMS:
            return self._smoothed(mode) if self._has_some_answers else None
        found = self._refine(mode.hyper, mode.scores, mode.root)
        if found.shift < _SKEWED:
            return None
        found = self._refined_until_stable(mode.hyper, found)
        step, last_gradient = None, np.zeros(len(self.free))
        for _ in range(min(_REFINED_ROUNDS, self.max_steps)):
            mode = replace(mode, scores=found.mean, root=found.root)
            gradient = self.evidence_gradient(mode, found.evaluation.tables)
            if step is not None:
                curvature = _updated(curvature, step, last_gradient, gradient)
            hyper, distance = self._step_within_limit(mode, np.asarray(np.linalg.solve(curvature, gradient)), gradient)
            step = (np.array(coordinates(hyper)) - coordinates(mode.hyper))[self.free]
            mode, last_gradient = replace(mode, hyper=hyper), gradient
            found = self._refined_until_stable(hyper, found)
            if distance < _REFINED_TOLERANCE:
                break
        return replace(mode, scores=found.mean, root=found.root)

    def _step_within_limit(self, mode: Mode, step: FloatArray, gradient: FloatArray) -> tuple[Hyperparameters, float]:
        """Hyperparameters after a step of limited length, and the length of the step in standard errors."""
        at = np.array(coordinates(mode.hyper))
        at[self.free] += step * min(1.0, _LONGEST_STEP / max(float(np.max(np.abs(step))), 1e-12))
        tie = mode.hyper.tie
        if len(self.objective.grids.nu):
            tie = fit_ties(self.objective.at(mode.hyper), mode.scores)
        return self.hyperparameters((at[0], at[1], at[2]), tie), float(gradient @ step) ** 0.5

    def _refined_until_stable(
        self, hyper: Hyperparameters, found: NormalApproximation[MeanEvaluation]
    ) -> NormalApproximation[MeanEvaluation]:
        """The variational approximation for these hyperparameters, found from another one."""
        for _ in range(_MOST_REFINEMENTS):
            found = self._refine(hyper, found.mean, found.root)
            if found.shift < _REFINED_SHIFT:
                break
        return found

    @property
    def _has_some_answers(self) -> bool:
        return _SOME_ANSWERS * self.items <= self.rows < _MANY_ANSWERS * self.items

    def _smoothed(self, mode: Mode) -> Mode:
        """A cheaper refinement, for many items or answers: covariances are neglected."""
        search, tolerance = mode.found, _SMOOTHED_TOLERANCE * self.items**0.5
        signs = np.random.default_rng(self.items).choice([-1.0, 1.0], self.items)
        for _ in range(_SMOOTHED_ROUNDS):
            smoothed = _Smoothed(self.objective.at(mode.hyper), signs / np.sqrt(mode.curvature.diagonal))
            found = maximize(smoothed, mode.scores, tolerance=tolerance, max_steps=self.max_steps, max_step=MAX_STEP)
            mode = self.with_evidence(mode.hyper, found)
            hyper, factor = self.improved(mode)
            mode = replace(mode, hyper=hyper, scores=factor * mode.scores)
        return replace(mode, found=replace(search, evaluation=mode.found.evaluation))

    def _refine(
        self, hyper: Hyperparameters, scores: FloatArray, root: FloatArray
    ) -> NormalApproximation[MeanEvaluation]:
        return refine(self._replicas.at(hyper).mean_over, scores, root, self._noise, hyper.scale**-2.0)

    @cached_property
    def _replicas(self) -> MarginalObjective:
        """The objective at several draws of the scores at once."""
        draws, most = 2 * len(self._noise), max(1, _REPLICATED_ROWS // self.rows)
        count = max(n for n in range(1, draws + 1) if draws % n == 0 and n <= most)
        return self.objective.replicated(count, self.items)

    @cached_property
    def _noise(self) -> FloatArray:
        """The draws behind every variational approximation."""
        pairs = _PAIRS if self.rows < _THICK * self.items else _FEWER_PAIRS
        return gauss_hermite_draws(pairs, self.items, np.random.default_rng(self.items))

    def _shifted_like(self, mode: Mode, centre: Mode, refined: Mode) -> Mode:
        """A mode moved as the refinement moved the centre: hyperparameters, mean and precision."""
        assert mode.root is not None
        assert centre.root is not None
        assert refined.root is not None
        at = np.array(coordinates(mode.hyper)) + coordinates(refined.hyper) - np.array(coordinates(centre.hyper))
        hyper = self.hyperparameters((at[0], at[1], at[2]), refined.hyper.tie)
        root = refined.root @ np.linalg.solve(centre.root, mode.root)
        return replace(mode, hyper=hyper, scores=mode.scores + refined.scores - centre.scores, root=root)

    def _star(self, centre: Mode) -> Star:
        """The centre and two points along each principal axis of the hyperparameters' posterior, with their weights.

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
        found[0] = replace(found[0], found=centre.found)  # which was searched for most closely
        return Star(found, axes * values @ axes.T)

    def _difference_steps(self, items: int) -> FloatArray:
        """About one standard deviation of log σ, log α and log β, given the numbers of items and of annotators."""
        people = min(len(self.objective.grids.grid_of), self.rows / _ANSWERS_PER_ANNOTATOR)
        return np.asarray(np.minimum(_DIFFERENCES, [1 / np.sqrt(2 * items), 2 / np.sqrt(people), 2 / np.sqrt(people)]))

    def _null(self, star: Star) -> list[Mode]:
        """Items that do not differ, if that is a separate mode of the spread's posterior.

        The prior of the spread has two modes, and so may the posterior: the points around its highest mode miss the
        other one. Its weight is that at the centre of its prior, times the volume of the prior, relative to the volume
        of the posterior around the highest mode.
        """
        centre, ((_, spread, width), (alpha, beta)) = star.modes[0], (SPREAD_PRIOR[1], QUALITY_PRIORS)
        if self.fixed[0] or shown_spread(coordinates(centre.hyper)) < spread + 2.0 * width:
            return []
        if self.largest_scale > LARGEST_SCALE:  # by Bradley-Terry, which sees that they differ
            return []
        given = coordinates(centre.hyper)
        log_alpha, log_beta = (given[n + 1] if self.fixed[n + 1] else prior[0] for n, prior in enumerate((alpha, beta)))
        log_scale = spread - shown_spread((0.0, log_alpha, log_beta))
        null = self.mode((log_scale, log_alpha, log_beta), np.zeros(self.items), centre.hyper.tie)
        widths = [(width, alpha[1], beta[1])[axis] for axis in self.free]
        null = _reweighted(null, float(np.sum(np.log(widths))) - star.log_volume)
        return [null] if null.log_weight > centre.log_weight - IMPLAUSIBLE else []


@dataclass(frozen=True, eq=False)
class _Smoothed:
    """The mean of an objective at two opposite distances from the parameters, with the curvature at one of them."""

    objective: MarginalObjective
    noise: FloatArray

    def __call__(self, scores: FloatArray) -> Evaluation:
        one, other = self.objective(scores + self.noise), self.objective(scores - self.noise)
        return Evaluation(0.5 * (one.value + other.value), 0.5 * (one.gradient + other.gradient), one.curvature)


def _updated(curvature: FloatArray, step: FloatArray, before: FloatArray, gradient: FloatArray) -> FloatArray:
    """BFGS update of the negative Hessian of a function to be maximised, given a step and the gradients around it."""
    change = before - gradient
    if change @ step <= 0.1 * step @ curvature @ step:  # not concave along the step, or too little to be trusted
        return curvature
    product = curvature @ step
    update = np.outer(change, change) / (change @ step) - np.outer(product, product) / (step @ product)
    return np.asarray(curvature + update)


def _reweighted(mode: Mode, log_share: float) -> Mode:
    return replace(mode, log_weight=mode.log_weight + log_share)


def _extrapolation(change: FloatArray, before: FloatArray | None) -> float:
    """How many more times the last change is still to come, if the ratio of two changes stays the same (Aitken).

    Negative where the rounds oscillate.
    """
    if before is None or not np.any(before):
        return 0.0
    ratio = float(np.clip(change @ before / (before @ before), *_RATIOS))
    return min(ratio / (1.0 - ratio), _LONGEST_EXTRAPOLATION / max(float(np.max(np.abs(change))), 1e-12))


def _distance(one: Hyperparameters, other: Hyperparameters) -> float:
    """The largest difference of any coordinate or number of the tie distribution."""
    numbers = np.array([[*coordinates(hyper), *hyper.tie.numbers] for hyper in (one, other)])
    return float(np.max(np.abs(numbers[0] - numbers[1])))


# Integration over the hyperparameters of Crowd-BT where data are few: a lattice, explored from its best point.

# The lattice: its origin, its steps, and its lowest and highest index along each axis.
_ORIGIN, _STEPS = np.array([0.0, 1.9, -0.5]), np.array([0.75, 1.0, 0.8])
_LOWEST, _HIGHEST = (-5, -2, -2), (8, 3, 2)
# Points with less than e⁻³·⁵ of the best weight have no neighbours explored.
_NEGLIGIBLE = 3.5


@dataclass(frozen=True, eq=False)
class LatticeExplorer(Explorer):
    """Finds the lattice points that matter, and the mode of the scores at each."""

    def explore(self, starts: list[FloatArray]) -> list[Mode]:
        """Modes at all points that matter, the most probable reading of the crowd first."""
        best = self.best_start(starts)
        return self._with_ties_fitted(best)._explore_lattice(best)

    def _with_ties_fitted(self, best: Mode) -> LatticeExplorer:
        """The same, with the distribution of the tendency to tie at its best value for this mode."""
        if not len(self.objective.grids.nu):
            return self
        hyper = replace(self.objective.hyper, tie=self.improved(best)[0].tie)
        return replace(self, objective=self.objective.at(hyper))

    def _explore_lattice(self, best: Mode) -> list[Mode]:
        first_reading = self._flood_fill(best.scores, self._first_index())
        middle = max(first_reading, key=lambda index: first_reading[index].log_weight)
        if (reflected := self.reflected(first_reading[middle])) is not None:
            first_reading = self._flood_fill(reflected.scores, self._first_index())
            middle = max(first_reading, key=lambda index: first_reading[index].log_weight)
        top = first_reading[middle]
        found = list(first_reading.values())
        reversed_mode = self.mode(coordinates(top.hyper), -top.scores)
        if top.distance_to(reversed_mode.scores) > 1.0 and reversed_mode.log_weight > top.log_weight - IMPLAUSIBLE:
            for index, mode in self._flood_fill(reversed_mode.scores, middle, top.log_weight).items():
                counterpart = first_reading.get(index)
                apart = np.inf if counterpart is None else counterpart.distance_to(mode.scores)
                if apart > 1.0:  # modes that overlap must not be counted twice
                    overlap = float(np.exp(-(apart**2) / 8.0))
                    found.append(replace(mode, is_reversed=True, log_weight=mode.log_weight + np.log1p(-overlap)))
        return found

    def _flood_fill(
        self, start: FloatArray, origin: tuple[int, ...], at_least: float = -np.inf
    ) -> dict[tuple[int, ...], Mode]:
        """All lattice points of sufficient weight, found from neighbour to neighbour, the best first."""
        found = {origin: self._mode_on_lattice(origin, start)}
        queue = [(-found[origin].log_weight, origin)]
        best = max(found[origin].log_weight, at_least)
        while queue:
            weight, index = heapq.heappop(queue)
            if -weight < best - _NEGLIGIBLE:
                break
            for neighbour in self._neighbours(index):
                if neighbour not in found:
                    mode = self._mode_on_lattice(neighbour, _extrapolate(found, index, neighbour))
                    found[neighbour] = mode
                    best = max(best, mode.log_weight)
                    heapq.heappush(queue, (-mode.log_weight, neighbour))
        return {index: mode for index, mode in found.items() if mode.log_weight >= best - _NEGLIGIBLE - 2.0}

    def _mode_on_lattice(self, index: tuple[int, ...], start: FloatArray) -> Mode:
        mode = self.mode(self._lattice_point(index), start)
        return mode if self.is_allowed(mode.scores) else replace(mode, log_weight=-np.inf)

    def _first_index(self) -> tuple[int, int, int]:
        """The lattice point from which exploration starts: the first spread of scores, and a typical crowd.

        If annotators are known to answer in reverse, it is the crowd with the lowest quality.
        """
        hyper = self.objective.hyper
        steps = (np.log(hyper.scale) - _ORIGIN[0]) / _STEPS[0]
        first = int(np.clip(np.rint(steps), _LOWEST[0], self._largest_index[0]))
        return (first, _LOWEST[1], _HIGHEST[2]) if hyper.quality.mean < 0.5 else (first, 0, 0)

    @cached_property
    def _largest_index(self) -> tuple[int, int, int]:
        """The highest lattice index along each axis."""
        steps = (np.log(self.largest_scale) - _ORIGIN[0]) / _STEPS[0]
        return (int(min(np.ceil(steps), _HIGHEST[0])), *_HIGHEST[1:])

    def _lattice_point(self, index: tuple[int, ...]) -> Coordinates:
        given = coordinates(self.objective.hyper)
        free = _ORIGIN + _STEPS * np.array(index)
        a, b, c = (given[axis] if self.fixed[axis] else float(free[axis]) for axis in range(3))
        return a, b, c

    def _neighbours(self, index: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
        for axis in self.free:
            for change in (-1, 1):
                moved = list(index)
                moved[axis] += change
                if _LOWEST[axis] <= moved[axis] <= self._largest_index[axis]:
                    yield moved[0], moved[1], moved[2]


def _extrapolate(found: dict[tuple[int, ...], Mode], index: tuple[int, ...], neighbour: tuple[int, ...]) -> FloatArray:
    """Starting scores at a neighbour of a lattice point, from those behind it if they are known."""
    behind = found.get(tuple(2 * a - b for a, b in zip(index, neighbour, strict=True)))
    scores = found[index].scores
    return scores if behind is None else 2.0 * scores - behind.scores
