"""Results: rankings with their uncertainty, estimates of annotators and domains, comparisons of systems."""

from crowdrank.results.best import best_items
from crowdrank.results.bias_effects import BiasEffect, bias_effects
from crowdrank.results.covariates import CovariateEffect, covariate_effects, rank_changes
from crowdrank.results.domains import Domains
from crowdrank.results.parts import (
    CLOSED_FORM,
    AnnotatorRow,
    Annotators,
    Convergence,
    Interval,
    LazyParts,
    RankDistributions,
    RankedItem,
    Uncertainty,
)
from crowdrank.results.ranking import Ranking
from crowdrank.results.scales import SCALES, Scale, make_scale
from crowdrank.results.systems import Systems, compare_systems

__all__ = [
    "CLOSED_FORM",
    "SCALES",
    "AnnotatorRow",
    "Annotators",
    "BiasEffect",
    "Convergence",
    "CovariateEffect",
    "Domains",
    "Interval",
    "LazyParts",
    "RankDistributions",
    "RankedItem",
    "Ranking",
    "Scale",
    "Systems",
    "Uncertainty",
    "best_items",
    "bias_effects",
    "compare_systems",
    "covariate_effects",
    "make_scale",
    "rank_changes",
]
