"""The simulation of the TPP paper (Wang et al. 2016, §III and §V.A): expertise differs between domains."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Ratings
from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import (
    Crowd,
    bernoulli,
    check_at_least,
    check_choice,
    codes,
    count_pairs,
    draw,
    items_in_queries,
    numbered_labels,
    outcomes,
    pair_at_index,
    random_sides,
    sample_pairs,
    sample_rows,
    spawn_generators,
)

Demographics = Literal["DEMO1", "DEMO2", "DEMO3"]

EXPERTISE = {"expert": 10.0, "average": 5.0, "spammer": 1.0, "malicious": -10.0}
EXPERTISE_SHARES = {"DEMO1": (0.2, 0.6, 0.1, 0.1), "DEMO2": (0.2, 0.4, 0.3, 0.1), "DEMO3": (0.2, 0.4, 0.1, 0.3)}

_NAME = re.compile(r"(?:ANNO(\d+))?(?:DOC(\d+))?SR(\d+(?:\.\d+)?)(?:(DEMO[123]))?")


def domain_crowd(
    queries: int = 100,
    items: int = 30,
    annotators: int = 10,
    domains: int = 10,
    sparsity: float = 0.1,
    demographics: Demographics = "DEMO1",
    scores: Literal["gaps", "uniform"] = "gaps",
    even_domains: bool = False,
    spammer_expertise: float = EXPERTISE["spammer"],
    seed: int = 0,
) -> Crowd:
    """Simulate comparisons by annotators whose expertise differs between hidden domains of queries.

    Parameters
    ----------
    queries : int, default 100
        Number of queries.
    items : int, default 30
        Number of items per query.
    annotators : int, default 10
        Number of annotators; each judges every query.
    domains : int, default 10
        Number of domains.
    sparsity : float, default 0.1
        Share of the pairs of a query that each annotator answers, rounded down.
    demographics : {"DEMO1", "DEMO2", "DEMO3"}, default "DEMO1"
        Shares of experts, average annotators, spammers and malicious annotators, as in the paper.
    scores : {"gaps", "uniform"}, default "gaps"
        True scores are sums of U[0,1] gaps, which alone reproduces Table II of the paper, or uniform as §V.A says.
    even_domains : bool, default False
        Give every domain the same number of queries, as in Figure 3; otherwise domains are drawn.
    spammer_expertise : float, default 1
        Expertise τ of spammers. 1 is printed in the paper; the authors' own simulator has 0.1, and their tables come
        from it.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    Crowd
        Column of annotators: ``expertise`` per domain. Columns of queries: ``domain`` and ``difficulty``.

    Examples
    --------
    >>> domain_crowd(queries=4, items=5, sparsity=0.5)
    Crowd(Comparisons(200 judgments, 20 items, 4 queries, 10 annotators) by domain_crowd)
    """
    settings = dict(locals())
    check_at_least(2, items=items)
    check_at_least(1, queries=queries, annotators=annotators, domains=domains)
    check_choice("demographics", demographics, tuple(EXPERTISE_SHARES))
    check_choice("scores", scores, ("gaps", "uniform"))
    if not spammer_expertise > 0:
        raise SettingError(f"spammer_expertise must be above 0, got {spammer_expertise}.")
    each = pairs_per_annotator(items, sparsity)
    truth_rng, difficulty_rng, domain_rng, expertise_rng, pair_rng, side_rng, perception_rng, noise_rng = (
        spawn_generators(seed, 8)
    )
    truth = _true_scores(truth_rng, queries, items, scores)
    difficulty = 0.1 * difficulty_rng.random(queries)
    domain = domain_rng.integers(0, domains, queries)
    if even_domains:
        domain = domain_rng.permutation(np.arange(queries) % domains)
    levels = [*(EXPERTISE | {"spammer": spammer_expertise}).values()]
    expertise = expertise_rng.choice(levels, (annotators, domains), p=EXPERTISE_SHARES[demographics])

    asked = sample_rows(pair_rng, queries * annotators, count_pairs(items), each).ravel()
    left, right = random_sides(side_rng, *pair_at_index(asked))
    query, who = np.divmod(np.repeat(np.arange(queries * annotators), each), annotators)
    perception_noise = perception_rng.normal(size=(queries, annotators, items))
    perceived = truth[:, None] + np.sqrt(difficulty)[:, None, None] * perception_noise
    expertise_in_domain = expertise[who, domain[query]]
    # The difference of two noisy scores has twice the variance τ⁻² of each.
    margin = np.sign(expertise_in_domain) * (perceived[query, who, left] - perceived[query, who, right])
    margin += noise_rng.normal(size=len(margin)) * (np.sqrt(2) / np.abs(expertise_in_domain))
    judgments = Comparisons(
        items=items_in_queries(queries, items),
        left=codes(query * items + left),
        right=codes(query * items + right),
        outcome=outcomes(margin >= 0),
        annotators=numbered_labels("annotator", annotators),
        annotator=codes(who),
    )
    return Crowd(
        judgments=judgments,
        truth=truth.ravel(),
        annotators={"expertise": expertise},
        queries={"domain": domain, "difficulty": difficulty},
        settings={"generator": "domain_crowd", **settings},
    )


def pairs_per_annotator(items: int, sparsity: float) -> int:
    """Return how many pairs an annotator answers per query.

    Examples
    --------
    >>> [pairs_per_annotator(30, 0.05), pairs_per_annotator(30, 0.1)]
    [21, 43]
    """
    if not 0 < sparsity <= 1:
        raise SettingError(f"sparsity must be above 0 and at most 1, got {sparsity}.")
    # The small addition keeps products such as 0.7 × 10 from falling just below the integer they should be.
    each = int(sparsity * count_pairs(items) + 1e-9)
    if each == 0:
        raise SettingError(
            f"sparsity={sparsity} gives less than one of the {count_pairs(items)} pairs of {items} items: increase it."
        )
    return each


def parse_dataset_name(name: str) -> dict[str, Any]:
    """Parse the name of a data set of the paper; missing parts are 10 annotators, 30 items and DEMO1.

    Examples
    --------
    >>> parse_dataset_name("DOC5SR0.5DEMO1")
    {'annotators': 10, 'items': 5, 'sparsity': 0.5, 'demographics': 'DEMO1'}
    """
    found = _NAME.fullmatch(name)
    if not found:
        raise SettingError(f'The name of a data set must look like "DOC5SR0.5DEMO1" or "ANNO100SR0.01", got {name!r}.')
    annotators, items, sparsity, demographics = found.groups()
    return {
        "annotators": int(annotators or 10),
        "items": int(items or 30),
        "sparsity": float(sparsity),
        "demographics": demographics or "DEMO1",
    }


def named_domain_crowd(name: str, seed: int = 0) -> Crowd:
    """Simulate a data set of the paper by its name, such as "DOC5SR0.5DEMO1"."""
    return domain_crowd(**parse_dataset_name(name), seed=seed)


def _true_scores(rng: np.random.Generator, queries: int, items: int, scores: str) -> FloatArray:
    drawn = rng.random((queries, items))
    return drawn if scores == "uniform" else rng.permuted(np.cumsum(drawn, axis=1), axis=1)


# Simulated preferences and grades on several queries by annotators of mixed quality (after Niu et al. 2015, §6).


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
