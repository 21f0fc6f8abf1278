"""Rules that exclude or pause annotators whose answers cannot be trusted, each with a reason for the organisers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from crowdrank.data import LEFT, RIGHT
from crowdrank.server.choice import REPEAT
from crowdrank.server.projection import Projection
from crowdrank.server.records import Annotator
from crowdrank.server.settings import Quality
from crowdrank.storage import SKIPPED, Collection

ACTOR = "quality rule"


def apply_rules(collection: Collection, projection: Projection, annotator: Annotator, vote: int) -> bool:
    """Act on an annotator whose vote, given by its index, broke a rule; return whether it did."""
    if annotator.excluded or annotator.paused_because:
        return False
    reason = broken_rule(projection, annotator, vote)
    if reason is None:
        return False
    action = projection.settings.quality.action
    if action == "pause":
        collection.annotators.edit(annotator.id, {**annotator.metadata, "paused": reason}, actor=ACTOR)
    else:
        collection.annotators.exclude(annotator.id, actor=ACTOR, reason=reason, quarantine=action == "set-aside")
    return True


def broken_rule(projection: Projection, annotator: Annotator, vote: int) -> str | None:
    """Return the first rule that an annotator breaks after a vote, as a reason; None if they break none.

    Gold questions count since an organiser last let the annotator go on, and only a wrong answer breaks the rule.
    """
    most, quality = projection.settings.questions.max_gold_failures, projection.settings.quality
    rows = [row for row in annotator.votes if not projection.is_withdrawn(row)]
    if most is not None and projection.is_gold_failure(vote):
        forgiven = int(annotator.metadata.get("forgiven_gold", 0))
        failures = sum(projection.is_gold_failure(row) for row in rows)
        if failures - forgiven >= most:
            return f"{failures} gold questions wrong"
    since = rows[int(annotator.metadata.get("checked_votes", 0)) :]
    if not quality.is_used or len(since) < quality.min_answers:
        return None
    return next((reason for rule in _RULES if (reason := rule(projection, since, quality)) is not None), None)


def gold_failures(projection: Projection, annotator: Annotator) -> int:
    """Return how many gold questions an annotator got wrong."""
    return sum(projection.is_gold_failure(row) for row in annotator.votes)


def _too_fast(projection: Projection, rows: Sequence[int], quality: Quality) -> str | None:
    times = [projection.response_ms[row] for row in rows if projection.response_ms[row] >= 0]
    if quality.min_median_seconds is None or not times:
        return None
    median = float(np.median(times)) / 1000
    if median >= quality.min_median_seconds:
        return None
    return f"median response time of {median:.1f} s, below {quality.min_median_seconds:g} s"


def _one_sided(projection: Projection, rows: Sequence[int], quality: Quality) -> str | None:
    outcome = projection.votes.outcome[np.array(rows)]
    left, right = int(np.sum(outcome == LEFT)), int(np.sum(outcome == RIGHT))
    if quality.max_side_share is None or left + right < quality.min_answers:
        return None
    share = max(left, right) / (left + right)
    if share <= quality.max_side_share:
        return None
    return f"{share:.0%} of answers on the {'left' if left > right else 'right'}, above {quality.max_side_share:.0%}"


def _skips_too_much(projection: Projection, rows: Sequence[int], quality: Quality) -> str | None:
    share = float(np.mean(projection.votes.outcome[np.array(rows)] == SKIPPED))
    if quality.max_skip_share is None or share <= quality.max_skip_share:
        return None
    return f"{share:.0%} of questions skipped, above {quality.max_skip_share:.0%}"


def _contradicts_themselves(projection: Projection, rows: Sequence[int], quality: Quality) -> str | None:
    if quality.min_repeat_agreement is None:
        return None
    agreement = repeat_agreement(projection, rows)
    if agreement is None or agreement >= quality.min_repeat_agreement:
        return None
    return f"{agreement:.0%} of repeated questions answered as before, below {quality.min_repeat_agreement:.0%}"


def repeat_agreement(projection: Projection, rows: Sequence[int]) -> float | None:
    """Return the share of repeated pairs that were answered as before; None if fewer than three were repeated."""
    votes = projection.votes
    winners: dict[tuple[int, int], int] = {}
    same = []
    for row in rows:
        left, right, outcome = int(votes.left[row]), int(votes.right[row]), int(votes.outcome[row])
        winner = left if outcome == LEFT else right if outcome == RIGHT else -outcome - 2  # of ties, no item
        pair = (min(left, right), max(left, right))
        if projection.vote_policies[row] == REPEAT and pair in winners:
            same.append(winners[pair] == winner)
        winners[pair] = winner
    return sum(same) / len(same) if len(same) >= 3 else None


_RULES: tuple[Callable[[Projection, Sequence[int], Quality], str | None], ...] = (
    _too_fast,
    _one_sided,
    _skips_too_much,
    _contradicts_themselves,
)
