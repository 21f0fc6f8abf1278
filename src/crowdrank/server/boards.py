"""The published board: a fit of all that counts up to a row of the log, made in the background and kept by that row."""

from __future__ import annotations

import logging
import shlex
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdrank.data import LEFT, RIGHT, Comparisons
from crowdrank.errors import CrowdrankWarning
from crowdrank.models import BayesianCrowdBT, CrowdBT, name_of
from crowdrank.results import Ranking
from crowdrank.server.decision import Standing, history_of, reliability_of, standing_of
from crowdrank.server.projection import Live
from crowdrank.storage import Collection

Json = dict[str, Any]

SAMPLED_UP_TO = 300
"""Items up to which the whole posterior is walked …"""
SAMPLED_VOTES = 20_000
"""… and votes."""
_REST = 4.0
"""How many times as long as a fit took nothing is fitted: voting comes first."""
_logger = logging.getLogger("crowdrank.server")


@dataclass(frozen=True, kw_only=True)
class Row:
    """An item on the board."""

    id: int
    item: str
    query: str
    score: float | None
    """None where nobody has judged it."""
    low: float | None
    high: float | None
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    group: int | None
    votes: int
    provisional: bool
    why: str = ""
    """Why it stands above the next one."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """What is concluded from the log up to a row. The same row gives the same board."""

    seq: int
    model: str
    votes: int
    annotators: int
    rows: tuple[Row, ...]
    standing: Standing | None = None
    reliability: Json | None = None
    history: tuple[Json, ...] = ()
    """How sure it was after so many votes, and how alike the order was to today's."""
    notes: tuple[str, ...] = ()
    in_the_making: bool = False
    """Whether there are votes, but no board yet."""
    seconds: float = field(default=0.0, compare=False)
    ranking: Ranking | None = field(default=None, compare=False, repr=False)
    judgments: Comparisons | None = field(default=None, compare=False, repr=False)

    def as_dict(self) -> Json:
        return {
            "seq": self.seq,
            "model": self.model,
            "votes": self.votes,
            "annotators": self.annotators,
            "items": [{**asdict(row), "label": row.item} for row in self.rows],
            "standing": None if self.standing is None else asdict(self.standing),
            "reliability": self.reliability,
            "history": list(self.history),
            "notes": list(self.notes),
            "in_the_making": self.in_the_making,
        }

    def why(self, above: str, below: str, query: str = "") -> str:
        """In a sentence, why one item stands above another, or does not."""
        if self.ranking is None or self.judgments is None:
            return "Nothing was judged yet."
        return why(self.ranking, self.judgments, above, below, query)


class Boards:
    """The latest board, and a thread that makes the next when someone looks and there is something new."""

    def __init__(self, collection: Collection, live: Live) -> None:
        self._collection, self._live = collection, live
        self.latest: Board | None = None
        self._wanted, self._made = threading.Event(), threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def look(self, patience: float = 0.0) -> Board:
        """The latest there is; a newer one is made meanwhile, and waited for a little."""
        live = self._live.catch_up()
        latest, wanted = self.latest, live.touched
        if latest is None or latest.seq < wanted:
            self._start()
            self._wanted.set()
            if patience:
                with self._made:
                    self._made.wait_for(lambda: self.latest is not None and self.latest.seq >= wanted, patience)
        return self.latest or replace(board_of(self._collection, live, 0), in_the_making=live.decided > 0)

    def at(self, seq: int | None = None) -> Board:
        """The board of a row of the log, made here and now."""
        self._live.catch_up()
        return board_of(self._collection, self._live, self._live.touched if seq is None else seq)

    def settled(self) -> bool:
        """Whether what is to be decided is, by the latest board."""
        board = self.look()
        return board.standing is not None and board.standing.settled

    def stop(self) -> None:
        self._stopping = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="boards", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._stopping:
            self._wanted.wait()
            self._wanted.clear()
            if self._stopping:
                return
            begin = time.monotonic()
            try:
                board = self.at()
            except Exception as error:  # the pages go on with the last one
                _logger.error("no board", exc_info=error)
            else:
                with self._made:
                    if self.latest is None or self.latest.seq <= board.seq:
                        self.latest = board
                    self._made.notify_all()
            took = time.monotonic() - begin
            for _ in range(int(min(_REST * took, 60.0) / 0.1)):
                if self._stopping:
                    return
                time.sleep(0.1)


def board_of(collection: Collection, live: Live, seq: int) -> Board:
    """The board of the log up to a row: nothing else has a say in it."""
    begin = time.monotonic()
    things = collection.items.all(up_to=seq) if seq else {}
    shown = {(one.query, one.label): one.id for one in things.values() if not one.hidden}
    told = collection.log.judgments(seq)
    judgments = replace(told, features={})
    model = model_for(judgments)
    blank = Board(
        seq=seq,
        model=name_of(model),
        votes=len(judgments),
        annotators=len(judgments.annotators),
        rows=tuple(_unjudged(query, label, n) for (query, label), n in shown.items()),
    )
    if not len(judgments):
        return blank
    ranking = quietly(lambda: model.fit(judgments))
    settings = live.settings
    rows = _rows(ranking, judgments, shown, settings.asking.floor)
    missing = [row for row in blank.rows if row.id not in {one.id for one in rows}]
    standing = None
    if settings.budget.decision is not None:
        standing = standing_of(ranking, settings.budget.decision, settings.budget.level, len(judgments))
    return replace(
        blank,
        rows=(*rows, *missing),
        ranking=ranking,
        judgments=judgments,
        standing=standing,
        reliability=quietly(lambda: reliability_of(told)),
        history=quietly(lambda: history_of(judgments, ranking)),
        notes=tuple(ranking.notes),
        seconds=time.monotonic() - begin,
    )


