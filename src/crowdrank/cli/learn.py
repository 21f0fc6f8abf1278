"""crowdrank learn: from items with features and several annotators' lists to a function that ranks new items."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.engine_options import EngineName, Scheduler, check_engine, opened
from crowdrank.cli.options import parse_columns, parse_settings
from crowdrank.cli.progress import counting, doing
from crowdrank.cli.side_information import _order, _qualities
from crowdrank.errors import CrowdrankWarning, SettingError

if TYPE_CHECKING:
    from crowdrank.data import Better, Between, Known, Rankings
    from crowdrank.evaluation import Gold
    from crowdrank.ltr import CrowdRanker, Features, RankingFunction

Words = list[str] | None


def learn(
    file: Annotated[Path, typer.Argument(help="Annotators' lists; or, with --lists, the features.")],
    features: Annotated[Path | None, typer.Option(help="Features of the items: .csv, .parquet, LETOR …")] = None,
    lists: Annotated[
        Path | None, typer.Option(help="Annotators' lists, where the first file has the features.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to keep the function, for crowdrank predict.")] = None,
    method: Annotated[str, typer.Option(help="How to learn: ltr-crowds, or a baseline.")] = "ltr-crowds",
    ranker: Annotated[str, typer.Option(help="The kind of function: linear or lightgbm.")] = "linear",
    top: Annotated[int | None, typer.Option(help="Lists say which items come first, so many of them.", min=1)] = None,
    labels: Annotated[str, typer.Option(help="What to learn from: map, expected, or auto by validation.")] = "auto",
    truth: Annotated[Path | None, typer.Option(help="What is known to be true of some queries, as gold.")] = None,
    truth_columns: Annotated[
        Words, typer.Option("--truth-map", help="Of the truth: item=…, value=…, or rank=… where smaller is better.")
    ] = None,
    known: Annotated[
        Words, typer.Option("--known", help="An annotator's expertise θ, below 0 for good ones: ann=-2.5, ann=-3..-1.")
    ] = None,
    better: Annotated[Words, typer.Option("--better", help="Who is better than whom: ann>bob.")] = None,
    query: Annotated[str | None, typer.Option(help="The column of the lists that holds the query.")] = None,
    columns: Annotated[Words, typer.Option("--map", help="What a column of the lists holds: annotator=who …")] = None,
    features_columns: Annotated[
        Words, typer.Option("--features-map", help="Of the features: item=…, query=…, grade=… (grade= for none).")
    ] = None,
    missing_features: Annotated[str, typer.Option(help="Cells without a number: refuse, or zero.")] = "refuse",
    settings: Annotated[Words, typer.Option("--set", help="Another setting: prior_lists=2, iterations=15 …")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same function.", min=0)] = 0,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")] = False,
) -> None:
    """Learn a function that ranks new items, from features and several annotators' lists."""
    from crowdrank.ltr import CrowdRanker

    if (features is None) == (lists is None):
        raise SettingError("Give lists and --features, or features and --lists: it takes both to learn from.")
    check_engine(engine, scheduler, memory=None)
    told: dict[str, Any] = {
        "method": method,
        "ranker": ranker,
        "top": top,
        "labels": labels,
        "side_information": _side(known, better),
    }
    given = parse_settings(CrowdRanker, settings, seed)
    if twice := sorted(set(told) & set(given)):
        raise SettingError(f"--set {twice[0]}=… has an option of its own: --{twice[0]}.")
    teaching = CrowdRanker(**told, **given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CrowdrankWarning)
        lesson = _read(
            file if lists is None else lists,
            file if features is None else features,
            parse_columns(columns, query),
            parse_columns(features_columns, None),
            missing_features,
        )
        known_truth = None if truth is None else _truth(truth, parse_columns(truth_columns, None))
        with opened(engine, scheduler) as place, _steps(teaching) as tell:
            function = teaching.fit(lesson.lists, lesson.features, known_truth, tell, place)
    said = list(dict.fromkeys(str(w.message) for w in caught if isinstance(w.message, CrowdrankWarning)))
    notes = [*lesson.notes, *said, *function.notes]
    if out is not None:
        function.save(out)
    if as_json:
        _print_json(function, lesson, notes)
    else:
        _print_tables(function, lesson, notes, out)


