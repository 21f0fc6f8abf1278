"""Samejima 1969's graded response, annotators in place of questions: thresholds that each shifts and stretches."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Judgments, Ratings
from crowdrank.engines import ShardedData
from crowdrank.engines.threads import limit_blas_threads
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.curvature import DAMPINGS, DampedCurvature
from crowdrank.inference.laplace import draw_from_covariance
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize
from crowdrank.models.base import (
    FitOptions,
    Model,
    build_ranking,
    check_connected,
    check_solver,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.ratings import graded_response_likelihood as likelihood
from crowdrank.models.ratings.grade_classes import Classes, check_bins
from crowdrank.models.ratings.graded_response_likelihood import Graded, chance_to_order
from crowdrank.models.ratings.shrinkage import normal_draws
from crowdrank.results import Convergence, Ranking, Uncertainty

_LARGEST_FACTORED = 300
_LARGEST_INVERTED = 2_000
# Cells of the table of how annotators move with scores, up to which errors count in that annotators are unknown.
_MOST_CELLS = 20_000_000
_LONGEST_STEP = 2.0
# The share of reversed annotators from which the other way up may be as likely.
_DOUBTFUL = 0.2
# Thresholds may lie anywhere: they are many grades' matter.
_THRESHOLDS = 10.0


@dataclass(frozen=True, kw_only=True)
class GradedResponse(Model):
    """Scores seen with noise and graded by thresholds that each annotator shifts and stretches.

    k grades i above c when αₖ·sᵢ + bₖ + noise > exp(tₖ)·τ_c: α is sharpness, b leniency, t how far k pulls grades
    apart.
    """

    reads: ClassVar[type] = Ratings
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True

    bins: int = 10
    """Classes that grades are put into, by quantiles, where there are more than ten different ones."""
    prior_scale: float = 1.0
    """Standard deviation of the normal prior on scores, in units of the noise."""
    leniency_scale: float = 1.0
    """Standard deviation of the normal prior on b, around 0."""
    sharpness_scale: float = 0.7
    """Standard deviation of the normal prior on α, around 1."""
    stretch_scale: float = 0.3
    """Standard deviation of the normal prior on t, around 0."""
    tolerance: float = 1e-4
    """Stop when no combination of parameters is further than this from the optimum, in standard errors."""
    max_steps: int = 200
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        check_solver(self)
        check_bins(self.bins)
        for name in ("prior_scale", "leniency_scale", "sharpness_scale", "stretch_scale"):
            if not 0 < getattr(self, name) < np.inf:
                raise SettingError(f"{name} must be positive, got {getattr(self, name)}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        ratings = require_kind(Ratings, judgments, self)
        check_connected(diagnose(ratings), has_prior=True)
        layout = Layout.of(ratings, Classes.of(ratings, self.bins))
        objective = Objective(options.engine.load(layout.graded), layout, self)
        summit = Summit(self._highest(objective, layout), layout, ratings, self.seed)
        found = summit.found
        ranking = build_ranking(
            self,
            ratings,
            summit.scores,
            log_likelihood=summit.curvature.value,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=summit.measure,
        )
        return with_annotators(ranking, ratings, summit.estimates)

    def _highest(self, objective: Objective, layout: Layout) -> OptimizeResult:
        """From annotators who are all alike; where many turn out reversed, from the other way up, too."""

        def go(start: FloatArray) -> OptimizeResult:
            return maximize(
                objective, start, tolerance=self.tolerance, max_steps=self.max_steps, max_step=_LONGEST_STEP
            )

        found = go(layout.start)
        if np.mean(layout.sharpness(found.parameters) < 0) < _DOUBTFUL:
            return found
        other = go(layout.mirrored(found.parameters))
        # equal summits are one: the first stands, so that rounding never chooses
        return (
            other
            if other.evaluation.value > found.evaluation.value + 1e-3 + 1e-7 * abs(found.evaluation.value)
            else found
        )


@dataclass(frozen=True)
class Layout:
    """Where parameters lie in one vector: scores, leniencies, stretches, sharpnesses less one, thresholds."""

    graded: Graded
    items: int
    annotators: int
    thresholds: FloatArray
    """Where they start."""

    @classmethod
    def of(cls, ratings: Ratings, classes: Classes) -> Layout:
        items, annotators = len(ratings.items), max(1, len(ratings.annotators))
        own = ratings.items.query[ratings.item] if classes.own else np.zeros(len(ratings), np.int64)
        # the thresholds of one scale stand side by side, one below each class but the lowest that was used
        cells, code = np.unique(own * np.int64(classes.size) + classes.code, return_inverse=True)
        scale = cells // classes.size
        begins = np.append(True, scale[1:] != scale[:-1])
        if begins.all():
            raise DataError("All grades are alike: they order no two items.")
        number = np.bincount(code, ratings.weights)
        first = items + 3 * annotators
        place = first + np.cumsum(~begins) - 1
        top = np.append(begins[1:], True)
        who = np.zeros(len(ratings), np.int64) if ratings.annotator is None else ratings.annotator.astype(np.int64)
        graded = Graded(
            ratings.item.astype(np.int64),
            items + who,
            np.where(begins, first, place)[code],
            np.where(top, first, place + 1)[code],
            begins[code],
            top[code],
            np.asarray(ratings.weights),
            annotators,
        )
        below = np.cumsum(number) - number
        below -= np.maximum.accumulate(np.where(begins, below, 0.0))
        share = (below / np.bincount(scale, number)[scale])[~begins]
        return cls(graded, items, annotators, np.log(share / (1 - share)))

    @property
    def start(self) -> FloatArray:
        return np.concatenate((np.zeros(self.items + 3 * self.annotators), self.thresholds))

    def sharpness(self, x: FloatArray) -> FloatArray:
        """α of the annotators."""
        return 1.0 + x[self.items + 2 * self.annotators : self.items + 3 * self.annotators]

    def mirrored(self, x: FloatArray) -> FloatArray:
        """Scores and sharpnesses with their signs turned: the same likelihood, but for the priors."""
        turned = x.copy()
        turned[: self.items] *= -1.0
        turned[self.items + 2 * self.annotators : self.items + 3 * self.annotators] = -self.sharpness(x) - 1.0
        return turned

    def scales(self, model: GradedResponse) -> FloatArray:
        each = [model.leniency_scale, model.stretch_scale, model.sharpness_scale]
        return np.concatenate(
            (
                np.full(self.items, model.prior_scale),
                np.repeat(each, self.annotators),
                np.full(len(self.thresholds), _THRESHOLDS),
            )
        )


@dataclass(frozen=True)
class Curvature:
    """The curvature of the grades' likelihood and of the priors at one point."""

    held: ShardedData
    x: FloatArray
    value: float
    """log P of the grades alone."""
    prior: FloatArray

    @cached_property
    def _parts(self) -> tuple[Any, FloatArray]:
        from scipy.sparse import diags_array

        matrix, steady = self.held.sum(likelihood.curvature, self.x)
        return (matrix + diags_array(self.prior)).tocsr(), steady + self.prior

    @property
    def matrix(self) -> Any:
        return self._parts[0]

    def held_up(self, damping: float) -> Any:
        """The same with more on its diagonal, for points that are no summit."""
        from scipy.sparse import diags_array

        matrix, steady = self._parts
        return matrix + diags_array(damping * steady)

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        matrix, diagonal = self._parts
        small = len(vector) <= _LARGEST_FACTORED
        return DampedCurvature(lambda v: matrix @ v, diagonal, matrix.toarray if small else None).solve(
            vector, tolerance
        )


