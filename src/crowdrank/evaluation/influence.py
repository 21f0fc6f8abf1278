"""Influence of each judgment on the difference between two scores, and chains of judgments that carry it.

At the maximum of a likelihood with a normal prior, the scores are a weighted least squares fit, so the difference of
two scores is a sum over the judgments. With m the margin of a judgment, ℓ′ the derivative of its log probability in m,
I its information, Λ the precision of the prior and x = e_left − e_right:

    v = (Σ w·I·x xᵀ + Λ)⁻¹ (e_a − e_b),    influence = w·(v_left − v_right)·(I·m + ℓ′).

v is a potential: as in a resistor network, w·I·(v_left − v_right) is the flow through a judgment when one unit flows
from a to b. Chains are paths of that flow. Scores that are posterior means are not quite at that maximum; what they
differ by is shared out in proportion to w·I·(v_left − v_right)².
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import TIE, Comparisons
from crowdrank.errors import DataError
from crowdrank.results import Ranking

MAX_ITEMS = 5_000
"""Largest query that can be explained: the computation needs a table of its pairs."""
RELIABILITY_ESTIMATE = {"bradley-terry": "", "crowd-bt": "quality", "factor-bt": "attention"}
"""Models that can be explained, and the name of their estimate of an annotator's reliability."""
_MIN_FLOW = 1e-3
"""Chains that carry less of the flow than this are not listed."""


@dataclass(frozen=True)
class Influence:
    """Influence of the judgments of one query.

    Parameters
    ----------
    rows : array of int
        The judgments of the query.
    influence : array of float
        Contribution of each judgment to the score of one item minus that of the other.
    left, right : array of int
        Items of each judgment, as positions within the query.
    flow : array of float
        Flow from left to right through each judgment.
    potential : array of float
        v of each item; flow runs from higher to lower potential.
    """

    rows: IntArray
    influence: FloatArray
    left: IntArray
    right: IntArray
    flow: FloatArray
    potential: FloatArray


def judgment_influence(model: Any, name: str, ranking: Ranking, comparisons: Comparisons, a: int, b: int) -> Influence:
    """Return the influence of each judgment on the score of item a minus that of item b, two items of one query."""
    block = comparisons.items.of_query(int(comparisons.items.query[a]))
    size = block.stop - block.start
    if size > MAX_ITEMS:
        raise DataError(f"Explaining needs a query of at most {MAX_ITEMS:,} items, got {size:,}.")
    rows = np.flatnonzero((comparisons.left >= block.start) & (comparisons.left < block.stop))
    asked = comparisons.take(rows)
    gradient, information = derivatives(model, name, ranking, asked)
    left, right = asked.left.astype(np.int64) - block.start, asked.right.astype(np.int64) - block.start
    scores = ranking.scores[block]
    weight = asked.weights * information
    prior_scale = ranking.parameters.get("prior_scale", model.prior_scale)  # learnt, if "auto"
    potential = _potentials(left, right, weight, size, a - block.start, b - block.start, prior_scale)
    drop = asked.weights * (potential[left] - potential[right])
    influence = drop * (information * (scores[left] - scores[right]) + gradient)
    if model.prior_scale == "auto":
        remainder = ranking.scores[a] - ranking.scores[b] - influence.sum()
        influence += remainder * _shares(drop * information * (potential[left] - potential[right]))
    return Influence(rows, influence, left, right, drop * information, potential)


def _shares(power: FloatArray) -> FloatArray:
    """Shares of a total; none if the total is zero."""
    total = float(power.sum())
    return power / total if total > 0 else np.zeros(len(power))


