"""What was learnt: a function that ranks new items, and how far each teacher can be believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.errors import DataError
from crowdrank.learning.features import Features
from crowdrank.learning.rankers.contract import Scorer
from crowdrank.learning.teachers import Teachers
from crowdrank.results import OUTRIGHT, Convergence
from crowdrank.results.ranking import _as_native

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Validation:
    """How well queries were ranked that the function had not seen."""

    metric: str
    value: float
    std_error: float
    """Of the mean, from the spread between queries."""
    queries: int
    against: str
    """What the order was held against: grades, or the annotators' own lists."""

    def __str__(self) -> str:
        return (
            f"{self.metric} {self.value:.3f} ± {self.std_error:.3f} on {self.queries:,} queries held out, "
            f"against {self.against}"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankingFunction:
    """A trained ranking function, with what was learnt beside it. `CrowdRanker.fit` gives one."""

    scorer: Scorer
    names: tuple[str, ...]
    """The features it looks at, in its order."""
    method: str
    settings: Mapping[str, Any]
    """All settings that made it, as plain words and numbers."""
    teachers: Teachers | None = None
    """What was learnt of the annotators; None by methods that believe all alike."""
    validation: Validation | None = None
    convergence: Convergence = OUTRIGHT
    notes: tuple[str, ...] = ()
    """What in the data weakens the answer, and what was chosen by it."""

    def __repr__(self) -> str:
        ranker = self.settings.get("ranker", "")
        return f"<RankingFunction of {len(self.names):,} features by {self.method} ({ranker})>"

    @property
    def annotators(self) -> Teachers:
        if self.teachers is None:
            raise DataError(f"{self.method} learnt nothing of the annotators.")
        return self.teachers

    def scores(self, features: Features | Any) -> Vector:
        """A score for every row, larger is better; only rows of one query can be compared."""
        return self.scorer.scores(_as_features(features).columns(self.names))

    def rank(self, features: Features | Any) -> Any:
        """Best first, query by query: query, item, rank and score, as the kind of data frame that came in."""
        given = _as_features(features)
        return _as_native(self.frame(given), given.native)

    def frame(self, features: Features) -> pl.DataFrame:
        """The same as a polars frame."""
        scores, items = self.scores(features), features.items
        order = np.lexsort((items.labels.astype(str), -scores, items.query))
        query = items.query[order]
        fresh = np.append(True, (scores[order][1:] != scores[order][:-1]) | (query[1:] != query[:-1]))[: len(order)]
        place = np.arange(len(order)) - items.starts[query] + 1
        first = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
        columns: dict[str, Any] = {"query": items.queries[query].tolist()} if items.has_queries else {}
        columns |= {"item": items.labels[order].tolist(), "rank": place[first], "score": scores[order]}
        return pl.DataFrame(columns)

    def save(self, path: str | Path) -> None:
        """Write it as one file, to be read again anywhere; nothing in it is code."""
        from crowdrank.learning.saving import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> RankingFunction:
        """Read what `save` wrote; a file that is no such thing, or was tampered with, is refused."""
        from crowdrank.learning.saving import load

        return load(path)


def _as_features(given: Features | Any) -> Features:
    return given if isinstance(given, Features) else Features.of(given)
