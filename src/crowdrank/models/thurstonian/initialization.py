"""Starting values of the TPP sampler: domains of queries, expertise of annotators, and scores.

Scores start at the majority of the judgments. Given scores, the judgments of each annotator in each query have a
likelihood at each expertise of a grid, by which queries are clustered into domains. Then scores are fitted again, and
so on for a few rounds.

Here each judgment is treated on its own: with perceived utilities integrated out and difficulty one, it has probability
Φ(c (s_a − s_b)) with the marginal slope c = τ / √(2 (1 + τ²)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.data import Items
from crowdrank.engines.compilation import compiled
from crowdrank.inference.special import inverse_mills_table, log_normal_cdf_scalar, log_normal_cdf_table
from crowdrank.models.thurstonian.gibbs import Prior
from crowdrank.models.thurstonian.layout import Layout

# Clustering of queries into domains, by how well each annotator does in each query.
#
# The data are curves: the log-likelihood of an annotator's judgments in a query at each expertise of a grid. A domain
# explains its queries by one expertise per annotator, which is integrated out, and a Dirichlet process is the prior
# of the partition. A greedy search splits domains in two, reassigns queries one by one, and merges domains, as long
# as that raises the evidence (after the split-merge moves of Jain & Neal 2004). A query may be reversed within its
# domain, because negating the scores of a query and the expertise of all annotators leaves its likelihood unchanged.

GRID = np.array([-4.0, -2.5, -1.6, -1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0, 1.6, 2.5, 4.0])
"""Grid of expertise. It is symmetric, so that a reversed curve belongs to the reversed query."""
_SPLIT_TRIALS = 8
# Pairs of clusters that are divided anew: those that lose least if they are merged.
_DIVIDED_PAIRS, _DIVISION_TRIALS = 4, 16
# Gain in log evidence that is more than a rounding error.
_LEAST_GAIN = 1e-6
_MAX_REASSIGNMENTS = 6
_MAX_PASSES = 10


@dataclass(frozen=True)
class GridPrior:
    """Prior of expertise on the grid, and of the partition.

    Parameters
    ----------
    weights : array per grid point
        Prior probabilities.
    concentration : float, default 1.0
        Concentration of the Dirichlet process: how readily a query starts its own domain.
    """

    weights: FloatArray
    concentration: float = 1.0

    @classmethod
    def normal(cls, mean: float, std: float) -> GridPrior:
        weight = np.gradient(GRID) * np.exp(-0.5 * ((GRID - mean) / std) ** 2)
        return cls(weight / weight.sum())

    def log_evidence(self, log_likelihoods: FloatArray) -> FloatArray:
        """Log-likelihood with expertise integrated out, summed over annotators (the second last axis)."""
        top = log_likelihoods.max(axis=-1)
        return np.asarray(np.sum(top + np.log(np.exp(log_likelihoods - top[..., None]) @ self.weights), axis=-1))

    def posterior(self, log_likelihoods: FloatArray) -> FloatArray:
        """Posterior of each annotator's expertise on the grid."""
        weight = np.exp(log_likelihoods - log_likelihoods.max(axis=-1, keepdims=True)) * self.weights
        return np.asarray(weight / weight.sum(axis=-1, keepdims=True))

    def log_cluster_prior(self, size: Any) -> Any:
        """Log prior of a cluster of this size, up to what all partitions have in common."""
        from scipy.special import gammaln

        return np.log(self.concentration) + gammaln(size)


