"""Simulated preferences and grades on several queries by annotators of mixed quality (after Niu et al. 2015, §6)."""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Ratings
from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import (
    Crowd,
    bernoulli,
    check_at_least,
    codes,
    draw,
    items_in_queries,
    numbered_labels,
    outcomes,
    random_sides,
    sample_pairs,
    spawn_generators,
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
    """Simulate comparisons on several queries (Niu et al. 2015, §6).

    Parameters
    ----------
    queries : int, default 1
        Number of queries.
    items : int, default 20
        Number of items per query.
    annotators : int, default 30
        Number of annotators; each judges every query.
    votes_each : int, default 25
        Number of different pairs per annotator and query.
    quality : str or float, default "beta(2,1)"
        Probability with which an annotator is right: a number, or a distribution that it is drawn from.
    spammers : int, default 0
        Number of additional spammers. They do not change the answers of the others.
    spammer_quality : float, default 0.5
        Their quality: 0.5 answers at random, 0 always the wrong way round (§6.4).
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    Crowd
        True scores are standard normal. Column of annotators: ``quality``.

    Examples
    --------
    >>> preference_crowd(queries=2, items=6, annotators=4, votes_each=10)
    Crowd(Comparisons(80 judgments, 12 items, 2 queries, 4 annotators) by preference_crowd)
    """
    settings = dict(locals())
    check_at_least(2, items=items)
    check_at_least(1, queries=queries, annotators=annotators, votes_each=votes_each)
    truth_rng, quality_rng, pair_rng, side_rng, truthful_rng = spawn_generators(seed, 5)
    truth = truth_rng.standard_normal((queries, items))
    qualities = _qualities(quality_rng, quality, annotators, spammers, spammer_quality)
    who, query = _all_assignments(len(qualities), queries, votes_each)
    asked = [sample_pairs(pair_rng, items, votes_each) for _ in range(len(qualities) * queries)]
    first, second = (np.concatenate(side) for side in zip(*asked, strict=True))
    left, right = (query * items + side for side in random_sides(side_rng, first, second))
    left_better = truth.ravel()[left] > truth.ravel()[right]
    judgments = Comparisons(
        items=items_in_queries(queries, items),
        left=codes(left),
        right=codes(right),
        outcome=outcomes(left_better == bernoulli(truthful_rng, qualities[who])),
        annotators=numbered_labels("annotator", len(qualities)),
        annotator=codes(who),
    )
    return Crowd(
        judgments=judgments,
        truth=truth.ravel(),
        annotators={"quality": qualities},
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
    """Simulate grades from 0 to `levels` − 1 on several queries.

    Parameters
    ----------
    queries : int, default 1
        Number of queries.
    items : int, default 30
        Number of items per query.
    annotators : int, default 15
        Number of annotators; each judges every query.
    grades_each : int, default 20
        Number of items that each annotator grades per query.
    levels : int, default 5
        Number of grades. The same share of the true scores falls into each.
    quality : str or float, default "beta(2,1)"
        Quality of the annotators: a number, or a distribution that it is drawn from.
    noise : float, default 0.3
        Standard deviation of the noise with which an annotator perceives the true score, which is standard normal.
    spammers, spammer_quality
        As in `preference_crowd`.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    Crowd
        Column of annotators: ``quality``.

    Notes
    -----
    With probability |2·quality − 1| an annotator gives the grade that they perceive (its opposite if quality is below
    ½), and otherwise a random grade. With two levels and no noise, the grade is right with probability `quality`.

    Examples
    --------
    >>> rating_crowd(items=6, annotators=4, grades_each=5)
    Crowd(Ratings(20 grades, 6 items, 4 annotators) by rating_crowd)
    """
    settings = dict(locals())
    check_at_least(2, items=items, levels=levels)
    check_at_least(1, queries=queries, annotators=annotators, grades_each=grades_each)
    if grades_each > items:
        raise SettingError(f"grades_each must be at most the number of items, {items}, got {grades_each}.")
    if not 0 <= noise < np.inf:
        raise SettingError(f"noise must not be negative, got {noise}.")
    truth_rng, quality_rng, item_rng, perception_rng, attention_rng, random_rng = spawn_generators(seed, 6)
    truth = truth_rng.standard_normal((queries, items))
    qualities = _qualities(quality_rng, quality, annotators, spammers, spammer_quality)
    who, query = _all_assignments(len(qualities), queries, grades_each)
    item = np.concatenate([item_rng.choice(items, grades_each, replace=False) for _ in range(len(qualities) * queries)])
    bounds = np.quantile(truth, np.arange(1, levels) / levels, axis=1)
    perceived = truth[query, item] + noise * perception_rng.standard_normal(len(item))
    grade = np.sum(perceived > bounds[:, query], axis=0)
    grade = np.where(qualities[who] < 0.5, levels - 1 - grade, grade)
    careful = bernoulli(attention_rng, np.abs(2 * qualities[who] - 1))
    grade = np.where(careful, grade, random_rng.integers(levels, size=len(item)))
    judgments = Ratings(
        items=items_in_queries(queries, items),
        item=codes(query * items + item),
        grade=grade.astype(np.float64),
        annotators=numbered_labels("annotator", len(qualities)),
        annotator=codes(who),
    )
    return Crowd(
        judgments=judgments,
        truth=truth.ravel(),
        annotators={"quality": qualities},
        settings={"generator": "rating_crowd", **settings},
    )


def _qualities(
    rng: np.random.Generator, quality: str | float, annotators: int, spammers: int, spammer_quality: float
) -> FloatArray:
    """Qualities of the annotators, then of the spammers."""
    check_at_least(0, spammers=spammers)
    if not 0 <= spammer_quality <= 1:
        raise SettingError(f"spammer_quality must lie between 0 and 1, got {spammer_quality}.")
    return np.append(draw(quality, "quality", rng, annotators, 0, 1), np.full(spammers, float(spammer_quality)))


def _all_assignments(annotators: int, queries: int, each: int) -> tuple[IntArray, IntArray]:
    """Annotator and query of each judgment, sorted by annotator."""
    who, query = np.divmod(np.repeat(np.arange(annotators * queries), each), queries)
    return who, query
