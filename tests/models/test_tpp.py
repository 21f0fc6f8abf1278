"""Thurstonian pairwise preferences: simulated truth is recovered, and edge cases stay finite."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from crowdrank import Comparisons, Ranking, read
from crowdrank.errors import ConvergenceWarning, DataWarning, SettingError
from crowdrank.evaluation import cross_validate, kendall_distance
from crowdrank.models.thurstonian.initialization import majority_scores
from crowdrank.models.thurstonian.layout import layout_from_comparisons
from crowdrank.models.thurstonian.tpp import TPP
from crowdrank.simulation import domain_crowd

SEEDS = range(4)
few_draws = pytest.mark.filterwarnings("ignore::crowdrank.errors.ConvergenceWarning")


def few(**settings):
    return TPP(draws=10, max_sweeps=20, **settings)


@cache
def crowd(seed=0):
    return domain_crowd(queries=20, items=5, annotators=10, domains=2, sparsity=0.5, even_domains=True, seed=seed)


@cache
def ranking(seed=0, **settings):
    return TPP(**settings).fit(crowd(seed).judgments)


def distance(scores, seed):
    """Mean number of discordant pairs per query."""
    items = crowd(seed).judgments.items
    return np.mean([kendall_distance(scores[b], crowd(seed).truth[b]) for b in map(items.of_query, range(20))])


def majority(seed):
    return majority_scores(layout_from_comparisons(crowd(seed).judgments), crowd(seed).judgments.items)


def test_scores_are_closer_to_the_truth_than_the_majority():
    found = np.mean([distance(ranking(seed).scores, seed) for seed in SEEDS])
    assert found < 0.75 * np.mean([distance(majority(seed), seed) for seed in SEEDS])


def test_chains_converge_and_report_it():
    for seed in SEEDS:
        parameters = ranking(seed).parameters
        assert ranking(seed).convergence.converged
        assert parameters["r_hat"] <= 1.05
        assert 0.4 < parameters["accepted"] < 0.95


def test_the_target_r_hat_is_larger_for_many_judgments_unless_it_is_set():
    assert [TPP()._target_r_hat(count) for count in (10_000, 10_001)] == [1.05, 1.2]
    assert TPP(r_hat=1.1)._target_r_hat(10**6) == 1.1


@cache
def old_and_new():
    """The crowd of the guide on domains: a fit of thirty queries, and four annotators' judgments on ten more."""
    crowd = domain_crowd(queries=40, items=6, annotators=8, domains=2, sparsity=0.4, even_domains=True, seed=8)
    table, late = crowd.judgments.to_frame(), pl.col("query") > "query30"
    some = pl.col("annotator").is_in(["annotator1", "annotator3", "annotator4", "annotator5"])
    return TPP().fit(read(table.filter(~late))), read(table.filter(late & some)), crowd.queries["domain"][30:]


@pytest.mark.parametrize("seed", range(5))
def test_an_update_converges_to_the_same_domains_with_any_seed_and_one_judgment_less(seed):
    """A query that fits two domains, with different scores in each, must not stay where its chain began."""
    old, votes, truth = old_and_new()
    rows = np.delete(np.random.default_rng(seed).permutation(len(votes)), 0)
    new = TPP(seed=seed).update(old, votes.take(rows))
    found = new.domains.domain
    assert new.parameters["r_hat"] <= 1.05
    np.testing.assert_array_equal(np.equal.outer(found, found), np.equal.outer(truth, truth))


def test_the_number_of_domains_is_approximately_found():
    right = []
    for seed in SEEDS:
        found, truth = ranking(seed).domains.domain, crowd(seed).queries["domain"]
        right.append(np.mean(np.equal.outer(found, found) == np.equal.outer(truth, truth)))
        assert 2 <= len(ranking(seed).domains) <= 3
    assert np.mean(right) > 0.85


