"""The MAP estimate of a model of the Crowd-BT family, its uncertainty, and the ranking made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.engines.local import limit_blas_threads
from crowdrank.inference.laplace import LaplaceApproximation, draw_from_covariance
from crowdrank.inference.newton import OptimizeResult
from crowdrank.models.base import Model, build_ranking, with_annotators
from crowdrank.models.crowd import hessian
from crowdrank.models.crowd.objective import Curvature, Objective
from crowdrank.results import Convergence, Ranking, Uncertainty

# Up to this many items the covariance of scores and annotators is computed exactly.
MAX_INVERTED_ITEMS = 2_000


@dataclass(frozen=True)
class MapEstimate:
    """Maximum a posteriori estimate with its Laplace approximation.

    Parameters
    ----------
    found : Found
        Result of the solver.
    objective : Objective
        The log posterior.
    comparisons : Comparisons
        The judgments.
    seed : int
        Seed of the draws behind rank intervals.
    """

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
        """Scores, logits and feature weights, without the annotator of the gold pairs."""
        people = max(1, len(self.comparisons.annotators))
        scores, logits, feature_weights = self.objective.layout.split(self.found.parameters)
        return scores, logits[:people], feature_weights[:people]

    @property
    def _exact(self) -> bool:
        return self.objective.layout.items <= MAX_INVERTED_ITEMS

    @cached_property
    def _marginal(self) -> tuple[FloatArray, FloatArray]:
        with limit_blas_threads(self.objective.layout.items):
            return self.curvature.marginal()

    def uncertainty(self) -> Uncertainty:
        """Laplace approximation of the scores: joint with the annotators, or given them if there are too many items."""
        items, centre = self.comparisons.items, self.comparisons.items.centre
        if self._exact:
            error, around = draw_from_covariance(self._marginal[0], centre, self.seed)
            known = "scores and annotators together"
        else:
            parts, shards = self.objective.layout.split(self.found.parameters), self.objective.shards
            curvature, _ = shards.map_and_sum(hessian.margin_curvature, *parts, self.objective.formula)
            prior = self.curvature.prior.curvature[: len(items)]
            laplace = LaplaceApproximation(
                curvature, self.curvature.derivatives.scores_fisher + prior, prior, items.starts
            )
            error, around = laplace.draw(self.seed)
            known = "scores, given the annotators"
        return Uncertainty(centre(self.parts[0]) + around, error, f"curvature at the optimum, of {known}")

    def logit_interval(self, through: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The logits and their 95 % intervals, transformed by an increasing function."""
        return interval(self.parts[1], self.annotator_errors[:, 0], through)

    @cached_property
    def annotator_errors(self) -> FloatArray:
        """Standard errors of each annotator's logit (first column) and feature weights."""
        people = len(self.parts[1])
        if self._exact:
            return self._marginal[1][:people]
        _, logits, feature_weights = self.objective.layout.split(1.0 / np.sqrt(self.curvature.diagonal))
        return np.column_stack((logits, feature_weights))[:people]


def build_crowd_ranking(model: Model, estimate: MapEstimate, estimates: Callable[[], Mapping[str, Any]]) -> Ranking:
    """The ranking of an estimate, with the annotators if they have names."""
    found = estimate.found
    ranking = build_ranking(
        model,
        estimate.comparisons,
        estimate.parts[0],
        log_likelihood=estimate.curvature.derivatives.value,
        convergence=Convergence(found.converged, found.steps, found.distance),
        measure=estimate.uncertainty,
    )
    return with_annotators(ranking, estimate.comparisons, estimates)


def interval(
    centre: FloatArray, error: FloatArray, through: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """An estimate and its 95 % interval, transformed by an increasing function."""
    return through(centre), through(centre - 1.96 * error), through(centre + 1.96 * error)
