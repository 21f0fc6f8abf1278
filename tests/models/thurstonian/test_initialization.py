"""Starting values of the TPP sampler: majority scores, planted domains, and transferred priors."""

from functools import cache

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from crowdrank import Comparisons
from crowdrank.evaluation import kendall_distance
from crowdrank.models.thurstonian.gibbs import Prior
from crowdrank.models.thurstonian.initialization import (
    GridPrior,
    InitialValues,
    expertise_log_likelihoods,
    fit_scores,
    initial_values,
    initial_values_from_prior,
    majority_scores,
    marginal_slope,
    recluster,
)
from crowdrank.models.thurstonian.layout import build_layout, layout_from_comparisons
from crowdrank.simulation import domain_crowd

GRID_PRIOR = GridPrior.normal(1.0, 1.5)


@cache
def crowd(seed=0):
    return domain_crowd(queries=40, items=6, annotators=10, domains=2, sparsity=0.7, even_domains=True, seed=seed)


@cache
def start(seed=0, count=None):
    votes = crowd(seed).judgments
    layout = layout_from_comparisons(votes)
    return initial_values(np.random.default_rng(0), layout, majority_scores(layout, votes.items), 10, GRID_PRIOR, count)


def distance(scores, seed=0):
    """Mean number of discordant pairs per query."""
    items = crowd(seed).judgments.items
    return np.mean([kendall_distance(scores[b], crowd(seed).truth[b]) for b in map(items.of_query, range(40))])


def agreement(found, truth):
    """Share of pairs of queries that are rightly in the same or in different domains."""
    return np.mean(np.equal.outer(found, found) == np.equal.outer(truth, truth))


def test_majority_scores_are_wins_minus_losses_over_judgments_plus_one():
    votes = Comparisons.of(["a", "a", "b", "x"], ["b", "c", "c", "y"], ["a", "a", "b", "x"], query=[*"1112"])
    majority = majority_scores(layout_from_comparisons(votes), votes.items)
    np.testing.assert_allclose(majority, [2 / 3, 0.0, -2 / 3, 0.5, -0.5])


@pytest.mark.parametrize("seed", range(3))
def test_domains_are_found_and_scores_are_closer_to_the_truth_than_the_majority(seed):
    votes, found = crowd(seed).judgments, start(seed)
    assert agreement(found.domain, crowd(seed).queries["domain"]) > 0.85
    majority = majority_scores(layout_from_comparisons(votes), votes.items)
    up = np.where(np.sum(majority * found.scores) < 0, -1.0, 1.0)
    assert distance(up * found.scores, seed) < distance(majority, seed)


def test_expertise_is_estimated_for_every_annotator_and_domain():
    found = start()
    domains = found.domain.max() + 1
    assert found.expertise.shape == (10, domains)
    biggest = np.argmax(np.bincount(found.domain))
    truly = crowd().queries["domain"][found.domain == biggest]
    truth = crowd().annotators["expertise"][:, np.argmax(np.bincount(truly))]
    assert abs(np.corrcoef(found.expertise[:, biggest], truth)[0, 1]) > 0.8


@pytest.mark.parametrize("count", [1, 2])
def test_the_number_of_domains_can_be_set(count):
    found = start(count=count)
    assert len(np.unique(found.domain)) == found.expertise.shape[1] == count


def test_queries_beyond_the_chunk_are_assigned_to_their_domains(monkeypatch):
    monkeypatch.setattr("crowdrank.models.thurstonian.initialization._CHUNK", 25)
    found = start.__wrapped__()
    assert agreement(found.domain, crowd().queries["domain"]) > 0.85


def test_known_annotators_determine_the_domains_of_queries():
    votes, truth = crowd().judgments, crowd().annotators["expertise"] * np.sqrt(0.05)
    layout = layout_from_comparisons(votes)
    prior = Prior(truth, np.full(truth.shape, 0.3), np.ones(2))
    found = initial_values_from_prior(layout, majority_scores(layout, votes.items), prior, 10.0)
    assert agreement(found.domain, crowd().queries["domain"]) > 0.95
    np.testing.assert_array_equal(found.expertise, truth)
    assert found.variance == 10.0


