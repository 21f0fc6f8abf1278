"""Policies compared on the same crowds."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from crowdrank.active import Adaptive, InformationGain, PolicyComparison, Random, Thompson, compare_policies
from crowdrank.active.collection import run_trials
from crowdrank.active.policy_comparison import _Experiment
from crowdrank.errors import SettingError, UnknownNameError

SMALL = {"items": 8, "annotators": 5, "budget": 60, "trials": 2, "quality": 0.95}


@pytest.fixture(scope="module")
def curves():
    return compare_policies({"quick": Adaptive(), "random": Random()}, **SMALL)


def made(**accuracy):
    """A comparison with the given accuracies, one list per trial."""
    found = {name: np.array(rows, float) for name, rows in accuracy.items()}
    votes = tuple(range(10, 10 * len(next(iter(found.values()))[0]) + 10, 10))
    return PolicyComparison(items=3, annotators=2, beliefs="mcmc", votes=votes, accuracy=found)


def test_accuracy_is_measured_at_twenty_evenly_spaced_checkpoints(curves):
    assert curves.votes == tuple(range(3, 61, 3))
    frame = curves.frame()
    assert frame.height == 40
    assert frame["accuracy"].is_between(0, 1).all()
    assert frame.columns == ["policy", "votes", "accuracy", "std_error", "difference", "difference_std_error"]


@pytest.mark.parametrize(("budget", "first", "last"), [(7, [1, 2, 3], 7), (50, [3, 5, 8], 50), (1000, [50, 100], 1000)])
def test_the_last_checkpoint_is_the_budget(budget, first, last):
    looks = _Experiment((), 3, 2, 0.9, "order", 2.0, budget, "mcmc", 0).checkpoints.tolist()
    assert looks[: len(first)] == first
    assert looks[-1] == last
    assert len(looks) == min(20, budget) == len(set(looks))


def test_good_annotators_reveal_the_order(curves):
    assert curves.frame().filter(votes=60)["accuracy"].min() > 0.85


@pytest.mark.parametrize("beliefs", ["mcmc", "online"])
def test_the_same_seed_gives_the_same_curves_and_another_gives_others(beliefs):
    settings = SMALL | {"trials": 1, "budget": 20, "beliefs": beliefs}
    one, again, other = (compare_policies({"t": Thompson()}, **settings, seed=n).frame() for n in (1, 1, 2))
    assert one.equals(again)
    assert not one.equals(other)


def test_a_policy_gives_the_same_result_alone_and_in_a_comparison(curves):
    alone = compare_policies({"random": Random()}, **SMALL)
    np.testing.assert_array_equal(alone.accuracy["random"], curves.accuracy["random"])


def test_the_same_policy_twice_has_no_lead_at_all():
    twins = compare_policies({"twin": Random(), "random": Random()}, **SMALL, beliefs="online")
    lead = twins.frame().filter(policy="twin")
    assert (lead["difference"] == 0).all()
    assert (lead["difference_std_error"] == 0).all()


def test_differences_are_paired():
    found = made(gain=[[0.6, 0.8], [0.8, 1.0]], random=[[0.5, 0.7], [0.7, 0.9]])
    row = found.frame().row(by_predicate=(pl.col("policy") == "gain") & (pl.col("votes") == 20), named=True)
    assert row["accuracy"] == pytest.approx(0.9)
    assert row["std_error"] == pytest.approx(0.1)
    assert row["difference"] == pytest.approx(0.1)
    assert row["difference_std_error"] == pytest.approx(0, abs=1e-12)
    assert found.frame().filter(policy="random")["difference"].is_null().all()


def test_the_area_is_the_mean_accuracy():
    areas = made(gain=[[0.5, 0.7, 0.9]], thompson=[[0.5, 0.5, 0.95]]).areas()
    assert areas["area"].to_list() == pytest.approx([0.7, 0.65])
    assert areas["std_error"].is_null().all()
    assert areas["difference"].is_null().all()


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [
        (
            {"gain": [[0.9], [0.8], [0.9], [0.8], [0.9]], "random": [[0.6], [0.5]] * 2 + [[0.6]]},
            "0.300 ± 0.000, is more",
        ),
        ({"gain": [[0.9], [0.8]], "random": [[0.6], [0.5]]}, "two standard errors, but 2 trials are few."),
        ({"gain": [[0.9], [0.5]], "random": [[0.6], [0.6]]}, "0.100 ± 0.200, is not more than two"),
        ({"gain": [[0.9]], "random": [[0.6]]}, "one trial says little"),
        ({"gain": [[0.5]], "random": [[0.6]]}, "No policy did better than random."),
        ({"gain": [[0.9]], "thompson": [[0.6]]}, "Add random to see"),
        ({"gain": [[0.9]]}, "Add a second policy"),
    ],
)
def test_a_lead_is_reported_with_its_error(accuracy, said):
    assert said in made(**accuracy).lines()[-1]


def test_the_first_line_describes_the_simulation(curves):
    assert curves.lines()[0].startswith("8 items, 5 annotators, 60 votes; 2 collections per policy")


def test_progress_is_reported_per_collection():
    told = []
    settings = SMALL | {"budget": 4, "beliefs": "online"}
    compare_policies({"a": Random(), "b": InformationGain()}, **settings, on_progress=lambda *n: told.append(n))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"trials": 0}, "trials must be at least 1, got 0"),
        ({"budget": 0}, "budget must be at least 1"),
        ({"budget": 141}, "at most 140, the number of possible questions, got 141"),
        ({"beliefs": "magic"}, "'mcmc' or 'online', got 'magic'"),
        ({"labels": "magic"}, "'order' or 'logistic', got 'magic'"),
        ({"scale": 0.0}, "no order to find"),
        ({"seed": -1}, "seed must be zero or more, got -1"),
        ({"quality": 1.5}, "quality must lie between 0 and 1"),
        ({"processes": 0}, "processes must be at least 1, got 0"),
    ],
)
def test_impossible_settings_are_refused(settings, said):
    with pytest.raises(SettingError, match=re.escape(said)):
        compare_policies({"random": Random()}, **SMALL | settings)


def test_no_policy_and_no_distribution_are_refused():
    with pytest.raises(SettingError, match="Name at least one policy"):
        compare_policies({}, **SMALL)
    with pytest.raises(UnknownNameError, match="'beta'"):
        compare_policies({"random": Random()}, **SMALL | {"quality": "bta(2,1)"})


def test_every_possible_question_can_be_asked():
    everything = {"items": 3, "annotators": 2, "budget": 6, "trials": 1, "beliefs": "online"}
    assert compare_policies({"random": Random()}, **everything).votes == (1, 2, 3, 4, 5, 6)


def test_trials_come_in_their_order():
    assert list(run_trials(float, 3)) == [0.0, 1.0, 2.0]
