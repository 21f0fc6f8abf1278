"""The table of a ranking, and the note on annotators who answer in reverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.results.ranking import Ranking

_NAMES_IN_NOTE = 5


def ranking_frame(ranking: Ranking, level: float, uncertainty: bool, simultaneous: bool | None) -> pl.DataFrame:
    """Return one row per item, best first; see `Ranking.table`."""
    check_level(level)
    order, items = ranking.order, ranking.items
    columns: dict[str, Any] = {}
    if items.has_queries:
        columns["query"] = items.queries[items.query[order]].tolist()
    scores = ranking.shown_scores[order]
    columns |= {"rank": ranking.rank[order], "item": items.labels[order].tolist(), "score": scores}
    if uncertainty and ranking.has_uncertainty:
        low, high = ranking.rank_intervals(level, simultaneous)
        columns |= {
            "std_error": ranking.shown_errors[order],
            "rank_low": low[order],
            "rank_high": high[order],
            "group": ranking.groups[order],
        }
    columns[ranking.judgment_kind] = ranking.n_judgments[order]
    return pl.DataFrame(columns)


def check_level(level: float) -> None:
    """Raise if the level is not a probability."""
    if not 0 < level < 1:
        raise SettingError(f"level must be between 0 and 1, got {level}.")


def reversed_note(names: list[str]) -> list[str]:
    """Return a sentence on annotators who answer in reverse, if there are any."""
    if not names:
        return []
    shown = ", ".join(names[:_NAMES_IN_NOTE]) + (", …" if len(names) > _NAMES_IN_NOTE else "")
    who = "1 annotator appears" if len(names) == 1 else f"{len(names):,} annotators appear"
    return [f"{who} to answer in reverse, so their answers count in the opposite direction: {shown}."]
