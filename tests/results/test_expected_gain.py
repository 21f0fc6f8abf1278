"""The order with the largest expected NDCG."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.data import Comparisons
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation import ndcg
from crowdrank.results import Uncertainty, order_for_ndcg

VOTES = Comparisons.of(["a", "b", "a", "c"] * 5, ["b", "c", "c", "d"] * 5, ["a", "b", "a", "c"] * 5)


def ranking_with(draws):
    draws = np.asarray(draws, float)
    ranking = replace(cr.BradleyTerry().fit(VOTES), scores=draws.mean(axis=0))
    known = Uncertainty(draws, draws.std(axis=0), "hand", sampled=True)
    return ranking.with_parts(uncertainty=lambda: known)


@pytest.mark.parametrize("top_grade", [1.0, 4.0, 9.0])
def test_no_other_order_has_a_larger_expected_ndcg(top_grade):
    draws = np.random.default_rng(5).normal([0.5, 0.4, 0.3, 0.2], [0.1, 2.0, 0.1, 1.0], (30, 4))
    ordered = order_for_ndcg(ranking_with(draws), top_grade)
    grades = top_grade * draws.argsort(axis=1).argsort(axis=1) / 3

    def expected(scores):
        return np.mean([ndcg(scores, row) for row in grades])

    best = max(expected(np.array(order, float)) for order in permutations(range(4)))
    assert expected(ordered.scores) == pytest.approx(best)
    assert ordered.parameters["expected_ndcg"] == pytest.approx(best)


def test_an_item_that_may_be_the_best_comes_before_a_surely_average_one():
    certain, uncertain = [0.0, 0.1, 1.0, -1.0], [0.0, 0.1, 1.0, -1.0]
    draws = np.array([certain, uncertain] * 20)
    draws[:, 0] = np.where(np.arange(40) % 2, 2.0, -2.0)  # a: mean 0, b: 0.1 in every draw
    ordered = order_for_ndcg(ranking_with(draws))
    assert ordered["a"].rank < ordered["b"].rank


def test_newcomers_gain_where_the_posterior_is_right():
    """Half of the items are known well, the others hardly; truths are drawn from the posterior itself."""
    rng, gained = np.random.default_rng(7), []
    items = cr.data.Items.of([f"item{n}" for n in range(20)])
    for _ in range(60):
        noise = np.where(np.arange(20) < 10, 0.1, 1.5)
        truth = rng.normal(size=20)
        mean = (truth + noise * rng.normal(size=20)) / (1 + noise**2)
        draws = mean + rng.normal(size=(300, 20)) * noise / np.sqrt(1 + noise**2)
        drawn = Uncertainty(draws, draws.std(axis=0), "hand", sampled=True)
        plain = replace(cr.BradleyTerry().fit(VOTES), items=items, scores=mean).with_parts(
            uncertainty=lambda d=drawn: d
        )
        grades = np.floor(truth.argsort().argsort() / 2)
        gained.append(ndcg(order_for_ndcg(plain, 9).scores, grades, 10) - ndcg(mean, grades, 10))
    assert np.mean(gained) > 0


def test_ranks_in_the_draws_do_not_change():
    ranking = cr.BradleyTerry().fit(VOTES)
    ordered = order_for_ndcg(ranking)
    for ours, theirs in zip(
        ordered.uncertainty.ranks(VOTES.items), ranking.uncertainty.ranks(VOTES.items), strict=True
    ):
        assert (ours == theirs).all()


def test_rank_takes_the_measure():
    ordered = cr.rank(VOTES, model="bradley-terry", measure="ndcg")
    assert 0 <= ordered.scores.min() <= ordered.scores.max() <= 1
    assert any("expected NDCG" in note for note in ordered.notes)


def test_crowd_agg_takes_it_as_its_own_setting():
    votes = replace(VOTES, annotators=np.array(["x", "y"], object), annotator=np.arange(20, dtype=np.int32) % 2)
    assert cr.rank(votes, model="crowd-agg", measure="rbp").settings["measure"] == "rbp"


@pytest.mark.parametrize(
    "options",
    [{"measure": "map"}, {"measure": "rbp"}, {"uncertainty": "none"}, {"score_scale": "elo"}],
    ids=["unknown", "rbp", "no-draws", "scale"],
)
def test_what_cannot_be_ordered_is_refused(options):
    with pytest.raises(SettingError, match="measure"):
        cr.rank(VOTES, model="bradley-terry", **{"measure": "ndcg", **options})


def test_a_ranking_without_uncertainty_is_refused():
    with pytest.raises(DataError, match="uncertainty"):
        order_for_ndcg(cr.BradleyTerry().fit(VOTES).without_uncertainty())


@pytest.mark.parametrize("top_grade", [0.0, -1.0, np.inf, np.nan])
def test_a_grade_that_cannot_be_is_refused(top_grade):
    with pytest.raises(SettingError, match="top_grade must be positive"):
        order_for_ndcg(ranking_with(np.zeros((3, 4))), top_grade)
