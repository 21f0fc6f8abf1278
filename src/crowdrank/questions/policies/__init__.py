"""Which question to ask: one protocol, `next(beliefs, asked, annotator, rng) -> Question`, and what follows it."""

from crowdrank.errors import UnknownNameError
from crowdrank.questions.policies.gain import InformationGain
from crowdrank.questions.policies.mixed import Adaptive, EpsilonGreedy
from crowdrank.questions.policies.parts import Coverage, Random, Thompson, Uncertainty
from crowdrank.questions.policies.policy import Chooser, Policy

POLICIES: dict[str, type[Chooser]] = {
    policy.name: policy
    for policy in (Adaptive, Thompson, InformationGain, EpsilonGreedy, Uncertainty, Coverage, Random)
}
"""By the name that questions carry."""


def by_name(name: str) -> type[Chooser]:
    if name not in POLICIES:
        raise UnknownNameError("policy", name, POLICIES)
    return POLICIES[name]


__all__ = [
    "POLICIES", "Adaptive", "Chooser", "Coverage", "EpsilonGreedy", "InformationGain", "Policy", "Random", "Thompson",
    "Uncertainty", "by_name",
]  # fmt: skip
