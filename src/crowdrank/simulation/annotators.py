"""Crowds as one meets them: the good, the noisy, the careless, those who misread the question, those who never look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import Comparisons, Items
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.simulation.crowd import Crowd
from crowdrank.simulation.sampling import (
    above_zero,
    at_least,
    codes,
    distinct_pairs,
    draw,
    happens,
    logistic,
    numbered,
    on_screen,
    outcome_of,
    pairs_of,
    standardised,
    streams,
    true_scores,
)

QUALITIES = {
    "good": "uniform(0.92,1)",
    "noisy": "uniform(0.6,0.8)",
    "random": "0.5",
    "reversed": "uniform(0,0.1)",
    "left": "0.5",
    "right": "0.5",
}
"""Each kind, and the probability that one of them says what they see rather than the opposite. Those called left or
right choose that side whatever is shown."""

MIX = {"good": 12, "noisy": 6, "random": 2, "reversed": 2, "left": 1, "right": 1}


def mixed_crowd(
    items: int | Mapping[str, float] = 40,
    kinds: Mapping[str, int] | None = None,
    votes_each: int | str = 50,
    scale: float = 3.0,
    log: bool = False,
    names: Sequence[str] | None = None,
    seed: int = 0,
) -> Crowd:
    """Each annotator answers `votes_each` different pairs (a number, or a distribution of numbers).

    `items` is how many, or their true values by label. What an annotator sees is a logistic draw on the standardised
    values (their logarithms, with `log`) times `scale`: close items are hard for everyone. `kinds` says how many there
    are of each kind in `QUALITIES`; `names` is what to call them.

    >>> mixed_crowd({"ant": 1, "cat": 4, "cow": 600}, kinds={"good": 3, "left": 1}, votes_each=3)
    Crowd(Comparisons(12 judgments, 3 items, 4 annotators) by mixed_crowd)
    """
    above_zero(scale=scale)
    kinds = dict(MIX if kinds is None else kinds)
    for_truth, for_kinds, for_quality, for_load, for_pairs, for_sides, for_sight, for_honesty = streams(seed, 8)
    labels, truth = _truth(for_truth, items)
    kind = for_kinds.permutation(_kinds(kinds))
    annotators = _names(names, len(kind))
    quality = _qualities(for_quality, kind)
    who, first, second = _questions(for_load, for_pairs, votes_each, len(kind), len(labels))
    left, right = on_screen(for_sides, first, second)
    scores = scale * standardised(_logarithms(truth) if log else truth)
    left_better = happens(for_sight, logistic(scores[left] - scores[right]))
    left_won = _choose_side(left_better == happens(for_honesty, quality[who]), kind[who])
    judgments = Comparisons(
        items=Items.of(labels.tolist()),
        left=codes(left),
        right=codes(right),
        outcome=outcome_of(left_won),
        annotators=annotators,
        annotator=codes(who),
    )
    settings = {
        "generator": "mixed_crowd",
        "items": len(labels),
        "kinds": kinds,
        "votes_each": votes_each,
        "scale": scale,
        "log": log,
        "seed": seed,
    }
    return Crowd(judgments=judgments, truth=truth, annotators={"kind": kind, "quality": quality}, settings=settings)


def _truth(rng: np.random.Generator, items: int | Mapping[str, float]) -> tuple[ObjectArray, FloatArray]:
    if not isinstance(items, Mapping):
        at_least(2, items=items)
        return numbered("item", items), true_scores(rng, items)
    if len(items) < 2:
        raise SettingError(f"items must be at least two, got {len(items)}.")
    labels = sorted(items)
    truth = np.array([items[label] for label in labels], dtype=np.float64)
    if (bad := np.flatnonzero(~np.isfinite(truth))).size:
        raise SettingError(f"Item {labels[bad[0]]!r}: its value must be a finite number, got {truth[bad[0]]}.")
    return np.array(labels, dtype=object), truth


def _logarithms(truth: FloatArray) -> FloatArray:
    if truth.min() <= 0:
        raise SettingError(f"log needs values above zero, got {truth.min():g}.")
    return np.log(truth)


def _kinds(kinds: Mapping[str, int]) -> ObjectArray:
    for kind, count in kinds.items():
        if kind not in QUALITIES:
            raise UnknownNameError("kind of annotator", kind, QUALITIES)
        at_least(0, **{f"The number of {kind} annotators": count})
    found = [kind for kind, count in kinds.items() for _ in range(count)]
    if not found:
        raise SettingError("kinds must name at least one annotator.")
    return np.array(found, dtype=object)


def _names(names: Sequence[str] | None, count: int) -> ObjectArray:
    if names is None:
        return numbered("annotator", count)
    if len(set(names)) != count or len(names) != count:
        raise SettingError(f"names must be {count} different ones, got {len(names)} ({len(set(names))} different).")
    return np.array(sorted(names), dtype=object)


def _qualities(rng: np.random.Generator, kind: ObjectArray) -> FloatArray:
    quality = np.empty(len(kind))
    for name, text in QUALITIES.items():
        quality[kind == name] = draw(text, "quality", rng, int((kind == name).sum()), 0, 1)
    return quality


def _questions(
    for_load: np.random.Generator, for_pairs: np.random.Generator, votes_each: int | str, annotators: int, items: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Who is asked about which pair, in the order of asking: annotators come and go."""
    load = np.rint(draw(votes_each, "votes_each", for_load, annotators, 1, pairs_of(items))).astype(np.int64)
    who = np.repeat(np.arange(annotators), load)
    pairs = [distinct_pairs(for_pairs, items, int(count)) for count in load]
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    order = for_load.permutation(len(who))
    return who[order], first[order], second[order]


def _choose_side(left_won: BoolArray, kind: ObjectArray) -> BoolArray:
    return np.where(kind == "left", True, np.where(kind == "right", False, left_won))
