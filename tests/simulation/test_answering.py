"""Simulated annotators who answer single questions."""

import numpy as np
import pytest

from crowdrank.errors import SettingError
from crowdrank.simulation import respondents


def share_right(crowd, rounds=4000, seed=0):
    rng, right = np.random.default_rng(seed), 0
    for _ in range(rounds):
        i, j = rng.choice(len(crowd.items), 2, replace=False)
        better = crowd.items[i if crowd.truth[i] > crowd.truth[j] else j]
        right += crowd.winner(crowd.items[i], crowd.items[j], crowd.annotators[0], rng) == better
    return right / rounds


def test_with_labels_of_order_the_truth_is_told_with_probability_quality():
    assert share_right(respondents(10, 1, quality=0.8)) == pytest.approx(0.8, abs=0.025)


def test_with_logistic_labels_close_items_are_hard():
    crowd = respondents(2, 1, quality=1.0, labels="logistic", scale=0.5)
    assert share_right(crowd) == pytest.approx(1 / (1 + np.exp(-1.0)), abs=0.025)


def test_equal_items_give_random_answers():
    crowd = respondents(10, 1, quality=1.0, labels="logistic", scale=0.0)
    rng = np.random.default_rng(0)
    won = sum(crowd.winner("item01", "item02", "annotator1", rng) == "item01" for _ in range(2000))
    assert won == pytest.approx(1000, abs=120)
    with_order = respondents(10, 1, quality=1.0, labels="order", scale=0.0)
    won = sum(with_order.winner("item01", "item02", "annotator1", rng) == "item01" for _ in range(2000))
    assert won == pytest.approx(1000, abs=120)


def test_scores_are_evenly_spaced_or_normal_and_seeded():
    even, normal = respondents(50, 2, seed=1), respondents(50, 2, scores="normal", seed=1)
    gaps = np.diff(np.sort(even.truth))
    np.testing.assert_allclose(gaps, gaps[0])
    assert np.diff(np.sort(normal.truth)).std() > 0.01
    np.testing.assert_array_equal(even.truth, respondents(50, 2, seed=1).truth)


@pytest.mark.parametrize(
    "wrong", [{"items": 1}, {"annotators": 0}, {"labels": "x"}, {"scale": -1}, {"quality": 2.0}, {"scores": "odd"}]
)
def test_settings_make_sense(wrong):
    with pytest.raises(SettingError):
        respondents(**{"items": 3, "annotators": 2, **wrong})
