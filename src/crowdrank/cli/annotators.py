"""crowdrank annotators: how reliable each annotator is, and the ranking without some of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli import options, rank_options
from crowdrank.cli.options import INPUT, MODEL, OUTPUT
from crowdrank.cli.output import check_table, console, print_json, print_written, spinner, with_flags
from crowdrank.cli.rank_tables import print_reliability, reliability_of
from crowdrank.errors import ConvergenceWarning, CrowdrankWarning, SettingError, UnknownNameError

if TYPE_CHECKING:
    import polars as pl

    from crowdrank.data import Judgments, SideInformation
    from crowdrank.evaluation import RankChanges, Verdicts
    from crowdrank.evaluation.psychometrics import Reliability
    from crowdrank.pipeline import PreparedData
    from crowdrank.results import Ranking

_MAX_NAMES, _MAX_ITEMS = 8, 3

Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Show the ranking without an annotator, or without all with a verdict, e.g. reversed. Repeatable.",
        rich_help_panel=INPUT,
    ),
]
ExcludeFile = Annotated[
    Path | None, typer.Option(help="File of annotators to exclude, in a column annotator.", rich_help_panel=INPUT)
]


# The options.

ModelName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Model that estimates the quality of annotators. Default: as `crowdrank rank`, if possible.",
        autocompletion=options.complete_model,
        rich_help_panel=MODEL,
    ),
]
Level = Annotated[float, typer.Option(help="False discovery rate of the tests behind verdicts.", rich_help_panel=MODEL)]
Seed = Annotated[
    int, typer.Option(help="Seed of the split of annotators behind verdicts.", min=0, rich_help_panel=MODEL)
]
NoVerdicts = Annotated[
    bool, typer.Option("--no-verdicts", help="Print estimates only, which is faster.", rich_help_panel=MODEL)
]
Top = Annotated[
    int,
    typer.Option(help="Number of annotators to show at the top and at the bottom.", min=1, rich_help_panel=OUTPUT),
]


def annotators(
    files: options.JudgmentFiles,
    columns: options.Columns = None,
    query: options.Query = None,
    kind: options.KindOfRows = None,
    format_name: options.FormatName = None,
    encoding: options.Encoding = None,
    header: options.Header = None,
    model: ModelName = None,
    settings: options.Settings = None,
    level: Level = 0.05,
    seed: Seed = 0,
    no_verdicts: NoVerdicts = False,
    show_reliability: rank_options.ShowReliability = False,
    gold_pairs: options.GoldPairs = None,
    annotator_quality: options.AnnotatorQuality = None,
    annotator_order: options.AnnotatorOrder = None,
    people: options.People = None,
    exclude: Exclude = None,
    exclude_file: ExcludeFile = None,
    top: Top = 10,
    wide: options.Wide = False,
    out: options.TableOut = None,
    as_json: options.Json = False,
) -> None:
    """Show how reliable each annotator is: estimate, interval, verdict and reason."""
    given = dict(locals())  # the options by name
    from crowdrank import models
    from crowdrank.models.selection import models_that
    from crowdrank.pipeline import prepare

    check_table(out)
    excluding = bool(exclude) or exclude_file is not None
    if model is not None and not excluding:
        _check_models_annotators(models.by_name(model), model)
    own = {"exclude", "level", "seed"}  # names that mean something else to the pipeline
    chosen = rank_options.pipeline_options({name: value for name, value in given.items() if name not in own})
    among = None if excluding else models_that("models_annotators")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CrowdrankWarning)
        prepared = prepare(options.source_of(files), chosen, spinner, among=among)
        judge = partial(_verdicts, prepared.judgments, level, seed, prepared.side_information)
        if excluding:
            names = excluded_annotators(exclude, exclude_file, prepared.judgments, judge)
            _show_exclusion(prepared, names, out, top, as_json, wide)
            return
        with spinner("Estimating the quality of annotators"):
            ranking = prepared.model.fit(prepared.converted, side_information=prepared.side_information)
            ranking.annotators.to_polars()  # estimated here, which may warn
    found = None if no_verdicts else judge()
    measured = reliability_of(prepared.model, prepared.converted, ranking, seed) if show_reliability else None
    frame = _estimates(ranking, found, measured)
    if not as_json:
        _show(frame, found, *_sentences(prepared, ranking), top, wide)
        if measured is not None:
            print_reliability(console(wide=wide), measured)
        if found is None and not no_verdicts:
            typer.echo("No verdicts: comparisons made from lists or ratings are not independent answers.")
    _deliver(frame.to_dicts(), frame, out, as_json)
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            typer.echo(f"Note: {with_flags(str(warning.message))}", err=as_json)


def _show_exclusion(
    prepared: PreparedData, names: Sequence[str], out: Path | None, top: int, as_json: bool, wide: bool
) -> None:
    """Rank with and without some annotators, and print the changes."""
    from crowdrank.evaluation import remove_annotators
    from crowdrank.reports import facts

    with spinner("Ranking with and without them"):
        changes = remove_annotators(
            prepared.model, prepared.converted, names, side_information=prepared.side_information
        )
    headline = f"{facts(prepared.judgments)}. Ranked by {prepared.choice.name}."
    _print_changes(changes, headline, out, top, as_json, wide)


def _estimates(ranking: Ranking, found: Verdicts | None, measured: Reliability | None) -> pl.DataFrame:
    """One row per annotator: estimates, misfit and verdict."""
    frame = ranking.annotators.to_polars()
    if measured is not None:
        misfit = measured.judges.select("infit", "outfit", annotator="judge")
        frame = frame.join(misfit, on="annotator", how="left", maintain_order="left")
    if found is not None:
        frame = frame.join(found.frame(), on="annotator", how="left", maintain_order="left")
    return frame


def _sentences(prepared: PreparedData, ranking: Ranking) -> tuple[str, str]:
    """What was estimated, and notes, for the head of the table."""
    from crowdrank.pipeline import describe_side_information
    from crowdrank.reports import facts

    notes = (describe_side_information(prepared), *_shared_errors(ranking, prepared))
    headline = f"{facts(prepared.judgments)}. Estimated by {prepared.choice.name}."
    return headline, "\n".join(filter(None, notes))


def _shared_errors(ranking: Ranking, prepared: PreparedData) -> list[str]:
    """The warning that the judges share errors."""
    from crowdrank.models.selection import shared_error_notes

    judged = ranking.model == "jury"
    notes = ranking.notes if judged else shared_error_notes(prepared.judgments, prepared.people)
    return [with_flags(note) for note in notes if "share errors" in note]


def _check_models_annotators(cls: type[Any], name: str) -> None:
    from crowdrank.models.selection import models_that

    if not cls.models_annotators:
        able = ", ".join(models_that("models_annotators"))
        raise SettingError(f"{name} does not estimate the quality of annotators: use one of {able}.")


def _print_changes(changes: RankChanges, headline: str, out: Path | None, top: int, as_json: bool, wide: bool) -> None:
    if not as_json:
        show_rank_changes(changes, headline, top, wide)
    _deliver(as_dict(changes), changes.frame(), out, as_json)
    if not changes.converged:
        typer.echo(f"Note: {changes.before.model} did not converge. Increase --set max_steps=….", err=as_json)


def _deliver(content: Any, frame: pl.DataFrame, out: Path | None, as_json: bool) -> None:
    """Write the table if a file was named, and print JSON if requested."""
    if out is not None:
        from crowdrank.io import write_table

        write_table(frame, out)
    if as_json:
        print_json(content)
    else:
        print_written([out])


def _verdicts(judgments: Judgments, level: float, seed: int, known: SideInformation | None) -> Verdicts | None:
    """None for judgments that are not comparisons: the tests need independent answers."""
    from crowdrank.data import Comparisons
    from crowdrank.evaluation import verdicts

    if not isinstance(judgments, Comparisons):
        return None
    with spinner("Comparing each annotator with the others"), warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        return verdicts(judgments, level=level, seed=seed, side_information=known)


def _show(frame: pl.DataFrame, found: Verdicts | None, headline: str, known: str, top: int, wide: bool) -> None:
    from crowdrank.reports import annotators_table

    screen = console(wide=wide)
    screen.print(headline)
    if known:
        screen.print(known, style="dim")
    if found is not None:
        counts = ", ".join(f"{count:,} {word}" for word, count in found.counts.items())
        for sentence in [] if found.camps is None else found.camps.describe():
            screen.print(sentence, style="bold yellow")
        screen.print(f"Verdicts: {counts}.")
    screen.print()
    screen.print(annotators_table(frame, top, wide))


def excluded_annotators(
    exclude: list[str] | None, file: Path | None, judgments: Judgments, judge: Callable[[], Verdicts | None]
) -> list[str]:
    """Annotators given by name, in a file or by a verdict. A name takes precedence over a verdict."""
    from crowdrank.evaluation.verdicts import VERDICTS
    from crowdrank.io import read_annotators

    names = [str(label) for label in judgments.annotators]
    chosen = [] if file is None else list(read_annotators(file).annotators)
    found: Verdicts | None = None
    for word in exclude or []:
        if word in names:
            chosen.append(word)
        elif word in VERDICTS:
            found = found or judge()
            if found is None:
                raise SettingError("Verdicts need comparisons, not lists or ratings: name the annotators to exclude.")
            chosen += [str(label) for label in found.annotators[found.verdict == word]]
        else:
            raise UnknownNameError("annotator or verdict", word, [*names, *VERDICTS])
    if not chosen:
        raise SettingError("No annotator to exclude: none has this verdict, or the file names none.")
    return list(dict.fromkeys(chosen))


def show_rank_changes(changes: RankChanges, headline: str, top: int, wide: bool = False) -> None:
    """Print who is excluded, how much that changes, and the items that move furthest."""
    screen = console(wide=wide)
    screen.print(headline)
    for line in _summary(changes):
        screen.print(line)
    screen.print()
    frame = changes.to_polars()
    for query in frame.partition_by("query", maintain_order=True) if "query" in frame.columns else [frame]:
        _show_query(screen.print, query, top)
    if lost := int((~changes.still_judged).sum()):
        items = "1 item was" if lost == 1 else f"{lost:,} items were"
        screen.print(f"Note: {items} judged by nobody else and cannot be ranked without them.", style="yellow")


def _summary(changes: RankChanges) -> list[str]:
    from crowdrank.reports import short

    names = ", ".join(map(short, changes.excluded[:_MAX_NAMES])) + (", …" if len(changes.excluded) > _MAX_NAMES else "")
    count = "1 annotator" if len(changes.excluded) == 1 else f"{len(changes.excluded):,} annotators"
    changed = f"{changes.n_moved:,} of {len(changes.still_judged):,} items change rank"
    correlation = (
        "" if changes.correlation != changes.correlation else f" (Kendall correlation {changes.correlation:.3f})"
    )
    first = f"Without {count} and their {changes.n_judgments:,} judgments: {names}."
    if not changes.n_moved:
        return [first, "No item changes rank."]
    return [first, f"{changed}{correlation}; furthest, {_furthest(changes)}."]


def _furthest(changes: RankChanges) -> str:
    import polars as pl

    from crowdrank.reports import short

    frame = (
        changes.to_polars()
        .filter(pl.col("moved") != 0)
        .sort(pl.col("moved").abs(), descending=True, maintain_order=True)
    )
    return ", ".join(
        f"{short(row['item'])} ({_positions(row['moved'])})" for row in frame.head(_MAX_ITEMS).iter_rows(named=True)
    )


def as_dict(changes: RankChanges) -> dict[str, object]:
    correlation = changes.correlation
    return {
        "excluded": list(changes.excluded),
        "judgments": changes.n_judgments,
        "items_moved": changes.n_moved,
        "kendall_correlation": None if correlation != correlation else correlation,
        "converged": changes.converged,
        "ranking": changes.frame().to_dicts(),
    }


def _show_query(show: Callable[..., None], frame: pl.DataFrame, top: int) -> None:
    from rich.table import Table

    from crowdrank.reports import label, number_column

    title = label(frame["query"][0]) if "query" in frame.columns else None
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    number_column(table, "rank")
    number_column(table, "without")
    table.add_column("item")
    number_column(table, "moved")
    for row in frame.head(2 * top).iter_rows(named=True):
        without = "" if row["rank_without"] is None else str(row["rank_without"])
        table.add_row(str(row["rank"]), without, label(row["item"]), _positions(row["moved"]))
    if frame.height > 2 * top:
        table.add_row("", "", f"… and {frame.height - 2 * top:,} more", style="dim")
    show(table)
    show()


def _positions(moved: int | None) -> str:
    if not moved:
        return ""
    return f"{abs(moved)} {'up' if moved > 0 else 'down'}"
