"""Sequential MCMC: the posterior of Crowd-BT, sampled again as judgments arrive."""

import numpy as np
import pytest

from crowdrank import BayesianCrowdBT
from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import DataError, SettingError
from crowdrank.online import Beliefs, CrowdBT, Posterior, SequentialMCMC
from crowdrank.simulation import crowd_bt

QUICK = SequentialMCMC(refit_every=10, warmup=20, draws=30, thin=1)


@pytest.fixture(scope="module")
def votes():
    return crowd_bt(items=8, annotators=5, pairs=28, votes=5, labels="logistic", seed=3).judgments


def rows(votes):
    for row in votes.to_frame().iter_rows(named=True):
        yield Comparison(row["left"], row["right"], row["winner"], row["annotator"])


def test_it_is_the_posterior_of_bayesian_crowd_bt(votes):
    settings = {"prior_scale": 2.0, "quality_prior": (4.0, 1.0)}
    model = SequentialMCMC(**settings, draws=1500, thin=5)
    beliefs = model.fold(model.start(votes.items, votes.annotators), votes)
    known = BayesianCrowdBT(**settings, draws=800).fit(votes)
    error = known.uncertainty.std_error
    assert np.abs(beliefs.mean - known.scores).max() < 0.15 * error.mean()
    np.testing.assert_allclose(np.sqrt(beliefs.variance), error, rtol=0.15)
    np.testing.assert_allclose(beliefs.quality, known.annotators["quality"], atol=0.03)


def test_many_refits_agree_with_a_single_one(votes):
    model = SequentialMCMC(prior_scale=2.0, quality_prior=(4.0, 1.0), refit_every=20, warmup=100, draws=800, thin=5)
    stepwise = model.start(votes.items, votes.annotators)
    for judgment in rows(votes):
        stepwise = model.update(stepwise, judgment)
    assert stepwise.n_pending == 0
    once = model.fold(model.start(votes.items, votes.annotators), votes)
    assert np.abs(stepwise.mean - once.mean).max() < 0.25 * np.sqrt(once.variance).mean()


def test_judgments_wait_for_the_next_refit_and_a_fold_always_refits(votes):
    beliefs = QUICK.start(votes.items, votes.annotators)
    judgments = list(rows(votes))
    for number, judgment in enumerate(judgments[:9], 1):
        later = QUICK.update(beliefs, judgment)
        assert later.n_pending == number
        assert later.draws is beliefs.draws
        beliefs = later
    assert len(beliefs.pending_pairs) == 9
    assert QUICK.update(beliefs, judgments[9]).n_pending == 0
    assert QUICK.fold(beliefs, votes.take(np.arange(2))).n_pending == 0


def test_the_same_judgments_give_the_same_draws_and_nothing_is_changed(votes):
    start = QUICK.start(votes.items, votes.annotators)
    before = start.draws.scores.copy()
    first, second = QUICK.fold(start, votes), QUICK.fold(start, votes)
    np.testing.assert_array_equal(first.draws.scores, second.draws.scores)
    np.testing.assert_array_equal(start.draws.scores, before)
    assert start.n_judgments == 0
    assert len(start.winner) == 0


def test_new_items_and_annotators_follow_the_prior_until_the_next_refit(votes):
    model = SequentialMCMC(prior_scale=2.0, quality_prior=(4.0, 1.0), refit_every=10, draws=400)
    beliefs = model.fold(model.start(votes.items, votes.annotators), votes)
    grown = model.update(beliefs, Comparison("new", "item1", "new", "zoe"))
    assert grown.items.labels[-1] == "new"
    assert np.sqrt(grown.variance[-1]) == pytest.approx(2.0, rel=0.15)
    assert grown.quality[-1] == pytest.approx(0.8, abs=0.05)
    np.testing.assert_array_equal(grown.draws.scores[:, :-1], beliefs.draws.scores)
    sampled = model.fold(grown, Comparisons.of(["new"], ["item1"], ["new"], annotator=["zoe"]))
    assert sampled.mean[-1] > sampled.mean[sampled.items.index("item1")]


