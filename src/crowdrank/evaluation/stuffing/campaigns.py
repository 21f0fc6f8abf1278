"""Campaigns: annotators who answer about hardly any other item, and favour or harm it.

Whether they do is judged by the answers of all others: a likelihood ratio test of a shift of the item's score, which
allows for the error of the score and for differences in taste and skill. The group is chosen by the questions, not by
the answers, so honest annotators who were given only one item raise no alarm.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import erfc, sqrt

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import CrowdrankError
from crowdrank.evaluation.stuffing.decided_votes import (
    MIN_EXCESS,
    MIN_GROUP_VOTES,
    MIN_OTHER_VOTES,
    MIN_VOTES,
    SHIFTS,
    Fit,
    StuffingAlarm,
    Votes,
    taste_variance,
)

# Share of an annotator's answers that are about one item, and the fewest answers.
_DEVOTED_SHARE, _MIN_ANSWERS = 0.9, 3
# Devoted annotators may know more or less than the others: their margins are multiplied by a log-normal factor.
_DISCRIMINATIONS, _DISCRIMINATION_SCALE = np.geomspace(0.25, 4.0, 13), 0.5


def campaigns(votes: Votes, level: float) -> Iterator[StuffingAlarm]:
    annotator = votes.annotator
    assert annotator is not None
    devotion = _devotion(votes)
    devoted = np.zeros((len(votes.labels),), bool)
    for members in devotion.values():
        devoted[members] = True
    others = np.flatnonzero(~devoted[annotator])
    if not devotion or len(others) < MIN_VOTES:
        return
    try:
        fit = votes.fit(others, covariance=True)
    except CrowdrankError:
        return
    margin = votes.margins(fit.scores)
    taste = taste_variance(votes, margin, others)
    tests = {}
    for item, members in devotion.items():
        about = (votes.left == item) | (votes.right == item)
        rows = np.flatnonzero(about & np.isin(annotator, members))
        if len(rows) >= MIN_GROUP_VOTES and np.count_nonzero(about[others]) >= MIN_OTHER_VOTES:
            tests[item] = (members, rows)
    for item, (members, rows) in tests.items():
        p, wins, expected = _shift_test(votes, fit, margin, item, rows, taste / len(members))
        p *= len(tests)
        if p < level and abs(wins - expected) > MIN_EXCESS:
            side = "for" if wins > expected else "against"
            who = f"{len(members):,} annotators who answered about hardly any other item"
            yield votes.alarm(
                "campaign",
                item,
                members,
                rows,
                p,
                f"{who} voted {side} {votes.names[item]}: it won {wins:.0%} of their {len(rows):,} votes, "
                f"and {expected:.0%} were expected from the others.",
            )


def _devotion(votes: Votes) -> dict[int, IntArray]:
    """Annotators who answered about one item nearly always, by item."""
    assert votes.annotator is not None
    size = len(votes.names)
    key = np.concatenate((votes.annotator * size + votes.left, votes.annotator * size + votes.right))
    pairs, count = np.unique(key, return_counts=True)
    who, item = pairs // size, pairs % size
    answers = np.bincount(votes.annotator, minlength=len(votes.labels))
    usual = (count >= _DEVOTED_SHARE * answers[who]) & (answers[who] >= _MIN_ANSWERS)
    # An annotator who answered about a single pair is devoted to both items and so to neither.
    alone = np.bincount(who[usual], minlength=len(votes.labels)) == 1
    usual &= alone[who]
    return {int(i): who[usual & (item == i)] for i in np.unique(item[usual])}


def _shift_test(
    votes: Votes, fit: Fit, margin: FloatArray, item: int, rows: IntArray, taste: float
) -> tuple[float, float, float]:
    """P-value of a shift of the score of an item, the share of votes it won, and the share that was expected."""
    on_left = votes.left[rows] == item
    sign = np.where(on_left, 1.0, -1.0)
    lead, won = sign * margin[rows], votes.left_won[rows] == on_left
    chance = 1 / (1 + np.exp(-lead))
    assert fit.covariance is not None
    compared = votes.comparisons
    information = chance * (1 - chance)
    draws = fit.covariance[:, compared.left[rows]] - fit.covariance[:, compared.right[rows]]
    error = draws @ (sign * information) / information.sum()
    variance = float(np.var(error)) + taste
    margins, group = np.unique(lead, return_inverse=True)
    wins, losses = (np.bincount(group.ravel(), which, len(margins)) for which in (won, ~won))
    shifted = _DISCRIMINATIONS[:, None, None] * margins[:, None] + SHIFTS
    likelihood = -np.einsum("k,bks->bs", wins, np.logaddexp(0.0, -shifted))
    likelihood -= np.einsum("k,bks->bs", losses, np.logaddexp(0.0, shifted))
    prior = (np.log(_DISCRIMINATIONS) ** 2 / (2 * _DISCRIMINATION_SCALE**2))[:, None] + SHIFTS**2 / (2 * variance)
    ratio = 2 * float(likelihood.max() - (likelihood - prior).max())
    return erfc(sqrt(max(ratio, 0.0) / 2)), float(won.mean()), float(chance.mean())
