import numpy as np
import pytest

from crowdrank.errors import SettingError
from crowdrank.simulation import preference_crowd, rating_crowd


def right(crowd):
    votes = crowd.judgments
    return (crowd.truth[votes.left] > crowd.truth[votes.right]) == (votes.outcome > 0)


def test_everyone_answers_as_many_different_pairs_of_every_query():
    votes = preference_crowd(queries=3, items=6, annotators=4, votes_each=10, spammers=2).judgments
    low, high = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    np.testing.assert_array_equal(votes.items.query[low], votes.items.query[high])
    assert len(np.unique(np.stack((votes.annotator, low, high)), axis=1).T) == len(votes) == 6 * 3 * 10
    cell = votes.annotator * 3 + votes.items.query[votes.left]
    np.testing.assert_array_equal(np.bincount(cell), np.full(18, 10))


def test_annotators_are_right_as_often_as_their_quality_says():
    crowd = preference_crowd(queries=400, annotators=5, spammers=1, spammer_quality=0.0, seed=1)
    found = np.bincount(crowd.judgments.annotator, right(crowd)) / 10_000
    np.testing.assert_allclose(found, crowd.annotators["quality"], atol=4 * 0.5 / 100)
    assert found[-1] == 0


def test_spammers_change_nothing_of_what_the_others_say():
    alone, joined = (preference_crowd(queries=2, spammers=count, seed=4) for count in (0, 9))
    np.testing.assert_array_equal(alone.truth, joined.truth)
    for column in ("left", "right", "outcome", "annotator"):
        kept = getattr(joined.judgments, column)[: len(alone.judgments)]
        np.testing.assert_array_equal(getattr(alone.judgments, column), kept)
    grades, more = (rating_crowd(spammers=count, seed=4).judgments for count in (0, 9))
    np.testing.assert_array_equal(grades.item, more.item[: len(grades)])
    np.testing.assert_array_equal(grades.grade, more.grade[: len(grades)])


def test_perfect_graders_without_noise_give_every_level_to_as_many_items():
    crowd = rating_crowd(items=30, annotators=2, grades_each=30, levels=5, quality=1.0, noise=0.0)
    grades = crowd.judgments
    np.testing.assert_array_equal(np.bincount(grades.grade.astype(int)), np.full(5, 12))
    order = np.argsort(crowd.truth[grades.item])
    assert np.all(np.diff(grades.grade[order]) >= 0)


def test_reversed_annotators_give_the_opposite_grade_and_guessers_any():
    honest, wrong, guess = (
        rating_crowd(items=40, annotators=20, grades_each=40, levels=4, quality=q, seed=2) for q in (1.0, 0.0, 0.5)
    )
    np.testing.assert_array_equal(wrong.judgments.grade, 3 - honest.judgments.grade)
    assert abs(np.corrcoef(guess.judgments.grade, guess.truth[guess.judgments.item])[0, 1]) < 4 / np.sqrt(800)


def test_of_two_levels_the_true_one_is_given_as_often_as_quality_says():
    """Of two levels the true one is given with chance |2q − 1| + (1 − |2q − 1|) / 2 = q."""
    crowd = rating_crowd(items=200, annotators=40, grades_each=200, levels=2, quality=0.8, noise=0.0, seed=3)
    true = crowd.truth > np.median(crowd.truth)
    found = np.mean(crowd.judgments.grade == true[crowd.judgments.item])
    assert found == pytest.approx(0.8, abs=4 * 0.4 / np.sqrt(8000))


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (preference_crowd, {"items": 1}, "items must be at least 2"),
        (preference_crowd, {"votes_each": 191}, "pairs must be at most 190"),
        (preference_crowd, {"spammers": -1}, "spammers must be at least 0"),
        (preference_crowd, {"spammer_quality": 1.5}, "spammer_quality must lie between 0 and 1"),
        (rating_crowd, {"levels": 1}, "levels must be at least 2"),
        (rating_crowd, {"grades_each": 31}, "grades_each must be at most the number of items, 30, got 31"),
        (rating_crowd, {"noise": -0.1}, "noise must not be negative"),
    ],
)
def test_impossible_settings_are_refused(make, settings, message):
    with pytest.raises(SettingError, match=message):
        make(**settings)
