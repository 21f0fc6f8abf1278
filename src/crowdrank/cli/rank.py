"""crowdrank rank: rank the items of a file of judgments."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, fields
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from crowdrank.cli import options, rank_options
from crowdrank.cli.output import check_table, console, print_json, spinner, with_flags
from crowdrank.cli.rank_tables import (
    ITEMS_SHOWN,
    best_items_of,
    bias_effects_of,
    boards_as_dict,
    control_as_dict,
    print_tables,
    provisional_of,
    reliability_of,
)

if TYPE_CHECKING:
    from crowdrank.evaluation import Reliability
    from crowdrank.io.writer import Addition
    from crowdrank.pipeline import RankOptions, RankResult


def rank(
    context: typer.Context,
    files: options.JudgmentFiles,
    columns: options.Columns = None,
    query: options.Query = None,
    kind: options.KindOfRows = None,
    format_name: options.FormatName = None,
    encoding: options.Encoding = None,
    header: options.Header = None,
    missing: options.Missing = None,
    strict: options.Strict = False,
    exclude: rank_options.Exclude = None,
    aliases: rank_options.Aliases = None,
    append: rank_options.Append = None,
    model: rank_options.ModelName = None,
    settings: options.Settings = None,
    features: rank_options.Features = None,
    control: rank_options.Control = False,
    by: rank_options.By = None,
    criteria: rank_options.Criteria = None,
    weights: rank_options.Weights = None,
    cluster: rank_options.Cluster = None,
    scale: rank_options.ScaleOption = None,
    anchors: rank_options.Anchors = None,
    link_to: rank_options.LinkTo = None,
    min_comparisons: rank_options.MinComparisons = 0,
    over_time: rank_options.OverTime = False,
    period: rank_options.Period = None,
    reliability: rank_options.ShowReliability = False,
    uncertainty: rank_options.Uncertainty = options.UncertaintyMethod.MODEL,
    level: rank_options.Level = 0.95,
    simultaneous: rank_options.Simultaneous = False,
    measure: rank_options.Measure = None,
    seed: rank_options.Seed = None,
    items: rank_options.Items = None,
    items_columns: rank_options.ItemsColumns = None,
    system: rank_options.System = None,
    gold: options.Gold = None,
    gold_columns: options.GoldTable = None,
    gold_pairs: options.GoldPairs = None,
    annotator_quality: options.AnnotatorQuality = None,
    annotator_order: options.AnnotatorOrder = None,
    people: options.People = None,
    top: rank_options.Top = ITEMS_SHOWN,
    wide: options.Wide = False,
    out: rank_options.Out = None,
    report: rank_options.ReportFile = None,
    leaderboard: rank_options.LeaderboardPage = None,
    plot: rank_options.Plot = None,
    heat_map: rank_options.HeatMap = None,
    as_json: options.Json = False,
    engine: options.Engine = None,
    scheduler: options.Scheduler = None,
    memory: options.Memory = None,
    warm_start: rank_options.WarmStart = None,
) -> None:
    """Rank the items of a file of judgments."""
    given = dict(locals())  # the options by name
    from crowdrank.pipeline import run

    targets = _Targets(out, report, leaderboard, plot, heat_map)
    targets.check()
    addition = None if append is None else _check_addition(files, append)
    if addition is not None and append is not None:
        files, warm_start = [*files, append], warm_start or rank_options.earlier_result(out, model)
    chosen = rank_options.pipeline_options(given | {"warm_start": warm_start})
    if heat_map is not None:
        _check_domains(chosen)
    result = run(options.source_of(files), chosen, spinner)
    found = reliability_of(result.model, result.converted, result.fitted, seed) if reliability else None
    if addition is not None:  # after the fit, so that votes that cannot be ranked are not kept
        addition.write()
    targets.write(result, top, files[0], context, found)
    if as_json:
        print_json({**_as_dict(result), **({} if found is None else {"reliability": found.as_dict()})})
        return
    print_tables(result, top, wide, targets.written, found)
    if addition is not None:
        started = f" Started from {warm_start}." if warm_start is not None else ""
        console().print(f"Appended {addition.rows:,} rows to {addition.target}.{started}", soft_wrap=True)


@dataclass(frozen=True)
class _Targets:
    """The files to write."""

    out: Path | None
    report: Path | None
    leaderboard: Path | None
    plot: Path | None
    heat_map: Path | None

    @property
    def written(self) -> list[Path]:
        named = (self.out, self.heat_map, self.plot, self.report, self.leaderboard)
        return [path for path in named if path is not None]

    def check(self) -> None:
        """Raise for files that cannot be written, before anything is read."""
        check_table(self.out)
        if not set(self.written) - {self.out}:
            return
        from crowdrank.reports import check_drawable, check_leaderboard, check_report

        if self.leaderboard is not None:
            check_leaderboard(self.leaderboard)
        if self.report is not None:
            check_report(self.report)
        for figure in (self.plot, self.heat_map):
            if figure is not None:
                check_drawable(figure)

    def write(
        self, result: RankResult, top: int, source: Path, context: typer.Context, reliability: Reliability | None
    ) -> None:
        if self.out is not None:
            _write_ranking(result, self.out)
        if self.heat_map is not None:
            _draw_heat_map(result, self.heat_map)
        if self.plot is not None:
            from crowdrank.reports import draw_ranking

            with spinner(f"Drawing {self.plot.name}"):
                draw_ranking(
                    result.ranking, self.plot, top=top, level=result.options.level, uncertainty=result.has_uncertainty
                )
        if self.report is not None:
            write_report_page(result, self.report, source, context, reliability)
        if self.leaderboard is not None:
            write_leaderboard_folder(result, self.leaderboard, source)


def _check_addition(files: list[Path], append: Path) -> Addition:
    from crowdrank.errors import SettingError
    from crowdrank.io.writer import check_addition

    if len(files) > 1 or not files[0].is_file():
        raise SettingError("--append needs one file of judgments, to which the new ones are appended.")
    return check_addition(files[0], append)


def _check_domains(chosen: RankOptions) -> None:
    """Raise if the model has no domains to draw."""
    from crowdrank.errors import DataError, SettingError
    from crowdrank.models import REGISTRY
    from crowdrank.models.selection import has_setting

    able = [name for name, cls in REGISTRY.items() if has_setting(cls, "domains")]
    if chosen.model not in able:
        raise SettingError(f"--heat-map needs a model with domains: pass --model {' or '.join(able)}.")
    if chosen.columns.get("annotator", "") is None:
        raise DataError("--heat-map shows annotators, but --column annotator= says that there are none.")


def _write_ranking(result: RankResult, path: Path) -> None:
    from crowdrank.io import write_table

    if path.suffix.lower() == ".json":
        result.ranking.save(path, uncertainty=result.has_uncertainty)
        return
    from crowdrank.results import board_table

    name = "criterion" if result.options.criteria else "category"
    write_table(board_table(result.ranking, result.options.level, result.has_uncertainty, name), path)


def _draw_heat_map(result: RankResult, path: Path) -> None:
    from crowdrank.errors import DataError
    from crowdrank.reports import draw_heat_map

    if result.judgments.annotator is None:
        raise DataError("--heat-map shows annotators, but the judgments name none: pass --column annotator=COLUMN.")
    draw_heat_map(result.ranking.domains, path)


def _as_dict(result: RankResult) -> dict[str, Any]:
    ranking, evaluation, systems = result.ranking, result.evaluation, result.systems
    return {
        "model": ranking.model,
        "settings": dict(ranking.settings),
        "chosen_because": result.choice.reason or None,
        "import": None if result.report is None else result.report.as_dict(),
        "ranking": ranking.to_polars(result.options.level, result.has_uncertainty).to_dicts(),
        "scale": None if ranking.scale is None else asdict(ranking.scale),
        "best": best_items_of(result),
        "provisional": provisional_of(result),
        "parameters": dict(ranking.parameters),
        "log_likelihood": ranking.log_likelihood,
        "convergence": asdict(ranking.convergence),
        "bias_effects": [effect._asdict() for effect in bias_effects_of(result)],
        **control_as_dict(result),
        **boards_as_dict(result),
        **({} if ranking.drift is None else {"drift": ranking.drift.as_dict()}),
        "systems": None if systems is None else systems.as_dict(),
        "domains": None if not ranking.has_domains else ranking.domains.as_dict(),
        "gold": None if evaluation is None else {m.metric: m.value for m in evaluation.measures},
        "notes": [with_flags(note) for note in ranking.notes],
    }


# The HTML report of crowdrank rank, with the command and the Python code that reproduce it.


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
