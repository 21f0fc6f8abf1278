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
from crowdrank.models.thurstonian.domain_clustering import GRID, ClusterScorer, GridPrior, QueryClustering
from crowdrank.models.thurstonian.gibbs import Prior
from crowdrank.models.thurstonian.layout import Layout

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
