"""A ranking as a figure for a paper or a page."""

from __future__ import annotations

from os import PathLike

from crowdrank.reports.drawing import check_drawable, write_chart
from crowdrank.results import Ranking


def draw_ranking(
    ranking: Ranking, path: str | PathLike[str], *, top: int = 30, level: float = 0.95, uncertainty: bool = True
) -> None:
    """What `Ranking.plot` shows, by the ending of the file: .html, .svg or .png."""
    target = check_drawable(path)
    write_chart(ranking.plot(top=top, level=level, uncertainty=uncertainty), target)
