"""Options of crowdrank rank that few other commands have, and parsing of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.options import (
    ENGINE,
    INPUT,
    MODEL,
    OUTPUT,
    UncertaintyMethod,
    Words,
    complete_model,
    parse_columns,
    parse_names,
    parse_order,
    parse_pairs,
    parse_quality,
    parse_set,
)
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.pipeline import RankOptions

LEADERBOARD = "Leaderboard"


class ScaleName(StrEnum):
    """Scales on which scores are shown."""

    ELO = "elo"
    JOD = "jod"
    PROBABILITY = "probability"


Features = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="Features that should not matter: position, or columns. Needs --control or factor-bt.",
        rich_help_panel=LEADERBOARD,
    ),
]
Control = Annotated[
    bool,
    typer.Option(
        "--control",
        help="Remove the effect of --features from the ranking, and show it (bradley-terry, thurstone).",
        rich_help_panel=LEADERBOARD,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Leave out an annotator. Repeatable.", rich_help_panel=INPUT),
]
Aliases = Annotated[
    list[str] | None,
    typer.Option(
        "--alias",
        metavar="OLD=NEW",
        help="Rename an item; items with the same name are merged. Repeatable.",
        rich_help_panel=INPUT,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of categories, e.g. language: one leaderboard per category, shrunk towards the overall ranking.",
        rich_help_panel=LEADERBOARD,
    ),
]
Criteria = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of criteria, or several columns of winners (A,B,C): one leaderboard per criterion.",
        rich_help_panel=LEADERBOARD,
    ),
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="NAME=VALUE",
        help="Weight of a criterion in the overall ranking, e.g. helpful=2. Default: 1. Repeatable.",
        rich_help_panel=LEADERBOARD,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that says which votes belong together, e.g. prompt, or `annotator`.",
        rich_help_panel=LEADERBOARD,
    ),
]
ScaleOption = Annotated[
    ScaleName | None,
    typer.Option(
        help="Scale of the scores: Elo points, JOD, or the probability of beating the average item.",
        rich_help_panel=LEADERBOARD,
    ),
]
Append = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="New judgments: rank them with the others, starting from --out, and append them to the file.",
        rich_help_panel=INPUT,
    ),
]
Anchors = Annotated[
    list[str] | None,
    typer.Option(
        "--anchor",
        metavar="NAME=VALUE",
        help="Value of an item on the scale, e.g. gpt-4=1000. Repeatable.",
        rich_help_panel=LEADERBOARD,
    ),
]
LinkTo = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Earlier result (.json from --out) whose scale to keep: items in both keep their mean.",
        rich_help_panel=LEADERBOARD,
    ),
]
MinComparisons = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="List items with fewer judgments separately, as provisional.",
        min=0,
        rich_help_panel=LEADERBOARD,
    ),
]
OverTime = Annotated[
    bool,
    typer.Option(
        "--time",
        help="Let strengths drift over time: shows the final ranking, curves, and a test for change.",
        rich_help_panel=LEADERBOARD,
    ),
]
Period = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="Periods of --time: hour, day, week, month, or their number. Default: by the number of votes.",
        rich_help_panel=LEADERBOARD,
    ),
]
ShowReliability = Annotated[
    bool,
    typer.Option(
        "--reliability",
        help="Show scale separation, split-half reliability, agreement, and misfit of judges and items.",
        rich_help_panel=LEADERBOARD,
    ),
]
LeaderboardPage = Annotated[
    Path | None,
    typer.Option(
        "--leaderboard",
        metavar="DIR",
        help="Write a sortable page (index.html) and the table (ranking.csv) to a folder.",
        rich_help_panel=OUTPUT,
    ),
]

# The model, uncertainty, systems, and output.

ModelName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Model (see `crowdrank models`), or `auto` to compare models. Default: chosen by the data.",
        autocompletion=complete_model,
        rich_help_panel=MODEL,
    ),
]
Uncertainty = Annotated[
    UncertaintyMethod,
    typer.Option(help="How to compute uncertainty.", rich_help_panel=MODEL),
]
Level = Annotated[float, typer.Option(help="Level of the rank intervals.", rich_help_panel=MODEL)]
Simultaneous = Annotated[
    bool,
    typer.Option(
        "--simultaneous",
        help="Rank intervals that hold for all items simultaneously, for publication.",
        rich_help_panel=MODEL,
    ),
]
Measure = Annotated[
    str | None,
    typer.Option(metavar="ndcg", help="Order items for the largest expected NDCG.", rich_help_panel=MODEL),
]
Seed = Annotated[int | None, typer.Option(help="Seed of the random numbers.", rich_help_panel=MODEL)]
Items = Annotated[
    Path | None,
    typer.Option(help="File about the items, with columns for --features and --system.", rich_help_panel=INPUT),
]
ItemsColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--items-column",
        metavar="ROLE=COLUMN",
        help="Column for a role in the file about items: item or query.",
        rich_help_panel=INPUT,
    ),
]
System = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Compare systems: column that names the system behind an item, or `item`.",
        rich_help_panel=INPUT,
    ),
]
Top = Annotated[int, typer.Option(help="Items to show per query.", min=1, rich_help_panel=OUTPUT)]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Write the ranking (.csv, .xlsx, .md, .tex, .html, .jsonl, .parquet …) or the full result (.json).",
        rich_help_panel=OUTPUT,
    ),
]
ReportFile = Annotated[Path | None, typer.Option(help="Write a self-contained report (.html).", rich_help_panel=OUTPUT)]
Plot = Annotated[
    Path | None,
    typer.Option(help="Plot the top items with their intervals (.png, .svg, .html).", rich_help_panel=OUTPUT),
]
HeatMap = Annotated[
    Path | None,
    typer.Option(
        help="Plot the quality of annotators by domain (.png, .svg, .html), for models with domains.",
        rich_help_panel=OUTPUT,
    ),
]
WarmStart = Annotated[
    Path | None,
    typer.Option(help="Earlier result (.json from --out) that the solver starts from.", rich_help_panel=ENGINE),
]


def parse_anchors(pairs: Words) -> dict[str, float]:
    """`--anchor name=value`."""
    return _parse_numbers(pairs, "--anchor", "gpt-4=1000")


def parse_weights(pairs: Words) -> dict[str, float]:
    """`--weight name=value`."""
    return _parse_numbers(pairs, "--weight", "helpful=2")


def _parse_numbers(pairs: Words, option: str, example: str) -> dict[str, float]:
    numbers = {}
    for name, text in parse_pairs(pairs, option, example):
        try:
            numbers[name] = float(text)
        except ValueError as error:
            raise SettingError(f"{option} takes a number, such as {option} {example}; got {text!r}.") from error
    return numbers


def earlier_result(out: Path | None, model: str | None) -> Path | None:
    """The result that --out will replace, if the solver can start from it."""
    if out is None or out.suffix.lower() != ".json" or not out.is_file():
        return None
    from crowdrank.models import by_name
    from crowdrank.results import Ranking

    earlier = Ranking.load(out).model
    return out if by_name(earlier).supports_warm_start and model in (None, earlier) else None


def parse_time(over_time: bool, period: str | None) -> str | int | bool | None:
    """`--time` and `--period`; a period alone is enough."""
    if period is None:
        return over_time or None
    return int(period) if period.isdigit() else period


def parse_aliases(pairs: Words) -> dict[str, str]:
    """`--alias old=new`."""
    return dict(parse_pairs(pairs, "--alias", "old=new"))


def pipeline_options(given: Mapping[str, Any]) -> RankOptions:
    """The options of the pipeline. Most have the names of the command's; some are text to be parsed."""
    from crowdrank.pipeline import RankOptions

    parsed = {
        "settings": parse_set(given.get("settings")),
        "columns": parse_columns(given.get("columns")),
        "items_columns": parse_columns(given.get("items_columns"), option="--items-column"),
        "gold_columns": parse_columns(given.get("gold_columns"), option="--gold-column"),
        "features": parse_names(given.get("features")),
        "criteria": parse_names(given.get("criteria")),
        "aliases": parse_aliases(given.get("aliases")),
        "weights": parse_weights(given.get("weights")),
        "anchors": parse_anchors(given.get("anchors")),
        "annotator_quality": parse_quality(given.get("annotator_quality")),
        "annotator_order": parse_order(given.get("annotator_order")),
        "time": parse_time(given.get("over_time", False), given.get("period")),
        "format": given["format_name"],
        "score_scale": None if given.get("scale") is None else given["scale"].value,
        "init": given.get("warm_start"),
    }
    known = {field.name for field in fields(RankOptions)}
    return RankOptions.of(**{name: value for name, value in given.items() if name in known} | parsed)
