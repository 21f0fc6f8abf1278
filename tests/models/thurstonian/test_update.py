"""Ranking new queries with what a fit has learned: better than without, and no worse for new annotators."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons
from crowdrank.errors import DataError
from crowdrank.evaluation import kendall_distance
from crowdrank.models.thurstonian.sampler import TransferredPrior
from crowdrank.models.thurstonian.tpp import TPP
from crowdrank.simulation import domain_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.ConvergenceWarning")

QUICK = TPP(domains=2, max_sweeps=100, draws=100)


@cache
def crowd():
    """Of eight annotators, the first and the third are reversed in one of two domains, the second in the other."""
    return domain_crowd(queries=40, items=6, annotators=8, domains=2, sparsity=0.4, even_domains=True, seed=8)


def of_queries(low, high):
    """The judgments on some queries, as a table of its own."""
    votes = crowd().judgments
    query = votes.items.query[votes.left]
    preconditioner = votes.take(np.flatnonzero((query >= low) & (query < high))).to_frame()
    columns = {name: preconditioner[name].to_list() for name in ("left", "right", "winner", "query", "annotator")}
    return Comparisons.of(**columns)


@cache
def fitted():
    return QUICK.fit(of_queries(0, 30))


NEW = of_queries(30, 40)


def distance(ranking):
    truth = dict(zip(map(tuple, keys(crowd().judgments.items)), crowd().truth, strict=True))
    true = np.array([truth[key] for key in keys(ranking.items)])
    blocks = map(ranking.items.of_query, range(len(ranking.items.queries)))
    return np.mean([kendall_distance(ranking.scores[b], true[b]) for b in blocks])


def keys(items):
    return list(zip(items.queries[items.query], items.labels, strict=True))


def test_known_annotators_rank_new_queries_better_than_new_ones():
    some = NEW.take(np.flatnonzero(np.isin(NEW.annotator, [1, 5])))  # one of them reversed in one domain
    assert distance(QUICK.update(fitted(), some)) < 0.5 * distance(QUICK.fit(some))


def one_domain(queries, n_annotators, seed):
    """Annotators 0 to 6 are good and 7 to 9 reversed; the truth is the order of the labels, last best."""
    rng, rows = np.random.default_rng(seed), []
    for query, who, _ in product(queries, n_annotators, range(8)):
        low, high = np.sort(rng.choice(6, 2, replace=False))
        right = (rng.random() < 0.9) == (who < 7)
        rows.append((f"i{low}", f"i{high}", f"i{high if right else low}", f"q{query}", f"w{who}"))
    left, right, winner, query, annotator = zip(*rows, strict=True)
    return Comparisons.of(left, right, winner, query=query, annotator=annotator)


def test_known_reversed_annotators_determine_the_orientation():
    ranking = QUICK.fit(one_domain(range(20), range(10), seed=1))
    new = QUICK.update(ranking, one_domain(range(100, 105), [7, 8, 9], seed=2))
    assert np.all(new.domains.expertise[1][:, 0] < 0)
    for query in range(5):
        scores = new.scores[new.items.of_query(query)]
        assert kendall_distance(scores, np.arange(6.0)) < 5


def test_an_update_ranks_the_new_queries_with_the_same_domains():
    ranking = QUICK.update(fitted(), NEW)
    assert ranking.items is NEW.items
    assert len(ranking.domains) == len(fitted().domains)
    assert ranking.domains.queries.tolist() == NEW.items.queries.tolist()
    mean = ranking.domains.expertise[0]
    assert np.corrcoef(mean.ravel(), fitted().domains.expertise[0].ravel())[0, 1] > 0.9


def test_an_update_can_be_updated():
    again = QUICK.update(QUICK.update(fitted(), of_queries(30, 35)), of_queries(35, 40))
    assert again.domains.queries.tolist() == of_queries(35, 40).items.queries.tolist()
    assert np.isfinite(again.scores).all()


def test_new_annotators_get_the_default_prior():
    renamed = replace(NEW, annotators=np.array([f"new {n}" for n in NEW.annotators], object))
    known = TransferredPrior.from_ranking(fitted()).for_annotators(renamed.annotators)
    assert np.all(known.expertise_mean == 1.0)
    assert np.all(known.expertise_std == 1.5)
    assert np.isfinite(QUICK.update(fitted(), renamed).scores).all()


def test_priors_are_matched_by_annotator_label():
    known, domains = TransferredPrior.from_ranking(fitted()), fitted().domains
    names = np.array(["nobody", domains.annotators[3], domains.annotators[0]], object)
    prior = known.for_annotators(names)
    np.testing.assert_array_equal(prior.expertise_mean[1:], domains.expertise[0][[3, 0]])
    assert np.all(prior.expertise_mean[0] == 1.0)
    assert prior.domain_concentration.sum() == pytest.approx(30 + len(domains))
    assert prior.variance_rate / prior.variance_shape == pytest.approx(fitted().parameters["spread"] ** 2)


def test_the_standard_deviation_of_a_prior_is_that_of_its_interval():
    known, (_, low, high) = TransferredPrior.from_ranking(fitted()), fitted().domains.expertise
    np.testing.assert_allclose(known.expertise_std, (high - low) / (2 * 1.6448536), rtol=1e-6)


def test_judgments_without_annotators_are_ranked_too():
    plain = Comparisons.of([*"ab"] * 10, [*"bc"] * 10, [*"ab"] * 10)
    assert QUICK.update(fitted(), plain).table(uncertainty=False)["item"].to_list() == ["a", "b", "c"]


def test_rankings_of_other_models_are_refused():
    with pytest.raises(DataError, match="A bradley-terry ranking has no domains to transfer. Fit tpp"):
        QUICK.update(BradleyTerry().fit(NEW), NEW)


def test_rankings_without_intervals_are_refused():
    published = TPP(inference="mcem", domains=2).fit(NEW)
    with pytest.raises(DataError, match='no intervals of expertise to transfer. Fit it with inference="posterior"'):
        QUICK.update(published, NEW)


def test_a_saved_ranking_can_be_updated(tmp_path):
    from crowdrank import Ranking

    fitted().save(tmp_path / "ranking.json")
    loaded = Ranking.load(tmp_path / "ranking.json")
    np.testing.assert_array_equal(QUICK.update(loaded, NEW).scores, QUICK.update(fitted(), NEW).scores)
