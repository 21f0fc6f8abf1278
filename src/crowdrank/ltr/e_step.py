"""What the true list of each query may be, given scores and expertise: the E-step, query by query by an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines import Engine, ShardedData
from crowdrank.engines.local import piece_ranges
from crowdrank.ltr.list_posterior import distances, exact, pair_weights
from crowdrank.ltr.list_sampling import gibbs, transpositions
from crowdrank.ltr.top_k_posterior import pull_of, top_distances, top_gibbs
from crowdrank.ltr.training_set import Query

Sampler = Literal["auto", "exact", "gibbs", "paper"]

# Up to so many items all sets are summed over: longer lists are drawn quicker than summed.
EXACT_UP_TO = 10
# Sweeps before the first draw, from Borda's order and from where the last step left off.
_COLD, _WARM = 6, 2
# Of the paper's sampler, Nₛ.
PAPER_STEPS = 500
# Queries with one source of randomness.
_TOGETHER = 16


class Posterior(NamedTuple):
    """The true list of one query."""

    orders: IntArray
    """Draws, one a row, best first; with `top` only the first items."""
    best: IntArray
    """The likeliest list."""
    distance: FloatArray
    """How far each of the query's lists lies from it, on average."""
    above: FloatArray | None
    """P(a before b), for whole lists."""


class Part(NamedTuple):
    """Some queries, the number of the first, and in which order the chain of each stands, if there is one yet."""

    first: int
    queries: Sequence[Query]
    stand: Sequence[IntArray | None]


def spread(queries: Sequence[Query], engine: Engine) -> ShardedData:
    """Queries in parts, and parts in pieces: which, depends on how many there are alone."""
    parts = [
        Part(first, some, [None] * len(some))
        for first in range(0, len(queries), _TOGETHER)
        for some in [queries[first : first + _TOGETHER]]
    ]
    return engine.distribute([parts[run.start : run.stop] for run in piece_ranges(len(parts))])


@dataclass(frozen=True)
class Drawing:
    """How the true lists are found."""

    sampler: Sampler = "auto"
    draws: int = 20
    seed: int = 0

    def posteriors(
        self, held: ShardedData, scores: FloatArray, theta: FloatArray, step: int
    ) -> tuple[ShardedData, list[Posterior]]:
        """Of every query; drawn on from where the chains stand, and where they stand then."""
        held, (found,) = held.map_and_sum(self._piece, scores, theta, step)
        return held, [one for part in found for one in part]

    def _piece(
        self, parts: Sequence[Part], scores: FloatArray, theta: FloatArray, step: int
    ) -> tuple[list[Part], tuple[list[list[Posterior]]]]:
        found = [self._part(part, scores, theta, step) for part in parts]
        stand = [part._replace(stand=[one.orders[-1] for one in of]) for part, of in zip(parts, found, strict=True)]
        return stand, (found,)

    def _part(self, part: Part, scores: FloatArray, theta: FloatArray, step: int) -> list[Posterior]:
        rng = np.random.default_rng([self.seed, step, part.first])
        pairs = zip(part.queries, part.stand, strict=True)
        return [self._one(query, scores, theta, rng, stood) for query, stood in pairs]

    def _one(
        self, query: Query, scores: FloatArray, theta: FloatArray, rng: np.random.Generator, stood: IntArray | None
    ) -> Posterior:
        own = scores[query.start : query.start + query.size]
        said = query.theta(theta)
        if query.top is not None:
            return self._first_items(query, own, said, rng, stood)
        weight = pair_weights(query.item, query.place, query.offsets, said, query.size)
        orders, best, above = self._list(query, own, weight, rng, stood)
        return Posterior(orders, best, distances(query.item, query.place, query.offsets, above), above)

    def _list(
        self, query: Query, own: FloatArray, weight: FloatArray, rng: np.random.Generator, stood: IntArray | None
    ) -> tuple[IntArray, IntArray, FloatArray]:
        if self.sampler == "exact" or (self.sampler == "auto" and query.size <= EXACT_UP_TO):
            sums = exact(own, weight, rng.random((self.draws, query.size)))
            return sums.orders, sums.best, sums.above
        if self.sampler == "paper":
            luck = rng.random((PAPER_STEPS, 3))
            drawn = transpositions(own, weight, rng.permutation(query.size), luck, self.draws)
        else:
            start, warm_up = (query.borda(), _COLD) if stood is None else (stood, _WARM)
            drawn = gibbs(own, weight, start, rng.random((warm_up + self.draws, query.size)), warm_up)
        return drawn.orders, drawn.best, drawn.above

    def _first_items(
        self, query: Query, own: FloatArray, said: FloatArray, rng: np.random.Generator, stood: IntArray | None
    ) -> Posterior:
        assert query.top is not None
        start, warm_up = (query.borda()[: query.top], _COLD) if stood is None else (stood, _WARM)
        luck = rng.random((warm_up + self.draws, 3 * query.top))
        drawn = top_gibbs(own, pull_of(query.tops, said, query.size), start, luck, warm_up)
        return Posterior(drawn.orders, drawn.best, top_distances(drawn.orders, query.tops, query.size), None)
