"""Build the board: a fit of all votes that count, up to a row of the log. The same row gives the same board.

The latest board is kept, and the next one is built in a background thread when someone looks.
"""

from __future__ import annotations

import json
import logging
import shlex
import threading
import time
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crowdrank.data import Comparisons, Judgments, Rankings
from crowdrank.errors import muted_warnings
from crowdrank.evaluation.candidates import model_of
from crowdrank.models import Model, by_name, name_of
from crowdrank.models.selection import default_model
from crowdrank.results import Ranking
from crowdrank.server.board_statistics import DecisionStatus, board_history, decision_status, reliability_summary
from crowdrank.server.explanations import explain_order, item_keys
from crowdrank.server.projection import Projection
from crowdrank.storage import Collection

Json = dict[str, Any]

_REST = 4.0
"""After each board the thread rests this many times as long as it took, because votes come first."""
_MAX_REST = 60.0
_MAX_WAITING = 8
"""Requests that wait for a new board at the same time. Others get the last one, so that threads stay free for votes."""
_logger = logging.getLogger("crowdrank.server")


@dataclass(frozen=True, kw_only=True)
class BoardRow:
    """An item on the board.

    Parameters
    ----------
    id : int
    item, query : str
    score, low, high : float or None
        The score and its 95 % interval; None if the item has no votes.
    rank, rank_low, rank_high : int or None
        The rank and its 95 % interval.
    group : int or None
        The tie group: the order within a group is uncertain.
    votes : int
    provisional : bool
        Whether the item has very few votes.
    explanation : str
        Why it is above the next item.
    criteria : tuple of int or None
        Its rank by each further criterion.
    """

    id: int
    item: str
    query: str
    score: float | None
    low: float | None
    high: float | None
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    group: int | None
    votes: int
    provisional: bool
    explanation: str = ""
    criteria: tuple[int | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Board:
    """The ranking of a collection as of one row of the log.

    Parameters
    ----------
    seq : int
        The row of the log.
    model : str
        The name of the model that was fitted.
    chosen_because : str
        Why this model was chosen.
    votes, annotators : int
        How many votes count, and how many annotators gave them.
    rows : tuple of BoardRow
        The items, best first.
    task : str
        The type of the task.
    criteria : tuple of str
        Further criteria, by which the rows are ranked as well.
    decision : DecisionStatus or None
    reliability : dict or None
    history : tuple of dict
        Standard error and agreement with the current order after earlier numbers of votes.
    notes : tuple of str
        The notes of the ranking.
    is_pending : bool
        Whether there are votes, but the first board is not ready yet.
    seconds : float
        How long it took to build.
    ranking : Ranking or None
    judgments : Comparisons, Ratings, Rankings or None
    """

    seq: int
    model: str
    chosen_because: str
    votes: int
    annotators: int
    rows: tuple[BoardRow, ...]
    task: str = "pair"
    criteria: tuple[str, ...] = ()
    decision: DecisionStatus | None = None
    reliability: Json | None = None
    history: tuple[Json, ...] = ()
    notes: tuple[str, ...] = ()
    is_pending: bool = False
    seconds: float = field(default=0.0, compare=False)
    ranking: Ranking | None = field(default=None, compare=False, repr=False)
    judgments: Judgments | None = field(default=None, compare=False, repr=False)

    def as_dict(self) -> Json:
        return {
            "seq": self.seq,
            "model": self.model,
            "chosen_because": self.chosen_because,
            "votes": self.votes,
            "annotators": self.annotators,
            "task": self.task,
            "criteria": list(self.criteria),
            "items": [{**asdict(row), "label": row.item} for row in self.rows],
            "decision": None if self.decision is None else asdict(self.decision),
            "reliability": self.reliability,
            "history": list(self.history),
            "notes": list(self.notes),
            "is_pending": self.is_pending,
        }

    @cached_property
    def json(self) -> bytes:
        """The board as JSON, made once for all who read it."""
        return json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def explain(self, above: str, below: str, query: str = "") -> str:
        """Say in one sentence why one item is above another, or is not."""
        if self.ranking is None or self.judgments is None:
            return "There are no votes yet."
        return explain_order(self.ranking, self.judgments, above, below, query)


def build_board(collection: Collection, projection: Projection, seq: int) -> Board:
    """Build the board as of row `seq` of the log."""
    start = time.monotonic()
    items = collection.items.all(up_to=seq) if seq else {}
    visible = {(item.query, item.label): item.id for item in items.values() if not item.hidden}
    with_features = collection.log.judgments(seq)
    judgments = with_features
    if isinstance(judgments, Comparisons):
        judgments = replace(judgments, features={})
    model, settings = board_model(judgments), projection.settings
    empty = Board(
        seq=seq,
        model=name_of(model),
        chosen_because=default_model(judgments).reason,
        votes=len(judgments),
        annotators=len(judgments.annotators),
        rows=tuple(_row_without_votes(query, label, id_) for (query, label), id_ in visible.items()),
        task=collection.log.task(seq) if len(judgments) else settings.task.type,
        criteria=settings.task.criteria,
    )
    if not len(judgments):
        return empty
    with muted_warnings():  # the board shows by itself that data are thin
        ranking = model.fit(judgments)
        fitted = model_of(ranking).with_estimated_settings(ranking)  # what was learnt from the data is not learnt again
        reliability = reliability_summary(with_features, fitted) if isinstance(with_features, Comparisons) else None
        history = board_history(judgments, ranking, fitted)
        by_criterion = [ranks_by_criterion(collection, seq, criterion) for criterion in settings.task.criteria]
    rows = [
        replace(row, criteria=tuple(ranks.get((row.query, row.item)) for ranks in by_criterion))
        for row in _rows(ranking, judgments, visible, settings.questions.min_appearances)
    ]
    ranked = {row.id for row in rows}
    decision = None
    if settings.budget.decision is not None:
        decision = decision_status(ranking, settings.budget.decision, settings.budget.confidence, len(judgments))
    return replace(
        empty,
        rows=(*rows, *(row for row in empty.rows if row.id not in ranked)),
        ranking=ranking,
        judgments=judgments,
        decision=decision,
        reliability=reliability,
        history=history,
        notes=tuple(ranking.notes),
        seconds=time.monotonic() - start,
    )


def ranks_by_criterion(collection: Collection, seq: int, criterion: str) -> dict[tuple[str, str], int]:
    """Return the ranks of items, by query and label, according to the answers to one criterion."""
    judgments = collection.log.judgments(seq, criterion=criterion)
    if not len(judgments):
        return {}
    ranking = board_model(judgments).fit(judgments)
    return dict(zip(item_keys(ranking), ranking.rank.tolist(), strict=True))


def board_model(judgments: Judgments) -> Model:
    """Return the model for a board, which is the default model of these judgments."""
    return by_name(default_model(judgments).name)()


def rank_command(judgments: Judgments, votes: Path) -> str:
    """Return the command that ranks exported votes as the board does."""
    model = board_model(judgments)
    changed = [f"--set {f.name}={getattr(model, f.name)}" for f in fields(model) if getattr(model, f.name) != f.default]
    return f"crowdrank rank {shlex.quote(str(votes))} --model {name_of(model)} {' '.join(changed)}".rstrip()


def _row_without_votes(query: str, label: str, id_: int) -> BoardRow:
    return BoardRow(
        id=id_,
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


def _rows(
    ranking: Ranking, judgments: Judgments, visible: dict[tuple[str, str], int], min_appearances: int
) -> list[BoardRow]:
    keys, uncertainty = item_keys(ranking), ranking.uncertainty
    if isinstance(judgments, Rankings):
        judgments = judgments.to_comparisons()  # once for all explanations
    low, high = np.quantile(uncertainty.draws, (0.025, 0.975), axis=0)
    rank_low, rank_high = ranking.rank_intervals()
    order = [code for code in ranking.order.tolist() if keys[code] in visible]
    rows = []
    for code, following in zip(order, [*order[1:], None], strict=True):
        query, label = keys[code]
        explanation = ""
        if following is not None and keys[following][0] == query:
            explanation = explain_order(ranking, judgments, label, keys[following][1], query)
        rows.append(
            BoardRow(
                id=visible[query, label],
                item=label,
                query=query,
                score=_rounded(ranking.scores[code]),
                low=_rounded(low[code]),
                high=_rounded(high[code]),
                rank=int(ranking.rank[code]),
                rank_low=int(rank_low[code]),
                rank_high=int(rank_high[code]),
                group=int(ranking.groups[code]),
                votes=int(ranking.n_judgments[code]),
                provisional=int(ranking.n_judgments[code]) < max(min_appearances, 2),
                explanation=explanation,
            )
        )
    return rows


def _rounded(value: float) -> float:
    return round(float(value), 6)


class BoardPublisher:
    """Publishes boards of a collection.

    Attributes
    ----------
    latest_built : Board or None
        The last board that was built in the background.
    """

    def __init__(self, collection: Collection, projection: Projection) -> None:
        self._collection, self._projection = collection, projection
        self.latest_built: Board | None = None
        self._requested, self._built = threading.Event(), threading.Condition()
        self._waiting = threading.Semaphore(_MAX_WAITING)
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def latest(self, wait: float = 0.0) -> Board:
        """Return the latest board. If there are newer votes, request a new one and wait for it `wait` seconds."""
        projection = self._projection.catch_up()
        latest, wanted = self.latest_built, projection.board_seq
        if latest is None or latest.seq < wanted:
            self._start()
            self._requested.set()
            if wait and self._waiting.acquire(blocking=False):
                try:
                    with self._built:
                        self._built.wait_for(
                            lambda: self.latest_built is not None and self.latest_built.seq >= wanted, wait
                        )
                finally:
                    self._waiting.release()
        if self.latest_built is not None:
            return self.latest_built
        return replace(build_board(self._collection, projection, 0), is_pending=projection.n_counted > 0)

    def build(self, seq: int | None = None) -> Board:
        """Build the board as of row `seq` of the log, by default the current one, in this thread."""
        self._projection.catch_up()
        return build_board(self._collection, self._projection, self._projection.board_seq if seq is None else seq)

    def is_decided(self) -> bool:
        """Return whether the decision of the settings is reached on the latest board."""
        decision = self.latest().decision
        return decision is not None and decision.decided

    def stop(self) -> None:
        self._stopping = True
        self._requested.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="boards", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._stopping:
            self._requested.wait()
            self._requested.clear()
            if self._stopping:
                return
            start = time.monotonic()
            try:
                board = self.build()
            except Exception as error:  # pages keep showing the last board
                _logger.error("building the board failed", exc_info=error)
            else:
                with self._built:
                    if self.latest_built is None or self.latest_built.seq <= board.seq:
                        self.latest_built = board
                    self._built.notify_all()
            elapsed = time.monotonic() - start
            for _ in range(int(min(_REST * elapsed, _MAX_REST) / 0.1)):
                if self._stopping:
                    return
                time.sleep(0.1)
