"""What a ranking function is, and how one is trained.

ListMLE (Xia et al. 2008): a linear ranking function that makes the lists likeliest under Plackett-Luce.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines import LOCAL, Engine, ShardedData
from crowdrank.engines.threads import limit_blas_threads
from crowdrank.errors import SettingError
from crowdrank.models.lists.plackett_luce_likelihood import Lists, slopes


class Scorer(Protocol):
    """A trained ranking function: a score for every row of features, larger is better within a query."""

    def scores(self, values: FloatArray) -> FloatArray: ...

    def state(self) -> dict[str, Any]:
        """All of it as plain numbers, texts and lists, for saving; `kind` says what it is."""
        ...


class Ranker(Protocol):
    """How a ranking function is trained."""

    def fit(self, lists: Lists, values: FloatArray, starts: IntArray, before: Scorer | None = None) -> Scorer:
        """From lists, best first, over rows of `values`; a query's rows begin at its entry of `starts`.

        Items tied on the last place of a list were left unordered: a top-k list names all items of its query. Weights
        say how much each list counts. `before` is where to start from, if it is a function of this kind.
        """
        ...


# A column that varies by less than this share of its size is constant but for rounding.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """score = weights · (values − centre) / scale."""

    weights: FloatArray
    centre: FloatArray
    scale: FloatArray

    def scores(self, values: FloatArray) -> FloatArray:
        with limit_blas_threads(len(self.weights)):
            return np.asarray(((values - self.centre) / self.scale) @ self.weights)

    def state(self) -> dict[str, Any]:
        return {
            "kind": "linear",
            "weights": self.weights.tolist(),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> LinearScorer:
        return cls(*(np.asarray(state[name], np.float64) for name in ("weights", "centre", "scale")))


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Weights of standardised features, by L-BFGS with a ridge."""

    prior_scale: float = 10.0
    """Standard deviation of the normal prior on the weights: the ridge is one over its square."""
    tolerance: float = 1e-6
    """Stop when a step gains less than this share of the log-likelihood."""
    max_steps: int = 200

    def __post_init__(self) -> None:
        if not 0 < self.prior_scale < np.inf or self.max_steps < 1 or not 0 < self.tolerance < 1:
            raise SettingError(
                "prior_scale must be positive, max_steps at least 1 and tolerance between 0 and 1, "
                f"got {self.prior_scale}, {self.max_steps} and {self.tolerance}."
            )

    def fit(
        self, lists: Lists, values: FloatArray, starts: IntArray, before: Scorer | None = None, engine: Engine = LOCAL
    ) -> LinearScorer:
        from scipy.optimize import minimize

        centre, scale = values.mean(axis=0), _spread(values, starts)
        # Only differences within a query count: columns that do not differ there come out as zero.
        rows = _centred(values, starts) / scale
        constant = ~np.isfinite(scale)
        start = np.zeros(len(scale))
        if isinstance(before, LinearScorer):
            start = before.weights * np.where(constant, 0.0, scale) / before.scale
        objective = Objective(engine.load(lists), rows, self.prior_scale)
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
class Objective:
    """−log P(lists | weights) − log prior, and its gradient."""

    held: ShardedData
    rows: FloatArray
    prior_scale: float

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        found = self.held.sum(slopes, self.rows @ weights)
        pull = weights / self.prior_scale**2
        return 0.5 * float(pull @ weights) - found.value, pull - found.gradient @ self.rows


def _centred(values: FloatArray, starts: IntArray) -> FloatArray:
    sizes = np.diff(starts)
    held = np.flatnonzero(sizes)  # reduceat would give an empty query the first row of the next
    means = np.add.reduceat(values, starts[held], axis=0) / sizes[held, None]
    return values - np.repeat(means, sizes[held], axis=0)


def _spread(values: FloatArray, starts: IntArray) -> FloatArray:
    """The standard deviation of each column within queries; infinite where there is none."""
    spread = np.sqrt(np.mean(_centred(values, starts) ** 2, axis=0))
    size = np.abs(values).max(axis=0, initial=0.0)
    return np.where(spread > _CONSTANT * size, spread, np.inf)