@pytest.mark.parametrize(
    "rows",
    [[("a", "b", "a")], [("a", "b", "tie")], [("a", "b", "a"), ("b", "c", "b"), ("c", "a", "c")]],
    ids=["one judgment", "a single tie", "a cycle"],
)
def test_majority_scores_of_zero_are_a_valid_start(rows):
    votes = Comparisons.of(*zip(*rows, strict=True))
    layout = layout_from_comparisons(votes)
    found = initial_values(np.random.default_rng(0), layout, majority_scores(layout, votes.items), 1, GRID_PRIOR)
    assert np.all(np.isfinite(found.scores))
    assert found.variance > 0
    assert found.domain.tolist() == [0]


STARTS = np.array([0, 4, 4, 7])
RNG = np.random.default_rng(8)
PAIRS = [(a, b) for block in (range(4), range(4, 7)) for a in block for b in block if a != b]
ROWS = [(*PAIRS[n], RNG.integers(3)) for n in RNG.integers(len(PAIRS), size=60)]
LAYOUT = build_layout(*np.array(ROWS, np.int32).T, STARTS)
SLOPES = np.array([[0.5, -0.2], [0.0, 0.6], [-0.4, 0.3]])
DOMAIN = np.array([1, 0, 0])
QUERY = np.repeat([0, 2], [len(range(4)), len(range(3))])


def test_the_marginal_slope_integrates_out_the_perceived_utilities():
    rng, tau, difference = np.random.default_rng(0), 1.7, 0.8
    perceived = difference + rng.normal(size=(400_000, 2)) @ [1.0, -1.0]
    chance = np.mean(ndtr(tau * perceived / np.sqrt(2)))
    assert ndtr(marginal_slope(tau) * difference) == pytest.approx(chance, abs=0.003)


def test_curves_are_sums_of_log_likelihoods():
    scores, slopes = RNG.normal(size=7), np.array([-0.5, 0.0, 0.5, 0.7])
    values = expertise_log_likelihoods(LAYOUT, scores, slopes, np.array([2, 0, 1]), 3)
    direct = np.zeros((3, 3, 4))
    for one, other, who in ROWS:
        direct[QUERY[one], who] += log_ndtr(slopes * (scores[one] - scores[other]))
    np.testing.assert_allclose(values, direct[[2, 0, 1]], atol=1e-7)


def score_gradient(scores, variance):
    result = -scores / variance
    for one, other, who in ROWS:
        slope = SLOPES[who, DOMAIN[QUERY[one]]]
        x = slope * (scores[one] - scores[other])
        term = slope * np.exp(-0.5 * x**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(x))
        result[one] += term
        result[other] -= term
    return result


def test_fitted_scores_are_the_optimum():
    start = RNG.normal(size=7)
    scores, curvature = fit_scores(LAYOUT, start, SLOPES, DOMAIN, 3.0, rounds=300)
    assert np.abs(score_gradient(start, 3.0)).max() > 0.1
    assert np.abs(score_gradient(scores, 3.0)).max() < 1e-3
    for item in range(7):
        aside = np.array([scores + step * np.eye(7)[item] for step in (-0.01, 0.01)])
        low, high = (score_gradient(at, 3.0)[item] for at in aside)
        assert curvature[item] == pytest.approx((low - high) / 0.02, rel=1e-2)


def test_fitting_leaves_its_start_unchanged():
    start = np.ones(7)
    fit_scores(LAYOUT, start, SLOPES, DOMAIN, 3.0)
    np.testing.assert_array_equal(start, 1.0)


def test_reclustering_drops_empty_domains_and_repairs_wrong_ones():
    planted, truth = crowd(), crowd().queries["domain"]
    layout = layout_from_comparisons(planted.judgments)
    start = initial_values(
        np.random.default_rng(0), layout, majority_scores(layout, planted.judgments.items), 10, GRID_PRIOR
    )
    wrong = start.domain.copy()
    wrong[np.flatnonzero(start.domain == 0)[:6]] = 2
    values = InitialValues(start.scores, np.where(wrong == 2, 1, wrong) + 1, np.ones((10, 3)), start.variance)
    found = recluster(np.random.default_rng(1), layout, values, GRID_PRIOR)
    assert found.expertise.shape == (10, 2)
    agreement = np.mean(found.domain == truth)
    assert max(agreement, 1 - agreement) > 0.9
