"""Parts of a result: convergence, rows, uncertainty, estimates of annotators, and their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.data import Items, Judgments
from crowdrank.errors import ConvergenceWarning, SettingError, UnknownNameError, issue_warning
from crowdrank.results.ranks import benjamini_hochberg, ranks_in_draws, shortest_intervals, simultaneous_intervals

if TYPE_CHECKING:
    from crowdrank.results.domains import Domains

_MIN_TO_REVERSE, _REVERSED_FDR = 10, 0.05


def as_native(frame: pl.DataFrame, native: str) -> Any:
    """Convert a polars frame to the library `native` ("polars", "pandas", "pyarrow", …)."""
    if native == "polars":
        return frame
    import narwhals

    try:
        return narwhals.from_dict(frame.to_dict(as_series=False), backend=native).to_native()  # type: ignore[arg-type]
    except ImportError as error:
        raise SettingError(f"{native} is not installed: pip install {native}, or use to_polars().") from error


class Tabular:
    """A result that is a table: `frame`, `to_polars` and `to_pandas`."""

    native: str

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars data frame."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the table as a pandas data frame."""
        return as_native(self.to_polars(), "pandas")

    def frame(self) -> Any:
        """Return the table as the kind of data frame that the judgments came in (polars for files)."""
        return as_native(self.to_polars(), self.native)


@dataclass(frozen=True)
class Convergence:
    """Whether the solver converged, and how far it was from the optimum when it stopped.

    Parameters
    ----------
    converged : bool, default True
        Whether the stopping criterion was met.
    steps : int, default 0
        Number of steps taken; 0 for models in closed form.
    distance : float, default 0.0
        Value of the stopping criterion at the end.
    unit : str, default "standard errors from the optimum"
        What `distance` measures.
    remedy : str, default "Increase max_steps"
        What to do if the solver did not converge.

    Examples
    --------
    >>> Convergence(converged=False, steps=200, distance=0.12).describe()
    'Did not converge in 200 steps (0.12 standard errors from the optimum). Increase max_steps.'
    """

    converged: bool = True
    steps: int = 0
    distance: float = 0.0
    unit: str = "standard errors from the optimum"
    remedy: str = "Increase max_steps"

    def describe(self, model: str = "") -> str:
        """Return the outcome as a sentence; "" for models in closed form."""
        if not self.converged:
            subject = f"{model} did" if model else "Did"
            remedy = self.remedy[:1].upper() + self.remedy[1:]
            return f"{subject} not converge in {self.steps} steps ({self.distance:.2g} {self.unit}). {remedy}."
        subject = f"{model} converged" if model else "Converged"
        return f"{subject} in {self.steps} steps." if self.steps else ""

    def warn(self, model: str) -> None:
        """Warn if the solver did not converge."""
        if not self.converged:
            issue_warning(self.describe(model), ConvergenceWarning, stacklevel=4)


CLOSED_FORM = Convergence()
"""The convergence of models that are computed in closed form."""


