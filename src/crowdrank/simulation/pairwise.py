"""Simulated comparisons: Crowd-BT (Chen et al. 2013, §5.1), factorBT (Bugakova et al. 2019, §6), and added spammers."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from crowdrank.data import LEFT, RIGHT, Comparisons, Items
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import (
    Crowd,
    bernoulli,
    check_at_least,
    check_choice,
    check_positive,
    codes,
    draw,
    logistic,
    numbered_labels,
    outcomes,
    random_sides,
    sample_annotators,
    sample_pairs,
    spawn_generators,
    standardised,
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
    """Simulate comparisons by annotators who tell the truth with probability ηₖ (Chen et al. 2013, §5.1).

    Parameters
    ----------
    items, annotators : int, default 100
        Their numbers.
    pairs : int, default 400
        Number of different pairs.
    votes : int, default 10
        Number of annotators per pair.
    quality : str or float, default "beta(2,1)"
        Probability with which an annotator tells the truth: a number, or a distribution that it is drawn from.
    labels : {"order", "logistic"}, default "order"
        The true answer: the better item, as in the paper, or a Bradley–Terry draw on standardised scores times
        `scale`, so that close items are hard to tell apart.
    scale : float, default 2.0
        Standard deviation of the scores with "logistic" labels.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    Crowd
        Column of annotators: ``quality``.

    Examples
    --------
    >>> crowd_bt(items=10, annotators=5, pairs=20, votes=3)
    Crowd(Comparisons(60 judgments, 10 items, 5 annotators) by crowd_bt)
    """
    settings = dict(locals())
    check_at_least(2, items=items)
    check_at_least(1, annotators=annotators, pairs=pairs, votes=votes)
    check_positive(scale=scale)
    check_choice("labels", labels, ("order", "logistic"))
    truth_rng, quality_rng, pair_rng, annotator_rng, side_rng, noise_rng, truthful_rng = spawn_generators(seed, 7)
    truth = true_scores(truth_rng, items)
    qualities = draw(quality, "quality", quality_rng, annotators, 0, 1)
    first, second = (np.repeat(part, votes) for part in sample_pairs(pair_rng, items, pairs))
    who = sample_annotators(annotator_rng, pairs, annotators, votes).ravel()
    left, right = random_sides(side_rng, first, second)
    if labels == "order":
        left_better = truth[left] > truth[right]
    else:
        scores = scale * standardised(truth)
        left_better = bernoulli(noise_rng, logistic(scores[left] - scores[right]))
    judgments = Comparisons(
        items=Items.of(numbered_labels("item", items).tolist()),
        left=codes(left),
        right=codes(right),
        outcome=outcomes(left_better == bernoulli(truthful_rng, qualities[who])),
        annotators=numbered_labels("annotator", annotators),
        annotator=codes(who),
    )
    return Crowd(
        judgments=judgments,
        truth=truth,
        annotators={"quality": qualities},
        settings={"generator": "crowd_bt", **settings},
    )


def factor_crowd(
    items: int = 100, annotators: int = 100, pairs: int = 400, votes: int = 10, factors: int = 2, seed: int = 0
) -> Crowd:
    """Simulate comparisons that are biased by features of the task (Bugakova et al. 2019, §6).

    Parameters
    ----------
    items, annotators : int, default 100
        Their numbers.
    pairs : int, default 400
        Number of different tasks (pairs with their sides and features).
    votes : int, default 10
        Number of annotators per task.
    factors : int, default 2
        Number of features.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    Crowd
        Columns of annotators: ``attention_logit`` (γ) and ``feature_weight`` (r). The judgments have the features
        ``factor1``, ``factor2`` …

    Notes
    -----
    P(left) = f(γ)·f(s_left − s_right) + (1 − f(γ))·f(⟨x, r⟩) with f logistic; γ and r of each annotator are drawn from
    N(0, 1). The features x, each −1, 0 or 1, belong to the task: all annotators see the same ones.

    Examples
    --------
    >>> sorted(factor_crowd(items=10, annotators=5, pairs=20, votes=3).judgments.features)
    ['factor1', 'factor2']
    """
    settings = dict(locals())
    check_at_least(2, items=items)
    check_at_least(1, annotators=annotators, pairs=pairs, votes=votes, factors=factors)
    truth_rng, attention_rng, weight_rng, pair_rng, annotator_rng, side_rng, factor_rng, answer_rng = spawn_generators(
        seed, 8
    )
    # The paper draws from 0 … 99; more than 100 items need more numbers.
    truth = truth_rng.choice(max(100, items), items, replace=False).astype(np.float64)
    attention_logit = attention_rng.normal(size=annotators)
    feature_weight = weight_rng.normal(size=(annotators, factors))
    tasks = random_sides(side_rng, *sample_pairs(pair_rng, items, pairs))
    left, right = (np.repeat(side, votes) for side in tasks)
    shown = np.repeat(factor_rng.integers(-1, 2, (pairs, factors)), votes, axis=0)
    who = sample_annotators(annotator_rng, pairs, annotators, votes).ravel()
    attentive = logistic(attention_logit)[who]
    biased_left = logistic((shown * feature_weight[who]).sum(axis=1))
    chance = attentive * logistic(truth[left] - truth[right]) + (1 - attentive) * biased_left
    judgments = Comparisons(
        items=Items.of(numbered_labels("item", items).tolist()),
        left=codes(left),
        right=codes(right),
        outcome=outcomes(bernoulli(answer_rng, chance)),
        annotators=numbered_labels("annotator", annotators),
        annotator=codes(who),
        features={f"factor{n + 1}": shown[:, n].copy() for n in range(factors)},
    )
    return Crowd(
        judgments=judgments,
        truth=truth,
        annotators={"attention_logit": attention_logit, "feature_weight": feature_weight},
        settings={"generator": "factor_crowd", **settings},
    )


def with_spammers(
    comparisons: Comparisons, count: int, side: Literal["left", "right", "random"] = "left", seed: int = 0
) -> Comparisons:
    """Add spammers to a crowd (Bugakova et al. 2019, §6, Figure 1).

    Parameters
    ----------
    comparisons : Comparisons
        The judgments of the crowd, with annotators.
    count : int
        Number of spammers. Each answers as many tasks as the other annotators did on average.
    side : {"left", "right", "random"}, default "left"
        The side that they choose.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    Comparisons

    Examples
    --------
    >>> with_spammers(crowd_bt(items=10, annotators=5, pairs=20, votes=3).judgments, count=5)
    Comparisons(120 judgments, 10 items, 10 annotators)
    """
    check_at_least(0, count=count)
    check_choice("side", side, ("left", "right", "random"))
    if comparisons.annotator is None:
        raise SettingError(
            "These comparisons have no annotators: spammers can only be added to comparisons with annotators."
        )
    if count == 0 or not len(comparisons):
        return comparisons
    task_rng, side_rng = spawn_generators(seed, 2)
    _, tasks = np.unique(pair_cells(len(comparisons.items), comparisons.left, comparisons.right), return_index=True)
    active = len(np.unique(comparisons.annotator))
    each = min(max(1, round(len(comparisons) / active)), len(tasks))
    rows = np.concatenate([task_rng.choice(tasks, each, replace=False) for _ in range(count)])
    toss = side_rng.random(len(rows)) < 0.5
    answers = {"left": np.full(len(rows), LEFT), "right": np.full(len(rows), RIGHT), "random": outcomes(toss)}[side]
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
        both_bad=None if joined.both_bad is None else joined.both_bad & (np.arange(len(joined)) < len(comparisons)),
    )


def _new_names(comparisons: Comparisons, count: int) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    word, taken = "spammer", set(comparisons.annotators.tolist())
    while taken.intersection(numbered_labels(word, count).tolist()):
        word += "_"
    return numbered_labels(word, count)
