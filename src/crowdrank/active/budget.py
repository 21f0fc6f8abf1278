"""Budget of a collection, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.active.history import QuestionHistory
from crowdrank.arrays import FloatArray
from crowdrank.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits to the questions of a collection. A question counts from when it is asked, answered or not.

    Parameters
    ----------
    votes : int, optional
        Total number of questions; unlimited by default.
    money : float, optional
        Total cost, at the prices of the rules; unlimited by default.
    per_annotator : int, optional
        Number of questions per annotator, in addition to the quotas of the rules; unlimited by default.

    Examples
    --------
    >>> from crowdrank.online import CrowdBT
    >>> history = QuestionHistory(CrowdBT().start(["a", "b", "c"], ["ann", "bob"]))
    >>> Budget(votes=10, per_annotator=3).remaining(history)
    6.0
    """

    votes: int | None = None
    money: float | None = None
    per_annotator: int | None = None

    def __post_init__(self) -> None:
        for name in ("votes", "money", "per_annotator"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise SettingError(f"{name} must be zero or more, or None for no limit, got {value!r}.")

    def remaining(self, history: QuestionHistory) -> float:
        """Return how many questions can still be asked if the cheapest annotators are asked first; inf if unlimited."""
        return min(self._votes_left(history), self._affordable(history))

    def exhausted(self, history: QuestionHistory) -> bool:
        """Return whether no further question may be asked."""
        return self.remaining(history) < 1

    def limit_reached(self, history: QuestionHistory) -> str:
        """Return a sentence that says which limit was reached; empty if none was."""
        if self._votes_left(history) < 1:
            return f"All {self.votes:,} questions of the budget were asked."
        free = self._free(history)
        if not len(history.prices[history.available]):
            return "No annotator is available now."
        if not (free > 0).any():
            return "Every available annotator has reached their maximum number of questions" + (
                "."
                if self.per_annotator is None
                else f" ({self.per_annotator:,} by the budget, or fewer by the rules)."
            )
        if self._affordable(history) < 1:
            price = history.prices[free > 0].min()
            return f"{history.spent:,.2f} of {self.money:,.2f} is spent, and the cheapest answer costs {price:,.2f}."
        return ""

    def _votes_left(self, history: QuestionHistory) -> float:
        return np.inf if self.votes is None else self.votes - int(history.annotator_counts.sum())

    def _free(self, history: QuestionHistory) -> FloatArray:
        """How many questions each annotator may still get."""
        limit = np.minimum(history.quotas, np.inf if self.per_annotator is None else self.per_annotator)
        return np.where(history.available, np.maximum(limit - history.annotator_counts, 0), 0.0)

    def _affordable(self, history: QuestionHistory) -> float:
        free = self._free(history)
        if self.money is None:
            return float(free.sum())
        money, count = self.money - history.spent, 0.0
        for annotator in np.argsort(history.prices, kind="stable"):
            # the small addition keeps ten times 0.1 from costing more than 1
            bought = min(free[annotator], np.floor(money / history.prices[annotator] + 1e-9))
            if bought > 0:
                count, money = count + bought, money - bought * history.prices[annotator]
        return float(count)
