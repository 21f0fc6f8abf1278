"""What was concluded: the order, how sure it is, and how it was reached."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items
from crowdrank.errors import ConvergenceWarning, DataError, SettingError
from crowdrank.results.annotators import Annotators
from crowdrank.results.domains import Domains
from crowdrank.results.uncertainty import Uncertainty

# Items are told apart, and a new tie group begins, when the order of two is at least this sure.
TOLD_APART = 0.95


@dataclass(frozen=True)
class Convergence:
    """Whether the solver got there, and how far it was when it stopped."""

    converged: bool = True
    steps: int = 0
    distance: float = 0.0
    """How far from settled it was when it stopped; 0 for models computed outright."""
    unit: str = "standard errors short of its summit"
    """What the distance is measured in."""
    remedy: str = "raise max_steps"

    def warn(self, model: str) -> None:
        if not self.converged:
            warnings.warn(
                f"{model} stopped after {self.steps} steps, {self.distance:.1e} {self.unit}: {self.remedy}.",
                ConvergenceWarning,
                stacklevel=4,
            )


OUTRIGHT = Convergence()
"""Of models computed outright, with nothing to converge."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ranking:
    """Scores of items within queries, larger is better, with what stands behind them."""

    model: str
    settings: Mapping[str, Any]
    items: Items
    scores: FloatArray
    tally: Callable[[], IntArray]
    """Counts, when first asked, in how many judgments each item appears."""
    counted_in: str = "comparisons"
    """The kind of judgment that was counted, in a word."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """What was estimated beside the scores, such as how readily annotators call a tie."""
    log_likelihood: float | None = None
    convergence: Convergence = OUTRIGHT
    native: str = "polars"
    measure: Callable[[], Uncertainty] | None = None
    """Computes the uncertainty when first asked for."""
    survey: Callable[[], Annotators] | None = None
    """Says what was learnt of the annotators when first asked."""
    chart: Callable[[], Domains] | None = None
    """Says what was learnt of hidden domains when first asked."""
    observe: Callable[[], list[str]] | None = None
    """Looks at the health of the data when first asked for."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in self.settings.items())
        return f"<Ranking of {len(self.items):,} items by {self.model}({settings})>"

    @cached_property
    def judged(self) -> IntArray:
        """In how many judgments each item appears."""
        return self.tally()

    @cached_property
    def uncertainty(self) -> Uncertainty:
        if self.measure is None:
            raise DataError(f"{self.model}: no uncertainty was recorded for this ranking.")
        return self.measure()

    @cached_property
    def annotators(self) -> Annotators:
        if self.survey is None:
            raise DataError(f"{self.model} learnt nothing of the annotators.")
        return self.survey()

    @cached_property
    def domains(self) -> Domains:
        if self.chart is None:
            raise DataError(f"{self.model} learnt nothing of domains.")
        return self.chart()

    @cached_property
    def notes(self) -> list[str]:
        """What in the data weakens the answer, in plain words."""
        return [] if self.observe is None else self.observe()

    @cached_property
    def order(self) -> IntArray:
        """Items from best to worst, query after query."""
        return np.lexsort((-self.scores, self.items.query))

    @cached_property
    def rank(self) -> IntArray:
        """1 for the best of its query; equal scores share the better rank."""
        ordered, query = self.scores[self.order], self.items.query[self.order]
        fresh = np.append(True, (ordered[1:] != ordered[:-1]) | (query[1:] != query[:-1]))
        place = np.arange(len(ordered)) - self.items.starts[query] + 1
        held = np.maximum.accumulate(np.where(fresh, np.arange(len(ordered)), 0))
        rank = np.empty(len(ordered), np.int64)
        rank[self.order] = place[held]
        return rank

    def probability(self, a: object, b: object, query: object | None = None) -> float:
        """P(a truly ranks above b), given all the judgments."""
        return self.uncertainty.chance_above(self.scores, self.items.index(a, query), self.items.index(b, query))

    @cached_property
    def groups(self) -> IntArray:
        """Tie groups, 1 at the top: an item opens a new one when it is surely below the first of the last one."""
        group = np.empty(len(self.items), np.int64)
        number, first, query = 0, -1, -1
        for place in self.order:
            if self.items.query[place] != query:
                query, number, first = self.items.query[place], 1, place
            elif self.uncertainty.chance_above(self.scores, first, place) >= TOLD_APART:
                number, first = number + 1, place
            group[place] = number
        return group

    def table(self, query: object | None = None, level: float = 0.95, uncertainty: bool = True) -> Any:
        """Best first: rank, item, score, std error, rank interval, tie group and comparisons.

        It comes as the kind of data frame the judgments came in.
        """
        if not 0 < level < 1:
            raise SettingError(f"level must lie between 0 and 1, got {level}.")
        frame = self.frame(level, uncertainty)
        if query is not None:
            block = self.items.of_query(self.items.query_code(query))
            frame = frame[block]  # the frame goes query by query, as the items do
        return _as_native(frame, self.native)

    def plot(self, query: object | None = None, *, top: int = 30, level: float = 0.95, uncertainty: bool = True) -> Any:
        """The first items with the range their scores are likely to lie in, as an Altair chart; neighbouring tie groups
        differ in colour.

        A notebook shows it as it is; `.save("ranking.svg")` keeps it. It needs `pip install 'crowdrank[reports]'`.
        """
        from crowdrank.results.plotting import plot

        return plot(self, query, top, level, uncertainty)

    def save(self, path: str | Path, uncertainty: bool = True) -> None:
        """Write everything concluded as JSON."""
        from crowdrank.results.saving import save

        save(self, path, uncertainty)

    @classmethod
    def load(cls, path: str | Path) -> Ranking:
        """Read what `save` wrote."""
        from crowdrank.results.saving import load

        return load(path)

    def frame(self, level: float = 0.95, uncertainty: bool = True) -> pl.DataFrame:
        """The table as a polars frame."""
        order = self.order
        columns: dict[str, Any] = {}
        if self.items.has_queries:
            columns["query"] = self.items.queries[self.items.query[order]].tolist()
        columns |= {
            "rank": self.rank[order],
            "item": self.items.labels[order].tolist(),
            "score": self.scores[order],
        }
        if uncertainty and self.measure is not None:
            low, high = self.uncertainty.rank_interval(self.items, level)
            columns |= {
                "std_error": self.uncertainty.std_error[order],
                "rank_low": low[order],
                "rank_high": high[order],
                "group": self.groups[order],
            }
        columns[self.counted_in] = self.judged[order]
        return pl.DataFrame(columns)


def _as_native(frame: pl.DataFrame, native: Any) -> Any:
    """A polars frame as the kind the user works with."""
    if native == "polars":
        return frame
    import narwhals

    return narwhals.from_dict(frame.to_dict(as_series=False), backend=native).to_native()
