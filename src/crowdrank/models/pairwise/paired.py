"""What Bradley-Terry and Thurstone share: a pairwise formula, a prior on the scores, Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Items, PairCounts
from crowdrank.data.pair_counts import MAX_CELLS
from crowdrank.engines import Engine, Held
from crowdrank.errors import DataError, SeparationError, SettingError
from crowdrank.inference.curvature import Dense, Sparse
from crowdrank.inference.newton import Found, Point, climb
from crowdrank.models.base import SolverSettings, check_connected, check_solver, conclude, health_of
from crowdrank.models.laplace import Summit, draw
from crowdrank.models.pairwise import likelihood
from crowdrank.models.pairwise.likelihood import DAVIDSON, LOGISTIC, PROBIT, THRESHOLD, Pairs, Slopes
from crowdrank.models.score_priors import gaussian, virtual_node
from crowdrank.results import Convergence, Ranking, Uncertainty

# Up to this many items the curvature is factored outright; beyond it, conjugate gradients are quicker.
_LARGEST_FACTORED = 300
# The formula without room for ties that each formula with it grows from.
_WITHOUT_TIES = {LOGISTIC: LOGISTIC, PROBIT: PROBIT, DAVIDSON: LOGISTIC, THRESHOLD: PROBIT}


class PairwiseSettings(SolverSettings, Protocol):
    """The settings such a model has."""

    @property
    def prior_scale(self) -> float | None: ...
    @property
    def virtual_weight(self) -> float: ...
    @property
    def ties(self) -> str: ...


def check_settings(model: PairwiseSettings, ties: tuple[str, ...]) -> None:
    """Refuse settings that mean nothing."""
    if model.prior_scale is not None and not (0 < model.prior_scale < np.inf):
        raise SettingError(f"prior_scale must be positive, or None for no prior, got {model.prior_scale}.")
    if not 0 <= model.virtual_weight < np.inf:
        raise SettingError(f"virtual_weight must be zero or more, got {model.virtual_weight}.")
    if model.ties not in ties:
        raise SettingError(f"ties must be one of {', '.join(ties)}, got {model.ties!r}.")
    check_solver(model)


@dataclass(frozen=True)
class PairwiseCurvature:
    """The curvature at one point: products over shards, the prior on the diagonal, θ along the border."""

    bends: Held
    slopes: Slopes
    prior: FloatArray
    theta_prior: float | None
    items: Items

    @property
    def size(self) -> int:
        return len(self.prior)

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        if self.size <= _LARGEST_FACTORED:
            return Dense(self._matrix()).solve(vector)
        diagonal = self.slopes.diagonal + self.prior
        if self.theta_prior is not None:
            diagonal = np.append(diagonal, self.slopes.corner + self.theta_prior)
        return Sparse(self._product, diagonal).solve(vector, tolerance)

    def _matrix(self) -> FloatArray:
        (matrix,) = self.bends.total(likelihood.matrix, self.size)
        matrix.flat[:: self.size + 1] += self.prior
        if not self.prior.any():  # a common shift of a query's scores changes nothing: hold it fixed
            together = self.items.query[:, None] == self.items.query if len(self.items.queries) > 1 else 1.0
            matrix += together * (self.slopes.diagonal.mean() / self.size)
        if self.theta_prior is None:
            return np.asarray(matrix)
        border = self.slopes.border[:, None]
        return np.block([[matrix, border], [border.T, np.array([[self.slopes.corner + self.theta_prior]])]])

    def _product(self, vector: FloatArray) -> FloatArray:
        if self.theta_prior is None:
            return np.asarray(self.bends.total(likelihood.product, vector)[0] + self.prior * vector)
        scores, theta = vector[:-1], vector[-1]
        pushed = self.bends.total(likelihood.product, np.ascontiguousarray(scores))[0] + self.prior * scores
        corner = self.slopes.corner + self.theta_prior
        return np.append(pushed + self.slopes.border * theta, self.slopes.border @ scores + corner * theta)

    def summit(self) -> Summit:
        has_theta = self.theta_prior is not None
        return Summit(
            bends=self.bends,
            diagonal=self.slopes.diagonal + self.prior,
            prior=self.prior,
            starts=self.items.starts,
            border=self.slopes.border if has_theta else None,
            corner=self.slopes.corner + (self.theta_prior or 0.0),
        )


@dataclass(frozen=True)
class Objective:
    """log P(judgments | scores, θ) + log prior, at x = scores, then θ where ties have one."""

    held: Held
    items: Items
    formula: int
    prior_scale: float | None
    virtual_weight: float

    @property
    def has_theta(self) -> bool:
        return self.formula in (DAVIDSON, THRESHOLD)

    def __call__(self, x: FloatArray) -> Point:
        scores, theta = (x[:-1], float(x[-1])) if self.has_theta else (x, 0.0)
        if self.formula == THRESHOLD and theta <= 0:  # nobody could ever tie
            return Point(-np.inf, np.zeros_like(x), Dense(np.eye(len(x))))
        bends, slopes = self.held.keep(likelihood.slopes, scores, theta, self.formula)
        value, gradient, bend = slopes.value, slopes.gradient, np.zeros(len(scores))
        for prior in self._priors(scores):
            value, gradient, bend = value + prior.value, gradient + prior.gradient, bend + prior.bend
        theta_prior = None
        if self.has_theta:
            theta_prior = 0.0 if self.prior_scale is None else 1.0 / self.prior_scale**2
            value -= 0.5 * theta_prior * theta**2
            gradient = np.append(gradient, slopes.theta_gradient - theta_prior * theta)
        return Point(value, gradient, PairwiseCurvature(bends, slopes, bend, theta_prior, self.items))

    def _priors(self, scores: FloatArray) -> list[Any]:
        found = []
        if self.prior_scale is not None:
            found.append(gaussian(scores, self.prior_scale))
        if self.virtual_weight:
            found.append(virtual_node(scores, self.virtual_weight, _WITHOUT_TIES[self.formula]))
        return found

    def start(self, tie_share: float, earlier: FloatArray | None = None) -> FloatArray:
        """Scores of an earlier fit, or as if everyone had met average opponents; the θ that gives the ties seen."""
        scores = self._met_average() if earlier is None else np.nan_to_num(earlier)
        share = min(max(tie_share, 0.01), 0.99)
        if self.formula == DAVIDSON:
            return np.append(scores, np.log(2 * share / (1 - share)))
        if self.formula == THRESHOLD:
            from scipy.special import ndtri

            return np.append(scores, np.sqrt(2) * ndtri((1 + share) / 2))
        return scores

    def _met_average(self) -> FloatArray:
        net, total = self.held.total(likelihood.tallies, len(self.items))
        scores = np.log((total + net + 1) / (total - net + 1))
        # the more opponents differ, the nearer to even every share of wins: stretch the scores back
        scores *= np.sqrt(1.0 + np.var(scores) / 2.9)
        if self.formula in (PROBIT, THRESHOLD):  # Φ(x/√2) is nearly σ(1.2·x)
            scores /= 1.2
        return np.asarray(scores)


def fit_pairwise(model: PairwiseSettings, comparisons: Comparisons, even: int, tied: int, engine: Engine) -> Ranking:
    """`even` is the formula without ties; `tied` the one to use where some were given and are to be modelled."""
    ties = comparisons.ties
    if model.ties == "drop" and ties:
        if ties == len(comparisons):
            raise DataError('Every judgment is a tie: with ties="drop" nothing is left.')
        comparisons = comparisons.decided
    formula = tied if ties and model.ties not in ("half", "drop") else even
    if formula == tied and model.prior_scale is None and ties == len(comparisons):
        raise SeparationError("Every judgment is a tie, so no finite tie parameter fits. Set prior_scale.")
    check_connected(health_of(comparisons), model.prior_scale is not None or model.virtual_weight > 0)
    held = engine.hold(reduce(comparisons, formula))
    objective = Objective(held, comparisons.items, formula, model.prior_scale, model.virtual_weight)
    start = objective.start(ties / len(comparisons), comparisons.start)
    found = climb(objective, start, tolerance=model.tolerance, max_steps=model.max_steps)
    curvature = found.point.curvature
    assert isinstance(curvature, PairwiseCurvature)
    size = len(comparisons.items)
    return conclude(
        model,
        comparisons,
        found.parameters[:size],
        parameters={"tie": float(found.parameters[size])} if objective.has_theta else {},
        log_likelihood=curvature.slopes.value,
        convergence=Convergence(found.converged, found.steps, found.distance),
        measure=lambda: measure(found, curvature, comparisons.items, model.seed),
    )


def measure(found: Found, curvature: PairwiseCurvature, items: Items, seed: int) -> Uncertainty:
    error, around = draw(curvature.summit(), seed)
    return Uncertainty(items.centre(found.parameters[: len(items)]) + around, error, "curvature at the optimum")


def reduce(comparisons: Comparisons, formula: int) -> Any:
    """Rows as they are, or one row a pair where many judgments fall on few pairs; a table for an engine."""
    cells = len(comparisons.items) ** 2
    counting = -(-cells // MAX_CELLS)  # passes over the rows
    if cells * counting <= 2 * len(comparisons):
        return comparisons.map_count_chunks(partial(pairs_of_counts, formula=formula))
    return comparisons.map_chunks(pairs_of_rows)


def pairs_of_rows(comparisons: Comparisons) -> Pairs:
    return Pairs(comparisons.left, comparisons.right, comparisons.outcome, comparisons.weights)


def pairs_of_counts(counts: PairCounts, formula: int) -> Pairs:
    first, second = counts.first, counts.second
    if formula in (LOGISTIC, PROBIT):  # only the share of wins counts, a tie being half of one
        total = counts.total
        return Pairs(first, second, np.divide(counts.net, total, out=np.zeros(len(total)), where=total > 0), total)
    weight = np.concatenate((counts.first_wins, counts.second_wins, counts.ties))
    outcome = np.repeat(np.array([1.0, -1.0, 0.0]), len(counts))
    seen = weight > 0
    return Pairs(np.tile(first, 3)[seen], np.tile(second, 3)[seen], outcome[seen], weight[seen])
