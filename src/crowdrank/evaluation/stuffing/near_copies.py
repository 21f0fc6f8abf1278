"""Annotators who are nearly copies of each other: they agree more often than what each of them knows explains.

The chance that two annotators agree on a question is that of two logistic regressions of their answers, on what all
others answered and on the sides. The number of agreements then has a Poisson binomial distribution. Annotators
share more than the regressions know, so the distribution is widened as much as the agreement of all pairs of
annotators shows (Efron 2004).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import LEFT, Comparisons
from crowdrank.evaluation.stuffing.decided_votes import StuffingAlarm, Votes

# Fewest common questions, and the share of equal answers.
_MIN_COMMON, _MIN_AGREEMENT = 10, 0.95
# Precision of the prior of the regressions' coefficients, and how many answers the scores count for.
_COEFFICIENT_PRECISION, _SHRINKAGE = 0.25, 4.0


def copies(votes: Votes, level: float) -> Iterator[StuffingAlarm]:
    assert votes.annotator is not None
    margin = votes.margins(votes.fit().scores)
    for group, agreed, n, p in _near_copies(votes.comparisons, votes.annotator, margin, level):
        rows = np.flatnonzero(np.isin(votes.annotator, group))
        names = ", ".join(str(votes.labels[w]) for w in group[:4]) + (", …" if len(group) > 4 else "")
        why = f"{names} gave nearly the same answers: for two of them, {agreed:,} of {n:,} to common questions."
        yield votes.alarm("copies", None, group, rows, p, why)


def _near_copies(
    comparisons: Comparisons, annotator: IntArray, margin: FloatArray, level: float
) -> Iterator[tuple[IntArray, int, int, float]]:
    """Yield groups of annotators who are nearly copies: codes, agreements and questions of the clearest pair, p-value.

    Parameters
    ----------
    comparisons : Comparisons
        Decided votes.
    annotator : array of int
        Who gave each.
    margin : array of float
        Score of left minus that of right, for each vote.
    level : float
        Probability of any group among independent annotators.
    """
    answers, lean = _answer_tables(comparisons, annotator, margin)
    pairs = _compare_answers(answers, lean)
    if not len(pairs.one):
        return
    standard = (pairs.agreed - pairs.expected) / np.sqrt(pairs.variance + 1e-9)
    low, median, high = np.quantile(standard, (0.25, 0.5, 0.75))
    centre, width = max(float(median), 0.0), max(float(high - low) / 1.349, 1.0)
    found: list[tuple[int, int, int, int, float]] = []
    for k in np.flatnonzero(pairs.agreed >= _MIN_AGREEMENT * pairs.common):
        one, other = int(pairs.one[k]), int(pairs.other[k])
        product = (lean[[one]] * lean[[other]]).data
        chance = np.append((1 + product) / 2, np.full(int(pairs.common[k]) - len(product), 0.5))
        p = _widened(_tail_probability(chance, int(pairs.agreed[k])), centre, width) * len(pairs.one)
        if p < level:
            found.append((one, other, int(pairs.agreed[k]), int(pairs.common[k]), p))
    yield from _groups(found)


def _answer_tables(comparisons: Comparisons, annotator: IntArray, margin: FloatArray) -> tuple[Any, Any]:
    """Sparse tables of annotators × questions: the answers, 1 for the first item and −1 for the second, and 2P − 1."""
    from scipy.sparse import csr_array

    left, right = comparisons.left.astype(np.int64), comparisons.right.astype(np.int64)
    first, second = np.minimum(left, right), np.maximum(left, right)
    questions, question = np.unique(first * len(comparisons.items) + second, return_inverse=True)
    question = question.ravel()
    toward = np.where((left == first) == (comparisons.outcome == LEFT), 1.0, -1.0)
    chance = _answer_model(comparisons, annotator, margin, toward, question)

    def tabulate(values: FloatArray) -> Any:
        shape = (len(comparisons.annotators), len(questions))
        table = csr_array((values, (annotator, question)), shape=shape)
        table.sum_duplicates()
        return table

    # An annotator who answered a question several times counts once, with the answer given more often.
    answers, lean = tabulate(toward), tabulate(2 * chance - 1)
    answers.data = np.sign(answers.data)
    lean.data /= tabulate(np.ones(len(toward))).data
    lean = lean * abs(answers)
    answers.eliminate_zeros()
    return answers, lean


class _AnswerPairs(NamedTuple):
    """Pairs of annotators with enough common questions: how often they agreed, and how often by chance."""

    one: IntArray
    other: IntArray
    common: FloatArray
    agreed: FloatArray
    expected: FloatArray
    variance: FloatArray


def _compare_answers(answers: Any, lean: Any) -> _AnswerPairs:
    """With t = 2·P(first) − 1 of each, two annotators agree with probability ½(1 + t₁t₂)."""
    asked = abs(answers)
    common = (asked @ asked.T).tocoo()
    kept = (common.row < common.col) & (common.data >= _MIN_COMMON)
    one, other, n = common.row[kept].astype(np.int64), common.col[kept].astype(np.int64), common.data[kept]
    same, product, square = (
        np.asarray((table @ table.T).tocsr()[one, other]).ravel() for table in (answers, lean, lean * lean)
    )
    return _AnswerPairs(one, other, n, (n + same) / 2, (n + product) / 2, (n - square) / 4)


def _widened(p: float, centre: float, width: float) -> float:
    """A p-value under a normal distribution with another centre and width."""
    from scipy.special import ndtr, ndtri

    # Beyond the range of a double the tail is that of the smallest p-value, which is small enough.
    return float(ndtr((ndtri(max(p, 1e-300)) + centre) / width))


def _answer_model(
    comparisons: Comparisons, who: IntArray, margin: FloatArray, toward: FloatArray, question: IntArray
) -> FloatArray:
    """Probability that each answer is for the first item of its question, by a logistic regression per annotator.

    On the side, the order of the labels, and the logit of what all others answered to the question, shrunk towards what
    the scores say. So experts, careless annotators, those who always choose one side, and questions that mislead
    everybody are expected to agree as often as they do.
    """
    sign = np.where(comparisons.left < comparisons.right, 1.0, -1.0)
    chance = 1 / (1 + np.exp(-sign * margin))
    given = (toward > 0).astype(np.float64)
    wins, total = np.bincount(question, given)[question] - given, np.bincount(question)[question] - 1.0
    chance = (wins + _SHRINKAGE * chance) / (total + _SHRINKAGE)
    x = np.stack((np.log(chance / (1 - chance)), sign, np.ones(len(sign))), axis=1)
    size = len(comparisons.annotators)
    weights = np.tile(np.array([1.0, 0.0, 0.0]), (size, 1))
    start = weights.copy()
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(np.sum(weights[who] * x, axis=1), -30, 30)))
        gap, unsure = (toward > 0) - chance, chance * (1 - chance)
        gradient = np.stack([np.bincount(who, gap * x[:, k], size) for k in range(3)], axis=1)
        gradient -= _COEFFICIENT_PRECISION * (weights - start)
        hessian = np.array([[np.bincount(who, unsure * x[:, j] * x[:, k], size) for k in range(3)] for j in range(3)])
        hessian = hessian.transpose(2, 0, 1) + _COEFFICIENT_PRECISION * np.eye(3)
        weights = weights + np.clip(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], -1.0, 1.0)
    return np.asarray(1 / (1 + np.exp(-np.clip(np.sum(weights[who] * x, axis=1), -30, 30))))


def _tail_probability(chance: FloatArray, count: int) -> float:
    """Probability of at least `count` successes among independent trials."""
    missed = len(chance) - count
    distribution = np.zeros(missed + 1)  # of the number of failures, cut at what was seen
    distribution[0] = 1.0
    for p in chance:
        distribution[1:] = distribution[1:] * p + distribution[:-1] * (1 - p)
        distribution[0] *= p
    return float(distribution.sum())


def _groups(copies: list[tuple[int, int, int, int, float]]) -> Iterator[tuple[IntArray, int, int, float]]:
    """Annotators connected by pairs of copies, with the clearest pair of each group."""
    parent: dict[int, int] = {}

    def root(n: int) -> int:
        while parent.setdefault(n, n) != n:
            n = parent[n]
        return n

    for u, v, *_ in copies:
        parent[root(u)] = root(v)
    for top in sorted({root(u) for u, *_ in copies}):
        members = np.array(sorted(n for n in parent if root(n) == top), np.int64)
        *_, agreed, n, p = min((pair for pair in copies if root(pair[0]) == top), key=lambda pair: pair[-1])
        yield members, agreed, n, p
