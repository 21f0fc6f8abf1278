"""Beliefs about one query from a fit of tpp, for choosing questions."""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.errors import DataError
from crowdrank.online.beliefs import Beliefs, Vocabulary
from crowdrank.results import Domains, Ranking

# The logistic function of 1.702·x approximates the normal distribution function best.
_LOGISTIC = 1.702
_N_NODES = 32
_MIN_VARIANCE = 1e-6


def beliefs_from_ranking(ranking: Ranking, query: object) -> Beliefs:
    """Express a fit of tpp as Crowd-BT beliefs about one query.

    Parameters
    ----------
    ranking : Ranking
        A ranking fitted by tpp.
    query : object
        The label of the query.

    Returns
    -------
    Beliefs
        Mean and variance of the scores of the query's items, and ``alpha`` and ``beta`` of the annotators there.

    Notes
    -----
    Scores are rescaled so that an annotator without noise answers like the truthful annotator of Crowd-BT. Quality is
    how often other annotators do, on two items that the noiseless one orders correctly in 84 of 100 cases.
    """
    if "spread" not in ranking.parameters:
        raise DataError(f"A ranking by {ranking.model} has no domains: fit tpp first.")
    domains, place = ranking.domains, ranking.items.query_code(query)
    items = ranking.items.of_query(place)
    noise = np.sqrt(domains.difficulty[0][place])
    factor = _LOGISTIC * ranking.parameters["spread"] / (np.sqrt(2.0) * noise)
    mean, variance = _quality_moments(domains, place, noise)
    count = mean * (1.0 - mean) / variance - 1.0
    scores = ranking.uncertainty.draws[:, items] * factor
    label = str(ranking.items.queries[place]) if ranking.items.has_queries else ""
    return Beliefs(
        items=Vocabulary.of(ranking.items.labels[items], label),
        annotators=Vocabulary.of(domains.annotators),
        item_columns={"mean": scores.mean(axis=0), "variance": scores.var(axis=0)},
        annotator_columns={"alpha": mean * count, "beta": (1.0 - mean) * count},
        n_judgments=int(domains.n_judgments.sum()),
    )


def _quality_moments(domains: Domains, place: int, noise: float) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each annotator's quality, over the posterior of τ and of the query's domain."""
    from scipy.special import ndtr, ndtri

    # Gauss–Hermite quadrature over τ, whose posterior is taken as normal
    node, weight = np.polynomial.hermite_e.hermegauss(_N_NODES)
    middle, low, high = domains.expertise
    std = (high - low) / (2.0 * ndtri(0.5 + 0.5 * domains.level))
    tau = middle[..., None] + std[..., None] * node
    truthful = ndtr(1.0)
    agreement = ndtr(tau * noise / np.sqrt(1.0 + (tau * noise) ** 2))
    quality = (agreement - (1.0 - truthful)) / (2.0 * truthful - 1.0)
    share = domains.membership[place][:, None] * weight / weight.sum()
    mean = np.sum(quality * share, axis=(1, 2))
    variance = np.sum(quality**2 * share, axis=(1, 2)) - mean**2
    mean = np.clip(mean, 0.001, 0.999)
    return mean, np.clip(variance, _MIN_VARIANCE, 0.999 * mean * (1.0 - mean))
