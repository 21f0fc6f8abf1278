"""Priors on scores, logits and feature weights: log density, gradient and curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.crowd.likelihood import CROWD_BT_PROBIT, sigmoid
from crowdrank.models.crowd.quality_constraints import NO_CONSTRAINTS, PairCurvatures, QualityConstraints
from crowdrank.models.pairwise.likelihood import LOGISTIC, PROBIT
from crowdrank.models.score_priors import gaussian, virtual_node


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
        honest, lying = sigmoid(logits), sigmoid(-logits)
        value = float(np.sum(alpha * np.log(honest) + beta * np.log(lying)))
        return value, alpha * lying - beta * honest, (alpha + beta) * honest * lying
