"""What crowdrank rank prints and writes besides, with --by or --criteria: the overall, differences, correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from crowdrank.pipeline import RankResult

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
    """Which items surely differ between categories, or how criteria are correlated."""
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
        screen.print(f"Correlations are those of true scores. The overall is {', '.join(shares)}.", style="dim")
        return
    found = category_differences(ranking, options.level)
    sure = found.filter(found["sure"])
    spread = ranking.parameters["deviation_scale"]
    if sure.height:
        screen.print(reports.differences_table(sure, _MAX_DIFFERENCES_SHOWN))
    else:
        screen.print("No item surely differs between categories.")
    screen.print(
        f"Deviations of a category from the overall have a spread of {spread:.2f}, the overall scores of "
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
