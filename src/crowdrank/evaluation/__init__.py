"""How good it is: metrics against a known truth, chances given to judgments held out, verdicts on annotators."""

from crowdrank.evaluation.annotator_removal import Moves, leave_out
from crowdrank.evaluation.cross_validation import HeldOut, held_out
from crowdrank.evaluation.explanation import Explanation, explain
from crowdrank.evaluation.gold import Evaluation, Gold, Measure, evaluate
from crowdrank.evaluation.model_comparison import ModelComparison, compare_models
from crowdrank.evaluation.rank_correlation import (
    accuracy,
    kendall_correlation,
    kendall_distance,
    spearman_correlation,
    top_k_overlap,
)
from crowdrank.evaluation.recommendation import Recommendation
from crowdrank.evaluation.relevance import average_precision, ndcg, precision_at, rbp
from crowdrank.evaluation.verdicts import Verdicts, verdicts
from crowdrank.models.cross_validation import log_probabilities

__all__ = [
    "Evaluation",
    "Explanation",
    "Gold",
    "HeldOut",
    "Measure",
    "ModelComparison",
    "Moves",
    "Recommendation",
    "Verdicts",
    "accuracy",
    "average_precision",
    "compare_models",
    "evaluate",
    "explain",
    "held_out",
    "kendall_correlation",
    "kendall_distance",
    "leave_out",
    "log_probabilities",
    "ndcg",
    "precision_at",
    "rbp",
    "spearman_correlation",
    "top_k_overlap",
    "verdicts",
]
