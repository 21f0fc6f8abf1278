"""Explanation of why one item is ranked above another: direct judgments, chains through other items, and refits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from crowdrank.arrays import AnyArray, BoolArray, FloatArray, IntArray
from crowdrank.data import LEFT, TIE, Comparisons, Judgments
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation.cross_validation import fit_quietly
from crowdrank.models import by_name
from crowdrank.models.selection import convert_for, default_model
from crowdrank.results import Ranking

# Influence of each judgment on the difference between two scores, and chains of judgments that carry it.
#
# At the maximum of a likelihood with a normal prior, the scores are a weighted least squares fit, so the difference
# of two scores is a sum over the judgments. With m the margin of a judgment, ℓ′ the derivative of its log probability
# in m, I its information, Λ the precision of the prior and x = e_left − e_right:
#
# v = (Σ w·I·x xᵀ + Λ)⁻¹ (e_a − e_b), influence = w·(v_left − v_right)·(I·m + ℓ′).
#
# v is a potential: as in a resistor network, w·I·(v_left − v_right) is the flow through a judgment when one unit
# flows from a to b. Chains are paths of that flow. Scores that are posterior means are not quite at that maximum;
# what they differ by is shared out in proportion to w·I·(v_left − v_right)².

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


MAX_REFIT_JUDGMENTS = 50_000
"""With more judgments than this, the model is not fitted again without some of them."""
_MAX_CHAINS, _MAX_REFITS = 30, 3


@dataclass(frozen=True)
class AnnotatorInfluence:
    """The answers of one annotator, and their influence on the difference of the two scores.

    Parameters
    ----------
    annotator : str
        Label of the annotator; "" if the judgments do not name annotators.
    reliability : float or None
        Quality or attention that the model estimated; None if it treats all annotators alike.
    above, below, ties : int
        Number of direct answers for the item, for the other, and of ties.
    direct : float
        Influence of the direct answers.
    influence : float
        Influence of all answers of the annotator.
    """

    annotator: str
    reliability: float | None
    above: int
    below: int
    ties: int
    direct: float
    influence: float


@dataclass(frozen=True)
class Chain:
    """A path of compared items from one item to the other.

    Parameters
    ----------
    items : tuple of str
        The items of the path.
    judgments : int
        Number of judgments between neighbours.
    influence : float
        Influence of the path.
    """

    items: tuple[str, ...]
    judgments: int
    influence: float


@dataclass(frozen=True)
class Refit:
    """The result of a fit without some judgments.

    Parameters
    ----------
    left_out : str
        The judgments left out: "the direct answers" or an annotator.
    judgments : int
        Number of judgments left out.
    difference : float
        Difference of the two scores.
    probability : float
        Probability that the item truly ranks above the other.
    """

    left_out: str
    judgments: int
    difference: float
    probability: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why `item` is ranked above `other`, or is not. Influences add up to the difference of the scores.

    Parameters
    ----------
    item, other : str
        The two items.
    query : str or None
        Their query.
    model : str
        Name of the model.
    rule : str
        How ratings or lists were converted to comparisons; "" for comparisons.
    difference : float
        Score of the item minus that of the other.
    probability : float
        Probability that the item truly ranks above the other.
    direct : float
        Influence of the direct answers.
    judgments : int
        Number of direct answers.
    indirect : float
        Influence of all other answers.
    annotators : tuple of AnnotatorInfluence
        All annotators, largest influence first.
    chains : tuple of Chain
        The chains with most flow, largest influence first.
    refits : tuple of Refit
        Fits without the direct answers, and without the most influential annotators.
    """

    item: str
    other: str
    query: str | None
    model: str
    rule: str
    difference: float
    probability: float
    direct: float
    judgments: int
    indirect: float
    annotators: tuple[AnnotatorInfluence, ...]
    chains: tuple[Chain, ...]
    refits: tuple[Refit, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return asdict(self)


def explain(
    judgments: Judgments, item: object, above: object, *, query: object | None = None, model: str | None = None
) -> Explanation:
    """Explain why `item` is ranked above the item `above`.

    Parameters
    ----------
    judgments : Judgments
        The judgments.
    item, above : str
        Two items of one query.
    query : str, optional
        Their query; may be left out if there is only one.
    model : {"bradley-terry", "crowd-bt", "factor-bt"}, optional
        Model to explain; by default that of `crowdrank.rank`, if it can be explained.

    Returns
    -------
    Explanation
        Influence of direct and indirect judgments, by annotator and by chain.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"])
    >>> why = explain(votes, "a", "c")
    >>> round(why.direct + why.indirect - why.difference, 6)
    0.0
    """
    name = default_model(judgments, among=RELIABILITY_ESTIMATE).name if model is None else model
    if name not in RELIABILITY_ESTIMATE:
        by_name(name)  # raises for names that do not exist, with a suggestion
        raise SettingError(f"{name} cannot be explained: use one of {', '.join(RELIABILITY_ESTIMATE)}.")
    fitted_model = by_name(name)()
    comparisons, rule = convert_for(fitted_model, judgments)
    assert isinstance(comparisons, Comparisons)
    a, b = comparisons.items.index(item, query), comparisons.items.index(above, query)
    if a == b:
        raise SettingError(f"Name two different items, got {item!r} twice.")
    ranking, _ = fit_quietly(fitted_model, comparisons)
    probability = _probability(ranking, a, b)
    if name == "bradley-terry":  # influences add up at a given spread of the scores, not in a mean over several
        spread = ranking.parameters["prior_scale"]
        fitted_model = replace(fitted_model, prior_scale=spread, tolerance=1e-6)  # type: ignore[call-arg]
        ranking, _ = fit_quietly(fitted_model, comparisons)
    found = judgment_influence(fitted_model, name, ranking, comparisons, a, b)
    direct = _is_direct(found, comparisons, a, b)
    return Explanation(
        item=str(item),
        other=str(above),
        query=str(query) if comparisons.items.has_queries else None,
        model=name,
        rule=rule,
        difference=float(ranking.scores[a] - ranking.scores[b]),
        probability=probability,
        direct=float(found.influence[direct].sum()),
        judgments=int(direct.sum()),
        indirect=float(found.influence[~direct].sum()),
        annotators=_by_annotator(comparisons, name, ranking, found, direct, a),
        chains=_chains(comparisons, found, a, b),
        refits=tuple(_refits(fitted_model, comparisons, found, direct, a, b)),
    )


def _probability(ranking: Ranking, a: int, b: int) -> float:
    return ranking.uncertainty.probability_above(ranking.scores, a, b)


def _is_direct(found: Influence, comparisons: Comparisons, a: int, b: int) -> BoolArray:
    left, right = comparisons.left[found.rows], comparisons.right[found.rows]
    return np.asarray(((left == a) & (right == b)) | ((left == b) & (right == a)))


def _by_annotator(
    comparisons: Comparisons, name: str, ranking: Ranking, found: Influence, direct: BoolArray, a: int
) -> tuple[AnnotatorInfluence, ...]:
    asked = comparisons.take(found.rows)
    annotator = np.zeros(len(asked), np.int64) if asked.annotator is None else asked.annotator
    labels = [""] if asked.annotator is None else asked.annotators.tolist()
    estimate = RELIABILITY_ESTIMATE[name]
    reliability = ranking.annotators.estimate(estimate) if estimate else None
    won = np.where(asked.outcome == LEFT, asked.left, asked.right) == a
    tied = asked.outcome == TIE

    def total(values: AnyArray) -> list[Any]:
        return np.bincount(annotator, values, len(labels)).tolist()  # type: ignore[no-any-return]

    counts = [total(direct & kind) for kind in (won & ~tied, ~won & ~tied, tied)]
    columns = zip(labels, *counts, total(found.influence * direct), total(found.influence), strict=True)
    rows = [
        AnnotatorInfluence(
            annotator=str(label),
            reliability=None if reliability is None else float(reliability[n]),
            above=int(above),
            below=int(below),
            ties=int(ties),
            direct=directly,
            influence=influence,
        )
        for n, (label, above, below, ties, directly, influence) in enumerate(columns)
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.influence), row.annotator)))


