"""The bootstrap: uncertainty by resampling annotators, or judgments if annotators are few or unknown.

Models that ignore annotators see only pair counts, so replicates resample counts, not rows: with C the counts of each
annotator and W the number of times that each replicate drew each annotator, W·C holds all replicates.

Replicates scatter around the estimate, which itself scatters around the truth: coin tosses would look like an order.
`shrunken_draws` turns replicates into draws of the posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items, Judgments, PairCounts, SideInformation
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError, DataWarning, DisconnectedError, SeparationError, muted_warnings
from crowdrank.inference.laplace import allocate
from crowdrank.models.base import Model, model_settings
from crowdrank.results import Ranking, Uncertainty

# With fewer annotators than this, judgments are resampled instead.
FEWEST_ANNOTATORS = 10
REPLICATES = 200
# Where refits are slow there are fewer: standard errors from 50 replicates are within a tenth of those from many.
_FEWEST_REPLICATES = 50
_MOST_OPERATIONS = 2e10
_CELLS_AT_ONCE = 20_000_000
# Up to this many items the errors are correlated; beyond it, they are taken as independent.
_LARGEST_MATRIX = 500
_MIN_DRAWS = 200
_SPREADS = 41
# Prior of v/(v + τ²): Beta(1, a/2), which leans to small spreads, and a small probability that all items are alike.
_LEAN, _ALIKE = 0.7, 0.025
# The variance of an item's error is pooled as if this many judgments had been seen of the typical item.
_POOLED_JUDGMENTS = 20.0


def affordable_replicates(operations: float) -> int:
    """Number of replicates of a refit that takes this many floating-point operations, roughly.

    It depends on the size of the data and never on time, so results are the same on every machine.
    """
    return int(np.clip(_MOST_OPERATIONS / max(operations, 1.0), _FEWEST_REPLICATES, REPLICATES))


def bootstrap_counts(
    comparisons: Comparisons, score: Callable[[PairCounts], FloatArray], *, seed: int, replicates: int = REPLICATES
) -> Uncertainty:
    """Bootstrap a model that reads pair counts: refit on resampled counts."""
    found = count_replicates(comparisons, score, seed, replicates)
    return _uncertainty(comparisons, score(comparisons.counts), found, seed)


def count_replicates(
    comparisons: Comparisons, score: Callable[[PairCounts], FloatArray], seed: int, replicates: int
) -> FloatArray:
    """Scores of resampled counts, one replicate per row."""
    counts = comparisons.counts
    found = [
        score(counts.with_counts(table[:, 0], table[:, 2], table[:, 1]))
        for tables in _resampled(comparisons, np.random.default_rng(seed), replicates)
        for table in tables.reshape(len(tables), -1, 3)
    ]
    return np.array(found)


def bootstrap(
    judgments: Any,
    refit: Callable[[Any], FloatArray],
    *,
    seed: int,
    replicates: int = REPLICATES,
    clusters: IntArray | None = None,
) -> Uncertainty:
    """Bootstrap any model: refit on reweighted judgments, which are resampled by `clusters` if given."""

    def refit_weights(weights: FloatArray) -> FloatArray:
        return refit(judgments.reweighted(weights))

    if clusters is None:
        return bootstrap_weights(judgments, refit_weights, seed=seed, replicates=replicates)
    found, units = weight_replicates(judgments, refit_weights, seed, replicates, clusters), int(clusters.max()) + 1
    method = f"bootstrap over {units:,} clusters"
    return posterior(judgments, refit_weights(judgments.weights), found, units, method, seed)


def bootstrap_weights(
    judgments: Any, refit: Callable[[FloatArray], FloatArray], *, seed: int, replicates: int = REPLICATES
) -> Uncertainty:
    """Bootstrap by a function of the resampled weights of the judgments."""
    found = weight_replicates(judgments, refit, seed, replicates)
    return _uncertainty(judgments, refit(judgments.weights), found, seed)


def weight_replicates(
    judgments: Any,
    refit: Callable[[FloatArray], FloatArray],
    seed: int,
    replicates: int,
    clusters: IntArray | None = None,
) -> FloatArray:
    """Scores of resampled weights, one replicate per row. Units are clusters, annotators or judgments."""
    rng = np.random.default_rng(seed)
    unit = judgments.annotator if by_annotator(judgments) else np.arange(len(judgments))
    unit = unit if clusters is None else clusters
    units = int(unit.max()) + 1
    found = []
    for _ in range(replicates):
        times = np.bincount(rng.integers(units, size=units), minlength=units).astype(np.float64)
        found.append(refit(judgments.weights * times[unit]))
    return np.array(found)


def with_bootstrap(
    model: Model,
    judgments: Judgments,
    ranking: Ranking,
    *,
    side_information: SideInformation | None = None,
    replicates: int = REPLICATES,
    clusters: IntArray | None = None,
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
    clusters : array of int, optional
        The cluster of each judgment, counted from 0: whole clusters are drawn, in place of annotators or judgments.

    Returns
    -------
    Ranking
        The same scores. A resample that orders no two items counts as a tie of all. Refits of crowd-bt
        use the spread and the distribution of quality that were learnt from all judgments.
    """
    refitted = model.with_estimated_settings(ranking)

    def refit(again: Any) -> FloatArray:
        # a resample may be disconnected by chance, which says nothing about the data
        with muted_warnings(DataWarning):
            try:
                found: FloatArray = refitted.fit(again, side_information=side_information).scores
            except (DisconnectedError, SeparationError) as error:
                raise DataError(
                    "A resample of these judgments has no finite scores: the bootstrap needs a prior, set prior_scale."
                ) from error
            except DataError:
                # it orders no two items; skipping it would understate the uncertainty of few judgments
                return ranking.scores - ranking.items.centre(ranking.scores)
        return found

    seed = int(model_settings(model).get("seed", 0))
    return ranking.with_parts(
        uncertainty=lambda: bootstrap(judgments, refit, seed=seed, replicates=replicates, clusters=clusters)
    )


