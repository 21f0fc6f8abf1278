"""Disagreement between annotators."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import Comparisons
from crowdrank.errors import DataError
from crowdrank.evaluation import disagreement
from crowdrank.simulation import mixed_crowd


def test_shared_pairs_are_counted_whichever_way_round_they_were_shown():
    votes = Comparisons.of(
        ["a", "b", "b", "c", "a", "a"],
        ["b", "a", "c", "b", "c", "c"],
        ["a", "b", "b", "b", "a", "tie"],
        annotator=["ann", "bob", "ann", "bob", "ann", "bob"],
    )
    found = disagreement(votes)
    assert (found.shared[0, 1], found.opposite[0, 1]) == (2, 1)
    assert found.share[0, 1] == 0.5
    assert np.isnan(found.share[0, 0])


def test_repeated_answers_count_once_by_their_majority_or_not_at_all():
    votes = Comparisons.of(
        ["a"] * 6, ["b"] * 6, ["a", "a", "b", "b", "a", "b"], annotator=["ann", "ann", "ann", "bob", "cat", "cat"]
    )
    found = disagreement(votes)
    index = {str(name): n for n, name in enumerate(found.annotators)}
    assert found.opposite[index["ann"], index["bob"]] == found.shared[index["ann"], index["bob"]] == 1
    assert found.shared[index["cat"], index["bob"]] == 0


def test_reversed_annotators_disagree_significantly_and_good_ones_do_not():
    mixed = mixed_crowd(items=10, kinds={"good": 10, "reversed": 1}, votes_each=40, seed=2)
    reversed_one = mixed.judgments.annotators[mixed.annotators["kind"] == "reversed"][0]
    frame = disagreement(mixed.judgments).frame()
    sure = frame.filter(frame["p"] < 0.05)
    assert sure.height > 5
    assert all(reversed_one in pair for pair in sure.select("annotator", "other").iter_rows())
    good = mixed_crowd(items=10, kinds={"good": 10}, votes_each=40, seed=2).judgments
    assert disagreement(good).frame()["p"].min() > 0.05


def test_annotators_with_most_judgments_are_used():
    votes = mixed_crowd(items=10, kinds={"good": 10}, votes_each=30, seed=2).judgments
    kept = votes.take(np.flatnonzero((votes.annotator > 3) | (np.arange(len(votes)) % 3 == 0)))
    assert set(disagreement(kept, max_annotators=6).annotators) == set(votes.annotators[4:])


def test_judgments_without_annotators_are_refused():
    with pytest.raises(DataError, match="do not name them"):
        disagreement(Comparisons.of(["a"], ["b"], ["a"]))
