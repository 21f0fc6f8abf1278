"""Questions handed out, answers taken in: what the judging page and the API do."""

from __future__ import annotations

import html
import os
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from crowdrank.errors import NothingToAskError
from crowdrank.server.choosing import choose
from crowdrank.server.content import kind_of, rendered
from crowdrank.server.live import Live, Person, Thing
from crowdrank.server.problems import Problem
from crowdrank.storage import Assignment, Collection, QuotaReachedError, Recorded

Outcome = Literal["left", "right", "tie", "skip"]
Json = dict[str, Any]


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
        self._live.catch_up()
        if self._live.state == "paused":
            return {"paused": True, "progress": self.progress(person)}
        held = self._questions.held(person.id)
        if held is not None:
            if not self._hidden(held):
                return self._shown(person, held)
            self._questions.release(person.id)
        return self._next(person)

    def vote(self, person: Person, token: str, outcome: Outcome, reason: str, milliseconds: int | None) -> Json:
        """Store what someone said; gives that, and the next question."""
        self._check(outcome)
        said = self._questions.vote(token, outcome, annotator=person.id, reason=reason, response_ms=milliseconds)
        self._live.catch_up()
        next_one = self.question(person) if said.replayed else self._next(person)
        return {"recorded": _recorded(said), "replayed": said.replayed, "next": next_one}

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

    def _next(self, person: Person) -> Json:
        live = self._live
        if live.state == "paused":
            return {"paused": True, "progress": self.progress(person)}
        if (why := self._ended(person)) is not None:
            return self._finished(person, why)
        try:
            chosen = choose(live, person, live.pending(time.time_ns() // 1000), self._rng)
            asked = self._questions.assign(
                person.id, chosen.left, chosen.right, policy=chosen.policy, probability=chosen.probability,
                seconds=live.settings.asking.lease_seconds, gold=chosen.gold, quota=self.quota(person),
            )  # fmt: skip
        except NothingToAskError:
            return self._finished(person, "nothing_left")
        except QuotaReachedError:
            return self._finished(person, "quota")
        return self._shown(person, asked)

    def _ended(self, person: Person) -> str | None:
        """Why someone is asked no more."""
        live, budget = self._live, self._live.settings.budget
        if live.state == "closed" or person.excluded:
            return "closed"
        quota, answered = self.quota(person), sum(live.answered(person))
        if quota is not None and answered >= quota:
            return "quota"
        given = live.decided + sum(1 for one in live.pending(time.time_ns() // 1000) if one.annotator != person.id)
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
            "finished": True, "reason": why, "completion_code": code, "completion_url": url, "progress": progress,
        }  # fmt: skip

    def _shown(self, person: Person, asked: Assignment) -> Json:
        left, right = (self._live.items[one] for one in (asked.left, asked.right))
        context = str(left.content.get("context") or right.content.get("context") or "")
        return {
            "assignment": {
                "token": asked.token, "left": shown(left), "right": shown(right), "query": left.query,
                "context": context_html(context), "expires_at": asked.expires_at // 1000,
            },
            "progress": self.progress(person),
        }  # fmt: skip

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


def _recorded(said: Recorded) -> Json:
    return {"seq": said.seq, "outcome": said.outcome, "winner": said.winner, "at": said.at // 1000}
