"""Dawid-Skene: EM steps against plain loops, and recovery of simulated annotators."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.stats import spearmanr

from crowdrank.data import Ratings
from crowdrank.errors import SettingError
from crowdrank.models.ratings.dawid_skene import DawidSkene, DawidSkeneEM, GradeClasses
from crowdrank.models.ratings.mean_ratings import MeanRating
from tests.strategies import some_ratings

quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def crowd(seed, confusion, items=300, each=60, queries=1):
    """Annotators with these matrices; items of true classes drawn evenly."""
    rng, people, size = np.random.default_rng(seed), len(confusion), confusion.shape[1]
    truth = rng.integers(size, size=items)
    item = np.concatenate([rng.choice(items, each, replace=False) for _ in range(people)])
    who = np.repeat(np.arange(people), each)
    said = [rng.choice(size, p=confusion[k, truth[i]]) for k, i in zip(who, item, strict=True)]
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


def log_posterior(em, estimate, crowd, model):
    """What the rounds maximise: the likelihood with classes added up, and Dirichlet priors of shares and matrices."""
    return (
        estimate.log_likelihood
        + model.annotator_prior_count * float(np.sum(crowd.confusion * np.log(estimate.confusion)))
        + model.query_prior_count * float(np.sum(crowd.class_priors * np.log(estimate.class_priors)))
    )


@quick
@given(ratings=some_ratings())
def test_every_em_step_increases_the_posterior(ratings):
    model = DawidSkene(annotator_prior_count=1.0, query_prior_count=0.5)
    em = DawidSkeneEM(ratings, GradeClasses.of(ratings, model.bins))
    pooled, _ = em.run(em.initial_probabilities(), None, model, 1e-5)
    probabilities, values = pooled.probabilities, []
    for _ in range(15):
        estimate = em._e_step(*em._m_step(probabilities, pooled, model))
        probabilities = estimate.probabilities
        values.append(log_posterior(em, estimate, pooled, model))
    assert (np.diff(values) >= -1e-9).all()


def test_an_em_step_equals_plain_loops():
    """Once more in plain loops."""
    ratings, _ = crowd(0, coins((0.9, 0.8), (0.6, 0.7), (0.8, 0.8)), items=12, each=8)
    model = DawidSkene()
    em = DawidSkeneEM(ratings, GradeClasses.of(ratings, 5))
    pooled, _ = em.run(em.initial_probabilities(), None, model, 1e-5)
    priors, confusion = em._m_step(pooled.probabilities, pooled, model)
    found = em._e_step(priors, confusion)
    for k in range(3):
        counts = model.annotator_prior_count * pooled.confusion[0]
        for n in range(len(ratings)):
            if ratings.annotator[n] == k:
                counts[:, int(ratings.grade[n])] += pooled.probabilities[ratings.item[n]]
        np.testing.assert_allclose(confusion[k], counts / counts.sum(axis=1, keepdims=True))
    for i in range(len(ratings.items)):
        chance = priors[0].copy()
        for n in np.flatnonzero(ratings.item == i):
            chance *= confusion[ratings.annotator[n], :, int(ratings.grade[n])]
        np.testing.assert_allclose(found.probabilities[i], chance / chance.sum())


def test_sensitivity_and_specificity_are_recovered():
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


def test_reversed_annotators_are_identified():
    pairs = [(0.85, 0.85)] * 9 + [(0.1, 0.1)] * 3
    ratings, truth = crowd(2, coins(*pairs), each=150)
    ranking = DawidSkene().fit(ratings)
    assert ranking.annotators.reversed == ["w09", "w10", "w11"]
    assert np.mean((ranking.scores > 0.5) == truth) > 0.9


def test_annotators_are_estimated_from_all_queries():
    """Thirty queries of ten items each: together they tell who is a spammer."""
    pairs = [(0.85, 0.85)] * 6 + [(0.5, 0.5)] * 6
    ratings, _ = crowd(3, coins(*pairs), each=150, queries=30)
    quality = DawidSkene().fit(ratings).annotators["quality"]
    assert quality[:6].min() > quality[6:].max()


def test_an_annotator_with_few_grades_is_shrunk_towards_the_crowd():
    ratings, _ = crowd(4, coins(*[(0.9, 0.9)] * 6))
    frame = ratings.to_frame()
    more = Ratings.of([*frame["item"], "i000"], [*frame["grade"], 0], annotator=[*frame["annotator"], "z"])
    found = DawidSkene().fit(more).annotators
    assert abs(found["quality"][-1] - np.median(found["quality"])) < 0.1


def test_many_distinct_grades_are_ranked_by_the_value_of_their_classes():
    rng = np.random.default_rng(5)
    truth = rng.uniform(0, 100, 60)
    item = np.tile(np.arange(60), 8)
    em = truth[item] + 12 * rng.normal(size=len(item))
    ratings = Ratings.of([f"i{n:02d}" for n in item], em, annotator=np.repeat([f"w{n}" for n in range(8)], 60))
    scores = DawidSkene().fit(ratings).scores
    assert spearmanr(scores, truth)[0] > 0.9
    assert 0 < scores.min() < scores.max() < 100


def test_the_first_item_may_have_rank_one():
    """Many items are nearly surely of the best class: they share its rank."""
    ratings, _ = crowd(6, coins(*[(0.9, 0.9)] * 8), each=200)
    ranking = DawidSkene().fit(ratings)
    low, high = ranking.rank_intervals(0.95)
    assert low[np.argmax(ranking.scores)] == 1
    assert high[np.argmin(ranking.scores)] == len(ranking.items)
    assert set(np.unique(ranking.uncertainty.draws)) == {0.0, 1.0}
    mean = ranking.uncertainty.draws.mean(axis=0)
    np.testing.assert_allclose(mean, ranking.scores, atol=0.2)  # draws discount what is fitted to noise
    np.testing.assert_allclose(ranking.uncertainty.std_error**2, mean * (1 - mean), atol=0.02)


def test_random_grades_are_not_ordered():
    rng = np.random.default_rng(7)
    item, who = np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    grades = rng.integers(5, size=120)
    ratings = Ratings.of([f"i{n:02d}" for n in item], grades, annotator=[f"w{k}" for k in who])
    draws = DawidSkene().fit(ratings).uncertainty.draws
    first, second = np.triu_indices(20, 1)
    above = np.mean(draws[:, first] > draws[:, second], axis=0)
    assert np.mean((above > 0.95) | (above < 0.05) & (np.mean(draws[:, first] < draws[:, second], axis=0) > 0.95)) < 0.1


def test_grades_without_annotators_count_as_one_annotator():
    ranking = DawidSkene().fit(Ratings.of(["a", "a", "b", "b", "c"], [2, 2, 1, 0, 0]))
    assert ranking.table(uncertainty=False)["item"].to_list() == ["a", "b", "c"]
    assert not ranking.has_annotators


@pytest.mark.parametrize("name", ["annotator_prior_count", "query_prior_count"])
def test_invalid_settings_are_refused(name):
    with pytest.raises(SettingError, match=rf"{name} must be positive, got 0\.0"):
        DawidSkene(**{name: 0.0})
