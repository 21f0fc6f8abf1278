"""Everything that a process needs to serve one collection."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request

from crowdrank.server.assignments import Desk
from crowdrank.server.authentication import Door, Known
from crowdrank.server.batching import Queue, Said, Turn
from crowdrank.server.boards import Boards
from crowdrank.server.metrics import Metrics
from crowdrank.server.projection import Live, Person
from crowdrank.server.rate_limits import Limits
from crowdrank.server.settings import Settings
from crowdrank.server.webhooks import Webhooks
from crowdrank.storage import Collection

HIDDEN = "hidden"
"""Shown in place of a secret."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Of the process, not of the collection."""

    media: Path | None = None
    """The folder that pictures are served from."""
    public_url: str | None = None
    """The address that people use, where a proxy stands before us."""
    trusted_proxies: int = 0
    """How many proxies stand before us whose X-Forwarded-For is to be believed."""
    patience: float = 10.0
    durable: bool = True
    background: bool = True
    """Whether to make boards and send webhooks when due; tests call for them instead."""


@dataclass(eq=False)
class Service:
    """One collection, as this process serves it."""

    collection: Collection
    options: Options
    live: Live = field(init=False)

    def __post_init__(self) -> None:
        self.live = Live(self.collection).catch_up()
        self.limits = Limits(self.collection.access)
        self.door = Door(
            self.collection,
            self.limits,
            self.live,
            public_url=self.options.public_url,
            trusted_proxies=self.options.trusted_proxies,
        )
        self.boards = Boards(self.collection, self.live)
        self.desk = Desk(self.collection, self.live, self.boards.settled)
        self.queue = Queue(lambda turns: self.desk.take(turns))
        self.metrics = Metrics()
        self.webhooks = Webhooks(self.collection, self.live, self.boards)

    def start(self) -> None:
        warm()
        gc.collect()
        gc.freeze()  # what is loaded stays, and need not be looked through again while everyone waits
        if self.options.background:
            self.webhooks.start()

    def stop(self) -> None:
        self.queue.stop()
        self.webhooks.stop()
        self.boards.stop()
        self.collection.close()

    def annotator(self, request: Request, form: str | None = None) -> tuple[Person, Known]:
        """Who answers; raises a Problem for anyone else."""
        known = self.door.annotator(request, form)
        return self.desk.person(known.visitor.annotator), known

    def turn(self, request: Request, said: Said | None = None) -> Turn:
        """For who wants a question, or gives an answer; who it is is found out when it is their turn."""
        return Turn(lambda: self.desk.person(self.door.annotator_in_turn(request).visitor.annotator), said)

    def admin(self, request: Request, form: str | None = None) -> str:
        """The organiser, by the name the log knows them by; raises a Problem for anyone else."""
        return f"admin {self.door.admin(request, form).visitor.token}"

    def change_settings(self, given: Mapping[str, Any], actor: str) -> None:
        """Check all, then write what differs."""
        old = self.live.catch_up().settings
        given = _with_secrets(given, old)
        new, before = old.changed(given).as_dict(), old.as_dict()
        if changed := {key: value for key, value in new.items() if value != before[key]}:
            self.collection.settings.change(changed, actor=actor)
        self.live.catch_up()


def _with_secrets(given: Mapping[str, Any], old: Settings) -> dict[str, Any]:
    """Webhooks as they were shown, without their secrets, keep those they have."""
    kept = {hook.url: hook.secret for hook in old.webhooks}
    told = dict(given)
    if isinstance(told.get("webhooks"), list):
        told["webhooks"] = [
            {**hook, "secret": kept.get(str(hook.get("url")), "")}
            if isinstance(hook, dict) and hook.get("secret") == HIDDEN
            else hook
            for hook in told["webhooks"]
        ]
    return told


def shown_settings(settings: Settings) -> dict[str, Any]:
    """For the organiser's eyes, without secrets."""
    told = settings.as_dict()
    told["webhooks"] = [{**hook, "secret": HIDDEN} for hook in told["webhooks"]]
    return told


def warm() -> None:
    """Have compiled what a question needs, so that the first one who asks does not wait for it."""
    from crowdrank.active.information_gain import best_triplet
    from crowdrank.online import CrowdBT
    from crowdrank.online.moments import fantasize
    from crowdrank.server.beliefs import Folding

    folding = Folding(CrowdBT())
    folding.join([("", "a"), ("", "b"), ("", "c")], ["k"])
    one = np.ones(1, np.int64)
    folding.add(0 * one, one, 0 * one, np.ones(1, np.int8), np.ones(1, bool))
    beliefs = folding.beliefs()
    best_triplet(beliefs, exhaustive_up_to=0)
    columns = (beliefs.variance, beliefs.alpha, beliefs.beta)
    fantasize(np.array([[0, 1, 0]]), beliefs.mean, *(column.copy() for column in columns))


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service
