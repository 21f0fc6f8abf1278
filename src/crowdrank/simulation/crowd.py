"""Simulated crowds: judgments with their truth, and annotators who answer single questions."""

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
    check_at_least,
    check_choice,
    check_positive,
    draw,
    logistic,
    numbered_labels,
    spawn_generators,
    standardised,
    true_scores,
)


def _empty() -> Mapping[str, AnyArray]:
    return MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Crowd:
    """Simulated judgments with their truth.

    Items without judgments and annotators without questions keep their codes and their truth. They are only missing
    from votes.csv.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments.
    truth : array of float
        True score of each of `judgments.items`; larger is better.
    annotators : mapping of str to array, optional
        True properties of each of `judgments.annotators`, by name; a matrix has one column per domain or factor.
    queries : mapping of str to array, optional
        True properties of each of `judgments.items.queries`, by name.
    features : mapping of str to array, optional
        Features of each of `judgments.items` that a ranking function may use, by name.
    settings : mapping of str to object
        The name of the generator and its settings.

    Examples
    --------
    >>> from crowdrank.simulation import crowd_bt
    >>> crowd = crowd_bt(items=4, annotators=3, pairs=5, votes=2)
    >>> crowd.gold().columns, crowd.annotator_table().columns
    (['item', 'label'], ['annotator', 'quality'])
    """

    judgments: Judgments
    truth: FloatArray
    annotators: Mapping[str, AnyArray] = field(default_factory=_empty)
    queries: Mapping[str, AnyArray] = field(default_factory=_empty)
    features: Mapping[str, AnyArray] = field(default_factory=_empty)
    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        for column in (self.truth, *(c for group in self._groups for c in group.values())):
            column.flags.writeable = False

    @property
    def _groups(self) -> tuple[Mapping[str, AnyArray], ...]:
        return self.annotators, self.queries, self.features

    def __repr__(self) -> str:
        return f"Crowd({self.judgments!r} by {self.settings['generator']})"

    def gold(self) -> pl.DataFrame:
        """Return every item with its true score in the column `label`."""
        return self._item_names().with_columns(_series("label", self.truth))

    def annotator_table(self) -> pl.DataFrame:
        """Return every annotator with their true properties."""
        return _table("annotator", self.judgments.annotators, self.annotators)

    def write(self, folder: str | Path) -> list[Path]:
        """Write votes.csv, gold.csv, annotators.csv and settings.json to a folder.

        Also queries.csv and items.csv if queries have properties or items have features. Returns the paths.
        """
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
    """Store a column of whole numbers as integers, so that they are written without a decimal point."""
    if column.dtype == np.float64 and np.all(column == np.rint(column)):
        return pl.Series(name, column.astype(np.int64))
    return pl.Series(name, column.tolist() if column.dtype == object else np.ascontiguousarray(column))


@dataclass(frozen=True, eq=False)
class Respondents:
    """Simulated annotators who answer single questions. Use `respondents` to create them.

    Parameters
    ----------
    items, annotators : tuple of str
        Labels of the items and of the annotators.
    truth : array of float
        True score of each item, on the scale of the answers.
    quality : array of float
        Probability with which each annotator tells the truth.
    labels : {"order", "logistic"}
        Whether the truth is the true order, or a logistic draw on the difference of the scores.
    """

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    truth: FloatArray
    quality: FloatArray
    labels: Literal["order", "logistic"]

    def winner(self, left: str, right: str, annotator: str, rng: np.random.Generator) -> str:
        """Return the item that an annotator prefers; each call draws a new answer."""
        item_code, annotator_code = self._codes
        lead = self.truth[item_code[left]] - self.truth[item_code[right]]
        chance = float(lead > 0) + 0.5 * float(lead == 0) if self.labels == "order" else float(logistic(lead))
        quality = self.quality[annotator_code[annotator]]
        return left if rng.random() < quality * chance + (1 - quality) * (1 - chance) else right

    @cached_property
    def _codes(self) -> tuple[dict[str, int], dict[str, int]]:
        items, annotators = ({name: n for n, name in enumerate(names)} for names in (self.items, self.annotators))
        return items, annotators


def respondents(
    items: int = 100,
    annotators: int = 100,
    quality: str | float = "beta(2,1)",
    labels: Literal["order", "logistic"] = "order",
    scale: float = 2.0,
    scores: Literal["even", "normal"] = "even",
    seed: int = 0,
) -> Respondents:
    """Simulate annotators who answer single questions, with the model of `crowd_bt`.

    Parameters
    ----------
    items, annotators : int, default 100
        Number of items, and of annotators.
    quality : str or float, default "beta(2,1)"
        Probability with which an annotator tells the truth: a number, or a distribution that it is drawn from.
    labels : {"order", "logistic"}, default "order"
        The true answer: the better item, or a Bradley–Terry draw, so that close items are hard to tell apart.
    scale : float, default 2.0
        Standard deviation of the true scores. Zero makes all items equal.
    scores : {"even", "normal"}, default "even"
        Whether true scores are evenly spaced or drawn from a normal distribution.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    Respondents

    Examples
    --------
    >>> crowd = respondents(items=3, annotators=2, quality=1.0)
    >>> crowd.winner("item1", "item2", "annotator1", np.random.default_rng(0)) in ("item1", "item2")
    True
    """
    check_at_least(2, items=items)
    check_at_least(1, annotators=annotators)
    check_choice("labels", labels, ("order", "logistic"))
    check_choice("scores", scores, ("even", "normal"))
    if scale:
        check_positive(scale=scale)
    truth_rng, quality_rng = spawn_generators(seed, 2)
    drawn = true_scores(truth_rng, items) if scores == "even" else truth_rng.standard_normal(items)
    qualities = draw(quality, "quality", quality_rng, annotators, 0, 1)
    truth = scale * (standardised(drawn) if scores == "even" else drawn)
    names = tuple(numbered_labels("item", items).tolist()), tuple(numbered_labels("annotator", annotators).tolist())
    return Respondents(*names, truth, qualities, labels)
