"""Elo (Elo 1978), with the same ratings as the model `elo` fits, and Glicko-2 (Glickman 2012).

Glicko-2 has ratings with a deviation φ and a volatility σ, updated once per rating period.

With the opponents j of the period and the results s, ratings and deviations divided by 400/ln 10:

g = 1/√(1 + 3φⱼ²/π²),   E = 1/(1 + e^{−g(μ − μⱼ)}),   1/v = Σ g²E(1 − E),   Δ = v·Σ g(s − E)
σ′ solves f = 0,   φ*² = φ² + σ′²,   1/φ′² = 1/φ*² + 1/v,   μ′ = μ + φ′²·Σ g(s − E)
f(x) = eˣ(Δ² − φ² − v − eˣ)/(2(φ² + v + eˣ)²) − (x − ln σ²)/τ²,   x = ln σ′²

In the code 1/v is `precision`, Σ g(s − E) is `gradient` and τ is `system_constant`; ratings are in points throughout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.engines.compilation import compiled
from crowdrank.errors import SettingError
from crowdrank.inference.special import ROOT_HALF
from crowdrank.models.pairwise import elo
from crowdrank.online.beliefs import Answers, ColumnarModel, OneAnswer, check_finite, check_positive

_POINTS = 400.0 / math.log(10.0)
_TOLERANCE = 1e-6  # Glickman's ε


@dataclass(frozen=True, kw_only=True)
class Elo(ColumnarModel):
    """Elo ratings, one judgment at a time. All annotators count alike, and a tie is half a win.

    Parameters
    ----------
    step : float, default 32.0
        Largest change of a rating by one judgment (Elo's K).
    scale : float, default 400.0
        Difference in rating that means odds of ten to one.
    initial : float, default 1500.0
        Rating of a new item.

    Notes
    -----
    The beliefs have the column ``mean`` only: Elo keeps no variance. An update is a ← a + step·(result − E) with
    E = 1/(1 + 10^((b − a)/scale)).

    Examples
    --------
    >>> from crowdrank.data import Comparison
    >>> model = Elo()
    >>> model.update(model.start(["a", "b"]), Comparison("a", "b", "a")).mean.tolist()
    [1516.0, 1484.0]
    """

    step: float = 32.0
    scale: float = 400.0
    initial: float = 1500.0

    def __post_init__(self) -> None:
        check_positive(self, "step", "scale")
        check_finite(self, "initial")

    @property
    def new_item(self) -> Mapping[str, float]:
        return {"mean": self.initial}

    def update_columns(
        self,
        answers: Answers | OneAnswer,
        item_columns: Mapping[str, FloatArray],
        annotator_columns: Mapping[str, FloatArray],
    ) -> int:
        answers.loop(elo.update_ratings)(
            answers.left,
            answers.right,
            answers.outcome,
            answers.weight,
            item_columns["mean"],
            self.step,
            np.log(10) / self.scale,
        )
        return 0


def evidence(lead: float, variance: float, result: float) -> tuple[float, float]:
    """Contribution of one result to 1/v and Σ g(s − E); `lead` over the opponent and their variance are in points."""
    g = 1.0 / math.sqrt(1.0 + 3.0 * variance / (math.pi * _POINTS) ** 2)
    e = math.exp(-abs(g * lead / _POINTS))
    expected = (1.0 if lead > 0 else e) / (1.0 + e)
    return g * g * e / ((1.0 + e) * (1.0 + e)), g * (result - expected)


def volatility_equation(x: float, delta2: float, variance: float, before: float, system_constant: float) -> float:
    """f(x), with Δ² as `delta2`, φ² + v as `variance` and ln σ² as `before`."""
    e = math.exp(x)
    return e * (delta2 - variance - e) / (2.0 * (variance + e) ** 2) - (x - before) / (
        system_constant * system_constant
    )


def new_volatility(delta2: float, variance: float, volatility: float, system_constant: float) -> float:
    """σ′, the root of f, by the Illinois variant of regula falsi (Glickman's step 5)."""
    before = 2.0 * math.log(volatility)
    a = before
    if delta2 > variance:
        b = math.log(delta2 - variance)
    else:
        b = before - system_constant
        while volatility_equation(b, delta2, variance, before, system_constant) < 0.0:
            b -= system_constant
    f_a = volatility_equation(a, delta2, variance, before, system_constant)
    f_b = volatility_equation(b, delta2, variance, before, system_constant)
    while abs(b - a) > _TOLERANCE:
        c = a + (a - b) * f_a / (f_b - f_a)
        f_c = volatility_equation(c, delta2, variance, before, system_constant)
        if f_c * f_b <= 0.0:
            a, f_a = b, f_b
        else:
            f_a *= 0.5
        b, f_b = c, f_c
    return math.exp(0.5 * a)


def after_period(
    mean: float, variance: float, volatility: float, precision: float, gradient: float, system_constant: float
) -> tuple[float, float, float]:
    """Rating and variance (both in points) and volatility after a period; an idle item only becomes less certain."""
    if precision == 0.0:
        return mean, variance + (volatility * _POINTS) ** 2, volatility
    spread, v = variance / _POINTS**2, 1.0 / precision
    volatility = new_volatility((v * gradient) ** 2, spread + v, volatility, system_constant)
    spread = 1.0 / (1.0 / (spread + volatility * volatility) + precision)
    return mean + _POINTS * spread * gradient, _POINTS**2 * spread, volatility


@compiled(evidence, volatility_equation, new_volatility, after_period)
def fold_by_judgment(  # type: ignore[no-untyped-def]
    left, right, outcome, weight, mean, variance, volatility, system_constant
):
    """Treat each row as a rating period of its two items; in place."""
    for row in range(len(left)):
        i, j, w = left[row], right[row], weight[row]
        lead, result = mean[i] - mean[j], 0.5 + 0.5 * outcome[row]
        precision_i, gradient_i = evidence(lead, variance[j], result)
        precision_j, gradient_j = evidence(-lead, variance[i], 1.0 - result)
        mean[i], variance[i], volatility[i] = after_period(
            mean[i], variance[i], volatility[i], w * precision_i, w * gradient_i, system_constant
        )
        mean[j], variance[j], volatility[j] = after_period(
            mean[j], variance[j], volatility[j], w * precision_j, w * gradient_j, system_constant
        )


@compiled(evidence, volatility_equation, new_volatility, after_period)
def fold_as_period(  # type: ignore[no-untyped-def]
    left, right, outcome, weight, mean, variance, volatility, system_constant, precision, gradient
):
    """Treat all rows as one rating period of all items; in place. `precision` and `gradient` start as zeros."""
    for row in range(len(left)):
        i, j, w = left[row], right[row], weight[row]
        lead, result = mean[i] - mean[j], 0.5 + 0.5 * outcome[row]
        precision_i, gradient_i = evidence(lead, variance[j], result)
        precision_j, gradient_j = evidence(-lead, variance[i], 1.0 - result)
        precision[i] += w * precision_i
        gradient[i] += w * gradient_i
        precision[j] += w * precision_j
        gradient[j] += w * gradient_j
    for i in range(len(mean)):
        mean[i], variance[i], volatility[i] = after_period(
            mean[i], variance[i], volatility[i], precision[i], gradient[i], system_constant
        )


@dataclass(frozen=True, kw_only=True)
class Glicko2(ColumnarModel):
    """Glicko-2 ratings. All annotators count alike, and a tie is half a win.

    Parameters
    ----------
    initial : float, default 1500.0
        Rating of a new item.
    prior_scale : float, default 350.0
        Rating deviation of a new item (a standard deviation).
    volatility : float, default 0.06
        Volatility of a new item: how erratic its results are.
    system_constant : float, default 0.5
        How much the volatility may change per period (Glickman's τ). Sensible values lie between 0.3 and 1.2; smaller
        means less.
    period : {"judgment", "call"}, default "judgment"
        The rating period. ``"judgment"``: each judgment on its own, for its two items. ``"call"``: all judgments
        that one call of `fold` or `update` receives, taken together; items without a judgment become less certain.

    Notes
    -----
    The beliefs have the columns ``mean`` (the rating), ``variance`` (the squared deviation) and ``volatility``.

    References
    ----------
    Glickman (2012): Example of the Glicko-2 system.

    Examples
    --------
    >>> from crowdrank.data import Comparison
    >>> model = Glicko2()
    >>> model.update(model.start(["a", "b"]), Comparison("a", "b", "a")).mean.round().tolist()
    [1662.0, 1338.0]
    """

    initial: float = 1500.0
    prior_scale: float = 350.0
    volatility: float = 0.06
    system_constant: float = 0.5
    period: Literal["judgment", "call"] = "judgment"

    def __post_init__(self) -> None:
        check_finite(self, "initial")
        check_positive(self, "prior_scale", "volatility", "system_constant")
        if self.period not in ("judgment", "call"):
            raise SettingError(f"period must be 'judgment' or 'call', got {self.period!r}.")

    @property
    def new_item(self) -> Mapping[str, float]:
        return {"mean": self.initial, "variance": self.prior_scale**2, "volatility": self.volatility}

    @property
    def changes_only_the_judged(self) -> bool:
        return self.period == "judgment"

    def update_columns(
        self,
        answers: Answers | OneAnswer,
        item_columns: Mapping[str, FloatArray],
        annotator_columns: Mapping[str, FloatArray],
    ) -> int:
        rows = answers.left, answers.right, answers.outcome, answers.weight
        columns = item_columns["mean"], item_columns["variance"], item_columns["volatility"]
        if self.period == "judgment":
            answers.loop(fold_by_judgment)(*rows, *columns, float(self.system_constant))
        elif len(answers.left):
            sums = np.zeros((2, len(item_columns["mean"])))
            answers.loop(fold_as_period)(*rows, *columns, float(self.system_constant), *sums)
        return 0


# TrueSkill (Herbrich et al. 2006) for two: sᵢ ~ N(μᵢ, σᵢ²), and i wins if sᵢ − sⱼ + noise is above a margin ε.
#
# With c² = 2β² + σᵢ² + σⱼ², t = (μᵢ − μⱼ)/c, ε in units of c, and σ² first increased by τ²:
#
# μᵢ ← μᵢ + σᵢ²/c·v, μⱼ ← μⱼ − σⱼ²/c·v, σ² ← σ²·(1 − σ²/c²·w) of both
#
# v is the mean and 1 − w the variance of z ~ N(0, 1), given that z > ε − t (i won) or |z + t| < ε (a tie).

_ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


def inverse_mills_ratio(x: float) -> float:
    """φ(x)/Φ(x), for a single number."""
    if x > -35.0:
        return _ROOT_TWO_OVER_PI * math.exp(-0.5 * x * x) / math.erfc(-x * ROOT_HALF)
    # φ and Φ underflow long before their ratio does: use its asymptotic series
    y = 1.0 / (x * x)
    return -x / (1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))


def after_win(lead: float, margin: float) -> tuple[float, float]:
    """v and w when the item with this lead won."""
    v = inverse_mills_ratio(lead - margin)
    return v, v * (v + lead - margin)


def after_tie(lead: float, margin: float) -> tuple[float, float]:
    """v and w after a tie."""
    if margin < 1e-6:  # an interval this narrow is a point
        return -lead, 1.0
    low, high = abs(lead) - margin, abs(lead) + margin
    # Everything is divided by φ(low), which may underflow; `ratio` is φ(high)/φ(low).
    ratio = math.exp(-2.0 * abs(lead) * margin)
    inside = 1.0 / inverse_mills_ratio(-low) - ratio / inverse_mills_ratio(-high)
    mean = -math.expm1(-2.0 * abs(lead) * margin) / inside
    return -math.copysign(mean, lead), mean * mean - (low - high * ratio) / inside


@compiled(inverse_mills_ratio, after_win, after_tie)
def fold(left, right, outcome, weight, mean, variance, noise, drift, margin):  # type: ignore[no-untyped-def]
    """Update the columns in place, row by row. An answer of weight w is applied w times, a fraction in part."""
    for row in range(len(left)):
        i, j = left[row], right[row]
        rest = weight[row]
        while rest > 0.0:
            part = min(rest, 1.0)
            rest -= part
            first, second = variance[i] + drift * drift, variance[j] + drift * drift
            both = 2.0 * noise * noise + first + second
            c = math.sqrt(both)
            lead = (mean[i] - mean[j]) / c
            if outcome[row] == 0:
                v, w = after_tie(lead, margin / c)
            else:
                v, w = after_win(outcome[row] * lead, margin / c)
                v *= outcome[row]
            mean[i] += part * first / c * v
            mean[j] -= part * second / c * v
            variance[i] += part * (first * (1.0 - first / both * w) - variance[i])
            variance[j] += part * (second * (1.0 - second / both * w) - variance[j])


@dataclass(frozen=True, kw_only=True)
class TrueSkill(ColumnarModel):
    """TrueSkill between two items. All annotators count alike; a tie says that two scores are close.

    Parameters
    ----------
    initial : float, default 25.0
        Mean score of a new item.
    prior_scale : float, default 25/3
        Standard deviation of a new item's score.
    noise : float, default 25/6
        Standard deviation of an item's performance around its score (TrueSkill's β).
    drift : float, default 25/300
        Standard deviation by which a score may change between judgments (TrueSkill's τ); 0 if items do not change.
    tie_probability : float, default 0.1
        Probability that two items of equal score tie. It determines the margin.

    Notes
    -----
    The beliefs have the columns ``mean`` and ``variance``.

    References
    ----------
    Herbrich, Minka, Graepel (2006): TrueSkill: a Bayesian skill rating system. NIPS.

    Examples
    --------
    >>> from crowdrank.data import Comparison
    >>> model = TrueSkill()
    >>> model.update(model.start(["a", "b"]), Comparison("a", "b", "a")).mean.round(2).tolist()
    [29.4, 20.6]
    """

    initial: float = 25.0
    prior_scale: float = 25 / 3
    noise: float = 25 / 6
    drift: float = 25 / 300
    tie_probability: float = 0.1

    def __post_init__(self) -> None:
        check_positive(self, "prior_scale", "noise")
        check_finite(self, "initial", "drift")
        if self.drift < 0:
            raise SettingError(f"drift must be zero or more, got {self.drift!r}.")
        if not 0 <= self.tie_probability < 1:
            raise SettingError(f"tie_probability must be at least 0 and below 1, got {self.tie_probability!r}.")

    @cached_property
    def margin(self) -> float:
        """ε: the largest difference in performance that is a tie."""
        return NormalDist(sigma=2**0.5 * self.noise).inv_cdf(0.5 + 0.5 * self.tie_probability)

    @property
    def new_item(self) -> Mapping[str, float]:
        return {"mean": self.initial, "variance": self.prior_scale**2}

    def update_columns(
        self,
        answers: Answers | OneAnswer,
        item_columns: Mapping[str, FloatArray],
        annotator_columns: Mapping[str, FloatArray],
    ) -> int:
        answers.loop(fold)(
            answers.left,
            answers.right,
            answers.outcome,
            answers.weight,
            item_columns["mean"],
            item_columns["variance"],
            float(self.noise),
            float(self.drift),
            self.margin,
        )
        return 0
