"""The layout of judgments: perceived utilities by item and annotator, and their adjacency."""

import numpy as np

from crowdrank.models.thurstonian.layout import build_layout

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


def layout_from_comparisons(rows):
    return build_layout(*np.array(rows, np.int32).reshape(-1, 3).T, STARTS)


def test_utilities_and_judgments_refer_to_each_other():
    layout = layout_from_comparisons(ROWS)
    rows = zip(layout.winner_item, layout.loser_item, layout.annotator, strict=True)
    assert sorted(rows) == sorted(ROWS)
    np.testing.assert_array_equal(layout.winner_item, layout.utility_item[layout.winner_utility])
    np.testing.assert_array_equal(layout.loser_item, layout.utility_item[layout.loser_utility])
    np.testing.assert_array_equal(layout.judgment_starts, [0, 6, 6, 11])
    np.testing.assert_array_equal(layout.utility_annotator[layout.winner_utility], layout.annotator)
    np.testing.assert_array_equal(layout.utility_annotator[layout.loser_utility], layout.annotator)
    for utility in range(len(layout.utility_item)):
        assert (
            layout.utility_starts[layout.utility_item[utility]]
            <= utility
            < layout.utility_starts[layout.utility_item[utility] + 1]
        )
        for edge in range(layout.edge_starts[utility], layout.edge_starts[utility + 1]):
            row, won = layout.edge_judgment[edge], layout.edge_sign[edge] > 0
            ours, theirs = (
                (layout.winner_utility, layout.loser_utility) if won else (layout.loser_utility, layout.winner_utility)
            )
            assert (ours[row], theirs[row]) == (utility, layout.edge_opponent[edge])
    assert len(layout.edge_judgment) == 2 * len(ROWS)


def test_an_annotator_has_one_perceived_utility_per_item():
    layout = layout_from_comparisons(ROWS)
    assert len({*zip(layout.utility_item, layout.utility_annotator, strict=True)}) == len(layout.utility_item) == 12


def test_the_order_of_judgments_does_not_matter():
    for one, other in zip(layout_from_comparisons(ROWS), layout_from_comparisons(ROWS[::-1]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_empty_layout_is_valid():
    layout = layout_from_comparisons([])
    assert len(layout.winner_utility) == len(layout.utility_item) == 0
    np.testing.assert_array_equal(layout.judgment_starts, [0, 0, 0, 0])
