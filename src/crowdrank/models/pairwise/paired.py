"""Code shared by bradley-terry and thurstone: settings, log posterior and its curvature, fitting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Items, PairCounts
from crowdrank.data.pair_counts import MAX_CELLS
from crowdrank.engines import ShardedData
from crowdrank.errors import DataError, SeparationError, SettingError
from crowdrank.inference.curvature import DenseCurvature, MatrixFreeCurvature, hessian_matrix, hessian_product
from crowdrank.inference.laplace import LaplaceApproximation
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize
from crowdrank.models.base import FitOptions, IterativeModel, build_ranking, check_connected, diagnose, model_settings
from crowdrank.models.pairwise import likelihood
from crowdrank.models.pairwise.likelihood import (
    DAVIDSON,
    LOGISTIC,
    PROBIT,
    THRESHOLD,
    LikelihoodTerms,
    Pairs,
    WinMatrix,
    gaussian,
    outcome_probabilities,
    virtual_node,
)
from crowdrank.models.pairwise.spread import learn_spread, neighbours_only
from crowdrank.results import Convergence, Ranking, Uncertainty

# Up to this many items the curvature is factored; beyond it, conjugate gradients are faster.
_LARGEST_FACTORED = 300
# Standard deviation of the prior on θ where the spread of the scores is learnt.
TIE_SCALE = 3.0
# Up to this many cells per judgment, a table of wins is faster than the judgments.
_CELLS_PER_ROW = 4
_DRAWS = 1000
BOTH_BAD = "both_bad"
"""Name of the item parameter with the share of an item's comparisons whose answer is that both are bad."""
# The formula without ties that each formula extends.
WITHOUT_TIES = {LOGISTIC: LOGISTIC, PROBIT: PROBIT, DAVIDSON: LOGISTIC, THRESHOLD: PROBIT}


@dataclass(frozen=True, kw_only=True)
class PairwiseModel(IterativeModel):
    """The settings that bradley-terry and thurstone share."""

    shares_scores: ClassVar[bool] = True
    formulas: ClassVar[tuple[int, int]]
    """The likelihood without ties, and the one that models them."""

    prior_scale: float | Literal["auto"] | None = "auto"
    virtual_weight: float = 0.0
    covariates: tuple[str, ...] = ()
    pooling: Literal["none", "partial"] = "none"
    both_bad: Literal["tie", "apart"] = "tie"
    max_steps: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        scale = self.prior_scale
        if scale not in (None, "auto") and (isinstance(scale, str) or not 0 < scale < np.inf):
            raise SettingError(f'prior_scale must be positive, "auto", or None for no prior, got {scale!r}.')
        if not 0 <= self.virtual_weight < np.inf:
            raise SettingError(f"virtual_weight must be zero or more, got {self.virtual_weight}.")
        if isinstance(self.covariates, str):
            raise SettingError(f"covariates must be a tuple of names, got {self.covariates!r}.")
        if self.both_bad not in ("tie", "apart"):
            raise SettingError(f"both_bad must be tie or apart, got {self.both_bad!r}.")
        if self.pooling not in ("none", "partial"):
            raise SettingError(f"pooling must be none or partial, got {self.pooling!r}.")
        if self.has_random_effects:
            self._check_random_effects()

    @property
    def has_random_effects(self) -> bool:
        """Whether scores or tie tendencies are sums of random effects; see `effects`."""
        return self.pooling == "partial" or model_settings(self)["ties"] == "per-item"

    def _check_random_effects(self) -> None:
        what = "pooling='partial'" if self.pooling == "partial" else "ties='per-item'"
        if self.covariates:
            raise SettingError(f"{what} cannot be combined with covariates.")
        if self.prior_scale is None:
            raise SettingError(f"{what} needs a prior on scores: prior_scale must not be None.")
        if self.virtual_weight:
            raise SettingError(f"{what} cannot be combined with virtual_weight.")


def check_ties(ties: str, allowed: tuple[str, ...]) -> None:
    """Refuse an unknown treatment of ties."""
    if ties not in allowed:
        raise SettingError(f"ties must be one of {', '.join(allowed)}, got {ties!r}.")


