"""Results: rankings with their uncertainty, estimates of annotators and domains, comparisons of systems."""

from crowdrank.results.annotator_estimates import AnnotatorRow, Annotators, Interval
from crowdrank.results.bias_effects import BiasEffect, bias_effects
from crowdrank.results.convergence import CLOSED_FORM, Convergence
from crowdrank.results.domains import Domains
from crowdrank.results.lazy import LazyParts
from crowdrank.results.ranking import RankedItem, Ranking
from crowdrank.results.systems import Systems, compare_systems
from crowdrank.results.uncertainty import RankDistributions, Uncertainty

__all__ = [
    "CLOSED_FORM",
    "AnnotatorRow",
    "Annotators",
    "BiasEffect",
    "Convergence",
    "Domains",
    "Interval",
    "LazyParts",
    "RankDistributions",
    "RankedItem",
    "Ranking",
    "Systems",
    "Uncertainty",
    "bias_effects",
    "compare_systems",
]
