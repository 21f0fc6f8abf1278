"""A leaderboard to publish: a folder with one page that sorts and filters without network, and the table."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from os import PathLike
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from crowdrank.errors import SettingError
from crowdrank.reports.html.markup import Html, decimals, items, join, scrolling, tag
from crowdrank.results.categories import OVERALL_NAME, board_table

if TYPE_CHECKING:
    from crowdrank.results import Ranking

PAGE, TABLE, CURVES = "index.html", "ranking.csv", "curves.csv"


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """What a leaderboard page shows.

    Parameters
    ----------
    ranking : Ranking
        The ranking; its provisional items are listed apart.
    title : str, default "Leaderboard"
        Title of the page.
    level : float, default 0.95
        Coverage of the intervals.
    uncertainty : bool, default True
        Whether to show intervals.
    notes : sequence of str, default ()
        Caveats below the table.
    footer : str, default "Made with crowdrank."
        Last line of the page.
    boards : str, default "category"
        What the queries of the ranking are called.
    """

    ranking: Ranking
    title: str = "Leaderboard"
    level: float = 0.95
    uncertainty: bool = True
    notes: Sequence[str] = field(default_factory=tuple)
    footer: str = "Made with crowdrank."
    boards: str = "category"


def check_leaderboard(folder: str | PathLike[str]) -> Path:
    """Return the folder of a leaderboard; raise if it cannot be one."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise SettingError(f"{target}: a leaderboard is written to a folder, and this is a file.")
    if not target.parent.is_dir():
        raise SettingError(f"{target}: the folder {target.parent} does not exist.")
    return target


def write_leaderboard(board: Leaderboard, folder: str | PathLike[str]) -> None:
    """Write the page (index.html) and the table (ranking.csv) to a folder, which is made if necessary.

    A ranking over time also gets a table of its curves (curves.csv).

    Parameters
    ----------
    board : Leaderboard
        The ranking and what is said about it.
    folder : path
        The folder. Files of an earlier leaderboard are replaced.
    """
    target = check_leaderboard(folder)
    target.mkdir(exist_ok=True)
    board_table(board.ranking, board.level, board.uncertainty, board.boards).write_csv(target / TABLE)
    if (drift := board.ranking.drift) is not None:
        drift.to_polars(board.level, board.ranking.scale).write_csv(target / CURVES)
    (target / PAGE).write_text(leaderboard_html(board), encoding="utf-8")


def leaderboard_html(board: Leaderboard) -> str:
    """Return the page as HTML; its script is allowed by its checksum and loads nothing."""
    script, style = (
        files("crowdrank.reports.html").joinpath(f"leaderboard.{kind}").read_text("utf-8") for kind in ("js", "css")
    )
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{checksum}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", board.title),
        tag("style", Html(style)),
    )
    ranking = board.ranking
    parts = [tag("h1", board.title), _filters(board), _table(board, ranking, "Ranking", ranked=True)]
    if ranking.provisional is not None:
        parts += [tag("h2", "Provisional"), tag("p", "Items with few judgments, without a rank.", class_="note")]
        parts.append(_table(board, ranking.provisional, "Provisional items", ranked=False))
    if ranking.drift is not None:
        from crowdrank.reports.html.sections.ranking import drift_figure

        parts += [tag("h2", "Change over time"), tag("p", ranking.drift.sentence(), class_="note")]
        parts.append(drift_figure(ranking.drift, ranking.scale, board.level))
    if board.notes:
        parts += [tag("h2", "Notes"), items(board.notes)]
    link = tag("a", "The table as CSV", href=TABLE)
    parts.append(tag("footer", tag("p", link, join(". ", board.footer))))
    body = tag("body", tag("main", *parts), tag("script", Html(script)))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _filters(board: Leaderboard) -> Html:
    ranking = board.ranking
    fields = [tag("label", "Find ", tag("input", id="search", type="search"))]
    if ranking.items.has_queries:
        names = [tag("option", str(query), value=str(query)) for query in ranking.items.queries]
        if ranking.overall is not None:  # the page opens with it
            names.insert(0, tag("option", OVERALL_NAME, value=OVERALL_NAME, selected="selected"))
        choice = tag("select", tag("option", "all", value=""), *names, id="category")
        fields.append(tag("label", f"{board.boards.capitalize()} ", choice))
    return tag("form", *fields, onsubmit=None)


def _table(board: Leaderboard, ranking: Ranking, name: str, ranked: bool) -> Html:
    frame = board_table(ranking, board.level, board.uncertainty, "query")
    rows, kind = frame.to_dicts(), ranking.judgment_kind
    columns = _columns(board, frame.columns, kind, ranked)
    digits = decimals(float(frame["score"].max() - frame["score"].min()))  # type: ignore[operator, arg-type]
    z = NormalDist().inv_cdf(0.5 + board.level / 2)
    for row in rows:
        row["text"] = {
            "score": f"{row['score']:.{digits}f}",
            "interval": _interval(row, z, digits),
            "rank_low": _ranks(row),
            kind: f"{row[kind]:,}",
        }
    head = tag("tr", *(_head(label, key, is_number) for key, label, is_number in columns))
    body = [_row(row, [(key, is_number) for key, _, is_number in columns]) for row in rows]
    return scrolling(tag("table", tag("thead", head), tag("tbody", *body), class_="sortable"), name)


def _columns(board: Leaderboard, given: Sequence[str], kind: str, ranked: bool) -> list[tuple[str, str, bool]]:
    """Key, heading, and whether it holds numbers, for each column that is shown."""
    level = f"{board.level:.0%}"
    known = [
        ("query", board.boards, False),
        ("rank", "rank", True),
        ("item", "item", False),
        ("score", "score", True),
        ("interval", f"{level} interval", True),
        ("rank_low", f"ranks ({level})", True),
        ("group", "group", True),
        (kind, kind, True),
    ]
    shown = {*given, *(("interval",) if "std_error" in given else ())}
    hidden = set() if ranked else {"rank", "rank_low", "group"}
    return [column for column in known if column[0] in shown - hidden]


def _head(label: str, key: str, is_number: bool) -> Html:
    # a first click sorts as one reads: the best rank and the first name at the top, but the largest number
    ascending = key in ("rank", "rank_low", "group") or not is_number
    return tag(
        "th",
        tag("button", label, type="button"),
        scope="col",
        class_="num" if is_number else None,
        data_kind="number" if is_number else "text",
        data_first="ascending" if ascending else "descending",
        aria_sort="ascending" if key == "rank" else None,
    )


def _row(row: dict[str, Any], columns: Sequence[tuple[str, bool]]) -> Html:
    cells = []
    for key, is_number in columns:
        value = row["score"] if key == "interval" else row[key]
        cells.append(tag("td", row["text"].get(key, value), data_value=value, class_="num" if is_number else None))
    return tag("tr", *cells, data_item=row["item"], data_query=row.get("query"))


def _interval(row: dict[str, Any], z: float, digits: int) -> str:
    if "std_error" not in row:
        return ""
    low, high = row["score"] - z * row["std_error"], row["score"] + z * row["std_error"]
    return f"{low:.{digits}f} to {high:.{digits}f}"


def _ranks(row: dict[str, Any]) -> str:
    if "rank_low" not in row:
        return ""
    low, high = row["rank_low"], row["rank_high"]
    return f"{low}–{high}" if low < high else str(low)
