"""Thurstonian ranking model: simulated truth is recovered by both methods, and edge cases stay finite."""

from functools import cache

import numpy as np
import pytest

from crowdrank import TRM, Borda, Rankings
from crowdrank.errors import ConvergenceWarning, DataError, DataWarning, SettingError
from crowdrank.evaluation import kendall_distance
from crowdrank.inference.mcmc import sample
from crowdrank.models.thurstonian import trm
from crowdrank.models.thurstonian.trm import _state_to_draw, difficulty_estimates

ITEMS, QUERIES = 8, 6
cut_short = pytest.mark.filterwarnings("ignore:trm:crowdrank.errors.ConvergenceWarning")


def crowd(seed, lists=12, shown=ITEMS, top=None, difficulty=None):
    """Lists drawn from the model; scores and difficulties in the unit of the model. Each list is of `shown` items."""
    rng = np.random.default_rng(seed)
    scores = 1.5 * rng.normal(size=(QUERIES, ITEMS))
    drawn = 1 / rng.gamma(2.0, size=QUERIES)
    difficulty = drawn if difficulty is None else np.array(difficulty)
    made, queries = [], []
    for query in np.repeat(np.arange(QUERIES), lists):
        item = rng.permutation(ITEMS)[:shown]
        seen = scores[query, item] + np.sqrt(difficulty[query]) * rng.normal(size=shown)
        places = [[f"i{n}"] for n in item[np.argsort(-seen)]]
        made.append(places if top is None else [*places[:top], [label for (label,) in places[top:]]])
        queries.append(f"q{query}")
    scores -= scores.mean(axis=1, keepdims=True)
    return Rankings.of_lists(made, query=queries), scores / np.sqrt(difficulty.mean()), difficulty / difficulty.mean()


@cache
def fitted(seed, inference="posterior", **settings):
    lists, scores, difficulty = crowd(seed)
    return TRM(inference=inference, **settings).fit(lists), scores, difficulty


def distance(ranking, scores):
    """Mean number of discordant pairs per query."""
    return np.mean([kendall_distance(a, b) for a, b in zip(ranking.scores.reshape(scores.shape), scores, strict=True)])


def test_chains_converge_and_report_it():
    ranking, _, _ = fitted(0)
    assert ranking.convergence.converged
    assert ranking.parameters["r_hat"] < 1.05
    assert ranking.parameters["effective_size"] > 150


def test_long_lists_end_when_chains_have_converged(monkeypatch):
    monkeypatch.setattr(trm, "_MOST_UPDATES", 200 * 8 * 12 * QUERIES)
    ranking = TRM().fit(crowd(0)[0])
    assert ranking.convergence.converged
    assert ranking.convergence.steps < 500
    assert np.mean(np.abs(ranking.scores - fitted(0)[0].scores) < 0.3) > 0.9


def test_chains_that_have_not_converged_are_warned_of():
    with pytest.warns(ConvergenceWarning, match="R̂ above 1, so the chains have not converged.*Raise draws and warmup"):
        assert not TRM(draws=10, warmup=0).fit(crowd(0, lists=2)[0]).convergence.converged


@pytest.mark.parametrize("inference", ["posterior", "mcem"])
def test_scores_follow_the_truth(inference):
    settings = {} if inference == "posterior" else {"rounds": 40}
    ranking, scores, _ = fitted(0, inference, **settings)
    assert np.corrcoef(ranking.scores, scores.ravel())[0, 1] > 0.9
    assert distance(ranking, scores) < 5  # of 28 pairs


@cut_short
def test_more_lists_bring_scores_closer_to_the_truth():
    errors = []
    for count in (3, 30):
        lists, scores, _ = crowd(4, lists=count)
        errors.append(distance(TRM(chains=2, draws=60, warmup=100).fit(lists), scores))
    assert errors[1] < 0.7 * errors[0]


@cut_short
def test_intervals_have_their_nominal_coverage():
    inside = []
    for seed in range(20, 32):
        lists, scores, _ = crowd(seed, lists=6)
        low, high = np.quantile(TRM(chains=2, draws=60).fit(lists).uncertainty.draws, (0.05, 0.95), axis=0)
        inside.append(np.mean((low <= scores.ravel()) & (scores.ravel() <= high)))
    assert 0.85 < np.mean(inside) < 0.95


@cut_short
def test_items_missing_at_random_do_not_matter():
    lists, scores, _ = crowd(1, lists=25, shown=4)
    ranking = TRM(chains=2, draws=100).fit(lists)
    assert np.corrcoef(ranking.scores, scores.ravel())[0, 1] > 0.85


@cut_short
def test_items_outside_the_top_are_ranked_below_it():
    """Lists have two positions and an unordered rest: the better items are ordered, and the rest is below them."""
    lists, scores, _ = crowd(2, lists=30, top=2)
    ranking = TRM(chains=2, draws=100).fit(lists)
    assert np.corrcoef(ranking.scores, scores.ravel())[0, 1] > 0.8
    best = scores.argmax(axis=1)
    assert np.mean(ranking.scores.reshape(scores.shape).argmax(axis=1) == best) > 0.6


