"""The simulation of the TPP paper (Wang et al. 2016, §III and §V.A): expertise differs between domains."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import (
    Crowd,
    check_at_least,
    check_choice,
    codes,
    count_pairs,
    items_in_queries,
    numbered_labels,
    outcomes,
    pair_at_index,
    random_sides,
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
    each = pairs_per_annotator(items, sparsity)
    truth_rng, difficulty_rng, domain_rng, expertise_rng, pair_rng, side_rng, perception_rng, noise_rng = (
        spawn_generators(seed, 8)
    )
    truth = _true_scores(truth_rng, queries, items, scores)
    difficulty = 0.1 * difficulty_rng.random(queries)
    domain = domain_rng.integers(0, domains, queries)
    if even_domains:
        domain = domain_rng.permutation(np.arange(queries) % domains)
    expertise = expertise_rng.choice([*EXPERTISE.values()], (annotators, domains), p=EXPERTISE_SHARES[demographics])

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
