"""CrowdRanker: a ranking function from the lists of unreliable annotators."""

import warnings

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.data import Rankings, SideInformation
from crowdrank.errors import ConvergenceWarning, CrowdrankError, DataError, SettingError, UnknownNameError
from crowdrank.evaluation import kendall_correlation
from crowdrank.ltr.crowd_ranker import CrowdRanker
from crowdrank.ltr.features import Features
from crowdrank.simulation import list_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.ConvergenceWarning")


def features_of(crowd):
    items = crowd.judgments.items
    return Features.of({"query": items.queries[items.query], "item": items.labels, **crowd.features})


def crowd_of(seed=0, **settings):
    told = {"queries": 30, "items": 8, "annotators": 6, "labels": "mallows", "first_expertise": None, **settings}
    crowd = list_crowd(**told, seed=seed)
    return crowd, features_of(crowd)


def gold_of(crowd, queries=None):
    items = crowd.judgments.items
    rows = np.arange(len(items)) if queries is None else np.flatnonzero(items.query < queries)
    return cr.Gold.of(
        item=items.labels[rows], value=crowd.truth[rows], query=items.queries[items.query[rows]], graded=False
    )


def error(model, crowd):
    return float(np.sqrt(np.mean((model.annotators["expertise"] - crowd.annotators["expertise"]) ** 2)))


def agreement(model, crowd, features):
    return kendall_correlation(model.scores(features), crowd.truth)


@pytest.mark.parametrize("sampler", ["auto", "exact", "gibbs"])
@pytest.mark.parametrize("labels", ["map", "expected"])
def test_expertise_and_the_function_are_recovered(sampler, labels):
    crowd, features = crowd_of(expertise="uniform(-1.5,-0.1)")
    model = CrowdRanker(sampler=sampler, labels=labels, held_out=0).fit(crowd.judgments, features)
    assert error(model, crowd) < 0.15
    assert agreement(model, crowd, features) > 0.95


def test_exact_and_gibbs_posteriors_agree():
    crowd, features = crowd_of(expertise="uniform(-1.5,-0.1)", seed=1)
    exact, gibbs = (
        CrowdRanker(sampler=sampler, labels="expected", held_out=0)
        .fit(crowd.judgments, features)
        .annotators["expertise"]
        for sampler in ("exact", "gibbs")
    )
    assert gibbs == pytest.approx(exact, abs=0.05)


def test_the_sampler_of_the_paper_is_available():
    crowd, features = crowd_of(queries=12)
    model = CrowdRanker(sampler="paper", labels="map", held_out=0).fit(crowd.judgments, features)
    assert agreement(model, crowd, features) > 0.9


def test_reversed_annotators_are_identified_and_the_sign_is_resolved():
    crowd, features = crowd_of(expertise=-0.8, seed=2)
    lists = crowd.judgments
    upside_down = lists.annotator < 2
    turned = lists.with_outcomes_reversed()
    mixed = Rankings(
        items=lists.items,
        offsets=lists.offsets,
        annotators=lists.annotators,
        annotator=lists.annotator,
        place=lists.place,
        item=np.where(np.repeat(upside_down, lists.lengths), turned.item, lists.item).astype(np.int32),
    )
    model = CrowdRanker(held_out=0).fit(mixed, features)
    assert (np.sign(model.annotators["expertise"]) == [1, 1, -1, -1, -1, -1]).all()
    assert agreement(model, crowd, features) > 0.9


def test_partial_lists_are_enough():
    crowd, features = crowd_of(items=10, shown=4, expertise=-1.0, queries=60)
    model = CrowdRanker(labels="expected", held_out=0).fit(crowd.judgments, features)
    assert agreement(model, crowd, features) > 0.9
    assert error(model, crowd) < 0.25


def test_top_k_lists_of_many_items_are_enough():
    crowd, features = crowd_of(items=40, top=5, expertise=-0.5, queries=40)
    model = CrowdRanker(top=5, held_out=0).fit(crowd.judgments, features)
    assert agreement(model, crowd, features) > 0.8
    whole = CrowdRanker(top=5, held_out=0).fit(crowd.judgments.with_missing_last(), features)
    assert whole.annotators["expertise"] == pytest.approx(model.annotators["expertise"])


def test_tied_pairs_count_as_unordered():
    crowd, features = crowd_of(expertise=-0.7, queries=60)
    lists = crowd.judgments
    tied = Rankings(
        items=lists.items,
        item=lists.item,
        place=np.minimum(lists.place, 5),
        offsets=lists.offsets,
        annotators=lists.annotators,
        annotator=lists.annotator,
    )
    model = CrowdRanker(labels="expected", held_out=0).fit(tied, features)
    assert error(model, crowd) < 0.15


def test_true_lists_determine_the_sign():
    """In a mostly reversed crowd, three true lists determine the sign (S1)."""
    crowd, features = crowd_of(expertise="uniform(-1.0,-0.4)", seed=3)
    model = CrowdRanker(held_out=0, method="ltrma-s1").fit(
        crowd.judgments.with_outcomes_reversed(), features, gold_of(crowd, 20)
    )
    assert agreement(model, crowd, features) > 0.9
    assert (model.annotators["expertise"] > 0).all()


