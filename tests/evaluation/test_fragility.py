"""Fragility of the first place: the sets found change it in a refit, and are as small as those of a greedy search."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons, Ratings, read
from crowdrank.errors import DataError, SettingError, muted_warnings
from crowdrank.evaluation import fragility

NAMES = np.array([f"m{n}" for n in range(5)])


def arena(seed: int, votes: int = 90, ties: float = 0.0) -> Comparisons:
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=len(NAMES))
    left = rng.integers(5, size=votes)
    right = (left + rng.integers(1, 5, size=votes)) % 5
    chance = 1 / (1 + np.exp(quality[right] - quality[left]))
    winner = np.where(rng.random(votes) < chance, NAMES[left], NAMES[right])
    winner = np.where(rng.random(votes) < ties, "tie", winner)
    return Comparisons.of(NAMES[left], NAMES[right], winner, annotator=[f"u{n}" for n in rng.integers(9, size=votes)])


def scores_without(votes: Comparisons, rows) -> np.ndarray:
    rest = np.setdiff1d(np.arange(len(votes)), rows)
    with muted_warnings():
        return BradleyTerry().fit(votes.take(rest)).scores


def greedy_size(votes: Comparisons) -> int:
    """Remove the vote whose removal narrows the lead over an item most, refit by refit; the best of three items."""
    start = scores_without(votes, [])
    first, best = int(np.argmax(start)), len(votes)
    for other in np.argsort(-start)[1:4]:
        removed: list[int] = []
        while len(removed) < best - 1:
            kept = np.setdiff1d(np.arange(len(votes)), removed)
            cells = {(int(votes.left[k]), int(votes.right[k]), int(votes.outcome[k])): int(k) for k in kept}
            leads = {}
            for k in cells.values():  # votes of one cell are the same
                scores = scores_without(votes, [*removed, k])
                leads[k] = scores[first] - scores[other]
            removed.append(min(leads, key=leads.get))
            if int(np.argmax(scores_without(votes, removed))) != first:
                best = len(removed)
                break
    return best


@pytest.mark.parametrize(("seed", "ties"), [(2, 0.0), (5, 0.2), (11, 0.0)])
def test_the_set_is_as_small_as_that_of_a_greedy_search(seed, ties):
    votes = arena(seed, ties=ties)
    found = fragility(votes, model="bradley-terry")
    assert found.successor is not None
    assert found.size <= max(1.1 * greedy_size(votes), 1)


@pytest.mark.parametrize("by", ["votes", "annotators"])
@pytest.mark.parametrize("seed", [0, 1, 5, 9])
def test_a_refit_without_the_set_has_another_first_item(seed, by):
    votes = arena(seed, votes=150)
    found = fragility(votes, by=by, model="bradley-terry")
    scores = scores_without(votes, found.rows)
    assert NAMES[int(np.argmax(scores))] == found.successor != found.item
    assert found.before > 0 > found.after
    assert found.removed["votes"].sum() == len(found.rows)
    if by == "annotators":
        removed = np.isin(votes.annotators[votes.annotator], found.annotators)
        np.testing.assert_array_equal(np.flatnonzero(removed), found.rows)


def test_one_vote_less_is_not_enough():
    votes = arena(1, votes=150)
    found = fragility(votes, model="bradley-terry")
    assert found.size > 1
    for kept in found.rows:
        rest = found.rows[found.rows != kept]
        assert NAMES[int(np.argmax(scores_without(votes, rest)))] == found.item


def test_annotator_models_and_queries():
    one, two = arena(2, votes=120), arena(3, votes=120)
    labels = [np.concatenate([v.to_frame()[c].to_numpy() for v in (one, two)]) for c in ("left", "right")]
    winner = np.concatenate([v.to_frame()["winner"].to_numpy() for v in (one, two)])
    who = np.concatenate([v.annotators[v.annotator] for v in (one, two)])
    both = Comparisons.of(*labels, winner, annotator=who, query=["x"] * 120 + ["y"] * 120)
    found = fragility(both, query="y", model="crowd-bt")
    assert found.query == "y"
    assert found.rows.min() >= 120
    assert found.n_judgments == 120
    with pytest.raises(SettingError, match="2 queries"):
        fragility(both)


def test_an_unassailable_first_place_is_admitted():
    votes = Comparisons.of(["a"] * 60 + ["b"], ["b"] * 60 + ["a"], ["a"] * 61, annotator=["u"] * 30 + ["v"] * 31)
    found = fragility(votes, by="annotators", model="bradley-terry")
    assert found.successor is None
    assert found.size == 0
    assert "No set of annotators" in found.sentence()
    assert found.as_dict()["after"] is None


def test_what_cannot_be_asked():
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])
    with pytest.raises(DataError, match="do not name annotators"):
        fragility(votes, by="annotators")
    with pytest.raises(SettingError, match="by must be"):
        fragility(votes, by="people")
    with pytest.raises(SettingError, match="cannot be explained"):
        fragility(votes, model="elo")


def test_ratings_are_converted():
    ratings = Ratings.of(["a", "b", "c"] * 3, [5, 3, 1, 4, 5, 2, 5, 4, 2], annotator=list("uuuvvvwww"))
    assert fragility(ratings, model="bradley-terry").item == "a"


@pytest.mark.data
def test_human_votes_of_an_arena(data_folder):
    import polars as pl

    path = data_folder / "arena27k_humans_llms" / "votes.csv.gz"
    humans = pl.read_csv(path).filter(pl.col("worker") == "human").drop("query", "worker")
    votes = read(humans)
    found = fragility(votes, model="bradley-terry")
    assert found.item == "gpt-4"
    assert found.size < 0.01 * len(votes)
    assert found.fits * 50 < len(votes)  # refitting without each vote needs as many fits as votes
    scores = scores_without(votes, found.rows)
    assert votes.items.labels[int(np.argmax(scores))] == found.successor
