"""crowdrank annotators: who to believe."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.exclusion import Exclude, ExcludeFile, as_dict, excluded, show_moves
from crowdrank.cli.options import parse_columns, parse_settings
from crowdrank.cli.progress import doing
from crowdrank.cli.side_information import Better, GoldPairs, Known, confirmed, told
from crowdrank.errors import ConvergenceWarning, CrowdrankWarning, SettingError

if TYPE_CHECKING:
    import polars as pl

    from crowdrank.evaluation import RankChanges, Verdicts

Words = list[str] | None


def annotators(
    file: Annotated[Path, typer.Argument(help="Judgments that name annotators, in any format of `crowdrank formats`.")],
    model: Annotated[str, typer.Option(help="Which model: one that weighs annotators.")] = "crowd-bt",
    query: Annotated[str | None, typer.Option(help="The column that holds the query.")] = None,
    columns: Annotated[Words, typer.Option("--map", help="What a column holds: annotator=who, left=first …")] = None,
    gold_pairs: GoldPairs = None,
    known: Known = None,
    better: Better = None,
    exclude: Exclude = None,
    exclude_file: ExcludeFile = None,
    out: Annotated[Path | None, typer.Option(help="Write the table: .csv .tsv .jsonl .parquet.")] = None,
    top: Annotated[int, typer.Option(help="How many of the best and of the worst to show.", min=1)] = 10,
    level: Annotated[float, typer.Option(help="Of the tests behind verdicts: accusations that may be false.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of the split of annotators behind verdicts.", min=0)] = 0,
    no_verdicts: Annotated[bool, typer.Option("--no-verdicts", help="Estimates only, which is quicker.")] = False,
    settings: Annotated[Words, typer.Option("--set", help="A setting of the model: quality_prior=2,1 …")] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help="Whose format it is, if not to be guessed (see `crowdrank formats`).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")] = False,
) -> None:
    """Say how far each annotator can be believed, with an interval, a verdict and its reason."""
    from crowdrank import models
    from crowdrank.evaluation import remove_annotators
    from crowdrank.io import read_with_report
    from crowdrank.models.conversion import as_read_by
    from crowdrank.reports import facts

    chosen = models.by_name(model)
    excluding = bool(exclude) or exclude_file is not None
    if not excluding:
        _need_weights(chosen, model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CrowdrankWarning)
        with doing(f"Reading {file.name}"):
            judgments, _ = read_with_report(file, columns=parse_columns(columns, query), format=format_name)
        fitting = chosen(**parse_settings(chosen, settings, None))
        readable = told(fitting, as_read_by(fitting, judgments)[0], gold_pairs, known, better, query)
        if excluding:
            names = excluded(exclude, exclude_file, judgments, lambda: _judge(judgments, level, seed))
            with doing("Ranking with and without them"):
                moves = remove_annotators(fitting, readable, names)
        else:
            with doing("Weighing the annotators"):
                frame = fitting.fit(readable).annotators.frame()
    if excluding:
        _tell_moves(moves, f"{facts(judgments)}. Ranked by {model}.", out, top, as_json)
        return
    found = None if no_verdicts else _judge(judgments, level, seed)
    if found is not None:
        frame = frame.join(found.frame(), on="annotator", how="left", maintain_order="left")
    if not as_json:
        _show(frame, found, f"{facts(judgments)}. Weighed by {model}.", confirmed(readable), top)
        if found is None and not no_verdicts:
            typer.echo("No verdicts: comparisons made from lists or grades are no answers independent of each other.")
    _hand_out(frame.to_dicts(), frame, out, as_json)
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            typer.echo(f"Note: {warning.message}", err=as_json)


def _need_weights(chosen: type[Any], model: str) -> None:
    from crowdrank import models

    if not chosen.models_annotators:
        able = [name for name, kind in models.REGISTRY.items() if kind.models_annotators]
        raise SettingError(f"{model} believes all annotators alike: use one of {', '.join(able)}.")


def _tell_moves(moves: RankChanges, headline: str, out: Path | None, top: int, as_json: bool) -> None:
    if not as_json:
        show_moves(moves, headline, top)
    _hand_out(as_dict(moves), moves.frame(), out, as_json)
    if not moves.converged:
        typer.echo(f"Note: {moves.before.model} did not converge: --set max_steps=… allows more.", err=as_json)


def _hand_out(content: Any, frame: pl.DataFrame, out: Path | None, as_json: bool) -> None:
    """Write the table, if a file was named; print JSON, if that was asked for."""
    from crowdrank.io import write_table

    if out is not None:
        write_table(frame, out)
    if as_json:
        import json

        typer.echo(json.dumps(content, ensure_ascii=False))
    elif out is not None:
        typer.echo(f"Written to {out}.")


def _judge(judgments: Any, level: float, seed: int) -> Verdicts | None:
    """None for judgments that are not comparisons: the tests need answers that were given one by one."""
    from crowdrank.data import Comparisons
    from crowdrank.evaluation import verdicts

    if not isinstance(judgments, Comparisons):
        return None
    with doing("Holding each annotator against the others"), warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        return verdicts(judgments, level=level, seed=seed)


def _show(frame: pl.DataFrame, found: Verdicts | None, headline: str, told: str, top: int) -> None:
    from rich.console import Console

    from crowdrank.reports import annotators_table

    console = Console(highlight=False, markup=False)
    console.print(headline)
    if told:
        console.print(told, style="dim")
    if found is not None:
        counts = ", ".join(f"{count:,} {word}" for word, count in found.counts.items())
        console.print(f"Verdicts: {counts}.")
    console.print()
    console.print(annotators_table(frame, top))
