"""TrueSkill (Herbrich et al. 2006) for two: sᵢ ~ N(μᵢ, σᵢ²), and i wins if sᵢ − sⱼ + noise is above a margin ε.

With c² = 2β² + σᵢ² + σⱼ², t = (μᵢ − μⱼ)/c, ε in units of c, and σ² first increased by τ²:

μᵢ ← μᵢ + σᵢ²/c·v,   μⱼ ← μⱼ − σⱼ²/c·v,   σ² ← σ²·(1 − σ²/c²·w)   of both

v is the mean and 1 − w the variance of z ~ N(0, 1), given that z > ε − t (i won) or |z + t| < ε (a tie).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

from crowdrank.arrays import FloatArray
from crowdrank.engines.compilation import compiled
from crowdrank.errors import SettingError
from crowdrank.inference.special import ROOT_HALF
from crowdrank.online.sequential_model import Answers, ColumnarModel, OneAnswer, check_finite, check_positive

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
