"""The protocols of ranking functions and rankers, and the linear ranker: ListMLE (Xia et al. 2008)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines import LOCAL, Engine, ShardedData
from crowdrank.engines.local import limit_blas_threads
from crowdrank.errors import SettingError
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists, log_likelihood


class Scorer(Protocol):
    """A trained ranking function."""

    def scores(self, features: FloatArray) -> FloatArray:
        """One score per row of features; larger is better within a query."""
        ...

    def state(self) -> dict[str, Any]:
        """The function as plain numbers, strings and lists, for saving; `kind` names its type."""
        ...


class Ranker(Protocol):
    """Trains a ranking function."""

    def fit(self, lists: RankedLists, features: FloatArray, starts: IntArray, init: Scorer | None = None) -> Scorer:
        """Train on lists of items.

        Parameters
        ----------
        lists : RankedLists
            Weighted lists, best first; items are rows of `features`. Items tied on the last place are unordered: a
            top-k list contains all items of its query.
        features : array of shape (items, features)
            Feature values.
        starts : array
            First row of each query, and the number of rows at the end.
        init : Scorer, optional
            Starting point, if it is a function of this kind.

        Returns
        -------
        Scorer
        """
        ...


# A column that varies by less than this fraction of its size is constant except for rounding.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """score = weights · (features − centre) / scale."""

    weights: FloatArray
    centre: FloatArray
    scale: FloatArray

    def scores(self, features: FloatArray) -> FloatArray:
        with limit_blas_threads(len(self.weights)):
            return np.asarray(((features - self.centre) / self.scale) @ self.weights)

    def state(self) -> dict[str, Any]:
        return {
            "kind": "linear",
            "weights": self.weights.tolist(),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> LinearScorer:
        return cls(*(np.asarray(state[name], np.float64) for name in ("weights", "centre", "scale")))


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Linear ranking function on standardised features: ListMLE with a ridge penalty, by L-BFGS.

    Parameters
    ----------
    prior_scale : float, default 10.0
        Standard deviation of the normal prior on the weights; the ridge penalty is 1 / prior_scale².
    tolerance : float, default 1e-6
        Stop when a step improves the log-likelihood by less than this fraction.
    max_steps : int, default 200
        Maximum number of L-BFGS steps.

    Notes
    -----
    Maximises Σ log P(list | scores) under the Plackett-Luce model, with scores = features · weights.

    Reference: Xia, Liu, Wang, Zhang & Li (2008), Listwise approach to learning to rank: theory and algorithm.

    Examples
    --------
    >>> from crowdrank.ltr import CrowdRanker
    >>> CrowdRanker(ranker=Linear(prior_scale=1.0)).ranker
    Linear(prior_scale=1.0, tolerance=1e-06, max_steps=200)
    """

    prior_scale: float = 10.0
    tolerance: float = 1e-6
    max_steps: int = 200

    def __post_init__(self) -> None:
        if not 0 < self.prior_scale < np.inf:
            raise SettingError(f"prior_scale must be positive, got {self.prior_scale}.")
        if self.max_steps < 1:
            raise SettingError(f"max_steps must be at least 1, got {self.max_steps}.")
        if not 0 < self.tolerance < 1:
            raise SettingError(f"tolerance must lie between 0 and 1, got {self.tolerance}.")

    def fit(
        self,
        lists: RankedLists,
        features: FloatArray,
        starts: IntArray,
        init: Scorer | None = None,
        engine: Engine = LOCAL,
    ) -> LinearScorer:
        """Train on lists of items, see `Ranker.fit`; `engine` sums the likelihood."""
        from scipy.optimize import minimize

        centre, scale = features.mean(axis=0), _within_query_std(features, starts)
        # Only differences within a query matter: a column that is constant there gets a zero here.
        rows = _centred(features, starts) / scale
        constant = ~np.isfinite(scale)
        start = np.zeros(len(scale))
        if isinstance(init, LinearScorer):
            start = init.weights * np.where(constant, 0.0, scale) / init.scale
        objective = NegativeLogPosterior(engine.load(lists), rows, self.prior_scale)
        with limit_blas_threads(len(scale)):
            found = minimize(
                objective,
                start,
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": self.max_steps, "ftol": self.tolerance, "gtol": 0.0},
            )
        return LinearScorer(np.where(constant, 0.0, found.x), centre, np.where(constant, 1.0, scale))


@dataclass(frozen=True)
class NegativeLogPosterior:
    """−log P(lists | weights) − log prior, with its gradient."""

    held: ShardedData
    rows: FloatArray
    prior_scale: float

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        likelihood = self.held.sum(log_likelihood, self.rows @ weights)
        ridge = weights / self.prior_scale**2
        return 0.5 * float(ridge @ weights) - likelihood.value, ridge - likelihood.gradient @ self.rows


def _centred(features: FloatArray, starts: IntArray) -> FloatArray:
    """Features minus their query's mean."""
    sizes = np.diff(starts)
    occupied = np.flatnonzero(sizes)  # reduceat would give an empty query the first row of the next
    means = np.add.reduceat(features, starts[occupied], axis=0) / sizes[occupied, None]
    return features - np.repeat(means, sizes[occupied], axis=0)


def _within_query_std(features: FloatArray, starts: IntArray) -> FloatArray:
    """Standard deviation of each column within queries; infinite for constant columns."""
    std = np.sqrt(np.mean(_centred(features, starts) ** 2, axis=0))
    size = np.abs(features).max(axis=0, initial=0.0)
    return np.where(std > _CONSTANT * size, std, np.inf)
