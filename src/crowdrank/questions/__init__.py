"""What to ask next and of whom: information gain, policies, budgets, stopping."""

from crowdrank.questions.asked import Asked
from crowdrank.questions.batch import batch
from crowdrank.questions.collecting import Collection, Log
from crowdrank.questions.comparing import Curves, compare_policies
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
from crowdrank.questions.rules import Rules

__all__ = [
    "POLICIES", "Adaptive", "Asked", "Collection", "Coverage", "Curves", "EpsilonGreedy", "InformationGain", "Log",
    "Policy", "Question", "Random", "Rules", "Thompson", "Uncertainty", "batch", "by_name", "compare_policies",
]  # fmt: skip
