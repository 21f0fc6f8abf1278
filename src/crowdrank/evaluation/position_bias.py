"""Whether the side of the screen decides: how often left was chosen, what the items themselves do set apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.data import LEFT, RIGHT, Comparisons
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError

_ENOUGH = 25.0
"""Judgments' worth of pairs shown both ways below which nothing is said."""


@dataclass(frozen=True)
class Sides:
    """Answers by side, each counted once; and the pull of left where both orders of a pair were shown."""

    left: int
    ties: int
    right: int
    pairs: int
    """Pairs that were shown at least once."""
    both_ways: int
    """… of which both orders were shown, and decided."""
    worth: float
    """Σ n·m / (n + m) over those pairs, n answers in one order and m in the other."""
    chosen: float
    """The share of left among items as good as each other: ½ where the side does not matter; nan if unknown."""

    @property
    def known(self) -> bool:
        """Whether enough pairs were shown both ways to set the side apart from the items."""
        return self.worth >= _ENOUGH

    @property
    def std_error(self) -> float:
        """At most: as if every pair were even."""
        return 0.25 / np.sqrt(self.worth) if self.worth else np.nan


def sides(comparisons: Comparisons) -> Sides:
    """The pull of a side is measured within pairs: a is left of b as it is right of b, so who is better cancels out.

    >>> sides(Comparisons.of(["a", "b"] * 50, ["b", "a"] * 50, ["a", "b"] * 50)).chosen
    1.0
    """
    if not comparisons.positions_known:
        raise DataError("There are no sides: the judgments name winner and loser only.")
    outcome = comparisons.outcome
    cells, pair = np.unique(
        pair_cells(len(comparisons.items), comparisons.left, comparisons.right), return_inverse=True
    )
    decided = np.flatnonzero(outcome)
    turned = (comparisons.left > comparisons.right)[decided]
    kind = pair[decided] * 2 + turned
    asked = np.bincount(kind, minlength=2 * len(cells)).reshape(-1, 2).astype(np.float64)
    won = np.bincount(kind, outcome[decided] > 0, 2 * len(cells)).reshape(-1, 2)
    both = np.flatnonzero(asked.min(axis=1) > 0)
    weight = asked[both].prod(axis=1) / asked[both].sum(axis=1)
    worth = float(weight.sum())
    share = (won[both] / asked[both]).mean(axis=1)
    return Sides(
        left=int(np.count_nonzero(outcome == LEFT)),
        ties=comparisons.ties,
        right=int(np.count_nonzero(outcome == RIGHT)),
        pairs=len(cells),
        both_ways=len(both),
        worth=worth,
        chosen=float(weight @ share) / worth if worth else np.nan,
    )
