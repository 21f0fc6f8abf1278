"""Simulated votes with a known truth; log-likelihood and accuracy of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Votes:
    """Who was shown beside whom, and whether left won. Items are numbered from zero; there are no ties."""

    items: int
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    left_won: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.left)

    @property
    def winner(self) -> npt.NDArray[np.int32]:
        return np.where(self.left_won, self.left, self.right)

    @property
    def loser(self) -> npt.NDArray[np.int32]:
        return np.where(self.left_won, self.right, self.left)


def draw(items: int, rows: int, seed: int = 0) -> Votes:
    """Scores from N(0, 1), every pair as likely as any other, logistic answers."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(items)
    left = rng.integers(items, size=rows, dtype=np.int32)
    right = rng.integers(items - 1, size=rows, dtype=np.int32)
    right += right >= left  # any item but the left one
    chance = 1.0 / (1.0 + np.exp(scores[right] - scores[left]))
    return Votes(items, left, right, rng.random(rows) < chance)


def truth(items: int, seed: int = 0) -> Scores:
    """The scores that votes of this seed were drawn from: the first thing any of the crowds here draws."""
    return np.random.default_rng(seed).standard_normal(items)


def pairs_right(scores: Any, truth: Scores) -> float:
    """The share of all pairs of items that stand in their true order: (1 + Kendall's τ) / 2."""
    from scipy.stats import kendalltau

    return float(0.5 + 0.5 * kendalltau(scores, truth).statistic)


def centre(scores: Any) -> Scores:
    column: Scores = np.asarray(scores, dtype=np.float64)
    return np.asarray(column - column.mean())


def log_likelihood(scores: Scores, votes: Votes) -> float:
    """Σ log σ(winner's score − loser's), computed here so that no library evaluates itself."""
    margin = scores[votes.winner] - scores[votes.loser]
    return -float(np.logaddexp(0.0, -margin).sum())
