"""Campaigns for one item: by annotators who answer about hardly any other item, or within an interval of time.

Whether annotators favour or harm an item is judged by the answers of all others: a likelihood ratio test of a shift of
the item's score, which allows for the error of the score and for differences in taste and skill. The group is chosen by
the questions, not by the answers, so honest annotators who were given only one item raise no alarm.

Bursts are intervals of time in which an item wins or loses more than at other times. The largest standardised sum of
residuals over all items and intervals is compared with its distribution under random signs of each annotator's
residuals (Liu 1988).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import erfc, sqrt
from typing import NamedTuple

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
    preference_variance,
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
    preference = preference_variance(votes, margin, others)
    tests = {}
    for item, members in devotion.items():
        about = (votes.left == item) | (votes.right == item)
        rows = np.flatnonzero(about & np.isin(annotator, members))
        if len(rows) >= MIN_GROUP_VOTES and np.count_nonzero(about[others]) >= MIN_OTHER_VOTES:
            tests[item] = (members, rows)
    for item, (members, rows) in tests.items():
        p, wins, expected = _shift_test(votes, fit, margin, item, rows, preference / len(members))
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
    votes: Votes, fit: Fit, margin: FloatArray, item: int, rows: IntArray, preference: float
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
    variance = float(np.var(error)) + preference
    margins, group = np.unique(lead, return_inverse=True)
    wins, losses = (np.bincount(group.ravel(), which, len(margins)) for which in (won, ~won))
    shifted = _DISCRIMINATIONS[:, None, None] * margins[:, None] + SHIFTS
    likelihood = -np.einsum("k,bks->bs", wins, np.logaddexp(0.0, -shifted))
    likelihood -= np.einsum("k,bks->bs", losses, np.logaddexp(0.0, shifted))
    prior = (np.log(_DISCRIMINATIONS) ** 2 / (2 * _DISCRIMINATION_SCALE**2))[:, None] + SHIFTS**2 / (2 * variance)
    ratio = 2 * float(likelihood.max() - (likelihood - prior).max())
    return erfc(sqrt(max(ratio, 0.0) / 2)), float(won.mean()), float(chance.mean())


# Bursts: intervals of time in which an item wins or loses more than at other times.

# Fewest votes in an interval, and the shares of an item's votes that intervals hold.
_MIN_INTERVAL, _INTERVALS = 5, (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
# Random assignments of signs.
_FLIPS = 999


class _Sequence(NamedTuple):
    """The votes about one item in the order of time, and the lengths of the intervals."""

    item: int
    rows: IntArray
    residual: FloatArray
    total_variance: FloatArray
    lengths: list[int]


def bursts(votes: Votes, level: float, seed: int) -> Iterator[StuffingAlarm]:
    sequences = list(_sequences(votes))
    if not sequences:
        return
    observed = [_largest(s, s.residual) for s in sequences]
    cluster = np.arange(len(votes.rows)) if votes.annotator is None else votes.annotator
    rng, above = np.random.default_rng(seed), np.zeros(len(sequences), np.int64)
    for _ in range(_FLIPS):
        signs = rng.choice((-1.0, 1.0), int(cluster.max()) + 1)[cluster]
        largest = max(_largest(s, s.residual * signs[s.rows])[0] for s in sequences)
        above += largest >= np.array([value for value, *_ in observed])
        if above.min() > level * (_FLIPS + 1):  # no alarm can follow
            return
    for sequence, (_, start, length), count in zip(sequences, observed, above, strict=True):
        p = (1 + int(count)) / (_FLIPS + 1)
        if p < level:
            rows = sequence.rows[start : start + length]
            people = np.zeros(0, np.int64) if votes.annotator is None else np.unique(votes.annotator[rows])
            more = "won" if sequence.residual[start : start + length].sum() > 0 else "lost"
            why = f"{votes.names[sequence.item]} {more} far more often in {length:,} votes in a row than in the others."
            yield votes.alarm("burst", sequence.item, people, rows, p, why)


def _sequences(votes: Votes) -> Iterator[_Sequence]:
    time = votes.comparisons.time
    assert time is not None
    chance = 1 / (1 + np.exp(-votes.margins(votes.fit().scores)))
    residual, variance = votes.left_won - chance, chance * (1 - chance)
    order = np.argsort(time, kind="stable")  # unknown times come last
    order = order[~np.isnan(time[order])]
    for item in range(len(votes.names)):
        rows = order[(votes.left[order] == item) | (votes.right[order] == item)]
        if len(rows) < MIN_VOTES:
            continue
        own = np.where(votes.left[rows] == item, 1.0, -1.0) * residual[rows]
        lengths = sorted({max(_MIN_INTERVAL, int(share * len(rows))) for share in _INTERVALS})
        yield _Sequence(item, rows, own, np.append(0.0, np.cumsum(variance[rows])), lengths)


def _largest(sequence: _Sequence, residual: FloatArray) -> tuple[float, int, int]:
    """The largest standardised sum over intervals, where it begins, and its length."""
    total, best = np.append(0.0, np.cumsum(residual)), (0.0, 0, 0)
    for length in sequence.lengths:
        spread = np.sqrt(sequence.total_variance[length:] - sequence.total_variance[:-length] + 1e-9)
        value = np.abs(total[length:] - total[:-length]) / spread
        at = int(np.argmax(value))
        if value[at] > best[0]:
            best = (float(value[at]), at, length)
    return best