@dataclass
class QueryClustering:
    """A partition of the queries, and the search for a better one. `search` updates it in place.

    Parameters
    ----------
    log_likelihoods : array of queries × annotators × grid
    prior : GridPrior
    cluster : integer array per query
    sign : array per query
        −1 if the query is reversed relative to its cluster, otherwise 1.
    """

    log_likelihoods: FloatArray
    prior: GridPrior
    cluster: IntArray
    sign: FloatArray

    @property
    def count(self) -> int:
        return int(self.cluster.max()) + 1

    @property
    def sizes(self) -> IntArray:
        return np.bincount(self.cluster, minlength=self.count)

    @property
    def cluster_log_likelihoods(self) -> FloatArray:
        """Sum of the curves of each cluster's queries, as clusters × annotators × grid."""
        return _sum_by_cluster(self._oriented, self.cluster, self.count)

    @property
    def _oriented(self) -> FloatArray:
        return np.where(self.sign[:, None, None] > 0, self.log_likelihoods, self.log_likelihoods[:, :, ::-1])

    def search(self, rng: np.random.Generator, count: int | None = None) -> QueryClustering:
        """Search until nothing improves the evidence, or for exactly `count` clusters."""
        for _ in range(_MAX_PASSES):
            before = self.cluster.copy()
            self._split(rng)
            self._reassign()
            self._merge(count)
            if np.array_equal(before, self.cluster):
                break
        self._fill(rng, count)
        return self

    def divide_anew(self, rng: np.random.Generator, count: int | None = None) -> QueryClustering:
        """Divide pairs of clusters that are alike anew, where that raises the evidence, or until there are `count`.

        Queries that together belong to the other cluster of a pair stay where they are if they are reassigned one by
        one: the expertise there fits them worse until the others have left. The number of clusters stays.
        """
        for _ in range(_MAX_PASSES):
            pairs = sorted(self._merges(), key=lambda merge: -merge[0])[:_DIVIDED_PAIRS]
            better = [self._divide_pair(rng, *pair, mirror) for _, pair, mirror in pairs]
            if not any(better):
                break
        self._fill(rng, count)
        return self

    def _divide_pair(self, rng: np.random.Generator, one: int, other: int, mirror: bool) -> bool:
        """Divide the queries of two clusters anew. Returns whether that raised the evidence."""
        members = np.flatnonzero((self.cluster == one) | (self.cluster == other))
        if len(members) < 3:
            return False
        second = self.cluster[members] == other
        current = ClusterScorer(self._oriented[members], self.prior).log_evidence(second.astype(np.int64), 2)
        sign = np.where(second & mirror, -self.sign[members], self.sign[members])
        curves = self.log_likelihoods[members]
        scorer = ClusterScorer(np.where(sign[:, None, None] > 0, curves, curves[:, :, ::-1]), self.prior)
        splits = [scorer.random_split(rng) for _ in range(_DIVISION_TRIALS)]
        halves = [half for evidence, half in splits if evidence > -np.inf]
        if not halves:
            return False
        evidence, half, flips = max((scorer.oriented_log_evidence(half) for half in halves), key=lambda one: one[0])
        if evidence <= current + _LEAST_GAIN:
            return False
        self.cluster[members] = np.where(half == 1, other, one)
        self.sign[members] = sign * flips[half]
        return True

    def _split(self, rng: np.random.Generator) -> None:
        for number in range(self.count):
            gain, leaving = self._best_split(rng, number)
            if gain > 0:
                self.cluster[leaving] = self.count

    def _fill(self, rng: np.random.Generator, count: int | None) -> None:
        """Split clusters until there are `count`, or one for each query."""
        while count is not None and self.count < min(count, len(self.cluster)):
            self._force_split(rng)

    def _force_split(self, rng: np.random.Generator) -> None:
        """Split the cluster that loses least by it; if none can be split, halve the largest."""
        splits = [self._best_split(rng, number) for number in range(self.count)]
        gain, leaving = max(splits, key=lambda split: split[0])
        if gain == -np.inf:
            leaving = np.flatnonzero(self.cluster == np.argmax(self.sizes))[::2]
        self.cluster[leaving] = self.count

    def _best_split(self, rng: np.random.Generator, number: int) -> tuple[float, IntArray]:
        """Gain in log evidence from splitting a cluster, and the queries that leave it."""
        members = np.flatnonzero(self.cluster == number)
        if len(members) < 2:
            return -np.inf, members[:0]
        scorer = ClusterScorer(self._oriented[members], self.prior)
        whole = scorer.log_evidence(np.zeros(len(members), np.int64), 1)
        evidence, half = max((scorer.random_split(rng) for _ in range(_SPLIT_TRIALS)), key=lambda split: split[0])
        return evidence - whole, members[half == 1] if evidence > -np.inf else members[:0]

    def _reassign(self) -> None:
        """Move each query to its most probable cluster given the other queries, reversed or not."""
        for _ in range(_MAX_REASSIGNMENTS):
            scorer, summed = ClusterScorer(self._oriented, self.prior), self.cluster_log_likelihoods
            log_probs = scorer.signed_log_probabilities(summed, self.sizes)
            log_probs[:, : self.count] = scorer.log_probabilities(summed, self.cluster)
            best = np.argmax(log_probs, axis=1)
            if np.array_equal(best, self.cluster):
                break
            self.sign = np.where(best >= self.count, -self.sign, self.sign)
            self.cluster = _renumber(best % self.count)

    def _merge(self, count: int | None) -> None:
        while self.count > 1:
            gain, (one, other), mirror = self._best_merge()
            if gain <= 0 and (count is None or self.count <= count):
                return
            merged = self.cluster == other
            if mirror:
                self.sign = np.where(merged, -self.sign, self.sign)
            self.cluster = _renumber(np.where(merged, one, self.cluster))

    def _best_merge(self) -> tuple[float, tuple[int, int], bool]:
        """Largest gain in log evidence from a merge, the two clusters, and whether to mirror the second."""
        return max(self._merges())

    def _merges(self) -> list[tuple[float, tuple[int, int], bool]]:
        """Gain in log evidence from each merge, the two clusters, and whether to mirror the second."""
        summed, sizes = self.cluster_log_likelihoods, self.sizes
        separate = self.prior.log_evidence(summed) + self.prior.log_cluster_prior(sizes)
        merges = []
        for one in range(self.count - 1):
            rest = slice(one + 1, None)
            cluster_prior = self.prior.log_cluster_prior(sizes[one] + sizes[rest])
            for mirror in (False, True):
                others = summed[rest, :, ::-1] if mirror else summed[rest]
                gains = self.prior.log_evidence(summed[one] + others) + cluster_prior - separate[one] - separate[rest]
                merges += [(float(gain), (one, one + 1 + k), mirror) for k, gain in enumerate(gains)]
        return merges


