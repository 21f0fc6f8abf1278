"""crowdrank simulate-active: policies compared on crowds whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from crowdrank.cli.trials import bar, page, parse_policy, processes_for
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.active import PolicyComparison
    from crowdrank.active.policies import BasePolicy


def simulate_active(
    items: Annotated[int, typer.Option(help="How many items.")] = 100,
    annotators: Annotated[int, typer.Option(help="How many annotators.")] = 100,
    budget: Annotated[int, typer.Option(help="How many votes each policy may ask for.")] = 1000,
    policies: Annotated[
        str, typer.Option(help="Which to compare, each perhaps with settings: gain:exploration=5,random.")
    ] = "adaptive,gain,random",
    quality: Annotated[
        str, typer.Option(help='How often an annotator tells the truth, like "beta(2,1)".')
    ] = "beta(2,1)",
    labels: Annotated[str, typer.Option(help="How answers arise: order or logistic.")] = "order",
    scale: Annotated[float, typer.Option(help="With logistic labels, the standard deviation of true scores.")] = 2.0,
    trials: Annotated[int, typer.Option(help="How many crowds each policy asks.", min=1)] = 5,
    beliefs: Annotated[str, typer.Option(help="What steers: mcmc or online.")] = "mcmc",
    seed: Annotated[int, typer.Option(help="The same seed gives the same crowds and curves.", min=0)] = 0,
    processes: Annotated[
        int | None, typer.Option(help="Collections played at a time; as many as cores, at most trials.", min=1)
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves: .html .svg .png.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the curves as a table: .csv .tsv .jsonl .parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")] = False,
) -> None:
    """Compare policies of asking: how close each comes to the truth, vote by vote, with simulated annotators."""
    from crowdrank import active, reports

    chosen = _policies(policies)
    if plot is not None:
        reports.check_drawable(plot)
    with bar("Asking simulated annotators", trials * len(chosen)) as tell:
        curves = active.compare_policies(
            chosen,
            items=items,
            annotators=annotators,
            quality=quality,
            labels=cast(Any, labels),
            scale=scale,
            budget=budget,
            trials=trials,
            beliefs=cast(Any, beliefs),
            seed=seed,
            processes=processes_for(processes, trials),
            on_progress=tell,
        )
    (_print_json if as_json else _show)(curves)
    _write(curves, out, plot, quiet=as_json)


def _policies(text: str) -> dict[str, BasePolicy]:
    chosen: dict[str, BasePolicy] = {}
    for name in (part.strip() for part in text.split(",") if part.strip()):
        if name in chosen:
            raise SettingError(f"--policies names {name!r} twice.")
        chosen[name] = parse_policy(name)
    return chosen


def _show(curves: PolicyComparison) -> None:
    from crowdrank import reports

    headline, verdict = curves.lines()
    console = page()
    console.print(headline)
    error = "" if curves.trials == 1 else ", ± its standard error"
    console.print(f"Accuracy, the share of pairs in the right order{error}:\n")
    for table in reports.curves_tables(curves.frame(), curves.areas()):
        console.print(table)
        console.print()
    console.print("The area is the accuracy averaged over the whole way.")
    console.print(verdict)


def _print_json(curves: PolicyComparison) -> None:
    import json

    found = {"best": curves.best, "areas": curves.areas().to_dicts(), "curves": curves.frame().to_dicts()}
    typer.echo(json.dumps(found, ensure_ascii=False))


def _write(curves: PolicyComparison, out: Path | None, plot: Path | None, quiet: bool) -> None:
    from crowdrank import io, reports

    if out is not None:
        io.write_table(curves.frame(), out)
    if plot is not None:
        reports.draw_curves(curves.frame(), plot)
    for path in (out, plot):
        if path is not None and not quiet:
            typer.echo(f"Written to {path}.")
