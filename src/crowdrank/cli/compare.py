"""crowdrank compare: which model predicts these judgments best."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli import options
from crowdrank.cli.options import MODEL, parse_columns, parse_names
from crowdrank.cli.output import check_table, console, print_json, progress_bar, spinner

if TYPE_CHECKING:
    from rich.table import Table

    from crowdrank.evaluation import ModelComparison
    from crowdrank.evaluation.cross_validation import Estimate, PairedScore
    from crowdrank.evaluation.model_comparison import ModelScore

_METRIC_NAMES = {"log_likelihood": "log score", "agreement": "agreement"}


def compare(
    files: options.JudgmentFiles,
    columns: options.Columns = None,
    query: options.Query = None,
    kind: options.KindOfRows = None,
    format_name: options.FormatName = None,
    encoding: options.Encoding = None,
    header: options.Header = None,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Models to compare. Default: all that read these judgments, except slow ones.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Features that should not matter, for factor-bt: position, or columns.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Number of cross-validation folds.", rich_help_panel=MODEL)] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the split into folds.", min=0, rich_help_panel=MODEL)] = 0,
    people: options.People = None,
    gold: options.Gold = None,
    gold_columns: options.GoldTable = None,
    wide: options.Wide = False,
    out: options.TableOut = None,
    as_json: options.Json = False,
) -> None:
    """Compare models on these judgments by cross-validation, and recommend one."""
    from crowdrank.data import people_from_names
    from crowdrank.evaluation import compare_models
    from crowdrank.io import read_people, read_with_report, write_table
    from crowdrank.pipeline import load_gold
    from crowdrank.reports import facts

    check_table(out)
    known = load_gold(gold, parse_columns(gold_columns, option="--gold-column"))
    wanted = parse_names(features)
    with spinner(f"Reading {files[0].name}"):
        judgments, _ = read_with_report(
            options.source_of(files),
            kind=kind,
            columns=parse_columns(columns, query),
            format=format_name,
            encoding=encoding,
            header=header,
            features=[name for name in wanted if name != "position"],
        )
    who = people_from_names(map(str, judgments.annotators)) if people is None else read_people(people)
    with progress_bar("Fitting") as show:
        found = compare_models(
            judgments,
            None if models is None else parse_names(models),
            gold=known,
            features=wanted or None,
            people=who,
            folds=folds,
            seed=seed,
            on_progress=lambda name, done, total: show(done, total, name),
        )
    if out is not None:
        write_table(found.frame(), out)
    if as_json:
        print_json(found.as_dict())
        return
    _show(found, f"{facts(judgments)}.", files, out, wide)


def _show(found: ModelComparison, headline: str, files: list[Path], out: Path | None, wide: bool) -> None:
    screen = console(wide=wide)
    screen.print(headline)
    screen.print(f"{_held_out(found)}\n")
    screen.print(_table(found))
    screen.print(_legend(found), style="dim")
    if found.left_out:
        screen.print("\nNot compared:", style="dim")
        for name, reason in found.left_out.items():
            screen.print(f"  {name}: {reason}", style="dim")
    screen.print(f"\n{found.recommendation.why}", style="bold")
    if found.recommendation.model != found.recommendation.default:
        command = f"crowdrank rank {shlex.join(map(str, files))} --model {found.recommendation.model}"
        screen.print(f"To use it: {command}", soft_wrap=True)
    for note in found.recommendation.notes:
        screen.print(f"Note: {note}", style="yellow")
    if out is not None:
        screen.print(f"Written to {out}.", soft_wrap=True)


def _held_out(found: ModelComparison) -> str:
    ways = " and ".join(f"{count:,} by {by}" for by, count in found.answers.items())
    return f"Answers held out in {found.folds} folds: {ways}."


def _legend(found: ModelComparison) -> str:
    unit = (
        "Log score: mean log probability of a held-out answer, in nats (coin toss: −0.693). "
        if found.criterion == "log_likelihood"
        else "Agreement: share of held-out pairs whose winner has the higher score. "
    )
    unknown = " New annotators: the same with whole annotators held out." if "annotator" in found.answers else ""
    gold = " Accuracy: against gold." if found.models[0].evaluation is not None else ""
    return f"{unit}Gain: over {found.baseline}, ± the standard error of the difference.{unknown}{gold}"


def _table(found: ModelComparison) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("model", no_wrap=True)
    graded = any(entrant.evaluation is not None for entrant in found.models)
    heads = [_METRIC_NAMES[found.criterion], "gain"]
    heads += ["new annotators"] * ("annotator" in found.answers)
    heads += ["agreement"] * (found.criterion == "log_likelihood")
    heads += ["accuracy", "gain"] * graded
    for head in heads:
        table.add_column(head, justify="right")
    for entrant in found.models:
        style = "bold" if entrant.model == found.recommendation.model else ""
        table.add_row(entrant.model, *_cells(entrant, found, graded), style=style)
    return table


def _cells(entrant: ModelScore, found: ModelComparison, graded: bool) -> list[str]:
    marks = entrant.log_likelihood if found.criterion == "log_likelihood" else entrant.agreement
    main = marks.get(next(iter(found.answers)))
    plain = entrant.model == found.baseline
    cells = [_mean(main), "" if plain or main is None else _signed(main.gain)]
    if "annotator" in found.answers:
        mark = marks.get("annotator")
        cells.append("" if plain or mark is None else _signed(mark.gain))
    if found.criterion == "log_likelihood":
        cells.append(_mean(entrant.agreement.get("judgment")))
    if graded:
        cells.append("" if entrant.evaluation is None else f"{entrant.evaluation.accuracy:.3f}")
        gain = entrant.accuracy_gain
        cells.append("" if gain is None or plain else _signed(gain))
    return cells


def _mean(mark: PairedScore | None) -> str:
    return "" if mark is None else f"{mark.mean.value:.3f}"


def _signed(found: Estimate) -> str:
    error = "" if found.std_error != found.std_error else f" ± {found.std_error:.3f}"
    return f"{found.value:+.3f}{error}"
