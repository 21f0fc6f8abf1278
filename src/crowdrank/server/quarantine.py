"""Notice bursts of votes from one address and other signs of stuffing, and set votes aside.

Someone who votes many times with the public link looks like a classroom behind one address. So nothing is discarded
automatically: the organiser is warned, sets the votes aside with one click, compares both boards, and can take it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crowdrank.errors import muted_warnings
from crowdrank.results import Ranking
from crowdrank.server.boards import Board, board_model, item_keys
from crowdrank.server.projection import Projection
from crowdrank.server.records import Annotator
from crowdrank.server.service import Service

Json = dict[str, Any]

MIN_PARTICIPANTS = 3
"""Fewer participants from one address are a household."""
MIN_VOTES = 30
VOTES_PER_MINUTE = 60
SHARE_OF_VOTES = 0.3
"""A burst has this many votes in one minute, or this share of all votes."""
HUMAN_SECONDS = 1.0
"""Hardly anyone compares two items in less time, answer after answer."""
_MINUTE = 60_000_000


def find_bursts(service: Service) -> list[Json]:
    """Return one row per address from which several participants cast many votes, the largest first."""
    projection = service.projection.catch_up()
    shared = service.collection.access.shared_addresses()
    with projection.lock:
        found = [_burst(projection, key.hex()[:16], annotators) for key, annotators in shared.items()]
    return sorted((burst for burst in found if burst is not None), key=lambda burst: -burst["votes"])


def find_alarms(service: Service, board: Board) -> Json:
    """Return what the tests for vote stuffing found on a board, with whose votes would be set aside.

    Whole annotators are set aside, whichever way they answered: leaving out only the votes for an item would decide
    against it.
    """
    test, projection = board.stuffing, service.projection.catch_up()
    if test is None:
        reason = "there are no votes yet" if board.judgments is None else "only comparisons of pairs are tested"
        return {"seq": board.seq, "alarms": [], "false_alarm_rate": None, "skipped": {"all": reason}}
    with projection.lock:
        voters = {one.name: one for one in projection.annotators.values() if not one.excluded}
        alarms = []
        for alarm in test.alarms:
            found = [voters[name] for name in alarm.annotators if name in voters]
            if found:  # otherwise they were set aside after this board
                counted = sum(int(projection.votes.counts[row]) for one in found for row in one.votes)
                alarms.append(
                    {
                        "kind": alarm.kind,
                        "item": alarm.item,
                        "reason": alarm.reason,
                        "p_value": alarm.p_value,
                        "votes": len(alarm.votes),
                        "annotators": [{"id": one.id, "name": one.name} for one in found],
                        "votes_of_annotators": counted,
                    }
                )
    return {
        "seq": board.seq,
        "alarms": alarms,
        "false_alarm_rate": test.false_alarm_rate,
        "skipped": dict(test.skipped),
    }


def set_aside(service: Service, annotators: Iterable[int], actor: str, reason: str = "") -> list[int]:
    """Set the votes of annotators aside and return those who were changed. They may go on answering."""
    known = service.projection.catch_up().annotators
    changed = [id_ for id_ in annotators if id_ in known and not known[id_].excluded]
    for id_ in changed:
        service.collection.annotators.exclude(id_, actor=actor, reason=reason, quarantine=True)
    service.projection.catch_up()
    return changed


def release(service: Service, annotators: Iterable[int] | None, actor: str) -> list[int]:
    """Count the votes of quarantined annotators again, of all of them by default, and return who they were."""
    held = [one.id for one in quarantined(service.projection.catch_up())]
    changed = held if annotators is None else [id_ for id_ in annotators if id_ in held]
    for id_ in changed:
        service.collection.annotators.include(id_, actor=actor)
    service.projection.catch_up()
    return changed


def quarantined(projection: Projection) -> list[Annotator]:
    """Return the annotators whose votes are set aside, without organisers who look at the study."""
    return [one for one in projection.annotators.values() if one.quarantined and not one.is_preview]


def boards_with_and_without(service: Service) -> Json:
    """Return the ranks of all items without the votes that are set aside, which is the board, and with them."""
    projection = service.projection.catch_up()
    held, seq = quarantined(projection), projection.board_seq
    log = service.collection.log
    without, with_them = (log.judgments(seq, including=ids) for ids in ((), tuple(one.id for one in held)))
    ranks = [_ranks(judgments) for judgments in (without, with_them)]
    return {
        "annotators": [{"id": one.id, "name": one.name} for one in held],
        "votes": len(with_them) - len(without),
        "items": [
            {"item": label, "query": query, "rank": ranks[0].get((query, label)), "rank_with": rank}
            for (query, label), rank in sorted(
                ranks[1].items(), key=lambda row: (row[0][0], ranks[0].get(row[0], 10**9), row[1])
            )
        ],
    }


def _ranks(judgments: Any) -> dict[tuple[str, str], int]:
    if not len(judgments):
        return {}
    with muted_warnings():
        ranking: Ranking = board_model(judgments).fit(judgments)
    return dict(zip(item_keys(ranking), ranking.rank.tolist(), strict=True))


def _burst(projection: Projection, key: str, annotators: Sequence[int]) -> Json | None:
    guests = [projection.annotators[id_] for id_ in annotators if id_ in projection.annotators]
    guests = [guest for guest in guests if not guest.excluded]
    counts, times = projection.votes.counts, np.array(projection.vote_times, np.int64)
    votes = [np.array([row for row in guest.votes if counts[row]], np.int64) for guest in guests]
    voters = [(guest, times[rows]) for guest, rows in zip(guests, votes, strict=True) if len(rows)]
    total = sum(len(at) for _, at in voters)
    if len(voters) < MIN_PARTICIPANTS or total < MIN_VOTES:
        return None
    peak = _peak(np.sort(np.concatenate([at for _, at in voters])))
    share = total / max(1, projection.n_counted)
    if peak < VOTES_PER_MINUTE and share < SHARE_OF_VOTES:
        return None
    gaps = np.concatenate([np.diff(at) for _, at in voters]) / 1e6
    seconds = float(np.median(gaps)) if len(gaps) else None
    return {
        "key": key,
        "annotators": [guest.id for guest, _ in voters],
        "participants": len(voters),
        "votes": total,
        "share": round(share, 4),
        "votes_per_minute": peak,
        "seconds_per_vote": None if seconds is None else round(seconds, 2),
        "faster_than_people": seconds is not None and seconds < HUMAN_SECONDS,
    }


def _peak(times: Any) -> int:
    """Return the largest number of votes within one minute."""
    return int(np.max(np.searchsorted(times, times + _MINUTE, side="right") - np.arange(len(times))))
