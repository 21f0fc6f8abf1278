"""What all generators draw: who is asked about which pairs, and how an answer falls out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.errors import SettingError
from crowdrank.judgments import LEFT, RIGHT, Items
from crowdrank.judgments.labels import Labels

Numbers = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


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


def numbered(word: str, count: int) -> Labels:
    """Labels whose sorted order is their natural one: item001, item002, …"""
    width = len(str(count))
    return np.array([f"{word}{n:0{width}d}" for n in range(1, count + 1)], dtype=object)


def items_in_queries(queries: int, items: int) -> Items:
    """The same labels in each of several queries; item k of query q has code q × items + k."""
    labels = np.tile(numbered("item", items), queries)
    return Items(labels, np.repeat(np.arange(queries, dtype=np.int32), items), numbered("query", queries))


def true_scores(rng: np.random.Generator, items: int) -> Numbers:
    """1 … `items`, shuffled: no two are equal, and labels tell nothing."""
    return rng.permutation(items).astype(np.float64) + 1


def pairs_of(items: int) -> int:
    """How many unordered pairs there are."""
    return items * (items - 1) // 2


def pair_of_number(number: Integers) -> tuple[Integers, Integers]:
    """The pair that stands at each place of the row (0,1), (0,2), (1,2), (0,3), …"""
    larger = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    # From some 10⁸ items on, the square root may round up to a whole number.
    larger -= larger * (larger - 1) // 2 > number
    return number - larger * (larger - 1) // 2, larger


def distinct_pairs(rng: np.random.Generator, items: int, pairs: int) -> tuple[Integers, Integers]:
    """`pairs` different unordered pairs, smaller item first."""
    if pairs > pairs_of(items):
        raise SettingError(f"pairs must be at most {pairs_of(items)}, all there are of {items} items, got {pairs}.")
    return pair_of_number(rng.choice(pairs_of(items), pairs, replace=False))


def distinct_in_rows(rng: np.random.Generator, rows: int, size: int, count: int) -> Integers:
    """In each row `count` different numbers below `size`, every set as likely (Floyd's algorithm, all rows at once)."""
    chosen = np.empty((rows, count), np.int64)
    for step, top in enumerate(range(size - count, size)):
        pick = rng.integers(0, top + 1, rows)
        taken = (chosen[:, :step] == pick[:, None]).any(axis=1)
        chosen[:, step] = np.where(taken, top, pick)
    return chosen


def annotators_of_pairs(rng: np.random.Generator, pairs: int, annotators: int, votes: int) -> Integers:
    """For each pair, `votes` different annotators."""
    if votes > annotators:
        raise SettingError(f"votes must be at most the number of annotators, {annotators}, got {votes}.")
    return distinct_in_rows(rng, pairs, annotators, votes)


def on_screen(rng: np.random.Generator, first: Integers, second: Integers) -> tuple[Integers, Integers]:
    """Each pair as (left, right), the side tossed."""
    swap = rng.random(len(first)) < 0.5
    return np.where(swap, second, first), np.where(swap, first, second)


def standardised(values: Numbers) -> Numbers:
    """Mean zero, variance one; all zero where all are equal."""
    spread = float(values.std())
    return (values - float(values.mean())) / (spread if spread > 0 else 1.0)


def logistic(margin: Numbers) -> Numbers:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * margin))


def happens(rng: np.random.Generator, chance: Numbers) -> Flags:
    """True with the given chances."""
    return rng.random(chance.shape) < chance


def outcome_of(left_won: Flags) -> npt.NDArray[np.int8]:
    return np.where(left_won, LEFT, RIGHT)


def codes(values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    return values.astype(np.int32)