def test_hard_queries_are_distinguished_from_easy_ones():
    lists, _, difficulty = crowd(3, lists=30, difficulty=[0.1, 2.0] * 3)
    sampler = TRM().sampler(lists)
    samples = sample(
        sampler.init,
        sampler.run,
        lambda state: _state_to_draw(sampler, state),
        chains=2,
        warmup=100,
        draws=100,
        thin=3,
        seed=0,
    )
    mean, low, high = difficulty_estimates(samples, lists.items)
    assert mean.mean() == pytest.approx(1.0)
    assert np.mean((low <= difficulty) & (difficulty <= high)) > 0.8
    assert mean[::2].max() < mean[1::2].min()


def test_a_ranking_of_many_queries_reports_their_difficulty():
    lists, _, _ = crowd(3, lists=30, difficulty=[0.1, 2.0] * 3)
    domains = TRM(chains=2, draws=100, warmup=100).fit(lists).domains
    assert (len(domains), len(domains.annotators)) == (1, 0)
    assert set(domains.queries_frame()["query"].to_list()[:3]) == {"q1", "q3", "q5"}
    assert domains.as_dict()["sizes"] == [QUERIES]
    assert not TRM(chains=2).fit(Rankings.of_lists([[["a"], ["b"]], [["b"], ["a"]]])).has_domains


def test_reversed_lists_give_negated_scores():
    lists, _, _ = crowd(0)
    there, back = fitted(0)[0], TRM().fit(lists.with_outcomes_reversed())
    error = there.uncertainty.std_error
    assert np.all(np.abs(there.scores + back.scores) < 6 * error / np.sqrt(there.parameters["effective_size"]))


def few(**settings):
    return TRM(chains=2, draws=50, warmup=50, rounds=12, **settings)


odd = pytest.mark.filterwarnings("ignore::crowdrank.errors.CrowdrankWarning")
both = pytest.mark.parametrize("inference", ["posterior", "mcem"])


@odd
@both
@pytest.mark.parametrize(
    ("lists", "queries"),
    [
        ([[["a"], ["b"], ["c"]]], "x"),
        ([[["a"], ["b"], ["c"]]] * 9, "x" * 9),
        ([[["a"], ["b"]], [["b"]], [["c"]]], "xxx"),
        ([[["a"], ["b"]], [["a", "b"]]], "xy"),
        ([[["a"], ["b", "c"]], [["b"]], [["a", "b"], ["c"]]], "xyx"),
    ],
    ids=["one list", "unanimous", "lists of one item", "a query without ordered items", "ties and a query of one item"],
)
def test_odd_lists_give_finite_scores(inference, lists, queries):
    ranking = few(inference=inference).fit(Rankings.of_lists(lists, query=list(queries)))
    assert np.isfinite(ranking.scores).all()
    assert np.isfinite(ranking.uncertainty.std_error).all()
    assert ranking.scores[0] > ranking.scores[1]


@cut_short
@both
def test_a_list_of_one_item_changes_nothing(inference):
    lists = [[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]]]
    one, more = (few(inference=inference).fit(Rankings.of_lists(said)) for said in (lists, [*lists, [["c"]], [["b"]]]))
    np.testing.assert_array_equal(one.scores, more.scores)


def test_lists_that_order_nothing_are_refused():
    with pytest.raises(DataError, match="any two items"):
        TRM().fit(Rankings.of_lists([[["a", "b"]], [["c"]]]))


@cut_short
def test_weights_are_repetitions_and_fractional_ones_are_refused():
    lists = [[["a"], ["b"]], [["b"], ["c"]]]
    weighed, repeated = Rankings.of_lists(lists, weight=[2, 1]), Rankings.of_lists([lists[0], *lists])
    np.testing.assert_array_equal(few().fit(weighed).scores, few().fit(repeated).scores)
    with pytest.raises(DataError, match=r"List 2: .* weights, got 0\.5"):
        few().fit(Rankings.of_lists(lists, weight=[1, 0.5]))


def test_disconnected_components_are_warned_of():
    with pytest.warns(DataWarning, match="a, b; c, d"):
        TRM(chains=2).fit(Rankings.of_lists([[["a"], ["b"]], [["c"], ["d"]]]))


def test_em_that_has_not_converged_is_warned_of():
    """If all lists agree, the maximum-likelihood scores are infinite."""
    unanimous = Rankings.of_lists([[["a"], ["b"], ["c"]]] * 20)
    with pytest.warns(ConvergenceWarning, match="a quarter of the rounds before.*Raise rounds"):
        ranking = TRM(inference="mcem", rounds=20).fit(unanimous)
    assert not ranking.convergence.converged


@cut_short
def test_the_posterior_beats_borda_on_short_lists():
    posterior, borda = [], []
    for seed in range(4):
        lists, scores, _ = crowd(seed, lists=10, shown=3)
        posterior.append(distance(TRM(chains=2, draws=60, warmup=100).fit(lists), scores))
        borda.append(distance(Borda().fit(lists), scores))
    assert np.mean(posterior) < np.mean(borda)


@pytest.mark.parametrize("wrong", [{"inference": "em"}, {"chains": 1}, {"draws": 5}, {"warmup": -1}, {"rounds": 3}])
def test_settings_are_checked(wrong):
    with pytest.raises(SettingError):
        TRM(**wrong)
