"""crowdrank simulate: a folder of votes whose truth is known."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from crowdrank.data import Rankings, Ratings
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.simulation import (
    Crowd,
    crowd_bt,
    domain_crowd,
    factor_crowd,
    list_crowd,
    mixed_crowd,
    preference_crowd,
    rating_crowd,
)

GENERATORS: dict[str, Callable[..., Crowd]] = {
    "crowd-bt": crowd_bt,
    "factors": factor_crowd,
    "domains": domain_crowd,
    "lists": list_crowd,
    "mixed": mixed_crowd,
    "preferences": preference_crowd,
    "ratings": rating_crowd,
}

Whole = int | None
Text = str | None


def simulate(
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    kind: Annotated[
        str, typer.Option(help="Which crowd: crowd-bt, factors, domains, lists, mixed, preferences or ratings.")
    ] = "crowd-bt",
    items: Annotated[Whole, typer.Option(help="How many items (in each query, where there are several).")] = None,
    annotators: Annotated[Whole, typer.Option(help="How many annotators.")] = None,
    pairs: Annotated[Whole, typer.Option(help="How many different pairs are asked about.")] = None,
    votes: Annotated[Whole, typer.Option(help="Votes for each pair; or of each annotator, in a query.")] = None,
    quality: Annotated[Text, typer.Option(help='How often an annotator tells the truth, like "beta(2,1)".')] = None,
    labels: Annotated[
        Text, typer.Option(help="How answers arise: order or logistic; for lists, distance or mallows.")
    ] = None,
    queries: Annotated[Whole, typer.Option(help="How many queries, of kinds that have several.")] = None,
    levels: Annotated[Whole, typer.Option(help="How many different grades, for ratings.")] = None,
    sparsity: Annotated[
        float | None, typer.Option(help="Share of the pairs each annotator answers, for domains.")
    ] = None,
    mix: Annotated[Text, typer.Option(help='Annotators of a mixed crowd, like "good=12,noisy=6,left=1".')] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same crowd.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder that is not empty.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of words.")] = False,
) -> None:
    """Make up a crowd: votes to rank, with the truth to grade the ranking by."""
    if kind not in GENERATORS:
        raise UnknownNameError("kind of crowd", kind, GENERATORS)
    if out.exists() and not out.is_dir():
        raise SettingError(f"--out must be a folder, got the file {out}.")
    if out.exists() and any(out.iterdir()) and not force:
        raise SettingError(f"The folder {out} is not empty: name another with --out, or add --force.")
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
    crowd = GENERATORS[kind](**_settings(kind, given), seed=seed)
    written = crowd.write(out)
    judgments = crowd.judgments
    if as_json:
        import json

        told = {"settings": dict(crowd.settings), "judgments": len(judgments), "files": [str(path) for path in written]}
        typer.echo(json.dumps(told, ensure_ascii=False, default=float))
        return
    said = "lists" if isinstance(judgments, Rankings) else "grades" if isinstance(judgments, Ratings) else "votes"
    typer.echo(
        f"{len(judgments):,} simulated {said} on {len(judgments.items):,} items "
        f"by {len(judgments.annotators):,} annotators (seed {seed})."
    )
    typer.echo(f"Written to {out}: {', '.join(path.name for path in written)}.")


def _settings(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """What was given, in the generator's own words; what was left out keeps the generator's default."""
    accepted = inspect.signature(GENERATORS[kind]).parameters
    words = {"mix": "kinds"}
    if each := [name for name in accepted if name.endswith("_each")]:
        words["votes"] = each[0]
    settings = {}
    for option, value in given.items():
        if value is None:
            continue
        name = words.get(option, option)
        if name not in accepted:
            raise SettingError(f"--{option} says nothing about a crowd of kind {kind!r}: leave it out.")
        settings[name] = _counts(value) if option == "mix" else value
    return settings


def _counts(mix: str) -> dict[str, int]:
    try:
        return {kind.strip(): int(count) for kind, count in (part.split("=") for part in mix.split(","))}
    except ValueError:
        raise SettingError(f'--mix is written like "good=12,noisy=6,left=1", got {mix!r}.') from None
