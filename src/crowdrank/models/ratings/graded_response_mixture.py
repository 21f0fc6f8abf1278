"""Learning the prior widths of the graded response model, and integrating over those that remain uncertain.

The widths of leniency and stretch, of which there is one effect per annotator, are estimated. The width of the scores
and that of discrimination decide together how much of the disagreement is signal, and few data leave both open. They
are integrated on a grid around the estimate: a Laplace approximation at each point, mixed by evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines import ShardedData
from crowdrank.inference.laplace_mixture import LaplaceComponent, LaplaceMixture
from crowdrank.inference.newton import OptimizeResult
from crowdrank.models.ratings.graded_response_layout import ParameterLayout, PriorScales
from crowdrank.models.ratings.graded_response_posterior import LogPosterior, NegativeHessian

# Half-normal priors on the widths, as standard deviations, in the order of `PriorScales`; the scores' is half-Cauchy.
_HYPERPRIOR = np.array([2.0, 1.5, 0.4, 0.6])
_FIRST_SCALES = PriorScales(1.0, 0.7, 0.2, 0.35)
# Newton-like updates of the widths: a fixed number, so that rounding never decides how many are made.
_UPDATES = 5
_SMALLEST_WIDTH, _LARGEST_WIDTH = 0.04, 20.0
# Grid: the step in the log width of the scores, times the square root of their number, and discrimination widths.
_ROW_STEP = 1.8
_DISCRIMINATION = np.array([0.15, 0.35, 0.65, 1.05])
# Points with less than exp(−_NEGLIGIBLE) of the weight of the best one end the walk in their direction, and a column
# that starts with less than exp(−_HOPELESS) is left at once.
_NEGLIGIBLE, _HOPELESS = 4.0, 20.0


@dataclass(frozen=True)
class GivenWidths:
    """The posterior mode for one value of the prior widths."""

    scales: PriorScales
    optimum: OptimizeResult
    layout: ParameterLayout

    @property
    def curvature(self) -> NegativeHessian:
        """The curvature of the normal approximation at the mode."""
        assert isinstance(self.optimum.evaluation.curvature, NegativeHessian)
        return self.optimum.evaluation.curvature.expected

    @property
    def scores(self) -> FloatArray:
        return self.optimum.parameters[: self.layout.items]

    @cached_property
    def log_evidence(self) -> float:
        """Laplace approximation of the log evidence, up to a constant. One discrimination follows from the others."""
        widths = np.log(self.layout.prior_scales(self.scales))
        value = self.optimum.evaluation.value - float(np.sum(widths)) + float(np.log(self.scales.discrimination))
        return value - 0.5 * self.curvature.log_determinant


@dataclass(frozen=True)
class WidthSearch:
    """Finds the prior widths that are not given.

    Parameters
    ----------
    held : ShardedData
        The shards of ratings.
    layout : ParameterLayout
        Positions of the parameters.
    given : array
        The widths in the order of `PriorScales`; NaN where a width is to be fitted.
    tolerance : float
        Tolerance of Newton's method.
    max_steps : int
        Maximum number of Newton steps at each value of the widths.
    """

    held: ShardedData
    layout: ParameterLayout
    given: FloatArray
    tolerance: float
    max_steps: int

    def at(self, widths: FloatArray, start: FloatArray) -> GivenWidths:
        """The mode at given widths."""
        scales = PriorScales(*np.where(np.isnan(self.given), widths, self.given).tolist())
        log_posterior = LogPosterior(self.held, self.layout, scales)
        return GivenWidths(scales, log_posterior.maximise(start, self.tolerance, self.max_steps), self.layout)

    def estimate(self, start: FloatArray) -> GivenWidths:
        """Learn the widths from a starting point; that of discrimination is left to the grid.

        At the best width σ of n effects x with posterior variances v, Σ(x² + v)/σ² − n + d log p(σ)/d log σ = 0. It is
        solved by secant steps in log σ, within the slopes that an EM step and a full-information step would have.
        """
        found = self.at(np.array(_FIRST_SCALES), start)
        fitted = np.isnan(self.given) & np.array([True, True, True, False])
        count = np.diff(self.layout.groups)[:4]
        before: tuple[FloatArray, FloatArray] | None = None
        for _ in range(_UPDATES if fitted.any() else 0):
            if not found.optimum.converged:
                break
            log_width = np.log(np.array(found.scales))
            slope = self._slope(found, count)
            steepness = 2.0 * count + 2.0
            if before is not None:
                moved = np.where(np.abs(log_width - before[0]) > 1e-9, log_width - before[0], np.inf)
                steepness = np.clip((before[1] - slope) / moved, 0.2 * count + 0.5, steepness)
            before = (log_width, slope)
            step = np.where(fitted, np.clip(slope / steepness, -1.0, 1.0), 0.0)
            widths = np.clip(np.exp(log_width + step), _SMALLEST_WIDTH, _LARGEST_WIDTH)
            found = self.at(widths, found.optimum.parameters)
        return found

    def _slope(self, found: GivenWidths, count: FloatArray) -> FloatArray:
        """Derivative of the log evidence and the log hyperprior in the log widths."""
        x, groups = found.optimum.parameters, self.layout.groups
        squares = x**2 + found.curvature.variances
        total = np.array([np.sum(squares[a:b]) for a, b in pairwise(groups[:5])])
        widths = np.array(found.scales)
        relative = (widths / _HYPERPRIOR) ** 2
        prior = 1.0 - np.where([True, False, False, False], 2 * relative / (1 + relative), relative)
        return np.asarray(total / widths**2 - count + prior)

    def explore(self, centre: GivenWidths) -> list[tuple[float, GivenWidths]]:
        """Log weight and mode at the points of the grid that matter, starting from the estimate."""
        several = np.isnan(self.given[3]) and self.layout.annotators > 1
        columns = _DISCRIMINATION if several else np.array(centre.scales)[3:]
        middle = int(np.argmin(np.abs(np.log(columns / centre.scales.discrimination))))
        found: list[tuple[float, GivenWidths]] = []
        for side in (range(middle, len(columns)), range(middle - 1, -1, -1)):
            start, row = centre, 0
            for column in side:
                points = self._column(start, centre.scales.score, row, float(columns[column]), _best(found))
                found += points.values()
                row = max(points, key=lambda n: points[n][0])
                start = points[row][1]
                if points[row][0] < _best(found) - _NEGLIGIBLE:
                    break
        return found

    def _column(
        self, start: GivenWidths, score: float, row: int, discrimination: float, best: float
    ) -> dict[int, tuple[float, GivenWidths]]:
        """The points of one column of the grid, where the rows are score widths, walking up and down from a row."""
        step = float(np.clip(_ROW_STEP * self.layout.items**-0.5, 0.05, 0.5))
        widths = np.array(start.scales)
        found: dict[int, tuple[float, GivenWidths]] = {}

        def evaluate(n: int, x: FloatArray) -> tuple[float, GivenWidths]:
            widths[0], widths[3] = score * np.exp(step * n), discrimination
            point = self.at(widths, x)
            found[n] = (point.log_evidence + _log_hyperprior(point.scales), point)
            return found[n]

        weight, first = evaluate(row, start.optimum.parameters)
        if weight < best - _HOPELESS or not np.isnan(self.given[0]):
            return found
        for direction in (1, -1):
            n, x = row + direction, first.optimum.parameters
            while _SMALLEST_WIDTH < score * np.exp(step * n) < _LARGEST_WIDTH:
                weight, point = evaluate(n, x)
                if weight < _best([*found.values()], best) - _NEGLIGIBLE and weight < found[n - direction][0]:
                    break
                n, x = n + direction, point.optimum.parameters
        return found


def _best(points: list[tuple[float, GivenWidths]], otherwise: float = -np.inf) -> float:
    """The largest log weight."""
    return max((weight for weight, _ in points), default=otherwise)


def _log_hyperprior(scales: PriorScales) -> float:
    """Log density of the logarithms of the widths of scores and discrimination."""
    score, discrimination = scales.score / _HYPERPRIOR[0], scales.discrimination / _HYPERPRIOR[3]
    return float(np.log(score) - np.log1p(score**2) + np.log(discrimination) - 0.5 * discrimination**2)


def mixture_of(points: list[tuple[float, GivenWidths]], starts: IntArray) -> LaplaceMixture:
    """The posterior of the scores, centred in each query, with the widths integrated out."""

    def centred(rows: FloatArray) -> FloatArray:
        means: FloatArray = np.add.reduceat(rows, starts[:-1], axis=-1) / np.diff(starts)
        return np.asarray(rows - np.repeat(means, np.diff(starts), axis=-1))

    components = []
    for weight, point in points:

        def draw_around(rng: np.random.Generator, count: int, point: GivenWidths = point) -> FloatArray:
            return centred(point.curvature.draw(rng, count))

        components.append(LaplaceComponent(weight, centred(point.scores), np.zeros(len(point.scores)), draw_around))
    return LaplaceMixture(components)