def by_annotator(judgments: Judgments) -> bool:
    return judgments.annotator is not None and len(judgments.annotators) >= FEWEST_ANNOTATORS


def _uncertainty(judgments: Judgments, estimate: FloatArray, replicates: FloatArray, seed: int) -> Uncertainty:
    annotated = by_annotator(judgments)
    units = len(judgments.annotators) if annotated else len(judgments)
    fewer = f", {len(replicates)} resamples" if len(replicates) < REPLICATES else ""
    what = f"bootstrap over {units} {'annotators' if annotated else 'judgments'}{fewer}"
    return posterior(judgments, estimate, replicates, units, what, seed)


def posterior(
    judgments: Judgments, estimate: FloatArray, replicates: FloatArray, units: int, method: str, seed: int
) -> Uncertainty:
    """Uncertainty from bootstrap replicates: their standard deviation, and draws of the posterior.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments that were resampled.
    estimate : array of float
        Scores of the judgments themselves, for the mean of each query.
    replicates : array of float, replicates × items
        Scores of each resample.
    units : int
        Number of units (annotators or judgments) that were drawn from.
    method : str
        How the replicates were made.
    seed : int
        Seed of the draws.
    """
    items = judgments.items
    draws = shrunken_draws(replicates, items, judgments.n_judgments_per_item, units, seed)
    draws += estimate - items.centre(estimate)
    return Uncertainty(draws, replicates.std(axis=0, ddof=1), method, sampled=True)


