"""The options of `crowdrank.rank` that are about leaderboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from crowdrank.errors import SettingError, UnknownNameError
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
