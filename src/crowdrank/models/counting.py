"""What models computed outright from pair counts share: a scoring rule, and a bootstrap around it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from crowdrank.judgments import Comparisons, PairCounts
from crowdrank.models.bootstrap import bootstrap_counts
from crowdrank.models.conclude import conclude
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]


def fit_counts(
    model: object,
    comparisons: Comparisons,
    score: Callable[[PairCounts], Vector],
    *,
    seed: int,
    centred: bool = True,
) -> Ranking:
    """Score the counts, and be ready to score resampled ones."""
    items = comparisons.items

    def scaled(counts: PairCounts) -> Vector:
        return items.centre(score(counts)) if centred else score(counts)

    return conclude(
        model, comparisons, score(comparisons.counts), centred=centred,
        measure=lambda: bootstrap_counts(comparisons, scaled, seed=seed),
    )  # fmt: skip