def _chains(comparisons: Comparisons, found: Influence, a: int, b: int) -> tuple[Chain, ...]:
    first = int(comparisons.items.starts[comparisons.items.query[a]])
    size = len(found.potential)
    low, high = np.minimum(found.left, found.right), np.maximum(found.left, found.right)
    n_judgments = np.bincount(low * size + high, minlength=size**2)
    chains = []
    for path, influence in widest_chains(found, a - first, b - first, _MAX_CHAINS):
        judgments = sum(int(n_judgments[min(link) * size + max(link)]) for link in pairwise(path))
        labels = tuple(str(comparisons.items.labels[first + n]) for n in path)
        chains.append(Chain(labels, judgments, influence))
    return tuple(sorted(chains, key=lambda chain: -abs(chain.influence)))


def _refits(
    model: Any, comparisons: Comparisons, found: Influence, direct: BoolArray, a: int, b: int
) -> Iterator[Refit]:
    """Fit without the direct answers, and without the most influential annotators, one at a time."""
    if len(comparisons) > MAX_REFIT_JUDGMENTS:
        return
    is_direct = np.zeros(len(comparisons), bool)
    is_direct[found.rows[direct]] = True
    groups: list[tuple[str, BoolArray]] = [("the direct answers", is_direct)]
    if comparisons.annotator is not None:
        total = np.bincount(comparisons.annotator[found.rows], found.influence, len(comparisons.annotators))
        largest = np.argsort(-np.abs(total), kind="stable")[:_MAX_REFITS]
        groups += [(str(comparisons.annotators[n]), comparisons.annotator == n) for n in largest]
    for name, removed in groups:
        rest = comparisons.take(np.flatnonzero(~removed))
        if removed.any() and rest.ties < len(rest):
            ranking, _ = fit_quietly(model, rest)
            difference = float(ranking.scores[a] - ranking.scores[b])
            yield Refit(name, int(removed.sum()), difference, _probability(ranking, a, b))
