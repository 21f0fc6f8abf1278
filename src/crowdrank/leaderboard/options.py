"""The options of `crowdrank.rank` that are about leaderboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from crowdrank.arrays import IntArray
from crowdrank.data import Comparisons, Judgments, SideInformation
from crowdrank.data.features import numbers_or_text
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError, issue_warning
from crowdrank.io.synonyms import SYNONYMS, normalize_name
from crowdrank.models import Model, name_of, with_bootstrap
from crowdrank.models.pairwise.covariates import with_sandwich
from crowdrank.models.pairwise.paired import PairwiseModel
from crowdrank.models.pairwise.random_walk import PERIODS, fit_over_time
from crowdrank.results import SCALES, Ranking


@dataclass(frozen=True, kw_only=True)
class LeaderboardOptions:
    """Options that `RankOptions` inherits; each is described in `crowdrank.rank`."""

    items: Any = None
    items_columns: Mapping[str, str | None] = field(default_factory=dict)
    system: str | None = None
    features: Sequence[str] = ()
    control: bool = False
    exclude: Sequence[str] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    by: str | None = None
    criteria: Sequence[str] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    cluster: str | None = None
    score_scale: str | None = None
    anchors: Mapping[str, float] = field(default_factory=dict)
    link_to: Ranking | str | PathLike[str] | None = None
    min_comparisons: int = 0
    time: str | int | bool | None = None

    @property
    def board_column(self) -> str | None:
        """The column whose values are leaderboards of their own; None without one, or with several of winners."""
        return self.by or (self.criteria[0] if len(self.criteria) == 1 else None)

    def __post_init__(self) -> None:
        if self.control and not self.features:
            raise SettingError("control=True needs features= whose effect is to be removed.")
        if self.score_scale is not None and self.score_scale not in SCALES:
            raise UnknownNameError("scale", self.score_scale, SCALES)
        if self.anchors and self.score_scale not in ("elo", "jod"):
            raise SettingError("anchors= needs score_scale='elo' or score_scale='jod'.")
        if self.anchors and self.link_to is not None:
            raise SettingError("link_to= fixes the scale by the items of another ranking: leave anchors= out.")
        if self.link_to is not None and self.score_scale == "probability":
            raise SettingError("link_to= needs a scale without limits, not score_scale='probability'.")
        if any(not 0 <= weight < float("inf") for weight in self.weights.values()):
            raise SettingError(f"weights= must be zero or more, got {dict(self.weights)}.")
        if self.time and (self.control or self.cluster is not None or self.by or self.criteria):
            raise SettingError("time= cannot be combined with control=, cluster=, by= or criteria=.")
        if self.min_comparisons < 0:
            raise SettingError(f"min_comparisons must be zero or more, got {self.min_comparisons}.")


# Strengths that drift over time, as an option of `crowdrank.rank`.


def check_drift(options: LeaderboardOptions, model: Model, judgments: Judgments) -> None:
    """Raise before the fit if strengths over time cannot be estimated."""
    if isinstance(options.time, str) and options.time not in ("auto", *PERIODS):
        raise SettingError(f"time must be {', '.join(PERIODS)}, or a number of periods, got {options.time!r}.")
    if not isinstance(model, PairwiseModel):
        raise SettingError(f"{name_of(model)} has no strengths that drift: time= needs bradley-terry or thurstone.")
    if not isinstance(judgments, Comparisons):
        raise DataError(f"time= needs comparisons, got {type(judgments).__name__.lower()}.")
    if judgments.time is None or np.isnan(judgments.time).all():
        raise DataError(
            "time= needs the time of each judgment, and no column holds it.",
            remedy="Name the column: columns={'time': 'COLUMN'}.",
            option="columns",
            value={"time": "COLUMN"},
        )
    if unknown := int(np.isnan(judgments.time).sum()):
        found = "1 judgment has" if unknown == 1 else f"{unknown:,} judgments have"
        issue_warning(f"{found} no time, and no part in the curves over time.", DataWarning)


def with_drift(model: Model, judgments: Judgments, ranking: Ranking, options: LeaderboardOptions) -> Ranking:
    """Return the ranking of the last period, with the curves of all items."""
    assert isinstance(model, PairwiseModel)
    assert isinstance(judgments, Comparisons)
    assert options.time is not None
    found = fit_over_time(model, judgments, ranking, options.time)
    return found if ranking.has_uncertainty else found.without_uncertainty()


# Clusters of judgments: votes on one prompt, in one conversation or by one annotator, which belong together.

ANNOTATOR = "annotator"
_FEWEST, _FEW = 5, 20


def names_query(cluster: str | None) -> bool:
    """Whether the column of the clusters would be read as the query, by its name."""
    known = {name for names in SYNONYMS["query"] for name in names}
    return cluster is not None and normalize_name(cluster) in known


def cluster_codes(judgments: Judgments, cluster: str) -> IntArray:
    """The cluster of each judgment, counted from 0; a judgment without one is a cluster of its own."""
    if cluster == ANNOTATOR:
        if judgments.annotator is None:
            raise DataError("cluster='annotator': these judgments do not name annotators.")
        found = judgments.annotator.astype(np.int64)
    elif isinstance(judgments, Comparisons) and cluster in judgments.features:
        column = numbers_or_text(judgments.features[cluster])
        missing = column == "" if column.dtype == object else np.isnan(column)
        found = np.unique(column, return_inverse=True)[1].astype(np.int64).ravel()
        found[missing] = found.max() + 1 + np.arange(int(missing.sum()))
    else:
        kind = type(judgments).__name__.lower()
        raise DataError(
            f"cluster={cluster!r} must be a column of comparisons, and these {kind} do not have it. For lists and "
            "ratings use cluster='annotator'."
        )
    codes = np.unique(found, return_inverse=True)[1].astype(np.int64).ravel()
    count = int(codes.max()) + 1
    if count < _FEWEST:
        raise DataError(f"cluster={cluster!r} has {count:,} clusters; errors by cluster need at least {_FEWEST}.")
    if count < _FEW:
        issue_warning(f"There are only {count:,} clusters: their errors are rough.", DataWarning)
    return codes


def with_cluster_errors(
    model: Model,
    judgments: Judgments,
    ranking: Ranking,
    cluster: str,
    method: str,
    side_information: SideInformation | None,
) -> Ranking:
    """Return the ranking with errors that take the judgments of one cluster as dependent.

    By a sandwich estimate for bradley-terry and thurstone, by resampling clusters for other models or if `method` is
    "bootstrap".
    """
    codes = cluster_codes(judgments, cluster)
    if method == "model" and isinstance(model, PairwiseModel) and not model.has_random_effects:
        assert isinstance(judgments, Comparisons)
        return with_sandwich(model, judgments, ranking, codes)
    return with_bootstrap(model, judgments, ranking, side_information=side_information, clusters=codes)
