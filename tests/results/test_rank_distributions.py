"""Rank distributions as a result: by item, by query, as a frame."""

import numpy as np
import pytest

from crowdrank.data import Ratings
from crowdrank.errors import CrowdrankError
from crowdrank.results.parts import RankDistributions

ITEMS = Ratings.of(["a", "b", "c"], [1, 2, 3], query=["x", "x", "y"]).items
FOUND = RankDistributions(ITEMS, [np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([[1.0]])])


def test_an_item_is_found_in_its_query():
    assert FOUND.of("b", "x").tolist() == [0.25, 0.75]
    assert FOUND.of("c", "y").tolist() == [1.0]


@pytest.mark.parametrize("asked", [("a", None), ("a", "y"), ("a", "z")])
def test_what_is_not_there_is_refused(asked):
    with pytest.raises(CrowdrankError):
        FOUND.of(*asked)


def test_the_frame_has_a_row_for_every_item_and_rank():
    assert FOUND.frame("x").rows() == [("a", 1, 0.75), ("a", 2, 0.25), ("b", 1, 0.25), ("b", 2, 0.75)]
