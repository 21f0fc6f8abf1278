"""Where scores, gates and pulls lie in one vector of parameters.

What is believed of scores, gates and pulls before anyone judged: log density, gradient, curvature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.crowd.likelihood import PROBIT, sigmoid
from crowdrank.models.crowd.side_information import NO_HINTS, Bonds, Hints
from crowdrank.models.pairwise.likelihood import LOGISTIC
from crowdrank.models.pairwise.likelihood import PROBIT as THURSTONE
from crowdrank.models.score_priors import gaussian, virtual_node


@dataclass(frozen=True)
class Layout:
    """A score an item, then a gate an annotator, then the pulls of each annotator."""

    items: int
    annotators: int
    features: int = 0

    @property
    def size(self) -> int:
        return self.items + self.annotators * (1 + self.features)

    def split(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        scores, gates, pulls = np.split(x, (self.items, self.items + self.annotators))
        return scores, gates, pulls.reshape(self.annotators, self.features)

    def join(self, scores: FloatArray, gates: FloatArray, pulls: FloatArray) -> FloatArray:
        return np.concatenate((scores, gates, np.ravel(pulls)))


@dataclass(frozen=True)
class PriorPoint:
    """The log density of all priors at some parameters."""

    value: float
    slope: FloatArray
    bend: FloatArray
    """The diagonal of the curvature."""
    bonds: Bonds
    """What of the curvature lies off the diagonal: pairs of gates."""


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What is believed before anyone judged."""

    scale: float | None
    """Of scores, normal around zero."""
    virtual: float = 0.0
    """Virtual wins and losses of each item (Crowd-BT's λ)."""
    quality: tuple[float, float] | None = None
    """Beta counts of the truths and lies of an annotator, for gates that are logits of η."""
    gate: tuple[float, float] | None = None
    """Mean and standard deviation of other gates."""
    pull: float | None = None
    """Standard deviation of pulls."""
    hints: Hints = NO_HINTS
    """What is known of single annotators."""

    def at(self, scores: FloatArray, gates: FloatArray, pulls: FloatArray, formula: int) -> PriorPoint:
        value, slope, bend = 0.0, np.zeros(len(scores)), np.zeros(len(scores))
        for prior in self._of_scores(scores, formula):
            value, slope, bend = value + prior.value, slope + prior.gradient, bend + prior.curvature
        gate_value, gate_slope, gate_bend = self._of_gates(gates)
        hint = self.hints.at(gates)
        pull_bend = np.zeros(pulls.size) if self.pull is None else np.full(pulls.size, self.pull**-2.0)
        value += gate_value + hint.value - 0.5 * float(pull_bend @ pulls.ravel() ** 2)
        slopes = np.concatenate((slope, gate_slope + hint.slope, -pull_bend * pulls.ravel()))
        return PriorPoint(value, slopes, np.concatenate((bend, gate_bend + hint.bend, pull_bend)), hint.bonds)

    def _of_scores(self, scores: FloatArray, formula: int) -> list[Any]:
        found = []
        if self.scale is not None:
            found.append(gaussian(scores, self.scale))
        if self.virtual:
            found.append(virtual_node(scores, self.virtual, THURSTONE if formula == PROBIT else LOGISTIC))
        return found

    def _of_gates(self, gates: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        if self.gate is not None:
            mean, scale = self.gate
            return gaussian(gates - mean, scale)
        # Beta's density on the scale of the gate, the logit of η, where the posterior is nearly normal
        truths, lies = (0.0, 0.0) if self.quality is None else self.quality
        honest, lying = sigmoid(gates), sigmoid(-gates)
        value = float(np.sum(truths * np.log(honest) + lies * np.log(lying)))
        return value, truths * lying - lies * honest, (truths + lies) * honest * lying
