"""Priors on scores, logits and feature weights: log density, gradient and curvature.

Side information about single annotators becomes terms of the log posterior on the scale of the logits:

known quality   a normal prior around the known logit, so narrow that it leaves no choice
interval        a smooth barrier at each end: log σ((logit − low)/width) + log σ((high − logit)/width)
order           the same between two annotators: log σ((better − worse)/width)

The gradient of an answer by a logit is bounded by its weight, or little more. Spreads and widths therefore shrink with
the weight of an annotator's answers, so that side information holds however many answers contradict it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.data import EncodedSideInformation
from crowdrank.errors import SettingError
from crowdrank.models.crowd.likelihood import CROWD_BT_PROBIT, VARIANCE_BT, sigmoid, sigmoid_pair
from crowdrank.models.pairwise.likelihood import LOGISTIC, PROBIT, gaussian, virtual_node

# How far a logit may be from its known value.
_LOGIT_SLACK = 0.01
# Answers added to each annotator's own, for the gradient of the prior.
_EXTRA_ANSWERS = 10.0
# The logit of an annotator who is always right: η = 1 to within 1e-13.
PERFECT_LOGIT = 30.0


class PairCurvatures(NamedTuple):
    """Curvature between pairs of logits: c·[[1, −1], [−1, 1]] per pair. Its diagonal is counted elsewhere."""

    first: IntArray
    second: IntArray
    curvature: FloatArray


class ConstraintTerms(NamedTuple):
    """Value, gradient and curvature of all constraints at some logits."""

    value: float
    gradient: FloatArray
    curvature: FloatArray
    pairs: PairCurvatures


@dataclass(frozen=True)
class QualityConstraints:
    """Constraints on the logits of single annotators.

    Parameters
    ----------
    known, value : arrays
        Codes of annotators whose quality is known, and their logits.
    low_of, low : arrays
        Codes of annotators with a lower bound, and the bounds.
    high_of, high : arrays
        Codes of annotators with an upper bound, and the bounds.
    better, worse : arrays of int
        Codes of the pairs in a known order.
    max_gradient : array of float
        Bound of the gradient of the answers by each logit; a barrier is twice as steep.
    """

    known: IntArray
    value: FloatArray
    low_of: IntArray
    low: FloatArray
    high_of: IntArray
    high: FloatArray
    better: IntArray
    worse: IntArray
    max_gradient: FloatArray

    def __bool__(self) -> bool:
        return bool(len(self.known) + len(self.low_of) + len(self.better))

    def project(self, logits: FloatArray) -> FloatArray:
        """The logits moved to their known values and into their intervals; orders are left to the solver."""
        logits = logits.copy()
        logits[self.low_of] = np.maximum(logits[self.low_of], self.low)
        logits[self.high_of] = np.minimum(logits[self.high_of], self.high)
        logits[self.known] = self.value
        return logits

    def evaluate(self, logits: FloatArray) -> ConstraintTerms:
        gradient, curvature, total = np.zeros_like(logits), np.zeros_like(logits), 0.0
        if not self:
            return ConstraintTerms(0.0, gradient, curvature, PairCurvatures(self.better, self.worse, _NO_VALUES))
        away, precision = logits[self.known] - self.value, self.max_gradient[self.known] / _LOGIT_SLACK
        total -= 0.5 * float(precision @ away**2)
        np.add.at(gradient, self.known, -precision * away)
        np.add.at(curvature, self.known, precision)
        for codes, distance, sign in (
            (self.low_of, logits[self.low_of] - self.low, 1.0),
            (self.high_of, self.high - logits[self.high_of], -1.0),
        ):
            value, derivative, curve = _barrier(distance, self.max_gradient[codes])
            total += value
            np.add.at(gradient, codes, sign * derivative)
            np.add.at(curvature, codes, curve)
        value, derivative, curve = _barrier(
            logits[self.better] - logits[self.worse], self.max_gradient[self.better] + self.max_gradient[self.worse]
        )
        np.add.at(gradient, self.better, derivative)
        np.add.at(gradient, self.worse, -derivative)
        for codes in (self.better, self.worse):
            np.add.at(curvature, codes, curve)
        return ConstraintTerms(total + value, gradient, curvature, PairCurvatures(self.better, self.worse, curve))


def _barrier(distance: FloatArray, max_gradient: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """log σ(distance/width), its gradient and curvature. It balances any gradient of the answers inside its bound."""
    steepness = 2.0 * max_gradient
    u = distance * steepness
    inside, outside = sigmoid(u), sigmoid(-u)
    value = -float(np.sum(np.logaddexp(0.0, -u)))
    return value, outside * steepness, inside * outside * steepness**2


_NO_CODES, _NO_VALUES = np.zeros(0, np.int64), np.zeros(0)
NO_CONSTRAINTS = QualityConstraints(
    _NO_CODES, _NO_VALUES, _NO_CODES, _NO_VALUES, _NO_CODES, _NO_VALUES, _NO_CODES, _NO_CODES, _NO_VALUES
)


def quality_constraints(
    known: EncodedSideInformation, formula: int, gold_annotator: int | None, weight: FloatArray
) -> QualityConstraints:
    """Side information as constraints on the logits of this formula.

    `weight` is the total weight of each annotator's answers. The annotator of the gold pairs, if any, is always right.
    """
    if not known.has_annotators and gold_annotator is None:
        return NO_CONSTRAINTS
    to_logit = _log_precision if formula == VARIANCE_BT else _logit
    fixed = {code: to_logit(value) for code, value in known.quality.items()}
    if gold_annotator is not None:
        fixed[gold_annotator] = 0.0 if formula == VARIANCE_BT else PERFECT_LOGIT
    low = {code: to_logit(lowest) for code, (lowest, _) in known.between.items()}
    high = {code: to_logit(highest) for code, (_, highest) in known.between.items()}
    better, worse = np.array(known.better, np.int64).reshape(-1, 2).T
    max_gradient = weight + _EXTRA_ANSWERS
    ordered = np.union1d(better, worse)
    max_gradient[ordered] = max_gradient[ordered].sum()  # along a chain of orders the gradients of all add up
    return QualityConstraints(*_arrays(fixed), *_arrays(low), *_arrays(high), better, worse, max_gradient)


def _arrays(values: dict[int, float]) -> tuple[IntArray, FloatArray]:
    return np.array(list(values), np.int64), np.array(list(values.values()), np.float64)


def _logit(quality: float) -> float:
    if not 0 <= quality <= 1:
        raise SettingError(f"The quality of an annotator must lie between 0 and 1, got {quality}.")
    with np.errstate(divide="ignore"):
        return float(np.clip(np.log(quality) - np.log1p(-quality), -PERFECT_LOGIT, PERFECT_LOGIT))


def _log_precision(precision: float) -> float:
    if not 0 < precision < np.inf:
        raise SettingError(f"The precision of an annotator must be positive, got {precision}.")
    return float(np.log(precision))


_NO_PAIRS = PairCurvatures(_NO_CODES, _NO_CODES, _NO_VALUES)


@dataclass(frozen=True)
class LogPrior:
    """The log density of all priors at some parameters.

    Parameters
    ----------
    value : float
        Log density, up to a constant.
    gradient : array of float
        Its gradient.
    curvature : array of float
        Diagonal of its negative Hessian.
    pairs : PairCurvatures
        The rest of its negative Hessian: pairs of logits.
    """

    value: float
    gradient: FloatArray
    curvature: FloatArray
    pairs: PairCurvatures


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Priors of a model of the Crowd-BT family.

    Parameters
    ----------
    scale : float or None
        Standard deviation of the normal prior on scores; None for none.
    virtual : float
        Virtual wins and losses of each item (Crowd-BT's λ).
    quality : (float, float) or None
        Counts α and β of a Beta prior on η, for formulas whose logit is that of η.
    logit : (float, float) or None
        Mean and standard deviation of a normal prior on the logits, instead of `quality`.
    feature_weight : float or None
        Standard deviation of the normal prior on feature weights.
    constraints : QualityConstraints
        What is known about single annotators.
    """

    scale: float | None
    virtual: float = 0.0
    quality: tuple[float, float] | None = None
    logit: tuple[float, float] | None = None
    feature_weight: float | None = None
    constraints: QualityConstraints = NO_CONSTRAINTS

    def evaluate(self, scores: FloatArray, logits: FloatArray, feature_weights: FloatArray, formula: int) -> LogPrior:
        value, gradient, curvature = self._of_scores(scores, formula)
        logit_value, logit_gradient, logit_curvature = self._of_logits(logits)
        if not feature_weights.size and not self.constraints:
            both = np.concatenate((gradient, logit_gradient)), np.concatenate((curvature, logit_curvature))
            return LogPrior(value + logit_value, *both, _NO_PAIRS)
        constraint = self.constraints.evaluate(logits)
        size = feature_weights.size
        weight_curvature = np.zeros(size) if self.feature_weight is None else np.full(size, self.feature_weight**-2.0)
        value += logit_value + constraint.value - 0.5 * float(weight_curvature @ feature_weights.ravel() ** 2)
        gradient = np.concatenate(
            (gradient, logit_gradient + constraint.gradient, -weight_curvature * feature_weights.ravel())
        )
        curvature = np.concatenate((curvature, logit_curvature + constraint.curvature, weight_curvature))
        return LogPrior(value, gradient, curvature, constraint.pairs)

    def _of_scores(self, scores: FloatArray, formula: int) -> tuple[float, FloatArray, FloatArray]:
        terms = []
        if self.scale is not None:
            terms.append(gaussian(scores, self.scale))
        if self.virtual:
            terms.append(virtual_node(scores, self.virtual, PROBIT if formula == CROWD_BT_PROBIT else LOGISTIC))
        value, gradient, curvature = 0.0, np.zeros(len(scores)), np.zeros(len(scores))
        for more, more_gradient, more_curvature in terms:
            value, gradient, curvature = value + more, gradient + more_gradient, curvature + more_curvature
        return value, gradient, curvature

    def _of_logits(self, logits: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        if self.logit is not None:
            mean, scale = self.logit
            return gaussian(logits - mean, scale)
        # Density of Beta(α, β) on the scale of the logit of η, where the posterior is nearly normal: the Jacobian
        # η(1 − η) makes the exponents α and β, not α − 1 and β − 1.
        alpha, beta = (0.0, 0.0) if self.quality is None else self.quality
        honest, lying = sigmoid_pair(logits)
        value = float(np.sum(alpha * np.log(honest) + beta * np.log(lying)))
        return value, alpha * lying - beta * honest, (alpha + beta) * honest * lying


class QualityBounds(NamedTuple):
    """Constraints on the qualities.

    Parameters
    ----------
    low, high : arrays of float
        Bounds of each η; equal bounds fix it.
    better, worse : arrays of int
        Pairs of annotators in a known order.
    """

    low: AnyArray
    high: AnyArray
    better: AnyArray
    worse: AnyArray

    @property
    def symmetric(self) -> bool:
        """Whether replacing every η by 1 − η satisfies the same constraints."""
        return bool(np.all(self.low == 0) and np.all(self.high == 1) and not len(self.better))
