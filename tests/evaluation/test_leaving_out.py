"""Rankings without some annotators."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons
from crowdrank.errors import DataError, UnknownNameError
from crowdrank.evaluation import leave_out
from crowdrank.simulation import mixed_crowd

VOTES = mixed_crowd(items=8, kinds={"good": 5, "reversed": 2}, votes_each=25, seed=1).judgments


def test_the_ranking_without_is_that_of_the_rest():
    names = [str(name) for name in VOTES.annotators[:2]]
    moves = leave_out(BradleyTerry(), VOTES, names)
    rest = VOTES.take(np.flatnonzero(VOTES.annotator >= 2))
    np.testing.assert_allclose(moves.after.scores, BradleyTerry().fit(rest).scores)
    assert moves.judgments == len(VOTES) - len(rest)


def test_places_moved_are_ranks_before_less_after():
    moves = leave_out(BradleyTerry(), VOTES, [str(VOTES.annotators[0])])
    frame = moves.frame()
    assert (frame["rank"] - frame["rank_without"]).to_list() == frame["moved"].to_list()
    assert moves.moved == (frame["moved"] != 0).sum()
    assert frame["rank"].to_list() == sorted(frame["rank"].to_list())


def test_an_item_that_only_they_judged_has_no_rank_any_more():
    votes = Comparisons.of(["a", "a"], ["b", "c"], ["a", "a"], annotator=["ann", "bob"])
    moves = leave_out(BradleyTerry(), votes, ["bob"])
    assert moves.frame().filter(item="c")["rank_without"].to_list() == [None]


def test_mistakes_are_told():
    with pytest.raises(UnknownNameError, match="annotator"):
        leave_out(BradleyTerry(), VOTES, ["nobody"])
    with pytest.raises(DataError, match="nobody left"):
        leave_out(BradleyTerry(), VOTES, [str(name) for name in VOTES.annotators])
    with pytest.raises(DataError, match="do not say who"):
        leave_out(BradleyTerry(), Comparisons.of(["a"], ["b"], ["a"]), ["ann"])
