"""Strengths that drift: the curve of each item over time, with bands, and whether anything changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items
from crowdrank.results.parts import Tabular
from crowdrank.results.ranks import benjamini_hochberg
from crowdrank.results.scales import Scale

FALSE_DISCOVERY_RATE = 0.05
"""Share of wrong names among the items that are said to have changed."""
EARLIEST_DATE = 1e8
"""Times from here on are seconds since 1970, and are written as dates."""
_DAY = 86_400.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Drift(Tabular):
    """Scores of the items over time. `frame` has one row per period and item.

    Parameters
    ----------
    items : Items
        The items.
    edges : array of float
        Where the periods begin, and where the last one ends.
    scores, std_errors : array of float, periods × items
        Smoothed scores and their standard errors, in the unit of the model. The mean over items is 0 in every period.
    n_judgments : array of int, periods × items
        Number of judgments of each item in each period.
    change_errors : array of float
        Standard error of the change of each item from the first period to the last.
    rate : float
        Standard deviation of the change of a score from one period to the next; 0 if nothing changes.
    probability : float
        Posterior probability that anything changed, with even prior odds.
    p_value : float
        P-value of the score test that nothing changed.
    item_p_values : array of float
        P-value of the same test for each item.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    items: Items
    edges: FloatArray
    scores: FloatArray
    std_errors: FloatArray
    n_judgments: IntArray
    change_errors: FloatArray
    rate: float
    probability: float
    p_value: float
    item_p_values: FloatArray
    native: str = "polars"

    def __repr__(self) -> str:
        return f"<Drift of {len(self.items):,} items over {len(self.scores):,} periods: {self.sentence()}>"

    @property
    def changed(self) -> list[str]:
        """Items that have changed, at a false discovery rate of 5 %; none if the test of all together finds nothing."""
        if self.p_value >= FALSE_DISCOVERY_RATE:
            return []
        found = benjamini_hochberg(self.item_p_values) < FALSE_DISCOVERY_RATE
        return [str(self.items.labels[n]) for n in np.flatnonzero(found)]

    @property
    def periods(self) -> list[str]:
        """The beginning of each period: a date, or a number if times are not dates."""
        return [period_label(value, self.edges) for value in self.edges[:-1]]

    def sentence(self) -> str:
        """Return the result of the test in one sentence."""
        p = f"p = {self.p_value:.2g}" if self.p_value >= 1e-4 else "p < 0.0001"
        if self.p_value >= FALSE_DISCOVERY_RATE:
            return f"No change over time is visible ({p})."
        names = self.changed
        if not names:
            return f"Strengths changed over time ({p}), but no single item changed significantly."
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        return f"Strengths changed over time ({p}): {shown}."

    def take(self, positions: IntArray, items: Items) -> Drift:
        """Return the curves of some of the items."""
        columns = {name: getattr(self, name)[:, positions] for name in ("scores", "std_errors", "n_judgments")}
        return replace(
            self,
            items=items,
            **columns,
            change_errors=self.change_errors[positions],
            item_p_values=self.item_p_values[positions],
        )

    def on_scale(self, scale: Scale | None) -> tuple[FloatArray, FloatArray]:
        """Return scores and standard errors on the scale of the tables."""
        if scale is None:
            return self.scores, self.std_errors
        return scale.show(self.scores), scale.show_error(self.scores, self.std_errors)

    def to_polars(self, level: float = 0.95, scale: Scale | None = None) -> pl.DataFrame:
        """Return one row per item and period: period, query, item, score, low, high, judgments."""
        z = NormalDist().inv_cdf(0.5 + level / 2)
        scores, errors = self.on_scale(scale)
        count, size = scores.shape
        columns: dict[str, Any] = {"period": np.repeat(self.periods, size).tolist()}
        if self.items.has_queries:
            columns["query"] = self.items.queries[self.items.query].tolist() * count
        columns |= {
            "item": self.items.labels.tolist() * count,
            "score": scores.ravel(),
            "low": (scores - z * errors).ravel(),
            "high": (scores + z * errors).ravel(),
            "judgments": self.n_judgments.ravel(),
        }
        return pl.DataFrame(columns)

    def changes(self, level: float = 0.95, scale: Scale | None = None) -> pl.DataFrame:
        """Return one row per item: first and last score, change with its interval, p-value; largest change first."""
        z = NormalDist().inv_cdf(0.5 + level / 2)
        scores, _ = self.on_scale(scale)
        factor = 1.0 if scale is None or scale.link else scale.factor
        change = scores[-1] - scores[0]
        frame = pl.DataFrame(
            {
                "item": self.items.labels.tolist(),
                "first": scores[0],
                "last": scores[-1],
                "change": change,
                "low": change - z * factor * self.change_errors,
                "high": change + z * factor * self.change_errors,
                "p_value": self.item_p_values,
            }
        )
        return frame.sort(pl.col("change").abs(), "item", descending=[True, False])

    def as_dict(self) -> dict[str, Any]:
        """Return the test and the curves as a dictionary that can be written as JSON."""
        return {
            "rate": self.rate,
            "probability": self.probability,
            "p_value": self.p_value,
            "changed": self.changed,
            "changes": self.changes().to_dicts(),
            "curves": self.to_polars().to_dicts(),
        }


def period_label(value: float, edges: Sequence[float] | FloatArray) -> str:
    """A time as a date, with hours if periods are short; as a number if times are not dates."""
    from datetime import UTC, datetime

    if edges[0] < EARLIEST_DATE:
        return f"{value:.6g}"
    moment = datetime.fromtimestamp(float(value), tz=UTC)
    return moment.strftime("%Y-%m-%d" if edges[1] - edges[0] >= _DAY else "%Y-%m-%d %H:%M")
