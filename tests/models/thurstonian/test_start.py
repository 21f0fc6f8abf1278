"""Where chains start: a head count, planted domains, and what is known."""

from functools import cache

import numpy as np
import pytest

from crowdrank import Comparisons
from crowdrank.evaluation import kendall_distance
from crowdrank.models.thurstonian.domains import Prior
from crowdrank.models.thurstonian.gibbs import Beliefs
from crowdrank.models.thurstonian.sampler import laid_out
from crowdrank.models.thurstonian.start import begin, begin_with, head_count
from crowdrank.simulation import domain_crowd

PRIOR = Prior.normal(1.0, 1.5)


@cache
def crowd(seed=0):
    return domain_crowd(queries=40, items=6, annotators=10, domains=2, sparsity=0.7, even_domains=True, seed=seed)


@cache
def start(seed=0, count=None):
    votes = crowd(seed).judgments
    sights = laid_out(votes)
    return begin(np.random.default_rng(0), sights, head_count(sights, votes.items), 10, PRIOR, count)


def distance(scores, seed=0):
    """Pairs the wrong way round in a query, on average."""
    items = crowd(seed).judgments.items
    return np.mean([kendall_distance(scores[b], crowd(seed).truth[b]) for b in map(items.of_query, range(40))])


def agreement(found, truth):
    """The share of pairs of queries that are rightly together or apart."""
    return np.mean(np.equal.outer(found, found) == np.equal.outer(truth, truth))


def test_a_head_count_is_wins_less_losses_over_judgments_and_one():
    votes = Comparisons.of(["a", "a", "b", "x"], ["b", "c", "c", "y"], ["a", "a", "b", "x"], query=[*"1112"])
    counted = head_count(laid_out(votes), votes.items)
    np.testing.assert_allclose(counted, [2 / 3, 0.0, -2 / 3, 0.5, -0.5])


@pytest.mark.parametrize("seed", range(3))
def test_domains_are_found_and_scores_are_nearer_the_truth_than_a_head_count(seed):
    votes, found = crowd(seed).judgments, start(seed)
    assert agreement(found.domain, crowd(seed).queries["domain"]) > 0.85
    counted = head_count(laid_out(votes), votes.items)
    up = np.where(np.sum(counted * found.scores) < 0, -1.0, 1.0)
    assert distance(up * found.scores, seed) < distance(counted, seed)


def test_expertise_is_told_for_every_annotator_and_domain():
    found = start()
    domains = found.domain.max() + 1
    assert found.expertise.shape == (10, domains)
    biggest = np.argmax(np.bincount(found.domain))
    truly = crowd().queries["domain"][found.domain == biggest]
    truth = crowd().annotators["expertise"][:, np.argmax(np.bincount(truly))]
    assert abs(np.corrcoef(found.expertise[:, biggest], truth)[0, 1]) > 0.8


@pytest.mark.parametrize("count", [1, 2])
def test_there_are_as_many_domains_as_are_asked_for(count):
    found = start(count=count)
    assert len(np.unique(found.domain)) == found.expertise.shape[1] == count


def test_more_queries_than_are_grouped_at_once_find_their_domains(monkeypatch):
    monkeypatch.setattr("crowdrank.models.thurstonian.start._AT_ONCE", 25)
    found = start.__wrapped__()
    assert agreement(found.domain, crowd().queries["domain"]) > 0.85


def test_known_annotators_place_queries_at_once():
    votes, truth = crowd().judgments, crowd().annotators["expertise"] * np.sqrt(0.05)
    sights = laid_out(votes)
    beliefs = Beliefs(truth, np.full(truth.shape, 0.3), np.ones(2))
    found = begin_with(sights, head_count(sights, votes.items), beliefs, 10.0)
    assert agreement(found.domain, crowd().queries["domain"]) > 0.95
    np.testing.assert_array_equal(found.expertise, truth)
    assert found.variance == 10.0


@pytest.mark.parametrize(
    "rows",
    [[("a", "b", "a")], [("a", "b", "tie")], [("a", "b", "a"), ("b", "c", "b"), ("c", "a", "c")]],
    ids=["one judgment", "a tie alone", "a circle"],
)
def test_an_even_head_count_is_a_start_too(rows):
    votes = Comparisons.of(*zip(*rows, strict=True))
    sights = laid_out(votes)
    found = begin(np.random.default_rng(0), sights, head_count(sights, votes.items), 1, PRIOR)
    assert np.all(np.isfinite(found.scores))
    assert found.variance > 0
    assert found.domain.tolist() == [0]
