"""Spammers added to a crowd that is already there (factorBT §6, Figure 1): they take its tasks and never read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from crowdrank.errors import SettingError
from crowdrank.judgments import LEFT, RIGHT, Comparisons
from crowdrank.judgments.counts import pair_cells
from crowdrank.simulated.draws import at_least, codes, numbered, one_of, outcome_of, streams


def with_spammers(
    comparisons: Comparisons, count: int, side: Literal["left", "right", "random"] = "left", seed: int = 0
) -> Comparisons:
    """`count` more annotators, each answering as many of the tasks as the others did on average.

    >>> from crowdrank.simulated.crowd_bt import crowd_bt
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
        joined, annotators=labels[order], annotator=place[np.concatenate((comparisons.annotator, codes(spammer)))],
        outcome=np.concatenate((comparisons.outcome, answers)),
    )  # fmt: skip


def _new_names(comparisons: Comparisons, count: int) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    word, taken = "spammer", set(comparisons.annotators.tolist())
    while taken.intersection(numbered(word, count).tolist()):
        word += "_"
    return numbered(word, count)
