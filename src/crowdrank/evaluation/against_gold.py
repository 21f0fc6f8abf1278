"""Several models against the same gold: each metric, with the error of what sets them apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from crowdrank.evaluation.agreement import accuracy
from crowdrank.evaluation.gold import Evaluation, Gold, evaluate, match_gold
from crowdrank.evaluation.paired import Estimate
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]

_RESAMPLES = 100


def grades(rankings: Mapping[str, Ranking], gold: Gold) -> dict[str, Evaluation]:
    """Every ranking graded."""
    return {name: evaluate(ranking.scores, ranking.items, gold) for name, ranking in rankings.items()}


def accuracy_gains(
    rankings: Mapping[str, Ranking], gold: Gold, plain: str, rng: np.random.Generator
) -> dict[str, Estimate]:
    """How much more accurate than the plain model; the error is between queries or, of one, by resampling its items."""
    found = grades(rankings, gold)
    by_query = {name: grade.by_query["accuracy"].to_numpy() for name, grade in found.items()}
    queries = len(by_query[plain])
    if queries > 1:
        return {name: _between_queries(values - by_query[plain]) for name, values in by_query.items()}
    places, truth = match_gold(rankings[plain].items, gold)
    drawn = [rng.integers(len(places), size=len(places)) for _ in range(_RESAMPLES)]
    again = {name: _resampled(ranking.scores[places], truth, drawn) for name, ranking in rankings.items()}
    return {
        name: Estimate(found[name].accuracy - found[plain].accuracy, float(np.nanstd(values - again[plain])))
        for name, values in again.items()
    }


def _between_queries(difference: Vector) -> Estimate:
    told = difference[~np.isnan(difference)]
    if len(told) < 2:
        return Estimate(float(np.mean(told)) if len(told) else np.nan, np.nan)
    return Estimate(float(np.mean(told)), float(np.std(told, ddof=1) / np.sqrt(len(told))))


def _resampled(scores: Vector, truth: Vector, drawn: list[npt.NDArray[np.int64]]) -> Vector:
    return np.array([accuracy(scores[rows], truth[rows]) for rows in drawn])
