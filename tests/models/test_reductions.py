"""Different ways to compute the same numbers agree: special cases, other engines, other libraries."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.optimize import minimize
from scipy.special import log_expit, log_ndtr
from sklearn.linear_model import LogisticRegression

from crowdrank.data import Comparisons, Rankings
from crowdrank.engines import LocalEngine
from crowdrank.models import Borda, BradleyTerry, PlackettLuce, Thurstone
from crowdrank.models.lists import plackett_luce as list_models
from crowdrank.models.lists import plackett_luce_likelihood as list_formulas
from crowdrank.models.pairwise import likelihood as formulas
from crowdrank.models.pairwise import paired as pairwise_models
from tests.strategies import comparisons, rankings

quick = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
TIGHT = 1e-9


def crowd(items=12, rows=400, ties=0.0, seed=0, queries=1):
    """Answers of a logistic crowd; a share of them ties."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=items)
    left = rng.integers(items, size=rows)
    right = (left + rng.integers(1, items, size=rows)) % items
    won = rng.random(rows) < 1 / (1 + np.exp(scores[right] - scores[left]))
    winner = np.where(rng.random(rows) < ties, "tie", np.where(won, left, right).astype(str))
    query = None if queries == 1 else [f"q{n % queries}" for n in range(rows)]
    return Comparisons.of(left.astype(str), right.astype(str), winner, query=query)


def list_crowd(items=9, lists=60, seed=0, length=None):
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=items) + rng.gumbel(size=(lists, items))
    orders = np.argsort(-keys, axis=1)[:, :length]
    return Rankings.of_lists([[[f"i{k}"] for k in order] for order in orders])


@quick
@given(votes=comparisons(ties=False))
def test_plackett_luce_on_pairs_is_bradley_terry(votes):
    """Each comparison as a list of two."""
    rows = np.arange(len(votes))
    winner = np.where(votes.outcome > 0, votes.left, votes.right)
    loser = np.where(votes.outcome > 0, votes.right, votes.left)
    pairs = Rankings(
        items=votes.items,
        item=np.stack((winner, loser), axis=1).ravel(),
        place=np.tile([0, 1], len(votes)),
        offsets=np.append(2 * rows, 2 * len(votes)),
        weight=votes.weight,
    )
    one = BradleyTerry(prior_scale=3.0, tolerance=TIGHT).fit(votes)
    other = PlackettLuce(prior_scale=3.0, tolerance=TIGHT).fit(pairs)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-7)
    np.testing.assert_allclose(one.uncertainty.std_error, other.uncertainty.std_error, rtol=1e-6)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-7)


@quick
@given(votes=comparisons(ties=False))
def test_without_ties_every_treatment_of_ties_is_the_same(votes):
    for kind, modelled in ((BradleyTerry, "davidson"), (Thurstone, "threshold")):
        fits = [kind(ties=ties).fit(votes) for ties in (modelled, "half", "drop")]
        for other in fits[1:]:
            np.testing.assert_array_equal(fits[0].scores, other.scores)
        assert list(fits[0].parameters) == ["prior_scale"]


@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone])
@pytest.mark.parametrize("ties", [0.0, 0.25], ids=["no ties", "ties"])
def test_counts_of_pairs_say_all_that_rows_say(kind, ties, monkeypatch):
    votes = crowd(ties=ties)
    assert isinstance(pairwise_models.reduce(votes, formulas.LOGISTIC), formulas.WinMatrix)
    assert isinstance(pairwise_models.reduce(votes, formulas.DAVIDSON), formulas.Pairs)
    assert pairwise_models.reduce_to_pairs(votes, formulas.LOGISTIC).rows < len(votes)
    counted = kind(tolerance=TIGHT).fit(votes)
    monkeypatch.setattr(pairwise_models, "reduce", lambda c, _: formulas.Pairs(c.left, c.right, c.outcome, c.weights))
    by_row = kind(tolerance=TIGHT).fit(votes)
    np.testing.assert_allclose(counted.scores, by_row.scores, atol=1e-8)
    assert counted.log_likelihood == pytest.approx(by_row.log_likelihood, rel=1e-10)
    assert counted.parameters == pytest.approx(by_row.parameters)
    np.testing.assert_allclose(counted.uncertainty.std_error, by_row.uncertainty.std_error, rtol=1e-6)


@pytest.mark.parametrize("prior_scale", [3.0, None])
@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone])
@pytest.mark.parametrize("ties", [0.0, 0.25], ids=["no ties", "ties"])
def test_many_shards_are_one(kind, ties, prior_scale):
    votes = crowd(items=40, rows=1_500, ties=ties, queries=2)
    model = kind(tolerance=TIGHT, prior_scale=prior_scale)
    whole, cut = model.fit(votes), model.fit(votes, engine=LocalEngine(rows_per_shard=100))
    np.testing.assert_allclose(whole.scores, cut.scores, atol=1e-8)
    np.testing.assert_allclose(whole.uncertainty.std_error, cut.uncertainty.std_error, rtol=1e-7)
    assert whole.log_likelihood == pytest.approx(cut.log_likelihood, rel=1e-12)