@dataclass(frozen=True)
class PairwiseCurvature:
    """Curvature of the log posterior: products over shards, the prior on the diagonal, θ as the last row and column."""

    pairs: ShardedData
    terms: LikelihoodTerms
    prior: FloatArray
    theta_prior: float | None
    items: Items

    @property
    def size(self) -> int:
        return len(self.prior)

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        if self.size <= _LARGEST_FACTORED:
            return DenseCurvature(self.matrix()).solve(vector, tolerance)
        return MatrixFreeCurvature(self._product, self.diagonal).solve(vector, tolerance)

    @property
    def diagonal(self) -> FloatArray:
        scores = self.terms.diagonal + self.prior
        return scores if self.theta_prior is None else np.append(scores, self.terms.corner + self.theta_prior)

    def matrix(self) -> FloatArray:
        (matrix,) = self.pairs.sum(hessian_matrix, self.size)
        matrix.flat[:: self.size + 1] += self.prior
        if not self.prior.any():  # a common shift of a query's scores changes nothing: hold it fixed
            together = self.items.query[:, None] == self.items.query if len(self.items.queries) > 1 else 1.0
            matrix += together * (self.terms.diagonal.mean() / self.size)
        if self.theta_prior is None:
            return np.asarray(matrix)
        border = self.terms.border[:, None]
        return np.block([[matrix, border], [border.T, np.array([[self.terms.corner + self.theta_prior]])]])

    def _product(self, vector: FloatArray) -> FloatArray:
        if self.theta_prior is None:
            return np.asarray(self.pairs.sum(hessian_product, vector)[0] + self.prior * vector)
        scores, theta = vector[:-1], vector[-1]
        product = self.pairs.sum(hessian_product, np.ascontiguousarray(scores))[0] + self.prior * scores
        corner = self.terms.corner + self.theta_prior
        return np.append(product + self.terms.border * theta, self.terms.border @ scores + corner * theta)

    def laplace(self) -> LaplaceApproximation:
        has_theta = self.theta_prior is not None
        return LaplaceApproximation(
            curvature=self.pairs,
            diagonal=self.terms.diagonal + self.prior,
            prior=self.prior,
            starts=self.items.starts,
            border=self.terms.border if has_theta else None,
            corner=self.terms.corner + (self.theta_prior or 0.0),
        )


@dataclass(frozen=True)
class Objective:
    """Log posterior log P(judgments | scores, θ) + log prior, at x = (scores, θ); θ only where ties are modelled."""

    held: ShardedData
    items: Items
    formula: int
    prior_scale: float | None
    virtual_weight: float
    tie_scale: float | None = None

    @property
    def has_theta(self) -> bool:
        return self.formula in (DAVIDSON, THRESHOLD)

    def __call__(self, x: FloatArray) -> Evaluation:
        scores, theta = (x[:-1], float(x[-1])) if self.has_theta else (x, 0.0)
        if self.formula == THRESHOLD and theta <= 0:  # outside the domain: no tie would be possible
            return Evaluation(-np.inf, np.zeros_like(x), DenseCurvature(np.eye(len(x))))
        pairs, terms = self.held.map_and_sum(likelihood.evaluate, scores, theta, self.formula)
        value, gradient, prior_curvature = terms.value, terms.gradient, np.zeros(len(scores))
        for prior in self._priors(scores):
            value, gradient, prior_curvature = (
                value + prior.value,
                gradient + prior.gradient,
                prior_curvature + prior.curvature,
            )
        theta_prior = None
        if self.has_theta:
            theta_prior = 0.0 if self.tie_scale is None else 1.0 / self.tie_scale**2
            value -= 0.5 * theta_prior * theta**2
            gradient = np.append(gradient, terms.theta_gradient - theta_prior * theta)
        return Evaluation(value, gradient, PairwiseCurvature(pairs, terms, prior_curvature, theta_prior, self.items))

    def _priors(self, scores: FloatArray) -> list[Any]:
        found = []
        if self.prior_scale is not None:
            found.append(gaussian(scores, self.prior_scale))
        if self.virtual_weight:
            found.append(virtual_node(scores, self.virtual_weight, WITHOUT_TIES[self.formula]))
        return found

    def start(self, tie_share: float, earlier: FloatArray | None = None) -> FloatArray:
        """Starting values: given scores, or scores from win rates; and the θ that gives the observed share of ties."""
        scores = self.scores_from_win_rates() if earlier is None else np.nan_to_num(earlier)
        share = min(max(tie_share, 0.01), 0.99)
        if self.formula == DAVIDSON:
            return np.append(scores, np.log(2 * share / (1 - share)))
        if self.formula == THRESHOLD:
            from scipy.special import ndtri

            return np.append(scores, np.sqrt(2) * ndtri((1 + share) / 2))
        return scores

    def scores_from_win_rates(self) -> FloatArray:
        net, total = self.held.sum(likelihood.win_loss_counts, len(self.items))
        scores = np.log((total + net + 1) / (total - net + 1))
        # win rates against mixed opponents are shrunk towards one half: correct for the variance of the opponents
        scores *= np.sqrt(1.0 + np.var(scores) / 2.9)
        if self.formula in (PROBIT, THRESHOLD):  # Φ(x/√2) is nearly σ(1.2·x)
            scores /= 1.2
        return np.asarray(scores)


