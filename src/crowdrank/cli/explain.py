"""crowdrank explain: why one item ranks above another, how fragile the first place is, and vote stuffing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli import options
from crowdrank.cli.options import INPUT, MODEL, OUTPUT, parse_columns
from crowdrank.cli.output import console, print_json, spinner
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import DataError, SettingError

if TYPE_CHECKING:
    from rich.table import Table

    from crowdrank.evaluation import Explanation, Fragility, StuffingTest
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
    found = None
    if item is not None:
        with spinner("Computing the influence of judgments"):
            found = evaluation.explain(judgments, item, above, query=within, model=model)
    sets = _find_sets(judgments, within, model) if fragile else []
    test = _find_alarms(judgments) if stuffing else None
    if as_json:
        shown = {} if found is None else found.as_dict()
        print_json(shown | _sets_and_alarms(sets, test))
        return
    if found is not None:
        _show(found, top, wide)
    _show_sets(sets, test, top, wide)


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


# How fragile the first place is, and vote stuffing: --fragile and --stuffing.

_MAX_NAMES = 8


def _find_sets(judgments: Judgments, query: str | None, model: str | None) -> list[Fragility]:
    """The smallest sets of votes and, if there are several, of annotators."""
    from crowdrank.evaluation import fragility

    with spinner("Searching for votes that decide on the first place"):
        found = [fragility(judgments, by="votes", query=query, model=model)]
        if found[0].n_annotators > 1:
            found.append(fragility(judgments, by="annotators", query=query, model=model))
    return found


def _find_alarms(judgments: Judgments) -> StuffingTest:
    """The tests for vote stuffing."""
    from crowdrank.evaluation import find_stuffing

    if not isinstance(judgments, Comparisons):
        kind = type(judgments).__name__.lower()
        raise DataError(f"--stuffing tests votes on pairs of items, but these judgments are {kind}.")
    with spinner("Testing for vote stuffing"):
        return find_stuffing(judgments)


def _sets_and_alarms(sets: list[Fragility], test: StuffingTest | None) -> dict[str, Any]:
    """What --json adds."""
    found: dict[str, Any] = {"fragility": [one.as_dict() for one in sets]} if sets else {}
    return found | ({} if test is None else {"stuffing": test.as_dict()})


def _show_sets(sets: list[Fragility], test: StuffingTest | None, top: int, wide: bool) -> None:
    """Print the sets and the alarms."""
    screen = console(wide=wide)
    for found in sets:
        screen.print(found.sentence())
        if found.annotators:
            more = ", …" if len(found.annotators) > _MAX_NAMES else ""
            screen.print(f"  {', '.join(found.annotators[:_MAX_NAMES])}{more}")
        elif found.successor is not None:
            screen.print(_votes_table(found, top))
    if any(found.successor is not None for found in sets):
        fits = sum(found.fits for found in sets)
        screen.print(f"By {sets[0].model}, found by influence and confirmed by a refit ({fits} fits).", style="dim")
    if test is not None:
        _show_test(screen, test)


def _show_test(screen: Any, test: StuffingTest) -> None:
    for alarm in test.alarms:
        screen.print(f"Alarm ({alarm.kind}): {alarm.reason}", style="bold yellow")
    if not test.alarms:
        screen.print("No sign of vote stuffing.")
    for name, reason in test.skipped.items():
        screen.print(f"Not tested: {name} ({reason}).", style="dim")
    screen.print(f"An honest collection raises an alarm with probability {test.false_alarm_rate:.0%}.", style="dim")


def _votes_table(found: Fragility, top: int) -> Table:
    from rich.table import Table

    from crowdrank.reports import label, number_column

    table = Table(box=None, pad_edge=False)
    for head in ("winner", "loser"):
        table.add_column(head)
    number_column(table, "votes removed")
    for row in found.removed.head(top).to_dicts():
        ties = f" ({row['ties']:,} ties)" if row["ties"] else ""
        table.add_row(label(row["winner"]), label(row["loser"]), f"{row['votes']:,}{ties}")
    if found.removed.height > top:
        table.add_row(f"… and {found.removed.height - top:,} more pairs", style="dim")
    return table
