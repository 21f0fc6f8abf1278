"""crowdrank plan: how many votes a collection will need, and what they will cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from crowdrank.cli import options
from crowdrank.cli.options import SIMULATION, parse_policy, process_count
from crowdrank.cli.output import page, print_json, progress_bar

if TYPE_CHECKING:
    from crowdrank.active.planning import Plan


def plan_collection(
    items: Annotated[int, typer.Option(help="Number of items to rank.")],
    annotators: Annotated[int, typer.Option(help="Number of annotators.")],
    target: Annotated[
        str, typer.Option(help='When a collection is good enough: "tau 0.9", "accuracy 0.95", "top 3" or "order".')
    ] = "tau 0.9",
    price: Annotated[float, typer.Option(help="Cost of one vote.")] = 1.0,
    quality: Annotated[
        str,
        typer.Option(
            help='Probability that an annotator answers correctly, e.g. "beta(5,2)" or 0.8.',
            rich_help_panel=SIMULATION,
        ),
    ] = "beta(5,2)",
    labels: Annotated[
        options.Labels, typer.Option(help="How answers depend on the true scores.", rich_help_panel=SIMULATION)
    ] = options.Labels.LOGISTIC,
    scale: Annotated[
        float,
        typer.Option(help="Standard deviation of true scores, with logistic labels.", rich_help_panel=SIMULATION),
    ] = 2.0,
    policy: Annotated[
        str,
        typer.Option(
            help="Policy that chooses questions, with optional settings, e.g. adaptive:epsilon=0.2.",
            rich_help_panel=SIMULATION,
        ),
    ] = "adaptive",
    probability: Annotated[
        float | None,
        typer.Option(help="Share of collections that must reach the target.", rich_help_panel=SIMULATION),
    ] = None,
    trials: Annotated[
        int, typer.Option(help="Number of simulated collections.", min=1, rich_help_panel=SIMULATION)
    ] = 10,
    max_votes: Annotated[
        int | None,
        typer.Option(help="Votes after which a simulated collection is stopped.", min=1, rich_help_panel=SIMULATION),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.", min=0, rich_help_panel=SIMULATION)] = 0,
    processes: options.Processes = None,
    as_json: options.Json = False,
) -> None:
    """Estimate by simulation how many votes a collection needs, and what they cost."""
    from crowdrank.active.planning import plan
    from crowdrank.simulation import respondents

    crowd: Any = {"quality": quality, "labels": cast(Any, labels.value), "scale": scale}
    respondents(items, annotators, **crowd)  # raises for an impossible crowd before processes are started
    with progress_bar("Simulating collections") as show:
        found = plan(
            items,
            annotators,
            **crowd,
            target=target,
            probability=probability,
            policy=parse_policy(policy),
            price=price,
            trials=trials,
            max_votes=max_votes,
            seed=seed,
            processes=process_count(processes, trials),
            on_progress=lambda done, total: show(done, total, ""),
        )
    if as_json:
        print_json(_as_dict(found))
    else:
        _show(found)


def _show(found: Plan) -> None:
    from crowdrank.reports import plan_table

    screen = page()
    for line in found.lines():
        screen.print(line)
    screen.print()
    screen.print(plan_table(found.curve, _metric(found.target), found.price))


def _metric(target: str) -> str:
    """The metric that the curve of a plan shows."""
    kind = target.split()[0]
    return {"tau": "tau", "top": f"share of the {target}"}.get(kind, "accuracy")


def _as_dict(found: Plan) -> dict[str, Any]:
    low, high = found.interval
    return {
        "target": found.target,
        "items": found.items,
        "annotators": found.annotators,
        "policy": found.policy,
        "price": found.price,
        "probability": found.probability,
        "votes": _finite(found.votes),
        "low": _finite(low),
        "high": _finite(high),
        "cost": _finite(found.cost),
        "max_votes": found.max_votes,
        "never": found.n_failed,
        "reached": [_finite(votes) for votes in found.reached],
        "curve": [{"votes": p.votes, "mean": p.mean, "std_error": _finite(p.std_error)} for p in found.curve],
    }


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if math.isfinite(number) else None
