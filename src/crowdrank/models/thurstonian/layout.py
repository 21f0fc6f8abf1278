"""What an annotator perceived of an item: the layout that samplers of Thurstonian pairwise preferences hang on.

A first look at Thurstonian preferences: each judgment by itself, sights integrated out one judgment at a time.

Judgments then have chance Φ(c (s_a − s_b)), with c = τ / √(2 (1 + τ²)) where difficulty is one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray
from crowdrank.engines.compilation import compiled
from crowdrank.inference.special import hazard_by_table, log_cdf_by_table, log_cdf_of_number


class Sights(NamedTuple):
    """Judgments sorted by query, and the sights they hang on, sorted by item and annotator."""

    winner: AnyArray
    """The sight of the winner of each judgment; …"""
    loser: AnyArray
    annotator: AnyArray
    judgment_starts: AnyArray
    """… where each query's judgments start, …"""
    item_starts: AnyArray
    """… each query's items, …"""
    sight_starts: AnyArray
    """… each item's sights, …"""
    touch_starts: AnyArray
    """… and each sight's touches: the judgments that it takes part in."""
    touch_row: AnyArray
    touch_other: AnyArray
    """The other sight of the judgment."""
    touch_sign: AnyArray
    """1 where the sight won, −1 where it lost."""
    item: AnyArray
    """Of each sight."""
    annotator_of_sight: AnyArray
    above: AnyArray
    """The item that won each judgment, …"""
    below: AnyArray
    """… and the one that lost."""


def sights_of(winner: AnyArray, loser: AnyArray, annotator: AnyArray, item_starts: AnyArray) -> Sights:
    """From items that won and lost by annotator; the order of judgments is forgotten."""
    people = int(annotator.max(initial=0)) + 1
    items, queries = int(item_starts[-1]), len(item_starts) - 1
    order = np.lexsort((loser, winner, annotator, np.searchsorted(item_starts, winner, side="right")))
    winner, loser, annotator = (column[order].astype(np.int64) for column in (winner, loser, annotator))
    seen, place = np.unique(
        np.concatenate((winner * people + annotator, loser * people + annotator)), return_inverse=True
    )
    rows = len(winner)
    won, lost = place[:rows].astype(np.int32), place[rows:].astype(np.int32)
    touching = np.argsort(place, kind="stable")
    query = np.searchsorted(item_starts, winner, side="right") - 1
    return Sights(
        won,
        lost,
        annotator.astype(np.int32),
        _starts(query, queries),
        np.asarray(item_starts, np.int64),
        _starts(seen // people, items),
        _starts(place, len(seen)),
        np.tile(np.arange(rows, dtype=np.int32), 2)[touching],
        np.concatenate((lost, won))[touching],
        np.repeat((1.0, -1.0), rows)[touching],
        (seen // people).astype(np.int32),
        (seen % people).astype(np.int32),
        winner.astype(np.int32),
        loser.astype(np.int32),
    )


def _starts(codes: AnyArray, size: int) -> AnyArray:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size)))).astype(np.int64)


def slope_of(expertise: Any) -> Any:
    """What one judgment tells of the difference of true scores: c."""
    return expertise / np.sqrt(2.0 * (1.0 + expertise**2))


def curves(sights: Sights, scores: FloatArray, slopes: FloatArray, queries: AnyArray, people: int) -> FloatArray:
    """Log likelihood of every annotator's judgments on these queries, for each c; queries × annotators × slopes."""
    found: FloatArray = _curves(sights, scores, slopes, np.asarray(queries, np.int64), people)
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


def climb(
    sights: Sights, scores: FloatArray, slopes: FloatArray, domain: Any, variance: float, rounds: int = 20
) -> FloatArray:
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
