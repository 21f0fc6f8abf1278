"""Distributions as one writes them: "beta(2,1)", "uniform(0.5,1)", "normal(0,1)", "0.8".

What all generators draw: who is asked about which pairs, and how an answer falls out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.data import LEFT, RIGHT, Items
from crowdrank.errors import SettingError, UnknownNameError

Sampler = Callable[[np.random.Generator, int], FloatArray]

_FAMILIES: dict[str, Callable[[np.random.Generator, float, float, int], FloatArray]] = {
    "beta": lambda rng, a, b, count: rng.beta(a, b, count),
    "uniform": lambda rng, low, high, count: low + (high - low) * rng.random(count),
    "normal": lambda rng, mean, spread, count: rng.normal(mean, spread, count),
}
_FORM = re.compile(r"\s*([a-z_]+)\s*\(([^()]*)\)\s*", re.IGNORECASE)


def sampler(text: str | float, setting: str = "distribution") -> Sampler:
    """What `text` describes, to be drawn from; a lone number is always itself.

    >>> sampler("0.8")(np.random.default_rng(0), 3)
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
    """`count` numbers from what `text` describes, refused if any lies outside `low` … `high`."""
    drawn = sampler(text, setting)(rng, count)
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


def streams(seed: int, count: int) -> list[np.random.Generator]:
    """Independent generators, one for each thing drawn: changing how one is drawn leaves the others as they were."""
    if seed < 0:
        raise SettingError(f"seed must be zero or more, got {seed}.")
    return [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(count)]


def at_least(low: int, **settings: int) -> None:
    for name, value in settings.items():
        if value < low:
            raise SettingError(f"{name} must be at least {low}, got {value}.")


def above_zero(**settings: float) -> None:
    for name, value in settings.items():
        if not 0 < value < np.inf:
            raise SettingError(f"{name} must be a number above zero, got {value}.")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SettingError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}.")


def numbered(word: str, count: int) -> ObjectArray:
    """Labels whose sorted order is their natural one: item001, item002, …"""
    width = len(str(count))
    return np.array([f"{word}{n:0{width}d}" for n in range(1, count + 1)], dtype=object)


def items_in_queries(queries: int, items: int) -> Items:
    """The same labels in each of several queries; item k of query q has code q × items + k."""
    labels = np.tile(numbered("item", items), queries)
    return Items(labels, np.repeat(np.arange(queries, dtype=np.int32), items), numbered("query", queries))


def true_scores(rng: np.random.Generator, items: int) -> FloatArray:
    """1 … `items`, shuffled: no two are equal, and labels tell nothing."""
    return rng.permutation(items).astype(np.float64) + 1


def pairs_of(items: int) -> int:
    """How many unordered pairs there are."""
    return items * (items - 1) // 2


def pair_of_number(number: IntArray) -> tuple[IntArray, IntArray]:
    """The pair that stands at each place of the row (0,1), (0,2), (1,2), (0,3), …"""
    larger = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    # From some 10⁸ items on, the square root may round up to a whole number.
    larger -= larger * (larger - 1) // 2 > number
    return number - larger * (larger - 1) // 2, larger


def distinct_pairs(rng: np.random.Generator, items: int, pairs: int) -> tuple[IntArray, IntArray]:
    """`pairs` different unordered pairs, smaller item first."""
    if pairs > pairs_of(items):
        raise SettingError(f"pairs must be at most {pairs_of(items)}, all there are of {items} items, got {pairs}.")
    return pair_of_number(rng.choice(pairs_of(items), pairs, replace=False))


def distinct_in_rows(rng: np.random.Generator, rows: int, size: int, count: int) -> IntArray:
    """In each row `count` different numbers below `size`, every set as likely (Floyd's algorithm, all rows at once)."""
    chosen = np.empty((rows, count), np.int64)
    for step, top in enumerate(range(size - count, size)):
        pick = rng.integers(0, top + 1, rows)
        taken = (chosen[:, :step] == pick[:, None]).any(axis=1)
        chosen[:, step] = np.where(taken, top, pick)
    return chosen


def annotators_of_pairs(rng: np.random.Generator, pairs: int, annotators: int, votes: int) -> IntArray:
    """For each pair, `votes` different annotators."""
    if votes > annotators:
        raise SettingError(f"votes must be at most the number of annotators, {annotators}, got {votes}.")
    return distinct_in_rows(rng, pairs, annotators, votes)


def on_screen(rng: np.random.Generator, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Each pair as (left, right), the side tossed."""
    swap = rng.random(len(first)) < 0.5
    return np.where(swap, second, first), np.where(swap, first, second)


def standardised(values: FloatArray) -> FloatArray:
    """Mean zero, variance one; all zero where all are equal."""
    spread = float(values.std())
    return (values - float(values.mean())) / (spread if spread > 0 else 1.0)


def logistic(margin: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * margin))


def happens(rng: np.random.Generator, chance: FloatArray) -> BoolArray:
    """True with the given chances."""
    return rng.random(chance.shape) < chance


def outcome_of(left_won: BoolArray) -> npt.NDArray[np.int8]:
    return np.where(left_won, LEFT, RIGHT)


def codes(values: AnyArray) -> Int32Array:
    return values.astype(np.int32)
