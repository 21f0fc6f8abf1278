"""Build the board: a fit of all votes that count, up to a row of the log. The same row gives the same board.

The latest board is kept, and the next one is built in a background thread when someone looks.
"""

from __future__ import annotations

import json
import logging
import math
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from crowdrank.active import decision, reliability
from crowdrank.active.stopping import forecast_from_draws
from crowdrank.arrays import BoolArray
from crowdrank.data import (
    LEFT,
    RIGHT,
    AnnotatorDetails,
    Comparisons,
    Judgments,
    Rankings,
    Ratings,
    SideInformation,
)
from crowdrank.errors import CrowdrankError, muted_warnings
from crowdrank.evaluation import StuffingTest, find_stuffing
from crowdrank.evaluation.recommendation import model_of
from crowdrank.models import Model, by_name, name_of
from crowdrank.models.selection import ModelChoice, default_model
from crowdrank.online import Vocabulary
from crowdrank.results import Ranking
from crowdrank.server.projection import Projection
from crowdrank.server.records import models_among
from crowdrank.storage import Collection
from crowdrank.storage.judgments import iso_time

# Statistics that a board shows next to the ranking: decision status, reliability and history.

Json = dict[str, Any]

_HISTORY_POINTS = 8
_LEADERS = 6
"""Items whose ranks the history shows."""
_NONE: Mapping[int, int] = MappingProxyType({})
_FORECAST_PATHS = 50


@dataclass(frozen=True, kw_only=True)
class DecisionStatus:
    """Whether the decision that a collection is for has been reached.

    Parameters
    ----------
    target : str
        The decision, for example "top 3".
    confidence : float
        The probability with which it must be right.
    decided : bool
    probability : float
        The probability that the current answer is right.
    more_votes : int or None
        The expected (median) number of further votes; None if it is decided or cannot be predicted.
    summary : str
        One sentence for people.
    """

    target: str
    confidence: float
    decided: bool
    probability: float
    more_votes: int | None
    summary: str


def decision_status(ranking: Ranking, target: str, confidence: float, n_votes: int) -> DecisionStatus:
    """Return the status of a decision, from the posterior draws behind a board."""
    wanted, items = decision(target), ranking.items
    queries = items.queries[items.query] if items.has_queries else [""] * len(items)
    vocabulary = Vocabulary(tuple(str(label) for label in items.labels), tuple(str(query) for query in queries))
    draws = ranking.uncertainty.draws
    try:
        probability = wanted.probability(draws, vocabulary)
        decided = probability >= wanted.threshold(confidence)
        more = 0.0
        if not decided:
            predicted = forecast_from_draws(draws, vocabulary, wanted, n_votes, confidence, paths=_FORECAST_PATHS)
            more = predicted.votes - n_votes
    except CrowdrankError as error:  # the decision names an item that has no votes yet
        return DecisionStatus(
            target=target, confidence=confidence, decided=False, probability=0.0, more_votes=None, summary=str(error)
        )
    more_votes = None if decided or math.isinf(more) else int(more)
    return DecisionStatus(
        target=target,
        confidence=confidence,
        decided=decided,
        probability=round(probability, 4),
        more_votes=more_votes,
        summary=_summary(target, confidence, decided, probability, more_votes),
    )


def _summary(target: str, confidence: float, decided: bool, probability: float, more_votes: int | None) -> str:
    if decided:
        return f"{target.capitalize()}: decided with {confidence:.0%} confidence.".replace("%", " %")
    expectation = (
        "more votes are needed, but how many cannot be predicted yet"
        if more_votes is None
        else f"about {more_votes:,} more votes needed"
    )
    return f"{target.capitalize()}: not decided yet ({probability:.0%} sure); {expectation}.".replace("%", " %")


