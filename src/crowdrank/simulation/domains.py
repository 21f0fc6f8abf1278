"""TPP's simulated study (Wang et al. 2016, §III and §V.A): annotators know some domains, and lie in others."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import Crowd
from crowdrank.simulation.sampling import (
    at_least,
    codes,
    distinct_in_rows,
    items_in_queries,
    numbered,
    on_screen,
    one_of,
    outcome_of,
    pair_of_number,
    pairs_of,
    streams,
)

Demographics = Literal["DEMO1", "DEMO2", "DEMO3"]

EXPERTISE = {"expert": 10.0, "average": 5.0, "spammer": 1.0, "malicious": -10.0}
SHARES = {"DEMO1": (0.2, 0.6, 0.1, 0.1), "DEMO2": (0.2, 0.4, 0.3, 0.1), "DEMO3": (0.2, 0.4, 0.1, 0.3)}

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
    """Every annotator answers a share `sparsity` (rounded down) of the pairs of every query.

    True scores are sums of U[0,1] gaps, which alone matches the published Table II; "uniform" takes §V.A by its word.
    `even_domains` gives every domain as many queries, as Figure 3 does; otherwise they are drawn.

    >>> domain_crowd(queries=4, items=5, sparsity=0.5)
    Crowd(Comparisons(200 judgments, 20 items, 4 queries, 10 annotators) by domain_crowd)
    """
    settings = dict(locals())
    at_least(2, items=items)
    at_least(1, queries=queries, annotators=annotators, domains=domains)
    one_of("demographics", demographics, tuple(SHARES))
    one_of("scores", scores, ("gaps", "uniform"))
    each = pairs_each(items, sparsity)
    for_truth, for_difficulty, for_domain, for_expertise, for_pairs, for_sides, for_sight, for_noise = streams(seed, 8)
    truth = _true_scores(for_truth, queries, items, scores)
    difficulty = 0.1 * for_difficulty.random(queries)
    domain = for_domain.integers(0, domains, queries)
    if even_domains:
        domain = for_domain.permutation(np.arange(queries) % domains)
    expertise = for_expertise.choice([*EXPERTISE.values()], (annotators, domains), p=SHARES[demographics])

    asked = distinct_in_rows(for_pairs, queries * annotators, pairs_of(items), each).ravel()
    left, right = on_screen(for_sides, *pair_of_number(asked))
    query, who = np.divmod(np.repeat(np.arange(queries * annotators), each), annotators)
    blur = for_sight.normal(size=(queries, annotators, items))
    seen = truth[:, None] + np.sqrt(difficulty)[:, None, None] * blur
    trust = expertise[who, domain[query]]
    # Two noisy scores of variance τ⁻² each: their difference has twice that.
    margin = np.sign(trust) * (seen[query, who, left] - seen[query, who, right])
    margin += for_noise.normal(size=len(margin)) * (np.sqrt(2) / np.abs(trust))
    judgments = Comparisons(
        items=items_in_queries(queries, items),
        left=codes(query * items + left),
        right=codes(query * items + right),
        outcome=outcome_of(margin >= 0),
        annotators=numbered("annotator", annotators),
        annotator=codes(who),
    )
    return Crowd(
        judgments=judgments,
        truth=truth.ravel(),
        annotators={"expertise": expertise},
        queries={"domain": domain, "difficulty": difficulty},
        settings={"generator": "domain_crowd", **settings},
    )


def pairs_each(items: int, sparsity: float) -> int:
    """How many pairs an annotator answers in each query.

    >>> [pairs_each(30, 0.05), pairs_each(30, 0.1)]
    [21, 43]
    """
    if not 0 < sparsity <= 1:
        raise SettingError(f"sparsity must be above 0 and at most 1, got {sparsity}.")
    # The small addition keeps products such as 0.7 × 10 from falling just below the whole number they are.
    each = int(sparsity * pairs_of(items) + 1e-9)
    if each == 0:
        raise SettingError(
            f"sparsity {sparsity} of the {pairs_of(items)} pairs of {items} items is less than one pair."
        )
    return each


def settings_of_name(name: str) -> dict[str, Any]:
    """What a data set of the paper is made with; parts left out are 10 annotators, 30 items, DEMO1.

    >>> settings_of_name("DOC5SR0.5DEMO1")
    {'annotators': 10, 'items': 5, 'sparsity': 0.5, 'demographics': 'DEMO1'}
    """
    found = _NAME.fullmatch(name)
    if not found:
        raise SettingError(f'A data set is called like "DOC5SR0.5DEMO1" or "ANNO100SR0.01", got {name!r}.')
    annotators, items, sparsity, demographics = found.groups()
    return {
        "annotators": int(annotators or 10),
        "items": int(items or 30),
        "sparsity": float(sparsity),
        "demographics": demographics or "DEMO1",
    }


def named_domain_crowd(name: str, seed: int = 0) -> Crowd:
    """A data set of the paper by its name, drawn anew."""
    return domain_crowd(**settings_of_name(name), seed=seed)


def _true_scores(rng: np.random.Generator, queries: int, items: int, scores: str) -> FloatArray:
    drawn = rng.random((queries, items))
    return drawn if scores == "uniform" else rng.permuted(np.cumsum(drawn, axis=1), axis=1)
