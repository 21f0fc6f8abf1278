"""A simulated crowd: what was said, and the truth it was said about.

Annotators who answer when they are asked: a crowd with a known truth, question by question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray
from crowdrank.data import Judgments
from crowdrank.simulation.sampling import (
    above_zero,
    at_least,
    draw,
    logistic,
    numbered,
    one_of,
    standardised,
    streams,
    true_scores,
)


def _nothing() -> Mapping[str, AnyArray]:
    return MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Crowd:
    """Judgments with their known truth.

    Items nobody was asked about, and annotators nobody asked, keep their codes and their truth: they are missing
    from votes.csv only.
    """

    judgments: Judgments
    truth: FloatArray
    """The true score of each of `judgments.items`; larger is better."""
    annotators: Mapping[str, AnyArray] = field(default_factory=_nothing)
    """What is true of each of `judgments.annotators`; a matrix has one column for each domain."""
    queries: Mapping[str, AnyArray] = field(default_factory=_nothing)
    """What is true of each of `judgments.items.queries`."""
    features: Mapping[str, AnyArray] = field(default_factory=_nothing)
    """What a ranking function may see of each of `judgments.items`."""
    settings: Mapping[str, Any]
    """The generator, and what it was told."""

    def __post_init__(self) -> None:
        for column in (self.truth, *(c for group in self._groups for c in group.values())):
            column.flags.writeable = False

    @property
    def _groups(self) -> tuple[Mapping[str, AnyArray], ...]:
        return self.annotators, self.queries, self.features

    def __repr__(self) -> str:
        return f"Crowd({self.judgments!r} by {self.settings['generator']})"

    def gold(self) -> pl.DataFrame:
        """Every item with its true score, as `label`."""
        return self._item_names().with_columns(_series("label", self.truth))

    def annotator_table(self) -> pl.DataFrame:
        """Every annotator with what is true of them."""
        return _table("annotator", self.judgments.annotators, self.annotators)

    def write(self, folder: str | Path) -> list[Path]:
        """Writes votes.csv, gold.csv, annotators.csv and settings.json; queries.csv and items.csv where there is more
        to tell of them. Returns what was written."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        tables = {"votes": self.judgments.to_polars(), "gold": self.gold(), "annotators": self.annotator_table()}
        if self.queries:
            tables["queries"] = _table("query", self.judgments.items.queries, self.queries)
        if self.features:
            tables["items"] = self._item_names().with_columns(_series(k, v) for k, v in self.features.items())
        written = []
        for name, table in tables.items():
            written.append(place / f"{name}.csv")
            table.write_csv(written[-1])
        written.append(place / "settings.json")
        written[-1].write_text(
            json.dumps(dict(self.settings), indent=2, default=float) + "\n", encoding="utf-8", newline="\n"
        )
        return written

    def _item_names(self) -> pl.DataFrame:
        items = self.judgments.items
        columns = {"query": items.queries[items.query]} if items.has_queries else {}
        columns["item"] = items.labels
        return pl.DataFrame({k: pl.Series(v.tolist(), dtype=pl.String) for k, v in columns.items()})


def _table(key: str, labels: AnyArray, columns: Mapping[str, AnyArray]) -> pl.DataFrame:
    series = [pl.Series(key, labels.tolist(), dtype=pl.String)]
    for name, column in columns.items():
        if column.ndim == 1:
            series.append(_series(name, column))
        else:
            width = len(str(column.shape[1]))
            series += [_series(f"{name}_{n + 1:0{width}d}", part) for n, part in enumerate(column.T)]
    return pl.DataFrame(series)


def _series(name: str, column: AnyArray) -> pl.Series:
    """Whole numbers are written without a decimal point."""
    if column.dtype == np.float64 and np.all(column == np.rint(column)):
        return pl.Series(name, column.astype(np.int64))
    return pl.Series(name, column.tolist() if column.dtype == object else np.ascontiguousarray(column))


@dataclass(frozen=True, eq=False)
class Respondents:
    """Who can be asked, about what, and how they answer."""

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    truth: FloatArray
    """The true score of each item, on the scale on which answers are given."""
    quality: FloatArray
    labels: Literal["order", "logistic"]

    def winner(self, left: str, right: str, annotator: str, rng: np.random.Generator) -> str:
        """What this annotator says now; asked again, they may say the opposite."""
        place, who = self._places
        lead = self.truth[place[left]] - self.truth[place[right]]
        chance = float(lead > 0) + 0.5 * float(lead == 0) if self.labels == "order" else float(logistic(lead))
        honest = self.quality[who[annotator]]
        return left if rng.random() < honest * chance + (1 - honest) * (1 - chance) else right

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        item, person = ({name: n for n, name in enumerate(names)} for names in (self.items, self.annotators))
        return item, person


def respondents(
    items: int = 100,
    annotators: int = 100,
    quality: str | float = "beta(2,1)",
    labels: Literal["order", "logistic"] = "order",
    scale: float = 2.0,
    scores: Literal["even", "normal"] = "even",
    seed: int = 0,
) -> Respondents:
    """A crowd as `crowd_bt` draws it, to be asked: with labels "order" an annotator names the truly better item with
    probability `quality`; with "logistic" what is better is itself a draw, on scores of standard deviation `scale`.
    Scores are evenly spaced, or normal. A `scale` of zero makes all items equal, and every answer a coin toss.

    >>> crowd = respondents(items=3, annotators=2, quality=1.0)
    >>> crowd.winner("item1", "item2", "annotator1", np.random.default_rng(0)) in ("item1", "item2")
    True
    """
    at_least(2, items=items)
    at_least(1, annotators=annotators)
    one_of("labels", labels, ("order", "logistic"))
    one_of("scores", scores, ("even", "normal"))
    if scale:
        above_zero(scale=scale)
    for_truth, for_quality = streams(seed, 2)
    drawn = true_scores(for_truth, items) if scores == "even" else for_truth.standard_normal(items)
    honesty = draw(quality, "quality", for_quality, annotators, 0, 1)
    truth = scale * (standardised(drawn) if scores == "even" else drawn)
    names = tuple(numbered("item", items).tolist()), tuple(numbered("annotator", annotators).tolist())
    return Respondents(*names, truth, honesty, labels)