class ClusterScorer:
    """Log probabilities of queries in clusters. Uses matrix products of likelihoods, as annotators × queries × grid."""

    def __init__(self, log_likelihoods: FloatArray, prior: GridPrior) -> None:
        self.log_likelihoods, self.prior = log_likelihoods, prior
        by_annotator = np.ascontiguousarray(log_likelihoods.transpose(1, 0, 2))
        top = by_annotator.max(axis=2, keepdims=True)
        self.top = top.sum(axis=(0, 2))
        # Bounded below, because `log_probabilities` divides by it.
        self.likelihoods = np.maximum(np.exp(by_annotator - top), 1e-250)

    def log_evidence(self, cluster: IntArray, count: int) -> float:
        """Log evidence of a partition."""
        summed = _sum_by_cluster(self.log_likelihoods, cluster, count)
        sizes = np.bincount(cluster, minlength=count)
        return float(np.sum(self.prior.log_evidence(summed) + self.prior.log_cluster_prior(sizes)))

    def oriented_log_evidence(self, half: IntArray) -> tuple[float, IntArray, FloatArray]:
        """Log evidence of a partition in two with each half mirrored if that raises it, the halves, and their signs."""
        summed = _sum_by_cluster(self.log_likelihoods, half, 2)
        by_sign = np.stack((self.prior.log_evidence(summed), self.prior.log_evidence(summed[:, :, ::-1])))
        sizes = self.prior.log_cluster_prior(np.bincount(half, minlength=2))
        return float(np.sum(by_sign.max(axis=0) + sizes)), half, np.where(by_sign[0] >= by_sign[1], 1.0, -1.0)

    def log_probabilities(self, summed: FloatArray, cluster: IntArray) -> FloatArray:
        """Log probability of each query in each cluster, given the other queries there; queries × clusters."""
        sizes, rows = np.bincount(cluster, minlength=len(summed)), np.arange(len(cluster))
        posterior = self.prior.posterior(summed).transpose(1, 2, 0)
        log_probs = self._by_cluster(self.likelihoods, posterior) + np.log(np.maximum(sizes, 1e-9))
        # p(query | others in its cluster) = 1 / E[1 / likelihood] under the posterior that includes the query.
        own = posterior.transpose(0, 2, 1)[:, cluster]
        left_out = -np.log(np.einsum("kqg,kqg->kq", own, 1.0 / self.likelihoods)).sum(axis=0) + self.top
        log_probs[rows, cluster] = left_out + np.log(np.maximum(sizes[cluster] - 1.0, self.prior.concentration))
        return np.asarray(log_probs)

    def signed_log_probabilities(self, summed: FloatArray, sizes: AnyArray) -> FloatArray:
        """Log probability of each query in each cluster, then of its mirror image; queries × twice the clusters."""
        posterior, log_sizes = self.prior.posterior(summed).transpose(1, 2, 0), np.log(np.maximum(sizes, 1e-9))
        both = (self.likelihoods, self.likelihoods[:, :, ::-1])
        return np.concatenate([self._by_cluster(one, posterior) + log_sizes for one in both], axis=1)

    def seed_log_probabilities(self, seeds: IntArray) -> FloatArray:
        """Log probability of each query in clusters of one other query each."""
        posterior = self.prior.posterior(self.log_likelihoods[seeds]).transpose(1, 2, 0)
        return self._by_cluster(self.likelihoods, posterior)

    def _by_cluster(self, likelihoods: FloatArray, posterior: FloatArray) -> FloatArray:
        log_probs = np.log(np.maximum(likelihoods @ posterior, 1e-300)).sum(axis=0)
        return np.asarray(log_probs + self.top[:, None])

    def random_split(self, rng: np.random.Generator) -> tuple[float, IntArray]:
        """Split into two clusters around two random queries: the log evidence, and the half of each query."""
        seeds = rng.choice(self.log_likelihoods.shape[0], 2, replace=False)
        half = np.argmax(self.seed_log_probabilities(seeds), axis=1)
        for _ in range(_MAX_REASSIGNMENTS):
            if half.min() == half.max():
                return -np.inf, half
            better = np.argmax(self.log_probabilities(_sum_by_cluster(self.log_likelihoods, half, 2), half), axis=1)
            if np.array_equal(better, half):
                break
            half = better
        if half.min() == half.max():
            return -np.inf, half
        return self.log_evidence(half, 2), half


