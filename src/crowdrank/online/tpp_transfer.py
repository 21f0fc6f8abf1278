"""What a fit with hidden domains believes of one query and of annotators there: for choosing what to ask of whom."""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.errors import DataError
from crowdrank.online.beliefs import Beliefs, Roll
from crowdrank.results import Domains, Ranking

# The logistic curve comes nearest the normal one when its argument is stretched by this.
_LOGISTIC = 1.702
_NODES = 32
_LEAST_VARIANCE = 1e-6


def beliefs_of(ranking: Ranking, query: object) -> Beliefs:
    """Crowd-BT's beliefs of one query, as near as they come to a fit of tpp.

    Scores are stretched so that an annotator without noise of their own answers as Crowd-BT's truthful one; quality is
    how far others do, on two items that the noiseless one tells apart in 84 of 100 cases.
    """
    if "spread" not in ranking.parameters:
        raise DataError(f"{ranking.model} learnt nothing of domains: fit tpp first.")
    domains, place = ranking.domains, ranking.items.query_code(query)
    items = ranking.items.of_query(place)
    blur = np.sqrt(domains.difficulty[0][place])
    stretch = _LOGISTIC * ranking.parameters["spread"] / (np.sqrt(2.0) * blur)
    mean, variance = _quality(domains, place, blur)
    credit = mean * (1.0 - mean) / variance - 1.0
    scores = ranking.uncertainty.draws[:, items] * stretch
    label = str(ranking.items.queries[place]) if ranking.items.has_queries else ""
    return Beliefs(
        items=Roll.of(ranking.items.labels[items], label),
        annotators=Roll.of(domains.annotators),
        of_items={"mean": scores.mean(axis=0), "variance": scores.var(axis=0)},
        of_annotators={"truths": mean * credit, "lies": (1.0 - mean) * credit},
        judged=int(domains.n_judgments.sum()),
    )


def _quality(domains: Domains, place: int, blur: float) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each annotator's quality, over what is believed of τ and of the query's domain."""
    from scipy.special import ndtr, ndtri

    node, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    middle, low, high = domains.expertise
    spread = (high - low) / (2.0 * ndtri(0.5 + 0.5 * domains.level))
    tau = middle[..., None] + spread[..., None] * node
    sure = ndtr(1.0)
    agreed = ndtr(tau * blur / np.sqrt(1.0 + (tau * blur) ** 2))
    quality = (agreed - (1.0 - sure)) / (2.0 * sure - 1.0)
    share = domains.membership[place][:, None] * weight / weight.sum()
    mean = np.sum(quality * share, axis=(1, 2))
    variance = np.sum(quality**2 * share, axis=(1, 2)) - mean**2
    mean = np.clip(mean, 0.001, 0.999)
    return mean, np.clip(variance, _LEAST_VARIANCE, 0.999 * mean * (1.0 - mean))
