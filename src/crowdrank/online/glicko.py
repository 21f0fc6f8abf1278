"""Glicko-2 (Glickman 2012): ratings with a deviation φ and a volatility σ, moved after a rating period.

From opponents j with results s of the period, ratings and deviations divided by 400/ln 10:

g = 1/√(1 + 3φⱼ²/π²),   E = 1/(1 + e^{−g(μ − μⱼ)}),   1/v = Σ g²E(1 − E),   Δ = v·Σ g(s − E)
σ′ solves f = 0,   φ*² = φ² + σ′²,   1/φ′² = 1/φ*² + 1/v,   μ′ = μ + φ′²·Σ g(s − E)
f(x) = eˣ(Δ² − φ² − v − eˣ)/(2(φ² + v + eˣ)²) − (x − ln σ²)/τ²,   x = ln σ′²

Here 1/v is called `precision`, Σ g(s − E) `gain` and τ `restraint`; ratings come and go in points.

Glicko-2 (Glickman 2012): ratings with a deviation, and a volatility that says how erratic they have been.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.engines.compilation import compiled
from crowdrank.errors import SettingError
from crowdrank.online.columns import Columnar, check_finite, check_positive
from crowdrank.online.sequential import Answers

_UNIT = 400.0 / math.log(10.0)
_CLOSE = 1e-6  # Glickman's ε


def evidence(lead: float, variance: float, result: float) -> tuple[float, float]:
    """What one result adds to the precision and the gain; lead over the opponent and their variance in points."""
    g = 1.0 / math.sqrt(1.0 + 3.0 * variance / (math.pi * _UNIT) ** 2)
    e = math.exp(-abs(g * lead / _UNIT))
    expected = (1.0 if lead > 0 else e) / (1.0 + e)
    return g * g * e / ((1.0 + e) * (1.0 + e)), g * (result - expected)


def slant(x: float, surprise: float, spread: float, before: float, restraint: float) -> float:
    """f(x), with Δ² for `surprise`, φ² + v for `spread` and ln σ² for `before`."""
    e = math.exp(x)
    return e * (surprise - spread - e) / (2.0 * (spread + e) ** 2) - (x - before) / (restraint * restraint)


def volatility_after(surprise: float, spread: float, volatility: float, restraint: float) -> float:
    """σ′: where f = 0, by regula falsi as improved at Illinois (step 5)."""
    before = 2.0 * math.log(volatility)
    a = before
    if surprise > spread:
        b = math.log(surprise - spread)
    else:
        b = before - restraint
        while slant(b, surprise, spread, before, restraint) < 0.0:
            b -= restraint
    at_a = slant(a, surprise, spread, before, restraint)
    at_b = slant(b, surprise, spread, before, restraint)
    while abs(b - a) > _CLOSE:
        c = a + (a - b) * at_a / (at_b - at_a)
        at_c = slant(c, surprise, spread, before, restraint)
        if at_c * at_b <= 0.0:
            a, at_a = b, at_b
        else:
            at_a *= 0.5
        b, at_b = c, at_c
    return math.exp(0.5 * a)


def after_period(
    mean: float, variance: float, volatility: float, precision: float, gain: float, restraint: float
) -> tuple[float, float, float]:
    """Rating, variance (both in points) and σ′; who did not play only becomes less certain."""
    if precision == 0.0:
        return mean, variance + (volatility * _UNIT) ** 2, volatility
    spread, v = variance / _UNIT**2, 1.0 / precision
    volatility = volatility_after((v * gain) ** 2, spread + v, volatility, restraint)
    spread = 1.0 / (1.0 / (spread + volatility * volatility) + precision)
    return mean + _UNIT * spread * gain, _UNIT**2 * spread, volatility


@compiled(evidence, slant, volatility_after, after_period)
def fold_by_judgment(left, right, outcome, weight, mean, variance, volatility, restraint):  # type: ignore[no-untyped-def]
    """Each row a period of its own, for the two who met; in place."""
    for row in range(len(left)):
        i, j, w = left[row], right[row], weight[row]
        lead, result = mean[i] - mean[j], 0.5 + 0.5 * outcome[row]
        precision_i, gain_i = evidence(lead, variance[j], result)
        precision_j, gain_j = evidence(-lead, variance[i], 1.0 - result)
        mean[i], variance[i], volatility[i] = after_period(
            mean[i], variance[i], volatility[i], w * precision_i, w * gain_i, restraint
        )
        mean[j], variance[j], volatility[j] = after_period(
            mean[j], variance[j], volatility[j], w * precision_j, w * gain_j, restraint
        )


@compiled(evidence, slant, volatility_after, after_period)
def fold_as_period(  # type: ignore[no-untyped-def]
    left, right, outcome, weight, mean, variance, volatility, restraint, precision, gain
):
    """All rows one period, for everyone; in place. `precision` and `gain` come in as zeros."""
    for row in range(len(left)):
        i, j, w = left[row], right[row], weight[row]
        lead, result = mean[i] - mean[j], 0.5 + 0.5 * outcome[row]
        precision_i, gain_i = evidence(lead, variance[j], result)
        precision_j, gain_j = evidence(-lead, variance[i], 1.0 - result)
        precision[i] += w * precision_i
        gain[i] += w * gain_i
        precision[j] += w * precision_j
        gain[j] += w * gain_j
    for i in range(len(mean)):
        mean[i], variance[i], volatility[i] = after_period(
            mean[i], variance[i], volatility[i], precision[i], gain[i], restraint
        )


@dataclass(frozen=True, kw_only=True)
class Glicko2(Columnar):
    """Ratings, their variances (deviation squared) and volatilities; all annotators are alike, a tie is half a win."""

    initial: float = 1500.0
    """The rating of a new item."""
    prior_scale: float = 350.0
    """Its deviation, as a standard deviation."""
    volatility: float = 0.06
    """The volatility of a new item."""
    restraint: float = 0.5
    """How far volatility may change in a period (τ): the smaller the less, between 0.3 and 1.2."""
    period: Literal["judgment", "call"] = "judgment"
    """What a rating period is. "judgment": each on its own, for the two that met. "call": all that one call of `fold`
    or `update` is given, taken at once; items that did not play become less certain."""

    def __post_init__(self) -> None:
        check_finite(self, "initial")
        check_positive(self, "prior_scale", "volatility", "restraint")
        if self.period not in ("judgment", "call"):
            raise SettingError(f"period must be judgment or call, got {self.period!r}.")

    @property
    def of_new_item(self) -> Mapping[str, float]:
        return {"mean": self.initial, "variance": self.prior_scale**2, "volatility": self.volatility}

    def take_in(
        self, answers: Answers, of_items: Mapping[str, FloatArray], of_annotators: Mapping[str, FloatArray]
    ) -> int:
        rows = answers.left, answers.right, answers.outcome, answers.weight
        beliefs = of_items["mean"], of_items["variance"], of_items["volatility"]
        if self.period == "judgment":
            answers.loop(fold_by_judgment)(*rows, *beliefs, float(self.restraint))
        elif len(answers.left):
            nothing = np.zeros((2, len(of_items["mean"])))
            answers.loop(fold_as_period)(*rows, *beliefs, float(self.restraint), *nothing)
        return 0
