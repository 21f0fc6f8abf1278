"""Content of a report; parts are computed when they are first used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, DataDiagnostics, Judgments, Rankings, Ratings
from crowdrank.data.conversions import rankings_to_links, ratings_to_links
from crowdrank.errors import CrowdrankError, DataError
from crowdrank.evaluation import Calibration, Evaluation, Reliability, Verdicts, calibration, verdicts
from crowdrank.evaluation.recommendation import model_of
from crowdrank.results import Ranking, Systems

_MAX_PAIRS = 3_000_000
"""Lists or ratings with more pairs than this are not converted to comparisons."""
_MANY_JUDGMENTS = 100_000
"""With more judgments than this, calibration predicts one fold instead of three."""


class ImportReport(Protocol):
    """What happened to each row of a file."""

    def lines(self) -> list[str]: ...
    def as_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class AnnotatorEstimate:
    """One number per annotator.

    Parameters
    ----------
    name : str
        Name of the estimate, for example "quality".
    value : array of float
        The estimates.
    low, high : array of float or None
        Their intervals, if known.
    meaning : str
        Where the estimate comes from, as a phrase.
    """

    name: str
    value: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    meaning: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Findings:
    """Everything that a report shows.

    Parameters
    ----------
    ranking : Ranking
        The ranking.
    judgments : Judgments
        The judgments as they were given.
    model : Model, optional
        The model, to predict held-out judgments with; without it the report has no calibration.
    fitted_judgments : Judgments, optional
        The judgments that the model was fitted to, if they were converted.
    conversion : str, default ""
        How they were converted.
    model_reason : str, default ""
        Why this model was chosen.
    title : str, default "Ranking"
        Title of the page.
    level : float, default 0.95
        Coverage of the intervals.
    show_uncertainty : bool, default True
        Whether to show errors and intervals.
    notes : sequence of str, default ()
        Notes for the reader, shown at the top.
    import_report : ImportReport, optional
        What happened to each row of the file.
    evaluation : Evaluation, optional
        Metrics against gold.
    systems : Systems, optional
        Comparison of systems.
    reliability : Reliability, optional
        Reliability of the scale, and misfit of judges and items.
    reproduce : mapping of str to str, optional
        Code that gives the same result, by language or place ("in Python").
    created : str, default ""
        When and with which version the report was made.
    source : str, default ""
        The file and its checksum.
    """

    ranking: Ranking
    judgments: Judgments
    model: Any = None
    fitted_judgments: Judgments | None = None
    conversion: str = ""
    model_reason: str = ""
    title: str = "Ranking"
    level: float = 0.95
    show_uncertainty: bool = True
    notes: Sequence[str] = ()
    import_report: ImportReport | None = None
    evaluation: Evaluation | None = None
    systems: Systems | None = None
    reliability: Reliability | None = None
    reproduce: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    source: str = ""

    @classmethod
    def of(cls, ranking: Ranking, **content: Any) -> Findings:
        """Build the content from a ranking that holds its judgments."""
        given: dict[str, Any] = {
            "judgments": ranking.judgments,
            "model": model_of(ranking),
            "title": f"Ranking by {ranking.model}",
            "notes": ranking.notes,
        }
        return cls(ranking=ranking, **(given | content))

    @property
    def has_uncertainty(self) -> bool:
        return self.show_uncertainty and self.ranking.has_uncertainty

    @cached_property
    def frame(self) -> Any:
        """Table of the ranking, a polars data frame."""
        return self.ranking.to_polars(self.level, self.show_uncertainty)

    @cached_property
    def verdicts(self) -> Verdicts | None:
        """Verdicts on annotators; None without annotators or if the judgments are not comparisons."""
        given = self.judgments
        if not isinstance(given, Comparisons) or given.annotator is None or len(given.annotators) < 2:
            return None
        return verdicts(given)

    @cached_property
    def calibration(self) -> Calibration | str:
        """The calibration, or a sentence that says why there is none."""
        fitted = self.judgments if self.fitted_judgments is None else self.fitted_judgments
        if not isinstance(self.judgments, Comparisons) or not isinstance(fitted, Comparisons):
            return "Calibration needs comparisons: single ratings and lists are not predicted."
        if self.model is None or not hasattr(self.model, "predict"):
            return f"{self.ranking.model} gives an order but no probabilities, so it predicts no judgments."
        sampled = self.has_uncertainty and self.ranking.uncertainty.sampled
        try:
            return calibration(self.model, fitted, max_folds=1 if sampled or len(fitted) > _MANY_JUDGMENTS else 0)
        except CrowdrankError as error:
            return f"Calibration is not possible: {error}"

    @cached_property
    def pairs(self) -> Comparisons | None:
        """The judgments as comparisons; None if they cannot be converted or would be too many."""
        given = self.judgments
        if isinstance(given, Comparisons):
            return given
        if (isinstance(given, Ratings) and given.annotator is None) or _count_pairs(given) > _MAX_PAIRS:
            return None
        try:
            return given.to_comparisons(ties="keep")
        except DataError:
            return None

    @cached_property
    def diagnostics(self) -> DataDiagnostics:
        """Diagnostics of the data."""
        given = self.judgments
        if isinstance(given, Ratings):
            return DataDiagnostics(ratings_to_links(given), from_ratings=True)
        return DataDiagnostics(rankings_to_links(given) if isinstance(given, Rankings) else given)

    @cached_property
    def annotator_estimate(self) -> AnnotatorEstimate | None:
        """What the model estimated; otherwise quality from the verdicts; otherwise agreement with the ranking."""
        if self.judgments.annotator is None:
            return None
        if self.ranking.has_annotators:
            name, (value, low, high) = next(iter(self.ranking.annotators.estimates.items()))
            return AnnotatorEstimate(name.replace("_", " "), value, low, high, f"estimated by {self.ranking.model}")
        if self.verdicts is not None:
            return AnnotatorEstimate("quality", self.verdicts.quality, None, None, "from agreement with the others")
        if self.pairs is None:
            return None
        agreement = self._agreement(self.pairs)
        return AnnotatorEstimate("agreement", agreement, None, None, "fraction of pairs ordered as in this ranking")

    def _agreement(self, pairs: Comparisons) -> FloatArray:
        assert pairs.annotator is not None
        direction = np.sign(self.ranking.scores[pairs.left] - self.ranking.scores[pairs.right]) * pairs.outcome
        n_annotators = len(pairs.annotators)
        total = np.bincount(pairs.annotator, direction != 0, n_annotators)
        agreed = np.bincount(pairs.annotator, direction > 0, n_annotators)
        return np.asarray(np.divide(agreed, total, out=np.full(n_annotators, np.nan), where=total > 0))

    @cached_property
    def n_judgments(self) -> IntArray:
        """Number of judgments of each annotator."""
        assert self.judgments.annotator is not None
        return np.bincount(self.judgments.annotator, minlength=len(self.judgments.annotators))


def _count_pairs(judgments: Rankings | Ratings) -> int:
    if isinstance(judgments, Rankings):
        sizes = judgments.lengths
    else:
        assert judgments.annotator is not None
        queries = len(judgments.items.queries)
        key = judgments.annotator.astype(np.int64) * queries + judgments.items.query[judgments.item]
        sizes = np.unique(key, return_counts=True)[1]
    return int(np.sum(sizes * (sizes - 1) // 2))