def _sum_by_cluster(log_likelihoods: FloatArray, cluster: IntArray, count: int) -> FloatArray:
    member = (cluster == np.arange(count)[:, None]).astype(np.float64)
    flat = log_likelihoods.reshape(len(log_likelihoods), -1)
    return np.asarray((member @ flat).reshape(count, *log_likelihoods.shape[1:]))


def _renumber(cluster: IntArray) -> IntArray:
    return np.unique(cluster, return_inverse=True)[1].astype(np.int64)


# More rounds would fit scores to noise, because the prior variance of the scores follows them.
_ROUNDS = 3
# Queries that are clustered together, and processed at once. The others join the most probable domain.
_CHUNK = 400
# Queries from which the scale of the scores is chosen.
_SCALE_QUERIES = 50
# Assumed variance of the perception noise relative to the answer noise of an annotator with expertise one.
_NOISE_RATIO = 0.5
_SCORE_SCALES = 2.0 ** np.arange(0, 7)
_RESCALINGS = 2.0 ** np.arange(-1, 1.5, 0.5)
# Lower bound on the score variance: majority scores of cyclic judgments are all zero.
_MIN_VARIANCE = 0.01


class InitialValues(NamedTuple):
    """Starting values of the chains.

    Parameters
    ----------
    scores : array per item
    domain : integer array per query
    expertise : array of annotators × domains
    variance : float
        Variance of the scores.
    """

    scores: FloatArray
    domain: IntArray
    expertise: FloatArray
    variance: float


def majority_scores(layout: Layout, items: Items) -> FloatArray:
    """Wins minus losses of each item over its number of judgments plus one, centred within queries."""
    size = len(items)
    utilities = (layout.winner_utility, layout.loser_utility)
    won, lost = (np.bincount(layout.utility_item[side], minlength=size) for side in utilities)
    return items.centre((won - lost) / (won + lost + 1.0))


def initial_values(
    rng: np.random.Generator,
    layout: Layout,
    majority: FloatArray,
    n_annotators: int,
    grid_prior: GridPrior,
    count: int | None = None,
) -> InitialValues:
    """Starting values from majority scores, with `count` domains or as many as the evidence favours."""
    grid = _GridLikelihood(layout, n_annotators, grid_prior)
    chosen = np.sort(rng.permutation(grid.queries)[:_CHUNK])
    rest = np.setdiff1d(np.arange(grid.queries), chosen)
    scores = majority * grid.best_score_scale(majority, chosen)
    domain, sign = np.zeros(grid.queries, np.int64), np.ones(grid.queries)
    for _ in range(_ROUNDS):
        log_likelihoods = grid.log_likelihoods(scores, chosen)
        clustering = QueryClustering(log_likelihoods, grid_prior, domain[chosen], np.ones(len(chosen)))
        clustering.search(rng, count)
        summed = clustering.cluster_log_likelihoods
        domain[chosen], sign[chosen] = clustering.cluster, clustering.sign
        domain[rest], sign[rest] = grid.assign(scores, summed, clustering.sizes, rest)
        scores, posterior = grid.per_item(sign) * scores, grid_prior.posterior(summed)
        slopes = (posterior @ grid.slopes).T
        variance = max(_MIN_VARIANCE, float(np.mean(scores**2)))
        scores, curvature = fit_scores(layout, scores, slopes, domain, variance)
        scores = scores * grid.best_rescaling(scores, chosen, clustering.cluster)
    return InitialValues(scores, domain, (posterior @ GRID).T, float(np.mean(scores**2 + 1 / curvature)))


