"""The bootstrap: uncertainty by resampling annotators, or judgments if annotators are few or unknown.

Models that ignore annotators see only pair counts, so replicates resample counts, not rows: with C the counts of each
annotator and W the number of times that each replicate drew each annotator, W·C holds all replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments, PairCounts, SideInformation
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError, DataWarning, DisconnectedError, SeparationError, muted_warnings
from crowdrank.models.base import Model, model_settings
from crowdrank.results import Ranking, Uncertainty

# With fewer annotators than this, judgments are resampled instead.
FEWEST_ANNOTATORS = 10
REPLICATES = 200
_CELLS_AT_ONCE = 20_000_000


def bootstrap_counts(
    comparisons: Comparisons, score: Callable[[PairCounts], FloatArray], *, seed: int, replicates: int = REPLICATES
) -> Uncertainty:
    """Bootstrap a model that reads pair counts: refit on resampled counts."""
    rng = np.random.default_rng(seed)
    counts = comparisons.counts
    draws = [
        score(counts.with_counts(table[:, 0], table[:, 2], table[:, 1]))
        for tables in _resampled(comparisons, rng, replicates)
        for table in tables.reshape(len(tables), -1, 3)
    ]
    return _uncertainty(comparisons, np.array(draws))


def bootstrap(
    judgments: Any, refit: Callable[[Any], FloatArray], *, seed: int, replicates: int = REPLICATES
) -> Uncertainty:
    """Bootstrap any model: refit on reweighted judgments."""
    return bootstrap_weights(
        judgments, lambda weights: refit(judgments.reweighted(weights)), seed=seed, replicates=replicates
    )


def bootstrap_weights(
    judgments: Any, refit: Callable[[FloatArray], FloatArray], *, seed: int, replicates: int = REPLICATES
) -> Uncertainty:
    """Bootstrap by a function of the resampled weights of the judgments."""
    rng = np.random.default_rng(seed)
    unit = judgments.annotator if by_annotator(judgments) else np.arange(len(judgments))
    units = int(unit.max()) + 1
    draws = []
    for _ in range(replicates):
        times = np.bincount(rng.integers(units, size=units), minlength=units).astype(np.float64)
        draws.append(refit(judgments.weights * times[unit]))
    return _uncertainty(judgments, np.array(draws))


def with_bootstrap(
    model: Model,
    judgments: Judgments,
    ranking: Ranking,
    *,
    side_information: SideInformation | None = None,
    replicates: int = REPLICATES,
) -> Ranking:
    """Return the ranking with its uncertainty from the bootstrap.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    judgments : Comparisons, Ratings or Rankings
        The judgments that it was fitted to.
    ranking : Ranking
        The fitted ranking.
    side_information : SideInformation, optional
        Given to every refit.
    replicates : int, default 200
        Number of resamples.

    Returns
    -------
    Ranking
        The same scores. A resample that orders no two items counts as a tie of all.
    """

    def refit(again: Any) -> FloatArray:
        # a resample may be disconnected by chance, which says nothing about the data
        with muted_warnings(DataWarning):
            try:
                found: FloatArray = model.fit(again, side_information=side_information).scores
            except (DisconnectedError, SeparationError) as error:
                raise DataError(
                    "A resample of these judgments has no finite scores: the bootstrap needs a prior, set prior_scale."
                ) from error
            except DataError:
                # it orders no two items; skipping it would understate the uncertainty of few judgments
                return ranking.scores - ranking.items.centre(ranking.scores)
        return found

    seed = int(model_settings(model).get("seed", 0))
    return ranking.with_parts(uncertainty=lambda: bootstrap(judgments, refit, seed=seed, replicates=replicates))


def by_annotator(judgments: Judgments) -> bool:
    return judgments.annotator is not None and len(judgments.annotators) >= FEWEST_ANNOTATORS


def _uncertainty(judgments: Judgments, draws: FloatArray) -> Uncertainty:
    what = f"{len(judgments.annotators)} annotators" if by_annotator(judgments) else f"{len(judgments)} judgments"
    return Uncertainty(draws, draws.std(axis=0, ddof=1), f"bootstrap over {what}")


def _resampled(comparisons: Comparisons, rng: np.random.Generator, replicates: int) -> Iterator[FloatArray]:
    """Batches of replicated counts: rows are replicates, columns (pair, first won | tied | second won) flattened."""
    counts = comparisons.counts
    columns = 3 * len(counts)
    batch = max(1, min(replicates, _CELLS_AT_ONCE // columns))
    table = _counts_of_units(comparisons)
    for begin in range(0, replicates, batch):
        size = min(batch, replicates - begin)
        if table is None:  # units are judgments of equal weight
            cells = _as_rows(counts).ravel()
            total = round(float(cells.sum()))
            drawn = rng.multinomial(total, cells / cells.sum(), size).astype(np.float64)
        else:
            units = table.shape[0]
            drawn = np.asarray(rng.multinomial(units, np.full(units, 1.0 / units), size) @ table)
        yield drawn


def _as_rows(counts: PairCounts) -> FloatArray:
    return np.stack((counts.first_wins, counts.ties, counts.second_wins), axis=1)


def _counts_of_units(comparisons: Comparisons) -> Any:
    """Counts of each unit as a sparse row; None if the units are judgments of equal weight."""
    annotated = by_annotator(comparisons)
    if not annotated and comparisons.weight is None:
        return None
    from scipy.sparse import coo_array

    counts, size = comparisons.counts, len(comparisons.items)
    known = pair_cells(size, counts.first, counts.second)
    pair = np.searchsorted(known, pair_cells(size, comparisons.left, comparisons.right))
    towards_first = np.where(comparisons.left < comparisons.right, comparisons.outcome, -comparisons.outcome)
    column = pair * 3 + 1 - towards_first
    unit = comparisons.annotator if annotated else np.arange(len(comparisons))
    units = len(comparisons.annotators) if annotated else len(comparisons)
    return coo_array((comparisons.weights, (unit, column)), shape=(units, 3 * len(counts))).tocsr()
