"""The HTML report of crowdrank rank, with the command and the Python code that reproduce it."""

from __future__ import annotations

import shlex
from dataclasses import fields
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from crowdrank.cli.output import spinner, with_flags

if TYPE_CHECKING:
    from crowdrank.evaluation import Reliability
    from crowdrank.pipeline import RankOptions, RankResult


def write_report_page(
    result: RankResult, report: Path, file: Path, context: typer.Context, reliability: Reliability | None = None
) -> None:
    """Write the report. Its slow parts are computed one by one, so that the terminal shows which one is running."""
    from crowdrank.reports import Findings, write_report

    findings = Findings(
        ranking=result.fitted,
        judgments=result.judgments,
        model=result.model,
        fitted_judgments=result.converted,
        conversion=result.conversion,
        title=f"{file.name}, ranked by {result.ranking.model}",
        level=result.options.level,
        show_uncertainty=result.has_uncertainty,
        notes=[with_flags(note) for note in result.ranking.notes],
        import_report=result.report,
        evaluation=result.evaluation,
        systems=result.systems,
        reliability=reliability,
        model_reason=result.choice.reason if result.choice.compared else "",
        reproduce={
            "on the command line": command_line(context),
            "in Python": python_code(file, result.options, result.choice.name),
        },
        created=_made(),
        source=_fingerprint(file),
    )
    with spinner("Comparing each annotator with the others"):
        _ = findings.verdicts
    with spinner("Predicting held-out judgments"):
        _ = findings.calibration
    with spinner(f"Writing {report.name}"):
        write_report(findings, report)


def write_leaderboard_folder(result: RankResult, folder: Path, file: Path) -> None:
    """Write the leaderboard page and its table."""
    from crowdrank.reports import Leaderboard, write_leaderboard

    board = Leaderboard(
        ranking=result.ranking,
        title=f"{file.stem}: leaderboard",
        level=result.options.level,
        uncertainty=result.has_uncertainty,
        notes=[with_flags(note) for note in result.ranking.notes],
        boards="criterion" if result.options.criteria else "category",
        footer=f"Ranked by {result.ranking.model}. {_made()}",
    )
    with spinner(f"Writing {folder.name}"):
        write_leaderboard(board, folder)


def command_line(context: typer.Context) -> str:
    """The command that was typed, with its options in the order of the help text."""
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


def python_code(file: Path, options: RankOptions, model: str) -> str:
    """The same ranking in Python, with the arguments that are not the defaults."""
    from crowdrank.models import by_name
    from crowdrank.models.selection import parse_settings
    from crowdrank.pipeline import RankOptions

    defaults, default_level = RankOptions(), RankOptions().level
    arguments = {
        entry.name: _plain(value)
        for entry in fields(options)
        if entry.name not in ("model", "settings", "level")
        and (value := getattr(options, entry.name)) != getattr(defaults, entry.name)
        and value != []
    }
    settings = parse_settings(by_name(model), options.settings)
    if options.system is not None and options.level != default_level:
        arguments["level"] = options.level
    written = ", ".join(f"{name}={value!r}" for name, value in {"model": model, **arguments, **settings}.items())
    level = "" if options.uncertainty == "none" or options.level == default_level else f"level={options.level}"
    return "\n".join(
        ["import crowdrank as cr", "", f"ranking = cr.rank({str(file)!r}, {written})", f"print(ranking.table({level}))"]
    )


def _plain(value: Any) -> Any:
    """Paths and choices as text."""
    if isinstance(value, str | PathLike):
        return str(fspath(value)) if isinstance(value, PathLike) else str(value)
    return value


def _made() -> str:
    from datetime import date

    from crowdrank import __version__

    return f"Made on {date.today().isoformat()} with crowdrank {__version__}."


def _fingerprint(file: Path) -> str:
    """The checksum of the file, which identifies the judgments."""
    import hashlib

    if not file.is_file():
        return ""
    with file.open("rb") as content:
        return f"{file.name}: SHA-256 {hashlib.file_digest(content, 'sha256').hexdigest()}."