@pytest.mark.parametrize("seed", SEEDS)
def test_quality_follows_expertise(seed):
    """In the unit of the model: true δ² is one twentieth on average."""
    chance = ndtr(crowd(seed).annotators["expertise"] * np.sqrt(0.05 / 2))
    truth = chance[:, crowd(seed).queries["domain"]].mean(axis=1)
    assert np.corrcoef(ranking(seed).annotators["quality"], truth)[0, 1] > 0.8


def test_reversed_annotators_are_found_in_their_domains():
    told, missed, wronged = 0, 0, 0
    for seed in SEEDS:
        domains, truth = ranking(seed, domains=2).domains, crowd(seed).annotators["expertise"]
        first = crowd(seed).queries["domain"][domains.domain == 1]
        names = [0, 1] if np.mean(first == 0) > 0.5 else [1, 0]
        said, are = domains.verdict == "reversed", truth[:, names] < 0
        told, missed, wronged = told + are.sum(), missed + np.sum(are & ~said), wronged + np.sum(said & ~are)
    assert told > 5
    assert missed <= 0.3 * told
    assert wronged == 0


def test_scores_have_a_root_mean_square_of_about_one():
    draws = ranking().uncertainty.draws
    np.testing.assert_allclose(np.sqrt(np.mean(draws**2, axis=1)), 1.0)
    assert 0.8 < np.sqrt(np.mean(ranking().scores ** 2)) <= 1.0
    assert ranking().domains.difficulty[0].mean() == pytest.approx(1.0)


def test_domains_count_the_judgments_of_everyone():
    domains = ranking().domains
    assert domains.n_judgments.sum(axis=1) == pytest.approx(ranking().annotators.n_judgments, abs=1)
    np.testing.assert_allclose(domains.membership.sum(axis=1), 1.0)


@few_draws
@pytest.mark.parametrize("count", [1, 2])
def test_the_number_of_domains_can_be_set(count):
    assert len(few(domains=count).fit(crowd().judgments).domains) == count


@few_draws
def test_there_is_at_most_one_domain_per_query():
    votes = crowd().judgments
    some = votes.take(np.flatnonzero(votes.items.query[votes.left] < 2))
    few_queries = Comparisons.of(**{name: some.to_frame()[name] for name in ("left", "right", "winner", "query")})
    assert len(few(domains=4).fit(few_queries).domains) <= 2


def test_intervals_have_about_their_nominal_coverage():
    held = []
    for seed in SEEDS:
        items, truth = crowd(seed).judgments.items, crowd(seed).truth
        truth = items.centre(truth)
        low, high = np.quantile(ranking(seed).uncertainty.draws, (0.05, 0.95), axis=0)
        truth = truth / np.sqrt(np.mean(truth**2))
        held.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.75 < np.mean(held) < 0.99


@cache
def cross_validated():
    return cross_validate(TPP(domains=2), crowd().judgments, folds=2)


def test_held_out_judgments_are_predicted_better_than_by_chance():
    assert cross_validated().mean > np.log(0.5) + 5 * cross_validated().std_error


def test_predicted_probabilities_add_to_one_and_swap_with_the_sides():
    votes = crowd().judgments
    other_way = replace(votes, left=votes.right, right=votes.left)
    probabilities, other = (TPP().predict(ranking(), some) for some in (votes, other_way))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probabilities[:, 1], 0.0)
    np.testing.assert_allclose(probabilities[:, 0], other[:, 2], atol=1e-12)
    assert np.mean((probabilities[:, 0] > 0.5) == (votes.outcome > 0)) > 0.7


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"domains": 0}, 'domains must be at least 1, or "auto", got 0'),
        ({"domains": "many"}, "got 'many'"),
        ({"inference": "em"}, 'inference must be "posterior" or "mcem"'),
        ({"expertise": "none"}, 'expertise must be "each" or "shared"'),
        ({"expertise": "shared"}, 'Set inference="mcem"'),
        ({"difficulty": "shared"}, 'Set inference="mcem"'),
        ({"chains": 1}, "chains must be at least 2, got 1"),
        ({"draws": 5}, "draws must be at least 10, got 5"),
        ({"max_sweeps": 5}, "max_sweeps must be at least 10, got 5"),
        ({"r_hat": 1.0}, 'r_hat must be above 1, or "auto", got 1.0'),
        ({"r_hat": "low"}, "got 'low'"),
    ],
    ids=str,
)
def test_settings_are_checked(wrong, said):
    with pytest.raises(SettingError, match=said):
        TPP(**wrong)


