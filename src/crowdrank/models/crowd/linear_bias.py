"""Xu et al. 2016: answers as a line, with a position bias for those few annotators who have one (by the lasso)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.engines import Engine
from crowdrank.engines.threads import limit_blas_threads
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.curvature import conjugate_gradients
from crowdrank.inference.laplace import LaplaceApproximation, draw_from_covariance
from crowdrank.inference.pair_curvature import PairCurvature
from crowdrank.models.base import (
    FitOptions,
    Model,
    build_ranking,
    check_connected,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.crowd.least_squares import Laplacian, Leanings
from crowdrank.models.pairwise.likelihood import Pairs
from crowdrank.results import Convergence, Ranking, Uncertainty

# No bias may be further than this from where its condition of the optimum would have it; an answer is 1 or -1.
_NEAR_ENOUGH = 1e-10
_MOST_STEPS = 500
# The path of penalties tried: so many, evenly in their logarithms, down to this share of the first.
_PENALTIES, _LEAST_SHARE = 30, 1e-3
_LARGEST_INVERTED = 2_000
_UNIT = "of an answer from the optimum"


@dataclass(frozen=True, kw_only=True)
class LinearBias(Model):
    """Least squares on scores, with a position bias for the few annotators who have one.

    k's answer, 1 for left and −1 for right, is left − right + γₖ + noise; a lasso keeps γ at zero but where it pays.
    """

    reads: ClassVar[type] = Comparisons
    models_annotators: ClassVar[bool] = True

    penalty: float | None = None
    """What a unit of bias costs, in answers; None to choose by generalised cross-validation."""
    prior_scale: float = 3.0
    """Standard deviation of the normal prior on scores, in units of an answer's noise; large for none."""
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        if self.penalty is not None and not 0 < self.penalty < np.inf:
            raise SettingError(f"penalty must be positive, or None to have it chosen, got {self.penalty}.")
        if not 0 < self.prior_scale < np.inf:
            raise SettingError(f"prior_scale must be positive, got {self.prior_scale}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        if not comparisons.positions_known:
            raise DataError("The judgments do not say what stood left and right: use a model without position bias.")
        check_connected(diagnose(comparisons), has_prior=True)
        lines = Lines(comparisons, self.prior_scale)
        fitted = lines.choose() if self.penalty is None else lines.fit(self.penalty)
        parameters = {"penalty": fitted.penalty, "noise": fitted.noise}
        if comparisons.annotator is None:
            parameters["bias"] = float(fitted.biases[0])
        ranking = build_ranking(
            self,
            comparisons,
            fitted.scores,
            parameters=parameters,
            convergence=fitted.convergence,
            measure=lambda: lines.measure(fitted, self.seed, options.engine),
        )
        return with_annotators(ranking, comparisons, lambda: {"bias": lines.interval(fitted)})


class Fitted(NamedTuple):
    """Scores and biases at one penalty, and what they leave unexplained."""

    penalty: float
    scores: FloatArray
    biases: FloatArray
    left_over: float
    """The sum of squared residuals."""
    freedom: float
    """Answers, less what the fit used up: scores but for a level an island, and biases that are not zero."""
    convergence: Convergence

    @property
    def noise(self) -> float:
        """Standard deviation of an answer. One toss of a coin is added: a few answers that fit are not certainty."""
        return float(np.sqrt((self.left_over + 1) / (max(self.freedom, 0.0) + 1)))

    def expected_error(self, answers: float) -> float:
        """Mean squared error on an answer left out, by generalised cross-validation."""
        return self.left_over * answers / self.freedom**2 if self.freedom > 0 else np.inf


@dataclass(frozen=True)
class Lines:
    """½ Σ weight·(answer − left + right − γₖ)² + ½ Σ score²/prior_scale² + penalty·Σ|γₖ|.

    For any biases the best scores are one solution of least squares, so what is minimised is a function of biases.
    """

    comparisons: Comparisons
    prior_scale: float

    @cached_property
    def answers(self) -> Leanings:
        return Leanings(self.comparisons)

    @cached_property
    def weight(self) -> FloatArray:
        """Of each annotator's answers; 1 for those who gave none, whose bias is zero whatever is divided by."""
        weight = self.answers.weight_of_annotator
        return np.where(weight > 0, weight, 1.0)

    @cached_property
    def laplacian(self) -> Laplacian:
        counts = self.comparisons.counts
        return Laplacian(self.comparisons.items, counts.first, counts.second, counts.total, self.prior_scale**-2.0)

    @cached_property
    def net_left(self) -> Any:
        """Rows are annotators, columns items: how much oftener it was shown them left than right."""
        from scipy.sparse import coo_array

        table, who = self.comparisons, self.answers.who
        entries = np.concatenate((table.weights, -table.weights))
        cells = (np.tile(who, 2), np.concatenate((table.left, table.right)))
        return coo_array((entries, cells), shape=(len(self.weight), len(table.items))).tocsr()

    @cached_property
    def said_left(self) -> FloatArray:
        """Answers for left less answers for right of each annotator."""
        table = self.comparisons
        return np.bincount(self.answers.who, table.weights * table.outcome, len(self.weight)).astype(np.float64)

    def scores(self, biases: FloatArray) -> FloatArray:
        """The best scores for these biases."""
        return self.laplacian.solve(self.comparisons.counts.net_wins - self.net_left.T @ biases)

    def slope(self, biases: FloatArray) -> FloatArray:
        """How fast the squares fall with each bias, the scores following."""
        return np.asarray(self.said_left - self.weight * biases - self.net_left @ self.scores(biases))

    def bend(self, biases: FloatArray) -> FloatArray:
        """How fast the slope falls in the direction of these biases."""
        return np.asarray(self.weight * biases - self.net_left @ self.laplacian.solve(self.net_left.T @ biases))

    def choose(self) -> Fitted:
        """The penalty with the least expected error, on a path down from the first that allows no bias at all.

        Folds would make the answer depend on the order of the rows; generalised cross-validation needs none.
        """
        answers = float(self.comparisons.weights.sum())
        highest = float(np.max(np.abs(self._slope_at_zero)))
        best = self.fit(highest)
        if highest <= 1e-9 * answers:  # nothing left to explain but rounding
            return best
        fitted = best
        for penalty in highest * np.geomspace(1, _LEAST_SHARE, _PENALTIES)[1:]:
            fitted = self.fit(float(penalty), fitted.biases)
            # equal errors are one: the first stands, so that rounding never chooses
            if fitted.expected_error(answers) < best.expected_error(answers) * (1 - 1e-7) - 1e-12:
                best = fitted
        return best

    def fit(self, penalty: float, start: FloatArray | None = None) -> Fitted:
        biases, convergence = self._descend(penalty, np.zeros(len(self.weight)) if start is None else start)
        scores, table = self.scores(biases), self.comparisons
        residual = table.outcome - scores[table.left] + scores[table.right] - biases[self.answers.who]
        used = len(scores) - (int(self.laplacian.island.max()) + 1) + np.count_nonzero(biases)
        weights = table.weights
        return Fitted(penalty, scores, biases, float(weights @ residual**2), float(weights.sum()) - used, convergence)

    def _descend(self, penalty: float, biases: FloatArray) -> tuple[FloatArray, Convergence]:
        """Each bias in turn with the scores is a step that never climbs; Newton's, on those not zero, ends it.

        At the optimum no bias moves: that is the lasso's condition, |slope| ≤ penalty, and equal where a bias is not 0.
        """
        for step in range(_MOST_STEPS):
            moved = _shrink(biases + self.slope(biases) / self.weight, penalty / self.weight)
            gap = float(np.max(np.abs(moved - biases)))
            if gap <= _NEAR_ENOUGH:
                return biases, Convergence(True, step, gap, _UNIT)
            biases = self._newton(penalty, moved)
        return biases, Convergence(False, _MOST_STEPS, gap, _UNIT, "set a larger penalty")

    def _newton(self, penalty: float, biases: FloatArray) -> FloatArray:
        """The lowest point with these biases nonzero and of these signs; those that would change sign become zero."""
        chosen = np.flatnonzero(biases)
        if not len(chosen):
            return biases
        signs, slope = np.sign(biases), self.slope(biases)

        def spread(values: FloatArray) -> FloatArray:
            out = np.zeros(len(biases))
            out[chosen] = values
            return out

        away = spread(
            conjugate_gradients(
                lambda v: self.bend(spread(v))[chosen],
                (slope - penalty * signs)[chosen],
                self.weight[chosen],
                tolerance=1e-8,
                max_iterations=_MOST_STEPS,
            )
        )
        crossing = (biases + away) * signs < 0
        whole = np.where(crossing, 0.0, biases + away)
        if not crossing.any() or self._cost(whole, penalty) <= self._cost(biases, penalty):
            return whole
        # as far as the first change of sign: within these signs the way is downhill
        share = np.divide(biases, -away, out=np.full(len(biases), np.inf), where=crossing)
        stopped: FloatArray = biases + share.min() * away
        stopped[np.argmin(share)] = 0.0
        return stopped

    def _cost(self, biases: FloatArray, penalty: float) -> float:
        """What is minimised, but for a constant."""
        return float(-0.5 * biases @ (self._slope_at_zero + self.slope(biases)) + penalty * np.sum(np.abs(biases)))

    @cached_property
    def _slope_at_zero(self) -> FloatArray:
        return self.slope(np.zeros(len(self.weight)))

    def interval(self, fitted: Fitted) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Biases with 95 % intervals, those of the mean residual: what the bias is, given the scores, unshrunk."""
        plain = fitted.biases + self.slope(fitted.biases) / self.weight
        reach = 1.96 * fitted.noise / np.sqrt(self.weight)
        return fitted.biases, np.minimum(plain - reach, fitted.biases), np.maximum(plain + reach, fitted.biases)

    def measure(self, fitted: Fitted, seed: int, engine: Engine) -> Uncertainty:
        """Of least squares, the noise being normal: for few enough items with the biases that are not zero unknown."""
        items, centre = self.comparisons.items, self.comparisons.items.centre
        if len(items) <= _LARGEST_INVERTED:
            free = self.net_left[np.flatnonzero(fitted.biases)]
            within = self.laplacian.matrix - free.T @ (free / self.weight[fitted.biases != 0, None])
            with limit_blas_threads(len(items)):
                covariance = fitted.noise**2 * np.linalg.inv(within.toarray())
            error, around = draw_from_covariance(covariance, centre, seed)
            known = "scores and biases together"
        else:
            counts, ridge = self.comparisons.counts, np.full(len(items), self.laplacian.ridge)
            bends, _ = engine.load(Pairs(counts.first, counts.second, counts.net, counts.total)).map_and_sum(_as_bends)
            error, around = LaplaceApproximation(bends, self.laplacian.matrix.diagonal(), ridge, items.starts).draw(
                seed
            )
            error, around, known = error * fitted.noise, around * fitted.noise, "scores, given the biases"
        return Uncertainty(centre(fitted.scores) + around, error, f"least squares, of {known}")


def _shrink(values: FloatArray, by: FloatArray) -> FloatArray:
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - by, 0.0))


def _as_bends(shard: Pairs) -> tuple[PairCurvature, tuple[float]]:
    """Squares bend everywhere by their weight."""
    return PairCurvature(shard.left, shard.right, shard.weight.astype(np.float32), shard.start), (0.0,)
