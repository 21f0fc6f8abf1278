"""The learnt spread of scores: prior_scale="auto" of bradley-terry and thurstone."""

import numpy as np
import pytest
from scipy.special import log_expit

from crowdrank.data import Comparisons, Items
from crowdrank.models import BradleyTerry, Thurstone, WinRate
from crowdrank.models.pairwise import spread as spread_file
from tests.strategies import comparisons_of


def crowd(seed, items=15, votes=300, spread=1.0, ties=0.0):
    rng = np.random.default_rng(seed)
    scores = spread * rng.normal(size=items)
    left = rng.integers(items, size=votes)
    right = (left + rng.integers(1, items, size=votes)) % items
    won = rng.random(votes) < 1 / (1 + np.exp(scores[right] - scores[left]))
    outcome = np.where(rng.random(votes) < ties, 0, np.where(won, 1, -1)).astype(np.int8)
    labels = Items.of([f"i{n:03d}" for n in range(items)])
    return Comparisons(items=labels, left=left.astype(np.int32), right=right.astype(np.int32), outcome=outcome)


@pytest.mark.parametrize("wins", [1, 4, 10])
def test_two_items_are_as_far_apart_as_numerical_integration_says(wins):
    """The difference d ~ N(0, 2τ²) of two items, and τ, on a grid. The mode of a skewed posterior is nearer to zero."""
    votes = comparisons_of(None, [0] * 12, [1] * 12, [1] * wins + [-1] * (12 - wins))
    u = np.linspace(np.log(spread_file.SMALLEST), np.log(spread_file.LARGEST), 200)[:, None]
    d = np.linspace(-15, 15, 3001)[None]
    prior = np.array([spread_file.SCORE_SPREAD_PRIOR.log_density(float(x)) for x in u[:, 0]])[:, None]
    weight = np.exp(prior - 0.25 * d**2 / np.exp(2 * u) - u + wins * log_expit(d) + (12 - wins) * log_expit(-d))
    mean = np.sum(weight * d) / np.sum(weight)
    found = BradleyTerry().fit(votes)
    assert found.scores[0] - found.scores[1] == pytest.approx(mean, abs=0.15 * abs(mean) + 0.02)


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_the_spread_of_the_truth_is_found(spread):
    found = BradleyTerry().fit(crowd(1, items=60, votes=6_000, spread=spread))
    assert found.parameters["prior_scale"] == pytest.approx(spread, rel=0.3)
    assert found.uncertainty.sampled


@pytest.mark.parametrize("ties", [0.0, 0.3])
@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone])
def test_taking_the_best_spread_is_like_integrating_where_it_is_known(kind, ties, monkeypatch):
    votes = crowd(2, items=80, votes=4_000, ties=ties)
    integrated = kind().fit(votes)
    monkeypatch.setattr(spread_file, "LARGEST_INTEGRATED", 10)
    best = kind().fit(votes)
    assert not best.uncertainty.sampled
    assert best.parameters == pytest.approx(integrated.parameters, rel=0.06)
    np.testing.assert_allclose(best.scores, integrated.scores, atol=0.05)
    np.testing.assert_allclose(best.uncertainty.std_error, integrated.uncertainty.std_error, rtol=0.05)


def test_a_number_is_a_fixed_prior():
    votes = crowd(3)
    learnt = BradleyTerry().fit(votes)
    fixed = BradleyTerry(prior_scale=learnt.parameters["prior_scale"]).fit(votes)
    assert fixed.parameters == {}
    assert fixed.uncertainty.method == "Laplace approximation"
    np.testing.assert_allclose(fixed.scores, learnt.scores, atol=0.1)


def test_the_start_does_not_matter():
    votes = crowd(4)
    first = BradleyTerry(tolerance=1e-8).fit(votes)
    again = BradleyTerry(tolerance=1e-8).fit(votes, init=BradleyTerry(prior_scale=0.1).fit(votes))
    np.testing.assert_allclose(again.scores, first.scores, atol=1e-7)


def test_queries_share_the_spread():
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(40), 12)
    left = np.where(rng.random(480) < 0.5, "a", "b")
    strong = rng.normal(size=40) > 0
    winner = np.where(rng.random(480) < 0.85, np.where(strong[query], "a", "b"), np.where(strong[query], "b", "a"))
    votes = Comparisons.of(left, np.where(left == "a", "b", "a"), winner, query=[f"q{n:02d}" for n in query])
    found = BradleyTerry().fit(votes)
    assert found.parameters["prior_scale"] == pytest.approx(np.log(0.85 / 0.15) / np.sqrt(2), rel=0.4)


@pytest.mark.parametrize("model", [BradleyTerry(), Thurstone(), WinRate()])
def test_coin_tosses_are_not_an_order(model):
    """At most 5 % of tables have several groups; 4 of 40 leaves room for chance."""
    split = sum(model.fit(crowd(seed, spread=0.0, votes=150)).groups.max() > 1 for seed in range(40))
    assert split <= 4


def test_an_order_is_still_found():
    found = [BradleyTerry().fit(crowd(seed, spread=3.0, votes=1_500)) for seed in range(5)]
    assert all(ranking.groups.max() >= 3 for ranking in found)


def test_an_unknown_word_is_refused():
    with pytest.raises(ValueError, match="prior_scale must be positive"):
        BradleyTerry(prior_scale="learnt")
