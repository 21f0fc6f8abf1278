"""crowdrank explain --fragile and --stuffing: what is computed and printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdrank.cli.output import console, spinner
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import DataError

if TYPE_CHECKING:
    from rich.table import Table

    from crowdrank.evaluation import Fragility, StuffingTest

_MAX_NAMES = 8


def find_sets(judgments: Judgments, query: str | None, model: str | None) -> list[Fragility]:
    """The smallest sets of votes and, if there are several, of annotators."""
    from crowdrank.evaluation import fragility

    with spinner("Searching for votes that decide on the first place"):
        found = [fragility(judgments, by="votes", query=query, model=model)]
        if found[0].n_annotators > 1:
            found.append(fragility(judgments, by="annotators", query=query, model=model))
    return found


def find_alarms(judgments: Judgments) -> StuffingTest:
    """The tests for vote stuffing."""
    from crowdrank.evaluation import find_stuffing

    if not isinstance(judgments, Comparisons):
        kind = type(judgments).__name__.lower()
        raise DataError(f"--stuffing tests votes on pairs of items, but these judgments are {kind}.")
    with spinner("Testing for vote stuffing"):
        return find_stuffing(judgments)


def as_dict(sets: list[Fragility], test: StuffingTest | None) -> dict[str, Any]:
    """What --json adds."""
    found: dict[str, Any] = {"fragility": [one.as_dict() for one in sets]} if sets else {}
    return found | ({} if test is None else {"stuffing": test.as_dict()})


def show(sets: list[Fragility], test: StuffingTest | None, top: int, wide: bool) -> None:
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