@few_draws
def test_weights_are_repetitions():
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "c"], annotator=["x", "y"])
    twice = Comparisons.of(["a", "b"] * 2, ["b", "c"] * 2, ["a", "c"] * 2, annotator=["x", "y"] * 2)
    weighed = few().fit(votes.reweighted(np.array([2.0, 2.0])))
    np.testing.assert_array_equal(few().fit(twice).scores, weighed.scores)


@few_draws
def test_ties_are_left_out_with_a_note():
    rows = {"left": [*"aab"], "right": [*"bbc"], "winner": ["a", "tie", "b"], "annotator": [*"xyx"]}
    decided = Comparisons.of(*(rows[c][::2] for c in ("left", "right", "winner")), annotator=["x", "x"])
    ranking = few().fit(Comparisons.of(**rows))
    assert "1 ties were dropped: tpp uses decided judgments only." in ranking.notes
    assert not any("ties" in note for note in few().fit(decided).notes)


@few_draws
@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("annotator", [None, ["x", "y", "x"]], ids=["no annotators", "named"])
@pytest.mark.parametrize("inference", ["posterior", "mcem"])
def test_a_query_of_ties_alone_gets_finite_scores(annotator, inference):
    votes = Comparisons.of(
        ["a", "a", "c"], ["b", "b", "d"], ["a", "a", "tie"], query=["1", "1", "2"], annotator=annotator
    )
    ranking = few(inference=inference).fit(votes)
    assert np.all(np.isfinite(ranking.scores))
    assert ranking.scores[0] > ranking.scores[1]
    assert np.all(np.isfinite(ranking.domains.difficulty))
    assert np.all(np.isfinite(TPP().predict(ranking, votes)))
    assert ranking.domains.expertise[0].shape == (0 if annotator is None else 2, len(ranking.domains))
    assert ranking.has_annotators == (annotator is not None)


def test_disconnected_components_are_warned_of():
    votes = Comparisons.of([*"ac"], [*"bd"], ["a", "d"])
    with pytest.warns(DataWarning, match="a, b; c, d"), pytest.warns(ConvergenceWarning):
        few(r_hat=1.0001).fit(votes)


def test_chains_that_have_not_converged_are_warned_of():
    said = "tpp did not converge in 20 steps.*so the chains have not converged.*Raise max_sweeps"
    with pytest.warns(ConvergenceWarning, match=said):
        ranking = few(r_hat=1.0001).fit(crowd().judgments)
    assert not ranking.convergence.converged


@few_draws
@pytest.mark.parametrize("more", [0, 5])
def test_few_judgments_leave_the_order_uncertain(more):
    """Annotators, not scores, decide the orientation; otherwise the first answer would be certain."""
    winner = ["a"] * (more + 1) + ["b"] * more
    votes = Comparisons.of(
        ["a"] * len(winner), ["b"] * len(winner), winner, annotator=[f"w{n}" for n in range(2 * more + 1)]
    )
    draws = TPP().fit(votes).uncertainty.draws
    assert 0.5 < np.mean(draws[:, 0] > draws[:, 1]) < 0.95


@few_draws
def test_an_annotator_with_one_judgment_is_uncertain():
    votes = crowd().judgments
    rows = np.flatnonzero((votes.annotator != 3) | (np.cumsum(votes.annotator == 3) == 1))
    domains = TPP(domains=1, max_sweeps=100).fit(votes.take(rows)).domains
    _, low, high = (part[3, 0] for part in domains.expertise)
    assert domains.n_judgments[3, 0] == 1
    assert high - low > 1.5
    assert domains.verdict[3, 0] in ("random", "average")


@few_draws
def test_an_annotator_without_judgments_is_unknown():
    votes = crowd().judgments
    domains = few(domains=1).fit(votes.take(np.flatnonzero(votes.annotator != 3))).domains
    assert domains.verdict[3, 0] == "unknown"


