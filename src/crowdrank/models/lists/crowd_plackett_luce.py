"""Plackett-Luce model of lists by annotators of different precision, with the annotators integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items, Judgments, Rankings
from crowdrank.engines.local import limit_blas_threads
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.laplace_mixture import LaplaceMixture
from crowdrank.models.base import (
    FitOptions,
    IterativeModel,
    build_ranking,
    check_connected,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.lists.annotator_classes import PRECISION, class_quality, summarise
from crowdrank.models.lists.crowd_likelihood import CrowdLists
from crowdrank.models.lists.crowd_posterior import CrowdMode, CrowdPosterior
from crowdrank.results import Convergence, Ranking, Uncertainty

MAX_ITEMS = 3_000
"""Items per query up to which the Hessian is factored."""
# Up to these sizes hyperparameters are integrated over a grid; beyond, the data fix them.
_FEW_ITEMS, _FEW_ROWS = 200, 5_000
# Items up to which the Hessian is one matrix; beyond, queries are taken as independent given the hyperparameters.
_LARGEST_JOINT = 500
_DRAWS = 1_000
# Components of less weight are left out of the annotators' estimates.
_SMALLEST_WEIGHT = 1e-3


@dataclass(frozen=True, kw_only=True)
class CrowdPlackettLuce(IterativeModel):
    """Plackett-Luce where each annotator has a precision, which is integrated out.

    Parameters
    ----------
    prior_scale : float or "auto", default "auto"
        Standard deviation τ of the normal prior on scores. "auto" learns it from all queries together.
    precision_spread : float or "auto", default "auto"
        Standard deviation ω of the log precision of regular annotators. 0 makes all annotators alike, without random
        and reversed ones. "auto" learns it.
    two_sided : bool, default True
        Let the bottom of a list count as much as its top: the list is also drawn from the bottom up. False draws from
        the top only, as plackett-luce does.
    tolerance : float, default 1e-4
        Stop when √(gᵀH⁻¹g), the distance to the optimum in standard errors, is below this.
    max_steps : int, default 200
        Maximum number of Newton steps.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    Annotator k draws a list from the top, each next item with probability ∝ exp(κₖ·s) among the remaining. The
    precision κₖ has a distribution on a grid: log κ ~ N(0, ω²) for regular annotators, κ = 0 for random ones and κ = −1
    for reversed ones. The likelihood of an annotator's lists is averaged over this grid, so an annotator with a single
    list is not overfitted. The shares of random and reversed annotators are learnt; the prior favours regular ones.

    With little data, τ and ω are integrated over a grid: Laplace approximations at each value, mixed by their evidence.
    The score is the posterior mean. The reported quality of an annotator is the probability that they order two items
    of a query right. Lists without annotators count as made by one annotator each.

    References: Luce (1959), Individual choice behavior; Plackett (1975), The analysis of permutations; Rue, Martino &
    Chopin (2009), Approximate Bayesian inference for latent Gaussian models.

    Examples
    --------
    >>> lists = [[["a"], ["b"], ["c"], ["d"]]] * 4 + [[["a"], ["c"], ["b"], ["d"]], [["d"], ["c"], ["b"], ["a"]]]
    >>> people = ["ann", "bob", "cat", "dan", "eve", "fay"]
    >>> ranking = CrowdPlackettLuce().fit(Rankings.of_lists(lists, annotator=people))
    >>> ranking.table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c', 'd']
    >>> bool(ranking.annotators["fay"]["quality"].value < ranking.annotators["ann"]["quality"].value)
    True
    """

    reads: ClassVar[type] = Rankings
    models_annotators: ClassVar[bool] = True
    shares_scores: ClassVar[bool] = True

    prior_scale: float | Literal["auto"] = "auto"
    precision_spread: float | Literal["auto"] = "auto"
    two_sided: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        scale, spread = self.prior_scale, self.precision_spread
        if scale != "auto" and (isinstance(scale, str) or not 0 < scale < np.inf):
            raise SettingError(f'prior_scale must be positive or "auto", got {scale!r}.')
        if spread != "auto" and (isinstance(spread, str) or not 0 <= spread < np.inf):
            raise SettingError(f'precision_spread must be zero or more, or "auto", got {spread!r}.')

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        lists = require_kind(Rankings, judgments, self)
        _check(lists)
        items = lists.items
        posterior = CrowdPosterior(
            CrowdLists.of(lists, PRECISION, _block_starts(items), two_sided=self.two_sided),
            len(items),
            None if isinstance(self.prior_scale, str) else self.prior_scale,
            None if isinstance(self.precision_spread, str) else self.precision_spread,
            self.tolerance,
            self.max_steps,
        )
        few = len(items) <= _FEW_ITEMS and len(lists.item) <= _FEW_ROWS
        with limit_blas_threads(len(items)):
            modes = posterior.on_grid() if few else [posterior.best()]
            mixture = LaplaceMixture([mode.component(items) for mode in modes])
        best = modes[int(np.argmax(mixture.weights))]
        ranking = build_ranking(
            self,
            lists,
            mixture.mean,
            log_likelihood=best.curvature.likelihood.value,
            parameters=_parameters(modes, mixture.weights),
            convergence=Convergence(best.found.converged, best.steps, best.found.distance),
            measure=lambda: Uncertainty(
                mixture.draw(_DRAWS, self.seed), mixture.std_error, _describe(len(modes)), sampled=True
            ),
        )
        return with_annotators(ranking, lists, lambda: _estimates(items, ranking.scores, modes, mixture.weights))


def _check(lists: Rankings) -> None:
    if not np.any(lists.place):
        raise DataError("The lists order no two items, so there is nothing to rank.")
    largest = int(np.diff(lists.items.starts).max())
    if largest > MAX_ITEMS:
        raise DataError(
            f"A query has {largest:,} items; crowd-plackett-luce needs a matrix of all pairs and accepts at most "
            f"{MAX_ITEMS:,}. Use plackett-luce instead."
        )
    check_connected(diagnose(lists), has_prior=True)


def _block_starts(items: Items) -> IntArray:
    return np.array([0, len(items)]) if len(items) <= _LARGEST_JOINT else np.asarray(items.starts, np.int64)


def _describe(components: int) -> str:
    return "Laplace approximation" if components == 1 else "Laplace approximations, mixed over the hyperparameters"


def _parameters(modes: list[CrowdMode], weights: FloatArray) -> dict[str, float]:
    """Posterior means of the hyperparameters; of the spread of scores, the geometric one."""
    shares = weights @ np.array([mode.population.shares for mode in modes])
    return {
        "prior_scale": float(np.exp(weights @ np.log([mode.scale for mode in modes]))),
        "precision_spread": float(weights @ np.array([mode.population.spread for mode in modes])),
        "random_share": float(shares[1]),
        "reversed_share": float(shares[2]),
    }


def _estimates(
    items: Items, scores: FloatArray, modes: list[CrowdMode], weights: FloatArray
) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
    kept = [(mode, weight) for mode, weight in zip(modes, weights, strict=True) if weight >= _SMALLEST_WEIGHT]
    posterior = sum(weight * mode.class_posterior() for mode, weight in kept) / sum(weight for _, weight in kept)
    return {
        "quality": summarise(np.asarray(posterior), class_quality(items, scores)),
        "precision": summarise(np.asarray(posterior), PRECISION),
    }
