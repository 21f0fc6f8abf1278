"""Systems: whose items win, over queries."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit, ndtr

from crowdrank import Borda, BradleyTerry, Comparisons, CrowdBT, Elo, GreedyOrder, RankCentrality, Thurstone
from crowdrank.data import Items
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.results import LazyParts, Ranking, Uncertainty, compare_systems

pytestmark = pytest.mark.slow


def ranking_of(scores, query=None, error=0.3, model="bradley-terry", seed=0, draws=400):
    scores = np.asarray(scores, float)
    items = Items.of([f"i{n}" for n in range(len(scores))])
    if query is not None:
        code = np.asarray(query, np.int32)
        items = Items(items.labels, code, np.array([f"q{n:03d}" for n in range(code.max() + 1)], dtype=object))
    drawn = scores + error * np.random.default_rng(seed).normal(size=(draws, len(scores)))
    return Ranking(
        model=model,
        settings={},
        items=items,
        scores=scores,
        _lazy=LazyParts(
            n_judgments=lambda: np.ones(len(scores), np.int64),
            uncertainty=lambda: Uncertainty(drawn, np.full(len(scores), error), "made up"),
        ),
    )


def test_the_chance_is_the_mean_over_queries():
    ranking = ranking_of([1.0, -1.0, 0.5, -0.5, 0.3], query=[0, 0, 1, 1, 1])
    found = compare_systems(ranking, ["A", "B", "B", "A", "A"])
    in_second = 1 - (expit(0.5 - -0.5) + expit(0.5 - 0.3)) / 2
    expected = (expit(2.0) + in_second) / 2
    assert found.labels.tolist() == ["A", "B"]
    chance, low, high = found.probability("A", "B")
    assert chance == pytest.approx(expected)
    assert low < chance < high
    assert found.probability("B", "A") == pytest.approx((1 - chance, 1 - high, 1 - low))
    assert found.queries.tolist() == [[0, 2], [2, 0]]


def test_without_queries_it_is_the_mean_over_pairs_of_items():
    found = compare_systems(ranking_of([1.0, 0.0, -1.0]), ["A", "B", "B"])
    assert found.probability("A", "B")[0] == pytest.approx((expit(1.0) + expit(2.0)) / 2)
    assert not found.resampled


def test_normal_noise_has_its_own_link():
    for model in ("thurstone", "crowd-bt", "bayesian-crowd-bt"):
        ranking = ranking_of([1.0, 0.0], model=model)
        ranking.settings.update({} if model == "thurstone" else {"link": "probit"})
        assert compare_systems(ranking, ["A", "B"]).probability("A", "B")[0] == pytest.approx(ndtr(1 / np.sqrt(2)))


def test_the_bayesian_model_is_linked_as_the_other():
    ranking = ranking_of([1.0, 0.0], model="bayesian-crowd-bt")
    ranking.settings["link"] = "logistic"
    assert compare_systems(ranking, ["A", "B"]).probability("A", "B")[0] == pytest.approx(expit(1.0))


def test_three_systems_are_ordered_by_their_mean_chance():
    ranking = ranking_of([0.0, 1.0, -1.0, 0.2, 0.9], query=[0, 0, 0, 1, 1])
    found = compare_systems(ranking, ["A", "B", "C", "A", "B"])
    assert found.labels.tolist() == ["B", "A", "C"]
    ahead = (expit(1.0) + expit(0.7)) / 2
    assert found.probabilities[0, 1] == pytest.approx(ahead)
    assert found.overall == pytest.approx(
        [(ahead + expit(2)) / 2, (1 - ahead + expit(1)) / 2, (expit(-1) + expit(-2)) / 2]
    )
    assert np.all(found.overall_low < found.overall)
    assert np.all(found.overall < found.overall_high)
    assert found.frame()["system"].to_list() == ["B", "A", "C"]
    assert found.pairs()["queries"].to_list() == [2, 1, 1]


def test_systems_that_never_met_are_left_open():
    ranking = ranking_of([1.0, 0.0, 1.0, 0.0, 0.5, 0.2], query=[0, 0, 1, 1, 2, 2])
    found = compare_systems(ranking, ["A", "B", "B", "C", "D", "D"])
    at = {label: n for n, label in enumerate(found.labels)}
    assert np.isnan(found.probabilities[at["A"], at["C"]])
    assert np.isnan(found.overall[at["D"]])
    assert found.labels[-1] == "D"
    assert found.pairs().height == 2
    told = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert told["order"][-1] == {"system": "D", "probability": None, "low": None, "high": None}


def test_no_uncertainty_is_measured_where_none_is_wanted():
    ranking = ranking_of([1.0, 0.0, 1.0, 0.0], query=[0, 0, 1, 1])
    found = compare_systems(ranking, ["A", "B", "A", "B"], uncertainty=False)
    chance, low, high = found.probability("A", "B")
    assert chance == pytest.approx(expit(1.0))
    assert np.isnan([low, high]).all()
    assert found.as_dict()["pairs"][0]["low"] is None


def crowd_of_queries(seed, queries, votes, spread, mean=0.5):
    rng = np.random.default_rng(seed)
    lead = rng.normal(mean, spread, queries)
    query = np.repeat(np.arange(queries), votes)
    won = np.where(rng.random(len(query)) < expit(lead[query]), "A", "B").astype(object)
    side = np.full(len(query), "A", dtype=object), np.full(len(query), "B", dtype=object)
    return Comparisons.of(*side, won, query=[f"q{n:03d}" for n in query]), lead


@pytest.mark.parametrize(("queries", "votes", "spread"), [(30, 8, 0.2), (30, 12, 1.5)], ids=["alike", "unlike"])
def test_intervals_hold_what_other_queries_would_say(queries, votes, spread):
    """95 % intervals contain the mean over all possible queries in 87 to 100 % of forty crowds."""
    truth = np.mean(expit(np.random.default_rng(9).normal(0.5, spread, 100_000)))
    inside, narrow = [], []
    for seed in range(40):
        comparisons, _ = crowd_of_queries(seed, queries, votes, spread)
        ranking = BradleyTerry(prior_scale=3.0).fit(comparisons)
        _, low, high = compare_systems(ranking, ranking.items.labels).probability("A", "B")
        inside.append(low <= truth <= high)
        _, low, high = compare_systems(ranking, ranking.items.labels, queries="fixed").probability("A", "B")
        narrow.append(low <= truth <= high)
    assert 0.87 <= np.mean(inside) <= 1.0
    if spread > 1:  # negative control: intervals for fixed queries do not cover other queries
        assert np.mean(narrow) < 0.85


def test_a_seed_decides_the_intervals():
    ranking = ranking_of(np.tile([1.0, -0.5], 6), query=np.repeat(np.arange(6), 2))
    ranking.scores[::3] += 1
    systems = ["A", "B"] * 6
    first, again, other = (compare_systems(ranking, systems, seed=seed).low[0, 1] for seed in (1, 1, 2))
    assert first == again != other


def test_many_pairs_are_taken_a_few_draws_at_a_time(monkeypatch):
    ranking = ranking_of(np.tile([1.0, -0.5], 6), query=np.repeat(np.arange(6), 2))
    whole = compare_systems(ranking, ["A", "B"] * 6)
    monkeypatch.setattr("crowdrank.results.systems._MAX_CELLS", 10)
    np.testing.assert_allclose(compare_systems(ranking, ["A", "B"] * 6).low, whole.low)


@pytest.mark.parametrize("model", [Borda(), Elo(), GreedyOrder()])
def test_scores_that_are_no_strengths_are_refused(model):
    comparisons, _ = crowd_of_queries(0, 3, 4, 1.0)
    with pytest.raises(SettingError, match="not the probability of a win"):
        compare_systems(model.fit(comparisons), ["A", "B"] * 3)


@pytest.mark.parametrize("model", [BradleyTerry(), CrowdBT(), Thurstone(), RankCentrality()])
def test_models_with_strengths_agree_on_who_wins(model):
    comparisons, _ = crowd_of_queries(0, 12, 10, 0.5, mean=1.0)
    ranking = model.fit(comparisons)
    assert compare_systems(ranking, ranking.items.labels).labels.tolist() == ["A", "B"]


def test_what_cannot_be_compared_is_refused():
    ranking = ranking_of([1.0, 0.0, 0.5], query=[0, 0, 1])
    with pytest.raises(DataError, match="Got 2 system labels for 3 items; pass one per item"):
        compare_systems(ranking, ["A", "B"])
    with pytest.raises(DataError, match=r"2 of 3 items have no system: i0 \(q000\), i2 \(q001\)"):
        compare_systems(ranking, [None, "B", ""])
    with pytest.raises(DataError, match="All items belong to the system 'A'"):
        compare_systems(ranking, ["A", "A", "A"])
    with pytest.raises(DataError, match="No query has items of two systems"):
        compare_systems(ranking, ["A", "A", "B"])
    with pytest.raises(SettingError, match="level"):
        compare_systems(ranking, ["A", "B", "B"], level=95)
    with pytest.raises(SettingError, match="queries must be"):
        compare_systems(ranking, ["A", "B", "B"], queries="drawn")
    with pytest.raises(UnknownNameError, match="No system named 'Z'"):
        compare_systems(ranking, ["A", "B", "B"]).probability("A", "Z")
