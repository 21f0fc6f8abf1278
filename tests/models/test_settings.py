"""Invalid settings raise errors; names map to models and back."""

from dataclasses import replace

import numpy as np
import pytest

from crowdrank import models
from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.models import (
    REGISTRY,
    BradleyTerry,
    FactorBT,
    LinearBias,
    MeanRating,
    PlackettLuce,
    Thurstone,
    by_name,
    name_of,
)
from crowdrank.models.selection import convert_for, default_model, kinds_read

VOTES = Comparisons.of(
    ["a", "b", "c", "a"], ["b", "c", "a", "b"], ["a", "b", "c", "tie"], annotator=["x", "y", "x", "y"]
)


@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone, PlackettLuce])
@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_a_prior_must_have_a_width(kind, scale):
    with pytest.raises(SettingError, match="prior_scale must be positive, .*None for no prior, got"):
        kind(prior_scale=scale)


@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone])
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"virtual_weight": -0.1}, "virtual_weight must be zero or more, got -0.1"),
        ({"virtual_weight": float("inf")}, "virtual_weight must be zero or more"),
        ({"ties": "split"}, r"ties must be one of \w+, per-item, half, drop, got 'split'"),
        ({"tolerance": 0.0}, "tolerance must be positive and max_steps at least 1"),
        ({"max_steps": 0}, "tolerance must be positive and max_steps at least 1"),
    ],
)
def test_pairwise_settings_are_checked(kind, setting, said):
    with pytest.raises(SettingError, match=said):
        kind(**setting)


def test_dropping_every_judgment_is_refused():
    ties = Comparisons.of(["a", "b"], ["b", "c"], ["tie", "tie"])
    with pytest.raises(DataError, match='with ties="drop" nothing is left'):
        BradleyTerry(ties="drop").fit(ties)


def test_lists_that_order_nothing_are_refused():
    with pytest.raises(DataError, match="any two items"):
        PlackettLuce().fit(Rankings.of_lists([[["a", "b"]], [["c"]]]))


@pytest.mark.parametrize("name", REGISTRY)
def test_every_name_leads_to_its_model_and_back(name):
    assert name_of(by_name(name)()) == name


def test_a_misspelt_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="No model named 'bradly-terry'; did you mean 'bradley-terry'?"):
        by_name("bradly-terry")


def test_a_model_of_ones_own_is_called_by_its_class():
    class Mine(BradleyTerry):
        pass

    assert name_of(Mine()) == "Mine"
    assert Mine().fit(VOTES).model == "Mine"


@pytest.mark.parametrize("kind", REGISTRY.values(), ids=REGISTRY.keys())
def test_any_judgments_can_be_made_into_what_a_model_reads(kind):
    ratings = Ratings.of(["a", "b", "c"] * 2, [1, 2, 3, 3, 2, 1], annotator=["x"] * 3 + ["y"] * 3)
    for judgments in (VOTES, ratings, VOTES.to_rankings()):
        read, rule = convert_for(kind, judgments)
        assert isinstance(read, kinds_read(kind))
        assert (rule == "") == (read is judgments)
        if not (kind in (FactorBT, LinearBias) and not read.positions_known):  # they need to know the sides
            assert np.isfinite(kind().fit(read).scores).all()


def test_the_default_weighs_annotators_where_several_are_known():
    assert default_model(VOTES).name == "crowd-bt"
    assert default_model(replace(VOTES, annotator=None, annotators=np.array([], dtype=object))).name == "bradley-terry"
    assert default_model(Ratings.of(["a"], [1], annotator=["x"])).name == "mean-rating"
    assert default_model(Ratings.of(["a", "b"], [1, 2], annotator=["x", "y"])).name == "graded-response"
    assert default_model(Ratings.of(["a", "b"], [1, 2])).name == "mean-rating"
    lists = VOTES.to_rankings()
    assert default_model(lists).name == "crowd-plackett-luce"
    assert default_model(lists, win_probabilities=True).name == "plackett-luce"
    assert default_model(replace(lists, annotator=None, annotators=np.array([], dtype=object))).name == "plackett-luce"


def test_what_was_counted_is_told_in_the_table():
    assert BradleyTerry().fit(VOTES).table()["comparisons"].to_list() == [3, 3, 2]
    assert "lists" in PlackettLuce().fit(VOTES.to_rankings()).table().columns
    assert MeanRating().fit(VOTES.to_ratings()).table()["ratings"].to_list() == [3, 3, 2]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bt", "bradley-terry"),
        ("BTL", "bradley-terry"),
        ("Bradley_Terry", "bradley-terry"),
        ("pl", "plackett-luce"),
        ("ds", "dawid-skene"),
        ("grm", "graded-response"),
        ("ELO", "elo"),
        ("crowdbt", "crowd-bt"),
        ("kemeny", "mallows"),
        ("bradly-tery", "bradley-terry"),
    ],
)
def test_other_names_of_a_model_suggest_it(name, meant):
    with pytest.raises(UnknownNameError, match=f"No model named '{name}'; did you mean '{meant}'"):
        by_name(name)


def test_other_names_mean_models_that_exist_and_are_not_models_themselves():
    assert set(models._OTHER_NAMES.values()) <= set(REGISTRY)
    assert not set(models._OTHER_NAMES) & set(REGISTRY)


def test_the_registry_can_be_extended_and_names_what_it_holds():
    assert [models.name_of(kind()) for kind in list(REGISTRY.values())[:3]] == list(REGISTRY)[:3]
    assert set(models.__all__) >= {kind.__name__ for kind in REGISTRY.values()}
    assert "nothing" not in REGISTRY
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        models.Nothing  # noqa: B018
