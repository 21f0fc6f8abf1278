"""crowdrank compare: which model suits these judgments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli.options import parse_columns
from crowdrank.cli.progress import counting, doing

if TYPE_CHECKING:
    from rich.table import Table

    from crowdrank.evaluation import Gold, ModelComparison
    from crowdrank.evaluation.cross_validation import PairedScore
    from crowdrank.evaluation.estimates import Estimate
    from crowdrank.evaluation.model_comparison import ModelScore

Words = list[str] | None
_NAMES = {"log_likelihood": "log chance", "agreement": "agreement"}


def compare(
    file: Annotated[Path, typer.Argument(help="Comparisons, ratings or lists, in any format of `crowdrank formats`.")],
    gold: Annotated[Path | None, typer.Option(help="A file of known truth to grade every model by.")] = None,
    gold_columns: Annotated[
        Words, typer.Option("--gold-map", help="Of the gold: item=…, value=…, or rank=… where smaller is better.")
    ] = None,
    models: Annotated[str | None, typer.Option(help="Which models, a,b,c, slow ones too; else all but those.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Features that should not matter, for factor-bt: position, or columns a,b,c.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="The column that holds the query.")] = None,
    columns: Annotated[Words, typer.Option("--map", help="What a column holds: annotator=who, left=first …")] = None,
    kind: Annotated[str | None, typer.Option(help="What the rows are: comparisons, ratings or rankings.")] = None,
    folds: Annotated[int, typer.Option(help="Into how many parts judgments are dealt, each held out once.")] = 5,
    out: Annotated[Path | None, typer.Option(help="Write the table: .csv .tsv .jsonl .parquet.")] = None,
    seed: Annotated[int, typer.Option(help="Of the deal: the same seed gives the same answer.", min=0)] = 0,
    format_name: Annotated[
        str | None, typer.Option("--format", help="Whose format it is, if not to be guessed (see `crowdrank formats`).")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a text file that is not UTF-8: latin-1 …")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")] = False,
) -> None:
    """Compare the models on these judgments, by answers they have not seen, and say which to take."""
    from crowdrank.evaluation import compare_models
    from crowdrank.io import read_with_report, write_table
    from crowdrank.reports import facts

    wanted = _names(features)
    with doing(f"Reading {file.name}"):
        judgments, _ = read_with_report(
            file,
            kind=kind,
            columns=parse_columns(columns, query),
            format=format_name,
            encoding=encoding,
            features=[name for name in wanted or [] if name != "position"],
        )
    known = None if gold is None else _gold(gold, parse_columns(gold_columns, None))
    with counting("Fitting") as tell:
        found = compare_models(
            judgments, _names(models), gold=known, features=wanted, folds=folds, seed=seed, on_progress=tell
        )
    if out is not None:
        write_table(found.frame(), out)
    if as_json:
        import json

        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False))
        return
    _show(found, f"{facts(judgments)}.", out)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _gold(file: Path, columns: dict[str, str | None]) -> Gold:
    from crowdrank.evaluation import Gold
    from crowdrank.io import read_gold

    known = read_gold(file, columns=columns)
    return Gold.of(known.item, known.value, query=known.query)


def _show(found: ModelComparison, headline: str, out: Path | None) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.print(headline)
    console.print(f"{_held_out(found)}\n")
    console.print(_table(found))
    console.print(_legend(found), style="dim")
    if found.left_out:
        console.print("\nNot compared:", style="dim")
        for name, reason in found.left_out.items():
            console.print(f"  {name}: {reason}", style="dim")
    console.print(f"\n{found.recommendation.why}", style="bold")
    for note in found.recommendation.notes:
        console.print(f"Note: {note}", style="yellow")
    if out is not None:
        console.print(f"Written to {out}.", soft_wrap=True)


def _held_out(found: ModelComparison) -> str:
    ways = " and ".join(f"{count:,} by {by}" for by, count in found.answers.items())
    return f"Answers held out in {found.folds} folds: {ways}."


def _legend(found: ModelComparison) -> str:
    unit = (
        "Log chance: of an answer held out, in nats; a coin gives −0.693. "
        if found.criterion == "log_likelihood"
        else "Agreement: the share of pairs held out whose first item has the higher score. "
    )
    strangers = " Of strangers: the same with whole annotators held out." if "annotator" in found.answers else ""
    gold = " Accuracy: against gold." if found.models[0].evaluation is not None else ""
    return f"{unit}More: than {found.baseline}, ± the standard error of the difference.{strangers}{gold}"


def _table(found: ModelComparison) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("model", no_wrap=True)
    graded = any(entrant.evaluation is not None for entrant in found.models)
    heads = [_NAMES[found.criterion], "more"]
    heads += ["of strangers"] * ("annotator" in found.answers)
    heads += ["agreement"] * (found.criterion == "log_likelihood")
    heads += ["accuracy", "more"] * graded
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
