"""crowdrank plan: how many votes a collection will take, and what it will cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from crowdrank.cli.trials import bar, page, parse_policy, processes_for

if TYPE_CHECKING:
    from crowdrank.active.planning import Plan


def plan_collection(
    items: Annotated[int, typer.Option(help="How many items are to be ranked.")],
    annotators: Annotated[int, typer.Option(help="How many annotators can be asked.")],
    quality: Annotated[
        str, typer.Option(help='How often an annotator tells the truth, like "beta(5,2)" or 0.8.')
    ] = "beta(5,2)",
    target: Annotated[
        str, typer.Option(help='What is good enough: "tau 0.9", "accuracy 0.95", "top 3" or "order".')
    ] = "tau 0.9",
    probability: Annotated[
        float | None, typer.Option(help="The share of collections the votes must be enough for.")
    ] = None,
    labels: Annotated[str, typer.Option(help="How answers arise: order or logistic.")] = "logistic",
    scale: Annotated[float, typer.Option(help="With logistic labels, the standard deviation of true scores.")] = 2.0,
    policy: Annotated[
        str, typer.Option(help="What chooses the questions, perhaps with settings: adaptive:epsilon=0.2.")
    ] = "adaptive",
    price: Annotated[float, typer.Option(help="What one vote costs.")] = 1.0,
    trials: Annotated[int, typer.Option(help="How many collections are played through.", min=1)] = 10,
    max_votes: Annotated[int | None, typer.Option(help="Votes after which a collection is given up.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same plan.", min=0)] = 0,
    processes: Annotated[
        int | None, typer.Option(help="Collections played at a time; as many as cores, at most trials.", min=1)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")] = False,
) -> None:
    """Plan a collection: how many votes it will take, and what they will cost, by simulated annotators."""
    from crowdrank.active.planning import plan
    from crowdrank.simulation import respondents

    crowd: Any = {"quality": quality, "labels": cast(Any, labels), "scale": scale}
    respondents(items, annotators, **crowd)  # refuses what crowds cannot be, before processes are started
    with bar("Playing collections through", trials) as tell:
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
            processes=processes_for(processes, trials),
            on_progress=tell,
        )
    if as_json:
        _print_json(found)
    else:
        _show(found)


def _show(found: Plan) -> None:
    from crowdrank.reports import plan_table

    console = page()
    for line in found.lines():
        console.print(line)
    console.print()
    console.print(plan_table(found.curve, _measure(found.target), found.price))


def _measure(target: str) -> str:
    """What the curve of a plan is of."""
    kind = target.split()[0]
    return {"tau": "tau", "top": f"share of the {target}"}.get(kind, "accuracy")


def _print_json(found: Plan) -> None:
    import json

    low, high = found.interval
    told = {
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
    typer.echo(json.dumps(told, ensure_ascii=False))


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if math.isfinite(number) else None
