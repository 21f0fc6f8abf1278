import numpy as np
import pytest

from crowdrank.errors import SettingError
from crowdrank.simulation import crowd_bt


def right_answers(crowd):
    votes = crowd.judgments
    return (crowd.truth[votes.left] > crowd.truth[votes.right]) == (votes.outcome == 1)


def test_each_pair_is_answered_by_different_annotators():
    votes = crowd_bt().judgments
    assert len(votes) == 4000
    assert len(votes.counts) == 400
    assert np.all(votes.counts.total == 10)
    who = votes.annotator.reshape(400, 10)
    assert all(len(set(row)) == 10 for row in who.tolist())


def test_true_scores_are_one_to_n_and_say_nothing_of_the_labels():
    crowd = crowd_bt(seed=4)
    assert sorted(crowd.truth) == list(range(1, 101))
    assert abs(np.corrcoef(crowd.truth, np.arange(100))[0, 1]) < 0.35


@pytest.mark.parametrize("quality", ["beta(2,1)", "uniform(0.1,0.5)", 0.9])
def test_annotators_tell_the_order_with_probability_quality(quality):
    crowd = crowd_bt(annotators=50, pairs=4000, votes=20, quality=quality, seed=1)
    told = right_answers(crowd)
    chance = crowd.annotators["quality"][crowd.judgments.annotator]
    assert told.mean() == pytest.approx(chance.mean(), abs=4 * np.sqrt((chance * (1 - chance)).sum()) / len(told))
    asked = np.bincount(crowd.judgments.annotator)
    each = np.bincount(crowd.judgments.annotator, told) / asked
    assert np.all(np.abs(each - crowd.annotators["quality"]) < 5 * 0.5 / np.sqrt(asked))


def test_logistic_answers_are_bradley_terry_draws_on_standardised_scores():
    crowd = crowd_bt(items=30, annotators=40, pairs=435, votes=40, quality=1.0, labels="logistic", scale=1.5, seed=2)
    votes, scores = crowd.judgments, 1.5 * (crowd.truth - crowd.truth.mean()) / crowd.truth.std()
    chance = 1 / (1 + np.exp(scores[votes.right] - scores[votes.left]))
    surprise = (votes.outcome == 1) - chance
    for close in (np.abs(chance - 0.5) < 0.2, np.abs(chance - 0.5) >= 0.2):
        error = np.sqrt((chance * (1 - chance))[close].sum())
        assert abs(surprise[close].sum()) < 4 * error
        assert abs((surprise * np.sign(chance - 0.5))[close].sum()) < 4 * error


def test_logistic_answers_are_turned_round_by_liars():
    honest = crowd_bt(quality=1.0, labels="logistic", seed=3).judgments
    lying = crowd_bt(quality=0.0, labels="logistic", seed=3).judgments
    np.testing.assert_array_equal(honest.outcome, -lying.outcome)


def test_sides_are_random():
    votes = crowd_bt(pairs=4000, votes=5).judgments
    assert (votes.left < votes.right).mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(len(votes)))


def test_the_same_seed_gives_the_same_crowd_and_another_another():
    one, same, other = crowd_bt(seed=5), crowd_bt(seed=5), crowd_bt(seed=6)
    assert one.judgments.to_frame().equals(same.judgments.to_frame())
    np.testing.assert_array_equal(one.truth, same.truth)
    assert not one.judgments.to_frame().equals(other.judgments.to_frame())
    assert not np.array_equal(one.truth, other.truth)


def test_changing_the_quality_changes_the_answers_only():
    good, bad = crowd_bt(quality="beta(10,1)", seed=8), crowd_bt(quality="beta(1,5)", seed=8)
    np.testing.assert_array_equal(good.truth, bad.truth)
    for column in ("left", "right", "annotator"):
        np.testing.assert_array_equal(getattr(good.judgments, column), getattr(bad.judgments, column))
    assert not np.array_equal(good.judgments.outcome, bad.judgments.outcome)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"items": 10, "pairs": 46}, "pairs must be at most 45, the number of pairs of 10 items, got 46"),
        ({"annotators": 5, "votes": 6}, "votes must be at most the number of annotators, 5, got 6"),
        ({"items": 1}, "items must be at least 2, got 1"),
        ({"pairs": 0}, "pairs must be at least 1, got 0"),
        ({"labels": "probit"}, "labels must be 'order' or 'logistic', got 'probit'"),
        ({"quality": "normal(0,1)"}, "quality must lie between 0 and 1"),
        ({"scale": 0.0}, "scale must be a number above zero, got 0.0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        crowd_bt(**settings)


def test_a_million_judgments_come_with_integer_codes():
    votes = crowd_bt(items=10_000, annotators=1_000, pairs=100_000, votes=10).judgments
    assert len(votes) == 1_000_000
    assert votes.left.dtype == votes.annotator.dtype == np.int32
    assert votes.outcome.dtype == np.int8
