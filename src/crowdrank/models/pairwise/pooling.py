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

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.errors import DataError
from crowdrank.inference.laplace_mixture import allocate
from crowdrank.inference.newton import maximize
from crowdrank.models.base import FitOptions, build_ranking, check_connected, diagnose, model_settings
from crowdrank.models.pairwise.covariates import CovariateCurvature, fit_with_covariates
from crowdrank.models.pairwise.effects import (
    OVERALL,
    QUERY_TIE,
    SCORE,
    TIE,
    TIE_EFFECT,
    EffectObjective,
    Layout,
    learn_scales,
)
from crowdrank.models.pairwise.likelihood import DAVIDSON, THRESHOLD
from crowdrank.models.pairwise.paired import (
    TIE_SCALE,
    Objective,
    PairwiseModel,
    choose_formula,
    fit_pairwise,
    reduce,
    without_both_bad,
)
from crowdrank.models.pairwise.spread import (
    OF_DEVIATIONS,
    OF_SCORES,
    SpreadFit,
    SpreadPosterior,
    learn_spread,
    neighbours_only,
)
from crowdrank.results import Convergence, LazyParts, Ranking, Uncertainty
from crowdrank.results.categories import DEVIATION, DEVIATION_ERROR

MAX_PARAMETERS = 4_000
"""The curvature is a full matrix, so models with more parameters are refused."""
BOTH_BAD = "both_bad"
"""Name of the item parameter with the share of an item's comparisons whose answer is that both are bad."""
_DRAWS = 1000
_FIRST = {SCORE: 0.3, OVERALL: 1.0, TIE_EFFECT: 0.3, QUERY_TIE: 0.3}


def fit_comparisons(model: PairwiseModel, comparisons: Comparisons, options: FitOptions) -> Ranking:
    """Fit bradley-terry or thurstone by the code that its settings need."""
    kept = without_both_bad(model, comparisons)
    if len(kept) < len(comparisons):
        return _with_both_bad_shares(fit_comparisons(model, kept, options), comparisons)
    if model.covariates:
        return fit_with_covariates(model, comparisons, options)
    if model.has_random_effects:
        return _fit_with_effects(model, comparisons, options)
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


def _fit_with_effects(model: PairwiseModel, comparisons: Comparisons, options: FitOptions) -> Ranking:
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
    held = options.engine.load(reduce(comparisons, formula))
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
    priors = {b.name: OF_SCORES if b.name == base else OF_DEVIATIONS for b in layout.blocks if b.name not in fixed}

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
        return "curvature, averaged over the spread" if mixed else "curvature at the optimum"

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
