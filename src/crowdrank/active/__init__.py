"""Active collection: what to ask next and who to ask, when to stop, and how reliable the result is."""

from crowdrank.active.buying import Purchase, choose_answers
from crowdrank.active.collection import AnswerLog, Budget, SimulatedCollection, run_collection
from crowdrank.active.information_gain import best_pair, best_triplet, expected_gain
from crowdrank.active.null_simulation import NullSimulation, simulate_null
from crowdrank.active.planning import Plan, plan
from crowdrank.active.policies import (
    POLICIES,
    Adaptive,
    BasePolicy,
    BestAnnotator,
    Coverage,
    EpsilonGreedy,
    InformationGain,
    Policy,
    Random,
    Thompson,
    Uncertainty,
    batch,
    by_name,
)
from crowdrank.active.policy_comparison import PolicyComparison, compare_policies
from crowdrank.active.questions import Question, QuestionHistory, Rules
from crowdrank.active.reliability import Reliability, reliability
from crowdrank.active.stopping import Decision, Forecast, decision, forecast, forecast_from_draws, is_confirmed

__all__ = [
    "POLICIES",
    "Adaptive",
    "AnswerLog",
    "BasePolicy",
    "BestAnnotator",
    "Budget",
    "Coverage",
    "Decision",
    "EpsilonGreedy",
    "Forecast",
    "InformationGain",
    "NullSimulation",
    "Plan",
    "Policy",
    "PolicyComparison",
    "Purchase",
    "Question",
    "QuestionHistory",
    "Random",
    "Reliability",
    "Rules",
    "SimulatedCollection",
    "Thompson",
    "Uncertainty",
    "batch",
    "best_pair",
    "best_triplet",
    "by_name",
    "choose_answers",
    "compare_policies",
    "decision",
    "expected_gain",
    "forecast",
    "forecast_from_draws",
    "is_confirmed",
    "plan",
    "reliability",
    "run_collection",
    "simulate_null",
]
