"""How near a decision is: settled or not, how sure, and how many votes more it may take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from crowdrank.errors import CrowdrankError
from crowdrank.online import Roll
from crowdrank.questions import decision, forecast
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Of what is to be decided."""

    decision: str
    level: float
    settled: bool
    chance: float
    """That it is right as things stand."""
    more_votes: int | None
    """As likely more as fewer; None where it is settled, or no end is in sight."""
    sentence: str


def standing_of(ranking: Ranking, wish: str, level: float, votes: int) -> Standing:
    """By the draws behind a board."""
    wanted, items = decision(wish), ranking.items
    queries = items.queries[items.query] if items.has_queries else [""] * len(items)
    roll = Roll(tuple(str(one) for one in items.labels), tuple(str(one) for one in queries))
    draws = ranking.uncertainty.draws
    # what a posterior is looked at for, and no more
    beliefs: Any = SimpleNamespace(
        draws=SimpleNamespace(scores=draws), items=roll, judged=votes, winner=range(votes)
    )  # fmt: skip
    try:
        chance = wanted.chance(draws, roll)
        settled = chance >= wanted.enough(level)
        more = 0.0 if settled else forecast(beliefs, wanted, level, votes, paths=50).votes - votes
    except CrowdrankError as error:  # an item that nobody has judged yet
        return Standing(decision=wish, level=level, settled=False, chance=0.0, more_votes=None, sentence=str(error))
    count = None if settled or math.isinf(more) else int(more)
    return Standing(
        decision=wish, level=level, settled=settled, chance=round(chance, 4), more_votes=count,
        sentence=_said(wish, level, settled, chance, count),
    )  # fmt: skip


def _said(wish: str, level: float, settled: bool, chance: float, more: int | None) -> str:
    if settled:
        return f"{wish.capitalize()}: settled at {level:.0%}.".replace("%", " %")
    ahead = "no end is in sight" if more is None else f"about {more:,} more votes would settle it"
    return f"{wish.capitalize()}: open, {chance:.0%} sure; {ahead}.".replace("%", " %")
