"""For human eyes: what a terminal shows, and figures."""

from crowdrank.reports.curves import check_drawable, draw_curves
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
    "annotators_table", "check_drawable", "curves_tables", "draw_curves", "evaluation_table", "facts", "models_table",
    "plan_table", "questions_table", "ranking_tables", "sways_table", "systems_table",
]  # fmt: skip
