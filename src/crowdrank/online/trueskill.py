"""TrueSkill (Herbrich et al. 2006), two players: sᵢ ~ N(μᵢ, σᵢ²), and i wins if sᵢ − sⱼ + noise is above a margin ε.

With c² = 2β² + σᵢ² + σⱼ², t = (μᵢ − μⱼ)/c and ε in units of c, σ² having first grown by τ²:

μᵢ ← μᵢ + σᵢ²/c·v,   μⱼ ← μⱼ − σⱼ²/c·v,   σ² ← σ²·(1 − σ²/c²·w)   of both

v is the mean of z ~ N(0, 1) and 1 − w its variance, once it is known that z > ε − t (i won), or |z + t| < ε (a tie).

TrueSkill (Herbrich et al. 2006) between two: scores N(μ, σ²), normal noise, and a margin within which two tie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from crowdrank.arrays import FloatArray
from crowdrank.engines.compilation import compiled
from crowdrank.errors import SettingError
from crowdrank.inference.special import ROOT_HALF
from crowdrank.online.columns import Columnar, check_finite, check_positive
from crowdrank.online.sequential import Answers

_ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


def hazard(x: float) -> float:
    """φ(x)/Φ(x) of one number."""
    if x > -35.0:
        return _ROOT_TWO_OVER_PI * math.exp(-0.5 * x * x) / math.erfc(-x * ROOT_HALF)
    # both underflow: the asymptotic series of their ratio
    y = 1.0 / (x * x)
    return -x / (1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))


def after_win(lead: float, margin: float) -> tuple[float, float]:
    """v and w when the one with this lead won."""
    v = hazard(lead - margin)
    return v, v * (v + lead - margin)


def after_tie(lead: float, margin: float) -> tuple[float, float]:
    """v and w when it was a tie."""
    if margin < 1e-6:  # an interval as narrow as this is a point
        return -lead, 1.0
    low, high = abs(lead) - margin, abs(lead) + margin
    # φ(high)/φ(low): everything is measured by φ(low), which may underflow
    fall = math.exp(-2.0 * abs(lead) * margin)
    inside = 1.0 / hazard(-low) - fall / hazard(-high)
    mean = -math.expm1(-2.0 * abs(lead) * margin) / inside
    return -math.copysign(mean, lead), mean * mean - (low - high * fall) / inside


@compiled(hazard, after_win, after_tie)
def fold(left, right, outcome, weight, mean, variance, noise, drift, margin):  # type: ignore[no-untyped-def]
    """Row by row, in place; an answer of weight w is taken in w times, what is left of it in part."""
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
class TrueSkill(Columnar):
    """Beliefs of items' scores, all annotators taken alike; ties teach that two are near each other."""

    initial: float = 25.0
    """The mean of what is believed of a new item."""
    prior_scale: float = 25 / 3
    """Its standard deviation."""
    noise: float = 25 / 6
    """How far one showing of an item scatters around its score (β), as a standard deviation."""
    drift: float = 25 / 300
    """How far a score may wander from one judgment to the next (τ), as a standard deviation; 0 where items stay."""
    tie_share: float = 0.1
    """How often two items of equal score tie: it sets the margin."""

    def __post_init__(self) -> None:
        check_positive(self, "prior_scale", "noise")
        check_finite(self, "initial", "drift")
        if self.drift < 0:
            raise SettingError(f"drift must be zero or more, got {self.drift!r}.")
        if not 0 <= self.tie_share < 1:
            raise SettingError(f"tie_share must be at least 0 and below 1, got {self.tie_share!r}.")

    @property
    def margin(self) -> float:
        """The lead, noise included, up to which it is a tie (ε)."""
        return NormalDist(sigma=2**0.5 * self.noise).inv_cdf(0.5 + 0.5 * self.tie_share)

    @property
    def of_new_item(self) -> Mapping[str, float]:
        return {"mean": self.initial, "variance": self.prior_scale**2}

    def take_in(
        self, answers: Answers, of_items: Mapping[str, FloatArray], of_annotators: Mapping[str, FloatArray]
    ) -> int:
        answers.loop(fold)(
            answers.left,
            answers.right,
            answers.outcome,
            answers.weight,
            of_items["mean"],
            of_items["variance"],
            float(self.noise),
            float(self.drift),
            self.margin,
        )
        return 0
