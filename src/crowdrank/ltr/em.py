"""Learning to rank from crowds by EM (Wu et al. 2016, Algorithm 2): true lists, expertise and function in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import EncodedSideInformation
from crowdrank.engines import LOCAL, Engine
from crowdrank.ltr.e_step import Drawing, Posterior, spread
from crowdrank.ltr.expertise import expertise_of
from crowdrank.ltr.rankers.linear import Ranker, Scorer
from crowdrank.ltr.training_set import Crowd, Query
from crowdrank.models.lists.plackett_luce_likelihood import Lists
from crowdrank.results import Convergence

Labels = Literal["map", "expected"]

# Everyone starts as good as this: below 0, since all lists upside down with −θ fit as well.
START = -1.0
# A step of EM goes a small part of the way to the right spread of scores: as many steps more are taken at once …
_STRETCH = 4.0
# … but no more than this factor.
_FARTHEST = 2.0


class Learnt(NamedTuple):
    """Where EM ended."""

    scorer: Scorer
    theta: FloatArray
    posteriors: list[Posterior]
    convergence: Convergence


@dataclass(frozen=True)
class EM:
    """How EM goes: what is drawn, what the ranker learns from, and when it stops."""

    ranker: Ranker
    drawing: Drawing
    labels: Labels
    prior_lists: float
    iterations: int
    tolerance: float
    known: EncodedSideInformation
    engine: Engine = LOCAL
    """Where the true lists are found; the function is trained here."""

    def run(self, crowd: Crowd, values: FloatArray, tell: Callable[[int], None] = lambda step: None) -> Learnt:
        scores, theta = np.zeros(len(values)), self._held(crowd, np.full(crowd.annotators, START))
        scorer: Scorer | None = None
        found: list[Posterior] = []
        held = spread(crowd.queries, self.engine)
        step, moved = 0, np.inf
        while scorer is None or (step < self.iterations and moved > self.tolerance):
            held, found = self.drawing.posteriors(held, scores, theta, step)
            last, theta = theta, self._upright(crowd, self.expertise(crowd, found))
            lists = labels_of(crowd.queries, found, self.labels)
            scorer = self.ranker.fit(lists, values, crowd.items.starts, scorer)
            fresh = crowd.items.centre(scorer.scores(values))
            moved = max(float(np.max(np.abs(theta - last))), _change(scores, fresh))
            scores = fresh if self.labels == "map" else _stretched(scores, fresh)
            step += 1
            tell(step)
        unit, remedy = "short of standing still", "raise iterations"
        return Learnt(scorer, theta, found, Convergence(moved <= self.tolerance, step, moved, unit, remedy))

    def _upright(self, crowd: Crowd, theta: FloatArray) -> FloatArray:
        """All lists upside down, with −θ, fit as well: that solution, by which most are reversed, is refused.

        Where something tells which way is up, most may be.
        """
        told = self.known.has_annotators or any((query.annotator < 0).any() for query in crowd.queries)
        return -theta if not told and np.sum(np.sign(theta)) > 0 else theta

    def expertise(self, crowd: Crowd, found: Sequence[Posterior]) -> FloatArray:
        who = np.concatenate([query.annotator for query in crowd.queries])
        weight = np.concatenate([query.weight for query in crowd.queries])
        far = np.concatenate([one.distance for one in found]) * weight
        total = np.bincount(who[who >= 0], far[who >= 0], crowd.annotators).astype(np.float64)
        return expertise_of(crowd.kinds, total, self.prior_lists, self.known)

    def _held(self, crowd: Crowd, theta: FloatArray) -> FloatArray:
        """A start that heeds what is known."""
        return expertise_of(crowd.kinds, crowd.kinds.totals(theta), self.prior_lists, self.known)


def labels_of(queries: Sequence[Query], found: Sequence[Posterior], labels: Labels) -> Lists:
    """What the ranker learns from: the likeliest list of each query, or all draws, each by its share."""
    parts = [
        _of_query(query, one.best[None] if labels == "map" else one.orders)
        for query, one in zip(queries, found, strict=True)
    ]
    item, place, sizes, weight = zip(*parts, strict=True)
    offsets = np.append(0, np.cumsum(np.concatenate(sizes)))
    return Lists(
        np.concatenate(item).astype(np.int32), np.concatenate(place).astype(np.int32), offsets, np.concatenate(weight)
    )


def _of_query(query: Query, orders: IntArray) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Item, place, length and weight of the different orders; items beyond the first are tied on the last place."""
    orders, times = _different(orders)
    count, length = orders.shape
    place = np.minimum(np.arange(query.size), length)
    if length < query.size:
        left = np.ones((count, query.size), bool)
        np.put_along_axis(left, orders, False, axis=1)
        orders = np.hstack((orders, np.nonzero(left)[1].reshape(count, -1)))
    return (
        (orders + query.start).ravel(),
        np.tile(place, count),
        np.full(count, query.size),
        times / times.sum(),
    )


def _change(before: FloatArray, after: FloatArray) -> float:
    """How far scores have moved, in units of their spread."""
    spread = float(np.std(after))
    return float(np.sqrt(np.mean((after - before) ** 2))) / spread if spread > 0 else 0.0


def _stretched(before: FloatArray, after: FloatArray) -> FloatArray:
    """Scores whose spread has moved further the way it is going."""
    old, new = float(np.std(before)), float(np.std(after))
    if old == 0 or new == 0:
        return after
    return np.asarray(after * np.clip((new / old) ** _STRETCH, 1 / _FARTHEST, _FARTHEST))


def _different(orders: IntArray) -> tuple[IntArray, IntArray]:
    """Each order once, and how often it stands there."""
    # Sums of random numbers by place tell orders apart, much quicker than comparing all places.
    luck = np.random.default_rng(0).integers(1 << 62, size=orders.shape[1])
    _, first, times = np.unique(orders @ luck, return_index=True, return_counts=True)
    return orders[first], times
