"""The output of crowdrank rank. Without Typer, so that ranking a file with the default options starts quickly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdrank.cli.output import UNLIMITED, console, spinner, with_flags

if TYPE_CHECKING:
    from rich.console import Console

    from crowdrank.data import Judgments
    from crowdrank.evaluation import Reliability
    from crowdrank.models import Model
    from crowdrank.pipeline import RankResult
    from crowdrank.results import Ranking

# What crowdrank rank prints and writes besides, with --by or --criteria: the overall, differences, correlations.

_MAX_DIFFERENCES_SHOWN = 10


def print_overall(screen: Console, result: RankResult, top: int) -> None:
    """The overall, above the categories or criteria."""
    from crowdrank import reports

    overall = result.ranking.overall
    if overall is None:
        return
    (table,) = reports.ranking_tables(overall, top, result.options.level, result.has_uncertainty)
    table.title, table.title_justify = "overall", "left"
    screen.print(table)
    screen.print()


def print_differences(screen: Console, result: RankResult) -> None:
    """Items that differ significantly between categories, or the correlations of criteria."""
    from crowdrank import reports
    from crowdrank.results import category_differences, criterion_correlations

    options, ranking = result.options, result.ranking
    if ranking.overall is None or not result.has_uncertainty:
        return
    screen.print()
    if options.criteria:
        screen.print(reports.correlations_table(criterion_correlations(ranking, options.level), options.level))
        shares = [
            f"{value:.0%} {name.removeprefix('weight_of_')}" for name, value in ranking.overall.parameters.items()
        ]
        screen.print(f"Correlations are between true scores. The overall score is {', '.join(shares)}.", style="dim")
        return
    found = category_differences(ranking, options.level)
    sure = found.filter(found["sure"])
    spread = ranking.parameters["deviation_scale"]
    if sure.height:
        screen.print(reports.differences_table(sure, _MAX_DIFFERENCES_SHOWN))
    else:
        screen.print("No item differs significantly between categories.")
    screen.print(
        f"Deviations from the overall scores have a spread of {spread:.2f}; the overall scores have a spread of "
        f"{ranking.parameters['prior_scale']:.2f}.",
        style="dim",
    )


def boards_as_dict(result: RankResult) -> dict[str, Any]:
    """The overall, and differences of categories or correlations of criteria; empty without --by and --criteria."""
    from crowdrank.results import category_differences, criterion_correlations

    options, overall = result.options, result.ranking.overall
    if overall is None:
        return {}
    found: dict[str, Any] = {"overall": overall.to_polars(options.level, result.has_uncertainty).to_dicts()}
    if not result.has_uncertainty:
        return found
    if options.criteria:
        correlations = criterion_correlations(result.ranking, options.level)
        return found | {"weights": dict(overall.parameters), "correlations": correlations.to_dicts()}
    return found | {"differences": category_differences(result.ranking, options.level).to_dicts()}


ITEMS_SHOWN = 20
_MAX_QUERIES_SHOWN = 10
_MAX_BEST_SHOWN = 5
_MAX_MISFITS_SHOWN = 5


def rank_file(file: Path) -> None:
    """What `crowdrank rank FILE` does without options."""
    from crowdrank.pipeline import RankOptions, run

    print_tables(run(file, RankOptions(), spinner), ITEMS_SHOWN, wide=False, written=[])


def bias_effects_of(result: RankResult) -> list[Any]:
    """Effects of features on the answers, if the model has features and the uncertainty is known."""
    from crowdrank.models.selection import has_setting

    if not result.has_uncertainty or not has_setting(type(result.model), "features"):
        return []
    from crowdrank.results import bias_effects

    return bias_effects(result.ranking)


def control_as_dict(result: RankResult) -> dict[str, Any]:
    """Coefficients of covariates, and ranks with and without them; empty without --control."""
    from crowdrank.results import covariate_effects, rank_changes

    if not result.options.control:
        return {}
    effects = covariate_effects(result.ranking, result.options.level)
    return {
        "covariates": [effect._asdict() for effect in effects],
        "rank_changes": rank_changes(result.ranking).to_dicts(),
    }


def best_items_of(result: RankResult) -> list[str] | None:
    """The items that may be the best; None with several queries or without uncertainty."""
    from crowdrank.results import best_items

    if not result.has_uncertainty or len(result.ranking.items.queries) > 1:
        return None
    return best_items(result.ranking, result.options.level)


def provisional_of(result: RankResult) -> list[dict[str, Any]]:
    """Items with too few judgments, highest score first, without rank."""
    apart = result.ranking.provisional
    if apart is None:
        return []
    shown = ("query", "item", "score", "std_error", apart.judgment_kind)
    rows = apart.to_polars(result.options.level, result.has_uncertainty).to_dicts()
    return [{name: row[name] for name in shown if name in row} for row in rows]


def reliability_of(model: Model, judgments: Judgments, ranking: Ranking, seed: int | None) -> Reliability:
    """Reliability of the ranking; raises if it is not one of comparisons with uncertainty."""
    from crowdrank.data import Comparisons
    from crowdrank.errors import SettingError
    from crowdrank.evaluation import reliability

    if not isinstance(judgments, Comparisons) or not ranking.has_uncertainty:
        raise SettingError("--reliability needs a model of comparisons, such as bradley-terry, and uncertainty.")
    with spinner("Computing the reliability"):
        return reliability(model, judgments, ranking, seed=seed or 0)


def print_tables(
    result: RankResult, top: int, wide: bool, written: list[Path], reliability: Reliability | None = None
) -> None:
    """Print the import report, the ranking, what belongs to it, the notes, and the files that were written."""
    from crowdrank.pipeline import opening_notes

    screen = console(wide=wide)
    for note in result.choice.notes:
        screen.print(with_flags(note), style="bold yellow")
    _print_input(screen, result)
    _print_ranking(screen, result, top)
    _print_details(screen, result)
    if reliability is not None:
        print_reliability(screen, reliability)
    said = opening_notes(result)
    for note in result.ranking.notes:
        if note not in said:
            screen.print(f"Note: {with_flags(note)}", style="yellow")
    for path in written:
        screen.print(f"Written to {path}.", soft_wrap=True)


def _print_input(screen: Console, result: RankResult) -> None:
    from crowdrank.pipeline import describe_side_information
    from crowdrank.reports.terminal import facts

    screen.print(f"{facts(result.judgments)}.")
    for line in [] if result.report is None else result.report.lines():
        screen.print(f"  {with_flags(line)}", style="dim")
    if known := describe_side_information(result):
        screen.print(known, style="dim")
    screen.print(f"Ranked by {result.ranking.model}{f' ({result.conversion})' if result.conversion else ''}.")
    if result.choice.reason:
        screen.print(result.choice.reason)
    screen.print()


def _print_ranking(screen: Console, result: RankResult, top: int) -> None:
    from rich.measure import Measurement

    from crowdrank.reports.terminal import ranking_tables

    ranking = result.ranking
    print_overall(screen, result, top)
    with spinner("Computing the rank intervals"):
        tables = list(ranking_tables(ranking, top, result.options.level, result.has_uncertainty, _MAX_QUERIES_SHOWN))
    whole = screen.options.update(width=UNLIMITED)
    is_cut = any(Measurement.get(screen, whole, table).maximum > screen.width for table in tables)
    for table in tables:
        screen.print(table)
        screen.print()
    if is_cut:
        screen.print("Long names are cut: --wide shows them in full.", style="dim")
    _print_provisional(screen, result)
    if (more := len(ranking.items.queries) - _MAX_QUERIES_SHOWN) > 0:
        queries = "1 more query" if more == 1 else f"{more:,} more queries"
        screen.print(f"… and {queries}: --out writes them all.\n", style="dim")
    if result.has_uncertainty:
        together = " Rank intervals hold simultaneously for all items." if ranking.simultaneous else ""
        screen.print(
            f"{_errors_in_words(ranking.uncertainty.method)}{together} Within a group, the order is uncertain.",
            style="dim",
        )
    if (result.options.simultaneous or result.options.cluster) and (best := best_items_of(result)):
        others = f", … ({len(best):,} items)" if len(best) > _MAX_BEST_SHOWN else ""
        shown = ", ".join(best[:_MAX_BEST_SHOWN])
        one_of = "one of " if len(best) > 1 else ""
        screen.print(
            f"With {result.options.level:.0%} probability, the best item is {one_of}{shown}{others}.", style="dim"
        )


def _errors_in_words(method: str) -> str:
    """How the errors were computed, for the default model in plain words. `--out` has the name of the method."""
    if method.endswith("with annotators integrated out"):
        return "Errors include the uncertainty about the quality of annotators."
    return f"Errors by {method}."


def _print_provisional(screen: Console, result: RankResult) -> None:
    """Items with too few judgments for a rank."""
    from crowdrank import reports

    if rows := provisional_of(result):
        screen.print(f"Provisional, with fewer than {result.options.min_comparisons:,} {list(rows[0])[-1]}:")
        screen.print(reports.provisional_table(rows, ITEMS_SHOWN))
        screen.print()


def _print_details(screen: Console, result: RankResult) -> None:
    """Systems, bias effects, domains and the evaluation against gold, where there are any."""
    from crowdrank import reports

    if result.systems is not None:
        screen.print()
        screen.print(reports.systems_table(result.systems))
        resampled = "; the intervals are for queries like these" if result.systems.resampled else ""
        screen.print(
            f"Probability that an item of one system beats an item of another, mean over queries{resampled}.",
            style="dim",
        )
    if effects := bias_effects_of(result):
        screen.print()
        screen.print(reports.bias_effects_table(effects))
        screen.print("Effect: change in the probability that an average annotator answers left.", style="dim")
    if result.options.control:
        _print_control(screen, result)
    if result.ranking.overall is not None:
        print_differences(screen, result)
    if (drift := result.ranking.drift) is not None:
        screen.print()
        screen.print(drift.sentence())
        level = result.options.level
        screen.print(reports.drift_table(drift.changes(level, result.ranking.scale), drift.periods, level, ITEMS_SHOWN))
    if result.ranking.has_domains:
        screen.print()
        screen.print(reports.domains_report(result.ranking.domains))
    if result.evaluation is not None:
        screen.print()
        screen.print(reports.evaluation_table(result.evaluation))


def _print_control(screen: Console, result: RankResult) -> None:
    """Coefficients of covariates, and the items whose rank their control changes."""
    from crowdrank import reports
    from crowdrank.results import covariate_effects, rank_changes

    level, changes = result.options.level, rank_changes(result.ranking)
    screen.print()
    screen.print(reports.covariates_table(covariate_effects(result.ranking, level), level))
    screen.print()
    if any(changes["change"]):
        screen.print(reports.rank_changes_table(changes, ITEMS_SHOWN))
    else:
        screen.print("The control does not change any rank.")


def print_reliability(screen: Console, found: Reliability) -> None:
    """Print the numbers, and the judges and items with the largest misfit."""
    from crowdrank import reports

    screen.print()
    screen.print(
        f"Scale separation reliability {found.scale_separation:.2f}, split-half reliability "
        f"{_number(found.split_half)}, Krippendorff's alpha {_number(found.alpha)}."
    )
    for frame in (found.judges, found.items):
        if frame.height:
            screen.print()
            screen.print(reports.misfit_table(frame, _MAX_MISFITS_SHOWN))
    screen.print("Infit and outfit are 1 in expectation; larger values are misfit.", style="dim")


def _number(value: float) -> str:
    return "unknown" if value != value else f"{value:.2f}"
