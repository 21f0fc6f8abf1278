"""crowdrank explain: why one item ranks above another, and how fragile the first place is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli import options
from crowdrank.cli.options import INPUT, MODEL, OUTPUT, parse_columns
from crowdrank.cli.output import console, print_json, spinner
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from rich.table import Table

    from crowdrank.evaluation import Explanation
    from crowdrank.evaluation.explanation import AnnotatorInfluence, Chain


def explain(
    files: options.JudgmentFiles,
    item: Annotated[str | None, typer.Option(help="The item to explain.")] = None,
    above: Annotated[str | None, typer.Option(help="The item to compare it with.")] = None,
    fragile: Annotated[
        bool,
        typer.Option("--fragile", help="Show the fewest votes and annotators whose removal changes the first place."),
    ] = False,
    stuffing: Annotated[
        bool,
        typer.Option("--stuffing", help="Test for vote stuffing: campaigns for one item, copies, bursts, newcomers."),
    ] = False,
    within: Annotated[str | None, typer.Option(help="Query of the two items, if there are several queries.")] = None,
    columns: options.Columns = None,
    query: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that holds the query.", rich_help_panel=INPUT)
    ] = None,
    kind: options.KindOfRows = None,
    format_name: options.FormatName = None,
    encoding: options.Encoding = None,
    header: options.Header = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Model: crowd-bt, bradley-terry or factor-bt.", rich_help_panel=MODEL),
    ] = None,
    top: Annotated[
        int, typer.Option(help="Number of annotators and of chains to show.", min=1, rich_help_panel=OUTPUT)
    ] = 5,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> None:
    """Show why one item ranks above another, or how fragile the first place is."""
    from crowdrank import evaluation
    from crowdrank.io import read_with_report

    if (item is None) != (above is None) or (item is None and not fragile and not stuffing):
        raise SettingError("Name two items, --item A --above B, or pass --fragile or --stuffing.")
    with spinner(f"Reading {files[0].name}"):
        judgments, _ = read_with_report(
            options.source_of(files),
            kind=kind,
            columns=parse_columns(columns, query),
            format=format_name,
            encoding=encoding,
            header=header,
        )
    if (item is not None or fragile) and judgments.items.has_queries and within is None:
        count, first = len(judgments.items.queries), judgments.items.queries[0]
        raise SettingError(f"There are {count:,} queries. Name the query, for example --within {first}.")
    from crowdrank.cli import fragile as tables

    found = None
    if item is not None:
        with spinner("Computing the influence of judgments"):
            found = evaluation.explain(judgments, item, above, query=within, model=model)
    sets = tables.find_sets(judgments, within, model) if fragile else []
    test = tables.find_alarms(judgments) if stuffing else None
    if as_json:
        shown = {} if found is None else found.as_dict()
        print_json(shown | tables.as_dict(sets, test))
        return
    if found is not None:
        _show(found, top, wide)
    tables.show(sets, test, top, wide)


def _show(found: Explanation, top: int, wide: bool) -> None:
    from crowdrank.reports import short

    screen = console(wide=wide)
    shown = found if wide else replace(found, item=short(found.item, 48), other=short(found.other, 48))
    for line in sentences(shown):
        screen.print(line)
    asked = [voice for voice in found.annotators if voice.above or voice.below or voice.ties]
    if asked:
        screen.print("\nDirect judgments:")
        screen.print(_voices_table(sorted(asked, key=lambda v: -abs(v.direct)), found, top))
    if found.chains:
        screen.print("\nThrough other items:")
        screen.print(_chains_table(found.chains, top, wide))
    if found.refits:
        screen.print("\nWithout some of the judgments:")
        screen.print(_without_table(found))
    screen.print(
        f"\nBy {found.model}{f' ({found.rule})' if found.rule else ''}. Influences add up to the difference in score.",
        style="dim",
    )


def sentences(found: Explanation) -> list[str]:
    """The explanation in a few sentences."""
    first, second = (found.item, found.other) if found.difference >= 0 else (found.other, found.item)
    probability = found.probability if found.difference >= 0 else 1 - found.probability
    margin = f"{first} ranks above {second} by {abs(found.difference):.2f}"
    lines = [f"{margin} (probability that it is truly better: {probability:.2f})."]
    above, below, ties = (sum(getattr(v, name) for v in found.annotators) for name in ("above", "below", "ties"))
    if found.judgments:
        tied = f", {ties:,} a tie" if ties else ""
        counts = f"Of the direct judgments, {above:,} chose {found.item}, {below:,} {found.other}{tied}"
        lines.append(f"{counts}; they move {_direction(found, found.direct)}.")
    else:
        lines.append("No judgment compares the two directly.")
    if not found.judgments and not found.chains:
        return [*lines, "No chain of comparisons connects the two, so the difference comes from the rest of the data."]
    return [*lines, f"Judgments of other items move {_direction(found, found.indirect)}."]


def _direction(found: Explanation, influence: float) -> str:
    return f"{found.item if influence >= 0 else found.other} up by {abs(influence):.2f}"


def _voices_table(voices: list[AnnotatorInfluence], found: Explanation, top: int) -> Table:
    from rich.table import Table

    from crowdrank.reports import label

    table = Table(box=None, pad_edge=False)
    table.add_column("annotator")
    trusted = voices[0].reliability is not None
    heads = ["quality"] * trusted + [f"chose {found.item}", f"chose {found.other}", "ties", "influence"]
    for head in heads:
        table.add_column(label(head), justify="right")
    for voice in voices[:top]:
        trust = [] if voice.reliability is None else [f"{voice.reliability:.2f}"]
        counts = [f"{n:,}" if n else "" for n in (voice.above, voice.below, voice.ties)]
        table.add_row(label(voice.annotator or "all"), *trust, *counts, f"{voice.direct:+.2f}")
    if len(voices) > top:
        table.add_row(f"… and {len(voices) - top:,} more", style="dim")
    return table


def _chains_table(chains: tuple[Chain, ...], top: int, wide: bool) -> Table:
    from rich.table import Table

    from crowdrank.reports import label, number_column, short

    table = Table(box=None, pad_edge=False)
    table.add_column("chain")
    for head in ("judgments", "influence"):
        number_column(table, head)
    for chain in chains[:top]:
        names = chain.items if wide else map(short, chain.items)
        table.add_row(label(" – ".join(names)), f"{chain.judgments:,}", f"{chain.influence:+.2f}")
    if len(chains) > top:
        table.add_row(f"… and {len(chains) - top:,} more or weaker", style="dim")
    return table


def _without_table(found: Explanation) -> Table:
    from rich.table import Table

    from crowdrank.reports import label, number_column

    table = Table(box=None, pad_edge=False)
    table.add_column("without")
    for head in ("judgments", "difference", "probability"):
        number_column(table, head)
    for row in found.refits:
        table.add_row(label(row.left_out), f"{row.judgments:,}", f"{row.difference:+.2f}", f"{row.probability:.2f}")
    return table