def recluster(
    rng: np.random.Generator, layout: Layout, values: InitialValues, grid_prior: GridPrior, count: int | None = None
) -> InitialValues:
    """The same values with queries assigned to domains again, given these scores; empty domains are dropped."""
    grid = _GridLikelihood(layout, len(values.expertise), grid_prior)
    queries = np.arange(grid.queries)
    _, cluster = np.unique(values.domain, return_inverse=True)
    log_likelihoods = grid.log_likelihoods(values.scores, queries)
    found = QueryClustering(log_likelihoods, grid_prior, cluster.astype(np.int64), np.ones(len(queries)))
    found.divide_anew(rng, count)
    expertise = grid_prior.posterior(found.cluster_log_likelihoods) @ GRID
    scores = grid.per_item(found.sign) * values.scores
    return InitialValues(scores, found.cluster, expertise.T, values.variance)


def initial_values_from_prior(layout: Layout, majority: FloatArray, prior: Prior, variance: float) -> InitialValues:
    """Starting values with known domains and annotators: each query in its most probable domain."""
    uniform = GridPrior(np.full(len(GRID), 1.0 / len(GRID)))
    grid = _GridLikelihood(layout, len(prior.expertise_mean), uniform)
    log_prior = -0.5 * ((GRID - prior.expertise_mean.T[..., None]) / prior.expertise_std.T[..., None]) ** 2
    scores = majority * grid.best_score_scale(majority, np.arange(grid.queries))
    slopes = marginal_slope(prior.expertise_mean)
    for _ in range(_ROUNDS):
        domain, sign = grid.assign(scores, log_prior, prior.domain_concentration, np.arange(grid.queries))
        scores, _ = fit_scores(layout, grid.per_item(sign) * scores, slopes, domain, variance)
    return InitialValues(scores, domain, prior.expertise_mean.copy(), variance)


