"""Rankings without some annotators."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons
from crowdrank.errors import DataError, UnknownNameError
from crowdrank.evaluation import remove_annotators
from crowdrank.simulation import mixed_crowd

VOTES = mixed_crowd(items=8, kinds={"good": 5, "reversed": 2}, votes_each=25, seed=1).judgments


def test_the_ranking_without_is_that_of_the_rest():
    names = [str(name) for name in VOTES.annotators[:2]]
    changes = remove_annotators(BradleyTerry(), VOTES, names)
    rest = VOTES.take(np.flatnonzero(VOTES.annotator >= 2))
    np.testing.assert_allclose(changes.after.scores, BradleyTerry().fit(rest).scores)
    assert changes.n_judgments == len(VOTES) - len(rest)


def test_moved_is_the_rank_before_minus_the_rank_after():
    changes = remove_annotators(BradleyTerry(), VOTES, [str(VOTES.annotators[0])])
    frame = changes.frame()
    assert (frame["rank"] - frame["rank_without"]).to_list() == frame["moved"].to_list()
    assert changes.n_moved == (frame["moved"] != 0).sum()
    assert frame["rank"].to_list() == sorted(frame["rank"].to_list())


def test_an_item_that_only_they_judged_has_no_rank_any_more():
    votes = Comparisons.of(["a", "a"], ["b", "c"], ["a", "a"], annotator=["ann", "bob"])
    changes = remove_annotators(BradleyTerry(), votes, ["bob"])
    assert changes.frame().filter(item="c")["rank_without"].to_list() == [None]


def test_invalid_annotators_are_refused():
    with pytest.raises(UnknownNameError, match="annotator"):
        remove_annotators(BradleyTerry(), VOTES, ["nobody"])
    with pytest.raises(DataError, match="leave out all annotators"):
        remove_annotators(BradleyTerry(), VOTES, [str(name) for name in VOTES.annotators])
    with pytest.raises(DataError, match="do not name them"):
        remove_annotators(BradleyTerry(), Comparisons.of(["a"], ["b"], ["a"]), ["ann"])
