"""Graded response model (Samejima 1969) with annotators as raters: each shifts and stretches the thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Judgments, Ratings
from crowdrank.engines import ShardedData
from crowdrank.errors import SettingError
from crowdrank.inference.laplace import LaplaceMixture
from crowdrank.inference.newton import OptimizeResult, maximize
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
from crowdrank.models.ratings.graded_response_likelihood import with_pattern
from crowdrank.models.ratings.graded_response_posterior import (
    GradedResponseLaplace,
    LogPosterior,
    ParameterLayout,
    PriorScales,
)
from crowdrank.results import Convergence, Ranking, Uncertainty

_MAX_STEP_NORM = 2.0
# Fraction of reversed annotators from which the solution with opposite sign is tried, too.
_REVERSED_FRACTION = 0.2
# Prior on the logarithm of the spread of scores: normal, and the range and number of its values that are tried.
_SPREAD_PRIOR, _SPREAD_RANGE = (-0.9, 1.2), (0.03, 30.0)
_MAX_ROUNDS, _SETTLED = 15, 0.03
# The round in which variances are computed with all other parameters unknown, if there are many items.
_MARGINAL_ROUND = 2
# Distance to the optimum, in standard errors, that suffices while the spreads are sought.
_ROUGH = 0.05
# Items up to which the spread is integrated out; beyond, the best value is taken.
_LARGEST_INTEGRATED = 500
_NEGLIGIBLE = 0.03
# The discrimination varies as if this many more annotators had varied by this much.
_DISCRIMINATION_COUNT, _DISCRIMINATION_SCALE = 4.0, 0.4
_WIDE_DISCRIMINATION_SCALE = 0.7
_ESTIMATED = ("prior_scale", "discrimination_scale")
_DRAWS = 1000


@dataclass(frozen=True, kw_only=True)
class GradedResponse(Model):
    """Ordinal regression of grades on item scores, with leniency, discrimination and stretch per annotator.

    Parameters
    ----------
    bins : int, default 10
        Number of classes, by quantiles, if there are more than ten distinct grades. Otherwise each grade is a class.
    prior_scale : float or "auto", default "auto"
        Standard deviation of the normal prior on scores, in units of the logistic noise. "auto" learns it from the data
        and averages over its posterior.
    leniency_scale : float, default 1.0
        Standard deviation of the normal prior on the leniency b, around 0.
    discrimination_scale : float or "auto", default "auto"
        Standard deviation of the normal prior on the discrimination α, around 1. "auto" learns it from the data.
    stretch_scale : float, default 0.3
        Standard deviation of the normal prior on the log stretch t of the thresholds, around 0.
    tolerance : float, default 1e-4
        Stop when √(gᵀH⁻¹g), the distance to the optimum in standard errors, is below this.
    max_steps : int, default 200
        Maximum number of Newton steps.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    Annotator k grades item i above class c if αₖ·sᵢ + bₖ + ε > exp(tₖ)·τ_c, with ε standard logistic. α is the
    discrimination (negative for a reversed annotator), b the leniency, and t stretches the thresholds τ. The estimate
    is the posterior mode, and uncertainty is the normal (Laplace) approximation there. The spread of scores is found by
    its evidence; up to 500 items it is integrated out.

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
    prior_scale: float | Literal["auto"] = "auto"
    leniency_scale: float = 1.0
    discrimination_scale: float | Literal["auto"] = "auto"
    stretch_scale: float = 0.3
    tolerance: float = 1e-4
    max_steps: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_solver(self)
        check_bins(self.bins)
        for name in ("prior_scale", "leniency_scale", "discrimination_scale", "stretch_scale"):
            value = getattr(self, name)
            if name in _ESTIMATED and value == "auto":
                continue
            if isinstance(value, str) or not 0 < value < np.inf:
                raise SettingError(f"{name} must be positive, got {value!r}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        ratings = require_kind(Ratings, judgments, self)
        check_connected(diagnose(ratings), has_prior=True)
        layout = ParameterLayout.of(ratings, GradeClasses.of(ratings, self.bins))
        held, _ = options.engine.load(layout.shard).map_and_sum(with_pattern, len(layout.start))
        fitter = SpreadFitter(self, held, layout, ratings)
        best, width = fitter.best()
        if self.prior_scale != "auto" or len(ratings.items) > _LARGEST_INTEGRATED or not best.approximation.is_joint:
            return self._ranking(ratings, [best], None)
        fits = fitter.around(best, width)
        components = [fit.approximation.component(fit.log_scale, _log_prior(fit.log_scale)) for fit in fits]
        return self._ranking(ratings, fits, LaplaceMixture(components))

    def _ranking(self, ratings: Ratings, fits: list[SpreadFit], mixture: LaplaceMixture | None) -> Ranking:
        weights = np.ones(1) if mixture is None else mixture.weights
        best = fits[int(np.argmax(weights))].approximation
        found = max((fit.approximation.optimum for fit in fits), key=lambda one: (not one.converged, one.distance))
        scale = float(np.exp(weights @ [fit.log_scale for fit in fits]))

        def measure() -> Uncertainty:
            if mixture is None:
                return best.uncertainty()
            method = "Laplace approximation of scores and annotators jointly, averaged over the spread of scores"
            return Uncertainty(mixture.draw(_DRAWS, self.seed), mixture.std_error, method, sampled=True)

        ranking = build_ranking(
            self,
            ratings,
            best.scores if mixture is None else mixture.mean,
            parameters={"prior_scale": scale, "discrimination_scale": fits[0].discrimination},
            log_likelihood=best.hessian.log_likelihood,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=measure,
        )
        return with_annotators(ranking, ratings, best.estimates)


class SpreadFit(NamedTuple):
    """The optimum at one value of the spreads of scores and of discrimination."""

    log_scale: float
    discrimination: float
    approximation: GradedResponseLaplace


@dataclass(frozen=True)
class SpreadFitter:
    """Fits the model at given spreads of the scores, and finds the spreads that matter."""

    model: GradedResponse
    held: ShardedData
    layout: ParameterLayout
    ratings: Ratings

    def fit(
        self, log_scale: float, discrimination: float, start: FloatArray | None = None, tolerance: float = 0.0
    ) -> SpreadFit:
        """The posterior mode at given spreads, from given parameters or from identical annotators."""
        model = self.model
        scales = PriorScales(float(np.exp(log_scale)), model.leniency_scale, model.stretch_scale, discrimination)
        found = self._maximise(LogPosterior(self.held, self.layout, scales), start, max(tolerance, model.tolerance))
        approximation = GradedResponseLaplace(found, self.layout, self.ratings, model.seed)
        return SpreadFit(log_scale, discrimination, approximation)

    def best(self) -> tuple[SpreadFit, float]:
        """The most probable spreads, as in `_with_best_spreads`.

        The spread of scores is found by MacKay's (1992) fixed point, that of discrimination by EM. Both belong
        together: only the products of scores and discriminations are seen in the grades.
        """
        scale, discrimination = self.model.prior_scale, self.model.discrimination_scale
        log_scale = 0.0 if isinstance(scale, str) else float(np.log(scale))
        if not isinstance(discrimination, str):
            here = self.fit(log_scale, discrimination)
            if not isinstance(scale, str):
                return here, 0.0
            return self._with_best_spreads(here)
        found = self._with_best_spreads(self.fit(log_scale, _DISCRIMINATION_SCALE, self.layout.start, _ROUGH))
        # with a narrow prior, a crowd in which many are reversed looks random
        wide = self.fit(log_scale, _WIDE_DISCRIMINATION_SCALE, tolerance=_ROUGH)
        reversed_share = np.mean(self.layout.discrimination(wide.approximation.optimum.parameters) < 0)
        if reversed_share >= _REVERSED_FRACTION and wide.approximation.is_joint:
            found = max(found, self._with_best_spreads(wide), key=lambda one: self._log_evidence(one[0]))
        return found

    def _log_evidence(self, fit: SpreadFit) -> float:
        """Log evidence of both spreads."""
        return _log_weight(fit) - self.layout.annotators * float(np.log(fit.discrimination))

    def _with_best_spreads(self, here: SpreadFit) -> tuple[SpreadFit, float]:
        """The most probable spreads near given ones, and the standard deviation of the logarithm of that of scores."""
        scale, discrimination = self.model.prior_scale, self.model.discrimination_scale
        many = len(self.ratings.items) > _LARGEST_INTEGRATED
        ratios: tuple[float, ...] = (1.0, 1.0)
        for step_number in range(_MAX_ROUNDS):
            precision = np.exp(-2.0 * here.log_scale)
            scores, variances = here.approximation.scores, here.approximation.variances(marginal=not many)
            if many and step_number == _MARGINAL_ROUND:  # marginal variances are costly
                exact = here.approximation.variances()
                ratios = tuple(float(a.sum() / b.sum()) for a, b in zip(exact, variances, strict=True))
            variance, of_discrimination = (ratio * one for ratio, one in zip(ratios, variances, strict=True))
            explained = precision * float(np.sum(scores**2) + np.sum(variance))
            mean, spread = _SPREAD_PRIOR
            slope = explained - len(scores) - (here.log_scale - mean) / spread**2
            information = 2.0 * float(np.sum((1.0 - precision * variance) ** 2)) + spread**-2
            step = float(np.clip(slope / information, -1.0, 1.0))
            log_scale, wider = here.log_scale, here.discrimination
            if scale == "auto":
                log_scale = float(np.clip(log_scale + step, *np.log(_SPREAD_RANGE)))
            if discrimination == "auto":
                wider = self._discrimination_scale(here.approximation, of_discrimination)
            change = max(abs(log_scale - here.log_scale), abs(np.log(wider / here.discrimination)))
            settled = change < max(_SETTLED, 0.1 / np.sqrt(information)) and step_number >= _MARGINAL_ROUND
            tolerance = 0.0 if settled else _ROUGH
            here = self.fit(log_scale, wider, here.approximation.optimum.parameters, tolerance)
            if settled:
                break
        return here, float(information**-0.5)

    def _discrimination_scale(self, approximation: GradedResponseLaplace, variance: FloatArray) -> float:
        found = self.layout.discrimination(approximation.optimum.parameters)
        # around their mean, relative to it: what all have in common belongs to the spread of scores
        mean = max(float(np.mean(found)), 0.5)
        away = found / mean - 1.0
        squares = float(np.sum(away**2 + variance / mean**2))
        squares += _DISCRIMINATION_COUNT * _DISCRIMINATION_SCALE**2
        return float(np.sqrt(squares / (len(away) + _DISCRIMINATION_COUNT)))

    def around(self, best: SpreadFit, width: float) -> list[SpreadFit]:
        """The best spread and others on both sides of it, until nothing of weight is left."""
        fits, top = [best], _log_weight(best)
        for direction in (-1.0, 1.0):
            at = best
            while True:
                log_scale = at.log_scale + direction * width
                if not np.log(_SPREAD_RANGE[0]) <= log_scale <= np.log(_SPREAD_RANGE[1]):
                    break
                at = self.fit(log_scale, best.discrimination, at.approximation.optimum.parameters, _ROUGH)
                fits.append(at)
                if _log_weight(at) < top + np.log(_NEGLIGIBLE):
                    break
        return fits

    def _maximise(self, log_posterior: LogPosterior, start: FloatArray | None, tolerance: float) -> OptimizeResult:
        """The posterior mode from identical annotators; if many turn out reversed, from the opposite sign, too."""
        model, layout = self.model, self.layout

        def run(begin: FloatArray) -> OptimizeResult:
            return maximize(
                log_posterior, begin, tolerance=tolerance, max_steps=model.max_steps, max_step=_MAX_STEP_NORM
            )

        found = run(layout.start if start is None else start)
        if start is not None or np.mean(layout.discrimination(found.parameters) < 0) < _REVERSED_FRACTION:
            return found
        other = run(layout.with_opposite_sign(found.parameters))
        # The other mode must be better by a margin, so that rounding never decides between equally good modes.
        return (
            other
            if other.evaluation.value > found.evaluation.value + 1e-3 + 1e-7 * abs(found.evaluation.value)
            else found
        )


def _log_prior(log_scale: float) -> float:
    mean, spread = _SPREAD_PRIOR
    return -0.5 * ((log_scale - mean) / spread) ** 2


def _log_weight(fit: SpreadFit) -> float:
    return fit.approximation.component(fit.log_scale, _log_prior(fit.log_scale)).log_weight
