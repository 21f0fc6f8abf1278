"""The votes that the tests examine, what these have in common, and the alarms that they raise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import LEFT, Comparisons
from crowdrank.errors import muted_warnings

MIN_VOTES = 20
"""Fewest decided votes for any test."""
MIN_GROUP_VOTES, MIN_OTHER_VOTES = 10, 5
"""Fewest votes about an item, of a suspected group and of all others."""
MIN_EXCESS = 0.1
"""Smallest difference between the shares of votes won and expected that raises an alarm."""
SHIFTS = np.linspace(-12.0, 12.0, 241)
"""Shifts of the score of an item over which likelihoods are maximised."""
MAX_CELLS = 5_000_000
"""More annotators times items are not examined for newcomers."""
MAX_ANNOTATORS = 3_000
"""More annotators are not compared with each other."""
# Standard deviation of the preferences of annotators for an item, at least; and precision of their discrimination.
_MIN_PREFERENCE_SPREAD = 0.3
_DISCRIMINATION_PRECISION = 0.25


@dataclass(frozen=True, kw_only=True)
class StuffingAlarm:
    """One finding.

    Parameters
    ----------
    kind : {"campaign", "copies", "burst", "newcomers"}
        The test that raised the alarm.
    item : str or None
        The item that profits or suffers; None for copies.
    annotators : tuple of str
        The annotators involved; empty if they are unknown.
    votes : array of int
        Positions of their votes.
    p_value : float
        Probability of such a finding anywhere in an honest collection, by this test.
    reason : str
        The finding in one sentence.
    """

    kind: str
    item: str | None
    annotators: tuple[str, ...]
    votes: IntArray
    p_value: float
    reason: str


class Fit(NamedTuple):
    scores: FloatArray
    covariance: FloatArray | None


class Votes:
    """Decided votes, with names of items that are the same in every query."""

    def __init__(self, comparisons: Comparisons):
        self.rows = np.flatnonzero(comparisons.outcome)
        self.comparisons = comparisons.take(self.rows)
        names, code = np.unique(comparisons.items.labels.astype(str), return_inverse=True)
        self.names, self.name_of = names, code.ravel().astype(np.int64)
        self.left, self.right = self.name_of[self.comparisons.left], self.name_of[self.comparisons.right]
        self.left_won = self.comparisons.outcome == LEFT
        given = self.comparisons.annotator
        self.annotator = None if given is None else given.astype(np.int64)
        self.labels = comparisons.annotators

    def missing_for(self, test: str) -> str:
        """Why a test cannot be made; empty if it can."""
        if len(self.rows) < MIN_VOTES:
            return f"fewer than {MIN_VOTES} decided votes"
        if test in ("burst", "newcomers"):
            time = self.comparisons.time
            known = None if time is None else time[~np.isnan(time)]
            if known is None or len(np.unique(known)) < MIN_VOTES:
                return "the votes have no times"
        if test == "burst":
            return ""
        if self.annotator is None or len(self.labels) < 2:
            return "the votes do not name annotators"
        if test == "newcomers" and len(self.labels) * len(self.names) > MAX_CELLS:
            return f"more than {MAX_CELLS:,} annotators times items"
        if test == "copies" and len(self.labels) > MAX_ANNOTATORS:
            return f"more than {MAX_ANNOTATORS:,} annotators"
        return ""

    def fit(self, rows: IntArray | None = None, covariance: bool = False) -> Fit:
        """Scores from some of the votes, by bradley-terry, with their covariance."""
        from crowdrank.models.pairwise.bradley_terry import BradleyTerry

        used = self.comparisons if rows is None else self.comparisons.take(rows)
        with muted_warnings():
            ranking = BradleyTerry().fit(used)
        if not covariance:
            return Fit(ranking.scores, None)
        draws = ranking.uncertainty.draws
        return Fit(ranking.scores, draws - draws.mean(axis=0))

    def margins(self, scores: FloatArray) -> FloatArray:
        return np.asarray(scores[self.comparisons.left] - scores[self.comparisons.right])

    def alarm(
        self, kind: str, item: int | None, annotators: IntArray, rows: IntArray, p: float, why: str
    ) -> StuffingAlarm:
        return StuffingAlarm(
            kind=kind,
            item=None if item is None else str(self.names[item]),
            annotators=tuple(str(self.labels[n]) for n in annotators),
            votes=self.rows[rows],
            p_value=float(min(p, 1.0)),
            reason=why,
        )


def preference_variance(votes: Votes, margin: FloatArray, rows: IntArray) -> float:
    """Variance of the preferences of annotators for an item, by moments: E r² = V + τ²V² for sums r of residuals."""
    assert votes.annotator is not None
    chance = 1 / (1 + np.exp(-margin[rows]))
    residual, variance = votes.left_won[rows] - chance, chance * (1 - chance)
    size = len(votes.names)
    keys = np.concatenate([votes.annotator[rows] * size + side[rows] for side in (votes.left, votes.right)])
    _, group = np.unique(keys, return_inverse=True)
    total = np.bincount(group.ravel(), np.append(residual, -residual))
    noise = np.bincount(group.ravel(), np.tile(variance, 2))
    found = float(np.sum(total**2 - noise) / max(float(np.sum(noise**2)), 1e-9))
    return max(found, _MIN_PREFERENCE_SPREAD**2)


def skilled_margins(votes: Votes, scores: FloatArray, item: int = -1) -> FloatArray:
    """Margins of the scores times how much each annotator follows them, so that careless ones raise no alarm.

    Votes about `item` do not count for that: those who lift a bad item would seem to answer in reverse. The test itself
    lets them count, which makes it cautious.
    """
    annotator, margin, people = votes.annotator, votes.margins(scores), len(votes.labels)
    assert annotator is not None
    discrimination, counts = np.ones(people), (votes.left != item) & (votes.right != item)
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(discrimination[annotator] * margin, -30, 30)))
        score = np.bincount(annotator, counts * (votes.left_won - chance) * margin, people)
        gradient = score - _DISCRIMINATION_PRECISION * (discrimination - 1)
        curvature = np.bincount(annotator, counts * chance * (1 - chance) * margin**2, people)
        step = gradient / (curvature + _DISCRIMINATION_PRECISION)
        discrimination = discrimination + np.clip(step, -1.0, 1.0)
    return np.asarray(np.clip(discrimination[annotator] * margin, -30, 30))
