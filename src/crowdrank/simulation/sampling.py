"""Functions that all generators share: parsing distributions, checking settings, drawing random pairs and answers."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.data import LEFT, RIGHT, Items
from crowdrank.errors import SettingError, UnknownNameError

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
