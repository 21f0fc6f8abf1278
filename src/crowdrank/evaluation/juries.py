"""Which judges to ask: juries of growing size, chosen greedily, with accuracy on pairs that did not choose them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray, IntArray

_MAX_SIZE, _FOLDS, _MIN_PAIRS = 9, 5, 10


@dataclass(frozen=True, kw_only=True)
class CandidateJury:
    """A jury that decides by majority.

    Parameters
    ----------
    members : tuple of int
        Positions of the judges, in the order in which they were chosen.
    accuracy : float
        Share of pairs that such a jury decides correctly, by cross-validation: the members are chosen on some pairs and
        tested on the others. A tie is half right.
    std_error : float
        Standard error of `accuracy`.
    price : float
        What one question costs; NaN if the price of a member is unknown.
    """

    members: tuple[int, ...]
    accuracy: float
    std_error: float
    price: float


def compare_juries(
    answer: FloatArray,
    reference: FloatArray,
    candidates: IntArray,
    prices: FloatArray,
    budget: float | None = None,
    seed: int = 0,
) -> tuple[CandidateJury, ...]:
    """Return the best juries of 1, 2, … members; none if too few pairs have a reference, or nobody is affordable.

    Parameters
    ----------
    answer : array, shape (judges, pairs)
        Answers, −1 to 1; NaN counts as no vote.
    reference : array, shape (judges, pairs)
        What is right: 1 or −1; NaN where it is unknown.
    candidates : array of int
        Judges that can be members.
    prices : array
        What a question costs with each judge; NaN if unknown.
    budget : float, optional
        The most that a question may cost with the whole jury.
    seed : int, default 0
        Seed of the folds.
    """
    truth = reference[candidates[0]] if candidates.size else np.zeros(0)
    known = np.isfinite(truth)
    if known.sum() < _MIN_PAIRS:
        return ()
    votes = np.nan_to_num(answer[np.ix_(candidates, np.flatnonzero(known))]) * truth[known]
    price = prices[candidates]
    whole = _greedy(votes, price, budget)
    fold = np.random.default_rng(seed).permutation(votes.shape[1]) % _FOLDS
    held_out = np.zeros((len(whole), votes.shape[1]))
    for k in range(_FOLDS):
        chosen = _greedy(votes[:, fold != k], price, budget)
        for size in range(1, len(whole) + 1):
            held_out[size - 1, fold == k] = _right(votes[chosen[:size]][:, fold == k].sum(axis=0))
    return tuple(
        CandidateJury(
            members=tuple(int(candidates[n]) for n in whole[:size]),
            accuracy=float(held_out[size - 1].mean()),
            std_error=float(held_out[size - 1].std() / np.sqrt(votes.shape[1])),
            price=float(price[whole[:size]].sum()),
        )
        for size in range(1, len(whole) + 1)
    )


def _greedy(votes: FloatArray, prices: FloatArray, budget: float | None) -> list[int]:
    """Add the judge with whom the majority is right most often, while the budget lasts.

    Among equals, the judge is added who is right most often alone.
    """
    alone = _right(votes).mean(axis=1)
    chosen: list[int] = []
    total, spent = np.zeros(votes.shape[1]), 0.0
    while len(chosen) < min(_MAX_SIZE, len(votes)):
        gain = _right(total + votes).mean(axis=1) + 1e-6 * alone
        gain[chosen] = -1.0
        if budget is not None:
            gain[~(spent + prices <= budget * (1 + 1e-9))] = -1.0
        best = int(np.argmax(gain))
        if gain[best] < 0:
            break
        chosen.append(best)
        total, spent = total + votes[best], spent + float(prices[best])
    return chosen


def _right(total: FloatArray) -> FloatArray:
    """1 where the sum of votes is for the right side, ½ for a tie, 0 where it is wrong."""
    return np.where(np.abs(total) < 1e-9, 0.5, (total > 0).astype(np.float64))


def recommend_jury(juries: Sequence[CandidateJury]) -> CandidateJury | None:
    """Return the smallest jury whose accuracy is within one standard error of the best."""
    if not juries:
        return None
    best = max(juries, key=lambda jury: jury.accuracy)
    return next(jury for jury in juries if jury.accuracy >= best.accuracy - best.std_error)
