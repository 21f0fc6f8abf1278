"""The highest point found, and what it says of items and annotators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.engines.threads import limit_blas_threads
from crowdrank.inference.laplace import LaplaceApproximation, draw_from_covariance
from crowdrank.inference.newton import OptimizeResult
from crowdrank.models.base import Model, build_ranking, with_annotators
from crowdrank.models.crowd import likelihood
from crowdrank.models.crowd.objective import Curvature, Objective
from crowdrank.results import Convergence, Ranking, Uncertainty

LARGEST_INVERTED = 2_000


@dataclass(frozen=True)
class Summit:
    """Where a climb ended, with the judgments it was over."""

    found: OptimizeResult
    objective: Objective
    comparisons: Comparisons
    seed: int

    @property
    def curvature(self) -> Curvature:
        assert isinstance(self.found.evaluation.curvature, Curvature)
        return self.found.evaluation.curvature

    @cached_property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, gates and pulls; of the annotators who have names, or of the one nameless."""
        people = max(1, len(self.comparisons.annotators))
        scores, gates, pulls = self.objective.layout.split(self.found.parameters)
        return scores, gates[:people], pulls[:people]

    @property
    def _exact(self) -> bool:
        return self.objective.layout.items <= LARGEST_INVERTED

    @cached_property
    def _marginal(self) -> tuple[FloatArray, FloatArray]:
        with limit_blas_threads(self.objective.layout.items):
            return self.curvature.marginal()

    def measure(self) -> Uncertainty:
        """Errors of the scores, those of the annotators counted in where the items are not too many."""
        items, centre = self.comparisons.items, self.comparisons.items.centre
        if self._exact:
            error, around = draw_from_covariance(self._marginal[0], centre, self.seed)
            known = "scores and annotators together"
        else:
            parts = self.objective.layout.split(self.found.parameters)
            bends, _ = self.objective.held.map_and_sum(likelihood.margins, *parts, self.objective.formula)
            prior = self.curvature.prior.bend[: len(items)]
            tied = LaplaceApproximation(bends, self.curvature.slopes.scores_bend + prior, prior, items.starts)
            error, around = tied.draw(self.seed)
            known = "scores, given the annotators"
        return Uncertainty(centre(self.parts[0]) + around, error, f"curvature at the optimum, of {known}")

    def of_gates(self, through: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The gates and their intervals, carried through a function that rises."""
        return interval(self.parts[1], self.errors_of_annotators[:, 0], through)

    @cached_property
    def errors_of_annotators(self) -> FloatArray:
        """Of each annotator's gate (first column) and pulls."""
        people = len(self.parts[1])
        if self._exact:
            return self._marginal[1][:people]
        _, gates, pulls = self.objective.layout.split(1.0 / np.sqrt(self.curvature.diagonal))
        return np.column_stack((gates, pulls))[:people]


def build_crowd_ranking(model: Model, summit: Summit, estimates: Callable[[], Mapping[str, Any]]) -> Ranking:
    """The result, with the annotators where they have names."""
    found = summit.found
    ranking = build_ranking(
        model,
        summit.comparisons,
        summit.parts[0],
        log_likelihood=summit.curvature.slopes.value,
        convergence=Convergence(found.converged, found.steps, found.distance),
        measure=summit.measure,
    )
    return with_annotators(ranking, summit.comparisons, estimates)


def interval(
    centre: FloatArray, error: FloatArray, through: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """An estimate and its 95 % interval, carried through a function that rises."""
    return through(centre), through(centre - 1.96 * error), through(centre + 1.96 * error)
