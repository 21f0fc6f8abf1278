"""Multinomial preference model (Volkovs & Zemel 2012): preferences drawn among all pairs of a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray
from crowdrank.data import Comparisons, Items, Judgments
from crowdrank.engines import LOCAL, Engine, ShardedData
from crowdrank.errors import SettingError
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
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.coin_tosses import calibrate_on_coin_tosses
from crowdrank.models.crowd import Ties, check_ties, interval, mpm_likelihood, select_judgments
from crowdrank.models.crowd.encoding import agreement_logits, encode_answers, initial_scores, is_reversed
from crowdrank.models.crowd.fitting import MAX_INVERTED_ITEMS, MAX_STEP
from crowdrank.models.crowd.likelihood import Answers, sigmoid
from crowdrank.models.crowd.mpm_likelihood import ChoiceSets
from crowdrank.models.pairwise.likelihood import LOGISTIC, gaussian, outcome_probabilities
from crowdrank.results import Convergence, Ranking, Uncertainty

Given = Literal["query", "pair"]

# Up to this many parameters the full matrix is factored; beyond it, conjugate gradients are faster.
_MAX_FACTORED = 300
# Tolerance of a resample's fit, in standard errors.
_RESAMPLE_TOLERANCE = 0.01


@dataclass(frozen=True, kw_only=True)
class MPM(Model):
    """Preferences drawn among all ordered pairs of a query, with an adherence to the scores per annotator.

    Parameters
    ----------
    given : "query" or "pair", default "query"
        Among what a preference is drawn: all pairs of the query, as published; or only the two items that were shown.
    prior_scale : float, default 3.0
        Standard deviation of the normal prior on scores.
    adherence_scale : float, default 0.7
        Standard deviation of the normal prior on the adherence θ, around 1.
    ties : "half" or "drop", default "half"
        Whether ties count as half an answer each way or are ignored, as published.
    tolerance : float, default 1e-4
        Stop when no combination of parameters is further from the optimum than this, in standard errors.
    max_steps : int, default 200
        Maximum number of Newton steps. A warning says if that was not enough.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    Annotator k prefers i to j with probability

        P(i ≻ j) = exp(θₖ·(sᵢ − sⱼ)/2) / Σ_{a≠b} exp(θₖ·(sₐ − s_b)/2)

    with the sum over all ordered pairs of the query. An adherence θ of 0 is random, below 0 reversed.

    M. N. Volkovs, R. S. Zemel (2012). A flexible generative model for preference aggregation. WWW.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"], annotator=["x", "y", "x"])
    >>> MPM().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True

    given: Given = "query"
    prior_scale: float = 3.0
    adherence_scale: float = 0.7
    ties: Ties = "half"
    tolerance: float = 1e-4
    max_steps: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_solver(self)
        check_ties(self.ties)
        if self.given not in get_args(Given):
            raise SettingError(f"given must be query or pair, got {self.given!r}.")
        for name in ("prior_scale", "adherence_scale"):
            if not 0 < getattr(self, name) < np.inf:
                raise SettingError(f"{name} must be positive, got {getattr(self, name)}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        check_connected(diagnose(select_judgments(comparisons, self.ties)), has_prior=True)
        estimate = self._estimate(comparisons, options.engine)
        found = estimate.found

        def measure() -> Uncertainty:
            if len(comparisons.items) > MAX_INVERTED_ITEMS:
                return bootstrap(comparisons, self._refit(found, options.engine), seed=self.seed)
            scores = comparisons.items.centre(estimate.scores)
            return calibrate_on_coin_tosses(comparisons, scores, estimate.uncertainty(), tossed, self.seed)

        def tossed(others: Comparisons) -> tuple[FloatArray, FloatArray]:
            again = self._estimate(others, options.engine)
            return again.scores, again.uncertainty().std_error

        ranking = build_ranking(
            self,
            comparisons,
            estimate.scores,
            log_likelihood=estimate.curvature.value,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=measure,
        )
        return with_annotators(ranking, comparisons, lambda: {"adherence": estimate.adherence})

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison given its pair, as columns. Ties have 0."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        return outcome_probabilities(
            margin * ranking.annotators.estimate("adherence")[comparisons.annotator], 0.0, LOGISTIC
        )

    def _estimate(self, comparisons: Comparisons, engine: Engine) -> Estimate:
        answers = self._answers(comparisons)
        objective = self._objective(answers, comparisons, engine)
        shards = engine.load(answers)
        found = _maximum(answers, shards, objective, comparisons.items, self.tolerance, self.max_steps)
        return Estimate(found, objective, comparisons.items, self.seed)

    def _answers(self, comparisons: Comparisons) -> Answers:
        return encode_answers(comparisons, ties=self.ties)

    def _objective(self, answers: Answers, comparisons: Comparisons, engine: Engine = LOCAL) -> Objective:
        items, people = comparisons.items, max(1, len(comparisons.annotators))
        gather = sets_of_queries if self.given == "query" else sets_of_pairs
        shards = engine.load(gather(answers, items, people))
        return Objective(shards, len(items), people, self.prior_scale, self.adherence_scale)

    def _refit(self, found: OptimizeResult, engine: Engine) -> Callable[[Comparisons], FloatArray]:
        def refit(resampled: Comparisons) -> FloatArray:
            objective = self._objective(self._answers(resampled), resampled, engine)
            again = maximize(
                objective, found.parameters, tolerance=_RESAMPLE_TOLERANCE, max_steps=self.max_steps, max_step=MAX_STEP
            )
            return resampled.items.centre(objective.split(again.parameters)[0])

        return refit


