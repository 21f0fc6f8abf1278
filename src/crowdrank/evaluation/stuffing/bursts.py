"""Bursts: intervals of time in which an item wins or loses more than at other times.

The largest standardised sum of residuals over all items and intervals is compared with its distribution under random
signs of each annotator's residuals (Liu 1988).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.evaluation.stuffing.decided_votes import MIN_VOTES, StuffingAlarm, Votes

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
