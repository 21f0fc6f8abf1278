"""EM for learning to rank from crowds (Wu et al. 2016, Algorithm 2): true lists, expertise, ranking function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import EncodedSideInformation
from crowdrank.engines import LOCAL, Engine, ShardedData
from crowdrank.engines.local import piece_ranges
from crowdrank.ltr.expertise import MAX_THETA, estimate_theta
from crowdrank.ltr.linear import Ranker, Scorer
from crowdrank.ltr.list_posterior import exact_posterior, expected_distances, gibbs, metropolis_swaps, pair_weights
from crowdrank.ltr.top_k_posterior import potentials, top_k_distances, top_k_gibbs
from crowdrank.ltr.training_set import CrowdLists, QueryLists
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists
from crowdrank.results import Convergence

# E-step: the posterior of each query's true list given scores and expertise, computed by an engine.

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
        self, held: ShardedData, scores: FloatArray, theta: FloatArray
    ) -> tuple[ShardedData, list[ListPosterior]]:
        """The posterior of every query, and the held queries with the new states of their chains."""
        held, (found,) = held.map_and_sum(self._run_batches, scores, theta)
        return held, [posterior for batch in found for posterior in batch]

    def _run_batches(
        self, batches: Sequence[QueryBatch], scores: FloatArray, theta: FloatArray
    ) -> tuple[list[QueryBatch], tuple[list[list[ListPosterior]]]]:
        found = [self._run_batch(batch, scores, theta) for batch in batches]
        advanced = [
            batch._replace(states=[posterior.orders[-1] for posterior in posteriors])
            for batch, posteriors in zip(batches, found, strict=True)
        ]
        return advanced, (found,)

    def _run_batch(self, batch: QueryBatch, scores: FloatArray, theta: FloatArray) -> list[ListPosterior]:
        # Seeded by batch, so that draws do not depend on where a batch runs. Every iteration uses the same random
        # numbers: EM then has a fixed point to converge to, instead of moving about by the noise of its draws.
        rng = np.random.default_rng([self.seed, batch.first])
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


Labels = Literal["map", "expected"]

CONVERGENCE_UNIT, REMEDY = "of change in the last iteration", "increase iterations"

# Starting expertise: negative, because reversing all lists and the sign of θ gives the same likelihood.
INITIAL_THETA = -1.0
# EM approaches the right scale of the scores slowly, and the expertise of good annotators too, so both are extrapolated
# (see `Secant`). Slopes of the map from one iteration to the next are kept between these bounds …
_SCALE_SLOPES, _THETA_SLOPES = (-1.0, 0.8), (0.0, 0.8)
# … and the scale changes by no more than this factor per iteration, θ by no more than this.
_MAX_SCALE_FACTOR, _MAX_THETA_STEP = 2.0, 0.5


class EMResult(NamedTuple):
    """End of EM.

    Parameters
    ----------
    scorer : Scorer
        The trained ranking function.
    theta : array
        Expertise θ of each annotator; empty for methods without annotator models.
    posteriors : list of ListPosterior
        Posterior of each query's true list.
    convergence : Convergence
        Whether and where EM stopped.
    """

    scorer: Scorer
    theta: FloatArray
    posteriors: list[ListPosterior]
    convergence: Convergence


@dataclass(frozen=True)
class EM:
    """Settings of EM.

    Parameters
    ----------
    ranker : Ranker
        Trains the ranking function in the M-step.
    e_step : EStep
        How the posteriors of the true lists are computed.
    labels : {"map", "expected"}
        Lists that the ranker is trained on: the most probable list of each query, or all draws by their frequency.
    prior_lists : float
        Pseudo-lists of average expertise that are added to each annotator.
    iterations : int
        Maximum number of iterations.
    tolerance : float
        Stop when no θ changes by more, nor the scores by more than this fraction of their standard deviation.
    known : Knowledge
        Side information on the annotators.
    engine : Engine
        Where the E-step runs. The ranking function is trained locally.
    """

    ranker: Ranker
    e_step: EStep
    labels: Labels
    prior_lists: float
    iterations: int
    tolerance: float
    known: EncodedSideInformation
    engine: Engine = LOCAL

    def run(
        self, crowd: CrowdLists, features: FloatArray, progress: Callable[[int], None] = lambda step: None
    ) -> EMResult:
        """Iterate until convergence; `progress` is called with the number of each finished iteration."""
        scores, theta = np.zeros(len(features)), self._initial_theta(crowd)
        scorer: Scorer | None = None
        posteriors: list[ListPosterior] = []
        held = distribute(crowd.queries, self.engine)
        log_scale = Secant(_SCALE_SLOPES, float(np.log(_MAX_SCALE_FACTOR)), first_slope=_SCALE_SLOPES[1])
        expertise = Secant(_THETA_SLOPES, _MAX_THETA_STEP)
        assumed = theta
        step, change = 0, np.inf
        while scorer is None or (step < self.iterations and change > self.tolerance):
            held, posteriors = self.e_step.posteriors(held, scores, assumed)
            theta = self._resolve_sign(crowd, self.estimate_theta(crowd, posteriors))
            lists = training_lists(crowd.queries, posteriors, self.labels)
            scorer = self.ranker.fit(lists, features, crowd.items.starts, scorer)
            new_scores = crowd.items.centre(scorer.scores(features))
            change = max(float(np.max(np.abs(theta - assumed))), _relative_change(scores, new_scores))
            if self.labels == "map":
                scores, assumed = new_scores, theta
            else:
                scores = _extrapolated(scores, new_scores, log_scale)
                assumed = np.clip(expertise.next(assumed, theta), -MAX_THETA, MAX_THETA)
            step += 1
            progress(step)
        convergence = Convergence(change <= self.tolerance, step, change, CONVERGENCE_UNIT, REMEDY)
        return EMResult(scorer, theta, posteriors, convergence)

    def _resolve_sign(self, crowd: CrowdLists, theta: FloatArray) -> FloatArray:
        """Flip the sign of θ if most annotators come out as reversed.

        Reversing all lists and the sign of θ gives the same likelihood. If side information or known lists determine
        the sign, it is kept.
        """
        determined = self.known.has_annotators or any((query.annotator < 0).any() for query in crowd.queries)
        return -theta if not determined and np.sum(np.sign(theta)) > 0 else theta

    def estimate_theta(self, crowd: CrowdLists, posteriors: Sequence[ListPosterior]) -> FloatArray:
        """M-step for the expertise of the annotators."""
        annotator = np.concatenate([query.annotator for query in crowd.queries])
        weight = np.concatenate([query.weight for query in crowd.queries])
        distance = np.concatenate([posterior.distance for posterior in posteriors]) * weight
        own = annotator >= 0
        total = np.bincount(annotator[own], distance[own], crowd.annotators).astype(np.float64)
        return estimate_theta(crowd.statistics, total, self.prior_lists, self.known)

    def _initial_theta(self, crowd: CrowdLists) -> FloatArray:
        """A starting point that satisfies the side information."""
        start = np.full(crowd.annotators, INITIAL_THETA)
        distance = crowd.statistics.expected_totals(start)
        return estimate_theta(crowd.statistics, distance, self.prior_lists, self.known)


def training_lists(queries: Sequence[QueryLists], posteriors: Sequence[ListPosterior], labels: Labels) -> RankedLists:
    """Training data of the ranker: the most probable list of each query, or all draws by their frequency."""
    parts = [
        _query_lists(query, posterior.best[None] if labels == "map" else posterior.orders)
        for query, posterior in zip(queries, posteriors, strict=True)
    ]
    item, place, sizes, weight = zip(*parts, strict=True)
    offsets = np.append(0, np.cumsum(np.concatenate(sizes)))
    return RankedLists(
        np.concatenate(item).astype(np.int32), np.concatenate(place).astype(np.int32), offsets, np.concatenate(weight)
    )


def _query_lists(query: QueryLists, orders: IntArray) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Item, place, length and weight of the distinct orders; items beyond the first k are tied on the last place."""
    orders, counts = _distinct(orders)
    count, length = orders.shape
    place = np.minimum(np.arange(query.size), length)
    if length < query.size:
        missing = np.ones((count, query.size), bool)
        np.put_along_axis(missing, orders, False, axis=1)
        orders = np.hstack((orders, np.nonzero(missing)[1].reshape(count, -1)))
    return (
        (orders + query.start).ravel(),
        np.tile(place, count),
        np.full(count, query.size),
        counts / counts.sum(),
    )


