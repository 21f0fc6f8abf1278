"""Fit Crowd-BT with the annotators as random effects: their quality is integrated out, not estimated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.data.side_information import EncodedSideInformation
from crowdrank.engines import ShardedData
from crowdrank.inference.laplace import LaplaceMixture
from crowdrank.models.base import FitOptions, IterativeModel, build_ranking, with_annotators
from crowdrank.models.crowd.direction import log_odds_of_direction
from crowdrank.models.crowd.encoding import (
    agreement_counts,
    agreement_logits,
    answer_table,
    initial_scores,
    weight_by_annotator,
)
from crowdrank.models.crowd.hyperparameter_designs import LatticeExplorer, StarExplorer
from crowdrank.models.crowd.hyperparameters import IMPLAUSIBLE, LARGEST_SCALE, Mode
from crowdrank.models.crowd.importance import MAX_ITEMS, MAX_ROWS, WeightedDraws, sample_posterior
from crowdrank.models.crowd.likelihood import Answers, sigmoid, sigmoid_pair
from crowdrank.models.crowd.marginal_likelihood import COMPILE_MIN_ROWS, GridTables, weight_of_ties
from crowdrank.models.crowd.marginal_objective import Hyperparameters, MarginalObjective
from crowdrank.models.crowd.quality_priors import (
    NO_TIES,
    QualityDistribution,
    TieDistribution,
    grid_quantiles,
    make_grids,
)
from crowdrank.models.crowd.spread_profile import ProfileExplorer, is_thin
from crowdrank.models.pairwise.spread import neighbours_only
from crowdrank.results import Convergence, Ranking, Uncertainty

# Where the search for hyperparameters starts.
_FIRST_SCALE, _FIRST_QUALITY, _FIRST_TIE_SPREAD = 1.0, QualityDistribution(0.86, 3.5), 0.5
_FIRST_TIE_SLOPE = 0.5
_MIN_DRAWS, _MAX_DRAWS, _MAX_CELLS = 200, 2000, 4_000_000
# Share of the largest spread from which on it is checked whether equal annotators would have a larger one.
_NEAR_BOUND = 0.9
# Odds that a gold pair is wrong, when gold pairs decide between an order and its reverse.
_GOLD_ERROR = 0.05
# Log odds from which on an order is flipped: it follows from a minority who answer in reverse.
_FLIPPING_ODDS = 1.0
# Between these numbers of answers, annotators' posteriors are averaged over this many pairs of opposite draws.
_MIN_AVERAGED, _MAX_AVERAGED, _AVERAGED_DRAWS = MAX_ROWS, 50_000, 8
# A probability that the whole order is reversed from which on a note says so.
_NOTEWORTHY = 0.05


class TieFlags:
    """Marks ties in a column of their own, for likelihoods that model them."""

    def __len__(self) -> int:
        return 1

    def __call__(self, comparisons: Comparisons) -> FloatArray:
        return np.asarray((comparisons.outcome == 0)[:, None], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class RandomEffectsEstimate:
    """Posterior of the scores with annotators and hyperparameters integrated out.

    Parameters
    ----------
    modes : list of Mode
        The mode of the scores at each value of the hyperparameters: for the more probable order, then for its reverse.
    objective : MarginalObjective
        The log posterior.
    comparisons : Comparisons
        The judgments.
    seed : int
        Seed of the draws.
    integrated : bool
        Whether any hyperparameter is integrated out. With all of them given, the mode of the scores is the estimate.
    is_flipped : bool, default False
        Whether the order was flipped (see `direction`).
    """

    modes: list[Mode]
    objective: MarginalObjective
    comparisons: Comparisons
    seed: int
    integrated: bool
    is_flipped: bool = False

    @cached_property
    def mixture(self) -> LaplaceMixture:
        return LaplaceMixture([mode.component(self.comparisons.items, self.seed) for mode in self.modes])

    @cached_property
    def weights(self) -> FloatArray:
        """Posterior probability of each value of the hyperparameters."""
        log_weight = np.array([mode.log_weight for mode in self.modes])
        weight = np.exp(log_weight - log_weight.max())
        return np.asarray(weight / weight.sum())

    @cached_property
    def best(self) -> Mode:
        return self.modes[int(np.argmax(self.weights))]

    @property
    def reversed_probability(self) -> float:
        """Posterior probability that the order is the reverse of the most probable one."""
        is_reversed = np.array([mode.is_reversed for mode in self.modes])
        return float(self.weights @ (is_reversed != self.best.is_reversed))

    @cached_property
    def sampled(self) -> WeightedDraws | None:
        """Draws by importance sampling, where data are few."""
        items = self.comparisons.items
        if not self.integrated or not _are_few(self.comparisons):
            return None
        if not self.is_flipped:
            return sample_posterior(self.objective, self.modes, items, self.seed)
        # the weights of the two directions come from `direction`, not from the density
        modes = [mode for mode in self.modes if not mode.is_reversed]
        return sample_posterior(self.objective, modes, items, self.seed).with_share_negated(self.reversed_probability)

    @property
    def scores(self) -> FloatArray:
        """Posterior mean of the scores."""
        if self.sampled is not None:
            return self.sampled.mean
        if len(self.modes) == 1:  # drawing from it would take long
            return self.comparisons.items.centre(self.best.scores)
        return self.mixture.mean

    def uncertainty(self) -> Uncertainty:
        if self.sampled is not None:
            method = "importance sampling with annotators integrated out"
            return Uncertainty(self.sampled.draws, self.sampled.std_error, method, sampled=True)
        items = len(self.comparisons.items)
        count = int(np.clip(_MAX_CELLS // items, _MIN_DRAWS, _MAX_DRAWS))
        draws = self.mixture.draw(count, self.seed)
        method = "Laplace approximation with annotators integrated out"
        return Uncertainty(draws, self.mixture.std_error, method, sampled=True)

    def parameters(self) -> dict[str, float]:
        """Posterior medians of the hyperparameters (geometric means), and the probability of the reversed reading."""
        weights = self.weights
        hypers = [mode.hyper for mode in self.modes]
        found = {
            "prior_scale": float(np.exp(weights @ np.log([hyper.scale for hyper in hypers]))),
            "quality_mean": float(weights @ [hyper.quality.mean for hyper in hypers]),
            "quality_concentration": float(np.exp(weights @ np.log([h.quality.concentration for h in hypers]))),
            "reversed_probability": self.reversed_probability,
        }
        if len(self.objective.grids.nu):
            found |= {"tie": self.best.hyper.tie.mean, "tie_slope": self.best.hyper.tie.slope}
        return found

    def notes(self) -> list[str]:
        share = self.reversed_probability
        if share < _NOTEWORTHY:
            return []
        return [
            f"With a probability of {share:.0%} most annotators answer in reverse and the order is upside down. "
            "A few gold pairs would settle it."
        ]

    def annotators(self) -> Mapping[str, Any]:
        """Quality of each annotator, and their tendency to tie: posterior means and 95 % intervals."""
        people = max(1, len(self.comparisons.annotators))
        objective = self.objective.at(self.best.hyper)
        posterior = self._annotator_weights(objective)
        grids = objective.grids
        eta = objective.points.eta[grids.grid_of]
        found = {"quality": _summary(posterior.quality[:people], eta[:people])}
        if len(grids.nu):
            found["tie_tendency"] = _summary(posterior.tie[:people], np.broadcast_to(grids.nu, (people, len(grids.nu))))
        return found

    def _annotator_weights(self, objective: MarginalObjective) -> GridTables:
        """Posterior weights of the grid points of every annotator, averaged over the scores where these are uncertain.

        At the mode alone, annotators would look too good or too bad.
        """
        root = self.best.root
        if root is None or not self.integrated or not _MIN_AVERAGED < len(self.comparisons) <= _MAX_AVERAGED:
            return objective.posterior(self.best.curvature.tables)
        noise = np.random.default_rng(self.seed).standard_normal((_AVERAGED_DRAWS, len(root)))
        around = np.linalg.solve(root.T, noise.T).T
        found = [objective.posterior(objective.tables(self.best.scores + one)) for one in (*around, *-around)]
        return GridTables(np.mean([one.quality for one in found], axis=0), np.mean([one.tie for one in found], axis=0))

    def ranking(self, model: IterativeModel) -> Ranking:
        """The result of the fit."""
        found = self.best.found
        matter = [mode.found for mode, weight in zip(self.modes, self.weights, strict=True) if weight > 0.01]
        worst = max(matter, key=lambda one: (not one.converged, one.distance))
        ranking = build_ranking(
            model,
            self.comparisons,
            self.scores,
            parameters=self.parameters(),
            item_parameters={"tie_effect": self.best.hyper.tie.effect} if len(self.objective.grids.nu) else {},
            log_likelihood=found.evaluation.value,
            convergence=Convergence(worst.converged, max(one.steps for one in matter), worst.distance),
            measure=self.uncertainty,
        )
        notes = ranking._lazy.notes
        assert notes is not None
        ranking = ranking.with_parts(notes=lambda: self.notes() + notes())
        return with_annotators(ranking, self.comparisons, self.annotators)


def _summary(weights: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    low, high = grid_quantiles(weights, values, (0.025, 0.975))
    mean = np.sum(weights * values, axis=1)
    return mean, np.minimum(low, mean), np.maximum(high, mean)


def fit_random_effects(
    model: IterativeModel,
    comparisons: Comparisons,
    formula: int,
    options: FitOptions,
    *,
    model_ties: bool,
    scale: float | None = None,
    quality: tuple[float, float] | None = None,
) -> RandomEffectsEstimate:
    """Fit with quality integrated out.

    Parameters
    ----------
    model : IterativeModel
        Gives `tolerance`, `max_steps` and `seed`.
    comparisons : Comparisons
        The judgments, without ties if those are dropped.
    formula : int
        CROWD_BT or CROWD_BT_PROBIT.
    options : FitOptions
        Engine, starting scores and side information.
    model_ties : bool
        Whether ties have a likelihood of their own; otherwise each counts as half an answer each way.
    scale : float, optional
        Standard deviation of the scores; None to integrate over it.
    quality : (float, float), optional
        Counts of the Beta distribution of quality; None to integrate over them.
    """
    known = options.side_information
    has_ties = model_ties and comparisons.ties > 0
    table = answer_table(comparisons, TieFlags() if has_ties else None, "half", known)
    if isinstance(table, Answers):
        table = table.sorted_by_annotator()
    shards = options.engine.load(table)
    gold_annotator = known.gold_annotator(comparisons)
    people = max(1, len(comparisons.annotators)) + (gold_annotator is not None)
    scores, first_scale = initial_scores(shards, comparisons.items), _FIRST_SCALE
    if scale is None and neighbours_only(comparisons, scores):
        equal = _fit_equal_annotators(comparisons)
        scores, first_scale = equal.scores, equal.parameters["prior_scale"]
    elif options.init is not None:
        scores = np.nan_to_num(options.init)
    trust = 2.0 * sigmoid(agreement_logits(shards, scores, people)) - 1.0
    trusted = initial_scores(shards, comparisons.items, trust)
    (answers,) = shards.sum(weight_by_annotator, people)
    net, total = shards.sum(agreement_counts, scores, people)
    agreement = np.asarray((total + net + 2.0) / (2.0 * total + 3.0))
    grids = make_grids(answers, agreement, known, gold_annotator, has_ties)
    ties = _first_ties(shards, len(comparisons.items)) if has_ties else NO_TIES
    counts = _FIRST_QUALITY if quality is None else QualityDistribution(quality[0] / sum(quality), sum(quality))
    hyper = Hyperparameters(scale or first_scale, counts, ties)
    objective = MarginalObjective(shards, grids, hyper, formula, len(comparisons) >= COMPILE_MIN_ROWS)
    explorer = _explorer_for(comparisons)(
        objective,
        (scale is not None, quality is not None, quality is not None),
        len(comparisons),
        len(comparisons.items),
        model.tolerance,
        model.max_steps,
        max(first_scale, LARGEST_SCALE),
    )
    modes = _explore(explorer, [scores, trusted], known)
    if scale is None and modes[0].hyper.scale > _NEAR_BOUND * explorer.largest_scale:
        equal_scale = _fit_equal_annotators(comparisons).parameters["prior_scale"]
        if equal_scale > explorer.largest_scale:
            explorer = replace(explorer, largest_scale=equal_scale)
            modes = _explore(explorer, [modes[0].scores, trusted], known)
    is_flipped = False
    if quality is None and not known and (flipped := _flipped_modes(explorer, modes)):
        modes, is_flipped = flipped, True
    integrated = scale is None or quality is None
    return RandomEffectsEstimate(modes, objective.at(modes[0].hyper), comparisons, model.seed, integrated, is_flipped)


def _are_few(comparisons: Comparisons) -> bool:
    """Whether data are few enough for a lattice of hyperparameters and importance sampling of the scores."""
    return len(comparisons) <= MAX_ROWS and len(comparisons.items) <= MAX_ITEMS


def _explorer_for(comparisons: Comparisons) -> type[LatticeExplorer | ProfileExplorer | StarExplorer]:
    """How hyperparameters are integrated out, which depends on the size of the data."""
    if _are_few(comparisons):
        return LatticeExplorer
    return ProfileExplorer if is_thin(len(comparisons), len(comparisons.items)) else StarExplorer


def _first_ties(shards: ShardedData, items: int) -> TieDistribution:
    (weights,) = shards.sum(weight_of_ties)
    share = float(np.clip(weights[0] / weights.sum(), 0.01, 0.99))
    odds = 2.0 * share / (1.0 - share)
    return TieDistribution(float(np.log(odds)), _FIRST_TIE_SPREAD, _FIRST_TIE_SLOPE, np.zeros(items))


def _fit_equal_annotators(comparisons: Comparisons) -> Ranking:
    from crowdrank.models.pairwise.bradley_terry import BradleyTerry

    return BradleyTerry().fit(comparisons)


def _explore(
    explorer: LatticeExplorer | ProfileExplorer | StarExplorer, starts: list[FloatArray], known: EncodedSideInformation
) -> list[Mode]:
    """The modes that agree with the gold pairs, if there are any; all modes without gold pairs.

    Scores agree if they give the gold pairs a higher likelihood than their negatives do, where each gold pair may be
    wrong with a small probability.
    """
    if not known.has_gold:
        return explorer.explore(starts)

    def agrees(scores: FloatArray) -> bool:
        right, wrong = sigmoid_pair(scores[known.gold_better] - scores[known.gold_worse])
        ratio = (right + _GOLD_ERROR * wrong) / (wrong + _GOLD_ERROR * right)
        return float(np.sum(np.log(ratio))) >= 0

    return _explore_where(agrees, explorer, explorer.best_start(starts).scores) or explorer.explore(starts)


def _explore_where(
    agrees: Callable[[FloatArray], bool], explorer: LatticeExplorer | ProfileExplorer | StarExplorer, scores: FloatArray
) -> list[Mode]:
    """The modes whose scores agree with something, found from starting scores or their negatives."""
    hyper = explorer.objective.hyper
    if not agrees(scores):
        scores = -scores
        if not explorer.fixed[1]:  # most annotators answer in reverse
            quality = QualityDistribution(1.0 - hyper.quality.mean, hyper.quality.concentration)
            hyper = replace(hyper, quality=quality)
    informed = replace(explorer, objective=explorer.objective.at(hyper), is_allowed=agrees)
    modes = informed.explore([scores, scores])
    return [mode for mode in modes if agrees(mode.scores) and np.isfinite(mode.log_weight)]


def _flipped_modes(explorer: LatticeExplorer | ProfileExplorer | StarExplorer, modes: list[Mode]) -> list[Mode]:
    """The modes of the opposite order, if it is more plausible once a minority may answer in reverse; otherwise none.

    The order as it was is kept beside them, with the probability that is left for it.
    """
    best = max(modes, key=lambda mode: mode.log_weight)
    log_odds = -log_odds_of_direction(best.curvature.tables.quality, explorer.objective.grids)
    if log_odds < _FLIPPING_ODDS:
        return []
    found = _explore_where(lambda scores: float(scores @ best.scores) <= 0.0, explorer, best.scores)
    if not found or log_odds > IMPLAUSIBLE:
        return found
    negated = [
        replace(mode, scores=-mode.scores, log_weight=mode.log_weight - log_odds, is_reversed=True) for mode in found
    ]
    return found + negated