def sets_of_queries(answers: Answers, items: Items, annotators: int) -> ChoiceSets:
    """One set per annotator and query, with all items of the query."""
    queries = len(items.starts) - 1
    keys, set_of_answer = np.unique(
        answers.annotator.astype(np.int64) * queries + items.query[answers.winner], return_inverse=True
    )
    who, query = keys // queries, keys % queries
    size = np.diff(items.starts)[query]
    start = np.cumsum(size) - size
    set_of = np.repeat(np.arange(len(keys)), size)
    item = np.arange(len(set_of)) - np.repeat(start - items.starts[query], size)
    base = (start - items.starts[query])[set_of_answer]
    won, lost = (_sum_at(base + side, answers.weight, len(set_of)) for side in (answers.winner, answers.loser))
    weight = _sum_at(set_of_answer, answers.weight, len(keys))
    return ChoiceSets(len(items), annotators, who, weight, start, set_of, item, (won - lost) / 2)


def sets_of_pairs(answers: Answers, items: Items, annotators: int) -> ChoiceSets:
    """One set per annotator and compared pair, with its two items."""
    size = np.int64(len(items))
    low, high = np.minimum(answers.winner, answers.loser), np.maximum(answers.winner, answers.loser)
    keys, set_of_answer = np.unique((answers.annotator * size + low) * size + high, return_inverse=True)
    item = np.stack((keys // size % size, keys % size), axis=1).ravel()
    signed = np.where(answers.winner < answers.loser, answers.weight, -answers.weight)
    half_net_wins = _sum_at(set_of_answer, signed, len(keys)) / 2
    start = 2 * np.arange(len(keys))
    weight = _sum_at(set_of_answer, answers.weight, len(keys))
    net = np.stack((half_net_wins, -half_net_wins), axis=1).ravel()
    return ChoiceSets(len(items), annotators, keys // size**2, weight, start, np.repeat(start // 2, 2), item, net)


def _sum_at(where: AnyArray, values: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(where, values, size), np.float64)


@dataclass(frozen=True)
class Objective:
    """Log posterior of scores and, after them, adherences.

    Parameters
    ----------
    shards : sharded data
        The answers, as `ChoiceSets`.
    items, annotators : int
        How many there are.
    scale, adherence_scale : float
        Standard deviations of the priors.
    """

    shards: ShardedData
    items: int
    annotators: int
    scale: float
    adherence_scale: float

    def split(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return x[: self.items], x[self.items :]

    def __call__(self, x: FloatArray) -> Evaluation:
        scores, adherence = self.split(x)
        rows, found = self.shards.map_and_sum(mpm_likelihood.evaluate, scores, adherence)
        value, gradient, curvature = gaussian(scores, self.scale)
        more_value, more_gradient, more_curvature = gaussian(adherence - 1.0, self.adherence_scale)
        gradient = np.concatenate((found.by_score + gradient, found.by_adherence + more_gradient))
        prior = np.concatenate((curvature, more_curvature))
        return Evaluation(found.value + value + more_value, gradient, Curvature(rows, self.items, found.value, prior))


@dataclass(frozen=True)
class Curvature:
    """Negative Hessian of the log posterior at one point.

    Parameters
    ----------
    rows : sharded data
        Shards of `ChoiceCurvature`.
    items : int
        Number of items.
    value : float
        Log-likelihood, without priors.
    prior : array of float
        Curvature of the priors, which is diagonal.
    """

    rows: ShardedData
    items: int
    value: float
    prior: FloatArray

    @cached_property
    def diagonal(self) -> FloatArray:
        return np.concatenate(self.rows.sum(mpm_likelihood.hessian_diagonal)) + self.prior

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        small = len(vector) <= _MAX_FACTORED
        return DampedCurvature(self.product, self.diagonal, self.matrix if small else None).solve(vector, tolerance)

    def product(self, vector: FloatArray) -> FloatArray:
        parts = np.split(vector, [self.items])
        return np.concatenate(self.rows.sum(mpm_likelihood.hessian_product, *parts)) + self.prior * vector

    def matrix(self) -> FloatArray:
        own, across = self.rows.sum(mpm_likelihood.hessian_blocks)
        full, items = np.diag(self.diagonal), self.items
        full[:items, :items] = own + np.diag(self.prior[:items])
        full[:items, items:] = across if isinstance(across, np.ndarray) else across.toarray()
        full[items:, :items] = full[:items, items:].T
        return full

    def marginal(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of the scores and standard errors of adherences, each with all others unknown.

        Adherences are eliminated (Schur complement); given the scores their curvature is diagonal.
        """
        own, across = self.rows.sum(mpm_likelihood.hessian_blocks)
        items = self.items
        own.flat[:: items + 1] += self.prior[:items]
        for damping in DAMPINGS:
            damped = damping * self.diagonal
            scale = 1.0 / (self.diagonal + damped)[items:]
            shrunk = across * scale if isinstance(across, np.ndarray) else across.multiply(scale).tocsr()
            removed = shrunk @ across.T
            rest = own + np.diag(damped[:items]) - (removed if isinstance(removed, np.ndarray) else removed.toarray())
            try:
                np.linalg.cholesky(rest)
                break
            except np.linalg.LinAlgError:
                continue
        covariance = np.linalg.inv(rest)
        spread = (shrunk.T @ covariance).T
        explained = shrunk * spread if isinstance(shrunk, np.ndarray) else shrunk.multiply(spread)
        from_scores = np.asarray(explained.sum(axis=0)).ravel()
        return covariance, np.sqrt(1.0 / (self.diagonal + damped)[items:] + from_scores)


@dataclass(frozen=True)
class Estimate:
    """MAP estimate of the model with its Laplace approximation.

    Parameters
    ----------
    found : OptimizeResult
        Result of the solver.
    objective : Objective
        The log posterior.
    items : Items
        The items.
    seed : int
        Seed of the draws behind rank intervals.
    """

    found: OptimizeResult
    objective: Objective
    items: Items
    seed: int

    @property
    def curvature(self) -> Curvature:
        assert isinstance(self.found.evaluation.curvature, Curvature)
        return self.found.evaluation.curvature

    @property
    def scores(self) -> FloatArray:
        return self.objective.split(self.found.parameters)[0]

    @cached_property
    def _marginal(self) -> tuple[FloatArray, FloatArray]:
        return self.curvature.marginal()

    @property
    def adherence(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Adherences with 95 % intervals; given the scores if there are too many items to invert."""
        if len(self.items) <= MAX_INVERTED_ITEMS:
            error = self._marginal[1]
        else:
            error = 1.0 / np.sqrt(self.curvature.diagonal[len(self.items) :])
        return interval(self.objective.split(self.found.parameters)[1], error, np.array)

    def uncertainty(self) -> Uncertainty:
        error, around = draw_from_covariance(self._marginal[0], self.items.centre, self.seed)
        known = "Laplace approximation of scores and annotators jointly"
        return Uncertainty(self.items.centre(self.scores) + around, error, known)


def _maximum(
    answers: Answers, shards: ShardedData, objective: Objective, items: Items, tolerance: float, max_steps: int
) -> OptimizeResult:
    """The best optimum of two starts, with the sign that the majority of annotators agrees with.

    Negating scores and adherences together leaves the likelihood unchanged.
    """

    def solve(start: FloatArray) -> OptimizeResult:
        return maximize(objective, start, tolerance=tolerance, max_steps=max_steps, max_step=MAX_STEP)

    best, other = (solve(start) for start in _starting_values(shards, objective.annotators, items))
    # nearly equal optima are the same one: the first is kept, so that rounding never chooses
    if other.evaluation.value > best.evaluation.value + 1e-3 + 1e-7 * abs(best.evaluation.value):
        best = other
    scores = objective.split(best.parameters)[0]
    sign = np.sign(np.round(scores[answers.winner] - scores[answers.loser], 9))
    people = objective.annotators
    judged = _sum_at(answers.annotator, answers.weight, people)
    agreed = _sum_at(answers.annotator, answers.weight * (1.0 + sign) / 2, people)
    return solve(-best.parameters) if is_reversed(agreed, judged) else best


def _starting_values(shards: ShardedData, people: int, items: Items) -> list[FloatArray]:
    """Everyone with adherence 1, or with their agreement with the crowd."""
    scores = initial_scores(shards, items)
    trust = 2.0 * sigmoid(agreement_logits(shards, scores, people)) - 1.0
    return [
        np.concatenate((scores, np.ones(people))),
        np.concatenate((initial_scores(shards, items, trust), trust)),
    ]
