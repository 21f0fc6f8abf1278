"""The layout of judgments: sights threaded by item, annotator and judgment."""

import numpy as np

from crowdrank.models.thurstonian.layout import sights_of

STARTS = np.array([0, 3, 3, 6])
ROWS = [
    (0, 1, 0),
    (1, 2, 0),
    (0, 2, 0),
    (0, 1, 1),
    (2, 1, 1),
    (0, 1, 0),
    (3, 4, 0),
    (5, 4, 0),
    (4, 3, 1),
    (4, 5, 1),
    (3, 5, 1),
]


def laid_out(rows):
    return sights_of(*np.array(rows, np.int32).reshape(-1, 3).T, STARTS)


def test_sights_are_threaded_by_item_annotator_and_judgment():
    sights = laid_out(ROWS)
    rows = zip(sights.above, sights.below, sights.annotator, strict=True)
    assert sorted(rows) == sorted(ROWS)
    np.testing.assert_array_equal(sights.above, sights.item[sights.winner])
    np.testing.assert_array_equal(sights.below, sights.item[sights.loser])
    np.testing.assert_array_equal(sights.judgment_starts, [0, 6, 6, 11])
    np.testing.assert_array_equal(sights.annotator_of_sight[sights.winner], sights.annotator)
    np.testing.assert_array_equal(sights.annotator_of_sight[sights.loser], sights.annotator)
    for sight in range(len(sights.item)):
        assert sights.sight_starts[sights.item[sight]] <= sight < sights.sight_starts[sights.item[sight] + 1]
        for touch in range(sights.touch_starts[sight], sights.touch_starts[sight + 1]):
            row, won = sights.touch_row[touch], sights.touch_sign[touch] > 0
            ours, theirs = (sights.winner, sights.loser) if won else (sights.loser, sights.winner)
            assert (ours[row], theirs[row]) == (sight, sights.touch_other[touch])
    assert len(sights.touch_row) == 2 * len(ROWS)


def test_an_annotator_has_one_sight_of_an_item():
    sights = laid_out(ROWS)
    assert len({*zip(sights.item, sights.annotator_of_sight, strict=True)}) == len(sights.item) == 12


def test_the_order_of_judgments_is_forgotten():
    for one, other in zip(laid_out(ROWS), laid_out(ROWS[::-1]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_judgments_are_laid_out_too():
    sights = laid_out([])
    assert len(sights.winner) == len(sights.item) == 0
    np.testing.assert_array_equal(sights.judgment_starts, [0, 0, 0, 0])
