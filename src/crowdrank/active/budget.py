"""What may be spent on a collection, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.active.history import Asked
from crowdrank.arrays import FloatArray
from crowdrank.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits to what is asked; None for no limit. A question counts from when it is put, answered or not."""

    votes: int | None = None
    """How many questions in all."""
    money: float | None = None
    """What they may cost, at the prices of the rules."""
    per_person: int | None = None
    """How many questions each annotator gets, beside what the rules say."""

    def __post_init__(self) -> None:
        for name in ("votes", "money", "per_person"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise SettingError(f"{name} must be zero or more, or None for no limit, got {value!r}.")

    def left(self, asked: Asked) -> float:
        """How many questions can still be put, the cheapest annotators asked first; inf where nothing limits them."""
        return min(self._votes_left(asked), self._affordable(asked))

    def exhausted(self, asked: Asked) -> bool:
        """Whether nothing more may be asked."""
        return self.left(asked) < 1

    def limit(self, asked: Asked) -> str:
        """Which limit was hit, in words; empty while something is left."""
        if self._votes_left(asked) < 1:
            return f"All {self.votes:,} questions of the budget were put."
        free = self._free(asked)
        if not len(asked.prices[asked.present]):
            return "Nobody can be asked now."
        if not (free > 0).any():
            return "Everyone who can be asked has had as many questions as they may get" + (
                "." if self.per_person is None else f": {self.per_person:,} by the budget, or fewer by the rules."
            )
        if self._affordable(asked) < 1:
            price = asked.prices[free > 0].min()
            return f"{asked.spent:,.2f} of {self.money:,.2f} is spent, and the cheapest answer costs {price:,.2f}."
        return ""

    def _votes_left(self, asked: Asked) -> float:
        return np.inf if self.votes is None else self.votes - int(asked.load.sum())

    def _free(self, asked: Asked) -> FloatArray:
        """How many questions each annotator may still get."""
        most = np.minimum(asked.quotas, np.inf if self.per_person is None else self.per_person)
        return np.where(asked.present, np.maximum(most - asked.load, 0), 0.0)

    def _affordable(self, asked: Asked) -> float:
        free = self._free(asked)
        if self.money is None:
            return float(free.sum())
        money, count = self.money - asked.spent, 0.0
        for who in np.argsort(asked.prices, kind="stable"):
            # a little more than all, so that ten times 0.1 is 1
            bought = min(free[who], np.floor(money / asked.prices[who] + 1e-9))
            if bought > 0:
                count, money = count + bought, money - bought * asked.prices[who]
        return float(count)
