"""Why one item stands above another: what was said of the two, chains through others, and the rest without some."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from crowdrank.arrays import AnyArray, BoolArray
from crowdrank.data import LEFT, TIE, Comparisons, Judgments
from crowdrank.errors import SettingError
from crowdrank.evaluation.cross_validation import fit_quietly
from crowdrank.evaluation.influence import TRUST, Pushes, chains, pushes
from crowdrank.models import by_name
from crowdrank.models.conversion import convert_for
from crowdrank.results import Ranking

MOST_REFITTED = 50_000
"""Judgments up to which the model is fitted anew without some of them."""
_CHAINS, _REFITS = 30, 3


@dataclass(frozen=True)
class Voice:
    """What one annotator said, and how far that pushes the item above the other."""

    annotator: str
    """"" where nobody wrote down who judged."""
    trust: float | None
    """How far the model believes them: their quality or care; None where it believes all alike."""
    above: int
    """Direct answers for the item."""
    below: int
    """… for the other."""
    ties: int
    direct: float
    """How far the direct answers push."""
    push: float
    """… and all their answers, those on other items included."""


@dataclass(frozen=True)
class Chain:
    """Items from the one to the other, each compared with the next."""

    items: tuple[str, ...]
    judgments: int
    push: float


@dataclass(frozen=True)
class Without:
    """What the model makes of the rest, when some judgments are left out."""

    what: str
    judgments: int
    """How many were left out."""
    difference: float
    probability: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why `item` stands above `other`, or why not. Pushes are shares of the difference, and add up to it."""

    item: str
    other: str
    query: str | None
    model: str
    rule: str
    """How judgments of another kind were made into comparisons; "" where they were not."""
    difference: float
    """Score of the item less that of the other."""
    probability: float
    """That the item truly ranks above the other."""
    direct: float
    """How far direct answers push."""
    judgments: int
    """How many were direct."""
    indirect: float
    voices: tuple[Voice, ...]
    """Everyone, those who push furthest first."""
    chains: tuple[Chain, ...]
    """The widest, those that push furthest first."""
    without: tuple[Without, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def explain(
    judgments: Judgments, item: object, above: object, *, query: object | None = None, model: str | None = None
) -> Explanation:
    """Why `item` stands above the item `above`, by bradley-terry, crowd-bt or factor-bt.

    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"])
    >>> why = explain(votes, "a", "c")
    >>> round(why.direct + why.indirect - why.difference, 6)
    0.0
    """
    name = _default(judgments) if model is None else model
    if name not in TRUST:
        by_name(name)  # a misspelt name is another mistake
        raise SettingError(f"{name} cannot be explained: use one of {', '.join(TRUST)}.")
    fitting = by_name(name)()
    read, rule = convert_for(fitting, judgments)
    assert isinstance(read, Comparisons)
    a, b = read.items.index(item, query), read.items.index(above, query)
    if a == b:
        raise SettingError(f"Name two different items, got {item!r} twice.")
    ranking, _ = fit_quietly(fitting, read)
    found = pushes(fitting, name, ranking, read, a, b)
    direct = _direct(found, read, a, b)
    return Explanation(
        item=str(item),
        other=str(above),
        query=str(query) if read.items.has_queries else None,
        model=name,
        rule=rule,
        difference=float(ranking.scores[a] - ranking.scores[b]),
        probability=_chance(ranking, a, b),
        direct=float(found.push[direct].sum()),
        judgments=int(direct.sum()),
        indirect=float(found.push[~direct].sum()),
        voices=_voices(read, name, ranking, found, direct, a),
        chains=_chains(read, found, a, b),
        without=tuple(_without(fitting, read, found, direct, a, b)),
    )


def _default(judgments: Judgments) -> str:
    return "crowd-bt" if judgments.annotator is not None and len(judgments.annotators) > 1 else "bradley-terry"


def _chance(ranking: Ranking, a: int, b: int) -> float:
    return ranking.uncertainty.chance_above(ranking.scores, a, b)


def _direct(found: Pushes, read: Comparisons, a: int, b: int) -> BoolArray:
    left, right = read.left[found.rows], read.right[found.rows]
    return np.asarray(((left == a) & (right == b)) | ((left == b) & (right == a)))


def _voices(
    read: Comparisons, name: str, ranking: Ranking, found: Pushes, direct: BoolArray, a: int
) -> tuple[Voice, ...]:
    asked = read.take(found.rows)
    who = np.zeros(len(asked), np.int64) if asked.annotator is None else asked.annotator
    labels = [""] if asked.annotator is None else asked.annotators.tolist()
    trust = ranking.annotators[TRUST[name]] if TRUST[name] else None
    won = np.where(asked.outcome == LEFT, asked.left, asked.right) == a
    tied = asked.outcome == TIE

    def per(values: AnyArray) -> list[Any]:
        return np.bincount(who, values, len(labels)).tolist()  # type: ignore[no-any-return]

    counts = [per(direct & kind) for kind in (won & ~tied, ~won & ~tied, tied)]
    columns = zip(labels, *counts, per(found.push * direct), per(found.push), strict=True)
    voices = [
        Voice(str(label), None if trust is None else float(trust[n]), int(up), int(down), int(equal), own, all_of_it)
        for n, (label, up, down, equal, own, all_of_it) in enumerate(columns)
    ]
    return tuple(sorted(voices, key=lambda v: (-abs(v.push), v.annotator)))


def _chains(read: Comparisons, found: Pushes, a: int, b: int) -> tuple[Chain, ...]:
    first = int(read.items.starts[read.items.query[a]])
    size = len(found.height)
    asked = np.bincount(
        np.minimum(found.left, found.right) * size + np.maximum(found.left, found.right), minlength=size**2
    )
    told = []
    for path, push in chains(found, a - first, b - first, _CHAINS):
        judgments = sum(int(asked[min(link) * size + max(link)]) for link in pairwise(path))
        told.append(Chain(tuple(str(read.items.labels[first + place]) for place in path), judgments, push))
    return tuple(sorted(told, key=lambda chain: -abs(chain.push)))


def _without(model: Any, read: Comparisons, found: Pushes, direct: BoolArray, a: int, b: int) -> Iterator[Without]:
    """Fitted anew without the direct answers, and without those who push furthest, one at a time."""
    if len(read) > MOST_REFITTED:
        return
    own = np.zeros(len(read), bool)
    own[found.rows[direct]] = True
    groups: list[tuple[str, BoolArray]] = [("the direct answers", own)]
    if read.annotator is not None:
        total = np.bincount(read.annotator[found.rows], found.push, len(read.annotators))
        furthest = np.argsort(-np.abs(total), kind="stable")[:_REFITS]
        groups += [(str(read.annotators[n]), read.annotator == n) for n in furthest]
    for what, gone in groups:
        rest = read.take(np.flatnonzero(~gone))
        if gone.any() and rest.ties < len(rest):
            ranking, _ = fit_quietly(model, rest)
            difference = float(ranking.scores[a] - ranking.scores[b])
            yield Without(what, int(gone.sum()), difference, _chance(ranking, a, b))
