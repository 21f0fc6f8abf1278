"""Thurstonian pairwise preferences: where chains start, which way is up, and that simulated truth is recovered."""

from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from crowdrank import Comparisons
from crowdrank.errors import DataError, DataWarning, SettingError
from crowdrank.evaluation import kendall_distance
from crowdrank.models.tpp import TPP
from crowdrank.models.tpp_sampling import clusters
from crowdrank.simulated import domain_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.ConvergenceWarning")


SEEDS = range(4)


@cache
def crowd(seed=0):
    return domain_crowd(queries=20, items=5, annotators=10, domains=2, sparsity=0.5, even_domains=True, seed=seed)


@cache
def ranking(seed=0):
    return TPP(domains=2, chains=2, draws=200, warmup=200).fit(crowd(seed).judgments)


def distance(scores, seed):
    """Pairs the wrong way round in a query, on average."""
    items = crowd(seed).judgments.items
    blocks = [items.of_query(query) for query in range(len(items.queries))]
    return np.mean([kendall_distance(scores[block], crowd(seed).truth[block]) for block in blocks])


def test_scores_are_nearer_the_truth_than_a_head_count():
    counted = [distance(TPP().sampler(crowd(seed).judgments).borda, seed) for seed in SEEDS]
    assert np.mean([distance(ranking(seed).scores, seed) for seed in SEEDS]) < 0.7 * np.mean(counted)


def test_chains_meet():
    assert np.median([ranking(seed).parameters["r_hat"] for seed in SEEDS]) < 1.1


@pytest.mark.parametrize("seed", SEEDS)
def test_domains_are_found(seed):
    sampler, rng = TPP(domains=2).sampler(crowd(seed).judgments), np.random.default_rng(0)
    state, _ = sampler.walk(rng, sampler.init(rng), 300)
    same = np.mean(state.domain == crowd(seed).queries["domain"])
    assert max(same, 1 - same) >= 0.9


@pytest.mark.parametrize("seed", SEEDS)
def test_quality_follows_expertise(seed):
    """In the unit of the model: true δ² is one twentieth on average."""
    chance = ndtr(crowd(seed).annotators["expertise"] * np.sqrt(0.05 / 2))
    truth = chance[:, crowd(seed).queries["domain"]].mean(axis=1)
    assert np.corrcoef(ranking(seed).annotators["quality"], truth)[0, 1] > 0.8


def test_a_domain_upside_down_is_turned():
    sampler, rng = TPP(domains=2).sampler(crowd().judgments), np.random.default_rng(0)
    state, _ = sampler.walk(rng, sampler.init(rng), 50)
    up = sampler.upright(state)
    in_first = (state.domain == 0)[crowd().judgments.items.query]
    turned = state._replace(
        scores=np.where(in_first, -state.scores, state.scores),
        seen=np.where(in_first[sampler.sights.item], -state.seen, state.seen),
        expertise=state.expertise * [-1, 1],
    )
    for one, other in zip(up, sampler.upright(turned), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.sum(sampler.borda * up.scores) > 0


def test_clusters_are_told_apart():
    rng = np.random.default_rng(0)
    points = np.repeat([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]], 10, axis=0) + rng.normal(scale=0.1, size=(30, 2))
    found, middles = clusters(rng, points, 3)
    assert [len(set(found[n : n + 10])) for n in (0, 10, 20)] == [1, 1, 1]
    assert len(set(found)) == 3
    np.testing.assert_allclose(middles[found[0]], points[:10].mean(axis=0))


def test_there_may_be_more_clusters_than_points():
    found, middles = clusters(np.random.default_rng(0), np.zeros((2, 3)), 5)
    assert len(found) == 2
    assert np.all(middles == 0)


def few(**settings):
    return TPP(chains=2, draws=10, warmup=10, **settings)


def test_weights_are_repetitions():
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "c"], annotator=["x", "y"])
    twice = Comparisons.of(["a", "b"] * 2, ["b", "c"] * 2, ["a", "c"] * 2, annotator=["x", "y"] * 2)
    weighed = few().fit(votes.reweighted(np.array([2.0, 2.0])))
    np.testing.assert_array_equal(few().fit(twice).scores, weighed.scores)


def test_half_a_judgment_is_refused():
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "c"]).reweighted(np.array([1.0, 0.5]))
    with pytest.raises(DataError, match="Row 2"):
        few().fit(votes)


def test_a_query_of_ties_alone_and_judgments_without_annotators_give_finite_scores():
    votes = Comparisons.of(["a", "a", "c"], ["b", "b", "d"], ["a", "a", "tie"], query=["1", "1", "2"])
    with pytest.warns(DataWarning):
        scores = few().fit(votes).scores
    assert np.all(np.isfinite(scores))
    assert scores[0] > scores[1]


@pytest.mark.parametrize("wrong", [{"domains": 0}, {"chains": 1}, {"draws": 5}, {"warmup": -1}])
def test_settings_are_checked(wrong):
    with pytest.raises(SettingError):
        TPP(**wrong)
