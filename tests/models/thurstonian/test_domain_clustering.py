"""Clustering of queries: planted domains are found, and so is their number."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, log_ndtr, ndtr

from crowdrank.models.thurstonian.initialization import GRID, ClusterScorer, GridPrior, QueryClustering

PRIOR = GridPrior.normal(1.0, 1.5)


def planted(seed, expertise, domain, judgments=30, flipped=()):
    """Log-likelihoods of annotators with this expertise (annotators × domains) on pairs one and a half units apart."""
    rng = np.random.default_rng(seed)
    tau = np.array(expertise, np.float64)[:, domain].T
    right = rng.binomial(judgments, ndtr(1.5 * tau))
    log_likelihoods = right[..., None] * log_ndtr(1.5 * GRID) + (judgments - right)[..., None] * log_ndtr(-1.5 * GRID)
    for query in flipped:
        log_likelihoods[query] = log_likelihoods[query, :, ::-1]
    return log_likelihoods


def search(log_likelihoods, count=None, seed=0):
    one = QueryClustering(
        log_likelihoods, PRIOR, np.zeros(len(log_likelihoods), np.int64), np.ones(len(log_likelihoods))
    )
    return one.search(np.random.default_rng(seed), count)


def same_cluster(cluster):
    return np.equal.outer(cluster, cluster)


THREE = [[2, 2, -2], [2, -2, 2], [-2, 2, 2], [0, 2, 0], [2, 0, 2], [1, 1, 1]]
DOMAIN = np.arange(18) % 3


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_and_their_number_are_found(seed):
    found = search(planted(seed, THREE, DOMAIN))
    assert found.count == 3
    np.testing.assert_array_equal(same_cluster(found.cluster), same_cluster(DOMAIN))


def test_similar_queries_stay_one_cluster():
    assert search(planted(1, [[2], [1], [0], [-2], [1]], np.zeros(15, int))).count == 1


def test_uninformative_queries_stay_one_cluster():
    assert search(np.zeros((10, 4, len(GRID)))).count == 1


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_number_of_clusters_can_be_set(count):
    found = search(planted(0, THREE, DOMAIN), count)
    assert found.count == count
    assert found.sizes.min() > 0


def test_there_are_at_most_as_many_clusters_as_queries():
    assert search(planted(0, THREE, DOMAIN), 100).count <= len(DOMAIN)
    assert search(np.zeros((5, 4, len(GRID))), 100).count <= 5


def test_forced_merges_join_the_most_similar_clusters():
    expertise = [[2, 2, -1], [2, 1, 2], [-1, -1, 2], [1, 0.5, -1.5], [0, 0, 2]]
    found = search(planted(0, expertise, DOMAIN, judgments=60), 2)
    np.testing.assert_array_equal(same_cluster(found.cluster), same_cluster(DOMAIN == 2))


def test_flipped_queries_are_flipped_back():
    expertise = [[2.5, 2], [1.5, -2], [-2, 0], [0.5, 2], [2, -1]]
    domain, down = np.arange(16) % 2, np.array([1, 6, 7])
    found = search(planted(2, expertise, domain, flipped=down))
    np.testing.assert_array_equal(same_cluster(found.cluster), same_cluster(domain))
    expected = np.where(np.isin(np.arange(16), down), -1.0, 1.0)
    for cluster in range(2):
        members = found.cluster == cluster
        assert abs(np.sum(found.sign[members] * expected[members])) == members.sum()


def test_one_query_is_one_cluster():
    found = search(planted(0, [[1.0]], np.zeros(1, int)))
    assert (found.count, found.cluster.tolist(), found.sign.tolist()) == (1, [0], [1.0])


def test_the_same_generator_finds_the_same_clusters():
    log_likelihoods = planted(3, THREE, DOMAIN, judgments=6)
    np.testing.assert_array_equal(search(log_likelihoods, seed=5).cluster, search(log_likelihoods, seed=5).cluster)


def evidence(log_likelihoods):
    """Log evidence of some queries as one cluster, directly from the formula."""
    summed = log_likelihoods.sum(axis=0)
    return np.sum(np.log(np.exp(summed) @ PRIOR.weights))


def test_log_probabilities_are_conditional_on_the_other_queries_of_the_cluster():
    log_likelihoods, cluster = planted(4, THREE, np.arange(6) % 3, judgments=5), np.array([0, 0, 0, 1, 1, 2])
    likelihoods = ClusterScorer(log_likelihoods, PRIOR)
    summed = np.array([log_likelihoods[cluster == number].sum(axis=0) for number in range(3)])
    found = likelihoods.log_probabilities(summed, cluster)
    for query, number in product(range(6), range(3)):
        others = (cluster == number) & (np.arange(6) != query)
        alone = log_likelihoods[others] if others.any() else np.zeros((1, *log_likelihoods.shape[1:]))
        gained = evidence(np.concatenate((alone, log_likelihoods[[query]]))) - evidence(alone)
        # an empty cluster has the weight of a new one
        assert found[query, number] == pytest.approx(gained + np.log(max(others.sum(), PRIOR.concentration)), abs=1e-9)


def test_signed_log_probabilities_include_the_mirror_image():
    log_likelihoods = planted(4, THREE, np.arange(6) % 3, judgments=5)
    summed, sizes = log_likelihoods[:2], np.array([3, 1])
    found = ClusterScorer(log_likelihoods, PRIOR).signed_log_probabilities(summed, sizes)
    flipped = ClusterScorer(log_likelihoods[:, :, ::-1], PRIOR).signed_log_probabilities(summed, sizes)
    np.testing.assert_allclose(found, np.roll(flipped, 2, axis=1))
    expected = evidence(np.array([summed[0], log_likelihoods[3]])) - evidence(summed[:1]) + np.log(3)
    assert found[3, 0] == pytest.approx(expected)


def test_the_log_evidence_of_a_partition_includes_the_dirichlet_process():
    log_likelihoods, cluster = planted(4, THREE, np.arange(6) % 3, judgments=5), np.array([0, 0, 0, 1, 1, 2])
    expected = sum(
        evidence(log_likelihoods[cluster == number]) + gammaln(np.sum(cluster == number)) for number in range(3)
    )
    assert ClusterScorer(log_likelihoods, PRIOR).log_evidence(cluster, 3) == pytest.approx(expected)


def test_the_grid_prior_approximates_the_normal_distribution():
    assert PRIOR.weights.sum() == pytest.approx(1.0)
    assert PRIOR.weights @ GRID == pytest.approx(1.0, abs=0.15)
    np.testing.assert_array_equal(GRID, -GRID[::-1])


def test_far_apart_likelihoods_stay_finite():
    log_likelihoods = 1e4 * planted(0, THREE, DOMAIN)
    found = search(log_likelihoods)
    assert np.all(
        np.isfinite(
            ClusterScorer(log_likelihoods, PRIOR).log_probabilities(found.cluster_log_likelihoods, found.cluster)
        )
    )
    assert found.count <= 18


SIGNS = [[2, -2], [2, -2], [-2, 2], [-2, 2], [2, 1], [1, 2]]


def divided(log_likelihoods, cluster, sign=None, seed=0, **settings):
    sign = np.ones(len(cluster)) if sign is None else sign
    one = QueryClustering(log_likelihoods, PRIOR, np.array(cluster, np.int64), sign)
    return one.divide_anew(np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("seed", range(3))
def test_queries_that_only_fit_another_cluster_together_are_divided_anew(seed):
    domain = np.repeat([0, 1], [13, 7])
    found = divided(planted(seed, SIGNS, domain, judgments=8), (np.arange(20) >= 10) * 1, seed=seed)
    np.testing.assert_array_equal(same_cluster(found.cluster), same_cluster(domain))
    assert found.sizes.sum() == 20


def test_dividing_anew_raises_the_evidence_and_keeps_the_number_of_clusters():
    log_likelihoods, cluster = planted(6, THREE, DOMAIN, judgments=8), np.arange(18) // 6
    found, scorer = divided(log_likelihoods, cluster), ClusterScorer(log_likelihoods, PRIOR)
    after = np.sum(PRIOR.log_evidence(found.cluster_log_likelihoods) + PRIOR.log_cluster_prior(found.sizes))
    assert found.count == 3
    assert after > scorer.log_evidence(cluster, 3)


def test_dividing_anew_fills_up_to_the_number_asked_for():
    assert divided(planted(6, THREE, DOMAIN), DOMAIN, count=5).count == 5


def test_one_cluster_cannot_be_divided_anew():
    assert divided(planted(6, THREE, DOMAIN), np.zeros(18, int)).count == 1
