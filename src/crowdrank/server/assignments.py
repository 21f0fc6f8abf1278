"""Hand out questions and take in votes, for many annotators at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crowdrank.errors import NothingToAskError
from crowdrank.server.choice import PendingState, draw
from crowdrank.server.errors import RequestError
from crowdrank.server.files import instructions_html, item_body, question_view
from crowdrank.server.panels import ending
from crowdrank.server.projection import Projection
from crowdrank.server.quality import apply_rules
from crowdrank.server.records import Annotator, Item, OpenAssignment
from crowdrank.storage import (
    Assignment,
    Collection,
    Job,
    Outcome,
    QuotaReachedError,
    RecordedVote,
    StudyPausedError,
    Task,
)

T = TypeVar("T")
Json = dict[str, Any]


class Answer(NamedTuple):
    """The answer to a question.

    Parameters
    ----------
    token : str
        The token of the assignment.
    outcome : {"left", "right", "tie", "both_bad", "skip", "answered"}
        "answered" for tasks other than pairs, whose `value` is the answer.
    reason : str, default ""
        Why the question was skipped.
    response_ms : int, optional
        The response time in milliseconds.
    value : optional
        The answer to another task than a pair, as `TaskType.check` accepts it.
    criteria : mapping, optional
        The answers to further criteria.
    comment : str, default ""
    """

    token: str
    outcome: Outcome
    reason: str = ""
    response_ms: int | None = None
    value: Any = None
    criteria: Mapping[str, Any] = MappingProxyType({})
    comment: str = ""


class JudgingRequest:
    """A request for the next question, with the answer to the last one if there is one.

    Parameters
    ----------
    authenticate : callable
        Returns the annotator, or raises if the request is not authenticated.
    answer : Answer, optional
    """

    def __init__(self, authenticate: Callable[[], Annotator], answer: Answer | None = None) -> None:
        self._authenticate, self.answer = authenticate, answer
        self.annotator: Annotator
        self.vote: RecordedVote | None = None
        self.next_question: Json | None = None
        self._error: Exception | None = None

    @property
    def failed(self) -> bool:
        return self._error is not None

    @property
    def may_hold_assignment(self) -> bool:
        """Whether the annotator may hold an open assignment: a vote that was just stored closed theirs."""
        return self.vote is None or self.vote.replayed

    def authenticate(self) -> None:
        self.annotator = self._authenticate()

    def attempt(self, work: Callable[[], T]) -> T | None:
        """Run `work` unless the request has failed. An error ends this request and no other."""
        if self._error is None:
            try:
                return work()
            except Exception as error:  # raised again for the client, and logged there
                self.fail(error)
        return None

    def fail(self, error: Exception) -> None:
        self._error = self._error or error

    def question(self) -> Json:
        """Return the next question, or raise the error."""
        if self._error is not None:
            raise self._error
        return self.next_question or {}

    def result(self) -> Json:
        """Return the stored vote and the next question, or raise the error."""
        question, vote = self.question(), self.vote
        assert vote is not None
        recorded = {"seq": vote.seq, "outcome": vote.outcome, "winner": vote.winner, "at": vote.at // 1000}
        if vote.answer is not None:
            recorded |= dict(vote.answer)
        return {"recorded": recorded, "replayed": vote.replayed, "next": question}


class AssignmentService:
    """Stores the votes of annotators and assigns them their next questions."""

    def __init__(
        self,
        collection: Collection,
        projection: Projection,
        is_decided: Callable[[], bool],
        seed: int | None = None,
        *,
        prefix: str = "",
    ) -> None:
        self._collection, self._projection, self._is_decided = collection, projection, is_decided
        self._prefix = prefix
        # Processes must not share a random sequence.
        self._rng = np.random.default_rng([os.getpid(), time.time_ns()] if seed is None else seed)

    def annotator(self, id_: int | None) -> Annotator:
        """Return an annotator, reading the log if they are new."""
        if id_ not in self._projection.annotators:
            self._projection.catch_up()
        return self._projection.annotators[id_ or 0]

    def question(self, annotator: Annotator) -> Json:
        """Return the question that an annotator holds, or a new one."""
        request = JudgingRequest(lambda: annotator)
        self.handle([request])
        return request.question()

    def vote(self, annotator: Annotator, answer: Answer) -> Json:
        """Store a vote, and return it with the next question."""
        request = JudgingRequest(lambda: annotator, answer)
        self.handle([request])
        return request.result()

    def handle(self, requests: Sequence[JudgingRequest]) -> None:
        """Store the votes of all requests in one transaction, and assign the next questions in another."""
        self._projection.catch_up()
        for request in requests:
            request.attempt(request.authenticate)
        self._store_votes([request for request in requests if request.answer is not None])
        self._assign_next([request for request in requests if not request.failed])

    def undo(self, annotator: Annotator) -> Json:
        """Undo the annotator's last vote and return its question again."""
        if not self._projection.settings.undo:
            raise RequestError(403, "Answers cannot be undone in this study.", code="not_allowed")
        last = self._collection.votes.last(annotator.id)
        if last is None:
            raise RequestError(409, "There is no answer to undo.", code="nothing_to_undo")
        seconds = self._projection.settings.questions.lease_seconds
        assignment = self._collection.votes.undo(annotator.id, last, seconds=seconds)
        self._projection.catch_up()
        return {"undone": last, "next": self._question(annotator, assignment)}

    def progress(self, annotator: Annotator) -> Json:
        """Return how many questions were answered, and of how many; null if there is no limit."""
        decided, skipped = annotator.decided, annotator.skipped
        quota, done = self.quota(annotator), decided + skipped
        remaining = None if quota is None else max(0, quota - done)
        return {"done": done, "decided": decided, "skipped": skipped, "quota": quota, "remaining": remaining}

    def quota(self, annotator: Annotator) -> int | None:
        own = annotator.quota
        return own if own is not None else self._projection.settings.budget.per_annotator

    def _store_votes(self, requests: Sequence[JudgingRequest]) -> None:
        tasks = {request: task for request in requests if (task := request.attempt(partial(self._vote_task, request)))}
        for request, job in zip(tasks, self._collection.writer.run_all(list(tasks.values())), strict=True):
            request.vote = request.attempt(job.result)
        if tasks:
            self._projection.catch_up()
            for request in tasks:
                self._apply_quality_rules(request)

    def _apply_quality_rules(self, request: JudgingRequest) -> None:
        vote, projection = request.vote, self._projection
        settings = projection.settings
        has_rules = settings.questions.max_gold_failures is not None or settings.quality.is_used
        if has_rules and vote is not None and not vote.replayed:
            index = projection.vote_index(vote.seq)
            if apply_rules(self._collection, projection, request.annotator, index):
                projection.catch_up()

    def _vote_task(self, request: JudgingRequest) -> Task[Any, Any, RecordedVote]:
        answer = request.answer
        assert answer is not None
        if request.annotator.paused_because:
            raise StudyPausedError("The organisers are looking at your answers. Your earlier answers are saved.")
        self._check_allowed(answer)
        return self._collection.votes.recording_task(
            answer.token,
            answer.value if answer.outcome == "answered" else answer.outcome,
            annotator=request.annotator.id,
            reason=answer.reason,
            response_ms=answer.response_ms,
            criteria=answer.criteria,
            comment=answer.comment,
        )

    def _assign_next(self, requests: Sequence[JudgingRequest]) -> None:
        held = self._collection.assignments.held_by(
            [request.annotator.id for request in requests if request.may_hold_assignment]
        )
        for request in requests:
            request.next_question = request.attempt(
                partial(self._without_choice, request.annotator, held.get(request.annotator.id))
            )
        waiting = [request for request in requests if request.next_question is None and not request.failed]
        if not waiting:
            return
        pending = PendingState(self._projection, self._projection.pending(time.time_ns() // 1000))
        tasks: dict[JudgingRequest, Task[Any, Any, Assignment]] = {}
        for request in waiting:
            request.next_question = request.attempt(partial(self._if_finished, request.annotator, pending))
            if request.next_question is None:
                task = request.attempt(partial(self._assignment_task, request, pending))
                if task is not None:
                    tasks[request] = task
        # A question that a power cut loses is asked again. The answer to a question makes both durable.
        jobs = self._collection.writer.run_all(list(tasks.values()), durable=False)
        for request, job in zip(tasks, jobs, strict=True):
            request.next_question = request.attempt(partial(self._assigned, request.annotator, job))

    def _without_choice(self, annotator: Annotator, held: Assignment | None) -> Json | None:
        """Return the response if nothing has to be drawn: the study is paused or closed, or a question is held."""
        if self._projection.state == "paused":
            return {"paused": True, "progress": self.progress(annotator)}
        if self._projection.state == "closed" or annotator.is_shut_out:
            return self._finished(annotator, "closed")
        if annotator.paused_because:
            return {"paused": True, "progress": self.progress(annotator)}
        if held is None:
            return None
        if not any(self._projection.items[item].hidden for item in held.items):
            return self._question(annotator, held)
        self._collection.assignments.release(annotator.id)
        return None

    def _if_finished(self, annotator: Annotator, pending: PendingState) -> Json | None:
        reason = self._reason_to_stop(annotator, pending)
        return None if reason is None else self._finished(annotator, reason)

    def _assignment_task(self, request: JudgingRequest, pending: PendingState) -> Task[Any, Any, Assignment] | None:
        annotator = request.annotator
        try:
            drawn = draw(self._projection, annotator, pending, self._rng)
        except NothingToAskError:
            request.next_question = self._finished(annotator, "no_pairs_left")
            return None
        pending.add(OpenAssignment(0, 0, annotator.id, drawn.question.items))
        return self._collection.assignments.creation_task(
            annotator.id,
            drawn.question,
            policy=drawn.policy,
            probability=drawn.probability,
            seconds=self._projection.settings.questions.lease_seconds,
            gold=drawn.gold,
            quota=self.quota(annotator),
        )

    def _assigned(self, annotator: Annotator, job: Job[Assignment]) -> Json:
        try:
            return self._question(annotator, job.result())
        except QuotaReachedError:
            return self._finished(annotator, "quota")

    def _reason_to_stop(self, annotator: Annotator, pending: PendingState) -> str | None:
        projection, budget = self._projection, self._projection.settings.budget
        quota, answered = self.quota(annotator), annotator.decided + annotator.skipped
        if quota is not None and answered >= quota:
            return "quota"
        if annotator.is_model:  # the budget of the study is for people; a model has its quota, and pays for itself
            return "decided" if budget.stop_when_decided and self._is_decided() else None
        # Open assignments of others are counted as votes, so that the budget is never exceeded.
        open_by_models = sum(pending.holders[model.id] for model in projection.models)
        waiting = len(pending.questions) - pending.holders[annotator.id] - open_by_models
        committed = projection.n_from_people + waiting
        if budget.votes is not None and committed >= budget.votes:
            return "budget"
        if budget.money is not None and (committed + 1) * budget.price_per_vote > budget.money:
            return "budget"
        return "decided" if budget.stop_when_decided and self._is_decided() else None

    def _finished(self, annotator: Annotator, reason: str) -> Json:
        progress, joining = self.progress(annotator), self._projection.settings.joining
        earned = progress["decided"] >= max(1, joining.completion_min_answered * progress["done"])
        given = ending(joining, annotator, earned=earned)
        given["completion_withheld"] = bool(given["completion_withheld"] and progress["done"])
        return {"finished": True, "reason": reason, **given, "progress": progress}

    def _question(self, annotator: Annotator, assignment: Assignment) -> Json:
        items = [self._projection.items[id_] for id_ in assignment.items]
        context = next((str(item.content["context"]) for item in items if item.content.get("context")), "")
        views = [question_view(item, self._collection.keys, self._prefix) for item in items]
        shown: Json = {"left": views[0], "right": views[1]} if assignment.is_pair else {"items": views}
        if assignment.grades:
            shown["scale"] = list(self._projection.settings.task.scale)
        if assignment.criteria:
            shown["criteria"] = list(assignment.criteria)
        return {
            "assignment": {
                "token": assignment.token,
                "task": assignment.task,
                **shown,
                "query": items[0].query,
                "context": instructions_html(context) or None,
                "expires_at": assignment.expires_at // 1000,
            },
            "progress": self.progress(annotator),
            **({"model": self._for_models(items, context)} if annotator.is_model else {}),
        }

    def _for_models(self, items: Sequence[Item], context: str) -> Json:
        """Return what a language model needs besides: the texts as they were written, and what is asked of people."""
        settings = self._projection.settings
        return {
            "question": settings.question,
            "instructions": settings.instructions,
            "context": context,
            "texts": [item_body(item) for item in items],
            "ties": settings.ties,
        }

    def _check_allowed(self, answer: Answer) -> None:
        settings = self._projection.settings
        allowed = {"tie": settings.ties, "skip": settings.skips, "both_bad": settings.both_bad}
        for outcome in (answer.outcome, *answer.criteria.values()):
            if isinstance(outcome, str) and not allowed.get(outcome, True):
                raise RequestError(422, f"{outcome!r} is not an answer in this study.", code="not_allowed")
        if answer.comment and not settings.comments:
            raise RequestError(422, "Comments are not allowed in this study.", code="not_allowed")
