"""What a model estimated about the annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.errors import UnknownNameError
from crowdrank.results.frames import Tabular


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
        """Annotators who answer in reverse: the whole interval of their quality is below one half."""
        if "quality" not in self.estimates:
            return []
        return [str(label) for label in self.labels[self.estimates["quality"][2] < 0.5]]

    def to_polars(self) -> pl.DataFrame:
        """Return one row per annotator, best first by the first estimate."""
        columns: dict[str, Any] = {"annotator": self.labels.tolist()}
        for name, (estimate, low, high) in self.estimates.items():
            columns |= {name: estimate, f"{name}_low": low, f"{name}_high": high}
        columns["judgments"] = self.n_judgments
        return pl.DataFrame(columns).sort(next(iter(self.estimates)), "annotator", descending=[True, False])
