"""Fingerprints of models: their output on a few small data sets, which changes only if the model's results change.

Moving a module or renaming a setting does not change a fingerprint. Sampled numbers are means over a few seeds: a
difference counts only if it is larger than the variation between seeds.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from crowdrank import Comparisons, Rankings, Ratings
from crowdrank.data import Judgments
from crowdrank.errors import CrowdrankWarning, DataError
from crowdrank.models.selection import convert_for
from crowdrank.online import SequentialMCMC
from crowdrank.results import Ranking
from crowdrank.simulation import Crowd

Vector = np.ndarray[Any, np.dtype[np.float64]]

ITEMS = 8
RELATIVE_TOLERANCE = 1e-4
"""Tolerance relative to the spread of the numbers: far above rounding errors, far below the digits of a table."""
NOISE_FACTOR = 4.0
"""Standard errors by which a mean over seeds must change; about three of the difference between two such means."""
SEEDS = 4
QUESTIONS = 200
SHOWN = 20
"""How many true scores and answers of a simulated crowd are kept."""


@dataclass(frozen=True)
class Block:
    """Numbers of one kind, and their standard error (root mean square) if they are means over seeds."""

    numbers: Vector
    noise: float = 0.0

    def differs(self, now: Block) -> bool:
        """Whether the present block differs; it may be longer, if the model now reads more data sets."""
        again = now.numbers[: len(self.numbers)]
        known = np.isfinite(self.numbers)
        if len(again) < len(self.numbers) or not np.array_equal(known, np.isfinite(again)):
            return True
        change = _root_mean_square(again[known] - self.numbers[known])
        spread = float(np.std(self.numbers[known])) if known.any() else 0.0
        return change > max(RELATIVE_TOLERANCE * spread, NOISE_FACTOR * max(self.noise, now.noise), 1e-6)

    def to_json(self) -> dict[str, Any]:
        numbers = [float(f"{number:.6g}") if np.isfinite(number) else None for number in self.numbers]
        return {"numbers": numbers, **({"noise": float(f"{self.noise:.2g}")} if self.noise else {})}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Block:
        return cls(np.array(kept["numbers"], dtype=float), kept.get("noise", 0.0))


Fingerprint = dict[str, Block]
"""Blocks by kind of number: scores, quality …"""


def differ(before: Fingerprint, now: Fingerprint) -> bool:
    """Whether two fingerprints differ by more than rounding and sampling noise."""
    return before.keys() != now.keys() or any(block.differs(now[name]) for name, block in before.items())


class Sampled(ABC):
    """Numbers that depend on a seed. Subclasses should be frozen dataclasses: equal settings are drawn only once."""

    @abstractmethod
    def draw(self, seed: int) -> Any: ...


@dataclass(frozen=True)
class StandardErrors(Sampled):
    """Standard errors of a model's scores, for tables that show them."""

    model: Any

    def draw(self, seed: int) -> Vector:
        rankings = _rankings_by(replace(self.model, seed=seed))
        return np.concatenate([ranking.uncertainty.std_error for ranking in rankings])


