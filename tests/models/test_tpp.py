"""Thurstonian pairwise preferences: simulated truth is recovered, and nothing makes it stumble."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from crowdrank import Comparisons, Ranking, read
from crowdrank.errors import ConvergenceWarning, DataWarning, SettingError
from crowdrank.evaluation import held_out, kendall_distance
from crowdrank.models.thurstonian.sampler import laid_out
from crowdrank.models.thurstonian.start import head_count
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
    """Pairs the wrong way round in a query, on average."""
    items = crowd(seed).judgments.items
    return np.mean([kendall_distance(scores[b], crowd(seed).truth[b]) for b in map(items.of_query, range(20))])


def counted(seed):
    return head_count(laid_out(crowd(seed).judgments), crowd(seed).judgments.items)


def test_scores_are_nearer_the_truth_than_a_head_count():
    found = np.mean([distance(ranking(seed).scores, seed) for seed in SEEDS])
    assert found < 0.75 * np.mean([distance(counted(seed), seed) for seed in SEEDS])


def test_chains_meet_and_say_so():
    for seed in SEEDS:
        parameters = ranking(seed).parameters
        assert ranking(seed).convergence.converged
        assert parameters["r_hat"] <= 1.05
        assert 0.4 < parameters["accepted"] < 0.95


def test_more_judgments_have_a_looser_target_unless_it_is_set():
    assert [TPP()._target(count) for count in (10_000, 10_001)] == [1.05, 1.2]
    assert TPP(r_hat=1.1)._target(10**6) == 1.1


@cache
def old_and_new():
    """The crowd of the guide on domains: a fit of thirty queries, and four annotators' judgments on ten more."""
    crowd = domain_crowd(queries=40, items=6, annotators=8, domains=2, sparsity=0.4, even_domains=True, seed=8)
    table, late = crowd.judgments.to_frame(), pl.col("query") > "query30"
    some = pl.col("annotator").is_in(["annotator1", "annotator3", "annotator4", "annotator5"])
    return TPP().fit(read(table.filter(~late))), read(table.filter(late & some)), crowd.queries["domain"][30:]


@pytest.mark.parametrize("seed", range(5))
def test_an_update_converges_and_finds_the_same_domains_with_any_seed_and_a_judgment_less(seed):
    """A query that fits two domains, with other scores in each, must not stay where its chain began."""
    old, votes, truth = old_and_new()
    rows = np.delete(np.random.default_rng(seed).permutation(len(votes)), 0)
    new = TPP(seed=seed).update(old, votes.take(rows))
    found = new.domains.domain
    assert new.parameters["r_hat"] <= 1.05
    np.testing.assert_array_equal(np.equal.outer(found, found), np.equal.outer(truth, truth))


def test_domains_are_found_in_about_their_number():
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
    assert domains.judged.sum(axis=1) == pytest.approx(ranking().annotators.judged, abs=1)
    np.testing.assert_allclose(domains.membership.sum(axis=1), 1.0)


@few_draws
@pytest.mark.parametrize("count", [1, 2])
def test_domains_are_as_many_as_they_are_said_to_be(count):
    assert len(few(domains=count).fit(crowd().judgments).domains) == count


@few_draws
def test_domains_are_at_most_one_a_query():
    votes = crowd().judgments
    some = votes.take(np.flatnonzero(votes.items.query[votes.left] < 2))
    few_queries = Comparisons.of(**{name: some.to_frame()[name] for name in ("left", "right", "winner", "query")})
    assert len(few(domains=4).fit(few_queries).domains) <= 2


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    held = []
    for seed in SEEDS:
        items, truth = crowd(seed).judgments.items, crowd(seed).truth
        truth = items.centre(truth)
        low, high = np.quantile(ranking(seed).uncertainty.draws, (0.05, 0.95), axis=0)
        truth = truth / np.sqrt(np.mean(truth**2))
        held.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.75 < np.mean(held) < 0.99


@cache
def foretold():
    return held_out(TPP(domains=2), crowd().judgments, folds=2)


def test_judgments_are_foretold_better_than_by_chance():
    assert foretold().mean > np.log(0.5) + 5 * foretold().std_error


