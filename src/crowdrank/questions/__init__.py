"""What to ask next and of whom: information gain, policies, budgets, stopping."""

from crowdrank.questions.asked import Asked
from crowdrank.questions.batch import batch
from crowdrank.questions.budget import Budget
from crowdrank.questions.collecting import Collection, Log
from crowdrank.questions.comparing import Curves, compare_policies
from crowdrank.questions.forecasting import Forecast, forecast
from crowdrank.questions.gain import best_pair, best_triplet, expected_gain
from crowdrank.questions.null import NullCheck, null_check
from crowdrank.questions.planning import Plan, plan
from crowdrank.questions.policies import (
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
)  # fmt: skip
from crowdrank.questions.question import Question
from crowdrank.questions.random_share import Reliability, reliability
from crowdrank.questions.rules import Rules
from crowdrank.questions.stopping import confirmed, decision

__all__ = [
    "POLICIES", "Adaptive", "Asked", "Budget", "Collection", "Coverage", "Curves", "EpsilonGreedy", "Forecast",
    "InformationGain", "Log", "NullCheck", "Plan", "Policy", "Question", "Random", "Reliability", "Rules", "Thompson",
    "Uncertainty", "batch", "best_pair", "best_triplet", "by_name", "compare_policies", "confirmed", "decision",
    "expected_gain", "forecast", "null_check", "plan", "reliability",
]  # fmt: skip