@dataclass(frozen=True)
class BoardMethod:
    """How a board is fitted: the default model of its judgments, which knows who is a language model.

    Parameters
    ----------
    model : Model
    models : mapping of str to AnnotatorDetails
        The language models among the annotators.
    choice : ModelChoice
        Why this model was chosen.
    """

    model: Model
    models: Mapping[str, AnnotatorDetails]
    choice: ModelChoice

    @classmethod
    def of(cls, judgments: Judgments, models: Mapping[str, AnnotatorDetails]) -> BoardMethod:
        present = {name: models[name] for name in map(str, judgments.annotators) if name in models}
        choice = default_model(judgments, people=present or None)
        return cls(by_name(choice.name)(), present, choice)

    @property
    def is_of_people(self) -> bool:
        """Whether the ranking is that of the people, and the votes of language models are a prior."""
        return self.model.accepts_people

    def fit(self, judgments: Judgments) -> Ranking:
        usable = self.models and (self.model.accepts_people or self.model.accepts_side_information)
        return self.model.fit(judgments, side_information=SideInformation(people=self.models) if usable else None)

    def with_estimated_settings(self, ranking: Ranking) -> BoardMethod:
        """Return the method for refits to parts of the judgments: what was learnt from them is not learnt again."""
        return replace(self, model=model_of(ranking).with_estimated_settings(ranking))

    def votes_of_people(self, judgments: Judgments) -> Judgments:
        """Return the judgments that the ranking is of: without those of language models if these are a prior."""
        if not self.is_of_people or judgments.annotator is None:
            return judgments
        return judgments.take(np.flatnonzero(~self._by_models(judgments)))

    def count_by_models(self, judgments: Judgments) -> int:
        """Return how many judgments are by language models."""
        return 0 if judgments.annotator is None or not self.models else int(self._by_models(judgments).sum())

    def _by_models(self, judgments: Judgments) -> BoolArray:
        assert judgments.annotator is not None
        return np.array([str(name) in self.models for name in judgments.annotators], bool)[judgments.annotator]


def reliability_summary(judgments: Comparisons, model: Model) -> Json | None:
    """Return the reliability measured on the questions that were chosen at random; None if it cannot be measured."""
    try:
        found = reliability(judgments, model=model)
    except CrowdrankError:
        return None

    def estimate(one: Any) -> Json | None:
        return None if one is None else {"value": one.value, "low": one.low, "high": one.high}

    return {
        "model": found.model,
        "judgments": found.judgments,
        "random": found.random,
        "too_few": found.too_few,
        "of_all": estimate(found.projected),
        "separation": estimate(found.separation),
        "split_half": estimate(found.split_half),
        "lines": found.lines(),
    }


def board_history(
    judgments: Judgments,
    current: Ranking,
    method: BoardMethod,
    times: Sequence[int] = (),
    leaders: Mapping[int, int] = _NONE,
) -> tuple[Json, ...]:
    """Fit the first eighth, quarter, … of the votes.

    Every point has the mean standard error, Kendall's τ with the current order, the time of the last of these votes
    (if `times` has one per judgment), and the ranks of the leaders, which are ids by code. If the ranking is that of
    the people, there is no point before their first vote.
    """
    if len(judgments) < 2 * _HISTORY_POINTS:
        return ()
    from crowdrank.evaluation import kendall_correlation

    points = []
    for part in range(1, _HISTORY_POINTS + 1):
        count = len(judgments) * part // _HISTORY_POINTS
        early = judgments.take(np.arange(count))
        if not len(method.votes_of_people(early)):
            continue
        board = method.fit(early)
        seen = early.n_judgments_per_item > 0
        tau = kendall_correlation(board.scores[seen], current.scores[seen]) if seen.sum() > 1 else float("nan")
        error = float(np.mean(board.uncertainty.std_error[seen]))
        ranks = [{"id": id_, "rank": int(board.rank[code])} for code, id_ in leaders.items() if seen[code]]
        points.append(
            {
                "votes": count,
                "uncertainty": round(error, 4),
                "agreement": None if np.isnan(tau) else round(tau, 4),
                "at": iso_time(times[count - 1]) if len(times) == len(judgments) else None,
                "ranks": ranks,
            }
        )
    return tuple(points)


# Explain in one sentence why an item is above another on the board.


def explain_order(ranking: Ranking, judgments: Judgments, above: str, below: str, query: str = "") -> str:
    """Say how two items were compared, and how certain their order is."""
    codes = {key: code for code, key in enumerate(item_keys(ranking))}
    if (query, above) not in codes or (query, below) not in codes:
        return "One of the two items has no votes yet."
    a, b = codes[query, above], codes[query, below]
    probability = ranking.uncertainty.probability_above(ranking.scores, a, b)
    if isinstance(judgments, Ratings):
        evidence = _compare_grades(judgments, above, below, a, b)
    else:
        evidence = _compare_directly(judgments, above, a, b)
    order = "above" if ranking.scores[a] >= ranking.scores[b] else "below"
    certainty = probability if order == "above" else 1 - probability
    return f"{above} is {order} {below} with {_percent(certainty)} probability: {evidence}."


def _compare_grades(ratings: Ratings, above: str, below: str, a: int, b: int) -> str:
    one, other = (ratings.grade[ratings.item == code] for code in (a, b))
    return (
        f"{above} has a mean grade of {one.mean():.2f} ({_count(len(one))}), "
        f"{below} one of {other.mean():.2f} ({_count(len(other))})"
    )


