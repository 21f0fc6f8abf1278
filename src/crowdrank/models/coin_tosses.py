"""Errors of models that estimate annotators together with the scores, calibrated on coin tosses.

A model with parameters per annotator can fit them to noise: it finds the annotators who happen to agree, believes them,
and sees an order where there is none. The curvature at the optimum does not show this. So the model is fitted to coin
tosses on the same pairs by the same annotators, which shows by how much scores of equal items scatter beyond their
errors. Then the draws are shrunk towards each other by empirical Bayes, as those of the bootstrap are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.models.bootstrap import shrunken_draws
from crowdrank.results import Uncertainty

# Tables of coin tosses are fitted until they have about this many items in all, but no more tables than the second.
_ITEMS, _TABLES = 60, 4

Refit = Callable[[Comparisons], tuple[FloatArray, FloatArray]]
"""Fits other answers to the same questions; returns scores and their standard errors."""


def calibrate_on_coin_tosses(
    comparisons: Comparisons, scores: FloatArray, plain: Uncertainty, refit: Refit, seed: int
) -> Uncertainty:
    """Widen errors by what the model finds in coin tosses, and shrink the draws.

    Parameters
    ----------
    comparisons : Comparisons
        The judgments. If they are streamed from disk, errors are not widened.
    scores : array of float
        Estimated scores.
    plain : Uncertainty
        Standard errors and draws by the curvature at the optimum.
    refit : callable
        Fits the model to coin tosses.
    seed : int
        Seed of the tosses and the draws.

    Notes
    -----
    With errors eᵢ of centred scores sᵢ, the ratio R = Σ sᵢ² / Σ eᵢ² should be 1 for coin tosses, and is f. Where the
    judgments themselves have R ≫ f, annotators are fitted to differences between the items and not to noise, so error
    variances are multiplied by 1 + (f − 1)·min(1, f/R).
    """
    items = comparisons.items
    factor, method = 1.0, plain.method
    if comparisons.storage is None:
        method = f"{method}, calibrated on coin tosses"
        tossed = _ratio_of_tosses(comparisons, refit, seed)
        found = _ratio(items.centre(scores), plain.std_error)
        factor = 1.0 + max(tossed - 1.0, 0.0) * min(1.0, tossed / max(found, 1e-12))
    widened = scores + np.sqrt(factor) * (plain.draws - scores)
    draws = shrunken_draws(widened, items, comparisons.n_judgments_per_item, len(comparisons), seed)
    draws += scores - items.centre(scores)
    return Uncertainty(draws, np.sqrt(factor) * plain.std_error, method, sampled=True)


def _ratio_of_tosses(comparisons: Comparisons, refit: Refit, seed: int) -> float:
    """Mean of the ratio over a few tables of coin tosses."""
    tables = int(np.clip(-(-_ITEMS // len(comparisons.items)), 1, _TABLES))
    rng = np.random.default_rng([seed, 2])
    ratios = []
    for _ in range(tables):
        tossed, errors = refit(coin_tosses(comparisons, rng))
        ratios.append(_ratio(comparisons.items.centre(tossed), errors))
    return float(np.mean(ratios))


def _ratio(centred: FloatArray, errors: FloatArray) -> float:
    return float(np.sum(centred**2) / max(float(np.sum(errors**2)), 1e-300))


def coin_tosses(comparisons: Comparisons, rng: np.random.Generator) -> Comparisons:
    """The same comparisons with every decided outcome tossed. The tosses do not depend on the order of the rows."""
    first, second = np.minimum(comparisons.left, comparisons.right), np.maximum(comparisons.left, comparisons.right)
    keys = (second, first) if comparisons.annotator is None else (comparisons.annotator, second, first)
    order = np.lexsort(keys)
    won = np.empty(len(comparisons), comparisons.outcome.dtype)
    won[order] = rng.choice(np.array([-1, 1], won.dtype), len(won))
    outcome = np.where(comparisons.left == first, won, -won) * (comparisons.outcome != 0)
    return replace(comparisons, outcome=outcome.astype(won.dtype))