def shrunken_draws(replicates: FloatArray, items: Items, n_judgments: IntArray, units: int, seed: int) -> FloatArray:
    """Draws of the true scores, centred in each query, given bootstrap replicates of their estimates.

    The mean m of the replicates has error covariance V, their regularised covariance, and the true scores have the
    prior N(0, τ²): empirical Bayes in closed form. τ is integrated out. Its prior is one on the share v/(v + τ²), with
    v the mean error variance (Daniels 1999), so the unit of the scores does not matter.
    """
    centred = items.centre(replicates)
    mean, rng = centred.mean(axis=0), np.random.default_rng([seed, 1])
    size = len(mean)
    # Few units: their variance is too small by (K − 1)/K, and itself uncertain, as in Student's distribution.
    inflation = max(units, 4) / max(units - 3, 1)
    variance = inflation * _pooled_variance(centred.var(axis=0, ddof=1), mean, n_judgments, units)
    if not variance.any():  # every resample ties all items
        return np.zeros((_MIN_DRAWS, size))
    if size <= _LARGEST_MATRIX:
        correlation = _shrunk_correlation(centred, units)
        scale = np.sqrt(variance)
        covariance = _centred_both_ways(correlation * scale[:, None] * scale, items)
        # Errors of centred scores sum to zero: the null space gets no variance, and no evidence.
        noise, axes = np.linalg.eigh(_without_scale_error(covariance, mean))
        kept = noise > 1e-9 * noise[-1]
        noise, axes = noise[kept], axes[:, kept]
    else:
        noise, axes = variance, None
    observed = mean if axes is None else mean @ axes
    ratios, weights = _spread_weights(observed, noise)
    drawn = []
    for ratio, count in zip(ratios, allocate(weights, int(np.clip(4_000_000 // size, 200, 1000))), strict=True):
        kept_share = ratio * noise.mean() / (ratio * noise.mean() + noise)
        around = rng.standard_normal((count, len(noise))) * np.sqrt(kept_share * noise)
        drawn.append(kept_share * observed + around)
    found = np.concatenate(drawn)
    return np.asarray(items.centre(found if axes is None else found @ axes.T))


def _spread_weights(observed: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values of r = τ²/v, and their posterior probabilities."""
    half_log, step = np.linspace(np.log(0.03), np.log(100.0), _SPREADS, retstep=True)
    ratio = np.exp(2 * half_log)
    prior = _LEAN / 2 * np.log(ratio / (1 + ratio)) - np.log1p(ratio) + np.log(step * _LEAN)
    prior = np.log1p(-_ALIKE) + prior
    prior[0] = np.logaddexp(prior[0], np.log(_ALIKE))
    total = noise.mean() * ratio[:, None] + noise
    log_weight = prior - 0.5 * np.sum(np.log(total) + observed**2 / total, axis=1)
    weight = np.exp(log_weight - log_weight.max())
    return ratio, np.asarray(weight / weight.sum())


def _pooled_variance(variance: FloatArray, mean: FloatArray, n_judgments: IntArray, units: int) -> FloatArray:
    """Error variances, pooled with what the other items suggest for an item with as many judgments.

    An item that won all of its three comparisons does so in every replicate, yet is not certain. Variances fall with
    the number of judgments for mean scores, grow with it for sums, and do neither for ranks: what fits best is used.
    """
    counts = np.maximum(n_judgments, 1).astype(np.float64)
    positive = variance > 1e-12 * np.mean(mean**2)
    if not positive.any():  # unanimous judgments: as if each item had had one more for it and one more against it
        return np.asarray(np.mean(mean**2) / (counts + 2))
    ratios = [variance / counts**power for power in (-1, 0, 1)]
    spreads = [np.ptp(np.quantile(np.log(ratio[positive]), (0.25, 0.75))) for ratio in ratios]
    power = int(np.argmin(np.round(spreads, 9))) - 1
    typical = np.mean(variance[positive] / counts[positive] ** power) * counts**power
    own = np.minimum(counts, units)
    return np.asarray((own * variance + _POOLED_JUDGMENTS * typical) / (own + _POOLED_JUDGMENTS))


def _shrunk_correlation(centred: FloatArray, units: int) -> FloatArray:
    """Correlations of the replicates, shrunk towards zero by their sampling error (Schäfer & Strimmer 2005).

    Replicates of few units know few directions: the error is that of as many independent values as there are units.
    """
    deviation = centred.std(axis=0)
    scaled = np.divide(centred - centred.mean(axis=0), deviation, out=np.zeros_like(centred), where=deviation > 0)
    correlation = scaled.T @ scaled / len(scaled)
    off = correlation - np.diag(np.diag(correlation))
    error = np.sum((1 - off**2) ** 2) - len(off)
    total = float(np.sum(off**2))
    shrink = min(1.0, error / max(min(len(centred), units) - 1, 1) / total) if total else 1.0
    return np.asarray((1 - shrink) * off + np.eye(len(off)))


def _without_scale_error(covariance: FloatArray, mean: FloatArray) -> FloatArray:
    """The covariance with no more error along the mean than in other directions.

    Where annotators differ, resamples agree on the order but not on how far the items are apart. That error is along
    the mean; it changes the unit of the scores and not their order.
    """
    length = float(np.sqrt(mean @ mean))
    along = mean / length if length else mean
    error, typical = float(along @ covariance @ along), float(np.trace(covariance)) / max(len(mean) - 1, 1)
    if error <= typical:
        return covariance
    shrink = np.eye(len(mean)) - (1 - np.sqrt(typical / error)) * np.outer(along, along)
    return np.asarray(shrink @ covariance @ shrink)


def _centred_both_ways(matrix: FloatArray, items: Items) -> FloatArray:
    return items.centre(items.centre(matrix).T)


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