@dataclass(frozen=True)
class RankedItem:
    """One row of a ranking.

    Parameters
    ----------
    rank : int
        1 for the best item of its query; equal scores share the better rank.
    item : str
        Label of the item.
    score : float
        Estimated score; larger is better.
    std_error : float or None
        Standard error of the score. None, like the three below, if the ranking has no uncertainty.
    rank_low, rank_high : int or None
        95 % interval of the rank.
    group : int or None
        Tie group, 1 for the best: the order within a group is uncertain.
    query : str or None
        Query of the item, if the judgments have queries.
    """

    rank: int
    item: str
    score: float
    std_error: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    group: int | None = None
    query: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Uncertainty:
    """Joint draws of all scores around the estimate.

    Parameters
    ----------
    draws : array of float, draws × items
        Draws from the posterior, from its normal approximation, or estimates from bootstrap samples.
    std_error : array of float
        Standard error of each score.
    method : str
        How the draws were made, for example "Laplace approximation" or "bootstrap over 30 annotators".
    sampled : bool, default False
        Whether the draws come from the posterior itself, so that a fraction of draws is a posterior probability.
    """

    draws: FloatArray
    std_error: FloatArray
    method: str
    sampled: bool = False

    def __repr__(self) -> str:
        count, items = self.draws.shape
        return f"<Uncertainty: {count:,} draws of {items:,} scores by {self.method}>"

    def ranks(self, items: Items) -> tuple[Int32Array, Int32Array]:
        """Return the best and the worst rank of every item within its query in each draw; they differ in ties."""
        return ranks_in_draws(self.draws, items)

    def rank_intervals(
        self, items: Items, shown: IntArray, level: float = 0.95, simultaneous: bool = False
    ) -> tuple[IntArray, IntArray]:
        """Return the lower and upper end of an interval that contains the rank of an item with probability `level`.

        It is the shortest such interval that contains the shown rank.

        Parameters
        ----------
        items : Items
            The items that were drawn.
        shown : array of int
            Rank of each item in the ranking.
        level : float, default 0.95
            Probability that an interval contains the true rank.
        simultaneous : bool, default False
            Whether `level` is the probability that the intervals of all items of a query contain the true ranks.
        """
        best, worst = self.ranks(items)
        if simultaneous:
            return simultaneous_intervals(best, worst, shown, items, level)
        return shortest_intervals(best, worst, shown, level)

    def probability_above(self, scores: FloatArray, a: int, b: int) -> float:
        """Return the probability that item `a` truly scores above item `b`.

        Posterior draws are counted; otherwise the difference of the scores is taken as normal. Counting is right even
        where the scores have no fixed unit: the order may be certain while the size of the difference is not.
        """
        if self.sampled:
            above = np.sum(self.draws[:, a] > self.draws[:, b]) + 0.5 * np.sum(self.draws[:, a] == self.draws[:, b])
            return float((above + 0.5) / (len(self.draws) + 1))
        difference = float(scores[a] - scores[b])
        spread = float(np.std(self.draws[:, a] - self.draws[:, b]))
        if spread == 0:
            return 0.5 if difference == 0 else float(difference > 0)
        return 0.5 * math.erfc(-difference / spread / math.sqrt(2))