def model_for(judgments: Comparisons) -> BayesianCrowdBT | CrowdBT:
    """The whole posterior where that is quickly walked, its summit elsewhere. Ties count: they were answers, too.

    With a spread of scores that is not learnt, the summit sees an order in coin tosses.
    """
    small = len(judgments.items) <= SAMPLED_UP_TO and len(judgments) <= SAMPLED_VOTES
    return BayesianCrowdBT(ties="half") if small else CrowdBT(ties="half", prior_scale="auto")


def command_for(judgments: Comparisons, votes: Path) -> str:
    """What ranks exported votes as the board does."""
    model = model_for(judgments)
    told = [f"--set {f.name}={getattr(model, f.name)}" for f in fields(model) if getattr(model, f.name) != f.default]
    return f"crowdrank rank {shlex.quote(str(votes))} --model {name_of(model)} {' '.join(told)}"


def why(ranking: Ranking, judgments: Comparisons, above: str, below: str, query: str = "") -> str:
    """What was said of two items, and how sure their order is."""
    place = {key: n for n, key in enumerate(_keys(ranking))}
    if (query, above) not in place or (query, below) not in place:
        return "One of them was not judged yet."
    a, b = place[query, above], place[query, below]
    won, lost, tied = _direct(judgments, a, b)
    chance = ranking.uncertainty.probability_above(ranking.scores, a, b)
    if won + lost + tied == 0:
        said = "they were never compared with each other, so this rests on what was said of others"
    elif won + lost == 0:
        said = f"all who compared the two called it a tie ({tied})"
    else:
        ties = f", {tied} called it a tie" if tied else ""
        said = f"{won} of {won + lost} who decided between the two chose {above}{ties}"
    order = "above" if ranking.scores[a] >= ranking.scores[b] else "below"
    sure = chance if order == "above" else 1 - chance
    return f"{above} is {order} {below} with {_percent(sure)}: {said}."


def _percent(chance: float) -> str:
    return "more than 99 %" if chance > 0.99 else f"{chance:.0%}".replace("%", " %")


def _direct(judgments: Comparisons, a: int, b: int) -> tuple[int, int, int]:
    forward, backward = (judgments.left == a) & (judgments.right == b), (judgments.left == b) & (judgments.right == a)
    won = np.sum(judgments.outcome[forward] == LEFT) + np.sum(judgments.outcome[backward] == RIGHT)
    lost = np.sum(judgments.outcome[forward] == RIGHT) + np.sum(judgments.outcome[backward] == LEFT)
    both = int(np.sum(forward) + np.sum(backward))
    return int(won), int(lost), both - int(won) - int(lost)


def _keys(ranking: Ranking) -> list[tuple[str, str]]:
    items = ranking.items
    queries = items.queries[items.query] if items.has_queries else [""] * len(items)
    return [(str(query), str(label)) for query, label in zip(queries, items.labels, strict=True)]


def _unjudged(query: str, label: str, number: int) -> Row:
    return Row(
        id=number,
        item=label,
        query=query,
        score=None,
        low=None,
        high=None,
        rank=None,
        rank_low=None,
        rank_high=None,
        group=None,
        votes=0,
        provisional=True,
    )


def _rows(ranking: Ranking, judgments: Comparisons, shown: dict[tuple[str, str], int], floor: int) -> list[Row]:
    keys, spread = _keys(ranking), ranking.uncertainty
    low, high = np.quantile(spread.draws, (0.025, 0.975), axis=0)
    first, last = spread.rank_interval(ranking.items)
    order = [place for place in ranking.order.tolist() if keys[place] in shown]
    rows = []
    for n, place in enumerate(order):
        query, label = keys[place]
        following = order[n + 1] if n + 1 < len(order) else -1
        rows.append(
            Row(
                id=shown[query, label],
                item=label,
                query=query,
                score=_number(ranking.scores[place]),
                low=_number(low[place]),
                high=_number(high[place]),
                rank=int(ranking.rank[place]),
                rank_low=int(first[place]),
                rank_high=int(last[place]),
                group=int(ranking.groups[place]),
                votes=int(ranking.n_judgments[place]),
                provisional=int(ranking.n_judgments[place]) < max(floor, 2),
                why=why(ranking, judgments, label, keys[following][1], query)
                if following >= 0 and keys[following][0] == query
                else "",
            )
        )
    return rows


def _number(value: float) -> float:
    return round(float(value), 6)


def quietly(work: Callable[[], Any]) -> Any:
    """Thin data are said to be thin by the rows themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        return work()
