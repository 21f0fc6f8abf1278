"""Topics judged by annotators of very mixed quality, in preferences or in grades (after Niu et al. 2015, §6)."""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Ratings
from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import Crowd
from crowdrank.simulation.sampling import (
    at_least,
    codes,
    distinct_pairs,
    draw,
    happens,
    items_in_queries,
    numbered,
    on_screen,
    outcome_of,
    streams,
)


def preference_crowd(
    queries: int = 1,
    items: int = 20,
    annotators: int = 30,
    votes_each: int = 25,
    quality: str | float = "beta(2,1)",
    spammers: int = 0,
    spammer_quality: float = 0.5,
    seed: int = 0,
) -> Crowd:
    """Each annotator answers `votes_each` different pairs of every query, right with probability `quality`.

    `spammers` more do as much: at random with `spammer_quality` 0.5, always the wrong way round with 0 (§6.4). What the
    others say does not depend on how many they are. True scores are standard normal.

    >>> preference_crowd(queries=2, items=6, annotators=4, votes_each=10)
    Crowd(Comparisons(80 judgments, 12 items, 2 queries, 4 annotators) by preference_crowd)
    """
    settings = dict(locals())
    at_least(2, items=items)
    at_least(1, queries=queries, annotators=annotators, votes_each=votes_each)
    for_truth, for_quality, for_pairs, for_sides, for_honesty = streams(seed, 5)
    truth = for_truth.standard_normal((queries, items))
    honesty = _qualities(for_quality, quality, annotators, spammers, spammer_quality)
    who, query = _everyone_everywhere(len(honesty), queries, votes_each)
    asked = [distinct_pairs(for_pairs, items, votes_each) for _ in range(len(honesty) * queries)]
    first, second = (np.concatenate(side) for side in zip(*asked, strict=True))
    left, right = (query * items + side for side in on_screen(for_sides, first, second))
    left_better = truth.ravel()[left] > truth.ravel()[right]
    judgments = Comparisons(
        items=items_in_queries(queries, items),
        left=codes(left),
        right=codes(right),
        outcome=outcome_of(left_better == happens(for_honesty, honesty[who])),
        annotators=numbered("annotator", len(honesty)),
        annotator=codes(who),
    )
    return Crowd(
        judgments=judgments,
        truth=truth.ravel(),
        annotators={"quality": honesty},
        settings={"generator": "preference_crowd", **settings},
    )


def rating_crowd(
    queries: int = 1,
    items: int = 30,
    annotators: int = 15,
    grades_each: int = 20,
    levels: int = 5,
    quality: str | float = "beta(2,1)",
    noise: float = 0.3,
    spammers: int = 0,
    spammer_quality: float = 0.5,
    seed: int = 0,
) -> Crowd:
    """Each annotator grades `grades_each` items of every query, from 0 to `levels` − 1.

    What they see is the true score, standard normal, with normal `noise`; as many true scores fall into each level.
    With probability |2·quality − 1| they give the grade they see (its opposite, where quality is below ½), else any: of
    two levels and without noise, the true one as often as `quality` says. Spammers as in `preference_crowd`.

    >>> rating_crowd(items=6, annotators=4, grades_each=5)
    Crowd(Ratings(20 grades, 6 items, 4 annotators) by rating_crowd)
    """
    settings = dict(locals())
    at_least(2, items=items, levels=levels)
    at_least(1, queries=queries, annotators=annotators, grades_each=grades_each)
    if grades_each > items:
        raise SettingError(f"grades_each must be at most the number of items, {items}, got {grades_each}.")
    if not 0 <= noise < np.inf:
        raise SettingError(f"noise must not be negative, got {noise}.")
    for_truth, for_quality, for_items, for_sight, for_care, for_chance = streams(seed, 6)
    truth = for_truth.standard_normal((queries, items))
    honesty = _qualities(for_quality, quality, annotators, spammers, spammer_quality)
    who, query = _everyone_everywhere(len(honesty), queries, grades_each)
    item = np.concatenate([for_items.choice(items, grades_each, replace=False) for _ in range(len(honesty) * queries)])
    bounds = np.quantile(truth, np.arange(1, levels) / levels, axis=1)
    seen = truth[query, item] + noise * for_sight.standard_normal(len(item))
    grade = np.sum(seen > bounds[:, query], axis=0)
    grade = np.where(honesty[who] < 0.5, levels - 1 - grade, grade)
    careful = happens(for_care, np.abs(2 * honesty[who] - 1))
    grade = np.where(careful, grade, for_chance.integers(levels, size=len(item)))
    judgments = Ratings(
        items=items_in_queries(queries, items),
        item=codes(query * items + item),
        grade=grade.astype(np.float64),
        annotators=numbered("annotator", len(honesty)),
        annotator=codes(who),
    )
    return Crowd(
        judgments=judgments,
        truth=truth.ravel(),
        annotators={"quality": honesty},
        settings={"generator": "rating_crowd", **settings},
    )


def _qualities(
    rng: np.random.Generator, quality: str | float, annotators: int, spammers: int, spammer_quality: float
) -> FloatArray:
    """Of the annotators, then of the spammers."""
    at_least(0, spammers=spammers)
    if not 0 <= spammer_quality <= 1:
        raise SettingError(f"spammer_quality must lie between 0 and 1, got {spammer_quality}.")
    return np.append(draw(quality, "quality", rng, annotators, 0, 1), np.full(spammers, float(spammer_quality)))


def _everyone_everywhere(annotators: int, queries: int, each: int) -> tuple[IntArray, IntArray]:
    """Who gives each judgment, and in which query: one annotator after the other."""
    who, query = np.divmod(np.repeat(np.arange(annotators * queries), each), queries)
    return who, query