def _relative_change(before: FloatArray, after: FloatArray) -> float:
    """Root mean square change of the scores, in standard deviations."""
    scale = float(np.std(after))
    return float(np.sqrt(np.mean((after - before) ** 2))) / scale if scale > 0 else 0.0


@dataclass
class Secant:
    """Secant steps towards a fixed point: Aitken's extrapolation along the last step (Anderson mixing of depth one).

    Parameters
    ----------
    slopes : tuple of two floats
        Bounds of the slope of the map along the last step; the upper one is below 1.
    limit : float
        The most that a component is moved beyond the value of the map.
    first_slope : float, default 0.0
        Slope before there is a last step.
    """

    slopes: tuple[float, float]
    limit: float
    first_slope: float = 0.0
    last: tuple[FloatArray, FloatArray] | None = None

    def next(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Where to evaluate the map next, if its value at x is y."""
        residual, slope = y - x, self.first_slope
        if self.last is not None:
            step, change = x - self.last[0], residual - self.last[1]
            if square := float(step @ step):
                slope = float(np.clip(1 + change @ step / square, *self.slopes))
        self.last = x, residual
        return np.asarray(y + np.clip(slope / (1 - slope) * residual, -self.limit, self.limit))


def _extrapolated(before: FloatArray, after: FloatArray, log_scale: Secant) -> FloatArray:
    """The scores after an iteration, with their standard deviation extrapolated."""
    old, new = float(np.std(before)), float(np.std(after))
    if old == 0 or new == 0:
        return after
    wanted = log_scale.next(np.log([old]), np.log([new]))
    return np.asarray(after * np.exp(wanted[0]) / new)


def _distinct(orders: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct orders, and how often each occurs."""
    # Hash each order by a random linear combination of its items: much faster than comparing rows.
    key = np.random.default_rng(0).integers(1 << 62, size=orders.shape[1])
    _, first, counts = np.unique(orders @ key, return_index=True, return_counts=True)
    return orders[first], counts
