"""Integration over the hyperparameters of Crowd-BT with annotators integrated out.

The hyperparameters are the spread of the scores σ and the distribution Beta(α, β) of quality among annotators. Their
coordinates are log σ, log α and log β. For each value, the posterior of the
scores is approximated by a normal distribution at its mode (Laplace), which also gives the evidence of that value.

Where data are few, a lattice of values is explored from the most probable one outwards. Where they are many, the
posterior of the hyperparameters is narrow and nearly normal, and a few points around its mode represent it. If a
crowd and its mirror image (all scores negated, all annotators reversed) are both plausible, both are explored.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items
from crowdrank.engines.local import limit_blas_threads
from crowdrank.inference.laplace import LaplaceApproximation
from crowdrank.inference.laplace_mixture import LaplaceComponent
from crowdrank.inference.newton import OptimizeResult, maximize
from crowdrank.models.crowd.marginal_likelihood import pair_curvature
from crowdrank.models.crowd.marginal_objective import (
    MAX_DENSE_ITEMS,
    STRETCH,
    Hyperparameters,
    MarginalCurvature,
    MarginalObjective,
    StretchedTables,
)
from crowdrank.models.crowd.quality_priors import QualityDistribution, TieDistribution
from crowdrank.models.crowd.ties import fit_ties, maximize_within

# Normal priors on log α and log β, as (mean, standard deviation). Where annotators are alike, their quality and the
# scale of the scores cannot be told apart; the prior then leans to a quality near 1, which is Bradley-Terry's model.
# β is near or below 1: most annotators are close to the best ones.
_QUALITY_PRIORS = ((2.0, 1.2), (-0.5, 0.7))
# Prior on the log of the spread that answers show, σ times 2η̄ − 1 with η̄ the mean quality, as (weight, mean, standard
# deviation): a mixture of items that differ and items that do not. Tuned by simulation (seeds below 1000) so that coin
# tosses are split into groups in at most 5 % of tables.
_SPREAD_PRIOR = ((0.7, -0.7, 1.1), (0.3, -2.6, 0.5))
_LEAST_SIGNAL = 0.2

# The lattice: its origin, its steps, and its lowest and highest index along each axis.
_ORIGIN, _STEPS = np.array([0.0, 1.9, -0.5]), np.array([0.75, 1.0, 0.8])
_LOWEST, _HIGHEST = (-4, -2, -2), (8, 3, 2)
# Points with less than e⁻³·⁵ of the best weight have no neighbours explored; a reading with less than e⁻⁸ is dropped.
_NEGLIGIBLE, _IMPLAUSIBLE = 3.5, 8.0
# Newton's method is trusted to gain at most this many times what its first step predicts.
_REVERSED_GAIN = 3.0
# Starting scores with at least this correlation lead to the same mode.
_ALIKE = 0.95
# Up to this many answers the lattice is explored; up to this many, several points around the mode are used.
_LATTICE_ROWS, _STAR_ROWS = 2_000, 300_000
# Distance in standard errors at which the search for a mode stops; the gain that is left is added to the evidence.
_ROUGH_TOLERANCE = 0.2
_MAX_ROUNDS, _ROUND_TOLERANCE = 12, 0.1
_SMALLEST_SCALE = 0.02
LARGEST_SCALE = 3.0
"""Largest spread of scores that is learnt, unless Bradley-Terry finds a larger one. Where it is larger because
annotators of low quality explain all errors, answers depend on the order of the items alone. The posterior of the
scores is then not normal, and its mode is a poor estimate of the order."""
# The distribution of quality is estimated from about this many annotators.
_MOST_ANNOTATORS = 2_000
# Bounds of log α and log β where data are many.
_BOUNDS = ((-0.7, 6.0), (-2.5, 2.0))
# No score moves further in one Newton step, because the objective is not concave.
_MAX_STEP = 2.0
# Largest distances between points from which the curvature of the evidence is computed, and its least plausible value.
_DIFFERENCES, _LEAST_CURVATURE = np.array([0.3, 0.4, 0.6]), 0.15
# Answers that tell as much about the distribution of quality as one annotator of known quality.
_ANSWERS_PER_ANNOTATOR = 10.0

Coordinates = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Mode:
    """The scores at their mode for one value of the hyperparameters.

    Parameters
    ----------
    hyper : Hyperparameters
        The value.
    found : OptimizeResult
        The mode, and the curvature there.
    log_weight : float
        Log evidence of the value, plus the log of its prior and of its quadrature weight.
    root : array of float or None
        Cholesky factor of the curvature; None where there are too many items.
    log_prior : float
        Log prior density of the value.
    is_reversed : bool
        Whether this is the mirror image of the most probable reading.
    """

    hyper: Hyperparameters
    found: OptimizeResult
    log_weight: float
    root: FloatArray | None
    log_prior: float
    is_reversed: bool = False

    @property
    def scores(self) -> FloatArray:
        return self.found.parameters

    @property
    def curvature(self) -> MarginalCurvature:
        assert isinstance(self.found.evaluation.curvature, MarginalCurvature)
        return self.found.evaluation.curvature

    def distance_to(self, scores: FloatArray) -> float:
        """Distance between this mode and other scores, in standard deviations of this mode."""
        assert self.root is not None
        return float(np.linalg.norm(self.root.T @ (scores - self.scores)))

    def noise(self) -> FloatArray:
        """A draw from the posterior of the scores, less its mean; always the same one."""
        noise = np.random.default_rng(len(self.scores)).standard_normal(len(self.scores))
        if self.root is None:
            return np.asarray(noise / np.sqrt(self.curvature.diagonal))
        return np.asarray(np.linalg.solve(self.root.T, noise))

    def component(self, items: Items, seed: int) -> LaplaceComponent:
        """The normal distribution at this mode, as a component of the posterior."""
        mode = items.centre(self.scores)
        if self.root is None:
            error, around = self._draw_by_perturbation(items, seed)
            return LaplaceComponent(self.log_weight, mode, error**2, lambda rng, n: around[:n])
        root = self.root
        with limit_blas_threads(len(root)):
            covariance = np.linalg.inv(root)
            variance = np.diag(items.centre(items.centre(covariance.T @ covariance).T)).copy()

        def draw(rng: np.random.Generator, n: int) -> FloatArray:
            with limit_blas_threads(len(root)):
                return items.centre(rng.standard_normal((n, len(root))) @ covariance)

        return LaplaceComponent(self.log_weight, mode, np.maximum(variance, 0.0), draw)

    def _draw_by_perturbation(self, items: Items, seed: int) -> tuple[FloatArray, FloatArray]:
        rows, (diagonal,) = self.curvature.rows.map_and_sum(pair_curvature, len(items))
        precision = np.full(len(items), self.curvature.precision)
        return LaplaceApproximation(rows, diagonal + precision, precision, items.starts).draw(seed)


@dataclass(frozen=True, eq=False)
class Explorer:
    """Finds the values of the hyperparameters that matter, and the mode of the scores at each.

    Parameters
    ----------
    objective : MarginalObjective
        Log posterior of the scores; its hyperparameters are the starting values.
    fixed : tuple of bool
        Which of log σ, log α and log β the user has set.
    rows : int
        Number of answers.
    tolerance, max_steps : float and int
        Stopping rule of Newton's method.
    largest_scale : float, default LARGEST_SCALE
        Upper bound of σ, if it is learnt.
    is_allowed : callable, optional
        Whether scores agree with what is known about them, such as gold pairs. By default all do.
    """

    objective: MarginalObjective
    fixed: tuple[bool, bool, bool]
    rows: int
    tolerance: float
    max_steps: int
    largest_scale: float = LARGEST_SCALE
    is_allowed: Callable[[FloatArray], bool] = lambda scores: True

    @cached_property
    def _sample(self) -> tuple[int, MarginalObjective]:
        """A sample of the annotators, who suffice for the distribution of quality, and how many each stands for."""
        step = max(1, len(self.objective.grids.grid_of) // _MOST_ANNOTATORS)
        return step, self.objective.of_some_annotators(step)

    @property
    def _free(self) -> list[int]:
        return [axis for axis in range(3) if not self.fixed[axis]]

    def explore(self, starts: list[FloatArray]) -> list[Mode]:
        """Modes at all values that matter, the most probable reading of the crowd first."""
        used = starts if self.rows <= _STAR_ROWS and _are_different(*starts) else starts[-1:]
        modes = [self._mode(_coordinates(self.objective.hyper), start) for start in used]
        best = max(modes, key=lambda mode: round(mode.log_weight, 6))
        if self.rows > _LATTICE_ROWS or best.root is None:
            return self._explore_star(best)
        return self._with_ties_fitted(best)._explore_lattice(best)

    # One value

    def _mode(self, at: Coordinates, start: FloatArray, tie: TieDistribution | None = None) -> Mode:
        """The mode of the scores at one value of the hyperparameters, with its evidence."""
        hyper = self._hyperparameters(at, tie or self.objective.hyper.tie)
        found = maximize(
            self.objective.at(hyper),
            start,
            tolerance=max(self.tolerance, _ROUGH_TOLERANCE),
            max_steps=self.max_steps,
            max_step=_MAX_STEP,
        )
        return self._weighed(hyper, found)

    def _hyperparameters(self, at: Coordinates, tie: TieDistribution) -> Hyperparameters:
        log_scale, log_alpha, log_beta = np.clip(at, -6.0, 7.0)
        if not self.fixed[0]:
            log_scale = min(log_scale, np.log(self.largest_scale))
        alpha, beta = float(np.exp(log_alpha)), float(np.exp(log_beta))
        return Hyperparameters(float(np.exp(log_scale)), QualityDistribution(alpha / (alpha + beta), alpha + beta), tie)

    def _weighed(self, hyper: Hyperparameters, found: OptimizeResult) -> Mode:
        size = len(found.parameters)
        curvature = found.evaluation.curvature
        assert isinstance(curvature, MarginalCurvature)
        root = curvature.cholesky() if size <= MAX_DENSE_ITEMS else None
        log_determinant = 2.0 * float(np.sum(np.log(np.diag(root)))) if root is not None else 0.0
        evidence = found.evaluation.value + 0.5 * found.distance**2 if found.converged else found.evaluation.value
        evidence -= size * np.log(hyper.scale) + 0.5 * log_determinant
        log_prior = self._log_prior(_coordinates(hyper))
        return Mode(hyper, found, evidence + log_prior, root, log_prior)

    def _log_prior(self, at: Coordinates) -> float:
        log_prior = sum(_log_normal(at[axis], *_QUALITY_PRIORS[axis - 1]) for axis in self._free if axis > 0)
        return log_prior if self.fixed[0] else log_prior + _log_prior_of_spread(at)

    # Few data

    def _with_ties_fitted(self, best: Mode) -> Explorer:
        """The same, with the distribution of the tendency to tie at its best value for this mode."""
        if not len(self.objective.grids.nu):
            return self
        hyper = replace(self.objective.hyper, tie=self._improved(best)[0].tie)
        return replace(self, objective=self.objective.at(hyper))

    def _explore_lattice(self, best: Mode) -> list[Mode]:
        first_reading = self._flood(best.scores, self._first_place())
        middle = max(first_reading, key=lambda place: first_reading[place].log_weight)
        if (reflected := self._reflected(first_reading[middle])) is not None:
            first_reading = self._flood(reflected.scores, self._first_place())
            middle = max(first_reading, key=lambda place: first_reading[place].log_weight)
        top = first_reading[middle]
        found = list(first_reading.values())
        reversed_mode = self._mode(_coordinates(top.hyper), -top.scores)
        if top.distance_to(reversed_mode.scores) > 1.0 and reversed_mode.log_weight > top.log_weight - _IMPLAUSIBLE:
            for place, mode in self._flood(reversed_mode.scores, middle, top.log_weight).items():
                counterpart = first_reading.get(place)
                apart = np.inf if counterpart is None else counterpart.distance_to(mode.scores)
                if apart > 1.0:  # modes that overlap must not be counted twice
                    overlap = float(np.exp(-(apart**2) / 8.0))
                    found.append(replace(mode, is_reversed=True, log_weight=mode.log_weight + np.log1p(-overlap)))
        return found

    def _flood(
        self, start: FloatArray, origin: tuple[int, ...], at_least: float = -np.inf
    ) -> dict[tuple[int, ...], Mode]:
        """All lattice points of sufficient weight, found from neighbour to neighbour, the best first."""
        found = {origin: self._mode_on_lattice(origin, start)}
        queue = [(-found[origin].log_weight, origin)]
        best = max(found[origin].log_weight, at_least)
        while queue:
            weight, place = heapq.heappop(queue)
            if -weight < best - _NEGLIGIBLE:
                break
            for neighbour in self._neighbours(place):
                if neighbour not in found:
                    mode = self._mode_on_lattice(neighbour, _extrapolate(found, place, neighbour))
                    found[neighbour] = mode
                    best = max(best, mode.log_weight)
                    heapq.heappush(queue, (-mode.log_weight, neighbour))
        return {place: mode for place, mode in found.items() if mode.log_weight >= best - _NEGLIGIBLE - 2.0}

    def _mode_on_lattice(self, place: tuple[int, ...], start: FloatArray) -> Mode:
        mode = self._mode(self._lattice_point(place), start)
        return mode if self.is_allowed(mode.scores) else replace(mode, log_weight=-np.inf)

    def _first_place(self) -> tuple[int, int, int]:
        """The lattice point from which exploration starts: the first spread of scores, and a typical crowd.

        If annotators are known to answer in reverse, it is the crowd with the lowest quality.
        """
        hyper = self.objective.hyper
        steps = (np.log(hyper.scale) - _ORIGIN[0]) / _STEPS[0]
        first = int(np.clip(np.rint(steps), _LOWEST[0], self._highest[0]))
        return (first, _LOWEST[1], _HIGHEST[2]) if hyper.quality.mean < 0.5 else (first, 0, 0)

    @cached_property
    def _highest(self) -> tuple[int, int, int]:
        """The highest lattice index along each axis."""
        steps = (np.log(self.largest_scale) - _ORIGIN[0]) / _STEPS[0]
        return (int(min(np.ceil(steps), _HIGHEST[0])), *_HIGHEST[1:])

    def _lattice_point(self, place: tuple[int, ...]) -> Coordinates:
        given = _coordinates(self.objective.hyper)
        free = _ORIGIN + _STEPS * np.array(place)
        a, b, c = (given[axis] if self.fixed[axis] else float(free[axis]) for axis in range(3))
        return a, b, c

    def _neighbours(self, place: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
        for axis in self._free:
            for change in (-1, 1):
                moved = list(place)
                moved[axis] += change
                if _LOWEST[axis] <= moved[axis] <= self._highest[axis]:
                    yield moved[0], moved[1], moved[2]

    # Many data

    def _explore_star(self, best: Mode) -> list[Mode]:
        centre = self._alternate(best)
        if (reflected := self._reflected(centre)) is not None:
            centre = self._alternate(reflected)
        found = [centre]
        if centre.root is not None and self.rows <= _STAR_ROWS and self._free:
            found = self._star(centre)
        if centre.root is not None and self._may_be_reversed(centre):
            reversed_mode = self._mode(_coordinates(centre.hyper), -centre.scores, centre.hyper.tie)
            behind = reversed_mode.log_weight - centre.log_weight
            if centre.distance_to(reversed_mode.scores) > 1.0 and behind > -_IMPLAUSIBLE:
                total = np.logaddexp.reduce([mode.log_weight for mode in found])
                found.append(replace(reversed_mode, log_weight=float(total) + behind, is_reversed=True))
        return found

    def _reflected(self, mode: Mode) -> Mode | None:
        """The mirror image of a mode at which most annotators answer in reverse, if it is more probable.

        Negated scores and the reflected distribution of quality have the same likelihood, unless something is known.
        """
        if mode.hyper.quality.mean >= 0.5 or self.fixed[1] or not self.is_allowed(-mode.scores):
            return None
        log_scale, log_alpha, log_beta = _coordinates(mode.hyper)
        found = self._mode((log_scale, log_beta, log_alpha), -mode.scores, mode.hyper.tie)
        return found if found.log_weight > mode.log_weight else None

    def _may_be_reversed(self, mode: Mode) -> bool:
        """Whether the opposite scores may lead to a mode of similar height: a cheap bound by one evaluation."""
        there = self.objective.at(mode.hyper)(-mode.scores)
        gain = float(there.gradient @ there.curvature.solve(there.gradient, 0.1))
        return there.value + _REVERSED_GAIN * gain > mode.found.evaluation.value - _IMPLAUSIBLE

    def _alternate(self, best: Mode) -> Mode:
        """Maximise over hyperparameters and scores in turn (variational EM; σ by MacKay's fixed point)."""
        mode = best
        for _ in range(min(_MAX_ROUNDS, self.max_steps)):
            before = np.array([*_coordinates(mode.hyper), *mode.hyper.tie.numbers])
            hyper, stretch = self._improved(mode)
            change = np.abs(np.array([*_coordinates(hyper), *hyper.tie.numbers]) - before)
            mode = self._mode(_coordinates(hyper), stretch * mode.scores, hyper.tie)
            if change.max() < _ROUND_TOLERANCE:
                break
        found = maximize(
            self.objective.at(mode.hyper),
            mode.scores,
            tolerance=self.tolerance,
            max_steps=self.max_steps,
            max_step=_MAX_STEP,
        )
        return self._weighed(mode.hyper, found)

    def _improved(self, mode: Mode) -> tuple[Hyperparameters, float]:
        """Better hyperparameters, and the factor by which scores and σ are stretched with them.

        Quality and the scale of the scores are hard to tell apart, so both are moved together. The log-likelihoods of
        the annotators at their grid points are averaged over the posterior of the scores: at the mode alone, qualities
        would look too high.
        """
        grids, hyper = self.objective.grids, mode.hyper
        log_scale, *quality = _coordinates(hyper)
        repeats, sample = self._sample
        stretched = StretchedTables.around(sample.at(hyper), mode.scores, mode.noise(), float(repeats))

        def of_quality(x: FloatArray) -> float:
            at = (log_scale + float(x[2]), float(x[0]), float(x[1]))
            weights = grids.log_weights(self._hyperparameters(at, hyper.tie).quality)
            found = stretched.log_likelihood(weights, grids.log_tie_weights(hyper.tie), float(x[2]))
            return found + self._log_prior(at)

        free = [axis - 1 for axis in self._free if axis > 0] + ([] if self.fixed[0] else [2])
        start, bounds = np.array([*quality, 0.0]), (*_BOUNDS, (-STRETCH, STRETCH))
        log_alpha, log_beta, log_stretch = maximize_within(of_quality, start, free, bounds)
        tie = hyper.tie
        if len(grids.nu):
            tie = fit_ties(self.objective.at(hyper), float(np.exp(log_stretch)) * mode.scores)
        if not self.fixed[0]:
            log_scale = self._scale_by_mackay(mode) + log_stretch
        return self._hyperparameters((log_scale, float(log_alpha), float(log_beta)), tie), float(np.exp(log_stretch))

    def _scale_by_mackay(self, mode: Mode) -> float:
        """log of σ² = Σ s² / (N − tr(A⁻¹)/σ²), with A the curvature: MacKay 1992."""
        scale, scores = mode.hyper.scale, mode.scores
        if mode.root is not None:
            trace = float(np.sum(np.linalg.inv(mode.root) ** 2))
        else:
            trace = float(np.sum(1.0 / mode.curvature.diagonal))
        determined = max(len(scores) - trace / scale**2, 0.1)
        return float(np.log(max(np.sqrt(float(scores @ scores) / determined), _SMALLEST_SCALE)))

    def _star(self, centre: Mode) -> list[Mode]:
        """The centre and two points along each principal axis of the hyperparameters' posterior, with their weights.

        The points and weights are those of the unscented transform (Julier & Uhlmann 1997), with the evidence at each
        point in place of its normal approximation.
        """
        free, at = self._free, np.array(_coordinates(centre.hyper))
        size = len(free)
        # how far the scores move with each coordinate, as far as is known yet: starting values
        moves: FloatArray = np.zeros((size, len(centre.scores)))

        def mode(shift: FloatArray) -> Mode:
            moved = at.copy()
            moved[free] += shift
            found = self._mode((moved[0], moved[1], moved[2]), centre.scores + shift @ moves, centre.hyper.tie)
            found = self._reflected(found) or found  # far from the centre, the mode may have turned
            if np.count_nonzero(shift) == 1 and not moves[axis := int(np.argmax(shift != 0))].any():
                moves[axis] = (found.scores - centre.scores) / shift[axis]
            return found

        steps = self._difference_steps(len(centre.scores))[free]
        gradient, curvature = _differences(lambda x: mode(x).log_weight, centre.log_weight, steps)
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
        return found

    def _difference_steps(self, items: int) -> FloatArray:
        """About one standard deviation of log σ, log α and log β, given the numbers of items and of annotators."""
        people = min(len(self.objective.grids.grid_of), self.rows / _ANSWERS_PER_ANNOTATOR)
        return np.asarray(np.minimum(_DIFFERENCES, [1 / np.sqrt(2 * items), 2 / np.sqrt(people), 2 / np.sqrt(people)]))


def _are_different(one: FloatArray, other: FloatArray) -> bool:
    """Whether two vectors of starting scores may lead to different modes."""
    return float(one @ other) < _ALIKE * float(np.linalg.norm(one) * np.linalg.norm(other))


def _extrapolate(found: dict[tuple[int, ...], Mode], place: tuple[int, ...], neighbour: tuple[int, ...]) -> FloatArray:
    """Starting scores at a neighbour of a lattice point, from those behind it if they are known."""
    behind = found.get(tuple(2 * a - b for a, b in zip(place, neighbour, strict=True)))
    scores = found[place].scores
    return scores if behind is None else 2.0 * scores - behind.scores


def _reweighted(mode: Mode, log_share: float) -> Mode:
    return replace(mode, log_weight=mode.log_weight + log_share)


def _differences(
    function: Callable[[FloatArray], float], middle: float, steps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gradient and negative Hessian at zero by central and mixed differences."""
    size = len(steps)
    unit = np.diag(steps)
    ahead = np.array([function(row) for row in unit])
    behind = np.array([function(-row) for row in unit])
    gradient = (ahead - behind) / (2.0 * steps)
    hessian = np.diag((ahead + behind - 2.0 * middle) / steps**2)
    for i, j in combinations(range(size), 2):
        mixed = function(unit[i] + unit[j]) - ahead[i] - ahead[j] + middle
        hessian[i, j] = hessian[j, i] = mixed / (steps[i] * steps[j])
    return gradient, -hessian


def _coordinates(hyper: Hyperparameters) -> Coordinates:
    return float(np.log(hyper.scale)), float(np.log(hyper.quality.alpha)), float(np.log(hyper.quality.beta))


def _log_prior_of_spread(at: Coordinates) -> float:
    log_scale, log_alpha, log_beta = at
    signal = max(float(np.tanh((log_alpha - log_beta) / 2.0)), _LEAST_SIGNAL)  # 2η̄ − 1
    shown = log_scale + float(np.log(signal))
    parts = [np.log(weight) + _log_normal(shown, mean, scale) for weight, mean, scale in _SPREAD_PRIOR]
    return float(np.logaddexp.reduce(parts))


def _log_normal(x: float, mean: float, scale: float) -> float:
    return -0.5 * ((x - mean) / scale) ** 2 - float(np.log(scale))
