"""crowdrank judges: the audit of a jury of people and language models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli import options
from crowdrank.cli.options import OUTPUT, SIDE_INFORMATION, parse_columns, parse_names
from crowdrank.cli.output import check_table, console, print_json, print_written, spinner

if TYPE_CHECKING:
    from polars import DataFrame
    from rich.table import Table

    from crowdrank.evaluation import JudgeAudit


# Columns of the terminal from which κ is shown with its interval.
_FULL_WIDTH = 100

# The options.

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Comparisons that name annotators; - for standard input.", show_default=False
    ),
]
GoldPairs = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File of pairs whose better item is known.", rich_help_panel=SIDE_INFORMATION),
]
Budget = Annotated[
    float | None,
    typer.Option(help="Maximum cost per question of the recommended jury.", rich_help_panel=SIDE_INFORMATION),
]
Features = Annotated[
    str | None,
    typer.Option(metavar="A,B,C", help="Columns that may bias judges, such as length.", rich_help_panel=OUTPUT),
]
Level = Annotated[float, typer.Option(help="Coverage of the intervals.", rich_help_panel=OUTPUT)]
Seed = Annotated[int, typer.Option(help="Seed of the bootstrap.", min=0, rich_help_panel=OUTPUT)]
Top = Annotated[
    int, typer.Option(help="Number of judges to show at the top and at the bottom.", min=1, rich_help_panel=OUTPUT)
]
ReportFile = Annotated[
    Path | None, typer.Option(help="Write the audit as an HTML page (.html).", rich_help_panel=OUTPUT)
]


def judges(
    files: Files,
    columns: options.Columns = None,
    query: options.Query = None,
    format_name: options.FormatName = None,
    encoding: options.Encoding = None,
    header: options.Header = None,
    people: options.People = None,
    gold_pairs: GoldPairs = None,
    budget: Budget = None,
    features: Features = None,
    level: Level = 0.95,
    seed: Seed = 0,
    top: Top = 10,
    report: ReportFile = None,
    wide: options.Wide = False,
    out: options.TableOut = None,
    as_json: options.Json = False,
) -> None:
    """Audit a jury: agreement with gold or humans, flips, biases, shared errors, and which judges to pay for."""
    from crowdrank import io
    from crowdrank.evaluation import audit_judges
    from crowdrank.models import BradleyTerry
    from crowdrank.models.selection import convert_for
    from crowdrank.pipeline.adjustments import find_feature_sides, with_feature_sides
    from crowdrank.reports import check_report

    check_table(out)
    if report is not None:
        check_report(report)
    source = options.source_of(files)
    with spinner(f"Reading {files[0].name}"):
        names = parse_names(features)
        sides = find_feature_sides(source, names, encoding)
        read = [name for name in names if name not in sides] + [column for pair in sides.values() for column in pair]
        given = io.read(
            source,
            columns=parse_columns(columns, query),
            features=read,
            format=format_name,
            encoding=encoding,
            header=header,
        )
        votes: Any = convert_for(BradleyTerry, with_feature_sides(given, sides))[0]
        known = None if people is None else io.read_people(people)
        gold: Any = None if gold_pairs is None else io.read(gold_pairs, kind="comparisons")
    with spinner("Comparing the judges"):
        audit = audit_judges(votes, people=known, gold=gold, budget=budget, features=names, level=level, seed=seed)
    if out is not None:
        io.write_table(audit.frame(), out)
    if report is not None:
        from crowdrank.reports.html.judges import write_judges_report

        write_judges_report(audit, report, f"Audit of {files[0].name}")
    if as_json:
        print_json(_as_dict(audit))
    else:
        _show(audit, top, wide, [out, report])


def _show(audit: JudgeAudit, top: int, wide: bool, paths: list[Path | None]) -> None:
    from crowdrank.evaluation.judge_audit import REFERENCES

    screen = console(wide=wide)
    known = f"{audit.n_reference:,} of them with an answer from {REFERENCES[audit.reference]}"
    screen.print(f"{len(audit.judges):,} judges, {audit.n_pairs:,} pairs, {known}.")
    for name, alpha in audit.alpha.items():
        screen.print(f"Krippendorff's α of {name}: {alpha.value:.2f} ({alpha.low:.2f} to {alpha.high:.2f}).")
    for note in audit.notes():
        screen.print(note, style="yellow")
    screen.print()
    screen.print(_table(audit, top, narrow=screen.width < _FULL_WIDTH))
    if len(biases := audit.clear_biases()):
        screen.print("\nBiases in log odds whose interval does not contain 0:\n")
        screen.print(_bias_table(biases.head(top)))
    if (jury := audit.recommended) is not None:
        members = ", ".join(audit.judges[n] for n in jury.members)
        price = f", {jury.price:.3g} per question" if jury.price == jury.price else ""
        screen.print(
            f"\nRecommended jury: {members}. Accuracy {jury.accuracy:.1%} ± {jury.std_error:.1%} "
            f"(cross-validated){price}."
        )
    print_written(paths)


def _table(audit: JudgeAudit, top: int, narrow: bool) -> Table:
    """The judges, those at the top and at the bottom; κ without intervals if the terminal is narrow."""
    from rich.table import Table

    from crowdrank.reports import label, number_column

    frame = audit.frame()
    heads = {
        "agreement": "agreement",
        "kappa": "κ",
        "agreement_humans": "humans",
        "flips": "flips",
        "left": "left",
        "price_per_correct": "per correct",
    }
    shown = [name for name in heads if name in frame.columns and frame[name].null_count() < len(frame)]
    table = Table(box=None, pad_edge=False)
    table.add_column("judge", min_width=12)
    for head in ("votes", *(heads[name] for name in shown)):
        number_column(table, head)
    for n, row in enumerate(frame.iter_rows(named=True)):
        if top <= n < len(frame) - top:
            if n == top:
                table.add_row(f"… {len(frame) - 2 * top:,} more …")
            continue
        table.add_row(label(row["annotator"]), f"{row['votes']:,}", *(_cell(row, name, narrow) for name in shown))
    return table


def _bias_table(biases: DataFrame) -> Table:
    from rich.table import Table

    from crowdrank.reports import label, number_column

    table = Table(box=None, pad_edge=False)
    table.add_column("judge", min_width=12)
    table.add_column("bias")
    number_column(table, "effect")
    for row in biases.iter_rows(named=True):
        effect = f"{row['effect']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        table.add_row(label(row["annotator"]), label(row["bias"]), effect)
    return table


def _cell(row: dict[str, Any], name: str, narrow: bool) -> str:
    value = row[name]
    if value is None:
        return ""
    if name == "price_per_correct":
        return f"{value:.3g}"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if (name == "agreement" or (name == "kappa" and not narrow)) and low is not None:
        return f"{value:.2f} ({low:.2f}–{high:.2f})"
    return f"{value:.2f}"


def _as_dict(audit: JudgeAudit) -> dict[str, Any]:
    jury = audit.recommended
    return {
        "reference": audit.reference,
        "pairs": audit.n_pairs,
        "reference_pairs": audit.n_reference,
        "judges": audit.frame().to_dicts(),
        "biases": audit.biases.to_dicts(),
        "alpha": {name: found._asdict() for name, found in audit.alpha.items()},
        "effective_number": audit.n_effective if audit.n_effective == audit.n_effective else None,
        "jury": None
        if jury is None
        else {
            "members": [audit.judges[n] for n in jury.members],
            "accuracy": jury.accuracy,
            "std_error": jury.std_error,
            "price": jury.price if jury.price == jury.price else None,
        },
        "notes": audit.notes(),
    }