def predict_outcomes(
    model: PairwiseModel, ranking: Ranking, comparisons: Comparisons, covariate_margin: FloatArray
) -> FloatArray:
    """Probabilities of left, tie and right for each comparison, as columns."""
    left, right = comparisons.left, comparisons.right
    margin = ranking.scores[left] - ranking.scores[right] + covariate_margin
    tie = ranking.parameters.get("tie")
    if tie is None:
        return outcome_probabilities(margin, 0.0, model.formulas[0])
    effect = ranking.item_parameters.get("tie_effect")
    if effect is None:
        return outcome_probabilities(margin, tie, model.formulas[1])
    both = effect[left] + effect[right]
    theta = tie * np.exp(both) if model.formulas[1] == THRESHOLD else tie + both
    return outcome_probabilities(margin, theta, model.formulas[1])


def fit_comparisons(model: PairwiseModel, comparisons: Comparisons, options: FitOptions) -> Ranking:
    """Fit bradley-terry or thurstone by the code that its settings need."""
    kept = without_both_bad(model, comparisons)
    if len(kept) < len(comparisons):
        return _with_both_bad_shares(fit_comparisons(model, kept, options), comparisons)
    if model.covariates:
        from crowdrank.models.pairwise.covariates import fit_with_covariates

        return fit_with_covariates(model, comparisons, options)
    if model.has_random_effects:
        from crowdrank.models.pairwise.pooling import fit_with_effects

        return fit_with_effects(model, comparisons, options)
    return fit_pairwise(model, comparisons, options)


def _with_both_bad_shares(ranking: Ranking, comparisons: Comparisons) -> Ranking:
    """The ranking with the share of the comparisons of each item whose answer is that both are bad, and a note."""
    assert comparisons.both_bad is not None
    apart, size = comparisons.both_bad, len(comparisons.items)
    totals, bad = (
        sum(np.bincount(side, weight, size) for side in (comparisons.left, comparisons.right))
        for weight in (comparisons.weights, comparisons.weights * apart)
    )
    share = np.asarray(bad) / np.maximum(totals, 1e-300)
    count = int(apart.sum())
    said = "1 answer says" if count == 1 else f"{count:,} answers say"
    notes = [f"{said} that both are bad; {ranking.model} keeps them apart from ties and ranks without them."]
    return replace(
        ranking.with_parts(notes=lambda: notes + ranking.notes),
        item_parameters={**ranking.item_parameters, BOTH_BAD: share},
    )


def without_both_bad(model: PairwiseModel, comparisons: Comparisons) -> Comparisons:
    """The comparisons without the answers that both items are bad, if the model keeps these apart."""
    if model.both_bad == "tie" or comparisons.both_bad is None:
        return comparisons
    if comparisons.both_bad.all():
        raise DataError('Every judgment says that both items are bad: with both_bad="apart" nothing is left.')
    return comparisons.take(np.flatnonzero(~comparisons.both_bad))


def choose_formula(model: PairwiseModel, comparisons: Comparisons) -> tuple[Comparisons, int]:
    """The comparisons to fit, without ties if they are dropped, and the formula of their likelihood."""
    (even, tied), ties, ties_setting = model.formulas, comparisons.ties, model_settings(model)["ties"]
    if ties_setting == "drop" and ties:
        if ties == len(comparisons):
            raise DataError('Every judgment is a tie: with ties="drop" nothing is left.')
        comparisons = comparisons.decided
    formula = tied if ties and ties_setting not in ("half", "drop") else even
    if formula == tied and model.prior_scale is None and ties == len(comparisons):
        raise SeparationError("Every judgment is a tie, so no finite tie parameter fits. Set prior_scale.")
    return comparisons, formula


def fit_pairwise(model: PairwiseModel, comparisons: Comparisons, options: FitOptions) -> Ranking:
    """Fit by Newton's method."""
    ties = comparisons.ties
    comparisons, formula = choose_formula(model, comparisons)
    check_connected(diagnose(comparisons), model.prior_scale is not None or model.virtual_weight > 0)
    held = options.engine.load(reduce(comparisons, formula))
    given = None if model.prior_scale == "auto" else model.prior_scale
    tie_scale = TIE_SCALE if model.prior_scale == "auto" else given

    def objective_at(scale: float | None) -> Objective:
        return Objective(held, comparisons.items, formula, scale, model.virtual_weight, tie_scale)

    start = objective_at(None).start(ties / len(comparisons), options.init)
    if model.prior_scale == "auto":
        # the first value of the spread must not depend on the starting values
        by_wins = objective_at(None).scores_from_win_rates()
        from_above = neighbours_only(comparisons, by_wins)
        return _fit_with_spread(model, comparisons, objective_at, start, float(np.std(by_wins)), from_above)
    found = maximize(objective_at(given), start, tolerance=model.tolerance, max_steps=model.max_steps)
    return _ranking(
        model, comparisons, found, found.parameters, {}, lambda: measure(found, comparisons.items, model.seed)
    )


