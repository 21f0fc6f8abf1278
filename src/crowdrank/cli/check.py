"""crowdrank check: how often intervals, groups and verdicts hold on simulated answers to the same questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli import options
from crowdrank.cli.options import MODEL, SIMULATION, parse_columns, parse_set
from crowdrank.cli.output import console, print_json, progress_bar, spinner

if TYPE_CHECKING:
    from rich.table import Table

    from crowdrank.evaluation import Check
    from crowdrank.evaluation.interval_coverage import Share
    from crowdrank.evaluation.self_check import Accusations


def check(
    files: options.JudgmentFiles,
    columns: options.Columns = None,
    query: options.Query = None,
    kind: options.KindOfRows = None,
    format_name: options.FormatName = None,
    encoding: options.Encoding = None,
    header: options.Header = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model to check. Default: chosen by the data, as in `crowdrank rank`.",
            autocompletion=options.complete_model,
            rich_help_panel=MODEL,
        ),
    ] = None,
    settings: options.Settings = None,
    level: Annotated[float, typer.Option(help="Level of intervals and claims.", rich_help_panel=MODEL)] = 0.95,
    simulations: Annotated[
        int | None,
        typer.Option(
            help="Simulations of each kind. Default: 100, fewer above 2,000 answers.",
            min=1,
            rich_help_panel=SIMULATION,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulations.", min=0, rich_help_panel=SIMULATION)] = 0,
    as_json: options.Json = False,
) -> None:
    """Simulate answers to the same questions, and count how often intervals, groups and verdicts are right."""
    from crowdrank.pipeline import RankOptions, check_result, run
    from crowdrank.reports import facts

    chosen = RankOptions(
        model=model,
        settings=parse_set(settings),
        columns=parse_columns(columns),
        query=query,
        kind=kind,
        format=format_name,
        encoding=encoding,
        header=header,
        level=level,
    )
    result = run(options.source_of(files), chosen, spinner)
    with progress_bar("Simulating") as show:
        found = check_result(
            result, simulations=simulations, seed=seed, on_progress=lambda done, total: show(done, total, "")
        )
    if as_json:
        print_json(found.as_dict())
        return
    _show(found, facts(result.judgments))


def _show(found: Check, headline: str) -> None:
    screen = console()
    screen.print(f"{headline}.")
    screen.print(f"{found.model}, {len(found.fitted):,} simulations of each kind on the same questions.\n")
    screen.print(_table(found))
    generator = "" if found.has_scores else f" (simulated by {found.generator})"
    screen.print(
        f"Fitted model: the truth is a draw from the fit{generator}. Coin tosses: every answer is random. ± is two "
        "standard errors of the simulation.\n",
        style="dim",
    )
    for line in found.lines():
        screen.print(line)


def _table(found: Check) -> Table:
    from rich.table import Table

    fitted, coin, level = found.fitted, found.coin_tosses, f"{found.level:.0%}"
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for head in ("fitted model", "coin tosses"):
        table.add_column(head, justify="right", no_wrap=True)
    if found.has_scores:
        table.add_row(f"{level} score intervals that held", _cell(fitted.scores), "")
    table.add_row(f"{level} rank intervals that held", _cell(fitted.ranks), "")
    table.add_row(f"pairs claimed at {level}", _cell(fitted.claimed), _cell(coin.claimed))
    table.add_row("claims that were right", _cell(fitted.claims_right), "")
    table.add_row("tables with several groups", _cell(fitted.split), _cell(coin.split))
    if found.fitted_accusations is not None and found.coin_accusations is not None:
        table.add_row("annotators accused wrongly", _wrong(found.fitted_accusations), _wrong(found.coin_accusations))
    return table


def _cell(share: Share) -> str:
    if share.value != share.value:
        return "–"
    error = "" if share.std_error != share.std_error else f" ± {200 * share.std_error:.1f}"
    return f"{100 * share.value:.1f}{error} %"


def _wrong(found: Accusations) -> str:
    return f"{found.wrong:,} of {found.annotators:,}"
