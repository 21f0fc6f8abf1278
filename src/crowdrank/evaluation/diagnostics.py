"""Diagnostics of judgments: calibration of predictions, disagreement between annotators, position bias."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import LEFT, RIGHT, TIE, Comparisons
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError, muted_warnings
from crowdrank.evaluation.cross_validation import require_predictions
from crowdrank.models.cross_validation import assign_folds
from crowdrank.results.parts import as_native
from crowdrank.results.ranks import benjamini_hochberg

_MIN_EFFECTIVE_SIZE = 25.0
"""With less information from pairs shown in both orders than this, position bias is not reported."""


def wilson_interval(count: npt.ArrayLike, total: npt.ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's (1927) interval of a proportion; 0 to 1 where the total is zero.

    >>> low, high = wilson_interval(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    n = np.asarray(total, np.float64)
    share = np.divide(count, n, out=np.full(n.shape, 0.5), where=n > 0)
    middle = (share * n + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * np.sqrt(n * share * (1 - share) + z * z / 4)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Predictions of decided judgments, one row each.

    Parameters
    ----------
    confidence : array of float
        Predicted probability of the more probable answer, at least one half.
    correct : array of float
        1 where that answer was given, 0 where the other was, ½ where both were equally probable.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    confidence: FloatArray
    correct: FloatArray
    native: str = "polars"

    def __repr__(self) -> str:
        return f"<Calibration on {len(self):,} judgments: {self.predicted:.3f} predicted, {self.observed:.3f} observed>"

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def predicted(self) -> float:
        """Mean confidence: the predicted fraction of correct predictions."""
        return float(np.mean(self.confidence))

    @property
    def observed(self) -> float:
        """Fraction of correct predictions."""
        return float(np.mean(self.correct))

    @property
    def std_error(self) -> float:
        """Standard error of `observed` if the probabilities are true."""
        return float(np.sqrt(np.sum(self.confidence * (1.0 - self.confidence))) / len(self))

    def to_polars(self, bins: int = 10) -> pl.DataFrame:
        """Return `frame` as a polars data frame."""
        n = np.minimum(((self.confidence - 0.5) * 2 * bins).astype(np.int64), bins - 1)
        count = np.bincount(n, minlength=bins)
        used = np.flatnonzero(count)
        correct, predicted = (np.bincount(n, column, bins)[used] for column in (self.correct, self.confidence))
        low, high = wilson_interval(correct, count[used])
        columns = {
            "from": 0.5 + used / (2 * bins),
            "to": 0.5 + (used + 1) / (2 * bins),
            "judgments": count[used],
            "predicted": predicted / count[used],
            "observed": correct / count[used],
            "low": low,
            "high": high,
        }
        return pl.DataFrame(columns)

    def frame(self, bins: int = 10) -> Any:
        """Return one row per bin of confidence: predicted and observed fractions, with 95 % intervals.

        Parameters
        ----------
        bins : int, default 10
            Number of bins between one half and one; empty bins are left out.
        """
        return as_native(self.to_polars(bins), self.native)


def calibration(
    model: Any, comparisons: Comparisons, *, folds: int = 3, max_folds: int = 0, seed: int = 0
) -> Calibration:
    """Predict each fold by the model fitted to the other folds.

    Parameters
    ----------
    model : Model
        A model with `predict`.
    comparisons : Comparisons
        The judgments.
    folds : int, default 3
        Number of folds.
    max_folds : int, default 0
        Maximum number of folds to predict, to save time; 0 for all.
    seed : int, default 0
        Seed of the folds.

    Returns
    -------
    Calibration
        The predictions with their outcomes.
    """
    require_predictions(model)
    fold = assign_folds(comparisons, folds, "judgment", np.random.default_rng(seed))
    found = [_predict(model, comparisons, fold == n) for n in range(max_folds or folds)]
    confidence, correct = (np.concatenate(columns) for columns in zip(*found, strict=True))
    if not len(confidence):
        raise DataError("Calibration needs decided judgments, but every judgment is a tie.")
    return Calibration(confidence, correct, comparisons.frame_backend)


def _predict(model: Any, comparisons: Comparisons, held_out: BoolArray) -> tuple[FloatArray, FloatArray]:
    with muted_warnings():
        ranking = model.fit(comparisons.take(np.flatnonzero(~held_out)))
    test = comparisons.take(np.flatnonzero(held_out & (comparisons.outcome != TIE)))
    probability = model.predict(ranking, test)
    left = probability[:, 0] / (probability[:, 0] + probability[:, 2])
    correct = (left > 0.5) == (test.outcome > 0)
    return np.maximum(left, 1.0 - left), np.where(left == 0.5, 0.5, correct)


@dataclass(frozen=True, eq=False, repr=False)
class Disagreement:
    """Disagreement of each two annotators, sorted by number of judgments.

    Parameters
    ----------
    annotators : array of str
        Labels, most judgments first.
    shared : array of int, annotators × annotators
        Number of pairs of items that both decided. Repeated answers of an annotator count once, by their majority.
    opposite : array of int, annotators × annotators
        Number of shared pairs on which the two chose different items.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    annotators: ObjectArray
    shared: IntArray
    opposite: IntArray
    native: str = "polars"

    def __repr__(self) -> str:
        return f"<Disagreement among {len(self.annotators):,} annotators>"

    @cached_property
    def share(self) -> FloatArray:
        """Fraction of shared pairs with opposite answers; nan without shared pairs and on the diagonal."""
        share: FloatArray = np.full(self.shared.shape, np.nan)
        np.divide(self.opposite, self.shared, out=share, where=self.shared > 0)
        np.fill_diagonal(share, np.nan)
        return share

    def frame(self, min_shared: int = 5) -> Any:
        """Return one row per two annotators, those who clearly disagree most first.

        Parameters
        ----------
        min_shared : int, default 5
            Smallest number of shared pairs.

        Notes
        -----
        `p` is the one-sided binomial p-value of disagreeing more often than not, adjusted for the number of rows.
        """
        return as_native(self.to_polars(min_shared), self.native)

    def to_polars(self, min_shared: int = 5) -> pl.DataFrame:
        """Return `frame` as a polars data frame."""
        from scipy.special import bdtrc

        first, second = np.nonzero(np.triu(self.shared >= min_shared, 1))
        shared, opposite = self.shared[first, second], self.opposite[first, second]
        low, high = wilson_interval(opposite, shared)
        columns = {
            "annotator": self.annotators[first].tolist(),
            "other": self.annotators[second].tolist(),
            "shared": shared,
            "opposite": opposite,
            "share": self.share[first, second],
            "low": low,
            "high": high,
            "p": benjamini_hochberg(np.where(opposite > 0, bdtrc(np.maximum(opposite - 1, 0), shared, 0.5), 1.0)),
        }
        frame = pl.DataFrame(columns, schema_overrides={"annotator": pl.String, "other": pl.String})
        return frame.sort("low", "share", "annotator", "other", descending=[True, True, False, False])


