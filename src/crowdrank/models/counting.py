"""What models computed outright from pair counts share: a scoring rule, and a bootstrap around it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from crowdrank.judgments import Comparisons, Items, PairCounts
from crowdrank.models.bootstrap import bootstrap_counts
from crowdrank.models.conclude import conclude
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]


def fit_order(
    model: object,
    comparisons: Comparisons,
    order: Callable[[PairCounts, Items, npt.NDArray[np.int64]], Vector],
    seed: int,
) -> Ranking:
    """For models that must put one of two equals first: by label in the answer, by lot in each resample.

    Broken by label every time, a tie would look like certainty.
    """
    items, rng = comparisons.items, np.random.default_rng(seed)
    return fit_counts(
        model, comparisons, lambda counts: order(counts, items, np.arange(len(items))), seed=seed,
        again=lambda counts: order(counts, items, rng.permutation(len(items))),
    )  # fmt: skip


def fit_counts(
    model: object,
    comparisons: Comparisons,
    score: Callable[[PairCounts], Vector],
    *,
    seed: int,
    centred: bool = True,
    again: Callable[[PairCounts], Vector] | None = None,
) -> Ranking:
    """Score the counts, and be ready to score resampled ones (`again`, where that is to be done otherwise)."""
    items = comparisons.items

    def scaled(counts: PairCounts) -> Vector:
        found = (again or score)(counts)
        return items.centre(found) if centred else found

    return conclude(
        model, comparisons, score(comparisons.counts), centred=centred,
        measure=lambda: bootstrap_counts(comparisons, scaled, seed=seed),
    )  # fmt: skip