@dataclass(frozen=True, eq=False, repr=False)
class RankDistributions:
    """The probability of every rank for every item.

    Parameters
    ----------
    items : Items
        The items.
    tables : sequence of arrays, items × ranks
        One table per query; every row sums to one.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    items: Items
    tables: Sequence[FloatArray]
    native: str = "polars"

    def __repr__(self) -> str:
        return f"<RankDistributions of {len(self.items):,} items>"

    def of(self, item: object, query: object | None = None) -> FloatArray:
        """Return the probabilities of the ranks 1, 2, … for one item."""
        code = self.items.query_code(query)
        return np.asarray(self.tables[code][self.items.index(item, query) - self.items.starts[code]])

    def frame(self, query: object | None = None) -> Any:
        """Return one row per item and rank of a query: item, rank, probability."""
        code = self.items.query_code(query)
        table, labels = self.tables[code], self.items.labels[self.items.of_query(code)]
        size = len(labels)
        columns = {
            "item": np.repeat(labels, size).tolist(),
            "rank": np.tile(np.arange(1, size + 1), size),
            "probability": table.ravel(),
        }
        return as_native(pl.DataFrame(columns), self.native)


class Interval(NamedTuple):
    """An estimate with the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AnnotatorRow:
    """What a model estimated about one annotator.

    Parameters
    ----------
    annotator : str
        Label of the annotator.
    n_judgments : int
        Number of judgments that the annotator gave.
    estimates : mapping of str to Interval
        Estimates by name, for example ``row["quality"].low``.
    """

    annotator: str
    n_judgments: int
    estimates: Mapping[str, Interval]

    def __getitem__(self, name: str) -> Interval:
        """Return an estimate by its name."""
        if name not in self.estimates:
            raise UnknownNameError("estimate", name, self.estimates)
        return self.estimates[name]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Annotators(Tabular):
    """Estimates of each annotator, with intervals.

    ``annotators["boris"]`` is the row of one annotator, ``annotators["quality"]`` the column of an estimate. If an
    annotator is called like an estimate, the annotator is returned; use `estimate` for the column.

    Parameters
    ----------
    labels : array of str
        Labels of the annotators.
    n_judgments : array of int
        Number of judgments of each annotator.
    estimates : mapping of str to tuple of arrays
        By name: the estimate and the lower and upper end of its interval, one value per annotator each.
    n_answers : array of int, optional
        Number of choices of each annotator, if a judgment is more than one: a list of n items is n − 1 choices.
    level : float, default 0.95
        Coverage of the intervals.
    native : str, default "polars"
        Data frame library of `frame`.

    Examples
    --------
    >>> from crowdrank import CrowdBT
    >>> from crowdrank.simulation import mixed_crowd
    >>> votes = mixed_crowd(kinds={"good": 8, "reversed": 1}, seed=1).judgments
    >>> annotators = CrowdBT().fit(votes).annotators
    >>> annotators
    <Annotators: 9, with quality>
    >>> row = annotators[annotators.reversed[0]]
    >>> row["quality"].high < 0.5
    True
    """

    labels: ObjectArray
    n_judgments: IntArray
    estimates: Mapping[str, tuple[FloatArray, FloatArray, FloatArray]]
    n_answers: IntArray | None = None
    level: float = 0.95
    native: str = "polars"

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,}, with {', '.join(self.estimates)}>"

    def __contains__(self, annotator: object) -> bool:
        return bool(np.any(self.labels == str(annotator)))

    def __getitem__(self, name: object) -> Any:
        """Return one annotator by label, or the column of an estimate by its name."""
        found = np.flatnonzero(self.labels == str(name))
        if not len(found):
            if str(name) in self.estimates:
                return self.estimate(str(name))
            raise UnknownNameError("annotator", name, self.labels)
        n = int(found[0])
        estimates = {key: Interval(*(float(part[n]) for part in parts)) for key, parts in self.estimates.items()}
        return AnnotatorRow(str(self.labels[n]), int(self.n_judgments[n]), estimates)

    def estimate(self, name: str) -> FloatArray:
        """Return the column of an estimate, one value per annotator."""
        if name not in self.estimates:
            raise UnknownNameError("estimate", name, self.estimates)
        return self.estimates[name][0]

    @property
    def reversed(self) -> list[str]:
        """Annotators who answer in reverse, at a false discovery rate of 5 % among all annotators.

        The probability that the quality is above one half follows from the upper end of its interval, taken as normal
        on the scale of the logit. Nobody is named on fewer than ten answers.
        """
        if "quality" not in self.estimates:
            return []
        from statistics import NormalDist

        quality, _, high = (np.clip(part, 1e-9, 1 - 1e-9) for part in self.estimates["quality"])
        logit, error = np.log(quality / (1 - quality)), np.log(high / (1 - high)) - np.log(quality / (1 - quality))
        z = NormalDist().inv_cdf(0.5 + self.level / 2) * logit / np.maximum(error, 1e-9)
        p_value = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z])
        answers = self.n_judgments if self.n_answers is None else self.n_answers
        found = benjamini_hochberg(np.where(answers >= _MIN_TO_REVERSE, p_value, np.nan)) < _REVERSED_FDR
        return [str(label) for label in self.labels[found & (quality < 0.5)]]

    def to_polars(self) -> pl.DataFrame:
        """Return one row per annotator, best first by the first estimate."""
        columns: dict[str, Any] = {"annotator": self.labels.tolist()}
        for name, (estimate, low, high) in self.estimates.items():
            columns |= {name: estimate, f"{name}_low": low, f"{name}_high": high}
        columns["judgments"] = self.n_judgments
        return pl.DataFrame(columns).sort(next(iter(self.estimates)), "annotator", descending=[True, False])


@dataclass(frozen=True, kw_only=True)
class LazyParts:
    """Functions behind the lazy attributes of a `Ranking`. Only code that builds rankings needs it.

    Parameters
    ----------
    n_judgments : callable
        Returns the number of judgments in which each item appears.
    uncertainty, annotators, domains : callable, optional
        Return the part of that name; None if the ranking does not have it.
    notes : callable, optional
        Returns notes on the data. `Ranking.notes` adds those on convergence and on reversed annotators.
    judgments : Judgments, optional
        The judgments that the ranking was fitted to.
    """

    n_judgments: Callable[[], IntArray]
    uncertainty: Callable[[], Uncertainty] | None = None
    annotators: Callable[[], Annotators] | None = None
    domains: Callable[[], Domains] | None = None
    notes: Callable[[], list[str]] | None = None
    judgments: Judgments | None = None
