"""Position bias: whether the side of the screen affects the answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.data import LEFT, RIGHT, Comparisons
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError

_MIN_EFFECTIVE_SIZE = 25.0
"""With less information from pairs shown in both orders than this, position bias is not reported."""


@dataclass(frozen=True)
class PositionBias:
    """Answers by side, and the preference for the left side within pairs that were shown in both orders.

    Parameters
    ----------
    left, ties, right : int
        Number of answers.
    pairs : int
        Number of different pairs.
    pairs_in_both_orders : int
        Number of pairs that were shown, and decided, in both orders.
    effective_size : float
        Σ n·m / (n + m) over those pairs, with n answers in one order and m in the other.
    left_share : float
        Fraction of answers "left" for equally good items: ½ without position bias, nan if unknown.

    Notes
    -----
    Each pair contributes the mean of its two fractions of "left". Whichever item is better is on the left in one order
    and on the right in the other, so the difference between the items cancels.
    """

    left: int
    ties: int
    right: int
    pairs: int
    pairs_in_both_orders: int
    effective_size: float
    left_share: float

    @property
    def is_identified(self) -> bool:
        """Whether enough pairs were shown in both orders to separate the side from the items."""
        return self.effective_size >= _MIN_EFFECTIVE_SIZE

    @property
    def std_error(self) -> float:
        """Upper bound of the standard error of `left_share`, reached if all pairs are even."""
        return 0.25 / np.sqrt(self.effective_size) if self.effective_size else np.nan


def position_bias(comparisons: Comparisons) -> PositionBias:
    """Estimate the preference for a side of the screen.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons with known sides.

    Examples
    --------
    >>> position_bias(Comparisons.of(["a", "b"] * 50, ["b", "a"] * 50, ["a", "b"] * 50)).left_share
    1.0
    """
    if not comparisons.sided:
        raise DataError("Position bias needs sides, but these judgments only name winner and loser.")
    outcome = comparisons.outcome
    cells, pair = np.unique(
        pair_cells(len(comparisons.items), comparisons.left, comparisons.right), return_inverse=True
    )
    decided = np.flatnonzero(outcome)
    swapped = (comparisons.left > comparisons.right)[decided]
    key = pair[decided] * 2 + swapped
    asked = np.bincount(key, minlength=2 * len(cells)).reshape(-1, 2).astype(np.float64)
    left_won = np.bincount(key, outcome[decided] > 0, 2 * len(cells)).reshape(-1, 2)
    both = np.flatnonzero(asked.min(axis=1) > 0)
    weight = asked[both].prod(axis=1) / asked[both].sum(axis=1)
    effective_size = float(weight.sum())
    share = (left_won[both] / asked[both]).mean(axis=1)
    return PositionBias(
        left=int(np.count_nonzero(outcome == LEFT)),
        ties=comparisons.ties,
        right=int(np.count_nonzero(outcome == RIGHT)),
        pairs=len(cells),
        pairs_in_both_orders=len(both),
        effective_size=effective_size,
        left_share=float(weight @ share) / effective_size if effective_size else np.nan,
    )
