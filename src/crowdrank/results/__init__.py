"""Results: rankings with their uncertainty, estimates of annotators and domains, comparisons of systems."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crowdrank.results.covariates import BiasEffect, bias_effects
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

if TYPE_CHECKING:
    from crowdrank.results.categories import board_table, category_differences, criterion_correlations
    from crowdrank.results.covariates import CovariateEffect, covariate_effects, rank_changes
    from crowdrank.results.decisions import best_items, order_for_ndcg
    from crowdrank.results.domains import Domains
    from crowdrank.results.drift import Drift
    from crowdrank.results.systems import Systems, compare_systems

# Imported on first use.
_HOME = {
    "CovariateEffect": "covariates",
    "Domains": "domains",
    "Drift": "drift",
    "Systems": "systems",
    "best_items": "decisions",
    "board_table": "categories",
    "category_differences": "categories",
    "compare_systems": "systems",
    "covariate_effects": "covariates",
    "criterion_correlations": "categories",
    "order_for_ndcg": "decisions",
    "rank_changes": "covariates",
}

__all__ = [
    "CLOSED_FORM",
    "SCALES",
    "AnnotatorRow",
    "Annotators",
    "BiasEffect",
    "Convergence",
    "CovariateEffect",
    "Domains",
    "Drift",
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
    "board_table",
    "category_differences",
    "compare_systems",
    "covariate_effects",
    "criterion_correlations",
    "make_scale",
    "order_for_ndcg",
    "rank_changes",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"crowdrank.results.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