@few_draws
@pytest.mark.parametrize("times", [3, 40])
def test_unanimous_annotators_are_believed(times):
    pairs = [(a, b) for a in range(5) for b in range(a)] * times
    better, worse = zip(*((f"i{a}", f"i{b}") for a, b in pairs), strict=True)
    votes = Comparisons.of(better, worse, better, annotator=[f"w{n % 3}" for n in range(len(pairs))])
    ranking = TPP(max_sweeps=60).fit(votes)
    assert ranking.table(uncertainty=False)["item"].to_list() == ["i4", "i3", "i2", "i1", "i0"]
    assert np.all(ranking.domains.expertise[0] > 0)


@few_draws
def test_a_mostly_reversed_crowd_gives_a_reversed_ranking():
    """Only the majority determines the orientation."""
    votes = crowd().judgments
    ahead, back = few(domains=1).fit(votes), few(domains=1).fit(votes.with_outcomes_reversed())
    assert np.corrcoef(ahead.scores, back.scores)[0, 1] < -0.9


@few_draws
def test_draws_are_reproducible_with_their_seed():
    one, other, another = (few(seed=seed).fit(crowd().judgments).scores for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, other)
    assert np.any(one != another)


VARIANTS = [{}, {"domains": 1}, {"expertise": "shared"}, {"difficulty": "shared"}]


@few_draws
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_published_method_and_its_variants_give_rankings(variant):
    found = TPP(inference="mcem", **({"domains": 2} | variant)).fit(crowd().judgments)
    assert np.sqrt(np.mean(found.scores**2)) == pytest.approx(1.0)
    assert distance(found.scores, 0) < distance(-majority(0), 0) / 2
    middle, low, high = found.domains.expertise
    np.testing.assert_array_equal(low, high)
    assert len(found.domains) == variant.get("domains", 2)
    if variant.get("expertise") == "shared":
        np.testing.assert_array_equal(middle, np.broadcast_to(middle[0], middle.shape))
    if variant.get("difficulty") == "shared":
        np.testing.assert_allclose(found.domains.difficulty[0], 1.0)
    probabilities = TPP(inference="mcem").predict(found.without_uncertainty(), crowd().judgments)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@few_draws
def test_the_published_method_has_ten_domains_unless_there_are_fewer_queries():
    assert len(TPP(inference="mcem").fit(crowd().judgments).domains) == 10
    assert len(TPP(inference="mcem").fit(Comparisons.of([*"ab"], [*"bc"], [*"ab"])).domains) == 1


@few_draws
def test_the_uncertainty_of_the_published_method_is_a_bootstrap():
    few_votes = domain_crowd(queries=2, items=3, annotators=3, domains=1, sparsity=1.0, seed=1).judgments
    found = TPP(inference="mcem", domains=1).fit(few_votes).uncertainty
    assert "bootstrap" in found.method
    assert np.all(np.isfinite(found.std_error))


def test_domains_survive_a_round_trip(tmp_path):
    ranking().save(tmp_path / "ranking.json")
    loaded = Ranking.load(tmp_path / "ranking.json")
    for one, other in zip(ranking().domains.expertise, loaded.domains.expertise, strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.domains.annotators_frame().equals(ranking().domains.annotators_frame())
    assert loaded.domains.queries_frame().equals(ranking().domains.queries_frame())
    assert loaded.domains.ask().equals(ranking().domains.ask())
    np.testing.assert_allclose(
        TPP().predict(loaded, crowd().judgments), TPP().predict(ranking(), crowd().judgments), atol=1e-6
    )


def test_the_default_number_of_sweeps_is_bounded_by_cost():
    model = TPP()
    assert [model._max_sweeps(judgments, 10) for judgments in (0, 5_000, 20_000)] == [3000, 3000, 3000]
    assert model._max_sweeps(2_000_000, 40) == 18
    assert model._max_sweeps(10**9, 40) == 10
    assert TPP(max_sweeps=500)._max_sweeps(10**9, 40) == 500
