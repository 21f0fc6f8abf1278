"""For human eyes: what a terminal shows, and figures."""

from crowdrank.reports.curves import draw_curves
from crowdrank.reports.domains import domains_report
from crowdrank.reports.drawing import check_drawable
from crowdrank.reports.heat import draw_heat_map
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
    "annotators_table", "check_drawable", "curves_tables", "domains_report", "draw_curves", "draw_heat_map",
    "evaluation_table", "facts", "models_table", "plan_table", "questions_table", "ranking_tables", "sways_table",
    "systems_table",
]  # fmt: skip