@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone])
@pytest.mark.parametrize("ties", [0.0, 0.25], ids=["no ties", "ties"])
def test_compiled_loops_and_conjugate_gradients_give_what_arrays_and_factoring_give(kind, ties, monkeypatch):
    votes = crowd(items=40, rows=380, ties=ties)
    small = kind(tolerance=TIGHT).fit(votes)
    monkeypatch.setattr(formulas, "COMPILE_MIN_ROWS", 0)
    monkeypatch.setattr(pairwise_models, "_LARGEST_FACTORED", 0)
    large = kind(tolerance=TIGHT).fit(votes)
    np.testing.assert_allclose(small.scores, large.scores, atol=1e-6)
    assert small.log_likelihood == pytest.approx(large.log_likelihood, rel=1e-9)
    assert small.parameters == pytest.approx(large.parameters, rel=1e-6)
    np.testing.assert_allclose(small.uncertainty.std_error, large.uncertainty.std_error, rtol=1e-5)


@pytest.mark.parametrize("prior_scale", [3.0, None])
@pytest.mark.parametrize("length", [None, 4], ids=["full lists", "partial lists"])
def test_plackett_luce_is_the_same_in_shards_compiled_and_by_conjugate_gradients(length, prior_scale, monkeypatch):
    lists = list_crowd(length=length)
    model = PlackettLuce(tolerance=TIGHT, prior_scale=prior_scale)
    plain = model.fit(lists)
    cut = model.fit(lists, engine=LocalEngine(rows_per_shard=20))
    monkeypatch.setattr(list_formulas, "_PLAIN_UP_TO", 0)
    monkeypatch.setattr(list_models, "_LARGEST_FACTORED", 0)
    large = model.fit(lists)
    for other in (cut, large):
        np.testing.assert_allclose(plain.scores, other.scores, atol=1e-7)
        assert plain.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-11)


def design(votes):
    """A row a comparison: +1 for the left item, −1 for the right; the last item is the zero of the scale."""
    X = np.zeros((len(votes), len(votes.items)))
    X[np.arange(len(votes)), votes.left] = 1
    X[np.arange(len(votes)), votes.right] = -1
    return X[:, :-1]


def centred(short):
    scores = np.append(short, 0.0)
    return scores - scores.mean()


def test_bradley_terry_is_logistic_regression_on_differences():
    votes = crowd(rows=800)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        reference = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cg")
        reference.fit(design(votes), votes.outcome)
    found = BradleyTerry(prior_scale=None, tolerance=TIGHT).fit(votes)
    np.testing.assert_allclose(found.scores, centred(reference.coef_[0]), atol=1e-5)


@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone])
@pytest.mark.parametrize("prior_scale", [None, 1.5])
def test_an_optimiser_of_scipys_finds_no_better_fit(kind, prior_scale):
    votes = crowd(rows=800)
    log_chance = log_expit if kind is BradleyTerry else lambda x: log_ndtr(x / np.sqrt(2))
    precision = 0.0 if prior_scale is None else prior_scale**-2

    def loss(scores):
        margin = (scores[votes.left] - scores[votes.right]) * votes.outcome
        return -float(np.sum(log_chance(margin))) + 0.5 * precision * float(scores @ scores)

    reference = minimize(loss, np.zeros(len(votes.items)), method="BFGS", options={"gtol": 1e-7})
    found = kind(prior_scale=prior_scale, tolerance=TIGHT).fit(votes)
    assert loss(found.scores) == pytest.approx(reference.fun, rel=1e-8)
    assert loss(found.scores) <= reference.fun * (1 + 1e-12)
    np.testing.assert_allclose(found.scores, reference.x - reference.x.mean(), atol=1e-4)


@quick
@given(lists=rankings())
def test_borda_on_lists_is_borda_on_all_their_pairs(lists):
    on_lists = Borda().fit(lists)
    on_pairs = Borda().fit(lists.to_comparisons("all", ties="keep"))
    np.testing.assert_allclose(on_lists.scores, on_pairs.scores, atol=1e-9)


def test_thurstone_is_nearly_bradley_terry_on_another_scale():
    votes = crowd(items=8, rows=4_000)
    logistic, probit = BradleyTerry().fit(votes), Thurstone().fit(votes)
    assert np.corrcoef(logistic.scores, probit.scores)[0, 1] > 0.999
    slope = float(logistic.scores @ probit.scores / (logistic.scores @ logistic.scores))
    assert 0.75 < slope < 0.95


@quick
@given(votes=comparisons(both_ways=True))
def test_half_a_tie_is_half_a_win_each(votes):
    """A tie counted half is a win and a loss of half the weight."""
    tied = np.flatnonzero(votes.outcome == 0)
    decided = np.flatnonzero(votes.outcome != 0)
    rows = np.concatenate((decided, tied, tied))
    split = votes.take(rows)
    outcome = np.concatenate((votes.outcome[decided], np.ones(len(tied)), -np.ones(len(tied)))).astype(np.int8)
    weight = np.concatenate((votes.weights[decided], votes.weights[tied] / 2, votes.weights[tied] / 2))
    same = Comparisons(items=votes.items, left=split.left, right=split.right, outcome=outcome, weight=weight)
    for kind in (BradleyTerry, Thurstone):
        one = kind(ties="half", prior_scale=None, tolerance=TIGHT).fit(votes)
        other = kind(prior_scale=None, tolerance=TIGHT).fit(same)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-7)


def test_pairs_are_counted_only_where_that_takes_fewer_passes_than_it_saves(monkeypatch):
    votes = crowd(items=10, rows=200)  # 100 cells
    assert pairwise_models.reduce_to_pairs(votes, 0).rows < len(votes)
    monkeypatch.setattr(pairwise_models, "MAX_CELLS", 20)  # five passes to count them
    assert pairwise_models.reduce_to_pairs(votes, 0).rows == len(votes)