@dataclass(frozen=True)
class Objective:
    """log P(grades | parameters) + log prior."""

    held: ShardedData
    layout: Layout
    model: GradedResponse

    @cached_property
    def _precision(self) -> FloatArray:
        return self.layout.scales(self.model) ** -2.0

    def __call__(self, x: FloatArray) -> Evaluation:
        value, gradient = self.held.sum(likelihood.slopes, x)
        pulled = self._precision * x
        curvature = Curvature(self.held, x, value, self._precision)
        return Evaluation(value - 0.5 * float(x @ pulled), gradient - pulled, curvature)


@dataclass(frozen=True)
class Summit:
    """Where the climb ended, and what it says of items and annotators."""

    found: OptimizeResult
    layout: Layout
    ratings: Ratings
    seed: int

    @property
    def curvature(self) -> Curvature:
        assert isinstance(self.found.evaluation.curvature, Curvature)
        return self.found.evaluation.curvature

    @property
    def scores(self) -> FloatArray:
        return self.found.parameters[: self.layout.items]

    @property
    def _exact(self) -> bool:
        items, others = self.layout.items, len(self.found.parameters) - self.layout.items
        return items <= _LARGEST_INVERTED and items * others <= _MOST_CELLS

    @cached_property
    def _marginal(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of the scores, and standard errors of annotators' parameters, each with the others unknown.

        A grade tells of one item, so scores alone have a diagonal; all else is eliminated from it.
        """
        from scipy.sparse.linalg import splu

        items = self.layout.items
        for damping in DAMPINGS:
            matrix = self.curvature.held_up(damping)
            across = matrix[items:, :items].toarray()
            through = splu(matrix[items:, items:].tocsc()).solve(across)
            rest = matrix[:items, :items].toarray() - across.T @ through
            with limit_blas_threads(items), suppress(np.linalg.LinAlgError):
                np.linalg.cholesky(rest)  # which fails where it bends the wrong way
                break
        with limit_blas_threads(items):
            covariance = np.linalg.inv(rest)
        more = np.sum((through @ covariance) * through, axis=1)[: 3 * self.layout.annotators]
        return covariance, np.sqrt(self._own + more)

    @property
    def _own(self) -> FloatArray:
        """Variances of annotators' parameters, given scores and thresholds: those of one annotator hang together."""
        items, people = self.layout.items, self.layout.annotators
        theirs = self.curvature.matrix[items : items + 3 * people, items : items + 3 * people]
        blocks = np.empty((people, 3, 3))
        for a in range(3):
            for b in range(a, 3):
                blocks[:, a, b] = blocks[:, b, a] = theirs.diagonal((b - a) * people)[a * people : (a + 1) * people]
        return np.asarray(np.linalg.inv(blocks)[:, range(3), range(3)].T.ravel())

    def measure(self) -> Uncertainty:
        centre = self.ratings.items.centre
        if self._exact:
            error, around = draw_from_covariance(self._marginal[0], centre, self.seed)
            known = "scores and annotators together"
            return Uncertainty(centre(self.scores) + around, error, f"curvature at the optimum, of {known}")
        error = 1.0 / np.sqrt(self.curvature.matrix.diagonal()[: self.layout.items])
        return normal_draws(
            centre(self.scores), error, "curvature at the optimum, of scores, given the annotators", self.seed
        )

    def estimates(self) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
        """Quality is the chance to see which of two items is better that lie a standard deviation of scores apart."""
        items, people = self.layout.items, self.layout.annotators
        lenient, _, sharper = self.found.parameters[items : items + 3 * people].reshape(3, people)
        errors = self._marginal[1] if self._exact else np.sqrt(self._own)
        of_bias, _, of_sharpness = 1.96 * errors.reshape(3, people)
        apart = float(np.std(self.scores))
        seen, low, high = (chance_to_order(apart * (1 + sharper + sign * of_sharpness)) for sign in (0, -1, 1))
        return {"quality": (seen, low, high), "leniency": (lenient, lenient - of_bias, lenient + of_bias)}
