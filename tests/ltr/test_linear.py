"""ListMLE."""

import numpy as np
import pytest

from crowdrank.engines import LOCAL
from crowdrank.errors import SettingError
from crowdrank.ltr.rankers.linear import Linear, LinearScorer, Objective
from crowdrank.models.lists.plackett_luce_likelihood import Lists

STARTS = np.arange(0, 41, 8)


@pytest.fixture
def taught():
    """Five queries of eight items, drawn by Plackett-Luce from a known line, ten lists each."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 3)) * [1, 10, 0.1]
    scores = values @ [1.0, -0.1, 0.0]
    order = [q * 8 + np.argsort(-(scores[q * 8 : q * 8 + 8] + rng.gumbel(size=8))) for q in range(5) for _ in range(10)]
    lists = Lists(
        np.concatenate(order).astype(np.int32),
        np.tile(np.arange(8, dtype=np.int32), 50),
        np.arange(51) * 8,
        np.ones(50),
    )
    return lists, values


def test_the_line_comes_back(taught):
    lists, values = taught
    found = Linear().fit(lists, values, STARTS)
    assert found.weights == pytest.approx([1, -1, 0], abs=0.35)
    assert np.corrcoef(found.scores(values), values @ [1.0, -0.1, 0.0])[0, 1] > 0.98


def test_the_slope_is_right(taught):
    lists, values = taught
    objective = Objective(LOCAL.load(lists), values, 2.0)
    weights, h = np.array([0.3, -0.2, 1.0]), 1e-6
    slope = [(objective(weights + h * e)[0] - objective(weights - h * e)[0]) / (2 * h) for e in np.eye(3)]
    assert objective(weights)[1] == pytest.approx(slope, rel=1e-5)


def test_the_units_of_features_do_not_matter(taught):
    lists, values = taught
    one = Linear().fit(lists, values, STARTS).scores(values)
    other = Linear().fit(lists, values * [1000, 0.01, -5], STARTS).scores(values * [1000, 0.01, -5])
    assert other == pytest.approx(one, abs=1e-3)


def test_columns_that_are_constant_in_every_query_do_no_harm(taught):
    lists, values = taught
    more = np.column_stack((values, np.full(40, 7.1), np.repeat(np.arange(5.0), 8)))
    found = Linear().fit(lists, more, STARTS)
    assert found.weights[3:].tolist() == [0, 0]
    assert np.isfinite(found.scores(more)).all()
    one, other = Linear().fit(lists, values, STARTS).scores(values), found.scores(more)
    assert other - other[0] == pytest.approx(one - one[0], abs=1e-3)


def test_a_start_changes_nothing_but_the_time(taught):
    lists, values = taught
    cold = Linear(tolerance=1e-10).fit(lists, values, STARTS)
    warm = Linear(tolerance=1e-10).fit(lists, values, STARTS, cold)
    assert warm.weights == pytest.approx(cold.weights, abs=1e-3)


def test_the_ridge_holds_what_only_wins():
    lists = Lists(np.array([0, 1], np.int32), np.array([0, 1], np.int32), np.array([0, 2]), np.ones(1))
    found = Linear(prior_scale=1.0).fit(lists, np.array([[1.0], [0.0]]), np.array([0, 2]))
    assert 0 < found.weights[0] < 2


def test_a_saved_line_is_the_same_line(taught):
    lists, values = taught
    found = Linear().fit(lists, values, STARTS)
    again = LinearScorer.of_state(found.state())
    assert again.scores(values).tolist() == found.scores(values).tolist()


@pytest.mark.parametrize("wrong", [{"prior_scale": 0}, {"max_steps": 0}, {"tolerance": 0}])
def test_settings_are_checked(wrong):
    with pytest.raises(SettingError, match="must be"):
        Linear(**wrong)
