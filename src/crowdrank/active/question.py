"""One question: two items, who is asked, and how likely it was to be chosen.

Who may be asked what.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import SettingError
from crowdrank.online import Roll


@dataclass(frozen=True, kw_only=True)
class Question:
    """Two items as they are to be shown, and to whom."""

    left: str
    right: str
    annotator: str
    query: str = ""
    probability: float
    """With which this pair was chosen for this annotator, whichever side each item is shown on."""
    policy: str
    """What chose it; "random" for the share that is drawn at random."""

    def answered(self, winner: str) -> Comparison:
        """The judgment that it becomes: `winner` is one of the two, or "tie"."""
        return Comparison(self.left, self.right, winner, self.annotator, self.query)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """Limits that every policy keeps to."""

    available: Collection[str] | None = None
    """The annotators who can be asked now; None for all."""
    quota: int | Mapping[str, int] | None = None
    """How many questions an annotator gets at most, for everyone or by name; None for any number."""
    price: float | Mapping[str, float] = 1.0
    """What an answer costs, for everyone or by name (1 for who is not named)."""
    own: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Items that an annotator must not judge, by annotator."""
    repeats: bool = False
    """Whether an annotator may get the same pair again."""
    pool: Comparisons | None = None
    """Ask only what was answered here, each once."""

    def __post_init__(self) -> None:
        prices = self.price.values() if isinstance(self.price, Mapping) else [self.price]
        if not all(0 < price < np.inf for price in prices):
            raise SettingError("Prices must be above zero.")
        quotas = self.quota.values() if isinstance(self.quota, Mapping) else [self.quota or 0]
        if not all(quota >= 0 for quota in quotas):
            raise SettingError("Quotas must be zero or more.")

    def of(self, annotators: Roll) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Of each annotator: the price, the quota, and whether they can be asked now."""
        names = annotators.labels
        price, quota = self.price, np.inf if self.quota is None else self.quota
        prices = [price.get(name, 1.0) for name in names] if isinstance(price, Mapping) else [price] * len(names)
        quotas = [quota.get(name, np.inf) for name in names] if isinstance(quota, Mapping) else [quota] * len(names)
        here = set(names if self.available is None else self.available)
        present = np.array([name in here for name in names], dtype=bool)
        return np.array(prices, dtype=np.float64), np.array(quotas, dtype=np.float64), present
