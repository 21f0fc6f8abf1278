"""E-step: the posterior of each query's true list given scores and expertise, computed by an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines import Engine, ShardedData
from crowdrank.engines.local import piece_ranges
from crowdrank.ltr.list_posterior import exact_posterior, expected_distances, pair_weights
from crowdrank.ltr.list_sampling import gibbs, metropolis_swaps
from crowdrank.ltr.top_k_posterior import potentials, top_k_distances, top_k_gibbs
from crowdrank.ltr.training_set import QueryLists

Sampler = Literal["auto", "exact", "gibbs", "paper"]

# With sampler "auto", lists of up to this many items are summed over exactly: longer ones are sampled faster.
EXACT_UP_TO = 10
# Warm-up sweeps when a chain starts from Borda's order, and when it continues from the last EM iteration.
_COLD_WARM_UP, _WARM_WARM_UP = 6, 2
# Steps of the paper's sampler, Nₛ.
PAPER_STEPS = 500
# Queries that share a random generator.
_QUERIES_PER_BATCH = 16


class ListPosterior(NamedTuple):
    """Posterior of one query's true list.

    Parameters
    ----------
    orders : array
        Draws, one per row, best first; with `top`, only the first items.
    best : array
        The most probable list.
    distance : array
        Expected distance of each of the query's lists to the true list.
    precedence : array or None
        `[a, b]`: P(a before b), for full lists.
    """

    orders: IntArray
    best: IntArray
    distance: FloatArray
    precedence: FloatArray | None


class QueryBatch(NamedTuple):
    """Consecutive queries, the number of the first one, and the state of each one's chain (None before the first)."""

    first: int
    queries: Sequence[QueryLists]
    states: Sequence[IntArray | None]


def distribute(queries: Sequence[QueryLists], engine: Engine) -> ShardedData:
    """Give the queries to an engine, in batches that depend only on their number."""
    batches = [
        QueryBatch(first, batch, [None] * len(batch))
        for first in range(0, len(queries), _QUERIES_PER_BATCH)
        for batch in [queries[first : first + _QUERIES_PER_BATCH]]
    ]
    return engine.distribute([batches[run.start : run.stop] for run in piece_ranges(len(batches))])


@dataclass(frozen=True)
class EStep:
    """Settings of the E-step.

    Parameters
    ----------
    sampler : {"auto", "exact", "gibbs", "paper"}, default "auto"
        Exact sums, Gibbs sampling or the paper's Metropolis sampler; "auto" is exact for short lists, else Gibbs.
    draws : int, default 20
        Draws per query.
    seed : int, default 0
        Seed of the draws.
    """

    sampler: Sampler = "auto"
    draws: int = 20
    seed: int = 0

    def posteriors(
        self, held: ShardedData, scores: FloatArray, theta: FloatArray, step: int
    ) -> tuple[ShardedData, list[ListPosterior]]:
        """The posterior of every query, and the held queries with the new states of their chains."""
        held, (found,) = held.map_and_sum(self._run_batches, scores, theta, step)
        return held, [posterior for batch in found for posterior in batch]

    def _run_batches(
        self, batches: Sequence[QueryBatch], scores: FloatArray, theta: FloatArray, step: int
    ) -> tuple[list[QueryBatch], tuple[list[list[ListPosterior]]]]:
        found = [self._run_batch(batch, scores, theta, step) for batch in batches]
        advanced = [
            batch._replace(states=[posterior.orders[-1] for posterior in posteriors])
            for batch, posteriors in zip(batches, found, strict=True)
        ]
        return advanced, (found,)

    def _run_batch(self, batch: QueryBatch, scores: FloatArray, theta: FloatArray, step: int) -> list[ListPosterior]:
        # Seeded by iteration and batch, so that draws do not depend on where a batch runs.
        rng = np.random.default_rng([self.seed, step, batch.first])
        pairs = zip(batch.queries, batch.states, strict=True)
        return [self._posterior(query, scores, theta, rng, state) for query, state in pairs]

    def _posterior(
        self,
        query: QueryLists,
        scores: FloatArray,
        theta: FloatArray,
        rng: np.random.Generator,
        state: IntArray | None,
    ) -> ListPosterior:
        own = scores[query.start : query.start + query.size]
        list_theta = query.theta(theta)
        if query.top is not None:
            return self._top_k_posterior(query, own, list_theta, rng, state)
        weight = pair_weights(query.item, query.place, query.offsets, list_theta, query.size)
        orders, best, precedence = self._full_list(query, own, weight, rng, state)
        distance = expected_distances(query.item, query.place, query.offsets, precedence)
        return ListPosterior(orders, best, distance, precedence)

    def _full_list(
        self, query: QueryLists, own: FloatArray, weight: FloatArray, rng: np.random.Generator, state: IntArray | None
    ) -> tuple[IntArray, IntArray, FloatArray]:
        if self.sampler == "exact" or (self.sampler == "auto" and query.size <= EXACT_UP_TO):
            exact = exact_posterior(own, weight, rng.random((self.draws, query.size)))
            return exact.orders, exact.best, exact.precedence
        if self.sampler == "paper":
            uniforms = rng.random((PAPER_STEPS, 3))
            sampled = metropolis_swaps(own, weight, rng.permutation(query.size), uniforms, self.draws)
        else:
            start, warm_up = (query.borda(), _COLD_WARM_UP) if state is None else (state, _WARM_WARM_UP)
            sampled = gibbs(own, weight, start, rng.random((warm_up + self.draws, query.size)), warm_up)
        return sampled.orders, sampled.best, sampled.precedence

    def _top_k_posterior(
        self,
        query: QueryLists,
        own: FloatArray,
        list_theta: FloatArray,
        rng: np.random.Generator,
        state: IntArray | None,
    ) -> ListPosterior:
        assert query.top is not None
        start, warm_up = (query.borda()[: query.top], _COLD_WARM_UP) if state is None else (state, _WARM_WARM_UP)
        uniforms = rng.random((warm_up + self.draws, 3 * query.top))
        terms = potentials(query.tops, list_theta, query.size)
        sampled = top_k_gibbs(own, terms, start, uniforms, warm_up)
        distance = top_k_distances(sampled.orders, query.tops, query.size)
        return ListPosterior(sampled.orders, sampled.best, distance, None)