def _side(known: Words, better: Words) -> list[Known | Between | Better]:
    """What the command line was told of annotators."""
    from crowdrank.data import Better, Between, Known

    values, ranges = _qualities(known)
    facts: list[Known | Between | Better] = [Known(who, value) for who, value in values.items()]
    facts += [Between(who, low, high) for who, (low, high) in ranges.items()]
    return facts + [Better(*_order(text)) for text in better or []]


@dataclass(frozen=True)
class Lesson:
    """What was read to learn from."""

    lists: Rankings
    features: Features
    rule: str
    """How other judgments were made lists, "" where they are."""
    notes: list[str]


def _read(
    lists: Path, features: Path, roles: dict[str, str | None], columns: dict[str, str | None], missing: str
) -> Lesson:
    from crowdrank.data import Rankings
    from crowdrank.io import read_with_report
    from crowdrank.io.feature_tables import read_features
    from crowdrank.ltr.features import build_features
    from crowdrank.models.conversion import as_read_by

    if missing not in ("refuse", "zero"):
        raise SettingError(f"--missing-features must be refuse or zero, got {missing!r}.")
    with doing(f"Reading {features.name}"):
        found = read_features(features, columns=columns)
        known = build_features(found, missing)  # type: ignore[arg-type]
    with doing(f"Reading {lists.name}"):
        judgments, report = read_with_report(lists, columns=roles)
    readable, rule = as_read_by(SimpleNamespace(reads=(Rankings,)), judgments)
    assert isinstance(readable, Rankings)
    left_out = f"Columns of {features.name} without numbers are no features: {', '.join(found.left_out)}."
    notes = [*([left_out] if found.left_out else []), *found.notes, *filter(None, [report.dropped()])]
    return Lesson(readable, known, rule, notes)


def _truth(path: Path, columns: dict[str, str | None]) -> Gold:
    from crowdrank.evaluation import Gold
    from crowdrank.io import read_gold

    known = read_gold(path, columns=columns)
    return Gold.of(known.item, known.value, query=known.query)


@contextmanager
def _steps(teaching: CrowdRanker) -> Iterator[Callable[[int], None]]:
    """A bar of steps; how many there will be is known only at most."""
    runs = 1 + (teaching.held_out > 0) * (2 if teaching.labels == "auto" else 1)
    done, most = 0, runs * teaching.iterations
    with counting("Learning") as show:

        def tell(step: int) -> None:
            nonlocal done
            done += 1
            show(f"step {step}", done, max(done, most))

        yield tell


def _print_tables(function: RankingFunction, lesson: Lesson, notes: list[str], out: Path | None) -> None:
    from rich.console import Console

    from crowdrank.reports import facts

    console = Console(highlight=False, markup=False)
    console.print(f"{facts(lesson.lists)}; {len(function.names):,} features.")
    if lesson.rule:
        console.print(f"Lists were made of other judgments: {lesson.rule}.", style="dim")
    console.print(f"Learnt by {function.method}: a {function.settings['ranker']} function.\n")
    if function.expertise is not None:
        console.print(_annotators_table(function))
        console.print("Pairs of a usual list that are put the right way round; θ below 0 is good.\n", style="dim")
    if function.validation is not None:
        console.print(f"Validation: {function.validation}.")
    for note in notes:
        console.print(f"Note: {note}", style="yellow")
    if out is not None:
        console.print(f"Written to {out}.", soft_wrap=True)


def _annotators_table(function: RankingFunction) -> Any:
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


def _print_json(function: RankingFunction, lesson: Lesson, notes: list[str]) -> None:
    import json

    people, checked = function.expertise, function.validation
    content = {
        "method": function.method,
        "settings": dict(function.settings),
        "features": list(function.names),
        "lists": len(lesson.lists),
        "annotators": None if people is None else function.annotators.verdict_frame().to_dicts(),
        "validation": None if checked is None else asdict(checked),
        "convergence": asdict(function.convergence),
        "notes": notes,
    }
    typer.echo(json.dumps(content, ensure_ascii=False))