def fingerprint(shown: Any) -> Fingerprint:
    """The fingerprint of a model, an online model, a policy, a `Sampled`, or a function without arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        draw = _drawing(shown)
        if draw is None:
            return {name: Block(_numbers(values)) for name, values in _blocks(_value(shown)).items()}
        drawn = [_blocks(draw(seed)) for seed in range(2)]
        if any(not np.array_equal(*(_numbers(one[name]) for one in drawn), equal_nan=True) for name in drawn[0]):
            drawn += [_blocks(draw(seed)) for seed in range(2, SEEDS)]
    return {name: _mean_of([_numbers(one[name]) for one in drawn]) for name in drawn[0]}


def _blocks(value: Any) -> Mapping[str, Any]:
    """Numbers by kind for models; a single kind for everything else."""
    return value if isinstance(value, Kinds) else {"numbers": value}


def _mean_of(drawn: Sequence[Vector]) -> Block:
    error = np.std(drawn, axis=0, ddof=1) / len(drawn) ** 0.5
    return Block(np.mean(drawn, axis=0), _root_mean_square(error[np.isfinite(error)]))


def _drawing(shown: Any) -> Callable[[int], Any] | None:
    if isinstance(shown, Sampled):
        return shown.draw
    if hasattr(shown, "next"):
        return lambda seed: _asked(shown, seed)
    if hasattr(shown, "seed"):
        return lambda seed: _value(replace(shown, seed=seed))
    return None


def _value(shown: Any) -> Any:
    if hasattr(shown, "fit"):
        return _fitted(shown)
    return _folded(shown) if hasattr(shown, "fold") else shown()


class Kinds(dict[str, Any]):
    """Numbers by kind."""


def _fitted(model: Any) -> Kinds:
    scores: list[Vector] = []
    quality: list[Vector] = []
    for ranking in _rankings_by(model):
        scores.append(ranking.scores)
        if ranking.has_annotators and "quality" in ranking.annotators.estimates:
            quality.append(ranking.annotators["quality"])
    found = Kinds(scores=np.concatenate(scores))
    return found if not quality else Kinds(found, quality=np.concatenate(quality))


def _rankings_by(model: Any) -> list[Ranking]:
    """Rankings of the small data sets that the model can read: some models need screen positions."""
    found = []
    for judgments in small_data():
        with suppress(DataError):
            found.append(model.fit(convert_for(model, judgments)[0]))
    assert found, f"{model} reads none of the small data sets"
    return found


def _folded(model: Any) -> Kinds:
    votes = _clear()
    believed = model.fold(model.start(votes.items, votes.annotators), votes)
    return Kinds({f"belief {n}": values for n, values in enumerate(believed.item_columns.values())})


def _asked(policy: Any, seed: int) -> Vector:
    """How often each item and each annotator is chosen, over many questions from the same beliefs."""
    beliefs, votes = _beliefs(), _clear()
    times = dict.fromkeys([*votes.items.labels, *votes.annotators], 0)
    for n in range(QUESTIONS):
        question = policy.next(beliefs, rng=np.random.default_rng([seed, n]))
        for name in (question.left, question.right, question.annotator):
            times[name] += 1
    return np.array(list(times.values())) / QUESTIONS


@cache
def _beliefs() -> Any:
    model, votes = SequentialMCMC(), _clear()
    return model.fold(model.start(votes.items, votes.annotators), votes)


def _numbers(value: Any) -> Vector:
    if isinstance(value, Crowd):
        said = value.judgments
        answers = next(getattr(said, name) for name in ("outcome", "grade", "item") if hasattr(said, name))
        return np.concatenate((np.ravel(value.truth)[:SHOWN], answers[:SHOWN].astype(float)))
    if isinstance(value, Mapping):
        value = list(value.values())
    return np.ravel(np.asarray(value, dtype=float))


def _root_mean_square(values: Vector) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


@cache
def small_data() -> tuple[Judgments, ...]:
    """Comparisons by a mixed crowd, comparisons by mediocre annotators of whom a third is reversed, grades, and lists.

    They are drawn here, so that they do not change when the simulated crowds of the package change.
    """
    return (
        _comparisons(np.random.default_rng(1), [0.95, 0.9, 0.85, 0.8, 0.7, 0.5, 0.1]),
        _comparisons(np.random.default_rng(2), [*_MIDDLING, *[0.0] * 5], each=25, scale=6.0),
        _ratings(np.random.default_rng(3)),
        _rankings(np.random.default_rng(4)),
    )


@cache
def _clear() -> Comparisons:
    """Comparisons by annotators good enough for short chains to agree on the sign of the scores."""
    return _comparisons(np.random.default_rng(5), [0.95, 0.95, 0.9, 0.9, 0.85, 0.8], each=60)


_MIDDLING = (0.95, 0.85, 0.75, 0.7, 0.65, 0.65, 0.6, 0.6, 0.55, 0.55)


def _comparisons(
    rng: np.random.Generator, qualities: Sequence[float], each: int = 40, scale: float = 1.5
) -> Comparisons:
    scores = np.linspace(-scale, scale, ITEMS)
    who = np.repeat(np.arange(len(qualities)), each)
    left = rng.integers(ITEMS, size=len(who))
    right = (left + rng.integers(1, ITEMS, size=len(who))) % ITEMS
    better = rng.random(len(who)) < 1 / (1 + np.exp(scores[right] - scores[left]))
    honest = rng.random(len(who)) < np.array(qualities)[who]
    winner = np.where(better == honest, left, right)
    return Comparisons.of(*(_named("item", codes) for codes in (left, right, winner)), annotator=_named("worker", who))


def _ratings(rng: np.random.Generator, queries: int = 2, annotators: int = 5) -> Ratings:
    query, item, who = (grid.ravel() for grid in np.indices((queries, ITEMS, annotators)))
    seen = item / ITEMS * 5 + rng.normal(scale=np.linspace(0.3, 2.0, annotators)[who])
    grade = np.clip(np.floor(seen), 0, 4)
    return Ratings.of(_named("item", item), grade, annotator=_named("worker", who), query=_named("query", query))


def _rankings(rng: np.random.Generator, queries: int = 3, annotators: int = 5) -> Rankings:
    query, who, item = (grid.ravel() for grid in np.indices((queries, annotators, ITEMS)))
    seen = (item + rng.normal(scale=np.linspace(0.5, 4.0, annotators)[who])).reshape(-1, ITEMS)
    rank = ITEMS - seen.argsort(axis=1).argsort(axis=1).ravel()
    kept = rank <= ITEMS - 2  # lists leave out the last two
    columns = (_named("item", item), rank, _named("worker", who), _named("query", query))
    items, ranks, workers, topics = (np.asarray(column)[kept] for column in columns)
    return Rankings.of(items.tolist(), ranks, annotator=workers.tolist(), query=topics.tolist())


def _named(kind: str, codes: np.ndarray) -> list[str]:
    return [f"{kind}{code}" for code in codes.tolist()]
