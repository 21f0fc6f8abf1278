"""Reports: terminal tables, figures and the HTML report. Names are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_MODULES = {
    "crowdrank.reports.figures": ("check_drawable", "check_report", "draw_curves", "draw_heat_map", "draw_ranking"),
    "crowdrank.reports.html": ("Findings", "report", "write_report"),
    "crowdrank.reports.leaderboard_page": ("Leaderboard", "check_leaderboard", "leaderboard_html", "write_leaderboard"),
    "crowdrank.reports.terminal": (
        "correlations_table",
        "covariates_table",
        "differences_table",
        "drift_table",
        "misfit_table",
        "provisional_table",
        "rank_changes_table",
        "annotators_table",
        "bias_effects_table",
        "curves_tables",
        "domains_report",
        "evaluation_table",
        "facts",
        "label",
        "models_table",
        "number_column",
        "plan_table",
        "questions_table",
        "ranking_tables",
        "short",
        "systems_table",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Findings",
    "Leaderboard",
    "annotators_table",
    "bias_effects_table",
    "check_drawable",
    "check_leaderboard",
    "check_report",
    "correlations_table",
    "covariates_table",
    "curves_tables",
    "differences_table",
    "domains_report",
    "draw_curves",
    "draw_heat_map",
    "draw_ranking",
    "drift_table",
    "evaluation_table",
    "facts",
    "label",
    "leaderboard_html",
    "misfit_table",
    "models_table",
    "number_column",
    "plan_table",
    "provisional_table",
    "questions_table",
    "rank_changes_table",
    "ranking_tables",
    "report",
    "short",
    "systems_table",
    "write_leaderboard",
    "write_report",
]

if TYPE_CHECKING:
    from crowdrank.reports.figures import check_drawable, check_report, draw_curves, draw_heat_map, draw_ranking
    from crowdrank.reports.html import Findings, report, write_report
    from crowdrank.reports.leaderboard_page import Leaderboard, check_leaderboard, leaderboard_html, write_leaderboard
    from crowdrank.reports.terminal import (
        annotators_table,
        bias_effects_table,
        correlations_table,
        covariates_table,
        curves_tables,
        differences_table,
        domains_report,
        drift_table,
        evaluation_table,
        facts,
        label,
        misfit_table,
        models_table,
        number_column,
        plan_table,
        provisional_table,
        questions_table,
        rank_changes_table,
        ranking_tables,
        short,
        systems_table,
    )


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that tables do not wait for the imports of the HTML report."""
    if name in _MODULE_OF:
        globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
