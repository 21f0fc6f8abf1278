"""Dawid and Skene's classes: the rounds are EM's, and what they find is what was there."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.stats import spearmanr

from crowdrank.data import Ratings
from crowdrank.errors import SettingError
from crowdrank.models.ratings.dawid_skene import DawidSkene, Grades
from crowdrank.models.ratings.grade_classes import Classes
from crowdrank.models.ratings.mean_ratings import MeanRating
from tests.strategies import some_ratings

quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def crowd(seed, matrices, items=300, each=60, queries=1):
    """Annotators with these matrices; items of true classes drawn evenly."""
    rng, people, size = np.random.default_rng(seed), len(matrices), matrices.shape[1]
    truth = rng.integers(size, size=items)
    item = np.concatenate([rng.choice(items, each, replace=False) for _ in range(people)])
    who = np.repeat(np.arange(people), each)
    said = [rng.choice(size, p=matrices[k, truth[i]]) for k, i in zip(who, item, strict=True)]
    seen = np.unique(item)
    ratings = Ratings.of(
        [f"i{n:03d}" for n in item], said, annotator=[f"w{k:02d}" for k in who], query=[f"q{n % queries}" for n in item]
    )
    labels = [int(label[1:]) for label in ratings.items.labels]
    assert len(labels) == len(seen)
    return ratings, truth[labels]


def coins(*pairs):
    """(P(1 | 1), P(0 | 0)) of each annotator as matrices."""
    return np.array([[[zero, 1 - zero], [1 - one, one]] for one, zero in pairs])


def log_posterior(grades, mixed, crowd, model):
    """What the rounds climb: the likelihood with classes added up, and Dirichlet priors of shares and matrices."""
    return (
        mixed.log_likelihood
        + model.annotator_count * float(np.sum(crowd.matrices * np.log(mixed.matrices)))
        + model.query_count * float(np.sum(crowd.shares * np.log(mixed.shares)))
    )


@quick
@given(ratings=some_ratings())
def test_every_round_climbs(ratings):
    model = DawidSkene(annotator_count=1.0, query_count=0.5)
    grades = Grades(ratings, Classes.of(ratings, model.bins))
    typical, _ = grades.settle(grades.first(), None, model, 1e-5)
    chances, values = typical.chances, []
    for _ in range(15):
        mixed = grades._look(*grades._learn(chances, typical, model))
        chances = mixed.chances
        values.append(log_posterior(grades, mixed, typical, model))
    assert (np.diff(values) >= -1e-9).all()


def test_a_round_is_that_of_the_paper():
    """Once more in plain loops."""
    ratings, _ = crowd(0, coins((0.9, 0.8), (0.6, 0.7), (0.8, 0.8)), items=12, each=8)
    model = DawidSkene()
    grades = Grades(ratings, Classes.of(ratings, 5))
    typical, _ = grades.settle(grades.first(), None, model, 1e-5)
    shares, matrices = grades._learn(typical.chances, typical, model)
    found = grades._look(shares, matrices)
    for k in range(3):
        counts = model.annotator_count * typical.matrices[0]
        for n in range(len(ratings)):
            if ratings.annotator[n] == k:
                counts[:, int(ratings.grade[n])] += typical.chances[ratings.item[n]]
        np.testing.assert_allclose(matrices[k], counts / counts.sum(axis=1, keepdims=True))
    for i in range(len(ratings.items)):
        chance = shares[0].copy()
        for n in np.flatnonzero(ratings.item == i):
            chance *= matrices[ratings.annotator[n], :, int(ratings.grade[n])]
        np.testing.assert_allclose(found.chances[i], chance / chance.sum())


def test_two_coins_are_recovered():
    pairs = [(0.95, 0.9), (0.6, 0.9), (0.9, 0.6), (0.8, 0.8), (0.5, 0.5), (0.9, 0.9)] * 2
    ratings, truth = crowd(1, coins(*pairs), each=200)
    ranking = DawidSkene().fit(ratings)
    quality = ranking.annotators["quality"]
    # of one good and one bad item the better is graded higher with chance (one + zero) / 2, ties by half
    np.testing.assert_allclose(quality, np.mean(pairs, axis=1), atol=0.06)
    believed = np.mean((ranking.scores > 0.5) == truth)
    majority = np.mean((MeanRating(prior_count=0).fit(ratings).scores > 0.5) == truth)
    assert believed > majority + 0.01
    assert ((ranking.scores >= 0) & (ranking.scores <= 1)).all()


def test_reversed_annotators_are_turned_round():
    pairs = [(0.85, 0.85)] * 9 + [(0.1, 0.1)] * 3
    ratings, truth = crowd(2, coins(*pairs), each=150)
    ranking = DawidSkene().fit(ratings)
    assert ranking.annotators.reversed == ["w09", "w10", "w11"]
    assert np.mean((ranking.scores > 0.5) == truth) > 0.9


def test_annotators_are_known_from_all_queries():
    """Thirty queries of ten items each: together they tell who is a spammer."""
    pairs = [(0.85, 0.85)] * 6 + [(0.5, 0.5)] * 6
    ratings, _ = crowd(3, coins(*pairs), each=150, queries=30)
    quality = DawidSkene().fit(ratings).annotators["quality"]
    assert quality[:6].min() > quality[6:].max()


def test_an_annotator_with_few_grades_is_held_near_the_crowd():
    ratings, _ = crowd(4, coins(*[(0.9, 0.9)] * 6))
    frame = ratings.to_frame()
    more = Ratings.of([*frame["item"], "i000"], [*frame["grade"], 0], annotator=[*frame["annotator"], "z"])
    found = DawidSkene().fit(more).annotators
    assert abs(found["quality"][-1] - np.median(found["quality"])) < 0.1


def test_many_grades_are_ranked_by_what_their_classes_are_worth():
    rng = np.random.default_rng(5)
    truth = rng.uniform(0, 100, 60)
    item = np.tile(np.arange(60), 8)
    grades = truth[item] + 12 * rng.normal(size=len(item))
    ratings = Ratings.of([f"i{n:02d}" for n in item], grades, annotator=np.repeat([f"w{n}" for n in range(8)], 60))
    scores = DawidSkene().fit(ratings).scores
    assert spearmanr(scores, truth)[0] > 0.9
    assert 0 < scores.min() < scores.max() < 100


def test_who_stands_first_may_stand_first():
    """Many items are nearly surely of the best class: they share its rank."""
    ratings, _ = crowd(6, coins(*[(0.9, 0.9)] * 8), each=200)
    ranking = DawidSkene().fit(ratings)
    low, high = ranking.uncertainty.rank_interval(ranking.items, 0.95)
    assert low[np.argmax(ranking.scores)] == 1
    assert high[np.argmin(ranking.scores)] == len(ranking.items)
    assert set(np.unique(ranking.uncertainty.draws)) == {0.0, 1.0}
    np.testing.assert_allclose(ranking.uncertainty.draws.mean(axis=0), ranking.scores, atol=0.06)
    np.testing.assert_allclose(ranking.uncertainty.std_error**2, ranking.scores * (1 - ranking.scores), atol=1e-9)


def test_grades_that_name_nobody_are_one_annotators():
    ranking = DawidSkene().fit(Ratings.of(["a", "a", "b", "b", "c"], [2, 2, 1, 0, 0]))
    assert ranking.table(uncertainty=False)["item"].to_list() == ["a", "b", "c"]
    assert not ranking.has_annotators


@pytest.mark.parametrize("name", ["annotator_count", "query_count"])
def test_what_means_nothing_is_refused(name):
    with pytest.raises(SettingError, match=rf"{name} must be positive, got 0\.0"):
        DawidSkene(**{name: 0.0})
