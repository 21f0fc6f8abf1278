"""factorBT's simulated study (Bugakova et al. 2019, §6): what surrounds a task draws the careless to one side."""

from __future__ import annotations

import numpy as np

from crowdrank.judgments import Comparisons, Items
from crowdrank.simulated.crowd import Crowd
from crowdrank.simulated.draws import (
    annotators_of_pairs,
    at_least,
    codes,
    distinct_pairs,
    happens,
    logistic,
    numbered,
    on_screen,
    outcome_of,
    streams,
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
        items=Items.plain(numbered("item", items).tolist()), left=codes(left), right=codes(right),
        outcome=outcome_of(happens(for_answers, chance)),
        annotators=numbered("annotator", annotators), annotator=codes(who),
        features={f"factor{n + 1}": shown[:, n].copy() for n in range(factors)},
    )  # fmt: skip
    return Crowd(
        judgments=judgments, truth=truth, annotators={"care": care, "pull": pull},
        settings={"generator": "factor_crowd", **settings},
    )  # fmt: skip
