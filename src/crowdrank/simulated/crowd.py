"""A simulated crowd: what was said, and the truth it was said about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.judgments import Judgments

Column = npt.NDArray[Any]


def _nothing() -> Mapping[str, Column]:
    return MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Crowd:
    """Judgments with their known truth.

    Items nobody was asked about, and annotators nobody asked, keep their codes and their truth: they are missing
    from votes.csv only.
    """

    judgments: Judgments
    truth: npt.NDArray[np.float64]
    """The true score of each of `judgments.items`; larger is better."""
    annotators: Mapping[str, Column] = field(default_factory=_nothing)
    """What is true of each of `judgments.annotators`; a matrix has one column for each domain."""
    queries: Mapping[str, Column] = field(default_factory=_nothing)
    """What is true of each of `judgments.items.queries`."""
    features: Mapping[str, Column] = field(default_factory=_nothing)
    """What a ranking function may see of each of `judgments.items`."""
    settings: Mapping[str, Any]
    """The generator, and what it was told."""

    def __post_init__(self) -> None:
        for column in (self.truth, *(c for group in self._groups for c in group.values())):
            column.flags.writeable = False

    @property
    def _groups(self) -> tuple[Mapping[str, Column], ...]:
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
        tables = {"votes": self.judgments.to_frame(), "gold": self.gold(), "annotators": self.annotator_table()}
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


def _table(key: str, labels: Column, columns: Mapping[str, Column]) -> pl.DataFrame:
    series = [pl.Series(key, labels.tolist(), dtype=pl.String)]
    for name, column in columns.items():
        if column.ndim == 1:
            series.append(_series(name, column))
        else:
            width = len(str(column.shape[1]))
            series += [_series(f"{name}_{n + 1:0{width}d}", part) for n, part in enumerate(column.T)]
    return pl.DataFrame(series)


def _series(name: str, column: Column) -> pl.Series:
    """Whole numbers are written without a decimal point."""
    if column.dtype == np.float64 and np.all(column == np.rint(column)):
        return pl.Series(name, column.astype(np.int64))
    return pl.Series(name, column.tolist() if column.dtype == object else np.ascontiguousarray(column))
