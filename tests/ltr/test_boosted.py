"""Boosted trees: trained by LightGBM, evaluated by TreeEnsemble."""

from __future__ import annotations

import builtins
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from crowdrank.errors import DataWarning, FormatError, SettingError
from crowdrank.ltr.boosted import (
    Boosted,
    TreeEnsemble,
    drop_unlisted_queries,
    ensemble_of_booster,
    fraction_below,
    grades_from_lists,
)
from crowdrank.ltr.linear import Linear
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists


def lists(*orders: list[list[int]], weight: list[float] | None = None) -> RankedLists:
    """Lists of places; a place is the list of the items tied on it."""
    item = [k for order in orders for tied in order for k in tied]
    place = [p for order in orders for p, tied in enumerate(order) for _ in tied]
    ends = np.cumsum([0, *(sum(map(len, order)) for order in orders)])
    weights = np.ones(len(orders)) if weight is None else np.array(weight)
    return RankedLists(np.array(item, np.int32), np.array(place, np.int32), ends.astype(np.int64), weights)


def bent(queries: int = 60, size: int = 10, seed: int = 3) -> tuple[RankedLists, np.ndarray, np.ndarray, np.ndarray]:
    """True lists by a score that is not linear in the features."""
    rng = np.random.default_rng(seed)
    values = rng.random((queries * size, 3))
    score = -np.abs(values[:, 0] - 0.5) + 0.2 * values[:, 1]
    starts = np.arange(queries + 1) * size
    orders = [[[int(k)] for k in b + np.argsort(-score[b : b + size])] for b in starts[:-1]]
    return lists(*orders), values, starts, score


def tau(scores: np.ndarray, truth: np.ndarray, starts: np.ndarray) -> float:
    found = []
    for a, b in pairwise(starts):
        one, other = np.sign(np.subtract.outer(scores[a:b], scores[a:b])), np.subtract.outer(truth[a:b], truth[a:b])
        found.append((one * np.sign(other)).sum() / ((b - a) * (b - a - 1)))
    return float(np.mean(found))


@pytest.mark.parametrize("objective", ["lambdarank", "listwise"])
def test_trees_fit_a_nonlinear_score(objective: Any) -> None:
    data, values, starts, _ = bent()
    _, fresh, other, truth = bent(seed=4)
    line = tau(Linear().fit(data, values, starts).scores(fresh), truth, other)
    ranker = Boosted(objective=objective, trees=30, learning_rate=0.2, min_leaf_items=10, feature_fraction=1)
    trees = tau(ranker.fit(data, values, starts).scores(fresh), truth, other)
    assert trees > 0.7
    assert trees > line + 0.3


def test_the_ensemble_predicts_what_lightgbm_predicts() -> None:
    import lightgbm

    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 4)).round(1)
    values[rng.random(values.shape) < 0.3] = 0.0
    grade = np.digitize(values[:, 0] * values[:, 1], [-0.5, 0.5])
    options = {"objective": "lambdarank", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    booster = lightgbm.train(options, lightgbm.Dataset(values, grade, group=[10] * 50), 30)
    fresh = rng.normal(size=(5000, 4)).round(1)
    found = ensemble_of_booster(booster)
    np.testing.assert_allclose(found.scores(fresh), booster.predict(fresh), atol=1e-12)
    again = TreeEnsemble.from_state(found.state(), 4)
    np.testing.assert_array_equal(again.scores(fresh), found.scores(fresh))


def test_the_same_seed_gives_the_same_trees() -> None:
    data, values, starts, _ = bent(40)
    a, b, c = (Boosted(seed=seed, trees=5).fit(data, values, starts).scores(values) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_queries_without_lists_do_not_affect_training() -> None:
    data, values, starts, _ = bent(40)
    held_out = np.vstack((values[:50][::-1], values))
    shifted = data._replace(item=data.item + np.int32(50))
    wider = np.append([0, 20], 50 + starts)
    short, rows, begins = drop_unlisted_queries(shifted, held_out, wider)
    np.testing.assert_array_equal(short.item, data.item)
    np.testing.assert_array_equal(rows, values)
    np.testing.assert_array_equal(begins, starts)
    a, b = Boosted(trees=5).fit(data, values, starts), Boosted(trees=5).fit(shifted, held_out, wider)
    np.testing.assert_array_equal(a.scores(values), b.scores(values))


def test_fraction_below_is_the_mean_over_lists() -> None:
    data = lists([[0], [1, 2]], [[2], [1], [0]], weight=[1.0, 3.0])
    np.testing.assert_allclose(fraction_below(data, 4), [0.25, 0.4375, 0.8125, 0.5])


def test_grades_decrease_with_position_and_ties_share_them() -> None:
    whole = lists([[k] for k in range(8)])  # type: ignore[misc]
    assert grades_from_lists(whole, np.array([0, 8]), 4).tolist() == [3, 2, 2, 1, 1, 1, 1, 0]
    tied = lists([[0, 1], [2, 3, 4, 5, 6, 7]])
    found = grades_from_lists(tied, np.array([0, 8]), 3)
    assert found[0] == found[1] > found[2] == found[7]


def test_too_few_items_for_a_tree_give_a_warning() -> None:
    data, values, starts, _ = bent(4)
    with pytest.warns(DataWarning, match="No tree could be grown from 40 items"):
        found = Boosted(trees=3).fit(data, values, starts)
    assert found.scores(values).tolist() == [0.0] * 40
    data, values, starts, _ = bent(20)
    with pytest.warns(DataWarning, match="all items have the same score"):
        Boosted(trees=3).fit(data, np.ones_like(values), starts)


def test_missing_lightgbm_is_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def none_of_it(name: str, *more: Any, **named: Any) -> Any:
        if name == "lightgbm":
            raise ImportError(name)
        return plain(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", none_of_it)
    data, values, starts, _ = bent(4)
    with pytest.raises(SettingError, match=r"pip install 'crowdrank\[learning\]'"):
        Boosted().fit(data, values, starts)


@pytest.mark.parametrize(
    "wrong", [{"trees": 0}, {"max_leaves": 1}, {"grades": 40}, {"feature_fraction": 0}, {"objective": "mse"}]
)
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Boosted(**wrong)


def a_state(**other: Any) -> dict[str, Any]:
    """One tree that splits the first feature at one half."""
    return {
        "kind": "trees",
        "roots": [0],
        "feature": [0, 0, 0],
        "threshold": [0.5, None, None],
        "left": [1, 1, 2],
        "right": [2, 1, 2],
        "value": [0.0, -1.0, 1.0],
        **other,
    }


def test_a_state_makes_a_round_trip() -> None:
    found = TreeEnsemble.from_state(a_state(), 1)
    assert found.scores(np.array([[0.5], [0.6]])).tolist() == [-1, 1]
    assert found.state() == a_state()


@pytest.mark.parametrize(
    "wrong",
    [
        {"left": [0, 1, 2], "right": [2, 1, 2]},  # a leaf that leads elsewhere
        {"left": [-1, 1, 2]},
        {"left": [7, 1, 2]},
        {"left": [1, 0, 2], "right": [2, 2, 2]},  # round and round
        {"roots": [3]},
        {"roots": [-1]},
        {"feature": [1, 0, 0]},
        {"feature": [-1, 0, 0]},
        {"value": [0.0, float("nan"), 1.0]},
        {"value": [0.0, 1.0]},
    ],
)
def test_a_manipulated_state_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="Invalid trees"):
        TreeEnsemble.from_state(a_state(**wrong), 1)
