"""The linear ranker (ListMLE)."""

import numpy as np
import pytest

from crowdrank.engines import LOCAL
from crowdrank.errors import SettingError
from crowdrank.ltr.linear import Linear, LinearScorer, NegativeLogPosterior
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists

STARTS = np.arange(0, 41, 8)


@pytest.fixture
def training_data():
    """Five queries of eight items, drawn by Plackett-Luce from a known line, ten lists each."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 3)) * [1, 10, 0.1]
    scores = values @ [1.0, -0.1, 0.0]
    order = [q * 8 + np.argsort(-(scores[q * 8 : q * 8 + 8] + rng.gumbel(size=8))) for q in range(5) for _ in range(10)]
    lists = RankedLists(
        np.concatenate(order).astype(np.int32),
        np.tile(np.arange(8, dtype=np.int32), 50),
        np.arange(51) * 8,
        np.ones(50),
    )
    return lists, values


def test_the_weights_are_recovered(training_data):
    lists, values = training_data
    found = Linear().fit(lists, values, STARTS)
    assert found.weights == pytest.approx([1, -1, 0], abs=0.35)
    assert np.corrcoef(found.scores(values), values @ [1.0, -0.1, 0.0])[0, 1] > 0.98


def test_the_gradient_matches_finite_differences(training_data):
    lists, values = training_data
    objective = NegativeLogPosterior(LOCAL.load(lists), values, 2.0)
    weights, h = np.array([0.3, -0.2, 1.0]), 1e-6
    slope = [(objective(weights + h * e)[0] - objective(weights - h * e)[0]) / (2 * h) for e in np.eye(3)]
    assert objective(weights)[1] == pytest.approx(slope, rel=1e-5)


def test_the_units_of_features_do_not_matter(training_data):
    lists, values = training_data
    one = Linear().fit(lists, values, STARTS).scores(values)
    other = Linear().fit(lists, values * [1000, 0.01, -5], STARTS).scores(values * [1000, 0.01, -5])
    assert other == pytest.approx(one, abs=1e-3)


def test_columns_that_are_constant_within_queries_get_zero_weight(training_data):
    lists, values = training_data
    more = np.column_stack((values, np.full(40, 7.1), np.repeat(np.arange(5.0), 8)))
    found = Linear().fit(lists, more, STARTS)
    assert found.weights[3:].tolist() == [0, 0]
    assert np.isfinite(found.scores(more)).all()
    one, other = Linear().fit(lists, values, STARTS).scores(values), found.scores(more)
    assert other - other[0] == pytest.approx(one - one[0], abs=1e-3)


def test_a_warm_start_gives_the_same_weights(training_data):
    lists, values = training_data
    cold = Linear(tolerance=1e-10).fit(lists, values, STARTS)
    warm = Linear(tolerance=1e-10).fit(lists, values, STARTS, cold)
    assert warm.weights == pytest.approx(cold.weights, abs=1e-3)


def test_the_prior_keeps_weights_finite_when_an_item_only_wins():
    lists = RankedLists(np.array([0, 1], np.int32), np.array([0, 1], np.int32), np.array([0, 2]), np.ones(1))
    found = Linear(prior_scale=1.0).fit(lists, np.array([[1.0], [0.0]]), np.array([0, 2]))
    assert 0 < found.weights[0] < 2


def test_a_saved_function_gives_the_same_scores(training_data):
    lists, values = training_data
    found = Linear().fit(lists, values, STARTS)
    again = LinearScorer.from_state(found.state())
    assert again.scores(values).tolist() == found.scores(values).tolist()


@pytest.mark.parametrize("wrong", [{"prior_scale": 0}, {"max_steps": 0}, {"tolerance": 0}])
def test_settings_are_checked(wrong):
    with pytest.raises(SettingError, match="must (be|lie)"):
        Linear(**wrong)
