"""Tests for vote stuffing: campaigns for one item, near-copies of annotators, bursts in time, and newcomers.

Each test has a quarter of the false alarm rate, divided among everything that it examines (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from crowdrank.data import Comparisons
from crowdrank.errors import SettingError
from crowdrank.evaluation.stuffing.campaigns import bursts, campaigns
from crowdrank.evaluation.stuffing.decided_votes import StuffingAlarm, Votes
from crowdrank.evaluation.stuffing.near_copies import copies
from crowdrank.evaluation.stuffing.newcomers import newcomers

__all__ = ["StuffingAlarm", "StuffingTest", "find_stuffing"]

_TESTS = 4


@dataclass(frozen=True, kw_only=True)
class StuffingTest:
    """The result of the tests for vote stuffing.

    Parameters
    ----------
    alarms : tuple of StuffingAlarm
        What was found, smallest p-value first; empty in most honest collections.
    false_alarm_rate : float
        Probability of any alarm in an honest collection.
    skipped : mapping of str to str
        Tests that could not be made, with the reason.
    """

    alarms: tuple[StuffingAlarm, ...]
    false_alarm_rate: float
    skipped: dict[str, str]

    def __bool__(self) -> bool:
        """Whether there is an alarm."""
        return bool(self.alarms)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a dictionary that can be written as JSON."""
        alarms = [
            {
                "kind": alarm.kind,
                "item": alarm.item,
                "annotators": list(alarm.annotators),
                "votes": alarm.votes.tolist(),
                "p_value": alarm.p_value,
                "reason": alarm.reason,
            }
            for alarm in self.alarms
        ]
        return {"alarms": alarms, "false_alarm_rate": self.false_alarm_rate, "skipped": dict(self.skipped)}


def find_stuffing(comparisons: Comparisons, *, false_alarm_rate: float = 0.02, seed: int = 0) -> StuffingTest:
    """Test whether votes were stuffed.

    Parameters
    ----------
    comparisons : Comparisons
        The votes. Annotators are needed for campaigns and copies, times for bursts, and both for newcomers.
    false_alarm_rate : float, default 0.02
        Probability of any alarm if all votes are honest.
    seed : int, default 0
        Seed of the random signs.

    Returns
    -------
    StuffingTest
        The alarms, and which tests could not be made.

    Notes
    -----
    An alarm is a reason to look, not a proof: a change of an item raises a burst too, and so may devoted users.

    Examples
    --------
    >>> from crowdrank.simulation import crowd_bt
    >>> honest = crowd_bt(items=8, annotators=10, pairs=28, votes=8, labels="logistic").judgments
    >>> bool(find_stuffing(honest))
    False
    """
    if not 0 < false_alarm_rate < 1:
        raise SettingError(f"false_alarm_rate must be between 0 and 1, got {false_alarm_rate}.")
    votes = Votes(comparisons)
    level = false_alarm_rate / _TESTS
    tests: dict[str, Callable[[Votes, float], Iterator[StuffingAlarm]]]
    tests = {
        "campaign": campaigns,
        "copies": copies,
        "burst": partial(bursts, seed=seed),
        "newcomers": newcomers,
    }
    skipped = {name: reason for name in tests if (reason := votes.missing_for(name))}
    found = [alarm for name, test in tests.items() if name not in skipped for alarm in test(votes, level)]
    found.sort(key=lambda alarm: alarm.p_value)
    return StuffingTest(alarms=_without_echoes(found), false_alarm_rate=false_alarm_rate, skipped=skipped)


def _without_echoes(alarms: list[StuffingAlarm]) -> tuple[StuffingAlarm, ...]:
    """The alarms without those of newcomers that a campaign explains, or newcomers for another item.

    Where an item wins whatever it meets, the others lose, and the same people seem to vote against them.
    """
    first = [alarm for alarm in alarms if alarm.kind == "campaign"]
    explained = {name for alarm in first for name in alarm.annotators}
    kept = []
    for alarm in alarms:
        if alarm.kind == "newcomers":
            if 2 * len(explained.intersection(alarm.annotators)) > len(alarm.annotators):
                continue
            explained.update(alarm.annotators)
        kept.append(alarm)
    return tuple(kept)
