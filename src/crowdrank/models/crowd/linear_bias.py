"""Linear model with position bias (Xu et al. 2016): least squares on scores, and a lasso on annotators' biases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.engines import Engine
from crowdrank.engines.local import limit_blas_threads
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.curvature import PairCurvature, conjugate_gradients
from crowdrank.inference.laplace import LaplaceApproximation, draw_from_covariance
from crowdrank.models.base import (
    FitOptions,
    Model,
    build_ranking,
    check_connected,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.coin_tosses import calibrate_on_coin_tosses
from crowdrank.models.crowd.least_squares import Laplacian, SignedPairs
from crowdrank.models.pairwise.likelihood import Pairs
from crowdrank.results import Convergence, Ranking, Uncertainty

# The optimality condition of every bias holds to within this; an answer is 1 or −1.
_TOLERANCE = 1e-10
_MAX_STEPS = 500
# Penalties tried: how many, evenly spaced on the log scale, down to this share of the first.
_PENALTIES, _MIN_PENALTY_SHARE = 30, 1e-3
# Up to this many items the covariance is computed with the biases unknown.
_MAX_INVERTED_ITEMS = 2_000
_UNIT = "of an answer from the optimum"


@dataclass(frozen=True, kw_only=True)
class LinearBias(Model):
    """Least squares on scores, with a position bias for the few annotators who have one.

    Parameters
    ----------
    penalty : float or None, default None
        Lasso penalty per unit of bias, in answers. None chooses it by generalised cross-validation.
    prior_scale : float, default 3.0
        Standard deviation of the normal prior on scores, in units of the noise of an answer. A very large
        value amounts to no prior.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    An answer yₙ of annotator k, 1 for left and −1 for right, is modelled as

        yₙ = s_left − s_right + γₖ + noise

    The biases γ have an L1 penalty, which keeps them at exactly zero unless the answers require otherwise. The
    judgments must say which item was on the left.

    Q. Xu, J. Xiong, X. Cao, Y. Yao (2016). False discovery rate control and statistical quality assessment of
    annotators in crowdsourced ranking. ICML.

    Examples
    --------
    >>> from crowdrank.simulation import mixed_crowd
    >>> crowd = mixed_crowd(items=10, kinds={"good": 4, "left": 1}, votes_each=40, seed=1)
    >>> bias = LinearBias().fit(crowd.judgments).annotators.estimate("bias")
    >>> str(crowd.annotators["kind"][bias.argmax()])
    'left'
    """

    reads: ClassVar[type] = Comparisons
    models_annotators: ClassVar[bool] = True

    penalty: float | None = None
    prior_scale: float = 3.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.penalty is not None and not 0 < self.penalty < np.inf:
            raise SettingError(f"penalty must be positive, or None to choose it, got {self.penalty}.")
        if not 0 < self.prior_scale < np.inf:
            raise SettingError(f"prior_scale must be positive, got {self.prior_scale}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        if not comparisons.positions_known:
            raise DataError(
                "The judgments do not say which items were left and right: use a model without position bias."
            )
        check_connected(diagnose(comparisons), has_prior=True)
        problem, fitted = self._solve(comparisons)
        parameters = {"penalty": fitted.penalty, "noise": fitted.noise}
        if comparisons.annotator is None:
            parameters["bias"] = float(fitted.biases[0])

        def measure() -> Uncertainty:
            plain = problem.uncertainty(fitted, self.seed, options.engine)
            return calibrate_on_coin_tosses(
                comparisons, comparisons.items.centre(fitted.scores), plain, tossed, self.seed
            )

        def tossed(others: Comparisons) -> tuple[FloatArray, FloatArray]:
            problem, fitted = self._solve(others)
            return fitted.scores, problem.uncertainty(fitted, self.seed, options.engine).std_error

        ranking = build_ranking(
            self,
            comparisons,
            fitted.scores,
            parameters=parameters,
            convergence=fitted.convergence,
            measure=measure,
        )
        return with_annotators(ranking, comparisons, lambda: {"bias": problem.interval(fitted)})

    def _solve(self, comparisons: Comparisons) -> tuple[LassoProblem, LassoFit]:
        problem = LassoProblem(comparisons, self.prior_scale)
        return problem, problem.choose_penalty() if self.penalty is None else problem.fit(self.penalty)


class LassoFit(NamedTuple):
    """Scores and biases at one penalty.

    Parameters
    ----------
    penalty : float
        The penalty.
    scores, biases : arrays of float
        The estimates.
    squared_error : float
        Sum of squared residuals.
    freedom : float
        Residual degrees of freedom: answers less free scores less nonzero biases.
    convergence : Convergence
        Whether the optimality condition holds.
    """

    penalty: float
    scores: FloatArray
    biases: FloatArray
    squared_error: float
    freedom: float
    convergence: Convergence

    @property
    def noise(self) -> float:
        """Standard deviation of an answer. One random answer is added: a few answers that fit do not mean certainty."""
        return float(np.sqrt((self.squared_error + 1) / (max(self.freedom, 0.0) + 1)))

    def expected_error(self, answers: float) -> float:
        """Mean squared error on a new answer, by generalised cross-validation."""
        return self.squared_error * answers / self.freedom**2 if self.freedom > 0 else np.inf


@dataclass(frozen=True)
class LassoProblem:
    """Minimise ½ Σ weight·(answer − s_left + s_right − γₖ)² + ½ Σ s²/prior_scale² + penalty·Σ|γₖ|.

    For any biases the best scores solve a least-squares problem, so the objective is a function of the biases alone.

    Parameters
    ----------
    comparisons : Comparisons
        The judgments.
    prior_scale : float
        Standard deviation of the normal prior on scores.
    """

    comparisons: Comparisons
    prior_scale: float

    @cached_property
    def answers(self) -> SignedPairs:
        return SignedPairs(self.comparisons)

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each annotator's answers; 1 for those without answers, whose bias is zero whatever the divisor."""
        weight = self.answers.weight_by_annotator
        return np.where(weight > 0, weight, 1.0)

    @cached_property
    def laplacian(self) -> Laplacian:
        counts = self.comparisons.counts
        return Laplacian(self.comparisons.items, counts.first, counts.second, counts.total, self.prior_scale**-2.0)

    @cached_property
    def net_left(self) -> Any:
        """Annotators × items: how often the annotator saw the item on the left less on the right."""
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

    def gradient(self, biases: FloatArray) -> FloatArray:
        """Negative gradient of the squared error by each bias, with the best scores for the biases."""
        return np.asarray(self.said_left - self.weight * biases - self.net_left @ self.scores(biases))

    def hessian_product(self, biases: FloatArray) -> FloatArray:
        """Hessian of the squared error times a vector of biases."""
        return np.asarray(self.weight * biases - self.net_left @ self.laplacian.solve(self.net_left.T @ biases))

    def choose_penalty(self) -> LassoFit:
        """Fit with the smallest expected error, on a path of penalties from the smallest that makes all biases zero.

        Generalised cross-validation needs no folds, which would make the result depend on the order of the rows.
        """
        answers = float(self.comparisons.weights.sum())
        highest = float(np.max(np.abs(self._gradient_at_zero)))
        best = self.fit(highest)
        if highest <= 1e-9 * answers:  # only rounding is left to explain
            return best
        fitted = best
        for penalty in highest * np.geomspace(1, _MIN_PENALTY_SHARE, _PENALTIES)[1:]:
            fitted = self.fit(float(penalty), fitted.biases)
            # nearly equal errors are the same: the first is kept, so that rounding never chooses
            if fitted.expected_error(answers) < best.expected_error(answers) * (1 - 1e-7) - 1e-12:
                best = fitted
        return best

    def fit(self, penalty: float, start: FloatArray | None = None) -> LassoFit:
        biases, convergence = self._minimize(penalty, np.zeros(len(self.weight)) if start is None else start)
        scores, table = self.scores(biases), self.comparisons
        residual = table.outcome - scores[table.left] + scores[table.right] - biases[self.answers.who]
        used = len(scores) - (int(self.laplacian.component.max()) + 1) + np.count_nonzero(biases)
        weights = table.weights
        return LassoFit(penalty, scores, biases, float(weights @ residual**2), float(weights.sum()) - used, convergence)

    def _minimize(self, penalty: float, biases: FloatArray) -> tuple[FloatArray, Convergence]:
        """Alternate a proximal gradient step, which never increases the cost, with a Newton step on the nonzero biases.

        At the optimum the proximal step moves no bias: |gradient| ≤ penalty, with equality where a bias is not 0.
        """
        for step in range(_MAX_STEPS):
            moved = _soft_threshold(biases + self.gradient(biases) / self.weight, penalty / self.weight)
            gap = float(np.max(np.abs(moved - biases)))
            if gap <= _TOLERANCE:
                return biases, Convergence(True, step, gap, _UNIT)
            biases = self._newton(penalty, moved)
        return biases, Convergence(False, _MAX_STEPS, gap, _UNIT, "set a larger penalty")

    def _newton(self, penalty: float, biases: FloatArray) -> FloatArray:
        """Newton step on the nonzero biases with their signs fixed; biases that would change sign become zero."""
        chosen = np.flatnonzero(biases)
        if not len(chosen):
            return biases
        signs, gradient = np.sign(biases), self.gradient(biases)

        def embed(values: FloatArray) -> FloatArray:
            out = np.zeros(len(biases))
            out[chosen] = values
            return out

        step = embed(
            conjugate_gradients(
                lambda v: self.hessian_product(embed(v))[chosen],
                (gradient - penalty * signs)[chosen],
                self.weight[chosen],
                1e-8,
                _MAX_STEPS,
            )
        )
        crossing = (biases + step) * signs < 0
        whole = np.where(crossing, 0.0, biases + step)
        if not crossing.any() or self._cost(whole, penalty) <= self._cost(biases, penalty):
            return whole
        # stop at the first change of sign: the cost decreases along the step as long as no sign changes
        share = np.divide(biases, -step, out=np.full(len(biases), np.inf), where=crossing)
        stopped: FloatArray = biases + share.min() * step
        stopped[np.argmin(share)] = 0.0
        return stopped

    def _cost(self, biases: FloatArray, penalty: float) -> float:
        """The objective, up to a constant."""
        return float(
            -0.5 * biases @ (self._gradient_at_zero + self.gradient(biases)) + penalty * np.sum(np.abs(biases))
        )

    @cached_property
    def _gradient_at_zero(self) -> FloatArray:
        return self.gradient(np.zeros(len(self.weight)))

    def interval(self, fitted: LassoFit) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Biases with 95 % intervals: those of the unpenalised bias given the scores, which is the mean residual."""
        unpenalised = fitted.biases + self.gradient(fitted.biases) / self.weight
        reach = 1.96 * fitted.noise / np.sqrt(self.weight)
        low, high = unpenalised - reach, unpenalised + reach
        return fitted.biases, np.minimum(low, fitted.biases), np.maximum(high, fitted.biases)

    def uncertainty(self, fitted: LassoFit, seed: int, engine: Engine) -> Uncertainty:
        """Least squares with normal noise; joint with the nonzero biases if there are few enough items."""
        items, centre = self.comparisons.items, self.comparisons.items.centre
        if len(items) <= _MAX_INVERTED_ITEMS:
            free = self.net_left[np.flatnonzero(fitted.biases)]
            within = self.laplacian.matrix - free.T @ (free / self.weight[fitted.biases != 0, None])
            with limit_blas_threads(len(items)):
                covariance = fitted.noise**2 * np.linalg.inv(within.toarray())
            error, around = draw_from_covariance(covariance, centre, seed)
            known = "scores and biases jointly"
        else:
            counts, ridge = self.comparisons.counts, np.full(len(items), self.laplacian.ridge)
            shards = engine.load(Pairs(counts.first, counts.second, counts.net, counts.total))
            curvature, _ = shards.map_and_sum(_pair_curvature)
            diagonal = self.laplacian.matrix.diagonal()
            error, around = LaplaceApproximation(curvature, diagonal, ridge, items.starts).draw(seed)
            error, around, known = error * fitted.noise, around * fitted.noise, "the scores, given the biases"
        return Uncertainty(centre(fitted.scores) + around, error, f"least squares for {known}")


def _soft_threshold(values: FloatArray, by: FloatArray) -> FloatArray:
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - by, 0.0))


def _pair_curvature(shard: Pairs) -> tuple[PairCurvature, tuple[float]]:
    """The second derivative of a weighted square is its weight."""
    return PairCurvature(shard.left, shard.right, shard.weight.astype(np.float32), shard.start), (0.0,)
