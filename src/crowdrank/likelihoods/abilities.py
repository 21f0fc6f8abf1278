"""A first look at Thurstonian preferences: each judgment by itself, sights integrated out one judgment at a time.

Judgments then have chance Φ(c (s_a − s_b)), with c = τ / √(2 (1 + τ²)) where difficulty is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.likelihoods.compiled import compiled
from crowdrank.likelihoods.hazard import hazard_by_table, log_cdf_by_table
from crowdrank.likelihoods.normal import log_cdf_of_number
from crowdrank.likelihoods.sights import Sights

Vector = npt.NDArray[np.float64]


def slope_of(expertise: Any) -> Any:
    """What one judgment tells of the difference of true scores: c."""
    return expertise / np.sqrt(2.0 * (1.0 + expertise**2))


def curves(sights: Sights, scores: Vector, slopes: Vector, queries: npt.NDArray[Any], people: int) -> Vector:
    """Log likelihood of every annotator's judgments on these queries, for each c; queries × annotators × slopes."""
    found: Vector = _curves(sights, scores, slopes, np.asarray(queries, np.int64), people)
    return found


@compiled(log_cdf_of_number, log_cdf_by_table)
def _curves(sights, scores, slopes, queries, people):  # type: ignore[no-untyped-def]
    found = np.zeros((len(queries), people, len(slopes)))
    for place in range(len(queries)):
        query = queries[place]
        for row in range(sights.judgment_starts[query], sights.judgment_starts[query + 1]):
            apart = scores[sights.item[sights.winner[row]]] - scores[sights.item[sights.loser[row]]]
            for choice in range(len(slopes)):
                found[place, sights.annotator[row], choice] += log_cdf_by_table(slopes[choice] * apart)
    return found


def climb(sights: Sights, scores: Vector, slopes: Vector, domain: Any, variance: float, rounds: int = 20) -> Vector:
    """Scores near their summit given everyone's c in every domain: Newton, an item at a time; curvatures with them."""
    found, bent = np.array(scores, np.float64), np.empty(len(scores))
    _climb(sights, found, bent, np.asarray(slopes, np.float64), np.asarray(domain, np.int64), float(variance), rounds)
    return np.stack((found, bent))


@compiled(hazard_by_table)
def _climb(sights, scores, bent, slopes, domain, variance, rounds):  # type: ignore[no-untyped-def]
    for query in range(len(domain)):
        slope = slopes[:, domain[query]]
        for _ in range(rounds):
            for item in range(sights.item_starts[query], sights.item_starts[query + 1]):
                pull, curved = -scores[item] / variance, 1.0 / variance
                for sight in range(sights.sight_starts[item], sights.sight_starts[item + 1]):
                    c = slope[sights.annotator_of_sight[sight]]
                    for touch in range(sights.touch_starts[sight], sights.touch_starts[sight + 1]):
                        steep = c * sights.touch_sign[touch]
                        x = steep * (scores[item] - scores[sights.item[sights.touch_other[touch]]])
                        hazard = hazard_by_table(x)
                        pull += steep * hazard
                        curved += steep * steep * max(0.0, hazard * (hazard + x))
                scores[item] += pull / curved
                bent[item] = curved
