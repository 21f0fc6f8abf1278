"""For human eyes: what a terminal shows."""

from crowdrank.reports.terminal import evaluation_table, facts, models_table, ranking_tables

__all__ = ["evaluation_table", "facts", "models_table", "ranking_tables"]
