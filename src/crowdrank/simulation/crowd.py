"""Simulated crowds: judgments with their truth, and annotators who answer single questions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.data import LEFT, RIGHT, Items, Judgments
from crowdrank.errors import SettingError, UnknownNameError

# Functions that all generators share: parsing distributions, checking settings, drawing random pairs and answers.

Distribution = Callable[[np.random.Generator, int], FloatArray]

_FAMILIES: dict[str, Callable[[np.random.Generator, float, float, int], FloatArray]] = {
    "beta": lambda rng, a, b, count: rng.beta(a, b, count),
    "uniform": lambda rng, low, high, count: low + (high - low) * rng.random(count),
    "normal": lambda rng, mean, spread, count: rng.normal(mean, spread, count),
}
_FORM = re.compile(r"\s*([a-z_]+)\s*\(([^()]*)\)\s*", re.IGNORECASE)


def parse_distribution(text: str | float, setting: str = "distribution") -> Distribution:
    """Parse a distribution such as "beta(2,1)", "uniform(0.5,1)", "normal(0,1)" or "0.8" (a constant).

    Examples
    --------
    >>> parse_distribution("0.8")(np.random.default_rng(0), 3)
    array([0.8, 0.8, 0.8])
    """
    written = str(text)
    if found := _FORM.fullmatch(written):
        family, inside = found[1].lower(), found[2].split(",")
        if family not in _FAMILIES:
            raise UnknownNameError("distribution", family, _FAMILIES)
        if len(inside) != 2:
            raise SettingError(f"{setting}: {family} takes two numbers, got {written!r}.")
        first, second = (_number(part, written, setting) for part in inside)
        _check(family, first, second, written, setting)
        return lambda rng, count: _FAMILIES[family](rng, first, second, count)
    value = _number(written, written, setting)
    return lambda rng, count: np.full(count, value)


def draw(
    text: str | float, setting: str, rng: np.random.Generator, count: int, low: float = -np.inf, high: float = np.inf
) -> FloatArray:
    """Draw `count` numbers from a distribution; raises SettingError if one is outside of `low` … `high`."""
    drawn = parse_distribution(text, setting)(rng, count)
    outside = (drawn < low) | (drawn > high)
    if outside.any():
        raise SettingError(f"{setting} must lie between {low:g} and {high:g}, but {text} gave {drawn[outside][0]:.4g}.")
    return drawn


def _number(part: str, written: str, setting: str) -> float:
    try:
        value = float(part)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise SettingError(
            f'{setting} must be a number, or a distribution like "beta(2,1)", "uniform(0.5,1)" or "normal(0,1)", '
            f"got {written!r}."
        )
    return value


def _check(family: str, first: float, second: float, written: str, setting: str) -> None:
    if family == "beta" and min(first, second) <= 0:
        raise SettingError(f"{setting}: both numbers of a beta must be positive, got {written!r}.")
    if family == "uniform" and first > second:
        raise SettingError(f"{setting}: a uniform goes from the smaller to the larger number, got {written!r}.")
    if family == "normal" and second < 0:
        raise SettingError(f"{setting}: the spread of a normal cannot be negative, got {written!r}.")


def spawn_generators(seed: int, count: int) -> list[np.random.Generator]:
    """Return independent generators, one per quantity: a change in how one is drawn does not affect the others."""
    if seed < 0:
        raise SettingError(f"seed must be zero or more, got {seed}.")
    return [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(count)]


def check_at_least(low: int, **settings: int) -> None:
    for name, value in settings.items():
        if value < low:
            raise SettingError(f"{name} must be at least {low}, got {value}.")


def check_positive(**settings: float) -> None:
    for name, value in settings.items():
        if not 0 < value < np.inf:
            raise SettingError(f"{name} must be a number above zero, got {value}.")


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SettingError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}.")


def numbered_labels(word: str, count: int) -> ObjectArray:
    """Return labels that sort in their numeric order: item001, item002, …"""
    width = len(str(count))
    return np.array([f"{word}{n:0{width}d}" for n in range(1, count + 1)], dtype=object)


def items_in_queries(queries: int, items: int) -> Items:
    """Return the same labels in each query; item k of query q has the code q × items + k."""
    labels = np.tile(numbered_labels("item", items), queries)
    return Items(labels, np.repeat(np.arange(queries, dtype=np.int32), items), numbered_labels("query", queries))


def true_scores(rng: np.random.Generator, items: int) -> FloatArray:
    """Return 1 … `items`, shuffled."""
    return rng.permutation(items).astype(np.float64) + 1


def count_pairs(items: int) -> int:
    """Return the number of unordered pairs."""
    return items * (items - 1) // 2


def pair_at_index(number: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs at these positions of the sequence (0,1), (0,2), (1,2), (0,3), …"""
    larger = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    # From about 10⁸ items on, the square root may round up to an integer.
    larger -= larger * (larger - 1) // 2 > number
    return number - larger * (larger - 1) // 2, larger


def sample_pairs(rng: np.random.Generator, items: int, pairs: int) -> tuple[IntArray, IntArray]:
    """Draw different unordered pairs, the smaller item first."""
    if pairs > count_pairs(items):
        raise SettingError(
            f"pairs must be at most {count_pairs(items)}, the number of pairs of {items} items, got {pairs}."
        )
    return pair_at_index(rng.choice(count_pairs(items), pairs, replace=False))


def sample_rows(rng: np.random.Generator, rows: int, size: int, count: int) -> IntArray:
    """Draw `count` different numbers below `size` per row, by Floyd's algorithm on all rows at once."""
    chosen = np.empty((rows, count), np.int64)
    for step, top in enumerate(range(size - count, size)):
        pick = rng.integers(0, top + 1, rows)
        taken = (chosen[:, :step] == pick[:, None]).any(axis=1)
        chosen[:, step] = np.where(taken, top, pick)
    return chosen


def sample_annotators(rng: np.random.Generator, pairs: int, annotators: int, votes: int) -> IntArray:
    """Draw `votes` different annotators per pair."""
    if votes > annotators:
        raise SettingError(f"votes must be at most the number of annotators, {annotators}, got {votes}.")
    return sample_rows(rng, pairs, annotators, votes)


def random_sides(rng: np.random.Generator, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Return each pair as (left, right), on random sides."""
    swap = rng.random(len(first)) < 0.5
    return np.where(swap, second, first), np.where(swap, first, second)


def standardised(values: FloatArray) -> FloatArray:
    """Scale to mean zero and variance one; zero if all values are equal."""
    spread = float(values.std())
    return (values - float(values.mean())) / (spread if spread > 0 else 1.0)


def logistic(margin: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * margin))


def bernoulli(rng: np.random.Generator, chance: FloatArray) -> BoolArray:
    """Draw True with the given probabilities."""
    return rng.random(chance.shape) < chance


def outcomes(left_won: BoolArray) -> npt.NDArray[np.int8]:
    return np.where(left_won, LEFT, RIGHT)


def codes(values: AnyArray) -> Int32Array:
    return values.astype(np.int32)


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
