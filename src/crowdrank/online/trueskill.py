"""TrueSkill (Herbrich et al. 2006) between two: scores N(μ, σ²), normal noise, and a margin within which two tie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from crowdrank.errors import SettingError
from crowdrank.likelihoods import trueskill
from crowdrank.online.beliefs import Vector
from crowdrank.online.columns import Columnar, check_finite, check_positive
from crowdrank.online.sequential import Answers


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

    def take_in(self, answers: Answers, of_items: Mapping[str, Vector], of_annotators: Mapping[str, Vector]) -> int:
        answers.loop(trueskill.fold)(
            answers.left, answers.right, answers.outcome, answers.weight,
            of_items["mean"], of_items["variance"], float(self.noise), float(self.drift), self.margin,
        )  # fmt: skip
        return 0
