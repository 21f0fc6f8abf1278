"""crowdrank explain: why one item stands above another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli.options import parse_columns
from crowdrank.cli.progress import doing

if TYPE_CHECKING:
    from rich.table import Table

    from crowdrank.evaluation import Explanation
    from crowdrank.evaluation.explanation import AnnotatorInfluence, Chain

Words = list[str] | None


def explain(
    file: Annotated[Path, typer.Argument(help="Comparisons, ratings or lists, in any format of `crowdrank formats`.")],
    item: Annotated[str, typer.Option(help="The item …")],
    above: Annotated[str, typer.Option(help="… that stands above this one, or does not.")],
    within: Annotated[str | None, typer.Option(help="The query the two belong to, where there are several.")] = None,
    query: Annotated[str | None, typer.Option(help="The column that holds the query.")] = None,
    model: Annotated[str | None, typer.Option(help="By which model: crowd-bt, bradley-terry or factor-bt.")] = None,
    columns: Annotated[Words, typer.Option("--map", help="What a column holds: annotator=who, left=first …")] = None,
    kind: Annotated[str | None, typer.Option(help="What the rows are: comparisons, ratings or rankings.")] = None,
    top: Annotated[int, typer.Option(help="How many annotators and chains to show.", min=1)] = 5,
    format_name: Annotated[
        str | None, typer.Option("--format", help="Whose format it is, if not to be guessed (see `crowdrank formats`).")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a text file that is not UTF-8: latin-1 …")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of words.")] = False,
) -> None:
    """Say which judgments put one item above another, directly and through others."""
    from crowdrank import evaluation
    from crowdrank.io import read_with_report

    with doing(f"Reading {file.name}"):
        judgments, _ = read_with_report(
            file, kind=kind, columns=parse_columns(columns, query), format=format_name, encoding=encoding
        )
    with doing("Weighing the judgments"):
        found = evaluation.explain(judgments, item, above, query=within, model=model)
    if as_json:
        import json

        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False))
        return
    _show(found, top)


def _show(found: Explanation, top: int) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for line in words(found):
        console.print(line)
    asked = [voice for voice in found.annotators if voice.above or voice.below or voice.ties]
    if asked:
        console.print("\nAsked directly:")
        console.print(_voices_table(sorted(asked, key=lambda v: -abs(v.direct)), found, top))
    if found.chains:
        console.print("\nThrough others:")
        console.print(_chains_table(found.chains, top))
    if found.refits:
        console.print("\nWithout some of them:")
        console.print(_without_table(found))
    console.print(
        f"\nBy {found.model}{f' ({found.rule})' if found.rule else ''}. A push is a share of the difference in score; "
        "all of them add up to it.",
        style="dim",
    )


def words(found: Explanation) -> list[str]:
    """The answer in plain words."""
    first, second = (found.item, found.other) if found.difference >= 0 else (found.other, found.item)
    chance = found.probability if found.difference >= 0 else 1 - found.probability
    lines = [
        f"{first} stands above {second} by {abs(found.difference):.2f}: the chance that it truly does is {chance:.2f}."
    ]
    above, below, ties = (sum(getattr(v, name) for v in found.annotators) for name in ("above", "below", "ties"))
    if found.judgments:
        tied = f", {ties:,} neither" if ties else ""
        said = f"Asked about the two directly, {above:,} said {found.item}, {below:,} {found.other}{tied}"
        lines.append(f"{said}; that pushes {_way(found, found.direct)}.")
    else:
        lines.append("Nobody was asked about the two directly.")
    if not found.judgments and not found.chains:
        return [*lines, "No chain of comparisons leads from one to the other: only other items tell them apart."]
    return [*lines, f"What was said of other items pushes {_way(found, found.indirect)}."]


def _way(found: Explanation, push: float) -> str:
    return f"{found.item if push >= 0 else found.other} up by {abs(push):.2f}"


def _voices_table(voices: list[AnnotatorInfluence], found: Explanation, top: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("annotator", overflow="fold", max_width=24)
    trusted = voices[0].reliability is not None
    heads = ["believed"] * trusted + [f"said {found.item}", f"said {found.other}", "ties", "push"]
    for head in heads:
        table.add_column(Text(head), justify="right", overflow="fold", max_width=24)
    for voice in voices[:top]:
        trust = [] if voice.reliability is None else [f"{voice.reliability:.2f}"]
        counts = [f"{n:,}" if n else "" for n in (voice.above, voice.below, voice.ties)]
        table.add_row(Text(voice.annotator or "all"), *trust, *counts, f"{voice.direct:+.2f}")
    if len(voices) > top:
        table.add_row(f"… and {len(voices) - top:,} more", style="dim")
    return table


def _chains_table(chains: tuple[Chain, ...], top: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("chain", overflow="fold")
    for head in ("judgments", "push"):
        table.add_column(head, justify="right")
    for chain in chains[:top]:
        table.add_row(Text(" – ".join(chain.items)), f"{chain.judgments:,}", f"{chain.influence:+.2f}")
    if len(chains) > top:
        table.add_row(f"… and {len(chains) - top:,} more or thinner", style="dim")
    return table


def _without_table(found: Explanation) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("without", overflow="fold", max_width=40)
    for head in ("judgments", "difference", "chance"):
        table.add_column(head, justify="right")
    for row in found.refits:
        table.add_row(Text(row.left_out), f"{row.judgments:,}", f"{row.difference:+.2f}", f"{row.probability:.2f}")
    return table