def _count(ratings: int) -> str:
    return f"{ratings} rating{'' if ratings == 1 else 's'}"


def _compare_directly(judgments: Comparisons | Rankings, above: str, a: int, b: int) -> str:
    won, lost, tied = _direct_comparisons(judgments, a, b)
    if won + lost + tied == 0:
        evidence = "they were never compared directly, so the order follows from comparisons with other items"
    elif won + lost == 0:
        evidence = f"all direct comparisons were ties ({tied})"
    else:
        ties = f", and {tied} {'was a tie' if tied == 1 else 'were ties'}" if tied else ""
        evidence = f"{above} won {won} of {won + lost} direct comparisons{ties}"
    return evidence


def _percent(probability: float) -> str:
    return "more than 99 %" if probability > 0.99 else f"{probability:.0%}".replace("%", " %")


def _direct_comparisons(judgments: Comparisons | Rankings, a: int, b: int) -> tuple[int, int, int]:
    """Return how often `a` won against `b`, lost and tied."""
    if isinstance(judgments, Rankings):
        judgments = judgments.to_comparisons()  # items that share a place were not compared
    forward, backward = (judgments.left == a) & (judgments.right == b), (judgments.left == b) & (judgments.right == a)
    won = np.sum(judgments.outcome[forward] == LEFT) + np.sum(judgments.outcome[backward] == RIGHT)
    lost = np.sum(judgments.outcome[forward] == RIGHT) + np.sum(judgments.outcome[backward] == LEFT)
    both = int(np.sum(forward) + np.sum(backward))
    return int(won), int(lost), both - int(won) - int(lost)


