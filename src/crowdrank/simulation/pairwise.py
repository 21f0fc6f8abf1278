"""Crowd-BT's simulated study (Chen et al. 2013, §5.1): annotator k tells the truth with probability ηₖ.

factorBT's simulated study (Bugakova et al. 2019, §6): what surrounds a task draws the careless to one side.

Spammers added to a crowd that is already there (factorBT §6, Figure 1): they take its tasks and never read them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from crowdrank.data import LEFT, RIGHT, Comparisons, Items
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import Crowd
from crowdrank.simulation.sampling import (
    above_zero,
    annotators_of_pairs,
    at_least,
    codes,
    distinct_pairs,
    draw,
    happens,
    logistic,
    numbered,
    on_screen,
    one_of,
    outcome_of,
    standardised,
    streams,
    true_scores,
)


def crowd_bt(
    items: int = 100,
    annotators: int = 100,
    pairs: int = 400,
    votes: int = 10,
    quality: str | float = "beta(2,1)",
    labels: Literal["order", "logistic"] = "order",
    scale: float = 2.0,
    seed: int = 0,
) -> Crowd:
    """`pairs` different pairs, each answered by `votes` different annotators.

    With labels "order" an annotator names the truly better item with probability `quality`, as in the paper. With
    "logistic" the truth is itself a Bradley-Terry draw, on standardised scores times `scale`, so close items are hard.

    >>> crowd_bt(items=10, annotators=5, pairs=20, votes=3)
    Crowd(Comparisons(60 judgments, 10 items, 5 annotators) by crowd_bt)
    """
    settings = dict(locals())
    at_least(2, items=items)
    at_least(1, annotators=annotators, pairs=pairs, votes=votes)
    above_zero(scale=scale)
    one_of("labels", labels, ("order", "logistic"))
    for_truth, for_quality, for_pairs, for_votes, for_sides, for_noise, for_honesty = streams(seed, 7)
    truth = true_scores(for_truth, items)
    honesty = draw(quality, "quality", for_quality, annotators, 0, 1)
    first, second = (np.repeat(part, votes) for part in distinct_pairs(for_pairs, items, pairs))
    who = annotators_of_pairs(for_votes, pairs, annotators, votes).ravel()
    left, right = on_screen(for_sides, first, second)
    if labels == "order":
        left_better = truth[left] > truth[right]
    else:
        scores = scale * standardised(truth)
        left_better = happens(for_noise, logistic(scores[left] - scores[right]))
    judgments = Comparisons(
        items=Items.of(numbered("item", items).tolist()),
        left=codes(left),
        right=codes(right),
        outcome=outcome_of(left_better == happens(for_honesty, honesty[who])),
        annotators=numbered("annotator", annotators),
        annotator=codes(who),
    )
    return Crowd(
        judgments=judgments,
        truth=truth,
        annotators={"quality": honesty},
        settings={"generator": "crowd_bt", **settings},
    )


def factor_crowd(
    items: int = 100, annotators: int = 100, pairs: int = 400, votes: int = 10, factors: int = 2, seed: int = 0
) -> Crowd:
    """P(left) = f(γ)·f(s_left − s_right) + (1 − f(γ))·f(⟨x, r⟩), with γ and r of each annotator from N(0,1).

    The factors x, each -1, 0 or 1, belong to the task: all who answer it see the same ones, and the same sides.

    >>> sorted(factor_crowd(items=10, annotators=5, pairs=20, votes=3).judgments.features)
    ['factor1', 'factor2']
    """
    settings = dict(locals())
    at_least(2, items=items)
    at_least(1, annotators=annotators, pairs=pairs, votes=votes, factors=factors)
    for_truth, for_care, for_pull, for_pairs, for_votes, for_sides, for_factors, for_answers = streams(seed, 8)
    # The paper draws from 0 … 99; more items than that need more numbers.
    truth = for_truth.choice(max(100, items), items, replace=False).astype(np.float64)
    care = for_care.normal(size=annotators)
    pull = for_pull.normal(size=(annotators, factors))
    tasks = on_screen(for_sides, *distinct_pairs(for_pairs, items, pairs))
    left, right = (np.repeat(side, votes) for side in tasks)
    shown = np.repeat(for_factors.integers(-1, 2, (pairs, factors)), votes, axis=0)
    who = annotators_of_pairs(for_votes, pairs, annotators, votes).ravel()
    attentive = logistic(care)[who]
    drawn_left = logistic((shown * pull[who]).sum(axis=1))
    chance = attentive * logistic(truth[left] - truth[right]) + (1 - attentive) * drawn_left
    judgments = Comparisons(
        items=Items.of(numbered("item", items).tolist()),
        left=codes(left),
        right=codes(right),
        outcome=outcome_of(happens(for_answers, chance)),
        annotators=numbered("annotator", annotators),
        annotator=codes(who),
        features={f"factor{n + 1}": shown[:, n].copy() for n in range(factors)},
    )
    return Crowd(
        judgments=judgments,
        truth=truth,
        annotators={"care": care, "pull": pull},
        settings={"generator": "factor_crowd", **settings},
    )


def with_spammers(
    comparisons: Comparisons, count: int, side: Literal["left", "right", "random"] = "left", seed: int = 0
) -> Comparisons:
    """`count` more annotators, each answering as many of the tasks as the others did on average.

    >>> with_spammers(crowd_bt(items=10, annotators=5, pairs=20, votes=3).judgments, count=5)
    Comparisons(120 judgments, 10 items, 10 annotators)
    """
    at_least(0, count=count)
    one_of("side", side, ("left", "right", "random"))
    if comparisons.annotator is None:
        raise SettingError("Spammers can join only where it is known who judged: these comparisons have no annotators.")
    if count == 0 or not len(comparisons):
        return comparisons
    for_tasks, for_side = streams(seed, 2)
    _, tasks = np.unique(pair_cells(len(comparisons.items), comparisons.left, comparisons.right), return_index=True)
    active = len(np.unique(comparisons.annotator))
    each = min(max(1, round(len(comparisons) / active)), len(tasks))
    rows = np.concatenate([for_tasks.choice(tasks, each, replace=False) for _ in range(count)])
    toss = for_side.random(len(rows)) < 0.5
    answers = {"left": np.full(len(rows), LEFT), "right": np.full(len(rows), RIGHT), "random": outcome_of(toss)}[side]
    labels = np.concatenate((comparisons.annotators, _new_names(comparisons, count)))
    order = np.argsort(labels, kind="stable")
    place = np.empty(len(labels), np.int32)
    place[order] = np.arange(len(labels))
    joined = comparisons.take(np.concatenate((np.arange(len(comparisons)), rows)))
    spammer = len(comparisons.annotators) + np.repeat(np.arange(count), each)
    return replace(
        joined,
        annotators=labels[order],
        annotator=place[np.concatenate((comparisons.annotator, codes(spammer)))],
        outcome=np.concatenate((comparisons.outcome, answers)),
    )


def _new_names(comparisons: Comparisons, count: int) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    word, taken = "spammer", set(comparisons.annotators.tolist())
    while taken.intersection(numbered(word, count).tolist()):
        word += "_"
    return numbered(word, count)
