"""What the true list of each query may be, given scores and expertise: the E-step, query by query in threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.learning.crowd import Crowd, Query
from crowdrank.likelihoods.list_posterior import distances, exact, pair_weights
from crowdrank.likelihoods.list_sampling import gibbs, transpositions
from crowdrank.likelihoods.top_posterior import pull_of, top_distances, top_gibbs

Vector = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Sampler = Literal["auto", "exact", "gibbs", "paper"]

# Up to so many items all sets are summed over: longer lists are drawn quicker than summed.
EXACT_UP_TO = 10
# Sweeps before the first draw, from Borda's order and from where the last step left off.
_COLD, _WARM = 6, 2
# Of the paper's sampler, Nₛ.
PAPER_STEPS = 500
_AT_ONCE = 16


class Posterior(NamedTuple):
    """The true list of one query."""

    orders: Integers
    """Draws, one a row, best first; with `top` only the first items."""
    best: Integers
    """The likeliest list."""
    distance: Vector
    """How far each of the query's lists lies from it, on average."""
    above: Vector | None
    """P(a before b), for whole lists."""


@dataclass(frozen=True)
class Drawing:
    """How the true lists are found."""

    sampler: Sampler = "auto"
    draws: int = 20
    seed: int = 0

    def posteriors(
        self, crowd: Crowd, scores: Vector, theta: Vector, step: int, before: Sequence[Posterior] | None
    ) -> list[Posterior]:
        """Of every query; drawn on from where the chains stood `before`."""
        parts = [range(a, min(a + _AT_ONCE, len(crowd.queries))) for a in range(0, len(crowd.queries), _AT_ONCE)]

        def some(part: range) -> list[Posterior]:
            rng = np.random.default_rng([self.seed, step, part.start])
            return [
                self._one(crowd.queries[q], scores, theta, rng, None if before is None else before[q]) for q in part
            ]

        if len(parts) == 1:
            return some(parts[0])
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [found for part in pool.map(some, parts) for found in part]

    def _one(
        self, query: Query, scores: Vector, theta: Vector, rng: np.random.Generator, before: Posterior | None
    ) -> Posterior:
        own = scores[query.start : query.start + query.size]
        said = query.theta(theta)
        if query.top is not None:
            return self._first_items(query, own, said, rng, before)
        weight = pair_weights(query.item, query.place, query.offsets, said, query.size)
        orders, best, above = self._list(query, own, weight, rng, before)
        return Posterior(orders, best, distances(query.item, query.place, query.offsets, above), above)

    def _list(
        self, query: Query, own: Vector, weight: Vector, rng: np.random.Generator, before: Posterior | None
    ) -> tuple[Integers, Integers, Vector]:
        if self.sampler == "exact" or (self.sampler == "auto" and query.size <= EXACT_UP_TO):
            sums = exact(own, weight, rng.random((self.draws, query.size)))
            return sums.orders, sums.best, sums.above
        if self.sampler == "paper":
            luck = rng.random((PAPER_STEPS, 3))
            drawn = transpositions(own, weight, rng.permutation(query.size), luck, self.draws)
        else:
            start, warm_up = (query.borda(), _COLD) if before is None else (before.orders[-1], _WARM)
            drawn = gibbs(own, weight, start, rng.random((warm_up + self.draws, query.size)), warm_up)
        return drawn.orders, drawn.best, drawn.above

    def _first_items(
        self, query: Query, own: Vector, said: Vector, rng: np.random.Generator, before: Posterior | None
    ) -> Posterior:
        assert query.top is not None
        start, warm_up = (query.borda()[: query.top], _COLD) if before is None else (before.orders[-1], _WARM)
        luck = rng.random((warm_up + self.draws, 3 * query.top))
        drawn = top_gibbs(own, pull_of(query.tops, said, query.size), start, luck, warm_up)
        return Posterior(drawn.orders, drawn.best, top_distances(drawn.orders, query.tops, query.size), None)
