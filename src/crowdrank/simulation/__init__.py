"""Simulated crowds with a known truth: the generators of the papers, and crowds of mixed annotators."""

from crowdrank.simulation.annotator_types import mixed_crowd
from crowdrank.simulation.crowd import Crowd, Respondents, respondents
from crowdrank.simulation.domains import domain_crowd, named_domain_crowd, preference_crowd, rating_crowd
from crowdrank.simulation.lists import list_crowd
from crowdrank.simulation.pairwise import crowd_bt, factor_crowd, with_spammers

__all__ = [
    "Crowd",
    "Respondents",
    "crowd_bt",
    "domain_crowd",
    "factor_crowd",
    "list_crowd",
    "mixed_crowd",
    "named_domain_crowd",
    "preference_crowd",
    "rating_crowd",
    "respondents",
    "with_spammers",
]