def test_scores_have_mean_zero_in_each_query_in_whatever_order_items_joined():
    beliefs = QUICK.start()
    for n, (left, right, query) in enumerate(
        [("a", "b", "q2"), ("a", "b", "q1"), ("b", "c", "q2"), ("a", "c", "q1")] * 3
    ):
        beliefs = QUICK.update(beliefs, Comparison(left, right, left, f"person{n % 2}", query))
    sampled = QUICK.fold(beliefs, Comparisons.of(["a"], ["b"], ["a"], annotator=["person0"], query=["q1"]))
    for query in ("q1", "q2"):
        mine = [n for n, q in enumerate(sampled.items.queries) if q == query]
        assert len(mine) == 3
        np.testing.assert_allclose(sampled.draws.scores[:, mine].sum(axis=1), 0, atol=1e-9)
        a, b, c = (sampled.items.index(label, query) for label in "abc")
        assert sampled.mean[a] > max(sampled.mean[b], sampled.mean[c])


def test_a_crowd_that_is_mostly_reversed_is_taken_at_the_word_of_the_most():
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i in range(6) for j in range(6) if i < j]
    people = [f"p{n}" for n in range(6)]
    left, right, winner, who = [], [], [], []
    for number, person in enumerate(people):
        for i, j in pairs:
            best, other = (j, i) if number < 5 else (i, j)
            left.append(str(i)), right.append(str(j)), who.append(person)
            winner.append(str(best if rng.random() < 0.95 else other))
    votes = Comparisons.of(left, right, winner, annotator=who)
    beliefs = SequentialMCMC(draws=100).fold(SequentialMCMC(draws=100).start(votes.items, votes.annotators), votes)
    assert beliefs.mean[5] > beliefs.mean[0]
    assert beliefs.quality[5] < 0.5 < beliefs.quality[:5].min()


def test_a_tie_is_half_an_answer_each_way():
    votes = Comparisons.of(["a", "a"], ["b", "b"], ["tie", "a"], annotator=["x", "x"], weight=[1.0, 3.0])
    beliefs = QUICK.fold(QUICK.start(), votes)
    assert (beliefs.n_judgments, beliefs.n_ties_dropped, beliefs.n_pending) == (2, 0, 0)
    assert beliefs.winner.tolist() == [1, 0, 0]
    assert beliefs.loser.tolist() == [0, 1, 1]
    assert beliefs.weight.tolist() == [0.5, 0.5, 3.0]


def test_ties_draw_two_items_together():
    wins = {"left": ["a"] * 6, "right": ["b"] * 6, "winner": ["a"] * 6}
    tied = {"left": ["a"] * 30, "right": ["b"] * 30, "winner": ["a"] * 6 + ["tie"] * 24}
    model = SequentialMCMC(draws=200, prior_scale=1.0, quality_prior=(10.0, 1.0))
    apart, close = (model.fold(model.start(["a", "b"]), Comparisons.of(**rows)).mean for rows in (wins, tied))
    assert close[0] - close[1] < (apart[0] - apart[1]) / 2


def test_what_is_saved_is_loaded_and_goes_on_the_same_way(votes, tmp_path):
    beliefs = QUICK.fold(QUICK.start(votes.items, votes.annotators), votes)
    beliefs.save(tmp_path / "beliefs.json")
    loaded = Beliefs.load(tmp_path / "beliefs.json")
    assert isinstance(loaded, Posterior)
    one, other = (QUICK.fold(each, votes.take(np.arange(3))) for each in (beliefs, loaded))
    np.testing.assert_array_equal(one.draws.scores, other.draws.scores)
    np.testing.assert_array_equal(one.alpha, other.alpha)


def test_beliefs_of_another_model_are_refused(votes):
    with pytest.raises(DataError, match="SequentialMCMC"):
        QUICK.fold(CrowdBT().start(votes.items), votes)


@pytest.mark.parametrize(
    "wrong", [{"prior_scale": -1}, {"quality_prior": (0, 1)}, {"refit_every": 0}, {"draws": 0}, {"warmup": -1}]
)
def test_settings_make_sense(wrong):
    with pytest.raises(SettingError):
        SequentialMCMC(**wrong)
