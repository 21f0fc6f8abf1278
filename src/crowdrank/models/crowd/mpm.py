"""Volkovs & Zemel 2012, the multinomial preference model: preferences drawn among all pairs, by adherence."""

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
from crowdrank.models.crowd import Ties, check_ties, counted, interval, mpm_likelihood
from crowdrank.models.crowd.encoding import agreement, answers_of, first_scores, turned
from crowdrank.models.crowd.estimate import LARGEST_INVERTED
from crowdrank.models.crowd.fitting import LONGEST_STEP
from crowdrank.models.crowd.likelihood import Answers, sigmoid
from crowdrank.models.crowd.mpm_likelihood import Cells
from crowdrank.models.pairwise.likelihood import LOGISTIC, outcome_probabilities
from crowdrank.models.score_priors import gaussian
from crowdrank.results import Convergence, Ranking, Uncertainty

Given = Literal["query", "pair"]

_LARGEST_FACTORED = 300
# How near its optimum a resample is fitted, in standard errors.
_NEAR_ENOUGH = 0.01


@dataclass(frozen=True, kw_only=True)
class MPM(Model):
    """What an annotator says is drawn among all ordered pairs of a query, the likelier the further apart they are.

    P(k says i beats j) ∝ exp(θₖ·(i − j)/2), θ the annotator's adherence to the scores: 0 guesses, below 0 is reversed.

    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"], annotator=["x", "y", "x"])
    >>> MPM().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True

    given: Given = "query"
    """What was given when a preference was drawn: the items of the query, as published; or the pair."""
    prior_scale: float = 3.0
    """Standard deviation of the normal prior on scores."""
    adherence_scale: float = 0.7
    """Standard deviation of the normal prior on θ, around 1."""
    ties: Ties = "half"
    """Half an answer each way; or left out, as published."""
    tolerance: float = 1e-4
    """Stop when no combination of parameters is further than this from the optimum, in standard errors."""
    max_steps: int = 200
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        check_solver(self)
        check_ties(self.ties)
        if self.given not in get_args(Given):
            raise SettingError(f"given must be query or pair, got {self.given!r}.")
        if not (0 < self.prior_scale < np.inf and 0 < self.adherence_scale < np.inf):
            raise SettingError("prior_scale and adherence_scale must be positive.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        check_connected(diagnose(counted(comparisons, self.ties)), has_prior=True)
        answers = self._answers(comparisons)
        objective = self._objective(answers, comparisons, options.engine)
        held = options.engine.load(answers)
        found = _upright(answers, held, objective, comparisons.items, self.tolerance, self.max_steps)
        top = Top(found, objective, comparisons.items, self.seed)
        enough, again = len(comparisons.items) <= LARGEST_INVERTED, self._again(found, options.engine)
        ranking = build_ranking(
            self,
            comparisons,
            top.scores,
            log_likelihood=top.curvature.value,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=top.measure if enough else lambda: bootstrap(comparisons, again, seed=self.seed),
        )
        return with_annotators(ranking, comparisons, lambda: {"adherence": top.adherence})

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns, given its pair; there is no room for ties."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        return outcome_probabilities(
            margin * ranking.annotators.estimate("adherence")[comparisons.annotator], 0.0, LOGISTIC
        )

    def _answers(self, comparisons: Comparisons) -> Answers:
        return answers_of(comparisons, ties=self.ties)

    def _objective(self, answers: Answers, comparisons: Comparisons, engine: Engine = LOCAL) -> Objective:
        items, people = comparisons.items, max(1, len(comparisons.annotators))
        gather = cells_of_queries if self.given == "query" else cells_of_pairs
        held = engine.load(gather(answers, items, people))
        return Objective(held, len(items), people, self.prior_scale, self.adherence_scale)

    def _again(self, found: OptimizeResult, engine: Engine) -> Callable[[Comparisons], FloatArray]:
        def refit(resampled: Comparisons) -> FloatArray:
            objective = self._objective(self._answers(resampled), resampled, engine)
            again = maximize(
                objective, found.parameters, tolerance=_NEAR_ENOUGH, max_steps=self.max_steps, max_step=LONGEST_STEP
            )
            return resampled.items.centre(objective.split(again.parameters)[0])

        return refit


def cells_of_queries(answers: Answers, items: Items, annotators: int) -> Cells:
    """A cell an annotator and query, with all items of the query."""
    queries = len(items.starts) - 1
    known, cell = np.unique(
        answers.annotator.astype(np.int64) * queries + items.query[answers.winner], return_inverse=True
    )
    who, query = known // queries, known % queries
    size = np.diff(items.starts)[query]
    start = np.cumsum(size) - size
    of = np.repeat(np.arange(len(known)), size)
    item = np.arange(len(of)) - np.repeat(start - items.starts[query], size)
    base = (start - items.starts[query])[cell]
    won, lost = (_added(base + side, answers.weight, len(of)) for side in (answers.winner, answers.loser))
    total = _added(cell, answers.weight, len(known))
    return Cells(len(items), annotators, who, total, start, of, item, (won - lost) / 2)


def cells_of_pairs(answers: Answers, items: Items, annotators: int) -> Cells:
    """A cell an annotator and compared pair, with its two items."""
    size = np.int64(len(items))
    low, high = np.minimum(answers.winner, answers.loser), np.maximum(answers.winner, answers.loser)
    known, cell = np.unique((answers.annotator * size + low) * size + high, return_inverse=True)
    item = np.stack((known // size % size, known % size), axis=1).ravel()
    signed = np.where(answers.winner < answers.loser, answers.weight, -answers.weight)
    lead = _added(cell, signed, len(known)) / 2
    start = 2 * np.arange(len(known))
    total = _added(cell, answers.weight, len(known))
    net = np.stack((lead, -lead), axis=1).ravel()
    return Cells(len(items), annotators, known // size**2, total, start, np.repeat(start // 2, 2), item, net)


def _added(where: AnyArray, values: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(where, values, size), np.float64)


@dataclass(frozen=True)
class Objective:
    """Likelihood and priors of scores and, after them, adherences."""

    held: ShardedData
    items: int
    annotators: int
    scale: float
    adherence_scale: float

    def split(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return x[: self.items], x[self.items :]

    def __call__(self, x: FloatArray) -> Evaluation:
        scores, adherence = self.split(x)
        seen, slopes = self.held.map_and_sum(mpm_likelihood.look, scores, adherence)
        own, of_people = gaussian(scores, self.scale), gaussian(adherence - 1.0, self.adherence_scale)
        gradient = np.concatenate((slopes.by_score + own.gradient, slopes.by_adherence + of_people.gradient))
        bend = np.concatenate((own.curvature, of_people.curvature))
        curvature = Curvature(seen, self.items, slopes.value, bend)
        return Evaluation(slopes.value + own.value + of_people.value, gradient, curvature)


@dataclass(frozen=True)
class Curvature:
    """Of the likelihood and the priors at one point."""

    seen: ShardedData
    items: int
    value: float
    """log P of the answers alone."""
    prior: FloatArray

    @cached_property
    def diagonal(self) -> FloatArray:
        return np.concatenate(self.seen.sum(mpm_likelihood.diagonal)) + self.prior

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        small = len(vector) <= _LARGEST_FACTORED
        return DampedCurvature(self.product, self.diagonal, self.matrix if small else None).solve(vector, tolerance)

    def product(self, vector: FloatArray) -> FloatArray:
        parts = np.split(vector, [self.items])
        return np.concatenate(self.seen.sum(mpm_likelihood.product, *parts)) + self.prior * vector

    def matrix(self) -> FloatArray:
        own, across = self.seen.sum(mpm_likelihood.blocks)
        full, items = np.diag(self.diagonal), self.items
        full[:items, :items] = own + np.diag(self.prior[:items])
        full[:items, items:] = across.toarray()
        full[items:, :items] = full[:items, items:].T
        return full

    def marginal(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of the scores and standard errors of adherences, each with the others unknown."""
        own, across = self.seen.sum(mpm_likelihood.blocks)
        items = self.items
        own.flat[:: items + 1] += self.prior[:items]
        for damping in DAMPINGS:
            spare = damping * self.diagonal
            shrunk = across.multiply(1.0 / (self.diagonal + spare)[items:]).tocsr()
            rest = own + np.diag(spare[:items]) - (shrunk @ across.T).toarray()
            try:
                np.linalg.cholesky(rest)
                break
            except np.linalg.LinAlgError:
                continue
        covariance = np.linalg.inv(rest)
        from_scores = np.asarray(shrunk.multiply((shrunk.T @ covariance).T).sum(axis=0)).ravel()
        return covariance, np.sqrt(1.0 / (self.diagonal + spare)[items:] + from_scores)


