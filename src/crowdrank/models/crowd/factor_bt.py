"""factorBT (Bugakova et al. 2019): annotators sometimes answer by irrelevant features, such as the screen position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.data.features import feature_columns, typical_size
from crowdrank.errors import SettingError
from crowdrank.models.base import (
    FitOptions,
    IterativeModel,
    build_ranking,
    check_connected,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.crowd import (
    MapEstimate,
    Priors,
    Ties,
    build_crowd_ranking,
    check_ties,
    fit_map,
    interval,
    likelihood,
    select_judgments,
)
from crowdrank.models.crowd.likelihood import FACTOR_BT, sigmoid
from crowdrank.results import Convergence, Ranking
from crowdrank.results.covariates import FEATURE_UNIT_PREFIX, FEATURE_WEIGHT_PREFIX


@dataclass(frozen=True, kw_only=True)
class FactorBT(IterativeModel):
    """Bradley-Terry where annotators can be influenced by features that should not matter.

    Parameters
    ----------
    features : tuple of str, default ("position",)
        Features of a comparison: "position" (which item was on the left), or columns read with the judgments. Each
        category of a text column is a feature of its own.
    prior_scale : float, default 3.0
        Standard deviation of the normal prior on scores.
    attention_prior : (float, float), default (2.0, 4.0)
        Mean and standard deviation of the normal prior on γ, the logit of the attention. The default is wide enough for
        annotators who never look at the items.
    feature_weight_scale : float or "auto", default "auto"
        Standard deviation of the normal prior on the weight of a feature of typical size (its root mean square).
        "auto" is 1, or more if some annotators nearly always answer by a feature: a prior too narrow for them would
        take their answers for opinions about the items.
    ties : "drop" or "half", default "drop"
        Whether ties are ignored or count as half an answer each way.
    solver : "joint" or "conjugate-gradients", default "joint"
        Newton's method on all parameters, or nonlinear conjugate gradients as in the paper.
    inference : "map" or "published", default "map"
        The posterior mode, or the paper's own procedure: no priors but a virtual item that every item wins and loses
        against, the paper's starting values, and conjugate gradients. Attention and feature weights then diverge
        slowly for annotators who only follow a feature, so it seldom converges.
    virtual_weight : float, default 0.5
        λ of the published procedure, the weight of the virtual item's wins and losses.
    tolerance : float, default 1e-4
        Stop when no combination of parameters is further from the optimum than this, in standard errors.
    max_steps : int, default 200
        Maximum number of Newton steps; one counts as 25 steps of conjugate gradients. A warning says if that was not
        enough.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    Annotator k prefers left to right with probability

        P(left ≻ right) = σ(γₖ)·σ(s_left − s_right) + (1 − σ(γₖ))·σ(⟨x, rₖ⟩)

    With probability σ(γₖ), the attention, annotator k answers by the items; otherwise by the features x of the
    comparison with the annotator's feature weights rₖ.

    N. Bugakova, V. Fedorova, G. Gusev, A. Drutsa (2019). Aggregation of pairwise comparisons with reduction of biases.
    ICML Workshop on Human in the Loop Learning.

    Examples
    --------
    >>> from crowdrank.simulation import mixed_crowd
    >>> crowd = mixed_crowd(items=10, kinds={"good": 4, "left": 2}, votes_each=40, seed=1)
    >>> attention = FactorBT().fit(crowd.judgments).annotators.estimate("attention")
    >>> good = crowd.annotators["kind"] == "good"
    >>> bool(attention[good].min() > attention[~good].max())
    True
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True

    features: tuple[str, ...] = ("position",)
    prior_scale: float = 3.0
    attention_prior: tuple[float, float] = (2.0, 4.0)
    feature_weight_scale: float | Literal["auto"] = "auto"
    ties: Ties = "drop"
    solver: Literal["joint", "conjugate-gradients"] = "joint"
    inference: Literal["map", "published"] = "map"
    virtual_weight: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties)
        for name in ("prior_scale", "feature_weight_scale"):
            value = getattr(self, name)
            from_data = value == "auto" and name == "feature_weight_scale"
            if not from_data and (isinstance(value, str) or not 0 < value < np.inf):
                raise SettingError(f"{name} must be positive, got {value}.")
        if len(self.attention_prior) != 2 or not 0 < self.attention_prior[1] < np.inf:
            raise SettingError(
                f"attention_prior must be a mean and a positive standard deviation, got {self.attention_prior!r}."
            )
        if self.inference not in ("map", "published"):
            raise SettingError(f"inference must be map or published, got {self.inference!r}.")
        if not 0 <= self.virtual_weight < np.inf:
            raise SettingError(f"virtual_weight must be zero or more, got {self.virtual_weight}.")
        if self.solver not in ("joint", "conjugate-gradients"):
            raise SettingError(f"solver must be joint or conjugate-gradients, got {self.solver!r}.")
        if not self.features:
            raise SettingError("features must name at least one feature; without features, use crowd-bt.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        check_connected(diagnose(select_judgments(comparisons, self.ties)), has_prior=True)
        columns = feature_columns(comparisons, self.features)
        units = {name: typical_size(column, comparisons.weights) for name, column in columns.items()}
        encoder = ScaledFeatures(self.features, units)
        if self.inference == "published":
            return self._fit_published(comparisons, encoder)
        spread = self.feature_weight_scale
        spread = weight_spread(comparisons, columns) if spread == "auto" else spread
        priors = Priors(scale=self.prior_scale, logit=self.attention_prior, feature_weight=spread)

        def fit(comparisons: Comparisons, options: FitOptions) -> MapEstimate:
            return fit_map(self, comparisons, FACTOR_BT, priors, options, encoder, ties=self.ties, solver=self.solver)

        estimate = fit(comparisons, options)

        def estimates() -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
            weights, errors = estimate.parts[2], estimate.annotator_errors[:, 1:]
            found = {"attention": estimate.logit_interval(sigmoid)}
            for n, (name, unit) in enumerate(units.items()):
                found[f"{FEATURE_WEIGHT_PREFIX}{name}"] = interval(weights[:, n] / unit, errors[:, n] / unit, np.array)
            return found

        sizes = {f"{FEATURE_UNIT_PREFIX}{name}": unit for name, unit in units.items() if unit != 1}
        estimated = {} if spread == self.feature_weight_scale else {"feature_weight_scale": spread}
        ranking = build_crowd_ranking(
            self, estimate, estimates, refit=lambda tossed: fit(tossed, FitOptions(engine=options.engine))
        )
        return replace(ranking, parameters=sizes | estimated)

    def _fit_published(self, comparisons: Comparisons, encoder: ScaledFeatures) -> Ranking:
        """The paper's procedure; uncertainty by resampling."""
        fit = self._run_published(comparisons, encoder)
        names = [f"{FEATURE_WEIGHT_PREFIX}{name}" for name in encoder.units]
        units = np.array(list(encoder.units.values()))

        def estimates() -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
            found = {"attention": sigmoid(fit.logits)}
            found |= dict(zip(names, (fit.feature_weights / units).T, strict=True))
            return {name: (value, value, value) for name, value in found.items()}  # without priors: no curvature

        ranking = build_ranking(
            self,
            comparisons,
            fit.scores,
            log_likelihood=fit.value,
            convergence=Convergence(fit.converged, fit.steps, fit.gradient, "the largest derivative left"),
            measure=lambda: bootstrap(
                comparisons,
                lambda drawn: drawn.items.centre(self._run_published(drawn, encoder).scores),
                seed=self.seed,
            ),
        )
        return with_annotators(ranking, comparisons, estimates)

    def _run_published(self, comparisons: Comparisons, encoder: ScaledFeatures) -> PublishedFit:
        votes = select_judgments(comparisons, "drop")
        left_won = votes.outcome > 0
        winner, loser = np.where(left_won, (votes.left, votes.right), (votes.right, votes.left)).astype(np.int64)
        who = np.zeros(len(votes), np.int64) if votes.annotator is None else votes.annotator.astype(np.int64)
        seen = encoder(votes) * np.where(left_won, 1.0, -1.0)[:, None]
        answers = Answers(winner, loser, who, votes.weights, seen, left_won.astype(np.float64))
        people = max(1, len(votes.annotators))
        return fit_published(answers, len(votes.items), people, self.virtual_weight, self.max_steps)

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison, as columns. Ties have probability 0.

        Categories that the model was not fitted to have weight 0.
        """
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        who, people = comparisons.annotator, ranking.annotators
        attention, bias = people.estimate("attention")[who], np.zeros(len(comparisons))
        for name, column in feature_columns(comparisons, self.features).items():
            if f"{FEATURE_WEIGHT_PREFIX}{name}" in people.estimates:
                bias += people.estimate(f"{FEATURE_WEIGHT_PREFIX}{name}")[who] * column
        with np.errstate(divide="ignore"):
            logit = np.log(attention) - np.log1p(-attention)
        left, right, *_ = likelihood.FORMULAS[FACTOR_BT](margin, logit, bias)
        return np.stack((left, np.zeros(len(margin)), right), axis=1)


def weight_spread(comparisons: Comparisons, columns: Mapping[str, FloatArray]) -> float:
    """Standard deviation of feature weights that leaves room for the annotators who follow a feature most.

    For every annotator and feature, how often the answers followed the feature, as a smoothed logit: at most the weight
    of someone who answers by that feature alone. The spread is 1.25 times the 95 % quantile of its size over
    annotators, for the feature where it is largest, so a few lucky streaks do not widen it. It is at least 1.
    """
    if comparisons.annotator is None:
        return _SMALLEST_SPREAD
    spread, people = _SMALLEST_SPREAD, len(comparisons.annotators)
    decided = comparisons.outcome != 0
    for column in columns.values():
        shown = decided & (column != 0)
        who, weight = comparisons.annotator[shown], comparisons.weights[shown]
        followed = weight * (np.sign(column[shown]) == np.sign(comparisons.outcome[shown]))
        total = np.bincount(who, weight, people)
        agreed = np.bincount(who, followed, people)[total >= _MIN_ANSWERS]
        answers = total[total >= _MIN_ANSWERS]
        if len(answers):
            logit = np.log((agreed + 0.5) / (answers - agreed + 0.5))
            spread = max(spread, _ROOM * float(np.quantile(np.abs(logit), _QUANTILE)))
    return spread


# The spread of feature weights is at least this …
_SMALLEST_SPREAD = 1.0
# … and is read off annotators with this many answers, at this quantile.
_MIN_ANSWERS, _QUANTILE = 8, 0.95
# A prior only as wide as the largest weights would still shrink them.
_ROOM = 1.25


@dataclass(frozen=True)
class ScaledFeatures:
    """Features divided by their units.

    Parameters
    ----------
    features : tuple of str
        Names of the features.
    units : mapping from str to float
        Unit of each column; categories of a text are columns.
    """

    features: tuple[str, ...]
    units: Mapping[str, float]

    def __len__(self) -> int:
        return len(self.units)

    def __call__(self, comparisons: Comparisons) -> FloatArray:
        columns, none = feature_columns(comparisons, self.features), np.zeros(len(comparisons))
        return np.stack([columns.get(name, none) / unit for name, unit in self.units.items()], axis=1)


# factorBT's published procedure: its target T, no priors, its starting values, nonlinear conjugate gradients.
#
# T = Σ log[f(γ)·f(s_w − s_l) + (1 − f(γ))·f(⟨x, r⟩)] + λ Σᵢ [log f(sᵢ − s₀) + log f(s₀ − sᵢ)], f logistic, with x
# seen from the winner. The gradient by a score includes the comparisons that the item lost, which the paper's omits.

# γ at the start: of those who always chose the same side, and of all others.
_STARTING_LOGIT = (-1.0, 1.0)


class Answers(NamedTuple):
    """Winner, loser, annotator and weight of each answer, and its features as seen from the winner."""

    winner: IntArray
    loser: IntArray
    annotator: IntArray
    weight: FloatArray
    features: FloatArray
    left_won: FloatArray


class PublishedFit(NamedTuple):
    """Scores relative to the virtual item, γ and feature weights; the target T, and whether the solver stopped."""

    scores: FloatArray
    logits: FloatArray
    feature_weights: FloatArray
    value: float
    converged: bool
    steps: int
    gradient: float


def fit_published(answers: Answers, items: int, people: int, virtual_weight: float, max_steps: int) -> PublishedFit:
    """Maximise T from the paper's starting values."""
    from scipy.optimize import minimize

    width = answers.features.shape[1]
    start = np.concatenate((np.zeros(items + 1), *_starting_values(answers, people)), axis=None)
    known = (answers, items, people, virtual_weight)
    found = minimize(_negative_target, start, args=known, jac=True, method="CG", options={"maxiter": max_steps})
    scores, logits, weights = _split(found.x, items, people, width)
    return PublishedFit(
        scores[1:] - scores[0],
        logits,
        weights,
        -float(found.fun),
        bool(found.success),
        int(found.nit),
        float(np.max(np.abs(found.jac))),
    )


def _split(parameters: FloatArray, items: int, people: int, width: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    scores, logits, weights = np.split(parameters, (items + 1, items + 1 + people))
    return scores, logits, weights.reshape(people, width)


def _starting_values(answers: Answers, people: int) -> tuple[FloatArray, FloatArray]:
    """γ by whether all answers are the same side, and r = log of the smoothed fraction of answers for each feature."""
    total = np.bincount(answers.annotator, minlength=people)
    left = np.bincount(answers.annotator, answers.left_won, people)
    same = (left == 0) | (left == total)
    weights = np.empty((people, answers.features.shape[1]))
    for n, column in enumerate(answers.features.T):
        chosen = np.bincount(answers.annotator, column > 0, people)
        shown = np.bincount(answers.annotator, column != 0, people)
        weights[:, n] = np.log((chosen + 1) / (shown + 2))
    return np.where(same, *_STARTING_LOGIT), weights


def _negative_target(
    parameters: FloatArray, answers: Answers, items: int, people: int, virtual_weight: float
) -> tuple[float, FloatArray]:
    """−T and its gradient; item 0 is the virtual one."""
    width = answers.features.shape[1]
    scores, logits, weights = _split(parameters, items, people, width)
    won, lost, who = answers.winner + 1, answers.loser + 1, answers.annotator
    by_items = sigmoid(scores[won] - scores[lost])
    by_features = sigmoid(np.sum(answers.features * weights[who], axis=1))
    attention = sigmoid(logits[who])
    probability = np.maximum(attention * by_items + (1 - attention) * by_features, 1e-300)
    factor = answers.weight / probability
    margin = factor * attention * by_items * (1 - by_items)
    bias = factor * (1 - attention) * by_features * (1 - by_features)
    above, below = sigmoid(scores[1:] - scores[0]), sigmoid(scores[0] - scores[1:])
    value = float(answers.weight @ np.log(probability) + virtual_weight * np.sum(np.log(above) + np.log(below)))
    of_scores = np.bincount(won, margin, items + 1) - np.bincount(lost, margin, items + 1)
    of_scores[1:] += virtual_weight * (below - above)
    of_scores[0] += virtual_weight * float(np.sum(above - below))
    of_logits = np.bincount(who, factor * (by_items - by_features) * attention * (1 - attention), people)
    of_weights = np.stack([np.bincount(who, bias * column, people) for column in answers.features.T], axis=1)
    return -value, -np.concatenate((of_scores, of_logits, of_weights.ravel()))
