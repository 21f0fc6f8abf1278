"""Glicko-2, checked with the worked example of Glickman's "Example of the Glicko-2 system" (2012)."""

import numpy as np
import pytest

from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import SettingError
from crowdrank.online import Glicko2
from crowdrank.online import beliefs as beliefs_module
from crowdrank.online.rating_systems import new_volatility, volatility_equation

OTHERS = {"one": (1400.0, 30.0, 1.0), "two": (1550.0, 100.0, 0.0), "three": (1700.0, 300.0, 0.0)}


def example(model, names=("player", *OTHERS, "idle")):
    start = model.start(names)
    known = {"player": (1500.0, 200.0), "idle": (1500.0, 50.0)} | {name: o[:2] for name, o in OTHERS.items()}
    mean, deviation = np.array([known[name] for name in names]).T
    return start.replace(item_columns={"mean": mean, "variance": deviation**2, "volatility": np.full(len(names), 0.06)})


def games():
    winner = ["player" if result else name for name, (*_, result) in OTHERS.items()]
    return Comparisons.of(["player"] * 3, list(OTHERS), winner)


@pytest.mark.parametrize("compile_above", [0, 2_000], ids=["compiled", "plain"])
def test_the_worked_example_comes_out(compile_above, monkeypatch):
    monkeypatch.setattr(beliefs_module, "COMPILE_ABOVE", compile_above)
    model = Glicko2(system_constant=0.5, period="call")
    after = model.fold(example(model), games())
    assert after.mean[0] == pytest.approx(1464.06, abs=0.01)
    assert np.sqrt(after.variance[0]) == pytest.approx(151.52, abs=0.01)
    assert after.volatility[0] == pytest.approx(0.05999, abs=0.00001)


def test_another_result_would_not_give_the_worked_example():
    """The negative control of the test above."""
    model = Glicko2(system_constant=0.5, period="call")
    after = model.fold(example(model), games().with_outcomes_reversed())
    assert abs(after.mean[0] - 1464.06) > 10


def test_in_a_period_of_a_whole_call_the_order_does_not_matter_and_the_idle_grow_less_certain():
    model = Glicko2(period="call")
    after, turned = (model.fold(example(model), table) for table in (games(), games().take(np.array([2, 0, 1]))))
    for name, column in after.item_columns.items():
        np.testing.assert_allclose(turned.item_columns[name], column, rtol=1e-12)
    assert after.mean[4] == 1500.0
    assert after.variance[4] == pytest.approx(50.0**2 + (0.06 * 173.7178) ** 2, rel=1e-6)


def test_judgment_by_judgment_the_idle_stay_and_the_order_matters():
    model = Glicko2()
    after, turned = (model.fold(example(model), table) for table in (games(), games().take(np.array([2, 0, 1]))))
    assert after.variance[4] == 2500.0
    assert abs(after.mean[0] - turned.mean[0]) > 0.1


def test_a_period_of_one_judgment_is_that_judgment():
    by_call, by_judgment = Glicko2(period="call"), Glicko2()
    judgment = Comparison("player", "two", "two")
    found, expected = (model.update(example(model), judgment) for model in (by_call, by_judgment))
    for name in ("mean", "variance", "volatility"):
        played = [0, 2]
        np.testing.assert_allclose(getattr(found, name)[played], getattr(expected, name)[played], rtol=1e-12)


@pytest.mark.parametrize("surprise", [0.01, 1.0, 30.0, 5000.0])
@pytest.mark.parametrize("system_constant", [0.2, 1.2])
def test_the_volatility_solves_its_equation(surprise, system_constant):
    found = new_volatility(surprise, 2.0, 0.06, system_constant)
    before, x = 2 * np.log(0.06), 2 * np.log(found)
    below, above = (volatility_equation(x + step, surprise, 2.0, before, system_constant) for step in (-1e-5, 1e-5))
    assert below > 0 > above


def test_erratic_results_increase_the_volatility():
    model = Glicko2(period="call")
    upsets = Comparisons.of(["player"] * 8, ["one"] * 8, ["player"] * 8)
    calm = Comparisons.of(["player"] * 8, ["one"] * 8, ["player", "one"] * 4)
    assert model.fold(example(model), upsets).volatility[0] > model.fold(example(model), calm).volatility[0]


@pytest.mark.parametrize(
    "wrong", [{"prior_scale": 0.0}, {"volatility": -0.1}, {"system_constant": 0.0}, {"period": "week"}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} must be"):
        Glicko2(**wrong)
