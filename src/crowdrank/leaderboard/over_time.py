"""Strengths that drift over time, as an option of `crowdrank.rank`."""

from __future__ import annotations

import numpy as np

from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import DataError, DataWarning, SettingError, issue_warning
from crowdrank.leaderboard.options import LeaderboardOptions
from crowdrank.models import Model, name_of
from crowdrank.models.pairwise.paired import PairwiseModel
from crowdrank.models.pairwise.random_walk import PERIODS, fit_over_time
from crowdrank.results import Ranking


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
