"""Which question to ask: one protocol, `next(beliefs, asked, annotator, rng) -> Question`, and what follows it."""

from crowdrank.active.policies.base import Chooser, Policy
from crowdrank.active.policies.composite import Adaptive, Coverage, EpsilonGreedy, Random, Thompson, Uncertainty
from crowdrank.active.policies.information_gain import InformationGain
from crowdrank.errors import UnknownNameError

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
    "POLICIES",
    "Adaptive",
    "Chooser",
    "Coverage",
    "EpsilonGreedy",
    "InformationGain",
    "Policy",
    "Random",
    "Thompson",
    "Uncertainty",
    "by_name",
]