def test_side_information_on_annotators_is_respected():
    crowd, features = crowd_of(expertise=-0.8)
    names = crowd.judgments.annotators
    side_information = SideInformation(
        quality={names[0]: -2.5}, between={names[1]: (-0.3, 0)}, better=[(names[2], names[3])]
    )
    theta = (
        CrowdRanker(side_information=side_information, held_out=0)
        .fit(crowd.judgments, features)
        .annotators["expertise"]
    )
    assert theta[0] == -2.5
    assert theta[1] == -0.3
    assert theta[2] <= theta[3]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            {"quality": {"annotator1": -3}, "between": {"annotator1": (-2, -1)}},
            "known to be -3, and to lie between -2 and -1",
        ),
        ({"better": [("annotator1", "annotator2"), ("annotator2", "annotator1")]}, "is a cycle"),
        (
            {
                "quality": {"annotator1": -1, "annotator3": -2},
                "better": [("annotator1", "annotator2"), ("annotator2", "annotator3")],
            },
            "annotator1 is given as better than annotator3, but is known to be -1",
        ),
        ({"between": {"annotator1": (-1, -2)}}, "between a lower and a higher"),
    ],
)
def test_contradictions_are_refused(known, said):
    crowd, features = crowd_of(queries=3)
    with pytest.raises(SettingError, match=said):
        CrowdRanker(side_information=SideInformation(**known)).fit(crowd.judgments, features)


def test_labels_are_chosen_on_held_out_queries():
    crowd, features = crowd_of()
    model = CrowdRanker().fit(crowd.judgments, features)
    assert model.settings["labels"] in ("map", "expected")
    assert model.validation.queries == 6
    assert 0 < model.validation.value <= 1
    assert any("held-out" in note for note in model.notes)


def test_the_same_seed_gives_the_same_function():
    crowd, features = crowd_of(items=12, queries=12)
    one, two, other = (
        CrowdRanker(seed=seed, held_out=0).fit(crowd.judgments, features).annotators["expertise"] for seed in (1, 1, 2)
    )
    assert one.tolist() == two.tolist()
    assert one.tolist() != other.tolist()


def test_one_annotator_is_enough_and_noted():
    crowd, features = crowd_of(annotators=1, expertise=-0.8, queries=40)
    model = CrowdRanker(held_out=0).fit(crowd.judgments, features)
    assert any("one annotator" in note for note in model.notes)
    assert agreement(model, crowd, features) > 0.9


def test_lists_without_annotators_count_as_one_annotator():
    crowd, features = crowd_of(queries=10)
    lists = crowd.judgments
    unnamed = Rankings(items=lists.items, item=lists.item, place=lists.place, offsets=lists.offsets)
    model = CrowdRanker(held_out=0).fit(unnamed, features)
    assert len(model.annotators) == 1
    assert any("no annotators" in note for note in model.notes)


def test_single_item_queries_and_queries_without_lists_are_accepted():
    crowd, features = crowd_of(queries=10)
    frame = crowd.judgments.to_frame()
    lists = Rankings.of(
        item=[*frame["item"], "alone"],
        rank=[*frame["rank"], 1],
        annotator=[*frame["annotator"], "annotator1"],
        query=[*frame["query"], "q-single"],
    )
    items = features.items
    table = {
        "query": [*items.queries[items.query], "q-single", "q-nobody"],
        "item": [*items.labels, "alone", "item1"],
        "x1": [*features.values[:, 0], 0.5, 0.1],
        "x2": [*features.values[:, 1], 0.5, 0.2],
    }
    for sampler in ("auto", "gibbs", "paper"):
        model = CrowdRanker(held_out=0, sampler=sampler).fit(lists, Features.of(table))
        assert np.isfinite(model.annotators["expertise"]).all()


def test_an_item_without_features_is_named():
    crowd, features = crowd_of(queries=3)
    with pytest.raises(DataError, match="No features for 1 of 24 items: item3"):
        CrowdRanker().fit(crowd.judgments, features.take(np.delete(np.arange(24), 2)))


def test_short_or_tied_lists_are_refused_with_top():
    crowd, features = crowd_of(queries=3, top=3)
    with pytest.raises(DataError, match="has 3 items, but top=4 needs lists of at least 4"):
        CrowdRanker(top=4).fit(crowd.judgments, features)
    lists = crowd.judgments
    tied = Rankings(
        items=lists.items,
        item=lists.item,
        place=np.minimum(lists.place, 1),
        offsets=lists.offsets,
        annotators=lists.annotators,
        annotator=lists.annotator,
    )
    with pytest.raises(DataError, match="ties among its first 3"):
        CrowdRanker(top=3).fit(tied, features)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"ranker": "liner"}, UnknownNameError),
        ({"method": "ltr"}, UnknownNameError),
        ({"labels": "best"}, SettingError),
        ({"sampler": "hmc"}, SettingError),
        ({"top": 0}, SettingError),
        ({"top": 3, "sampler": "exact"}, SettingError),
        ({"iterations": 0}, SettingError),
        ({"prior_lists": -1}, SettingError),
        ({"held_out": 0.9}, SettingError),
    ],
)
def test_settings_are_checked(wrong, kind):
    with pytest.raises(kind):
        CrowdRanker(**wrong)


def test_long_lists_are_refused_by_the_exact_sampler():
    crowd, features = crowd_of(queries=2, items=25)
    with pytest.raises(SettingError, match="up to 20 items"):
        CrowdRanker(sampler="exact").fit(crowd.judgments, features)


def test_stopping_before_convergence_gives_a_warning():
    crowd, features = crowd_of(queries=12)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning, match="Increase iterations"):
            CrowdRanker(iterations=1, held_out=0).fit(crowd.judgments, features)


def test_an_unknown_annotator_is_a_crowdrank_error():
    crowd, features = crowd_of(queries=2)
    with pytest.raises(CrowdrankError, match="annotator named 'nobody'"):
        CrowdRanker(side_information=SideInformation(quality={"nobody": -1})).fit(crowd.judgments, features)
