"""All that a report tells, each part computed when first asked for."""

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
from crowdrank.evaluation import Evaluation, Verdicts, verdicts
from crowdrank.evaluation.calibration import Calibration, calibration
from crowdrank.results import Ranking, Systems

_MOST_PAIRS = 3_000_000
"""Comparisons that lists or grades are laid out as, at most."""
_MANY = 100_000
"""Judgments beyond which one fold in place of three is foretold."""


class Imported(Protocol):
    """What became of every row of a source."""

    def lines(self) -> list[str]: ...
    def as_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Estimates:
    """One number an annotator: how far they can be believed, or how far they went along."""

    name: str
    value: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    meaning: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Findings:
    """A ranking, the judgments behind it, and what is known about both."""

    ranking: Ranking
    judgments: Judgments
    """As they were given."""
    model: Any = None
    """The model that ranked, to foretell judgments with; None if that is not wanted."""
    read_as: Judgments | None = None
    """The judgments as the model read them, where it read others than were given."""
    rule: str = ""
    """How they were made so."""
    why: str = ""
    """Why this model."""
    title: str = "A ranking"
    level: float = 0.95
    measured: bool = True
    notes: Sequence[str] = ()
    imported: Imported | None = None
    grade: Evaluation | None = None
    systems: Systems | None = None
    repeat: Mapping[str, str] = field(default_factory=dict)
    """Ways to get the same again, by what they are written in."""
    made: str = ""
    """When, and with what."""
    source: str = ""
    """Which file, and its fingerprint."""

    @property
    def has_uncertainty(self) -> bool:
        return self.measured and self.ranking.measure is not None

    @cached_property
    def frame(self) -> Any:
        """The table of the ranking, with columns for what is known of it."""
        return self.ranking.frame(self.level, self.measured)

    @cached_property
    def verdicts(self) -> Verdicts | None:
        """None where nobody is named, or where answers were not given one by one."""
        given = self.judgments
        if not isinstance(given, Comparisons) or given.annotator is None or len(given.annotators) < 2:
            return None
        return verdicts(given)

    @cached_property
    def calibration(self) -> Calibration | str:
        """Or a sentence that says why there is none."""
        asked = self.judgments if self.read_as is None else self.read_as
        if not isinstance(self.judgments, Comparisons) or not isinstance(asked, Comparisons):
            return "Lists and grades are not foretold one by one, so there is nothing to hold against what was said."
        if self.model is None or not hasattr(self.model, "predict"):
            return f"{self.ranking.model} gives an order, not chances: it foretells no judgment that could be checked."
        sampled = self.has_uncertainty and self.ranking.uncertainty.sampled
        try:
            return calibration(self.model, asked, parts=1 if sampled or len(asked) > _MANY else 0)
        except CrowdrankError as error:
            return f"No judgments could be held out: {error}"

    @cached_property
    def pairs(self) -> Comparisons | None:
        """The judgments as comparisons; None where they cannot be, or would be too many."""
        given = self.judgments
        if isinstance(given, Comparisons):
            return given
        if (isinstance(given, Ratings) and given.annotator is None) or _pairs_within(given) > _MOST_PAIRS:
            return None
        try:
            return given.to_comparisons(ties="keep")
        except DataError:
            return None

    @cached_property
    def health(self) -> DataDiagnostics:
        given = self.judgments
        if isinstance(given, Ratings):
            return DataDiagnostics(ratings_to_links(given), from_ratings=True)
        return DataDiagnostics(rankings_to_links(given) if isinstance(given, Rankings) else given)

    @cached_property
    def estimates(self) -> Estimates | None:
        """What the model learnt of the annotators; else what others' scores say; else who went along."""
        if self.judgments.annotator is None:
            return None
        if self.ranking.survey is not None:
            name, (value, low, high) = next(iter(self.ranking.annotators.estimates.items()))
            return Estimates(name.replace("_", " "), value, low, high, f"as {self.ranking.model} estimated it")
        if self.verdicts is not None:
            return Estimates("quality", self.verdicts.quality, None, None, "by agreement with what the others said")
        if self.pairs is None:
            return None
        return Estimates("agreement", self._agreement(self.pairs), None, None, "the share of pairs ordered as here")

    def _agreement(self, pairs: Comparisons) -> FloatArray:
        assert pairs.annotator is not None
        towards = np.sign(self.ranking.scores[pairs.left] - self.ranking.scores[pairs.right]) * pairs.outcome
        people = len(pairs.annotators)
        total = np.bincount(pairs.annotator, towards != 0, people)
        alike = np.bincount(pairs.annotator, towards > 0, people)
        return np.asarray(np.divide(alike, total, out=np.full(people, np.nan), where=total > 0))

    @cached_property
    def volume(self) -> IntArray:
        """How many judgments each annotator gave."""
        assert self.judgments.annotator is not None
        return np.bincount(self.judgments.annotator, minlength=len(self.judgments.annotators))


def _pairs_within(judgments: Rankings | Ratings) -> int:
    if isinstance(judgments, Rankings):
        sizes = judgments.lengths
    else:
        assert judgments.annotator is not None
        queries = len(judgments.items.queries)
        key = judgments.annotator.astype(np.int64) * queries + judgments.items.query[judgments.item]
        sizes = np.unique(key, return_counts=True)[1]
    return int(np.sum(sizes * (sizes - 1) // 2))