def _fit_with_spread(
    model: PairwiseModel,
    comparisons: Comparisons,
    objective_at: Callable[[float | None], Objective],
    start: FloatArray,
    spread: float,
    from_above: bool,
) -> Ranking:
    items, seed = comparisons.items, model.seed
    posterior = learn_spread(objective_at, start, spread, items, model.tolerance, model.max_steps, from_above)
    found, parameters = posterior.slowest, posterior.parameters
    if len(posterior.fits) > 1:  # the mean is not an optimum: evaluate the likelihood there
        found = replace(found, evaluation=objective_at(posterior.scale)(parameters))

    def measure_spread() -> Uncertainty:
        if len(posterior.fits) == 1:
            return measure(found, items, seed)
        mixture = posterior.mixture
        return Uncertainty(
            mixture.draw(_DRAWS, seed),
            mixture.std_error,
            "Laplace approximation, averaged over the spread of scores",
            sampled=True,
        )

    return _ranking(model, comparisons, found, parameters, {"prior_scale": posterior.scale}, measure_spread)


def _ranking(
    model: PairwiseModel,
    comparisons: Comparisons,
    found: OptimizeResult,
    x: FloatArray,
    parameters: dict[str, float],
    measured: Callable[[], Uncertainty],
) -> Ranking:
    curvature, size = found.evaluation.curvature, len(comparisons.items)
    assert isinstance(curvature, PairwiseCurvature)
    return build_ranking(
        model,
        comparisons,
        x[:size],
        parameters=({"tie": float(x[size])} if len(x) > size else {}) | parameters,
        log_likelihood=curvature.terms.value,
        convergence=Convergence(found.converged, found.steps, found.distance),
        measure=measured,
    )


def measure(found: OptimizeResult, items: Items, seed: int) -> Uncertainty:
    curvature = found.evaluation.curvature
    assert isinstance(curvature, PairwiseCurvature)
    error, around = curvature.laplace().draw(seed)
    return Uncertainty(items.centre(found.parameters[: len(items)]) + around, error, "Laplace approximation")


def reduce(comparisons: Comparisons, formula: int) -> Any:
    """A table for an engine: the judgments, or one row or cell per pair if many judgments fall on few pairs."""
    size = len(comparisons.items)
    cells = size**2
    few = size <= _LARGEST_FACTORED and cells <= _CELLS_PER_ROW * len(comparisons)
    if few and formula == LOGISTIC and comparisons.storage is None:
        given = comparisons.left, comparisons.right, comparisons.outcome
        return WinMatrix.of(size, *given, comparisons.weight)
    return reduce_to_pairs(comparisons, formula)


def reduce_to_pairs(comparisons: Comparisons, formula: int) -> Any:
    """The same, where the likelihood has terms of single comparisons: rows of left and right, or one per pair."""
    cells = len(comparisons.items) ** 2
    counting = -(-cells // MAX_CELLS)  # passes over the rows
    if cells * counting <= 2 * len(comparisons):
        return comparisons.map_count_chunks(partial(pairs_of_counts, formula=formula))
    return comparisons.map_chunks(pairs_of_rows)


def pairs_of_rows(comparisons: Comparisons) -> Pairs:
    return Pairs(comparisons.left, comparisons.right, comparisons.outcome, comparisons.weights)


def pairs_of_counts(counts: PairCounts, formula: int) -> Pairs:
    first, second = counts.first, counts.second
    if formula in (LOGISTIC, PROBIT):  # sufficient statistic: the share of wins, a tie counted as half
        total = counts.total
        return Pairs(first, second, np.divide(counts.net, total, out=np.zeros(len(total)), where=total > 0), total)
    weight = np.concatenate((counts.first_wins, counts.second_wins, counts.ties))
    outcome = np.repeat(np.array([1.0, -1.0, 0.0]), len(counts))
    seen = weight > 0
    return Pairs(np.tile(first, 3)[seen], np.tile(second, 3)[seen], outcome[seen], weight[seen])
