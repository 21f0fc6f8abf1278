"""Parts of a ranking that are computed when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crowdrank.arrays import IntArray
from crowdrank.data import Judgments
from crowdrank.results.annotator_estimates import Annotators
from crowdrank.results.domains import Domains
from crowdrank.results.uncertainty import Uncertainty


@dataclass(frozen=True, kw_only=True)
class LazyParts:
    """Functions behind the lazy attributes of a `Ranking`. Only code that builds rankings needs it.

    Parameters
    ----------
    n_judgments : callable
        Returns the number of judgments in which each item appears.
    uncertainty, annotators, domains : callable, optional
        Return the part of that name; None if the ranking does not have it.
    notes : callable, optional
        Returns notes on the data. `Ranking.notes` adds those on convergence and on reversed annotators.
    judgments : Judgments, optional
        The judgments that the ranking was fitted to.
    """

    n_judgments: Callable[[], IntArray]
    uncertainty: Callable[[], Uncertainty] | None = None
    annotators: Callable[[], Annotators] | None = None
    domains: Callable[[], Domains] | None = None
    notes: Callable[[], list[str]] | None = None
    judgments: Judgments | None = None
