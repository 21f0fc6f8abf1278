"""Grades standardised within annotators: habits are taken out, and told of."""

import numpy as np
import pytest
from scipy.stats import spearmanr, zscore

from crowdrank.data import Ratings
from crowdrank.errors import SettingError
from crowdrank.models.ratings.mean_ratings import MeanRating, ZRating


def strict_and_kind(seed=0, items=40, people=12, each=15):
    """Everyone sees much the same, and has a level and a spread of their own."""
    rng = np.random.default_rng(seed)
    truth, level, spread = rng.normal(size=items), 3 * rng.normal(size=people), np.exp(0.7 * rng.normal(size=people))
    item = np.concatenate([rng.choice(items, each, replace=False) for _ in range(people)])
    who = np.repeat(np.arange(people), each)
    grades = level[who] + spread[who] * (truth[item] + 0.5 * rng.normal(size=len(item)))
    ratings = Ratings.of([f"i{n:02d}" for n in item], grades, annotator=[f"w{n:02d}" for n in who])
    return ratings, truth[np.unique(item)], level


def test_without_credit_it_is_the_mean_of_plain_z_scores():
    grades = np.array([[5, 1, 3, 2], [9, 8, 7, 7], [2, 2, 4, 1.0]])
    ratings = Ratings.of(list("abcd") * 3, grades.ravel(), annotator=np.repeat(["x", "y", "z"], 4))
    ranking = ZRating(annotator_count=0, prior_count=0).fit(ratings)
    np.testing.assert_allclose(ranking.scores, zscore(grades, axis=1).mean(axis=0), atol=1e-12)


def test_strict_and_kind_annotators_are_made_alike():
    ratings, truth, level = strict_and_kind()
    plain, fair = MeanRating().fit(ratings), ZRating().fit(ratings)
    assert spearmanr(fair.scores, truth)[0] > 0.9 > spearmanr(plain.scores, truth)[0] + 0.1
    assert spearmanr(fair.annotators["leniency"], level)[0] > 0.95


def test_an_annotator_with_one_grade_is_taken_for_a_typical_one():
    ratings = Ratings.of(
        ["a", "b", "a", "b", "a"], [5, 3, 4, 2, 1], annotator=["x", "x", "y", "y", "once"]
    )  # a z-score of a single grade would be nothing
    habits = ZRating().fit(ratings).annotators
    once = habits.labels.tolist().index("once")
    assert abs(habits["leniency"][once]) < 0.5
    assert habits["spread"][once] == pytest.approx(1.0, abs=0.15)


def test_queries_on_different_scales_are_put_on_one():
    ratings, _, _ = strict_and_kind()
    frame = ratings.to_frame()
    both = Ratings.of(
        [*frame["item"], *frame["item"]],
        [*frame["grade"], *(100 * frame["grade"] + 7)],
        annotator=[*frame["annotator"]] * 2,
        query=["near"] * len(frame) + ["far"] * len(frame),
    )
    scores = ZRating().fit(both).scores
    np.testing.assert_allclose(scores[: len(scores) // 2], scores[len(scores) // 2 :], atol=1e-9)


def test_grades_that_name_nobody_are_ordered_by_their_means():
    ratings = Ratings.of(["a", "a", "b", "c"], [1, 2, 5, 3])
    ranking = ZRating(prior_count=0).fit(ratings)
    np.testing.assert_array_equal(ranking.rank, MeanRating(prior_count=0).fit(ratings).rank)
    assert not ranking.has_annotators


def test_what_means_nothing_is_refused():
    with pytest.raises(SettingError, match=r"annotator_count must be zero or more, got -1\.0"):
        ZRating(annotator_count=-1.0)
