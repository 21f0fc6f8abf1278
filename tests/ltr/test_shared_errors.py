"""Annotators who err together: equal weights where agreement is no sign of expertise."""

import numpy as np
import pytest

from crowdrank.data import Rankings
from crowdrank.ltr import CrowdRanker, Features
from crowdrank.ltr.methods import prefers_pooled
from crowdrank.ltr.training_set import build_training_set
from crowdrank.simulation import list_crowd

# what EM makes of a clique may not settle in 15 iterations
pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.ConvergenceWarning")

QUERIES, ITEMS, ANNOTATORS = 40, 8, 9


def lists_of(copies, seed=3):
    """Lists by three features, where `copies` annotators look at the first one only and the others at all of them."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(QUERIES, ITEMS, 3))
    said = values.sum(axis=2)[:, None] + 0.7 * rng.normal(size=(QUERIES, ANNOTATORS, ITEMS))
    said[:, :copies] = values[:, None, :, 0] + 0.05 * rng.normal(size=(QUERIES, copies, ITEMS))
    query, annotator, item = (index.ravel() for index in np.indices(said.shape))
    lists = Rankings.of(item=item, rank=-said.ravel(), query=query, annotator=annotator)
    place = np.indices((QUERIES, ITEMS))
    return lists, Features.of(values.reshape(-1, 3), item=place[1].ravel(), query=place[0].ravel())


def test_scores_that_predict_held_out_lists_better_are_preferred():
    lists, features = lists_of(copies=3)
    data = build_training_set(lists, features, None, None)
    everything, one = data.features.sum(axis=1), data.features[:, 0]
    assert prefers_pooled(data.crowd, one, everything)
    assert not prefers_pooled(data.crowd, everything, one)
    assert not prefers_pooled(data.crowd, everything, everything)


def test_a_lead_within_the_noise_counts_only_with_many_queries():
    lists, features = lists_of(copies=0)
    data = build_training_set(lists, features, None, None)
    one, other = data.features.sum(axis=1) + np.random.default_rng(8).normal(0, 0.3, (2, len(data.features)))
    few = data.crowd.subset(np.arange(10))
    assert prefers_pooled(data.crowd, one, other) != prefers_pooled(data.crowd, other, one)
    assert not any(prefers_pooled(few, *pair) for pair in ((one, other), (other, one)))


def test_equal_weights_are_named_and_the_annotators_are_known_all_the_same(monkeypatch):
    monkeypatch.setattr("crowdrank.ltr.crowd_ranker.prefers_pooled", lambda *scores: True)
    function = CrowdRanker().fit(*lists_of(copies=3))
    assert (function.method, function.settings["method"]) == ("pooled", "pooled")
    assert any("share errors" in note for note in function.notes)
    assert len(function.annotators["expertise"]) == ANNOTATORS


@pytest.mark.parametrize("settings", [{"held_out": 0}, {"method": "ltr-crowds"}], ids=["nothing-held-out", "by-name"])
def test_em_is_kept_where_nothing_speaks_against_it(settings):
    assert CrowdRanker(**settings).fit(*lists_of(copies=3)).method == "ltr-crowds"


def test_independent_annotators_keep_their_weights():
    crowd = list_crowd(queries=40, items=8, annotators=6, labels="mallows", expertise="uniform(-0.8,-0.05)", seed=2)
    items = crowd.judgments.items
    table = {"query": items.queries[items.query], "item": items.labels, **crowd.features}
    assert CrowdRanker().fit(crowd.judgments, table).method == "ltr-crowds"
