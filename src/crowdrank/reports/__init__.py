"""For human eyes: what a terminal shows, figures, and a page with all of it."""

from crowdrank.reports.domain_tables import domains_report
from crowdrank.reports.figures import check_drawable, draw_curves, draw_heat_map, draw_ranking
from crowdrank.reports.html import Findings, check_report, report, write_report
from crowdrank.reports.terminal import (
    annotators_table,
    curves_tables,
    evaluation_table,
    facts,
    models_table,
    plan_table,
    questions_table,
    ranking_tables,
    sways_table,
    systems_table,
)

__all__ = [
    "Findings",
    "annotators_table",
    "check_drawable",
    "check_report",
    "curves_tables",
    "domains_report",
    "draw_curves",
    "draw_heat_map",
    "draw_ranking",
    "evaluation_table",
    "facts",
    "models_table",
    "plan_table",
    "questions_table",
    "ranking_tables",
    "report",
    "sways_table",
    "systems_table",
    "write_report",
]
