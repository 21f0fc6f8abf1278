"""Baselines of learning to rank from crowds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crowdrank.data import Rankings, SideInformation
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.evaluation import Gold
from crowdrank.ltr import METHODS, CrowdRanker, Features, RankingFunction
from crowdrank.ltr.baselines import concatenate_lists
from crowdrank.ltr.linear import LinearScorer
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists
from crowdrank.simulation import list_crowd

# Four steps are enough to test a method, and too few to converge.
pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.ConvergenceWarning")

CROWD = list_crowd(
    queries=24, items=6, annotators=4, labels="mallows", expertise="uniform(-1.2,-0.6)", first_expertise=None, seed=2
)
ITEMS = CROWD.judgments.items
LISTS = CROWD.judgments
QUERY = ITEMS.queries[ITEMS.query]
assert isinstance(LISTS, Rankings)
FEATURES = Features.of(
    np.column_stack((CROWD.features["x1"], CROWD.features["x2"])), item=ITEMS.labels, query=QUERY, names=["x1", "x2"]
)
TRUTH = Gold.of(ITEMS.labels, CROWD.truth, query=QUERY)
KNOWN = SideInformation(
    quality={"annotator1": -1.0}, between={"annotator2": (-2.0, -0.5)}, better=[("annotator1", "annotator3")]
)


def fitted(method: str, **more: Any) -> RankingFunction:
    truth = TRUTH if method == "truth" else None
    side_information = KNOWN if method.startswith("ltrma-s") else SideInformation()
    settings = {"side_information": side_information, "held_out": 0, "iterations": 4, **more}
    return CrowdRanker(method=method, **settings).fit(LISTS, FEATURES, truth)


def share_right(function: RankingFunction) -> float:
    """Share of correctly ordered pairs within queries."""
    found, truth = function.scores(FEATURES).reshape(24, 6), np.asarray(CROWD.truth).reshape(24, 6)
    both = np.sign(found[:, :, None] - found[:, None]) * np.sign(truth[:, :, None] - truth[:, None])
    return float((both.sum(axis=(1, 2)) / 30 + 1).mean() / 2)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_recovers_the_order(method: str) -> None:
    function = fitted(method)
    assert function.method == ("ltr-crowds" if method == "auto" else method)
    assert share_right(function) > 0.9
    assert (function.expertise is not None) == METHODS[method].models_annotators


@pytest.mark.parametrize("method", ["ltrma-d", "pooled", "borda", "lregma"])
def test_reversed_lists_reverse_the_function(method: str) -> None:
    turned = CrowdRanker(method=method, held_out=0, iterations=4).fit(LISTS.with_outcomes_reversed(), FEATURES)
    assert share_right(turned) < 0.1


@pytest.mark.parametrize("method", ["pooled", "borda", "lregma", "ltrma-d"])
def test_top_k_lists_are_enough(method: str) -> None:
    assert share_right(fitted(method, top=3)) > 0.85


def test_pooled_training_reaches_the_maximum_likelihood() -> None:
    """At the solution, the gradient of the likelihood equals that of the prior."""
    from crowdrank.models.lists.plackett_luce_likelihood import log_likelihood

    function = fitted("pooled")
    scorer = function.scorer
    assert isinstance(scorer, LinearScorer)
    lists = RankedLists(LISTS.item, LISTS.place, LISTS.offsets, LISTS.weights)
    rows = (FEATURES.values - scorer.centre) / scorer.scale
    slope = log_likelihood(lists, rows @ scorer.weights).gradient @ rows
    np.testing.assert_allclose(slope, scorer.weights / 10.0**2, atol=0.05)


def test_regression_gives_more_weight_to_consistent_annotators() -> None:
    """With two random and two good annotators, the weights follow the good ones."""
    rng = np.random.default_rng(0)
    values = rng.random((200, 2))
    query = np.repeat(np.arange(20), 10)
    truth = values @ [1.0, 3.0]
    said = {"a": truth, "b": truth, "c": rng.random(200), "d": rng.random(200)}
    rank = np.concatenate([[np.sum(s[query == q] > s[n]) + 1 for n, q in enumerate(query)] for s in said.values()])
    lists = Rankings.of(
        item=np.tile(np.arange(200), 4), rank=rank, query=np.tile(query, 4), annotator=np.repeat(list(said), 200)
    )
    features = Features.of(values, item=np.arange(200), query=query)
    scorer = CrowdRanker(method="lregma", held_out=0, iterations=100, tolerance=1e-4).fit(lists, features).scorer
    assert isinstance(scorer, LinearScorer)
    first, second = scorer.weights / scorer.scale
    assert 2.0 < second / first < 4.5


def test_aggregate_then_train_recovers_the_expertise() -> None:
    theta = fitted("ltrma-d").annotators["expertise"]
    assert np.sqrt(np.mean((theta - CROWD.annotators["expertise"]) ** 2)) < 0.3


def test_methods_without_their_side_information_are_refused() -> None:
    for method, what in (("ltrma-s1", "quality"), ("ltrma-s2", "between"), ("ltrma-s3", "better")):
        with pytest.raises(SettingError, match=rf"pass SideInformation\({what}="):
            CrowdRanker(method=method).fit(LISTS, FEATURES)
    with pytest.raises(DataError, match="there are none"):
        CrowdRanker(method="truth", held_out=0).fit(LISTS, FEATURES)
    with pytest.raises(SettingError, match="The method lregma works only with"):
        CrowdRanker(method="lregma", ranker="lightgbm").fit(LISTS, FEATURES)
    with pytest.raises(UnknownNameError, match="did you mean 'pooled'"):
        CrowdRanker(method="poled")


def test_lists_are_concatenated() -> None:
    one = RankedLists(np.array([2, 0], np.int32), np.array([0, 1], np.int32), np.array([0, 2]), np.array([1.0]))
    both = concatenate_lists([one, one._replace(weight=np.array([3.0]))])
    assert both.offsets.tolist() == [0, 2, 4]
    assert both.item.tolist() == [2, 0, 2, 0]
    assert both.weight.tolist() == [1, 3]


def test_trees_are_trained_on_the_labels_of_the_linear_ranker() -> None:
    from crowdrank.ltr import Boosted

    ranker = Boosted(trees=20, learning_rate=0.2, min_leaf_items=5, feature_fraction=1)
    function = fitted("ltr-crowds", ranker=ranker)
    assert share_right(function) > 0.85
    line = fitted("ltr-crowds")
    np.testing.assert_array_equal(function.annotators["expertise"], line.annotators["expertise"])
