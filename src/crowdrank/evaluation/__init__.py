"""How good it is: metrics against a known truth."""

from crowdrank.evaluation.agreement import (
    accuracy,
    kendall_correlation,
    kendall_distance,
    spearman_correlation,
    top_k_overlap,
)
from crowdrank.evaluation.gold import Evaluation, Gold, Measure, evaluate
from crowdrank.evaluation.relevance import average_precision, ndcg, precision_at, rbp

__all__ = [
    "Evaluation", "Gold", "Measure", "accuracy", "average_precision", "evaluate", "kendall_correlation",
    "kendall_distance", "ndcg", "precision_at", "rbp", "spearman_correlation", "top_k_overlap",
]  # fmt: skip
