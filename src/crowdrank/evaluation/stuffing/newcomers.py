"""Newcomers: annotators who gave their first answers one after another, and who favour or harm an item.

Annotators who do not choose their questions, as on a collection server, cannot run a campaign, but they may come
together. A group is judged by a likelihood ratio test of a score of the item that differs from that of all others.
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
    StuffingAlarm,
    Votes,
    preference_variance,
    skilled_margins,
)

# How many annotators came one after another, at most this share of all.
_GROUPS, _LARGEST_GROUP = (3, 5, 8, 12, 20, 35, 60, 100), 0.5
# Standard errors from which a group is looked at closely.
_NOTICEABLE = 2.0
# How many items are looked at closely: fewer if there are many votes, because each takes four fits.
_MOST_ITEMS, _FEWEST_ITEMS, _VOTES_FITTED = 60, 4, 200_000


class _Residuals(NamedTuple):
    """By annotators in the order of their first answers and items, summed from the first annotator on."""

    order: IntArray
    total: FloatArray
    variance: FloatArray
    votes: FloatArray

    def standardise(self, start: IntArray, end: IntArray) -> FloatArray:
        """Residuals of groups of annotators by item, in standard errors; 0 where there are too few votes."""
        votes = self.votes[end] - self.votes[start]
        enough = (votes >= MIN_GROUP_VOTES) & (self.votes[-1] - votes >= MIN_OTHER_VOTES)
        error = np.sqrt(self.variance[end] - self.variance[start] + 1e-9)
        return np.where(enough, (self.total[end] - self.total[start]) / error, 0.0)

    def of_item(self, item: int) -> _Residuals:
        return _Residuals(self.order, *(table[:, item] for table in (self.total, self.variance, self.votes)))


def newcomers(votes: Votes, level: float) -> Iterator[StuffingAlarm]:
    annotator = votes.annotator
    assert annotator is not None
    everybody = _residuals(votes, skilled_margins(votes, votes.fit().scores))
    came = len(everybody.order)
    longest = int(_LARGEST_GROUP * came)
    starts, ends = _windows(came, longest)
    if not len(starts):
        return
    largest = np.abs(everybody.standardise(starts, ends)).max(axis=0)
    most = int(np.clip(_VOTES_FITTED // len(votes.rows), _FEWEST_ITEMS, _MOST_ITEMS))
    looked_at = [int(i) for i in np.argsort(-largest, kind="stable")[:most] if largest[i] > _NOTICEABLE]

    def strongest(table: _Residuals, item: int, sign: float) -> IntArray:
        return table.order[slice(*_widest(table.of_item(item), sign, starts, ends, longest))]

    # Every group and every item could have been chosen, whether it was looked at or not.
    tests = came * longest * len(votes.names)
    for item in looked_at:
        # A campaign of many names moves the scores, and then it is the others who seem to vote against the item.
        groups = []
        for sign in (1.0, -1.0):
            margin = _margins_of_others(votes, strongest(everybody, item, sign), item)
            if margin is not None:  # without the group, the scores show more clearly who belongs to it
                groups.append(strongest(_residuals(votes, margin), item, sign))
        found = [one for one in (_test_group(votes, item, members) for members in groups) if one is not None]
        clear = [one for one in found if one[2] * tests < level and abs(one[3] - one[4]) > MIN_EXCESS]
        if clear:  # if two groups contradict each other, the smaller one is the odd one
            members, rows, p, wins, expected = min(clear, key=lambda one: (len(one[0]), one[2]))
            side = "for" if wins > expected else "against"
            yield votes.alarm(
                "newcomers",
                item,
                members,
                rows,
                p * tests,
                f"{len(members):,} annotators who came one after another voted {side} {votes.names[item]}: it won "
                f"{wins:.0%} of their {len(rows):,} votes about it, and {expected:.0%} were expected from the others.",
            )


def _test_group(votes: Votes, item: int, members: IntArray) -> tuple[IntArray, IntArray, float, float, float] | None:
    """The group, its votes about the item, the p-value, and the shares of votes won and expected."""
    assert votes.annotator is not None
    margin = _margins_of_others(votes, members)
    about, inside = (votes.left == item) | (votes.right == item), np.isin(votes.annotator, members)
    rows, rest = np.flatnonzero(about & inside), np.flatnonzero(about & ~inside)
    if margin is None or len(rows) < MIN_GROUP_VOTES or len(rest) < MIN_OTHER_VOTES:
        return None
    preference = preference_variance(votes, margin, np.flatnonzero(~inside))
    return members, rows, *_difference_test(votes, margin, item, rows, rest, preference)


def _margins_of_others(votes: Votes, members: IntArray, item: int = -1) -> FloatArray | None:
    """Margins by the scores of everyone else's votes; None if these order nothing."""
    assert votes.annotator is not None
    others = np.flatnonzero(~np.isin(votes.annotator, members))
    if len(others) < MIN_VOTES:
        return None
    try:
        return skilled_margins(votes, votes.fit(others).scores, item)
    except CrowdrankError:
        return None


