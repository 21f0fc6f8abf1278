"""For human eyes: what a terminal shows."""

from crowdrank.reports.terminal import (
    annotators_table,
    evaluation_table,
    facts,
    models_table,
    questions_table,
    ranking_tables,
    sways_table,
    systems_table,
)

__all__ = [
    "annotators_table", "evaluation_table", "facts", "models_table", "questions_table", "ranking_tables", "sways_table",
    "systems_table",
]  # fmt: skip
