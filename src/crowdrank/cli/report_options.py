"""What crowdrank rank writes for human eyes: a report, a figure, and how to get the same again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.progress import doing

if TYPE_CHECKING:
    from crowdrank.cli.rank import Answer
    from crowdrank.data import Judgments

Report = Annotated[
    Path | None, typer.Option("--report", help="Write a report: one page, .html, that needs no network.")
]
Plot = Annotated[
    Path | None, typer.Option("--plot", help="Draw the first items with their intervals: .png .svg .html.")
]

_TOLD = ("gold_pairs", "known", "better", "items", "features")
"""Options that Python is told otherwise."""


def check_targets(report: Path | None, plot: Path | None) -> None:
    """Refuse what cannot be written, before anything is read."""
    from crowdrank.reports import check_drawable, check_report

    if report is not None:
        check_report(report)
    if plot is not None:
        check_drawable(plot)


def draw(answer: Answer, plot: Path, top: int) -> None:
    from crowdrank.reports import draw_ranking

    with doing(f"Drawing {plot.name}"):
        draw_ranking(answer.ranking, plot, top=top, level=answer.level, uncertainty=answer.measured)


def write_page(
    answer: Answer, report: Path, *, file: Path, model: Any, readable: Judgments, context: typer.Context
) -> None:
    """The report; what it needs is computed part by part, with a word on each."""
    from crowdrank.reports import Findings, write_report

    findings = Findings(
        ranking=answer.ranking,
        judgments=answer.judgments,
        model=model,
        fitted_judgments=readable,
        conversion=answer.rule,
        title=f"{file.name}, ranked by {answer.ranking.model}",
        level=answer.level,
        show_uncertainty=answer.measured,
        notes=answer.notes,
        import_report=answer.report,
        evaluation=answer.grade,
        systems=answer.systems,
        model_reason=answer.why,
        reproduce={
            "on the command line": command_line(context),
            "in Python": python_code(file, context.params, model, answer.judgments, readable),
        },
        created=_made(),
        source=_fingerprint(file),
    )
    with doing("Holding each annotator against the others"):
        _ = findings.verdicts
    with doing("Foretelling judgments held out"):
        _ = findings.calibration
    with doing(f"Writing {report.name}"):
        write_report(findings, report)


def command_line(context: typer.Context) -> str:
    """What was typed, in the order of the options."""
    words = ["crowdrank", str(context.info_name)]
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[str(parameter.name)]
        option = [parameter.opts[-1]] if parameter.opts[-1].startswith("-") else []
        for given in value if isinstance(value, list) else [value]:
            words += option if given is True else [*option, str(given)]
    return shlex.join(words)


def python_code(file: Path, wishes: Mapping[str, Any], model: Any, judgments: Judgments, readable: Judgments) -> str:
    """The same in a few lines, with the settings that are not the usual ones."""
    from crowdrank.cli.options import parse_columns

    wanted = {name: wishes.get(name) for name in ("kind", "encoding")} | {"format": wishes.get("format_name")}
    arguments = [repr(str(file)), *(f"{name}={value!r}" for name, value in wanted.items() if value)]
    if columns := parse_columns(wishes.get("columns"), wishes.get("query")):
        arguments.append(f"columns={columns!r}")
    lines = ["import crowdrank as cr", "", f"votes = cr.read({', '.join(arguments)})"]
    if wishes.get("missing") == "worse":
        lines.append("votes = votes.with_missing_last()")
    if type(judgments) is not type(readable):
        lines.append(f"votes = votes.to_{type(readable).__name__.lower()}()")
    if told := [f"--{name.replace('_', '-')}" for name in _TOLD if wishes.get(name)]:
        lines.append(f"# told beside the judgments, see votes.knowing and votes.with_item_features: {', '.join(told)}")
    changed = [f"{f.name}={v!r}" for f in fields(model) if (v := getattr(model, f.name)) != f.default]
    lines += [f"model = cr.{type(model).__name__}({', '.join(changed)})", "ranking = model.fit(votes)"]
    if wishes.get("uncertainty") == "bootstrap":
        lines.append("ranking = cr.models.with_bootstrap(model, votes, ranking)")
    table = "uncertainty=False" if wishes.get("uncertainty") == "none" else f"level={wishes.get('level')}"
    return "\n".join([*lines, f"print(ranking.table({table}))"])


def _made() -> str:
    from datetime import date

    from crowdrank import __version__

    return f"Made on {date.today().isoformat()} with crowdrank {__version__}."


def _fingerprint(file: Path) -> str:
    """By which the same judgments can be known again."""
    import hashlib

    if not file.is_file():
        return ""
    with file.open("rb") as content:
        return f"{file.name}: SHA-256 {hashlib.file_digest(content, 'sha256').hexdigest()}."
