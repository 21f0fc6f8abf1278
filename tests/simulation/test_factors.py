import numpy as np
import pytest

from crowdrank.errors import SettingError
from crowdrank.simulation import factor_crowd


def test_scores_are_different_integers_below_a_hundred():
    truth = factor_crowd(items=60).truth
    assert len(set(truth)) == 60
    assert set(truth) <= set(range(100))
    assert sorted(factor_crowd().truth) == list(range(100))


def test_more_than_a_hundred_items_still_have_different_scores():
    assert sorted(factor_crowd(items=150).truth) == list(range(150))


def test_factors_belong_to_the_task_and_are_spread_evenly():
    votes = factor_crowd(pairs=4000, seed=1).judgments
    for column in votes.features.values():
        assert np.all(column.reshape(4000, 10) == column[::10, None])
        shares = np.bincount(column[::10] + 1, minlength=3) / 4000
        np.testing.assert_allclose(shares, 1 / 3, atol=4 * np.sqrt(2 / 9 / 4000))
    assert np.all(votes.left.reshape(4000, 10) == votes.left[::10, None])


def test_answers_follow_the_formula():
    crowd = factor_crowd(pairs=4000, votes=20, seed=2)
    votes, attention_logit, feature_weight = (
        crowd.judgments,
        crowd.annotators["attention_logit"],
        crowd.annotators["feature_weight"],
    )
    attentive = 1 / (1 + np.exp(-attention_logit))[votes.annotator]
    shown = np.stack([votes.features["factor1"], votes.features["factor2"]], axis=1)
    seen = 1 / (1 + np.exp(crowd.truth[votes.right] - crowd.truth[votes.left]))
    biased = 1 / (1 + np.exp(-(shown * feature_weight[votes.annotator]).sum(axis=1)))
    chance = attentive * seen + (1 - attentive) * biased
    surprise = (votes.outcome == 1) - chance
    for direction in (np.ones(len(votes)), seen - 0.5, biased - 0.5, attentive - 0.5):
        error = np.sqrt((direction**2 * chance * (1 - chance)).sum())
        assert abs((surprise * direction).sum()) < 4 * error


def test_annotators_are_standard_normal():
    crowd = factor_crowd(annotators=20_000, seed=3)
    assert crowd.annotators["feature_weight"].shape == (20_000, 2)
    for drawn in (crowd.annotators["attention_logit"], crowd.annotators["feature_weight"]):
        assert drawn.mean() == pytest.approx(0, abs=4 / np.sqrt(20_000))
        assert drawn.std() == pytest.approx(1, abs=0.03)


def test_the_same_seed_gives_the_same_crowd():
    assert factor_crowd(seed=5).judgments.to_frame().equals(factor_crowd(seed=5).judgments.to_frame())
    assert not factor_crowd(seed=5).judgments.to_frame().equals(factor_crowd(seed=6).judgments.to_frame())


def test_no_factors_are_refused():
    with pytest.raises(SettingError, match="factors must be at least 1, got 0"):
        factor_crowd(factors=0)
