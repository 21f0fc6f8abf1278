"""Crowd-BT's simulated study (Chen et al. 2013, §5.1): annotator k tells the truth with probability ηₖ."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdrank.judgments import Comparisons, Items
from crowdrank.simulated.crowd import Crowd
from crowdrank.simulated.distributions import draw
from crowdrank.simulated.draws import (
    above_zero,
    annotators_of_pairs,
    at_least,
    codes,
    distinct_pairs,
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
        items=Items.plain(numbered("item", items).tolist()), left=codes(left), right=codes(right),
        outcome=outcome_of(left_better == happens(for_honesty, honesty[who])),
        annotators=numbered("annotator", annotators), annotator=codes(who),
    )  # fmt: skip
    return Crowd(
        judgments=judgments, truth=truth, annotators={"quality": honesty},
        settings={"generator": "crowd_bt", **settings},
    )  # fmt: skip
