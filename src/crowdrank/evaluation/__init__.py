"""How good it is: metrics against a known truth, chances given to judgments held out, verdicts on annotators."""

from crowdrank.evaluation.agreement import (
    accuracy,
    kendall_correlation,
    kendall_distance,
    spearman_correlation,
    top_k_overlap,
)
from crowdrank.evaluation.gold import Evaluation, Gold, Measure, evaluate
from crowdrank.evaluation.held_out import HeldOut, held_out
from crowdrank.evaluation.relevance import average_precision, ndcg, precision_at, rbp
from crowdrank.evaluation.verdicts import Verdicts, verdicts
from crowdrank.models.foretelling import log_chances

__all__ = [
    "Evaluation",
    "Gold",
    "HeldOut",
    "Measure",
    "Verdicts",
    "accuracy",
    "average_precision",
    "evaluate",
    "held_out",
    "kendall_correlation",
    "kendall_distance",
    "log_chances",
    "ndcg",
    "precision_at",
    "rbp",
    "spearman_correlation",
    "top_k_overlap",
    "verdicts",
]
