"""The options of `crowdrank.rank` that are about leaderboards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crowdrank.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class LeaderboardOptions:
    """Options that `RankOptions` inherits; each is described in `crowdrank.rank`."""

    features: Sequence[str] = ()
    control: bool = False

    def __post_init__(self) -> None:
        if self.control and not self.features:
            raise SettingError("control=True needs features= whose effect is to be removed.")