def derivatives(model: Any, name: str, ranking: Ranking, asked: Comparisons) -> tuple[FloatArray, FloatArray]:
    """Derivative of each answer's log probability in the margin, and the expected information."""
    probability = model.predict(ranking, asked)
    left, right, outcome = probability[:, 0], probability[:, 2], asked.outcome.astype(np.float64)
    if not RELIABILITY_ESTIMATE[name]:
        lead = left - right  # Davidson's model; without ties it is Bradley–Terry
        return (outcome - lead) / 2, (left + right - lead**2) / 4
    reliability = ranking.annotators.estimate(RELIABILITY_ESTIMATE[name])[asked.annotator]
    if name == "crowd-bt":
        reliability = 2 * reliability - 1
    margin = ranking.scores[asked.left] - ranking.scores[asked.right]
    slope = reliability / (4 * np.cosh(margin / 2) ** 2)
    tie = probability[:, 1]
    left, right = left / (1 - tie), right / (1 - tie)  # of a decided answer
    given = np.where(outcome > 0, left, right)
    decided = asked.outcome != TIE
    used = decided | (tie > 0)
    # Davidson's factor: with C = 2·cosh(m/2), log P(tie) = log ν − log(C + ν) and log P(decided) = log C − log(C + ν)
    shift = np.tanh(margin / 2) / 2
    gradient = np.where(decided, outcome * slope / given + tie * shift, (tie - 1) * shift)
    information = (1 - tie) * slope**2 / (left * right) + tie * (1 - tie) * shift**2
    return np.where(used, gradient, 0.0), np.where(used, information, 0.0)


def _potentials(
    left: IntArray, right: IntArray, weight: FloatArray, size: int, a: int, b: int, prior_scale: float
) -> FloatArray:
    matrix = np.bincount(left * size + right, weight, size * size).reshape(size, size)
    matrix = -(matrix + matrix.T)
    matrix[np.diag_indices(size)] = 1.0 / prior_scale**2 - matrix.sum(axis=1)
    source = np.zeros(size)
    source[a], source[b] = 1.0, -1.0
    return np.asarray(np.linalg.solve(matrix, source))


def widest_chains(found: Influence, a: int, b: int, limit: int) -> Iterator[tuple[list[int], float]]:
    """Yield the chains through other items that carry most flow, with their influence; positions are within the query.

    Each chain takes the flow of its weakest link, which is then gone for the next. So nothing counts twice, and the
    influences of all chains, of the direct judgments and of the prior add up to the difference of the scores.
    """
    size = len(found.potential)
    flow, influence = (_sum_pairs(found, values, size) for values in (found.flow, found.influence))
    # Flow has a direction; influence is on a minus b, whichever item was shown on the left.
    flow, influence = flow - flow.T, influence + influence.T
    with np.errstate(divide="ignore", invalid="ignore"):
        per_flow = np.where(flow != 0, influence / flow, 0.0)
    flow[a, b] = flow[b, a] = 0.0
    for _ in range(limit):
        path, width = _widest_path(flow, found.potential, a, b)
        if width < _MIN_FLOW:
            return
        links = list(pairwise(path))
        yield path, width * sum(float(per_flow[link]) for link in links)
        for i, j in links:
            flow[i, j] -= width
            flow[j, i] += width


def _sum_pairs(found: Influence, values: FloatArray, size: int) -> FloatArray:
    """Sums by left and right item."""
    return np.asarray(np.bincount(found.left * size + found.right, values, size * size).reshape(size, size), np.float64)


def _widest_path(flow: FloatArray, potential: FloatArray, a: int, b: int) -> tuple[list[int], float]:
    """Path from a to b along falling potential whose weakest link is strongest (dynamic programming)."""
    width, previous = np.zeros(len(potential)), np.full(len(potential), -1)
    width[a] = np.inf
    for item in np.argsort(-potential, kind="stable"):
        if width[item] <= 0 or item == b:
            continue
        through = np.minimum(width[item], flow[item])
        wider = through > width
        width[wider], previous[wider] = through[wider], item
    path = [b]
    while path[-1] != a and previous[path[-1]] >= 0:
        path.append(int(previous[path[-1]]))
    return path[::-1], float(width[b]) if path[-1] == a else 0.0
