"""crowdrank simulate-active: compare policies on simulated crowds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from crowdrank.cli import options
from crowdrank.cli.options import OUTPUT, SIMULATION, parse_names, parse_policy, process_count
from crowdrank.cli.output import check_table, page, print_json, print_written, progress_bar
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.active import PolicyComparison
    from crowdrank.active.policies import BasePolicy


def simulate_active(
    policies: Annotated[
        str,
        typer.Option(
            metavar="A,B,C", help="Policies to compare, with optional settings, e.g. gain:exploration=5,random."
        ),
    ] = "adaptive,gain,random",
    budget: Annotated[int, typer.Option(help="Number of votes per policy.")] = 1000,
    beliefs: Annotated[
        options.SimulatedBeliefs, typer.Option(help="Posterior mcmc, or online updates.")
    ] = options.SimulatedBeliefs.MCMC,
    items: Annotated[int, typer.Option(help="Number of items.", rich_help_panel=SIMULATION)] = 100,
    annotators: Annotated[int, typer.Option(help="Number of annotators.", rich_help_panel=SIMULATION)] = 100,
    quality: Annotated[
        str,
        typer.Option(
            help='Probability that an annotator answers correctly, e.g. "beta(2,1)".', rich_help_panel=SIMULATION
        ),
    ] = "beta(2,1)",
    labels: Annotated[
        options.Labels, typer.Option(help="How answers depend on the true scores.", rich_help_panel=SIMULATION)
    ] = options.Labels.ORDER,
    scale: Annotated[
        float,
        typer.Option(help="Standard deviation of true scores, with logistic labels.", rich_help_panel=SIMULATION),
    ] = 2.0,
    trials: Annotated[
        int, typer.Option(help="Number of simulated crowds per policy.", min=1, rich_help_panel=SIMULATION)
    ] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.", min=0, rich_help_panel=SIMULATION)] = 0,
    processes: options.Processes = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the learning curves (.png, .svg, .html).", rich_help_panel=OUTPUT)
    ] = None,
    out: options.TableOut = None,
    as_json: options.Json = False,
) -> None:
    """Compare policies that choose questions: accuracy by number of votes, on simulated annotators."""
    from crowdrank import active, reports

    chosen = _policies(policies)
    check_table(out)
    if plot is not None:
        reports.check_drawable(plot)
    with progress_bar("Simulating collections") as show:
        curves = active.compare_policies(
            chosen,
            items=items,
            annotators=annotators,
            quality=quality,
            labels=cast(Any, labels.value),
            scale=scale,
            budget=budget,
            trials=trials,
            beliefs=cast(Any, beliefs.value),
            seed=seed,
            processes=process_count(processes, trials),
            on_progress=lambda done, total: show(done, total, ""),
        )
    if as_json:
        areas, table = curves.areas().to_dicts(), curves.frame().to_dicts()
        print_json({"best": curves.best, "areas": areas, "curves": table})
    else:
        _show(curves)
    _write(curves, out, plot, quiet=as_json)


def _policies(text: str) -> dict[str, BasePolicy]:
    chosen: dict[str, BasePolicy] = {}
    for name in parse_names(text):
        if name in chosen:
            raise SettingError(f"--policies names {name!r} twice.")
        chosen[name] = parse_policy(name)
    return chosen


def _show(curves: PolicyComparison) -> None:
    from crowdrank import reports

    headline, verdict = curves.lines()
    screen = page()
    screen.print(headline)
    error = "" if curves.trials == 1 else ", ± its standard error"
    screen.print(f"Accuracy (share of pairs in the right order{error}):\n")
    for table in reports.curves_tables(curves.frame(), curves.areas()):
        screen.print(table)
        screen.print()
    screen.print("The area is the mean accuracy over all numbers of votes.")
    screen.print(verdict)


def _write(curves: PolicyComparison, out: Path | None, plot: Path | None, quiet: bool) -> None:
    from crowdrank import io, reports

    if out is not None:
        io.write_table(curves.frame(), out)
    if plot is not None:
        reports.draw_curves(curves.frame(), plot)
    if not quiet:
        print_written([out, plot])