@dataclass(frozen=True)
class Top:
    """Where the climb ended, and what it says of items and annotators."""

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
        if len(self.items) <= LARGEST_INVERTED:
            error = self._marginal[1]
        else:  # given the scores
            error = 1.0 / np.sqrt(self.curvature.diagonal[len(self.items) :])
        return interval(self.objective.split(self.found.parameters)[1], error, np.array)

    def measure(self) -> Uncertainty:
        error, around = draw_from_covariance(self._marginal[0], self.items.centre, self.seed)
        known = "curvature at the optimum, of scores and annotators together"
        return Uncertainty(self.items.centre(self.scores) + around, error, known)


def _upright(
    answers: Answers, held: ShardedData, objective: Objective, items: Items, tolerance: float, max_steps: int
) -> OptimizeResult:
    """The highest summit, with the most annotators adhering.

    Negating scores and adherences together leaves the likelihood as it is.
    """

    def go(start: FloatArray) -> OptimizeResult:
        return maximize(objective, start, tolerance=tolerance, max_steps=max_steps, max_step=LONGEST_STEP)

    best, other = (go(start) for start in _starts(held, objective.annotators, items))
    # equal summits are one: the first stands, so that rounding never chooses
    if other.evaluation.value > best.evaluation.value + 1e-3 + 1e-7 * abs(best.evaluation.value):
        best = other
    scores = objective.split(best.parameters)[0]
    sided = np.sign(np.round(scores[answers.winner] - scores[answers.loser], 9))
    people = objective.annotators
    judged = _added(answers.annotator, answers.weight, people)
    agreed = _added(answers.annotator, answers.weight * (1.0 + sided) / 2, people)
    return go(-best.parameters) if turned(agreed, judged) else best


def _starts(held: ShardedData, people: int, items: Items) -> list[FloatArray]:
    """Everyone adheres, or as far as they agree with the crowd."""
    trusted = first_scores(held, items)
    trust = 2.0 * sigmoid(agreement(held, trusted, people)) - 1.0
    return [
        np.concatenate((trusted, np.ones(people))),
        np.concatenate((first_scores(held, items, trust), trust)),
    ]
