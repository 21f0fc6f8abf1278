"""crowdrank simulate and simulate-active: simulated votes with the truth behind them, and policies compared on them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from crowdrank.cli import options
from crowdrank.cli.options import OUTPUT, SIMULATION, Json, parse_names, parse_policy, process_count
from crowdrank.cli.output import check_table, page, print_json, print_written, progress_bar, spinner
from crowdrank.errors import SettingError, UnknownNameError

if TYPE_CHECKING:
    from crowdrank.active import PolicyComparison
    from crowdrank.active.policies import BasePolicy
    from crowdrank.simulation import Crowd


GENERATORS = {
    "crowd-bt": "crowd_bt",
    "factors": "factor_crowd",
    "domains": "domain_crowd",
    "lists": "list_crowd",
    "mixed": "mixed_crowd",
    "preferences": "preference_crowd",
    "ratings": "rating_crowd",
}
"""The function of `crowdrank.simulation` behind each kind of crowd."""

_SETTINGS = "Settings (the default depends on the kind)"


# The options.

Out = Annotated[Path, typer.Option(help="Folder to write to.")]
Kind = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"Kind of crowd: {', '.join(GENERATORS)}.",
        autocompletion=lambda incomplete: [name for name in GENERATORS if name.startswith(incomplete)],
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the simulation.")]
Force = Annotated[bool, typer.Option("--force", help="Write into a folder that is not empty.")]
Items = Annotated[int | None, typer.Option(help="Number of items per query.", rich_help_panel=_SETTINGS)]
Annotators = Annotated[int | None, typer.Option(help="Number of annotators.", rich_help_panel=_SETTINGS)]
Pairs = Annotated[int | None, typer.Option(help="Number of distinct pairs that are judged.", rich_help_panel=_SETTINGS)]
Votes = Annotated[
    int | None, typer.Option(help="Votes per pair, or per annotator and query.", rich_help_panel=_SETTINGS)
]
Quality = Annotated[
    str | None,
    typer.Option(help='Probability that an annotator answers correctly, e.g. "beta(2,1)".', rich_help_panel=_SETTINGS),
]
Labels = Annotated[
    str | None,
    typer.Option(
        help="How answers are generated: order or logistic; for lists, distance or mallows.",
        rich_help_panel=_SETTINGS,
    ),
]
Queries = Annotated[int | None, typer.Option(help="Number of queries.", rich_help_panel=_SETTINGS)]
Levels = Annotated[int | None, typer.Option(help="Number of rating levels.", rich_help_panel=_SETTINGS)]
Sparsity = Annotated[
    float | None,
    typer.Option(help="Share of pairs that each annotator answers, for domains.", rich_help_panel=_SETTINGS),
]
Mix = Annotated[
    str | None,
    typer.Option(
        help='Annotators of each type in a mixed crowd, e.g. "good=12,noisy=6,left=1".', rich_help_panel=_SETTINGS
    ),
]


def simulate(
    out: Out,
    kind: Kind = "crowd-bt",
    seed: Seed = 0,
    force: Force = False,
    items: Items = None,
    annotators: Annotators = None,
    pairs: Pairs = None,
    votes: Votes = None,
    quality: Quality = None,
    labels: Labels = None,
    queries: Queries = None,
    levels: Levels = None,
    sparsity: Sparsity = None,
    mix: Mix = None,
    as_json: Json = False,
) -> None:
    """Simulate a crowd: votes to rank, and the truth to evaluate the ranking against."""
    from crowdrank.data import Rankings, Ratings

    if kind not in GENERATORS:
        raise UnknownNameError("kind of crowd", kind, GENERATORS)
    if out.exists() and not out.is_dir():
        raise SettingError(f"--out must be a folder, got the file {out}.")
    if out.exists() and any(out.iterdir()) and not force:
        raise SettingError(f"The folder {out} is not empty: choose another with --out, or add --force.")
    given = {
        "items": items,
        "annotators": annotators,
        "pairs": pairs,
        "votes": votes,
        "quality": quality,
        "labels": labels,
        "queries": queries,
        "levels": levels,
        "sparsity": sparsity,
        "mix": mix,
    }
    generate = _generator(kind)
    with spinner("Simulating"):
        crowd = generate(**_settings(kind, generate, given), seed=seed)
        written = crowd.write(out)
    judgments = crowd.judgments
    if as_json:
        files = [str(path) for path in written]
        print_json({"settings": dict(crowd.settings), "judgments": len(judgments), "files": files}, default=float)
        return
    name = "lists" if isinstance(judgments, Rankings) else "ratings" if isinstance(judgments, Ratings) else "votes"
    typer.echo(
        f"{len(judgments):,} simulated {name} on {len(judgments.items):,} items "
        f"by {len(judgments.annotators):,} annotators (seed {seed})."
    )
    typer.echo(f"Written to {out}: {', '.join(path.name for path in written)}.")


def _generator(kind: str) -> Callable[..., Crowd]:
    from crowdrank import simulation

    generate: Callable[..., Crowd] = getattr(simulation, GENERATORS[kind])
    return generate


def _settings(kind: str, generate: Callable[..., Crowd], given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, under the generator's names for them."""
    accepted = inspect.signature(generate).parameters
    names = {"mix": "kinds"}
    if per := [name for name in accepted if name.endswith("_each")]:
        names["votes"] = per[0]
    settings = {}
    for option, value in given.items():
        if value is None:
            continue
        name = names.get(option, option)
        if name not in accepted:
            raise SettingError(f"--{option} does not apply to a crowd of kind {kind!r}: leave it out.")
        settings[name] = _counts(value) if option == "mix" else value
    return settings


def _counts(mix: str) -> dict[str, int]:
    try:
        return {name.strip(): int(count) for name, count in (part.split("=") for part in mix.split(","))}
    except ValueError:
        raise SettingError(f'--mix takes counts such as "good=12,noisy=6,left=1", got {mix!r}.') from None


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
