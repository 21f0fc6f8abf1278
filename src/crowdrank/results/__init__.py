"""Results: rankings with their uncertainty, estimates of annotators and domains, comparisons of systems."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crowdrank.results.bias_effects import BiasEffect, bias_effects
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

if TYPE_CHECKING:
    from crowdrank.results.domains import Domains
    from crowdrank.results.systems import Systems, compare_systems

# Imported on first use.
_HOME = {
    "Domains": "domains",
    "Systems": "systems",
    "compare_systems": "systems",
}

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


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"crowdrank.results.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
