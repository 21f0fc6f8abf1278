"""Beliefs for choosing questions, from a fit with hidden domains."""

import numpy as np
import pytest

from crowdrank import TPP, BradleyTerry
from crowdrank.active import best_triplet
from crowdrank.errors import DataError, UnknownNameError
from crowdrank.online import beliefs_from_ranking
from crowdrank.simulation import domain_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.ConvergenceWarning")


@pytest.fixture(scope="module")
def crowd():
    return domain_crowd(queries=10, items=5, annotators=8, domains=1, sparsity=0.8, seed=4)


@pytest.fixture(scope="module")
def ranking(crowd):
    return TPP(domains=1, draws=100, max_sweeps=100).fit(crowd.judgments)


def test_scores_keep_their_order_and_errors_their_proportions(ranking):
    query = ranking.items.queries[3]
    beliefs = beliefs_from_ranking(ranking, query)
    block = ranking.items.of_query(3)
    assert beliefs.items.labels == tuple(map(str, ranking.items.labels[block]))
    assert set(beliefs.items.queries) == {str(query)}
    np.testing.assert_array_equal(np.argsort(beliefs.mean), np.argsort(ranking.scores[block]))
    ratio = np.sqrt(beliefs.variance) / ranking.uncertainty.std_error[block]
    assert np.ptp(ratio) < 1e-9 * ratio.mean()


def test_quality_follows_expertise_and_reversed_annotators_are_below_one_half(crowd, ranking):
    quality = beliefs_from_ranking(ranking, ranking.items.queries[0]).quality
    expertise = crowd.annotators["expertise"][:, 0]
    assert np.all(quality[expertise < 0] < 0.5)
    assert np.all(quality[expertise >= 5] > 0.7)


def test_they_choose_questions(ranking):
    beliefs = beliefs_from_ranking(ranking, ranking.items.queries[0])
    found = best_triplet(beliefs)
    assert found is not None
    sure = np.abs(beliefs.quality - 0.5)
    assert sure[found.annotator] > np.median(sure)


def test_another_model_or_query_is_refused(crowd, ranking):
    with pytest.raises(DataError, match="fit tpp"):
        beliefs_from_ranking(BradleyTerry(prior_scale=1.0).fit(crowd.judgments), ranking.items.queries[0])
    with pytest.raises(UnknownNameError):
        beliefs_from_ranking(ranking, "no such query")
