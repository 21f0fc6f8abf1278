"""What is known beside the judgments: how good some annotators are, who is better than whom, and gold pairs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from crowdrank.arrays import Int32Array, ObjectArray
from crowdrank.data.labels import Items
from crowdrank.data.pair_counts import PairCounts, count_pairs, pair_cells
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError

if TYPE_CHECKING:
    from crowdrank.data.comparisons import Comparisons

GoldPairs: TypeAlias = "Comparisons | Iterable[tuple[Any, Any]] | Literal['agreed'] | None"
NO_PAIRS: Int32Array = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Knowledge:
    """Side information in codes of annotators and items. Give it with `Comparisons.knowing`."""

    quality: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    """Of annotators whose quality is known, in the measure of the model."""
    between: Mapping[int, tuple[float, float]] = field(default_factory=lambda: MappingProxyType({}))
    """Of annotators whose quality is known to lie within a range."""
    better: tuple[tuple[int, int], ...] = ()
    """Pairs of annotators, the better one first."""
    gold_better: Int32Array = field(default_factory=lambda: NO_PAIRS)
    """Items known to be better …"""
    gold_worse: Int32Array = field(default_factory=lambda: NO_PAIRS)
    """… than these."""
    gold_weight: float = 5.0
    """As how many answers of a perfect annotator each gold pair counts; 0 where it only says which way is up."""

    def __bool__(self) -> bool:
        return bool(self.quality or self.between or self.better or len(self.gold_better))

    @property
    def of_annotators(self) -> bool:
        """Whether anything is known of the annotators themselves."""
        return bool(self.quality or self.between or self.better)


NOTHING_KNOWN = Knowledge()


@dataclass(frozen=True)
class Known:
    """How good an annotator is, in the measure of the model."""

    who: Any
    value: float


@dataclass(frozen=True)
class Between:
    """That an annotator's quality lies in a range."""

    who: Any
    low: float
    high: float


@dataclass(frozen=True)
class Better:
    """That one annotator is better than another, or as good."""

    better: Any
    worse: Any


Fact: TypeAlias = Known | Between | Better


def knowledge_of(
    comparisons: Comparisons,
    facts: Iterable[Fact],
    quality: Mapping[Any, float],
    between: Mapping[Any, tuple[float, float]],
    better: Iterable[tuple[Any, Any]],
    gold: GoldPairs,
    gold_weight: float,
) -> Knowledge:
    """Labels into codes; names nobody goes by are refused."""
    if not 0 <= gold_weight < np.inf:
        raise SettingError(f"gold_weight must be zero or more, got {gold_weight}.")
    told: list[Fact] = [Known(who, value) for who, value in quality.items()]
    told += [Between(who, low, high) for who, (low, high) in between.items()]
    told += [Better(first, second) for first, second in better]
    known = known_of_annotators(comparisons.annotators, [*facts, *told])
    gold_better, gold_worse = _gold_of(comparisons, gold)
    return replace(known, gold_better=gold_better, gold_worse=gold_worse, gold_weight=float(gold_weight))


def known_of_annotators(annotators: ObjectArray, facts: Iterable[Fact], larger_is_better: bool = True) -> Knowledge:
    """What is known of annotators, in their codes; names nobody goes by, and what cannot all be true, are refused."""
    code = _Coder(annotators)
    quality: dict[int, float] = {}
    between: dict[int, tuple[float, float]] = {}
    better: list[tuple[int, int]] = []
    for fact in facts:
        match fact:
            case Known(who, value):
                if np.isnan(value):
                    raise SettingError(f"The quality of {who} must be a number, got nan.")
                _say_once(quality, code(who), float(value), who)
            case Between(who, low, high):
                if not low < high:
                    raise SettingError(
                        f"The quality of {who} must lie between a lower and a higher value, got {low} to {high}."
                    )
                _say_once(between, code(who), (float(low), float(high)), who)
            case Better(first, second):
                better.append((code(first), code(second)))
            case _:
                raise SettingError(f"Side information is Known(…), Between(…) or Better(…), got {fact!r}.")
    known = Knowledge(quality=quality, between=between, better=tuple(better))
    _refuse_contradictions(known, annotators, larger_is_better)
    return known


def _say_once(told: dict[int, Any], code: int, value: Any, who: Any) -> None:
    if told.setdefault(code, value) != value:
        raise SettingError(f"The quality of {who} is told twice: as {told[code]}, and as {value}.")


def _refuse_contradictions(known: Knowledge, names: ObjectArray, larger_is_better: bool) -> None:
    for code, value in known.quality.items():
        low, high = known.between.get(code, (-np.inf, np.inf))
        if not low <= value <= high:
            raise SettingError(f"{names[code]} is known to be {value:g}, and to lie between {low:g} and {high:g}.")
    if circle := _circle(known.better):
        who = [str(names[code]) for code in circle]
        way = f": {' > '.join(who)} goes in a circle" if len(who) > 2 else ""
        raise SettingError(f"{who[0]} cannot be better than {who[0]}{way}.")
    sign = 1.0 if larger_is_better else -1.0
    ends = {**known.between, **{code: (value, value) for code, value in known.quality.items()}}
    most = {code: max(sign * low, sign * high) for code, (low, high) in ends.items()}
    for first, second in _above(known.better) if len(ends) > 1 else ():
        if first in ends and second in ends and most[first] < min(sign * end for end in ends[second]):
            raise SettingError(
                f"{names[first]} is told to be better than {names[second]}, but is {_told(ends[first])}, "
                f"and {names[second]} is {_told(ends[second])}."
            )


