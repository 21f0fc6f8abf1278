"""Crowds with a known truth: every paper's generator, and crowds mixed of all kinds of annotators."""

from crowdrank.simulated.annotators import mixed_crowd
from crowdrank.simulated.answering import Respondents, respondents
from crowdrank.simulated.crowd import Crowd
from crowdrank.simulated.crowd_bt import crowd_bt
from crowdrank.simulated.domains import domain_crowd, named_domain_crowd
from crowdrank.simulated.factors import factor_crowd
from crowdrank.simulated.lists import list_crowd
from crowdrank.simulated.spammers import with_spammers
from crowdrank.simulated.topics import preference_crowd, rating_crowd

__all__ = [
    "Crowd", "Respondents", "crowd_bt", "domain_crowd", "factor_crowd", "list_crowd", "mixed_crowd",
    "named_domain_crowd", "preference_crowd", "rating_crowd", "respondents", "with_spammers",
]  # fmt: skip
