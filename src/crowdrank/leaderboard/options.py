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
    cluster: str | None = None
    score_scale: str | None = None
    anchors: Mapping[str, float] = field(default_factory=dict)
    link_to: Ranking | str | PathLike[str] | None = None
    min_comparisons: int = 0
    time: str | int | bool | None = None

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
        if self.time and (self.control or self.cluster is not None):
            raise SettingError("time= cannot be combined with control= or cluster=.")
        if self.min_comparisons < 0:
            raise SettingError(f"min_comparisons must be zero or more, got {self.min_comparisons}.")