def test_chances_of_an_answer_add_to_one_and_turn_with_the_sides():
    votes = crowd().judgments
    other_way = replace(votes, left=votes.right, right=votes.left)
    chances, other = (TPP().predict(ranking(), some) for some in (votes, other_way))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(chances[:, 1], 0.0)
    np.testing.assert_allclose(chances[:, 0], other[:, 2], atol=1e-12)
    assert np.mean((chances[:, 0] > 0.5) == (votes.outcome > 0)) > 0.7


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"domains": 0}, 'domains must be at least 1, or "auto", got 0'),
        ({"domains": "many"}, "got 'many'"),
        ({"inference": "em"}, "inference must be posterior or mcem, got 'em'"),
        ({"expertise": "none"}, "expertise must be each or shared"),
        ({"expertise": "shared"}, 'set inference="mcem"'),
        ({"difficulty": "shared"}, 'set inference="mcem"'),
        ({"chains": 1}, "chains must be at least 2"),
        ({"draws": 5}, "draws and max_sweeps at least 10"),
        ({"max_sweeps": 5}, "draws and max_sweeps at least 10"),
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
    assert "1 ties left out: this model reads decided judgments only." in ranking.notes
    assert not any("ties" in note for note in few().fit(decided).notes)


@few_draws
@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("annotator", [None, ["x", "y", "x"]], ids=["nobody named", "named"])
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
    assert (ranking.survey is None) == (annotator is None)


def test_islands_of_ties_are_told():
    votes = Comparisons.of([*"ac"], [*"bd"], ["a", "d"])
    with pytest.warns(DataWarning, match="a, b; c, d"), pytest.warns(ConvergenceWarning):
        few(r_hat=1.0001).fit(votes)


def test_chains_cut_short_are_warned_of():
    with pytest.warns(ConvergenceWarning, match="tpp stopped after 20 steps.*so the chains have not met: raise max_sw"):
        ranking = few(r_hat=1.0001).fit(crowd().judgments)
    assert not ranking.convergence.converged


@few_draws
@pytest.mark.parametrize("more", [0, 5])
def test_hardly_any_judgments_leave_the_order_open(more):
    """Which way is up is decided by annotators, not by scores: else the first answer would be certain."""
    winner = ["a"] * (more + 1) + ["b"] * more
    votes = Comparisons.of(
        ["a"] * len(winner), ["b"] * len(winner), winner, annotator=[f"w{n}" for n in range(2 * more + 1)]
    )
    draws = TPP().fit(votes).uncertainty.draws
    assert 0.5 < np.mean(draws[:, 0] > draws[:, 1]) < 0.95


@few_draws
def test_an_annotator_with_one_judgment_is_hardly_known():
    votes = crowd().judgments
    rows = np.flatnonzero((votes.annotator != 3) | (np.cumsum(votes.annotator == 3) == 1))
    domains = TPP(domains=1, max_sweeps=100).fit(votes.take(rows)).domains
    _, low, high = (part[3, 0] for part in domains.expertise)
    assert domains.judged[3, 0] == 1
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
def test_a_crowd_mostly_reversed_comes_out_upside_down():
    """Nothing but a head count can say which way is up."""
    votes = crowd().judgments
    ahead, back = few(domains=1).fit(votes), few(domains=1).fit(votes.with_outcomes_reversed())
    assert np.corrcoef(ahead.scores, back.scores)[0, 1] < -0.9


@few_draws
def test_the_seed_decides_what_is_drawn():
    one, other, another = (few(seed=seed).fit(crowd().judgments).scores for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, other)
    assert np.any(one != another)


VARIANTS = [{}, {"domains": 1}, {"expertise": "shared"}, {"difficulty": "shared"}]


@few_draws
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_published_method_and_its_variants_rank_too(variant):
    found = TPP(inference="mcem", **({"domains": 2} | variant)).fit(crowd().judgments)
    assert np.sqrt(np.mean(found.scores**2)) == pytest.approx(1.0)
    assert distance(found.scores, 0) < distance(-counted(0), 0) / 2
    middle, low, high = found.domains.expertise
    np.testing.assert_array_equal(low, high)
    assert len(found.domains) == variant.get("domains", 2)
    if variant.get("expertise") == "shared":
        np.testing.assert_array_equal(middle, np.broadcast_to(middle[0], middle.shape))
    if variant.get("difficulty") == "shared":
        np.testing.assert_allclose(found.domains.difficulty[0], 1.0)
    chances = TPP(inference="mcem").predict(replace(found, measure=None), crowd().judgments)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)


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
