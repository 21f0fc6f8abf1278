"""Graded response model (Samejima 1969) with annotators as raters: each shifts and stretches the thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Judgments, Ratings
from crowdrank.errors import SettingError
from crowdrank.inference.laplace_mixture import LaplaceMixture
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
from crowdrank.models.ratings.dawid_skene import GradeClasses, check_bins
from crowdrank.models.ratings.graded_response_layout import ParameterLayout
from crowdrank.models.ratings.graded_response_likelihood import leading_pattern, ordering_probability
from crowdrank.models.ratings.graded_response_mixture import GivenWidths, WidthSearch, mixture_of
from crowdrank.models.ratings.shrinkage import draw_count
from crowdrank.results import Convergence, Ranking, Uncertainty

# Fraction of seemingly reversed annotators from which solutions with their signs are tried, too.
_REVERSED_FRACTION = 0.2
# The part of very large data from which the prior widths are learnt.
_SAMPLED_ANNOTATORS, _SAMPLED_ITEMS = 120, 1_000
# Log weight of a mode without evidence: a finite number, because weights are compared by their differences.
_NO_EVIDENCE = -1e300
_WIDTHS = ("prior_scale", "leniency_scale", "stretch_scale", "discrimination_scale")

Width = float | Literal["auto"]


@dataclass(frozen=True, kw_only=True)
class GradedResponse(Model):
    """Ordinal regression of grades on item scores, with leniency, discrimination and stretch per annotator.

    Parameters
    ----------
    bins : int, default 10
        Number of classes, by quantiles, if there are more than ten distinct grades. Otherwise each grade is a class.
    prior_scale : float or "auto", default "auto"
        Standard deviation of the normal prior on scores, in units of the logistic noise. "auto" learns it.
    leniency_scale : float or "auto", default "auto"
        Standard deviation of the normal prior on the leniency b, around 0. "auto" learns it.
    discrimination_scale : float or "auto", default "auto"
        Standard deviation of the normal prior on the discrimination α, around 1. "auto" learns it.
    stretch_scale : float or "auto", default "auto"
        Standard deviation of the normal prior on the log stretch t of the thresholds, around 0. "auto" learns it.
    tolerance : float, default 1e-4
        Stop when √(gᵀH⁻¹g), the distance to the optimum in standard errors, is below this.
    max_steps : int, default 200
        Maximum number of Newton steps.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    Annotator k grades item i above class c if αₖ·sᵢ + bₖ + ε > exp(tₖ)·τ_c, with ε standard logistic. α is the
    discrimination (negative for a reversed annotator; 1 on average, which defines the unit of the scores), b the
    leniency, and t stretches the thresholds τ. The posterior is a mixture of normal (Laplace) approximations over a
    grid of prior widths, weighted by their evidence. Scores are its mean.

    Reference: Samejima (1969), Estimation of latent ability using a response pattern of graded scores.

    Examples
    --------
    >>> who = ["x"] * 3 + ["y"] * 3 + ["z"] * 3
    >>> grades = Ratings.of(["a", "b", "c"] * 3, [5, 3, 1, 4, 3, 2, 5, 4, 2], annotator=who)
    >>> GradedResponse().fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Ratings
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True

    bins: int = 10
    prior_scale: Width = "auto"
    leniency_scale: Width = "auto"
    discrimination_scale: Width = "auto"
    stretch_scale: Width = "auto"
    tolerance: float = 1e-4
    max_steps: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_solver(self)
        check_bins(self.bins)
        for name in _WIDTHS:
            width = getattr(self, name)
            if width != "auto" and (isinstance(width, str) or not 0 < width < np.inf):
                raise SettingError(f"{name} must be positive, or 'auto', got {width}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        ratings = require_kind(Ratings, judgments, self)
        check_connected(diagnose(ratings), has_prior=True)
        layout = ParameterLayout.of(ratings, GradeClasses.of(ratings, self.bins))
        widths = [getattr(self, name) for name in _WIDTHS]
        given = np.array([np.nan if width == "auto" else width for width in widths], float)
        if not layout.is_factored and np.isnan(given).any():
            given = self._widths_from_sample(layout, given, options)
        search = WidthSearch(options.engine.load(layout.shard), layout, given, self.tolerance, self.max_steps)
        posterior = GradedPosterior(ratings, self._points(search, layout), self.seed)
        found = posterior.best.optimum
        ranking = build_ranking(
            self,
            ratings,
            posterior.mixture.mean,
            parameters=posterior.widths,
            log_likelihood=posterior.best.curvature.log_likelihood,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=posterior.uncertainty,
        )
        return with_annotators(ranking, ratings, posterior.estimates)

    def _points(self, search: WidthSearch, layout: ParameterLayout) -> list[tuple[float, GivenWidths]]:
        """The grid around the estimate from identical annotators.

        Where many annotators seem reversed, also from their signs and from the opposite ones. If these fit better, both
        are kept with their weights: the prior that discriminations are positive is all that tells them apart.
        """
        found = self._maximize(search, layout.start)
        scores, loadings = leading_pattern(layout.shard, layout.thresholds)
        if found[0][0] == _NO_EVIDENCE or np.mean(loadings < 0) < _REVERSED_FRACTION:
            return found
        signed: list[tuple[float, GivenWidths]] = []
        for sign in (1.0, -1.0):
            turned = replace(layout, signs=np.where(loadings < 0, -sign, sign))
            start = turned.start
            start[: layout.items] = sign * scores
            signed += self._maximize(replace(search, layout=turned), start)
        # They must be better by a margin, so that rounding never decides between equally good modes.
        return signed if max(w for w, _ in signed) > max(w for w, _ in found) + 1e-3 else found

    def _maximize(self, search: WidthSearch, start: FloatArray) -> list[tuple[float, GivenWidths]]:
        centre = search.estimate(start)
        if not centre.optimum.converged or not search.layout.is_factored:
            return [(_NO_EVIDENCE, centre)]
        return search.explore(centre)

    def _widths_from_sample(self, layout: ParameterLayout, given: FloatArray, options: FitOptions) -> FloatArray:
        """The widths with the largest weight for part of the ratings: many ratings determine them well enough."""
        part = layout.sample(_SAMPLED_ANNOTATORS, _SAMPLED_ITEMS)
        search = WidthSearch(options.engine.load(part.shard), part, given, self.tolerance, self.max_steps)
        best = max(self._points(search, part), key=lambda point: point[0])[1]
        return np.array(best.scales)


@dataclass(frozen=True)
class GradedPosterior:
    """Posterior of scores and annotators, from modes at several prior widths with their log weights."""

    ratings: Ratings
    points: list[tuple[float, GivenWidths]]
    seed: int

    @cached_property
    def mixture(self) -> LaplaceMixture:
        return mixture_of(self.points, self.ratings.items.starts)

    @cached_property
    def best(self) -> GivenWidths:
        """The mode at the prior widths with the largest weight."""
        return max(self.points, key=lambda point: point[0])[1]

    @property
    def widths(self) -> dict[str, float]:
        """Posterior means of the prior widths."""
        means = self.mixture.weights @ np.array([point.scales for _, point in self.points])
        return dict(zip(_WIDTHS, means.tolist(), strict=True))

    def uncertainty(self) -> Uncertainty:
        """Standard errors and joint draws of the scores."""
        count = draw_count(len(self.ratings.items))
        if self.best.layout.is_factored:
            draws = self.mixture.draw(count, self.seed)
            method = "posterior of scores and annotators, prior widths integrated out"
            return Uncertainty(draws, draws.std(axis=0), method, sampled=True)
        error = np.sqrt(self.best.curvature.variances[: len(self.ratings.items)])
        noise = error * np.random.default_rng(self.seed).standard_normal((count, len(error)))
        centre = self.ratings.items.centre
        method = "curvature at the optimum, of each score, with its annotators unknown"
        return Uncertainty(centre(self.best.scores) + centre(noise), error, method, sampled=True)

    def estimates(self) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
        """Quality and leniency of the annotators, with 95 % intervals.

        Quality is the probability of ordering two items correctly whose scores differ by one standard deviation.
        """
        groups, x = self.best.layout.groups, self.best.optimum.parameters
        half_width = 1.96 * np.sqrt(self.best.curvature.variances)
        leniency, leniency_width = x[groups[1] : groups[2]], half_width[groups[1] : groups[2]]
        discrimination, width = self.best.layout.discrimination(x), half_width[groups[3] : groups[4]]
        gap = float(np.std(self.best.scores))
        quality, low, high = (ordering_probability(gap * (discrimination + sign * width)) for sign in (0, -1, 1))
        return {
            "quality": (quality, low, high),
            "leniency": (leniency, leniency - leniency_width, leniency + leniency_width),
        }
