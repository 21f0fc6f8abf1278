"""crowdrank learn and predict: learn a ranking function from ranked lists and features, and rank new items with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli import options
from crowdrank.cli.options import (
    INPUT,
    MODEL,
    OUTPUT,
    SIDE_INFORMATION,
    Words,
    parse_columns,
    parse_order,
    parse_quality,
    parse_set,
)
from crowdrank.cli.output import check_table, console, print_json, print_written, progress_bar, spinner, with_flags
from crowdrank.errors import CrowdrankWarning, SettingError

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from crowdrank.data import Rankings, SideInformation
    from crowdrank.ltr import CrowdRanker, Features, RankingFunction


class TrainingLabels(StrEnum):
    """Lists that a ranking function is trained on."""

    AUTO = "auto"
    MAP = "map"
    EXPECTED = "expected"


# The options.

File = Annotated[Path, typer.Argument(help="Annotators' ranked lists; with --lists, the features.")]
FeaturesOption = Annotated[
    Path | None, typer.Option(help="Features of the items (.csv, .parquet, LETOR …).", rich_help_panel=INPUT)
]
Lists = Annotated[
    Path | None,
    typer.Option(help="Annotators' lists, if the first file holds the features.", rich_help_panel=INPUT),
]
Query = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of the lists that holds the query.", rich_help_panel=INPUT),
]
Method = Annotated[
    str,
    typer.Option(metavar="NAME", help="Learning method: auto, ltr-crowds, or a baseline.", rich_help_panel=MODEL),
]
Ranker = Annotated[
    str, typer.Option(metavar="NAME", help="Kind of ranking function: linear or lightgbm.", rich_help_panel=MODEL)
]
Top = Annotated[
    int | None,
    typer.Option(
        help="Read only the first TOP items of each list; all others count as worse.", min=1, rich_help_panel=MODEL
    ),
]
Labels = Annotated[
    TrainingLabels,
    typer.Option(
        help="Train on the most likely true list (map) or on all lists, weighted by probability (expected); "
        "auto tries both.",
        rich_help_panel=MODEL,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.", min=0, rich_help_panel=MODEL)]
Truth = Annotated[
    Path | None, typer.Option(help="True order of the items of some queries.", rich_help_panel=SIDE_INFORMATION)
]
TruthColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--truth-column",
        metavar="ROLE=COLUMN",
        help="Column for a role in the truth: item, query, value (larger is better) or rank (smaller is better).",
        rich_help_panel=SIDE_INFORMATION,
    ),
]
AnnotatorQuality = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Known expertise θ of an annotator, negative for good ones: ann=-2.5 or ann=-3..-1. Repeatable.",
        rich_help_panel=SIDE_INFORMATION,
    ),
]
Out = Annotated[
    Path | None, typer.Option(help="Write the ranking function, for `crowdrank predict`.", rich_help_panel=OUTPUT)
]


def learn(
    file: File,
    features: FeaturesOption = None,
    lists: Lists = None,
    columns: options.Columns = None,
    query: Query = None,
    features_columns: options.FeatureTable = None,
    missing_features: options.MissingFeatureCells = options.MissingFeatures.REFUSE,
    method: Method = "auto",
    ranker: Ranker = "linear",
    top: Top = None,
    labels: Labels = TrainingLabels.AUTO,
    settings: options.Settings = None,
    seed: Seed = 0,
    truth: Truth = None,
    truth_columns: TruthColumns = None,
    annotator_quality: AnnotatorQuality = None,
    annotator_order: options.AnnotatorOrder = None,
    out: Out = None,
    as_json: options.Json = False,
    engine: options.Engine = None,
    scheduler: options.Scheduler = None,
) -> None:
    """Learn a ranking function for new items from features and ranked lists."""
    from crowdrank.engines import check_engine, open_engine
    from crowdrank.ltr import CrowdRanker
    from crowdrank.models.selection import parse_settings
    from crowdrank.pipeline import load_gold

    if (features is None) == (lists is None):
        raise SettingError("Give lists and --features, or features and --lists: learning needs both.")
    check_engine(engine, scheduler)
    chosen: dict[str, Any] = {
        "method": method,
        "ranker": ranker,
        "top": top,
        "labels": labels.value,
        "side_information": _side_information(annotator_quality, annotator_order),
    }
    given = parse_settings(CrowdRanker, parse_set(settings), seed)
    if twice := sorted(set(chosen) & set(given)):
        raise SettingError(f"--set {twice[0]}=… is not possible: use --{twice[0]}.")
    learner = CrowdRanker(**chosen, **given)
    known_truth = load_gold(truth, parse_columns(truth_columns, option="--truth-column"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CrowdrankWarning)
        training = _read(
            file if lists is None else lists,
            file if features is None else features,
            parse_columns(columns, query),
            parse_columns(features_columns, option="--features-column"),
            missing_features.value,
        )
        with open_engine(engine, scheduler) as where, _steps(learner) as step_done:
            function = learner.fit(training.lists, training.features, known_truth, step_done, where)
    raised = list(dict.fromkeys(str(w.message) for w in caught if isinstance(w.message, CrowdrankWarning)))
    notes = [with_flags(note) for note in (*training.notes, *raised, *function.notes)]
    if out is not None:
        function.save(out)
    if as_json:
        print_json(_as_dict(function, training, notes))
    else:
        _print_tables(function, training, notes, out)


def _side_information(annotator_quality: Words, annotator_order: Words) -> SideInformation:
    from crowdrank.data import SideInformation

    quality = parse_quality(annotator_quality)
    return SideInformation(
        quality={name: value for name, value in quality.items() if not isinstance(value, tuple)},
        between={name: value for name, value in quality.items() if isinstance(value, tuple)},
        better=parse_order(annotator_order),
    )


@dataclass(frozen=True)
class _TrainingData:
    """Lists and features as read, how other judgments were converted to lists, and notes on the files."""

    lists: Rankings
    features: Features
    conversion: str
    notes: list[str]


def _read(
    lists: Path, features: Path, roles: dict[str, str | None], columns: dict[str, str | None], missing: str
) -> _TrainingData:
    from crowdrank.data import Rankings
    from crowdrank.io import read_with_report
    from crowdrank.io.feature_tables import read_features
    from crowdrank.ltr.features import build_features
    from crowdrank.models import PlackettLuce
    from crowdrank.models.selection import convert_for

    with spinner(f"Reading {features.name}"):
        found = read_features(features, columns=columns)
        known = build_features(found, missing)  # type: ignore[arg-type]
    with spinner(f"Reading {lists.name}"):
        judgments, report = read_with_report(lists, columns=roles)
    converted, conversion = convert_for(PlackettLuce, judgments)
    assert isinstance(converted, Rankings)
    ignored = f"Ignored columns of {features.name} without numbers: {', '.join(found.left_out)}."
    notes = [*([ignored] if found.left_out else []), *found.notes, *filter(None, [report.dropped_summary()])]
    return _TrainingData(converted, known, conversion, notes)


@contextmanager
def _steps(learner: CrowdRanker) -> Iterator[Callable[[int], None]]:
    """A progress bar of EM steps; their number is an upper bound."""
    runs = 1 + (learner.held_out > 0) * (2 if learner.labels == "auto" else 1)
    done, most = 0, runs * learner.iterations
    with progress_bar("Learning") as show:

        def step_done(step: int) -> None:
            nonlocal done
            done += 1
            show(done, max(done, most), f"step {step}")

        yield step_done


def _print_tables(function: RankingFunction, training: _TrainingData, notes: list[str], out: Path | None) -> None:
    from crowdrank.reports import facts

    screen = console()
    screen.print(f"{facts(training.lists)}; {len(function.names):,} features.")
    if training.conversion:
        screen.print(f"Converted to lists: {training.conversion}.", style="dim")
    screen.print(f"Learned by {function.method}: a {function.settings['ranker']} function.\n")
    if function.expertise is not None:
        screen.print(_annotators_table(function))
        screen.print(
            "Pairs right: share of a typical list's pairs in the right order; negative θ is good.\n", style="dim"
        )
    if function.validation is not None:
        screen.print(f"Validation: {function.validation}.")
    for note in notes:
        screen.print(f"Note: {note}", style="yellow")
    if out is not None:
        screen.print(f"Written to {out}.", soft_wrap=True)


def _annotators_table(function: RankingFunction) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("annotator", overflow="fold", max_width=40)
    for head in ("θ", "between", "pairs right", "lists"):
        table.add_column(head, justify="right")
    table.add_column("verdict")
    frame = function.annotators.verdict_frame()
    digits = 2 if abs(frame["expertise"]).max() >= 1 else 3  # type: ignore[operator]
    for row in frame.iter_rows(named=True):
        between = f"{row['expertise_low']:.{digits}f} … {row['expertise_high']:.{digits}f}"
        table.add_row(
            Text(row["annotator"]),
            f"{row['expertise']:.{digits}f}",
            between,
            f"{row['pairs_right']:.0%}",
            f"{row['judgments']:,}",
            row["verdict"],
        )
    return table


def _as_dict(function: RankingFunction, training: _TrainingData, notes: list[str]) -> dict[str, Any]:
    annotators, validation = function.expertise, function.validation
    return {
        "method": function.method,
        "settings": dict(function.settings),
        "features": list(function.names),
        "lists": len(training.lists),
        "annotators": None if annotators is None else function.annotators.verdict_frame().to_dicts(),
        "validation": None if validation is None else asdict(validation),
        "convergence": asdict(function.convergence),
        "notes": notes,
    }


_MAX_QUERIES_SHOWN = 10


def predict(
    model: Annotated[Path, typer.Argument(help="Ranking function written by `crowdrank learn`.")],
    file: Annotated[Path, typer.Argument(help="Features of the items to rank (.csv, .parquet, LETOR …).")],
    columns: options.FeatureTable = None,
    missing_features: options.MissingFeatureCells = options.MissingFeatures.REFUSE,
    top: Annotated[int, typer.Option(help="Items to show per query.", min=1, rich_help_panel=options.OUTPUT)] = 20,
    wide: options.Wide = False,
    out: options.TableOut = None,
    as_json: options.Json = False,
) -> None:
    """Rank items by their features, with a ranking function from `crowdrank learn`."""
    from crowdrank.io import write_table
    from crowdrank.io.feature_tables import read_features
    from crowdrank.ltr import RankingFunction
    from crowdrank.ltr.features import build_features

    check_table(out)
    function = RankingFunction.load(model)
    with spinner(f"Ranking {file.name}"):
        roles = parse_columns(columns, option="--features-column")
        frame = function.frame(build_features(read_features(file, columns=roles), missing_features.value))
    if out is not None:
        write_table(frame, out)
    if as_json:
        print_json(frame.to_dicts())
        return
    _show(frame, top, wide)
    print_written([out])


def _show(frame: pl.DataFrame, top: int, wide: bool) -> None:
    from rich.table import Table

    from crowdrank.reports import label, number_column

    screen = console(wide=wide)
    queries = frame.partition_by("query", maintain_order=True) if "query" in frame.columns else [frame]
    for query in queries[:_MAX_QUERIES_SHOWN]:
        name = label(query["query"][0]) if "query" in query.columns else None
        table = Table(title=name, title_justify="left", box=None, pad_edge=False)
        number_column(table, "rank")
        table.add_column("item")
        number_column(table, "score")
        for row in query.head(top).iter_rows(named=True):
            table.add_row(str(row["rank"]), label(row["item"]), f"{row['score']:.3f}")
        if query.height > top:
            table.add_row("", f"… and {query.height - top:,} more", style="dim")
        screen.print(table)
        screen.print()
    if (more := len(queries) - _MAX_QUERIES_SHOWN) > 0:
        screen.print(f"… and {more:,} more queries: --out writes them all.", style="dim")
