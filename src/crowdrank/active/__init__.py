"""What to ask next and of whom: information gain, policies, budgets, stopping."""

from crowdrank.active.batches import batch
from crowdrank.active.budget import Budget
from crowdrank.active.collection import Collection, Log
from crowdrank.active.forecasting import Forecast, forecast
from crowdrank.active.history import Asked
from crowdrank.active.information_gain import best_pair, best_triplet, expected_gain
from crowdrank.active.null_simulation import NullCheck, null_check
from crowdrank.active.planning import Plan, plan
from crowdrank.active.policies import (
    POLICIES,
    Adaptive,
    Coverage,
    EpsilonGreedy,
    InformationGain,
    Policy,
    Random,
    Thompson,
    Uncertainty,
    by_name,
)
from crowdrank.active.policy_comparison import Curves, compare_policies
from crowdrank.active.question import Question, Rules
from crowdrank.active.reliability import Reliability, reliability
from crowdrank.active.stopping import confirmed, decision

__all__ = [
    "POLICIES",
    "Adaptive",
    "Asked",
    "Budget",
    "Collection",
    "Coverage",
    "Curves",
    "EpsilonGreedy",
    "Forecast",
    "InformationGain",
    "Log",
    "NullCheck",
    "Plan",
    "Policy",
    "Question",
    "Random",
    "Reliability",
    "Rules",
    "Thompson",
    "Uncertainty",
    "batch",
    "best_pair",
    "best_triplet",
    "by_name",
    "compare_policies",
    "confirmed",
    "decision",
    "expected_gain",
    "forecast",
    "null_check",
    "plan",
    "reliability",
]
