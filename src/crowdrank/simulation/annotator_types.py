"""Mixed crowds: good and noisy annotators, random ones, reversed ones, and ones who always choose the same side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import Comparisons, Items
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.simulation.crowd import (
    Crowd,
    bernoulli,
    check_at_least,
    check_positive,
    codes,
    count_pairs,
    draw,
    logistic,
    numbered_labels,
    outcomes,
    random_sides,
    sample_pairs,
    spawn_generators,
    standardised,
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
"""Distribution of the quality of each kind: the probability of reporting what they perceive rather than the opposite.
Annotators of kind "left" or "right" always choose that side."""

DEFAULT_KINDS = {"good": 12, "noisy": 6, "random": 2, "reversed": 2, "left": 1, "right": 1}


def mixed_crowd(
    items: int | Mapping[str, float] = 40,
    kinds: Mapping[str, int] | None = None,
    votes_each: int | str = 50,
    scale: float = 3.0,
    log: bool = False,
    names: Sequence[str] | None = None,
    seed: int = 0,
) -> Crowd:
    """Simulate comparisons by a mix of good, noisy, random, reversed and one-sided annotators.

    Parameters
    ----------
    items : int or mapping of str to float, default 40
        Number of items, or their true values by label.
    kinds : mapping of str to int, optional
        Number of annotators of each kind: "good", "noisy", "random", "reversed", "left" and "right". By default 12, 6,
        2, 2, 1 and 1.
    votes_each : int or str, default 50
        Number of different pairs per annotator, or a distribution such as "uniform(35,65)".
    scale : float, default 3.0
        Standard deviation of the scores that answers are drawn from.
    log : bool, default False
        Use the logarithms of the true values.
    names : sequence of str, optional
        Names of the annotators; numbered by default.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    Crowd
        The comparisons with their truth. Columns of annotators: ``kind`` and ``quality``.

    Notes
    -----
    An annotator perceives left as better with probability 1/(1 + e^−(s_left − s_right)), where s are the standardised
    values times `scale`, and reports it with probability `quality`. Close items are hard for everyone.

    Examples
    --------
    >>> mixed_crowd({"ant": 1, "cat": 4, "cow": 600}, kinds={"good": 3, "left": 1}, votes_each=3)
    Crowd(Comparisons(12 judgments, 3 items, 4 annotators) by mixed_crowd)
    """
    check_positive(scale=scale)
    kinds = dict(DEFAULT_KINDS if kinds is None else kinds)
    truth_rng, kind_rng, quality_rng, load_rng, pair_rng, side_rng, perception_rng, truthful_rng = spawn_generators(
        seed, 8
    )
    labels, truth = _truth(truth_rng, items)
    kind = kind_rng.permutation(_kinds(kinds))
    annotators = _names(names, len(kind))
    quality = _qualities(quality_rng, kind)
    who, first, second = _questions(load_rng, pair_rng, votes_each, len(kind), len(labels))
    left, right = random_sides(side_rng, first, second)
    scores = scale * standardised(_logarithms(truth) if log else truth)
    left_better = bernoulli(perception_rng, logistic(scores[left] - scores[right]))
    left_won = _choose_side(left_better == bernoulli(truthful_rng, quality[who]), kind[who])
    judgments = Comparisons(
        items=Items.of(labels.tolist()),
        left=codes(left),
        right=codes(right),
        outcome=outcomes(left_won),
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
        check_at_least(2, items=items)
        return numbered_labels("item", items), true_scores(rng, items)
    if len(items) < 2:
        raise SettingError(f"items must name at least two items, got {len(items)}.")
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
        check_at_least(0, **{f"The number of {kind} annotators": count})
    found = [kind for kind, count in kinds.items() for _ in range(count)]
    if not found:
        raise SettingError("kinds must name at least one annotator.")
    return np.array(found, dtype=object)


def _names(names: Sequence[str] | None, count: int) -> ObjectArray:
    if names is None:
        return numbered_labels("annotator", count)
    if len(set(names)) != count or len(names) != count:
        raise SettingError(f"names must be {count} different names, got {len(names)} ({len(set(names))} different).")
    return np.array(sorted(names), dtype=object)


def _qualities(rng: np.random.Generator, kind: ObjectArray) -> FloatArray:
    quality = np.empty(len(kind))
    for name, text in QUALITIES.items():
        quality[kind == name] = draw(text, "quality", rng, int((kind == name).sum()), 0, 1)
    return quality


def _questions(
    load_rng: np.random.Generator, pair_rng: np.random.Generator, votes_each: int | str, annotators: int, items: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Annotator and pair of each question, in random order."""
    load = np.rint(draw(votes_each, "votes_each", load_rng, annotators, 1, count_pairs(items))).astype(np.int64)
    who = np.repeat(np.arange(annotators), load)
    pairs = [sample_pairs(pair_rng, items, int(count)) for count in load]
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    order = load_rng.permutation(len(who))
    return who[order], first[order], second[order]


def _choose_side(left_won: BoolArray, kind: ObjectArray) -> BoolArray:
    return np.where(kind == "left", True, np.where(kind == "right", False, left_won))