def _told(ends: tuple[float, float]) -> str:
    low, high = ends
    return f"known to be {low:g}" if low == high else f"known to lie between {low:g} and {high:g}"


def _above(better: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """All pairs of whom the first is better than the second, also through others."""
    pairs = set(better)
    while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
        pairs |= more
    return pairs


def _circle(order: tuple[tuple[int, int], ...]) -> list[int]:
    """Annotators each better than the next, the last of them the first again; empty where there is no such circle."""
    from graphlib import CycleError, TopologicalSorter

    sorter: TopologicalSorter[int] = TopologicalSorter()
    for better, worse in order:
        sorter.add(worse, better)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _gold_of(comparisons: Comparisons, gold: GoldPairs) -> tuple[Int32Array, Int32Array]:
    if gold is None:
        return NO_PAIRS, NO_PAIRS
    if not isinstance(gold, str):
        return _gold_pairs(comparisons.items, gold)
    if gold != "agreed":
        raise SettingError(f'gold must be pairs, or "agreed" for those nearly all agree on, got {gold!r}.')
    better, worse = agreed_pairs(comparisons)
    if not len(better):
        raise DataError("No pair was answered by more than 10 annotators of whom 90 % agree: none can serve as gold.")
    return better, worse


class _Coder:
    def __init__(self, labels: ObjectArray):
        self.places = {str(label): place for place, label in enumerate(labels)}

    def __call__(self, name: Any) -> int:
        if str(name) not in self.places:
            raise UnknownNameError("annotator", name, self.places)
        return self.places[str(name)]


def _gold_pairs(items: Items, gold: Comparisons | Iterable[tuple[Any, Any]]) -> tuple[Int32Array, Int32Array]:
    """The pairs as codes; ties say nothing, and pairs with an item nobody judged cannot be used."""
    from crowdrank.data.comparisons import Comparisons

    if not isinstance(gold, Comparisons):
        pairs = [_pair(given) for given in gold]
        gold = Comparisons.of([a for a, _ in pairs], [b for _, b in pairs], [a for a, _ in pairs])
    if gold.items.has_queries != items.has_queries:
        which = "The gold pairs" if gold.items.has_queries else "The judgments"
        raise DataError(f"{which} name queries and the others do not: name the query column of both, or of neither.")
    place = {
        (str(items.queries[q]), str(label)): n
        for n, (q, label) in enumerate(zip(items.query, items.labels, strict=True))
    }
    theirs = gold.items
    names = [(str(theirs.queries[q]), str(label)) for q, label in zip(theirs.query, theirs.labels, strict=True)]
    ours = np.array([place.get(name, -1) for name in names])
    decided = np.flatnonzero(gold.outcome != 0)
    left, right = ours[gold.left[decided]], ours[gold.right[decided]]
    known = (left >= 0) & (right >= 0)
    if not known.any():
        raise DataError("No gold pair has both its items among those judged.")
    if not known.all():
        lost = int(np.count_nonzero(~known))
        pairs_name = "gold pair names" if lost == 1 else "gold pairs name"
        warnings.warn(f"{lost:,} {pairs_name} an item nobody judged: left out.", DataWarning, stacklevel=4)
    won = gold.outcome[decided] > 0
    better, worse = np.where(won, left, right), np.where(won, right, left)
    return better[known].astype(np.int32), worse[known].astype(np.int32)


def _pair(given: Any) -> tuple[Any, Any]:
    if isinstance(given, str) or len(given) != 2:
        raise SettingError(f"A gold pair is two items, the better one first, got {given!r}.")
    better, worse = given
    return better, worse


def agreed_pairs(comparisons: Comparisons, more_than: int = 10, share: float = 0.9) -> tuple[Int32Array, Int32Array]:
    """Gold from the data itself: pairs that more than so many annotators answered, a share of them alike.

    Chen et al. 2013, footnote 4. A tie agrees with nobody. Gives the better items and the worse ones.
    """
    counts = _heads_of_pairs(comparisons)
    most = np.maximum(counts.first_wins, counts.second_wins)
    sure = (counts.total > more_than) & (most >= share * counts.total)
    first_better = counts.first_wins >= counts.second_wins
    better = np.where(first_better, counts.first, counts.second)
    worse = np.where(first_better, counts.second, counts.first)
    return better[sure], worse[sure]


def _heads_of_pairs(comparisons: Comparisons) -> PairCounts:
    """How many annotators chose each item of a pair: one who answered it more than once has one voice."""
    left, right, said = comparisons.left, comparisons.right, comparisons.outcome.astype(np.int64)
    size = len(comparisons.items)
    if comparisons.annotator is None:
        return count_pairs(size, left, right, comparisons.outcome)
    voice = comparisons.annotator * np.int64(size * size) + pair_cells(size, left, right)
    _, first, place = np.unique(voice, return_index=True, return_inverse=True)
    along = np.where((left < right) == (left < right)[first][place], said, -said)
    outcome = np.sign(np.bincount(place, along)).astype(np.int8)
    return count_pairs(size, left[first], right[first], outcome)
