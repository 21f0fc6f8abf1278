"""Questions handed out, answers taken in: what the judging page and the API do."""

from __future__ import annotations

import html
import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from crowdrank.errors import NothingToAskError
from crowdrank.server.batching import Json, Outcome, Said, Turn
from crowdrank.server.choice import Outlook, choose
from crowdrank.server.content import kind_of, rendered
from crowdrank.server.errors import Problem
from crowdrank.server.projection import Live, Person, Thing
from crowdrank.storage import Assignment, Collection, Job, Pending, QuotaReachedError, Recorded, Task


class Desk:
    """Between the people who answer and the log."""

    def __init__(
        self, collection: Collection, live: Live, settled: Callable[[], bool], seed: int | None = None
    ) -> None:
        self._questions, self._live, self._settled = collection.questions, live, settled
        # no two processes may draw the same lots
        self._rng = np.random.default_rng([os.getpid(), time.time_ns()] if seed is None else seed)

    def person(self, annotator: int | None) -> Person:
        """Who that is, by now."""
        live = self._live
        if annotator not in live.people:
            live.catch_up()
        return live.people[annotator or 0]

    def question(self, person: Person) -> Json:
        """The question that someone is to answer next: the one they hold, else a new one."""
        turn = Turn(lambda: person)
        self.take([turn])
        return turn.question()

    def vote(self, person: Person, said: Said) -> Json:
        """Store what someone said; gives that, and the next question."""
        turn = Turn(lambda: person, said)
        self.take([turn])
        return turn.answer()

    def take(self, turns: Sequence[Turn]) -> None:
        """Store what many said, together, and choose what each is asked next."""
        self._live.catch_up()
        for turn in turns:
            turn.step(turn.let_in)
        self._store([turn for turn in turns if turn.said is not None])
        self._ask([turn for turn in turns if not turn.failed])

    def undo(self, person: Person) -> Json:
        """Take back the last answer, and put its question again."""
        if not self._live.settings.undo:
            raise Problem(403, "Answers cannot be taken back in this collection.", code="not_allowed")
        last = self._questions.last_vote(person.id)
        if last is None:
            raise Problem(409, "There is no answer to take back.", code="nothing_to_undo")
        again = self._questions.undo(person.id, last, seconds=self._live.settings.asking.lease_seconds)
        self._live.catch_up()
        return {"undone": last, "next": self._shown(person, again)}

    def progress(self, person: Person) -> Json:
        """How many were answered, of how many; null where there is no end."""
        decided, skipped = self._live.answered(person)
        quota, done = self.quota(person), decided + skipped
        remaining = None if quota is None else max(0, quota - done)
        return {"done": done, "decided": decided, "skipped": skipped, "quota": quota, "remaining": remaining}

    def quota(self, person: Person) -> int | None:
        own = person.quota
        return own if own is not None else self._live.settings.budget.per_annotator

    def _store(self, turns: Sequence[Turn]) -> None:
        """What was said, in one transaction."""
        voting = {turn: task for turn in turns if (task := turn.step(partial(self._to_vote, turn))) is not None}
        for turn, job in zip(voting, self._questions.together(list(voting.values())), strict=True):
            turn.recorded = turn.step(job.outcome)
        if voting:
            self._live.catch_up()

    def _to_vote(self, turn: Turn) -> Task[Any, Any, Recorded]:
        said = turn.said
        assert said is not None
        self._check(said.outcome)
        return self._questions.to_vote(
            said.token, said.outcome, annotator=turn.person.id, reason=said.reason, response_ms=said.milliseconds
        )

    def _ask(self, turns: Sequence[Turn]) -> None:
        """What comes next for each: the question they hold, else one that is chosen now, and put in one transaction."""
        held = self._questions.held_by([turn.person.id for turn in turns if turn.looks])
        for turn in turns:
            turn.following = turn.step(partial(self._at_hand, turn.person, held.get(turn.person.id)))
        fresh = [turn for turn in turns if turn.following is None and not turn.failed]
        if not fresh:
            return
        outlook = Outlook(self._live, self._live.pending(time.time_ns() // 1000))
        asking: dict[Turn, Task[Any, Any, Assignment]] = {}
        for turn in fresh:
            turn.following = turn.step(partial(self._instead, turn.person, outlook))
            if turn.following is None and (task := turn.step(partial(self._to_ask, turn, outlook))) is not None:
                asking[turn] = task
        for turn, job in zip(asking, self._questions.together(list(asking.values())), strict=True):
            turn.following = turn.step(partial(self._put, turn.person, job))

    def _at_hand(self, person: Person, held: Assignment | None) -> Json | None:
        """What needs no choice: that nobody is asked now, or the question that is held."""
        if self._live.state == "paused":
            return {"paused": True, "progress": self.progress(person)}
        if self._live.state == "closed":
            return self._finished(person, "closed")
        if held is None:
            return None
        if not self._hidden(held):
            return self._shown(person, held)
        self._questions.release(person.id)
        return None

    def _instead(self, person: Person, outlook: Outlook) -> Json | None:
        """What someone is told who is asked no more."""
        why = self._ended(person, outlook.out)
        return None if why is None else self._finished(person, why)

    def _to_ask(self, turn: Turn, outlook: Outlook) -> Task[Any, Any, Assignment] | None:
        """A pair that one of those who come together is sent is not sent to another."""
        person = turn.person
        try:
            chosen = choose(self._live, person, outlook, self._rng)
        except NothingToAskError:
            turn.following = self._finished(person, "nothing_left")
            return None
        outlook.add(Pending(person.id, chosen.left, chosen.right))
        return self._questions.to_assign(
            person.id,
            chosen.left,
            chosen.right,
            policy=chosen.policy,
            probability=chosen.probability,
            seconds=self._live.settings.asking.lease_seconds,
            gold=chosen.gold,
            quota=self.quota(person),
        )

    def _put(self, person: Person, job: Job[Assignment]) -> Json:
        try:
            return self._shown(person, job.outcome())
        except QuotaReachedError:
            return self._finished(person, "quota")

    def _ended(self, person: Person, pending: list[Pending]) -> str | None:
        """Why someone is asked no more."""
        live, budget = self._live, self._live.settings.budget
        if person.excluded:
            return "closed"
        quota, answered = self.quota(person), sum(live.answered(person))
        if quota is not None and answered >= quota:
            return "quota"
        given = live.decided + sum(1 for one in pending if one.annotator != person.id)
        if budget.votes is not None and given >= budget.votes:
            return "budget"
        if budget.money is not None and (given + 1) * budget.price > budget.money:
            return "budget"
        return "settled" if budget.stop_when_settled and self._settled() else None

    def _finished(self, person: Person, why: str) -> Json:
        progress, joining = self.progress(person), self._live.settings.joining
        code = joining.completion_code if progress["done"] else None
        url = (
            joining.completion_url.replace("{code}", code or "")
            if joining.completion_url and progress["done"]
            else None
        )
        return {
            "finished": True,
            "reason": why,
            "completion_code": code,
            "completion_url": url,
            "progress": progress,
        }

    def _shown(self, person: Person, asked: Assignment) -> Json:
        left, right = (self._live.items[one] for one in (asked.left, asked.right))
        context = str(left.content.get("context") or right.content.get("context") or "")
        return {
            "assignment": {
                "token": asked.token,
                "left": shown(left),
                "right": shown(right),
                "query": left.query,
                "context": context_html(context),
                "expires_at": asked.expires_at // 1000,
            },
            "progress": self.progress(person),
        }

    def _hidden(self, asked: Assignment) -> bool:
        return any(self._live.items[one].hidden for one in (asked.left, asked.right))

    def _check(self, outcome: Outcome) -> None:
        settings = self._live.settings
        if (outcome == "tie" and not settings.ties) or (outcome == "skip" and not settings.skips):
            raise Problem(422, f"{outcome!r} is no answer in this collection.", code="not_allowed")


def shown(thing: Thing) -> Json:
    """An item for the page: `html` is safe to be put into it as it is."""
    body = str(thing.content.get("body", thing.label))
    kind = kind_of(body, thing.content.get("kind"))
    return {"id": thing.id, "label": thing.label, "kind": kind, "html": _rendered(kind, body, thing.label)}


def context_html(context: str) -> str | None:
    """What both items are answers to."""
    return _rendered("markdown", context, "") if context else None


@lru_cache(maxsize=4096)
def _rendered(kind: str, body: str, label: str) -> str:
    return rendered(kind, body, label)


def image_hosts(live: Live) -> set[str]:
    """Where pictures of items are, other than here."""
    found = set()
    for thing in live.items.values():
        body = str(thing.content.get("body", thing.label))
        if body.startswith(("http://", "https://")) and kind_of(body, thing.content.get("kind")) == "image":
            parts = urlsplit(body)
            if not any(sign in parts.netloc for sign in " ;,'\"@") and html.escape(parts.netloc) == parts.netloc:
                found.add(f"{parts.scheme}://{parts.netloc}")
    return found
