"""Integration over the hyperparameters of Crowd-BT where data are few: a lattice, explored from its best point.

If a crowd and its mirror image (all scores negated, all annotators reversed) are both plausible, both are explored.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.crowd.hyperparameters import IMPLAUSIBLE, Coordinates, Explorer, Mode, coordinates

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
        first_reading = self._flood(best.scores, self._first_place())
        middle = max(first_reading, key=lambda place: first_reading[place].log_weight)
        if (reflected := self.reflected(first_reading[middle])) is not None:
            first_reading = self._flood(reflected.scores, self._first_place())
            middle = max(first_reading, key=lambda place: first_reading[place].log_weight)
        top = first_reading[middle]
        found = list(first_reading.values())
        reversed_mode = self.mode(coordinates(top.hyper), -top.scores)
        if top.distance_to(reversed_mode.scores) > 1.0 and reversed_mode.log_weight > top.log_weight - IMPLAUSIBLE:
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
        mode = self.mode(self._lattice_point(place), start)
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
        given = coordinates(self.objective.hyper)
        free = _ORIGIN + _STEPS * np.array(place)
        a, b, c = (given[axis] if self.fixed[axis] else float(free[axis]) for axis in range(3))
        return a, b, c

    def _neighbours(self, place: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
        for axis in self.free:
            for change in (-1, 1):
                moved = list(place)
                moved[axis] += change
                if _LOWEST[axis] <= moved[axis] <= self._highest[axis]:
                    yield moved[0], moved[1], moved[2]


def _extrapolate(found: dict[tuple[int, ...], Mode], place: tuple[int, ...], neighbour: tuple[int, ...]) -> FloatArray:
    """Starting scores at a neighbour of a lattice point, from those behind it if they are known."""
    behind = found.get(tuple(2 * a - b for a, b in zip(place, neighbour, strict=True)))
    scores = found[place].scores
    return scores if behind is None else 2.0 * scores - behind.scores
