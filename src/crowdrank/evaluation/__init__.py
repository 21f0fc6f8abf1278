"""Evaluation: metrics against gold, cross-validation, comparison of models, verdicts on annotators, explanations."""

from crowdrank.evaluation.cross_validation import CrossValidation, cross_validate
from crowdrank.evaluation.diagnostics import (
    Calibration,
    Disagreement,
    PositionBias,
    calibration,
    disagreement,
    position_bias,
)
from crowdrank.evaluation.explanation import Explanation, explain
from crowdrank.evaluation.fragility import Fragility, RankChanges, fragility, remove_annotators
from crowdrank.evaluation.gold import Evaluation, Gold, Measure, evaluate, evaluate_scores
from crowdrank.evaluation.interval_coverage import Coverage, count_held
from crowdrank.evaluation.judge_agreement import effective_number, judge_biases, kappa
from crowdrank.evaluation.judge_audit import CandidateJury, JudgeAudit, audit_judges
from crowdrank.evaluation.metrics import (
    accuracy,
    average_precision,
    kendall_correlation,
    kendall_distance,
    ndcg,
    precision_at,
    rbp,
    spearman_correlation,
    top_k_overlap,
)
from crowdrank.evaluation.model_comparison import ModelComparison, ModelScore, compare_models
from crowdrank.evaluation.psychometrics import Reliability, krippendorff_alpha, reliability
from crowdrank.evaluation.recommendation import Recommendation
from crowdrank.evaluation.self_check import Check, check_design
from crowdrank.evaluation.stuffing import StuffingAlarm, StuffingTest, find_stuffing
from crowdrank.evaluation.verdicts import VERDICTS, Verdict, Verdicts, verdicts
from crowdrank.models.camps import Camps, find_camps
from crowdrank.models.cross_validation import log_probabilities

__all__ = [
    "VERDICTS",
    "Calibration",
    "Camps",
    "CandidateJury",
    "Check",
    "Coverage",
    "CrossValidation",
    "Disagreement",
    "Evaluation",
    "Explanation",
    "Fragility",
    "Gold",
    "JudgeAudit",
    "Measure",
    "ModelComparison",
    "ModelScore",
    "PositionBias",
    "RankChanges",
    "Recommendation",
    "Reliability",
    "StuffingAlarm",
    "StuffingTest",
    "Verdict",
    "Verdicts",
    "accuracy",
    "audit_judges",
    "average_precision",
    "calibration",
    "check_design",
    "compare_models",
    "count_held",
    "cross_validate",
    "disagreement",
    "effective_number",
    "evaluate",
    "evaluate_scores",
    "explain",
    "find_camps",
    "find_stuffing",
    "fragility",
    "judge_biases",
    "kappa",
    "kendall_correlation",
    "kendall_distance",
    "krippendorff_alpha",
    "log_probabilities",
    "ndcg",
    "position_bias",
    "precision_at",
    "rbp",
    "reliability",
    "remove_annotators",
    "spearman_correlation",
    "top_k_overlap",
    "verdicts",
]