def _difference_test(
    votes: Votes, margin: FloatArray, item: int, rows: IntArray, rest: IntArray, preference: float
) -> tuple[float, float, float]:
    """P-value of a score of an item that differs between two groups, the share of votes it won, and that expected.

    Both scores are free, so the test holds however few votes the others gave. Tastes differ, so honest scores of the
    two groups may differ a little.
    """
    assert votes.annotator is not None
    likelihood = []
    for chosen in (rows, rest):
        on_left = votes.left[chosen] == item
        lead, won = np.where(on_left, 1.0, -1.0) * margin[chosen], votes.left_won[chosen] == on_left
        shifted = np.where(won, 1.0, -1.0)[:, None] * (lead[:, None] + SHIFTS)
        likelihood.append(-np.logaddexp(0.0, -shifted).sum(axis=0))
        if chosen is rows:
            wins, expected = float(won.mean()), float(np.mean(1 / (1 + np.exp(-lead))))
    people = [len(np.unique(votes.annotator[chosen])) for chosen in (rows, rest)]
    variance = preference * sum(1 / n for n in people)
    together = likelihood[0][:, None] + likelihood[1] - (SHIFTS[:, None] - SHIFTS) ** 2 / (2 * variance)
    ratio = 2 * float(likelihood[0].max() + likelihood[1].max() - together.max())
    return erfc(sqrt(max(ratio, 0.0) / 2)), wins, expected


def _residuals(votes: Votes, margin: FloatArray) -> _Residuals:
    assert votes.annotator is not None
    assert votes.comparisons.time is not None
    people, items = len(votes.labels), len(votes.names)
    first = np.full(people, np.inf)
    np.fmin.at(first, votes.annotator, votes.comparisons.time)
    order = np.argsort(first, kind="stable")
    order = order[np.isfinite(first[order])]
    chance = 1 / (1 + np.exp(-margin))
    residual = votes.left_won - chance
    cells = np.concatenate([votes.annotator * items + side for side in (votes.left, votes.right)])

    def tabulate(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(cells, values, people * items).reshape(people, items)[order])

    noise = tabulate(np.tile(chance * (1 - chance), 2))
    preference = preference_variance(votes, margin, np.arange(len(votes.rows)))
    tables = (tabulate(np.append(residual, -residual)), noise + preference * noise**2, tabulate(np.ones(len(cells))))
    return _Residuals(order, *(np.concatenate((np.zeros((1, items)), np.cumsum(one, axis=0))) for one in tables))


def _windows(came: int, longest: int) -> tuple[IntArray, IntArray]:
    """Where groups of newcomers begin and end: of several sizes, each overlapping the next."""
    groups = [(start, start + m) for m in _GROUPS if m <= longest for start in range(0, came - m + 1, max(1, m // 3))]
    found = np.array(groups, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _widest(table: _Residuals, sign: float, starts: IntArray, ends: IntArray, longest: int) -> tuple[int, int]:
    """The group with the largest residual of one item for or against it, its ends moved while that makes it grow."""
    best = int(np.argmax(sign * table.standardise(starts, ends)))
    start, end = int(starts[best]), int(ends[best])
    reach = np.arange(-(end - start), end - start + 1)
    moved = np.clip(start + reach, 0, len(table.order)), np.clip(end + reach, 0, len(table.order))
    first, last = (side.ravel() for side in np.meshgrid(*moved))
    valid = (last - first >= _GROUPS[0]) & (last - first <= longest)
    first, last = first[valid], last[valid]
    at = int(np.argmax(sign * table.standardise(first, last)))
    return int(first[at]), int(last[at])
