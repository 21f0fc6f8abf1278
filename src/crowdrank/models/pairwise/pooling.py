"""Fits of bradley-terry and thurstone with random effects: partial pooling of queries, and tie tendencies of items.

With partial pooling, items with the same label in several queries (categories of a leaderboard) share an overall score:

    score of item i in category c = overall_i + deviation_ic,    deviation_ic ~ N(0, σ²).

σ is learnt from the judgments and integrated out. With σ = 0 all categories have one ranking; with a large σ each has
its own. What a category says little about is drawn towards the overall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.engines import ShardedData
from crowdrank.errors import DataError
from crowdrank.inference.curvature import invert_triangular
from crowdrank.inference.laplace import allocate
from crowdrank.inference.newton import Evaluation, maximize
from crowdrank.models.base import FitOptions, build_ranking, check_connected, diagnose, model_settings
from crowdrank.models.pairwise.covariates import CovariateCurvature
from crowdrank.models.pairwise.likelihood import DAVIDSON, FORMULAS, THRESHOLD, Pairs
from crowdrank.models.pairwise.paired import (
    TIE_SCALE,
    Objective,
    PairwiseModel,
    choose_formula,
    reduce_to_pairs,
)
from crowdrank.models.pairwise.spread import (
    DEVIATION_SPREAD_PRIOR,
    LARGEST,
    SCORE_SPREAD_PRIOR,
    SMALLEST,
    SpreadFit,
    SpreadPosterior,
    SpreadPrior,
    information_of,
    learn_spread,
    log_scale_derivative,
    neighbours_only,
)
from crowdrank.results import Convergence, LazyParts, Ranking, Uncertainty
from crowdrank.results.categories import DEVIATION, DEVIATION_ERROR

# Scores and tie tendencies that are sums of random effects, whose spreads are learnt by the Laplace evidence.
#
# An item of a query (a cell) has a score u and a tie tendency e, and a comparison of cells a and b has
#
# d = u_a − u_b, θ = e_a + e_b
#
# in the formulas of `likelihood` (of a threshold, e_a + e_b is the logarithm). Both are sums of blocks of parameters:
#
# u = overall score of the label + deviation of the cell (partial pooling), or the score of the cell e = θ₀/2 +
# tendency of the item + ½ · effect of the query (the second and third where they are asked for)
#
# The parameters of a block have the prior N(0, scale²). The curvature in all parameters is a full matrix.

SCORE, OVERALL, TIE_EFFECT, QUERY_TIE, TIE = "score", "overall", "tie_effect", "query_tie", "tie"
_LOOSE = 0.1
_MAX_ROUNDS = 25
# Scales have settled if the next step is below this share of their own standard error.
_SETTLED = 0.1


class Block(NamedTuple):
    """A block of parameters: the score (or tie tendency) of cell n has `coefficient` times parameter `member[n]`."""

    name: str
    of_ties: bool
    member: IntArray
    size: int
    coefficient: float = 1.0


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks of which scores and tie tendencies are made.

    Parameters
    ----------
    items : Items
        The cells: items within queries.
    pooled : bool
        Whether cells with the same label share an overall score.
    item_ties : bool
        Whether each item has a tie tendency of its own.
    has_ties : bool
        Whether ties are modelled at all.
    """

    items: Items
    pooled: bool
    item_ties: bool
    has_ties: bool

    @cached_property
    def labels(self) -> tuple[list[str], IntArray]:
        """The distinct labels, and the label of each cell as a position among them."""
        names, code = np.unique(self.items.labels.astype(str), return_inverse=True)
        return names.tolist(), code.astype(np.int64).ravel()

    @cached_property
    def blocks(self) -> list[Block]:
        cells = np.arange(len(self.items))
        names, label = self.labels
        found = [Block(SCORE, False, cells, len(cells))]
        if self.pooled:
            found.append(Block(OVERALL, False, label, len(names)))
        if self.has_ties and self.item_ties:
            own = (label, len(names)) if self.pooled else (cells, len(cells))
            found.append(Block(TIE_EFFECT, True, *own))
        if self.has_ties and self.pooled:
            found.append(Block(QUERY_TIE, True, self.items.query.astype(np.int64), len(self.items.queries), 0.5))
        if self.has_ties:
            found.append(Block(TIE, True, np.zeros_like(cells), 1, 0.5))
        return found

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each block lies in the parameters."""
        ends = np.cumsum([block.size for block in self.blocks]).tolist()
        return {b.name: slice(end - b.size, end) for b, end in zip(self.blocks, ends, strict=True)}

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)

    def part(self, x: FloatArray, name: str) -> FloatArray:
        """A block spread over the cells; zero if the layout does not have it. Parameters are the last axis of x."""
        for block in self.blocks:
            if block.name == name:
                return np.asarray(block.coefficient * x[..., self.slices[name]][..., block.member])
        return np.zeros((*x.shape[:-1], len(self.items)))

    def scores(self, x: FloatArray) -> FloatArray:
        """Scores of the cells."""
        return self.part(x, SCORE) + self.part(x, OVERALL)

    def tie_effects(self, x: FloatArray) -> FloatArray:
        """Tie tendencies of the cells beside θ₀."""
        return self.part(x, TIE_EFFECT) + self.part(x, QUERY_TIE)

    def collect_vector(self, of_score: FloatArray, of_ties: FloatArray) -> FloatArray:
        """The gradient in the parameters from those in scores and tie tendencies."""
        return np.concatenate(
            [b.coefficient * np.bincount(b.member, of_ties if b.of_ties else of_score, b.size) for b in self.blocks]
        )

    def collect_matrix(self, terms: EffectTerms) -> FloatArray:
        """The curvature in the parameters from those in scores and tie tendencies."""
        found = np.empty((self.size, self.size))
        for n, a in enumerate(self.blocks):
            for b in self.blocks[n:]:
                source = terms.mixed if a.of_ties != b.of_ties else terms.ties if a.of_ties else terms.scores
                part = a.coefficient * b.coefficient * _collapse(_collapse(source, a).T, b).T
                rows, columns = self.slices[a.name], self.slices[b.name]
                found[rows, columns] = part
                found[columns, rows] = part.T
        return found


def _collapse(matrix: FloatArray, block: Block) -> FloatArray:
    """Sums of the rows that share a parameter of the block."""
    if block.size == len(block.member) and block.name in (SCORE, TIE_EFFECT):
        return matrix
    members = np.zeros((block.size, len(block.member)))
    members[block.member, np.arange(len(block.member))] = 1.0
    return np.asarray(members @ matrix)


class EffectTerms(NamedTuple):
    """Log-likelihood of a shard with gradients and curvatures in scores and tie tendencies of the cells."""

    value: float
    of_score: FloatArray
    of_ties: FloatArray
    scores: FloatArray
    mixed: FloatArray
    ties: FloatArray


def evaluate(shard: Pairs, scores: FloatArray, ties: FloatArray, formula: int) -> EffectTerms:
    """Log-likelihood terms of one shard."""
    left, right, size = shard.left, shard.right, len(scores)
    theta = ties[left] + ties[right]
    if formula == THRESHOLD:  # the logarithm of a threshold, which must be positive
        theta = np.exp(theta)
    parts = FORMULAS[formula](scores[left] - scores[right], shard.outcome, theta)
    value, slope, curvature, tie_slope, cross, tie_curvature = (shard.weight * part for part in parts)
    if formula == THRESHOLD:
        tie_slope, cross, tie_curvature = theta * tie_slope, theta * cross, theta**2 * tie_curvature
        # The curvature of the exponential itself, −θ·∂/∂θ, is left out (Gauss-Newton) where it would make the matrix
        # of a comparison indefinite. It is zero in expectation.
        exact = tie_curvature - tie_slope
        tie_curvature = np.where(exact * curvature >= cross**2, exact, tie_curvature)
    nothing = np.zeros((0, 0))
    has_ties = formula in (DAVIDSON, THRESHOLD)
    return EffectTerms(
        value=float(value.sum()),
        of_score=np.asarray(np.bincount(left, slope, size) - np.bincount(right, slope, size), np.float64),
        of_ties=np.asarray(np.bincount(left, tie_slope, size) + np.bincount(right, tie_slope, size), np.float64),
        scores=_products(shard, curvature, size, -1, -1),
        mixed=_products(shard, cross, size, -1, 1) if has_ties else nothing,
        ties=_products(shard, tie_curvature, size, 1, 1) if has_ties else nothing,
    )


def _products(shard: Pairs, weight: FloatArray, size: int, p: int, q: int) -> FloatArray:
    """Sum over comparisons of weight·(eₗ + p·eᵣ)(eₗ + q·eᵣ)ᵀ."""
    left, right = shard.left, shard.right
    between = np.bincount(left * np.int64(size) + right, weight, size * size).reshape(size, size)
    matrix = q * between + p * between.T
    matrix.flat[:: size + 1] += np.bincount(left, weight, size) + p * q * np.bincount(right, weight, size)
    return np.asarray(matrix)


@dataclass(frozen=True)
class EffectObjective:
    """Log posterior at given scales of the blocks."""

    held: ShardedData
    layout: Layout
    formula: int
    scales: Mapping[str, float]

    def __call__(self, x: FloatArray) -> Evaluation:
        layout = self.layout
        ties = layout.tie_effects(x) + layout.part(x, TIE)
        terms: EffectTerms = self.held.sum(evaluate, layout.scores(x), ties, self.formula)
        precision = np.concatenate([np.full(b.size, self.scales[b.name] ** -2.0) for b in layout.blocks])
        value = terms.value - 0.5 * float(precision @ x**2)
        gradient = layout.collect_vector(terms.of_score, terms.of_ties) - precision * x
        curvature = layout.collect_matrix(terms)
        curvature.flat[:: len(x) + 1] += precision
        return Evaluation(value, gradient, CovariateCurvature(curvature, terms.value))


def learn_scales(
    objective_at: Callable[[Mapping[str, float]], EffectObjective],
    start: FloatArray,
    layout: Layout,
    first: Mapping[str, float],
    priors: Mapping[str, SpreadPrior],
    max_steps: int,
) -> tuple[dict[str, float], FloatArray]:
    """The scales with the largest evidence, and the parameters there. Scales without a prior are kept."""
    scales, x = dict(first), start
    for _ in range(_MAX_ROUNDS):
        found = maximize(objective_at(scales), x, tolerance=_LOOSE, max_steps=max_steps)
        x = found.parameters
        curvature = found.evaluation.curvature
        assert isinstance(curvature, CovariateCurvature)
        factor = np.asarray(np.linalg.cholesky(curvature.matrix()), np.float64)
        variance = np.sum(invert_triangular(factor) ** 2, axis=0)
        largest = 0.0
        for name in priors:
            values, own = x[layout.slices[name]], variance[layout.slices[name]]
            here = float(np.log(scales[name]))
            information = information_of(own, here)
            step = float(
                np.clip(log_scale_derivative(values, float(own.sum()), here, priors[name]) / information, -1.0, 1.0)
            )
            there = float(np.clip(here + step, np.log(SMALLEST), np.log(LARGEST)))
            largest = max(largest, abs(there - here) * information**0.5)
            scales[name] = float(np.exp(there))
        if largest < _SETTLED:
            break
    return scales, x


MAX_PARAMETERS = 4_000
"""The curvature is a full matrix, so models with more parameters are refused."""
_DRAWS = 1000
_FIRST = {SCORE: 0.3, OVERALL: 1.0, TIE_EFFECT: 0.3, QUERY_TIE: 0.3}


def fit_with_effects(model: PairwiseModel, comparisons: Comparisons, options: FitOptions) -> Ranking:
    """Fit a model with partial pooling or tie tendencies of items."""
    tie_share = comparisons.ties / len(comparisons)
    comparisons, formula = choose_formula(model, comparisons)
    pooled = model.pooling == "partial"
    layout = Layout(
        comparisons.items, pooled, model_settings(model)["ties"] == "per-item", formula in (DAVIDSON, THRESHOLD)
    )
    if layout.size > MAX_PARAMETERS:
        raise DataError(
            f"{len(comparisons.items):,} items (each category counts) need {layout.size:,} parameters; at most "
            f"{MAX_PARAMETERS:,} can be estimated together."
        )
    check_connected(diagnose(_by_label(comparisons, layout) if pooled else comparisons), has_prior=True)
    held = options.engine.load(reduce_to_pairs(comparisons, formula))
    plain = Objective(held, comparisons.items, formula, None, 0.0)
    start = plain.start(tie_share, options.init)
    if formula == THRESHOLD:
        start[-1] = np.log(start[-1])
    start = _start(layout, start)
    scales = {block.name: _FIRST.get(block.name, TIE_SCALE) for block in layout.blocks}
    base = OVERALL if pooled else SCORE
    by_wins = plain.scores_from_win_rates()
    scales[base] = max(float(np.std(by_wins)), 0.3) if model.prior_scale == "auto" else float(model.prior_scale or 1.0)
    fixed = {TIE} if model.prior_scale == "auto" else {TIE, base}
    priors = {
        b.name: SCORE_SPREAD_PRIOR if b.name == base else DEVIATION_SPREAD_PRIOR
        for b in layout.blocks
        if b.name not in fixed
    }

    def objective_at(given: Mapping[str, float]) -> EffectObjective:
        return EffectObjective(held, layout, formula, given)

    scales, x = learn_scales(objective_at, start, layout, scales, priors, model.max_steps)
    if SCORE in priors:
        posterior = learn_spread(
            lambda scale: objective_at({**scales, SCORE: scale}),
            x,
            scales[SCORE],
            layout.items,
            model.tolerance,
            model.max_steps,
            not pooled and neighbours_only(comparisons, by_wins),
            priors[SCORE],
        )
    else:
        found = maximize(objective_at(scales), x, tolerance=model.tolerance, max_steps=model.max_steps)
        posterior = SpreadPosterior([SpreadFit(float(np.log(scales[SCORE])), found, layout.items)], np.ones(1))
    return _EffectPosterior(model, comparisons, layout, posterior, scales).ranking()


def _start(layout: Layout, plain: FloatArray) -> FloatArray:
    """Starting values from scores of the cells and, last, θ."""
    x, scores = np.zeros(layout.size), plain[: len(layout.items)]
    if layout.pooled:
        names, label = layout.labels
        x[layout.slices[OVERALL]] = np.bincount(label, scores, len(names)) / np.bincount(label)
    else:
        x[layout.slices[SCORE]] = scores
    if layout.has_ties:
        x[layout.slices[TIE]] = plain[-1]
    return x


def _by_label(comparisons: Comparisons, layout: Layout) -> Comparisons:
    """The comparisons of all queries together."""
    names, label = layout.labels
    code = label.astype(np.int32)
    return replace(
        comparisons,
        items=Items.of(names),
        left=code[comparisons.left],
        right=code[comparisons.right],
        storage=None,
    )


@dataclass(frozen=True, eq=False)
class _EffectPosterior:
    """The parameters as a mixture of normal distributions, and what follows for scores of cells and labels."""

    model: PairwiseModel
    comparisons: Comparisons
    layout: Layout
    posterior: SpreadPosterior
    scales: Mapping[str, float]

    @property
    def _label(self) -> IntArray:
        return self.layout.labels[1]

    def _cells(self, x: FloatArray) -> FloatArray:
        """Scores of the cells, centred in each query; parameters are the last axis of x."""
        return self.layout.items.centre(self.layout.scores(x))

    def _overall(self, x: FloatArray) -> FloatArray:
        """Mean over queries of the score of each label, centred; in queries without it, the deviation is zero."""
        deviation = self.layout.part(x, SCORE)
        share = np.zeros((len(self._label), len(self.layout.labels[0])))
        share[np.arange(len(share)), self._label] = 1.0 / len(self.layout.items.queries)
        overall = x[..., self.layout.slices[OVERALL]] + deviation @ share
        return np.asarray(overall - overall.mean(axis=-1, keepdims=True))

    def _deviations(self, x: FloatArray) -> FloatArray:
        """How far the score of a cell is from the overall one, centred in each query."""
        return self.layout.items.centre(self.layout.scores(x) - self._overall(x)[..., self._label])

    @cached_property
    def _missing(self) -> FloatArray:
        """Variance of the overall scores by the deviations in queries that do not have the item."""
        queries = len(self.layout.items.queries)
        absent = queries - np.bincount(self._label)
        scale = self.posterior.weights @ np.array([np.exp(2 * fit.log_scale) for fit in self.posterior.fits])
        return np.asarray(scale * absent / queries**2)

    def _error(self, derive: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Standard errors of scores that are linear in the parameters."""
        mean = derive(self.posterior.parameters)
        variance = np.zeros(len(mean))
        for weight, fit in zip(self.posterior.weights, self.posterior.fits, strict=True):
            within = np.sum(derive(fit.root) ** 2, axis=0)
            variance += weight * (within + (derive(fit.found.parameters) - mean) ** 2)
        return np.asarray(np.sqrt(variance))

    @cached_property
    def _draws(self) -> FloatArray:
        rng, drawn = np.random.default_rng(self.model.seed), []
        counts = allocate(self.posterior.weights, _DRAWS)
        for count, fit in zip(counts, self.posterior.fits, strict=True):
            if count:
                noise = rng.standard_normal((int(count), self.layout.size))
                drawn.append(fit.found.parameters + noise @ fit.root)
        return np.concatenate(drawn)

    def _method(self) -> str:
        mixed = len(self.posterior.fits) > 1
        return "Laplace approximation, averaged over the spread of scores" if mixed else "Laplace approximation"

    def _measure_cells(self) -> Uncertainty:
        sampled = len(self.posterior.fits) > 1
        return Uncertainty(self._cells(self._draws), self._error(self._cells), self._method(), sampled=sampled)

    def _measure_overall(self) -> Uncertainty:
        draws, sampled = self._overall(self._draws), len(self.posterior.fits) > 1
        draws += np.random.default_rng(self.model.seed + 1).standard_normal(draws.shape) * np.sqrt(self._missing)
        error = np.sqrt(self._error(self._overall) ** 2 + self._missing)
        return Uncertainty(draws, error, self._method(), sampled=sampled)

    def _parameters(self) -> dict[str, float]:
        x, slices = self.posterior.parameters, self.layout.slices
        base = OVERALL if self.layout.pooled else SCORE
        scales = {**self.scales, SCORE: self.posterior.scale}
        found = {}
        if self.layout.has_ties:
            tie = float(x[slices[TIE]][0])
            found["tie"] = float(np.exp(tie)) if self.model.formulas[1] == THRESHOLD else tie
        found["prior_scale"] = scales[base]
        if self.layout.pooled:
            found["deviation_scale"] = scales[SCORE]
        for name in (TIE_EFFECT, QUERY_TIE):
            if name in slices:
                found[f"{name}_scale"] = scales[name]
        return found

    def ranking(self) -> Ranking:
        x, optimum, pooled = self.posterior.parameters, self.posterior.slowest, self.layout.pooled
        curvature = optimum.evaluation.curvature
        assert isinstance(curvature, CovariateCurvature)
        per_item: dict[str, FloatArray] = {}
        if {TIE_EFFECT, QUERY_TIE} & set(self.layout.slices):
            per_item["tie_effect"] = self.layout.tie_effects(x)
        if pooled:
            error = np.sqrt(self._error(self._deviations) ** 2 + self._missing[self._label])
            per_item |= {DEVIATION: self._deviations(x), DEVIATION_ERROR: error}
        ranking = build_ranking(
            self.model,
            self.comparisons,
            self.layout.scores(x),
            parameters=self._parameters(),
            item_parameters=per_item,
            log_likelihood=curvature.log_likelihood,
            convergence=Convergence(optimum.converged, optimum.steps, optimum.distance),
            measure=self._measure_cells,
        )
        return self._with_overall(ranking, x) if pooled else ranking

    def _with_overall(self, ranking: Ranking, x: FloatArray) -> Ranking:
        names, label = self.layout.labels

        def count() -> IntArray:
            return np.bincount(label, ranking.n_judgments, len(names)).astype(np.int64)

        def notes() -> list[str]:
            return diagnose(_by_label(self.comparisons, self.layout)).notes()

        overall = replace(
            ranking,
            items=Items.of(names),
            scores=self._overall(x),
            item_parameters={},
            _lazy=LazyParts(n_judgments=count, uncertainty=self._measure_overall, notes=notes),
        )
        return replace(ranking.with_parts(notes=notes), overall=overall)
