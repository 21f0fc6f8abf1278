"""crowdrank rank: rank the items of a file of judgments."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli import leaderboard_options, options
from crowdrank.cli.options import (
    INPUT,
    MODEL,
    OUTPUT,
    parse_columns,
    parse_names,
    parse_order,
    parse_quality,
    parse_set,
)
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
    exclude: leaderboard_options.Exclude = None,
    aliases: leaderboard_options.Aliases = None,
    append: leaderboard_options.Append = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model (see `crowdrank models`), or `auto` to compare models. Default: chosen by the data.",
            autocompletion=options.complete_model,
            rich_help_panel=MODEL,
        ),
    ] = None,
    settings: options.Settings = None,
    features: leaderboard_options.Features = None,
    control: leaderboard_options.Control = False,
    by: leaderboard_options.By = None,
    criteria: leaderboard_options.Criteria = None,
    weights: leaderboard_options.Weights = None,
    cluster: leaderboard_options.Cluster = None,
    scale: leaderboard_options.ScaleOption = None,
    anchors: leaderboard_options.Anchors = None,
    link_to: leaderboard_options.LinkTo = None,
    min_comparisons: leaderboard_options.MinComparisons = 0,
    over_time: leaderboard_options.OverTime = False,
    period: leaderboard_options.Period = None,
    reliability: leaderboard_options.ShowReliability = False,
    uncertainty: Annotated[
        options.UncertaintyMethod,
        typer.Option(help="How to compute uncertainty.", rich_help_panel=MODEL),
    ] = options.UncertaintyMethod.MODEL,
    level: Annotated[float, typer.Option(help="Level of the rank intervals.", rich_help_panel=MODEL)] = 0.95,
    simultaneous: Annotated[
        bool,
        typer.Option(
            "--simultaneous",
            help="Simultaneous rank intervals, which are all right at once. For publishing.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    measure: Annotated[
        str | None,
        typer.Option(metavar="ndcg", help="Order items for the largest expected NDCG.", rich_help_panel=MODEL),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the random numbers.", rich_help_panel=MODEL)] = None,
    items: Annotated[
        Path | None,
        typer.Option(help="File about the items, with columns for --features and --system.", rich_help_panel=INPUT),
    ] = None,
    items_columns: Annotated[
        list[str] | None,
        typer.Option(
            "--items-column",
            metavar="ROLE=COLUMN",
            help="Column for a role in the file about items: item or query.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Compare systems: column that names the system behind an item, or `item`.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    gold: options.Gold = None,
    gold_columns: options.GoldTable = None,
    gold_pairs: options.GoldPairs = None,
    annotator_quality: options.AnnotatorQuality = None,
    annotator_order: options.AnnotatorOrder = None,
    people: options.People = None,
    top: Annotated[int, typer.Option(help="Items to show per query.", min=1, rich_help_panel=OUTPUT)] = ITEMS_SHOWN,
    wide: options.Wide = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the ranking (.csv, .xlsx, .md, .tex, .html, .jsonl, .parquet …) or the full result (.json).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a self-contained report (.html).", rich_help_panel=OUTPUT)
    ] = None,
    leaderboard: leaderboard_options.LeaderboardPage = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Plot the top items with their intervals (.png, .svg, .html).", rich_help_panel=OUTPUT),
    ] = None,
    heat_map: Annotated[
        Path | None,
        typer.Option(
            help="Plot the quality of annotators by domain (.png, .svg, .html), for models with domains.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: options.Json = False,
    engine: options.Engine = None,
    scheduler: options.Scheduler = None,
    memory: options.Memory = None,
    warm_start: Annotated[
        Path | None,
        typer.Option(
            help="Earlier result (.json from --out) that the solver starts from.", rich_help_panel=options.ENGINE
        ),
    ] = None,
) -> None:
    """Rank the items of a file of judgments."""
    from crowdrank.pipeline import RankOptions, run

    _check_targets(out, report, plot, heat_map, leaderboard)
    addition = None if append is None else _check_addition(files, append)
    if addition is not None and append is not None:
        files, warm_start = [*files, append], warm_start or leaderboard_options.earlier_result(out, model)
    chosen = RankOptions(
        model=model,
        settings=parse_set(settings),
        seed=seed,
        columns=parse_columns(columns),
        query=query,
        kind=kind,
        format=format_name,
        encoding=encoding,
        header=header,
        strict=strict,
        features=parse_names(features),
        control=control,
        exclude=exclude or (),
        aliases=leaderboard_options.parse_aliases(aliases),
        by=by,
        criteria=tuple(parse_names(criteria)),
        weights=leaderboard_options.parse_weights(weights),
        cluster=cluster,
        score_scale=None if scale is None else scale.value,
        anchors=leaderboard_options.parse_anchors(anchors),
        link_to=link_to,
        min_comparisons=min_comparisons,
        time=leaderboard_options.parse_time(over_time, period),
        items=items,
        items_columns=parse_columns(items_columns, option="--items-column"),
        system=system,
        missing=missing,
        gold=gold,
        gold_columns=parse_columns(gold_columns, option="--gold-column"),
        gold_pairs=gold_pairs,
        annotator_quality=parse_quality(annotator_quality),
        annotator_order=parse_order(annotator_order),
        people=people,
        engine=engine,
        scheduler=scheduler,
        memory=memory,
        init=warm_start,
        uncertainty=uncertainty,
        level=level,
        simultaneous=simultaneous,
        measure=measure,
    )
    if heat_map is not None:
        _check_domains(chosen)
    result = run(options.source_of(files), chosen, spinner)
    found = reliability_of(result.model, result.converted, result.fitted, seed) if reliability else None
    if addition is not None:  # after the fit, so that votes that cannot be ranked are not kept
        addition.write()
    _write(result, out, heat_map, plot, top)
    if report is not None:
        from crowdrank.cli.rank_report import write_report_page

        write_report_page(result, report, files[0], context, found)
    if leaderboard is not None:
        from crowdrank.cli.rank_report import write_leaderboard_folder

        write_leaderboard_folder(result, leaderboard, files[0])
    if as_json:
        print_json({**_as_dict(result), **({} if found is None else {"reliability": found.as_dict()})})
    else:
        written = (out, heat_map, plot, report, leaderboard)
        print_tables(result, top, wide, [path for path in written if path is not None], found)
        if addition is not None:
            started = f" Started from {warm_start}." if warm_start is not None else ""
            console().print(f"Appended {addition.rows:,} rows to {addition.target}.{started}", soft_wrap=True)


def _check_addition(files: list[Path], append: Path) -> Addition:
    from crowdrank.errors import SettingError
    from crowdrank.io.writer import check_addition

    if len(files) > 1 or not files[0].is_file():
        raise SettingError("--append needs one file of judgments, to which the new ones are appended.")
    return check_addition(files[0], append)


def _check_targets(
    out: Path | None, report: Path | None, plot: Path | None, heat_map: Path | None, leaderboard: Path | None
) -> None:
    """Raise for files that cannot be written, before anything is read."""
    check_table(out)
    if report is None and plot is None and heat_map is None and leaderboard is None:
        return
    from crowdrank.reports import check_drawable, check_leaderboard, check_report

    if leaderboard is not None:
        check_leaderboard(leaderboard)
    if report is not None:
        check_report(report)
    for figure in (plot, heat_map):
        if figure is not None:
            check_drawable(figure)


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


def _write(result: RankResult, out: Path | None, heat_map: Path | None, plot: Path | None, top: int) -> None:
    ranking, level = result.ranking, result.options.level
    if out is not None:
        from crowdrank.io import write_table

        if out.suffix.lower() == ".json":
            ranking.save(out, uncertainty=result.has_uncertainty)
        else:
            from crowdrank.results import board_table

            name = "criterion" if result.options.criteria else "category"
            write_table(board_table(ranking, level, result.has_uncertainty, name), out)
    if heat_map is not None:
        from crowdrank.errors import DataError
        from crowdrank.reports import draw_heat_map

        if result.judgments.annotator is None:
            raise DataError("--heat-map shows annotators, but the judgments name none: pass --column annotator=COLUMN.")
        draw_heat_map(ranking.domains, heat_map)
    if plot is not None:
        from crowdrank.reports import draw_ranking

        with spinner(f"Drawing {plot.name}"):
            draw_ranking(ranking, plot, top=top, level=level, uncertainty=result.has_uncertainty)


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
