"""Gold pairs after the fit: models of grades and lists, which know no gold, are conditioned on it."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.errors import SettingError
from crowdrank.models.gold import condition_on_gold
from crowdrank.simulation import list_crowd, rating_crowd


def pairs_of(crowd, count, seed=0):
    """Gold pairs drawn at random, and the codes of all other pairs, better item first."""
    items, truth = crowd.judgments.items, np.asarray(crowd.truth)
    found = [
        (a, b) if truth[a] > truth[b] else (b, a)
        for query in range(len(items.queries))
        for a in range(items.starts[query], items.starts[query + 1])
        for b in range(a + 1, items.starts[query + 1])
    ]
    order = np.random.default_rng(seed).permutation(len(found))
    codes = np.array(found)[order]
    better, worse = codes[:count].T
    query = items.queries[items.query[better]] if items.has_queries else None
    gold = cr.Comparisons.of(items.labels[better], items.labels[worse], items.labels[better], query=query)
    return gold, codes[:count], codes[count:]


def right(ranking, pairs):
    return float(np.mean(ranking.scores[pairs[:, 0]] > ranking.scores[pairs[:, 1]]))


def test_gold_does_not_cost_accuracy_in_an_ordinary_crowd_that_grades():
    gain = []
    for seed in range(4):
        crowd = rating_crowd(items=20, annotators=8, grades_each=10, noise=0.6, seed=seed)
        gold, known, others = pairs_of(crowd, 15)
        plain = cr.rank(crowd.judgments, uncertainty="none")
        ranking = cr.rank(crowd.judgments, gold_pairs=gold, uncertainty="none", model="graded-response")
        gain.append(right(ranking, others) - right(plain, others))
        assert right(ranking, known) > 0.9
    assert np.mean(gain) > 0.0


def test_lists_are_conditioned_on_gold_too():
    crowd = list_crowd(queries=4, items=8, annotators=5, expertise="uniform(-0.5,-0.1)", first_expertise=None, seed=3)
    gold, known, others = pairs_of(crowd, 12)
    plain = cr.rank(crowd.judgments, model="crowd-plackett-luce")
    ranking = cr.rank(crowd.judgments, model="crowd-plackett-luce", gold_pairs=gold)
    assert right(ranking, known) >= right(plain, known)
    assert right(ranking, others) > right(plain, others) - 0.05
    assert ranking.uncertainty.std_error.mean() < plain.uncertainty.std_error.mean()
    assert ranking.uncertainty.method.endswith("given the gold pairs")


def test_gold_that_agrees_moves_little_and_gold_that_does_not_moves_its_pair():
    rng = np.random.default_rng(0)
    grades = np.clip(np.round(3 + np.linspace(-1.5, 1.5, 8) + rng.normal(0, 0.8, (6, 8))), 1, 5)
    ratings = cr.Ratings.of(
        [f"i{n}" for n in range(8)] * 6, grades.ravel().tolist(), annotator=np.repeat(list("abcdef"), 8).tolist()
    )
    plain = cr.rank(ratings)
    spread = plain.uncertainty.std_error.mean()
    agreeing = condition_on_gold(plain, np.array([7]), np.array([0]))
    assert np.abs(agreeing.scores - plain.scores).max() < 0.2 * spread
    low, high = sorted((3, 4), key=lambda n: plain.scores[n])
    against = condition_on_gold(plain, np.array([low]), np.array([high]))
    assert against.scores[low] > against.scores[high]
    far = np.array([0, 7])
    assert np.abs(against.scores[far] - plain.scores[far]).max() < 0.5 * spread


def test_a_crowd_that_grades_in_reverse_is_turned_by_gold():
    crowd = rating_crowd(items=15, annotators=6, grades_each=12, seed=1, quality="0.9")
    votes = crowd.judgments
    reverse = cr.Ratings.of(votes.items.labels[votes.item], -votes.grade, annotator=votes.annotators[votes.annotator])
    gold, _, others = pairs_of(crowd, 8)
    plain = cr.Comparisons.of(gold.items.labels[gold.left], gold.items.labels[gold.right], gold.items.labels[gold.left])
    assert right(cr.rank(reverse, model="graded-response"), others) < 0.3
    ranking = cr.rank(reverse, gold_pairs=plain, model="graded-response")
    assert right(ranking, others) > 0.8
    assert "order was reversed" in ranking.notes[0]
    assert ranking.annotators.to_polars()["quality"].mean() < 0.5


@pytest.mark.parametrize("more", [{"annotator_quality": {"a": 0.9}}, {"gold_pairs": "agreed"}])
def test_other_side_information_is_still_refused(more):
    ratings = cr.Ratings.of(list("xyz") * 2, [1, 2, 3, 2, 2, 3], annotator=list("aaabbb"))
    with pytest.raises(SettingError, match="need comparisons"):
        cr.rank(ratings, model="graded-response", **more)