def disagreement(comparisons: Comparisons, max_annotators: int = 300) -> Disagreement:
    """Count shared pairs and opposite answers of each two annotators.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons with annotators.
    max_annotators : int, default 300
        Use at most this number of annotators, those with most judgments.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b", "b"], ["b", "b", "c", "c"], ["a", "b", "b", "b"],
    ...                        annotator=["ann", "bob", "ann", "bob"])
    >>> found = disagreement(votes)
    >>> found.shared[0, 1], found.opposite[0, 1]
    (np.int64(2), np.int64(1))
    """
    from scipy.sparse import coo_array

    if comparisons.annotator is None:
        raise DataError("Disagreement needs annotators, but these judgments do not name them.")
    n_judgments = np.bincount(comparisons.annotator, minlength=len(comparisons.annotators))
    chosen = np.argsort(-n_judgments, kind="stable")[:max_annotators]
    index = np.full(len(n_judgments), -1)
    index[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero((index[comparisons.annotator] >= 0) & (comparisons.outcome != 0))
    left, right = comparisons.left[rows], comparisons.right[rows]
    cells, cell = np.unique(pair_cells(len(comparisons.items), left, right), return_inverse=True)
    direction = np.where(left < right, comparisons.outcome[rows], -comparisons.outcome[rows]).astype(np.int64)
    where = (index[comparisons.annotator[rows]], cell)
    answers = coo_array((direction, where), shape=(len(chosen), len(cells))).tocsr()  # adds up repeated answers
    answers.data = np.sign(answers.data)
    shared, net = (abs(answers) @ abs(answers).T).toarray(), (answers @ answers.T).toarray()
    return Disagreement(comparisons.annotators[chosen], shared, (shared - net) // 2, comparisons.frame_backend)


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
    if not comparisons.positions_known:
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