@dataclass(frozen=True)
class _GridLikelihood:
    """Likelihoods of the judgments at each expertise of the grid."""

    layout: Layout
    n_annotators: int
    grid_prior: GridPrior

    @property
    def slopes(self) -> FloatArray:
        return np.asarray(marginal_slope(GRID))

    @property
    def queries(self) -> int:
        return len(self.layout.item_starts) - 1

    def log_likelihoods(self, scores: FloatArray, queries: IntArray) -> FloatArray:
        """Log-likelihoods by expertise, tempered where judgments share perceived utilities and so err together."""
        independent = expertise_log_likelihoods(self.layout, scores, self.slopes, queries, self.n_annotators)
        return independent * self.information_ratio[queries, :, None]

    @cached_property
    def information_ratio(self) -> FloatArray:
        """Information of each annotator's judgments in a query relative to independent judgments; at most one.

        If an annotator gives g judgments per item, their errors share the perception noise. With answer noise of
        variance one and perception noise of variance a, score differences are known with variance 1 + a (g + 1) instead
        of 1 + 2 a.
        """
        layout = self.layout
        item_query = np.repeat(np.arange(self.queries), np.diff(layout.item_starts))
        judgment_query = np.repeat(np.arange(self.queries), np.diff(layout.judgment_starts))
        shape = (self.queries, self.n_annotators)
        size, annotator = shape[0] * shape[1], layout.utility_annotator
        utilities = np.bincount(item_query[layout.utility_item] * self.n_annotators + annotator, minlength=size)
        judgments = np.bincount(judgment_query * self.n_annotators + layout.annotator, minlength=size)
        per_item = 2.0 * judgments / np.maximum(utilities, 1)
        shared = 1.0 + _NOISE_RATIO * (np.maximum(per_item, 1.0) + 1.0)
        return ((1.0 + 2.0 * _NOISE_RATIO) / shared).reshape(shape)

    def per_item(self, values: FloatArray) -> FloatArray:
        """Repeat values of queries for each of their items."""
        return np.repeat(values, np.diff(self.layout.item_starts))

    def assign(
        self, scores: FloatArray, summed: FloatArray, sizes: AnyArray, queries: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Most probable domain of these queries, and their sign there: 1, or −1 if reversed."""
        choice = np.zeros(len(queries), np.int64)
        for first in range(0, len(queries), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            scorer = ClusterScorer(self.log_likelihoods(scores, queries[chunk]), self.grid_prior)
            choice[chunk] = np.argmax(scorer.signed_log_probabilities(summed, sizes), axis=1)
        return choice % len(summed), np.where(choice < len(summed), 1.0, -1.0)

    def best_score_scale(self, majority: FloatArray, queries: IntArray) -> float:
        """Factor on the majority scores with the largest evidence, with an expertise per annotator and query."""
        few = queries[:_SCALE_QUERIES]
        evidence = [
            np.sum(self.grid_prior.log_evidence(self.log_likelihoods(scale * majority, few))) for scale in _SCORE_SCALES
        ]
        return float(_SCORE_SCALES[int(np.argmax(evidence))])

    def best_rescaling(self, scores: FloatArray, queries: IntArray, cluster: IntArray) -> float:
        """Factor on the scores with the largest evidence, with an expertise per annotator and domain."""
        evidence = []
        for factor in _RESCALINGS:
            log_likelihoods = self.log_likelihoods(factor * scores, queries)
            clustering = QueryClustering(log_likelihoods, self.grid_prior, cluster, np.ones(len(queries)))
            evidence.append(np.sum(self.grid_prior.log_evidence(clustering.cluster_log_likelihoods)))
        return float(_RESCALINGS[int(np.argmax(evidence))])


def marginal_slope(expertise: Any) -> Any:
    """c = τ / √(2 (1 + τ²)): probit slope of a judgment in the true scores."""
    return expertise / np.sqrt(2.0 * (1.0 + expertise**2))


def expertise_log_likelihoods(
    layout: Layout, scores: FloatArray, slopes: FloatArray, queries: AnyArray, n_annotators: int
) -> FloatArray:
    """Log-likelihood of each annotator's judgments on these queries at each slope, as queries × annotators × slopes."""
    values: FloatArray = _expertise_log_likelihoods(layout, scores, slopes, np.asarray(queries, np.int64), n_annotators)
    return values


@compiled(log_normal_cdf_scalar, log_normal_cdf_table)
def _expertise_log_likelihoods(layout, scores, slopes, queries, n_annotators):  # type: ignore[no-untyped-def]
    values = np.zeros((len(queries), n_annotators, len(slopes)))
    for k in range(len(queries)):
        query = queries[k]
        for row in range(layout.judgment_starts[query], layout.judgment_starts[query + 1]):
            winner, loser = layout.winner_utility[row], layout.loser_utility[row]
            difference = scores[layout.utility_item[winner]] - scores[layout.utility_item[loser]]
            for choice in range(len(slopes)):
                values[k, layout.annotator[row], choice] += log_normal_cdf_table(slopes[choice] * difference)
    return values


def fit_scores(
    layout: Layout, scores: FloatArray, slopes: FloatArray, domain: Any, variance: float, rounds: int = 20
) -> FloatArray:
    """Approximate MAP scores given the slopes of all annotators in all domains, and their curvatures, as two rows.

    Coordinate-wise Newton steps, one item at a time.
    """
    fitted, curvature = np.array(scores, np.float64), np.empty(len(scores))
    slopes, domain = np.asarray(slopes, np.float64), np.asarray(domain, np.int64)
    _fit_scores(layout, fitted, curvature, slopes, domain, float(variance), rounds)
    return np.stack((fitted, curvature))


@compiled(inverse_mills_table)
def _fit_scores(layout, scores, curvatures, slopes, domain, variance, rounds):  # type: ignore[no-untyped-def]
    for query in range(len(domain)):
        own_slopes = slopes[:, domain[query]]
        for _ in range(rounds):
            for item in range(layout.item_starts[query], layout.item_starts[query + 1]):
                gradient, curvature = -scores[item] / variance, 1.0 / variance
                for utility in range(layout.utility_starts[item], layout.utility_starts[item + 1]):
                    c = own_slopes[layout.utility_annotator[utility]]
                    for edge in range(layout.edge_starts[utility], layout.edge_starts[utility + 1]):
                        slope = c * layout.edge_sign[edge]
                        x = slope * (scores[item] - scores[layout.utility_item[layout.edge_opponent[edge]]])
                        mills = inverse_mills_table(x)
                        gradient += slope * mills
                        curvature += slope * slope * max(0.0, mills * (mills + x))
                scores[item] += gradient / curvature
                curvatures[item] = curvature