def item_keys(ranking: Ranking) -> list[tuple[str, str]]:
    """Return the query and the label of every item of a ranking."""
    items = ranking.items
    queries = items.queries[items.query] if items.has_queries else [""] * len(items)
    return [(str(query), str(label)) for query, label in zip(queries, items.labels, strict=True)]


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
    category : str
        The `group` of the item.
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
    category: str = ""


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
    votes_of_models, models : int
        How many of these votes are by language models, and how many language models gave them.
    is_of_people : bool
        Whether the ranking is that of the people, and the votes of language models are a prior.
    rows : tuple of BoardRow
        The items, best first.
    task : str
        The type of the task.
    criteria : tuple of str
        Further criteria, by which the rows are ranked as well.
    decision : DecisionStatus or None
    reliability : dict or None
    history : tuple of dict
        After earlier numbers of votes: standard error, agreement with the current order, time, and ranks of the
        items that lead now.
    notes : tuple of str
        The notes of the ranking.
    is_pending : bool
        Whether there are votes, but the first board is not ready yet.
    seconds : float
        How long it took to build.
    ranking : Ranking or None
    judgments : Comparisons, Ratings, Rankings or None
    method : BoardMethod or None
    """

    seq: int
    model: str
    chosen_because: str
    votes: int
    annotators: int
    rows: tuple[BoardRow, ...]
    votes_of_models: int = 0
    models: int = 0
    is_of_people: bool = False
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
    method: BoardMethod | None = field(default=None, compare=False, repr=False)

    @property
    def categories(self) -> list[str]:
        """The categories of the items, in alphabetical order."""
        return sorted({row.category for row in self.rows if row.category})

    def as_dict(self) -> Json:
        return {
            "seq": self.seq,
            "model": self.model,
            "chosen_because": self.chosen_because,
            "votes": self.votes,
            "annotators": self.annotators,
            "votes_of_models": self.votes_of_models,
            "models": self.models,
            "is_of_people": self.is_of_people,
            "task": self.task,
            "criteria": list(self.criteria),
            "categories": self.categories,
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

    @cached_property
    def stuffing(self) -> StuffingTest | None:
        """The test for vote stuffing, made when someone looks; None if there are no comparisons of pairs."""
        judgments = self.counted
        return find_stuffing(judgments) if isinstance(judgments, Comparisons) else None

    @cached_property
    def counted(self) -> Judgments | None:
        """The judgments that the ranking is of: those of people, if the votes of language models are a prior."""
        if self.judgments is None or self.method is None:
            return self.judgments
        return self.method.votes_of_people(self.judgments)

    def explain(self, above: str, below: str, query: str = "") -> str:
        """Say in one sentence why one item is above another, or is not."""
        if self.ranking is None or self.counted is None:
            return "There are no votes yet."
        return explain_order(self.ranking, self.counted, above, below, query)


def build_board(collection: Collection, projection: Projection, seq: int) -> Board:
    """Build the board as of row `seq` of the log."""
    start = time.monotonic()
    items = collection.items.all(up_to=seq) if seq else {}
    visible = {(item.query, item.label): item.id for item in items.values() if not item.hidden}
    categories = {item.id: str(item.content.get("group", "")) for item in items.values()}
    with_features = collection.log.judgments(seq)
    judgments = with_features
    if isinstance(judgments, Comparisons):
        judgments = replace(judgments, features={})
    models = models_among(collection.annotators.all(up_to=seq).values()) if seq else {}
    method, settings = BoardMethod.of(judgments, models), projection.settings
    empty = Board(
        seq=seq,
        model=name_of(method.model),
        chosen_because=method.choice.reason,
        votes=len(judgments),
        annotators=len(judgments.annotators),
        rows=tuple(_row_without_votes(query, label, id_, categories[id_]) for (query, label), id_ in visible.items()),
        task=collection.log.task(seq) if len(judgments) else settings.task.type,
        criteria=settings.task.criteria,
        votes_of_models=method.count_by_models(judgments),
        models=len(method.models),
        is_of_people=method.is_of_people,
    )
    if not len(judgments):
        return empty
    with muted_warnings():  # the board shows by itself that data are thin
        ranking = method.fit(judgments)
        fitted = method.with_estimated_settings(ranking)
        measured = method.votes_of_people(with_features)
        reliability = reliability_summary(measured, fitted.model) if isinstance(measured, Comparisons) else None
        times = collection.log.judgment_times(seq)
        history = board_history(judgments, ranking, fitted, times, _leaders(ranking, visible))
        by_criterion = [ranks_by_criterion(collection, seq, criterion, models) for criterion in settings.task.criteria]
    counted = method.votes_of_people(judgments)
    rows = [
        replace(
            row,
            criteria=tuple(ranks.get((row.query, row.item)) for ranks in by_criterion),
            category=categories[row.id],
        )
        for row in _rows(ranking, counted, visible, settings.questions.min_appearances)
    ]
    ranked = {row.id for row in rows}
    decision = None
    if settings.budget.decision is not None:
        decision = decision_status(ranking, settings.budget.decision, settings.budget.confidence, len(counted))
    return replace(
        empty,
        rows=(*rows, *(row for row in empty.rows if row.id not in ranked)),
        ranking=ranking,
        judgments=judgments,
        method=method,
        decision=decision,
        reliability=reliability,
        history=history,
        notes=tuple(ranking.notes),
        seconds=time.monotonic() - start,
    )


def ranks_by_criterion(
    collection: Collection, seq: int, criterion: str, models: Mapping[str, AnnotatorDetails]
) -> dict[tuple[str, str], int]:
    """Return the ranks of items, by query and label, according to the answers to one criterion."""
    judgments = collection.log.judgments(seq, criterion=criterion)
    if not len(judgments):
        return {}
    ranking = BoardMethod.of(judgments, models).fit(judgments)
    return dict(zip(item_keys(ranking), ranking.rank.tolist(), strict=True))


def rank_command(
    judgments: Judgments,
    votes: Path,
    models: Mapping[str, AnnotatorDetails] = MappingProxyType({}),
    people: Path | None = None,
) -> str:
    """Return the command that ranks exported votes as the board does."""
    model = BoardMethod.of(judgments, models).model
    changed = [f"--set {f.name}={getattr(model, f.name)}" for f in fields(model) if getattr(model, f.name) != f.default]
    known = f" --people {shlex.quote(str(people))}" if models and people is not None else ""
    return f"crowdrank rank {shlex.quote(str(votes))}{known} --model {name_of(model)} {' '.join(changed)}".rstrip()


def _leaders(ranking: Ranking, visible: Mapping[tuple[str, str], int]) -> dict[int, int]:
    """Return the ids of the best items by code; none if there are several queries, whose ranks cannot be compared."""
    keys = item_keys(ranking)
    if len({query for query, _ in keys}) > 1:
        return {}
    shown = [code for code in ranking.order.tolist() if keys[code] in visible]
    return {code: visible[keys[code]] for code in shown[:_LEADERS]}


def _row_without_votes(query: str, label: str, id_: int, category: str) -> BoardRow:
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
        category=category,
    )


def _rows(
    ranking: Ranking, judgments: Judgments, visible: dict[tuple[str, str], int], min_appearances: int
) -> list[BoardRow]:
    keys, uncertainty = item_keys(ranking), ranking.uncertainty
    n_votes = judgments.n_judgments_per_item
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
                votes=int(n_votes[code]),
                provisional=int(n_votes[code]) < max(min_appearances, 2),
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
