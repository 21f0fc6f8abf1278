"""What a process knows of a collection: the log, folded row by row. Any process that read as far knows the same."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from crowdrank.active.history import pack_pair
from crowdrank.arrays import IntArray
from crowdrank.online import Beliefs, CrowdBT
from crowdrank.server.beliefs import Folding
from crowdrank.server.settings import Settings
from crowdrank.storage import SKIPPED, Assignments, Batch, Collection, Event, Pending, Votes

_TELL_NOTHING = {
    "annotator_added",
    "annotator_edited",
    "token_issued",
    "token_revoked",
    "noted",
    "paused",
    "resumed",
    "closed",
}
"""Events that change no board."""
_AT_ONCE = 10_000
STATES = {"paused": "paused", "resumed": "open", "closed": "closed"}


@dataclass(eq=False)
class Thing:
    """An item as it is now."""

    id: int
    code: int
    label: str
    query: str
    content: dict[str, Any]
    hidden: bool = False

    @property
    def owner(self) -> str:
        return str(self.content.get("owner", ""))


@dataclass(eq=False)
class Person:
    """An annotator as is known of them now."""

    id: int
    code: int
    name: str
    about: dict[str, Any]
    excluded: bool = False
    votes: list[int] = field(default_factory=list)
    """The places of their votes among all votes."""
    had: set[int] = field(default_factory=set)
    """Pairs that they answered or skipped, packed."""
    leaning: Counter[int] = field(default_factory=Counter)
    """By item: how much oftener it was shown to them on the left than on the right."""

    @property
    def quota(self) -> int | None:
        return self.about.get("quota")


class Open(NamedTuple):
    """A question that is not answered yet."""

    seq: int
    at: int
    pair: Pending


class Live:
    """A projection of the log. `catch_up` reads what is new; everything else looks at what was read."""

    def __init__(self, collection: Collection, model: CrowdBT | None = None) -> None:
        self._collection = collection
        self.lock = threading.RLock()
        """Held while the log is read in, and while something is chosen by it."""
        self.seq = 0
        """The row up to which the log was read."""
        self.settings, self.state = Settings(), "open"
        self.items: dict[int, Thing] = {}
        self.ids: list[int] = []
        """Numbers of items, by code."""
        self.hidden: set[int] = set()
        """Items that are not asked about, by code."""
        self.owned: dict[str, set[int]] = {}
        """Items that someone must not judge, by the owner's name; in codes."""
        self.people: dict[int, Person] = {}
        self.seen: IntArray = np.zeros(0, np.int64)
        """How often each item was decided about, by code."""
        self.folding = Folding(CrowdBT() if model is None else model)
        self.vote_seq: list[int] = []
        self.policies: list[str] = []
        """What chose the question of each vote."""
        self.gold: list[int] = []
        """The item that was known to be better, of each vote; 0 where none was."""
        self.at: list[int] = []
        """When each vote came, in microseconds since 1970 …"""
        self.response_ms: list[int] = []
        """… and after how long; -1 where that was not measured."""
        self.open: dict[int, Open] = {}
        """By annotator: the question that was put last, as long as it is not answered."""
        self.touched = 0
        """The last row that a board could depend on."""
        self.revocation = 0
        """The row that last took a token back."""
        self._rounds = 0
        self._place: dict[int, int] = {}
        self._asked: dict[int, tuple[str, int]] = {}
        self._told: dict[str, Any] = {}
        self._withdrawn = np.zeros(0, bool)

    def catch_up(self, up_to: int | None = None) -> Live:
        """Read the log on, to its end or to a row of it."""
        before = self._rounds
        with self.lock:
            if up_to is None and self._rounds > before:
                return self  # another began after we came, and has read what we came for
            self._rounds += 1
            limit = _AT_ONCE
            while limit == _AT_ONCE:
                limit = _AT_ONCE if up_to is None else min(_AT_ONCE, up_to - self.seq)
                batch = self._collection.log.after(self.seq, max(0, limit))
                if batch.last > self.seq:
                    limit = _AT_ONCE if batch.last - self.seq == _AT_ONCE else 0
                    self._read(batch)
                else:
                    limit = 0
            return self

    @property
    def beliefs(self) -> Beliefs:
        return self.folding.beliefs()

    @property
    def decided(self) -> int:
        """Votes that count."""
        return int(np.count_nonzero(self.folding.counts))

    def pending(self, now: int) -> list[Pending]:
        """Pairs that someone is looking at, as far as is known here: to be left alone meanwhile."""
        since = now - self.settings.asking.lease_seconds * 1_000_000
        return [one.pair for one in self.open.values() if one.at > since]

    def place_of(self, seq: int) -> int:
        """Where among all votes the one with this number stands."""
        return self._place[seq]

    def stands(self, row: int) -> bool:
        """Whether a vote was not taken back."""
        return not self._withdrawn[row]

    def answered(self, person: Person) -> tuple[int, int]:
        """How many questions someone decided, and how many they skipped; what was taken back is not among them."""
        rows = np.array(person.votes, np.int64)
        standing = rows[~self._withdrawn[rows]] if len(rows) else rows
        skipped = int(np.count_nonzero(self.folding.outcome[standing] == SKIPPED))
        return len(standing) - skipped, skipped

    def _read(self, batch: Batch) -> None:
        """Rows of a batch are read kind by kind, but for events that say how votes count: these come last."""
        new = [event for event in batch.events if event.kind in ("item_added", "annotator_added")]
        for event in new:
            (self._item_added if event.kind == "item_added" else self._annotator_added)(event)
        self._join(new)
        self._take_assignments(batch.assignments)
        self._take_votes(batch.votes)
        for event in batch.events:
            if (change := getattr(self, f"_{event.kind}", None)) is not None and event not in new:
                change(event)
        self.seq = batch.last
        telling = [event.seq for event in batch.events if event.kind not in _TELL_NOTHING]
        self.touched = max([self.touched, *telling, *batch.votes.seq[-1:].tolist()])

    def _join(self, new: list[Event]) -> None:
        things = [self.items[event.seq] for event in new if event.kind == "item_added"]
        self.folding.join(
            [(thing.query, thing.label) for thing in things],
            [self.people[event.seq].name for event in new if event.kind == "annotator_added"],
        )
        self.seen = np.append(self.seen, np.zeros(len(things), np.int64))

    def _item_added(self, event: Event) -> None:
        told = event.detail
        thing = Thing(
            event.seq, len(self.items), str(told["label"]), str(told.get("query", "")), dict(told.get("content", {}))
        )
        self.items[event.seq] = thing
        self.ids.append(event.seq)
        if thing.owner:
            self.owned.setdefault(thing.owner, set()).add(thing.code)

    def _annotator_added(self, event: Event) -> None:
        told = event.detail
        self.people[event.seq] = Person(event.seq, len(self.people), str(told["name"]), dict(told.get("about", {})))

    def _item_edited(self, event: Event) -> None:
        thing = self.items[event.subject]
        self.owned.get(thing.owner, set()).discard(thing.code)
        thing.content = dict(event.detail["content"])
        if thing.owner:
            self.owned.setdefault(thing.owner, set()).add(thing.code)

    def _item_hidden(self, event: Event) -> None:
        self.items[event.subject].hidden = True
        self.hidden.add(self.items[event.subject].code)

    def _item_shown(self, event: Event) -> None:
        self.items[event.subject].hidden = False
        self.hidden.discard(self.items[event.subject].code)

    def _annotator_edited(self, event: Event) -> None:
        self.people[event.subject].about = dict(event.detail["about"])

    def _annotator_excluded(self, event: Event) -> None:
        self.people[event.subject].excluded = True
        self._recount(self.people[event.subject].votes)

    def _annotator_included(self, event: Event) -> None:
        self.people[event.subject].excluded = False
        self._recount(self.people[event.subject].votes)

    def _settings_changed(self, event: Event) -> None:
        self._told |= event.detail
        self.settings = Settings.of({key: value for key, value in self._told.items() if value is not None})

    def _token_revoked(self, event: Event) -> None:
        self.revocation = event.seq

    def _paused(self, event: Event) -> None:
        self.state = STATES[event.kind]

    _resumed = _closed = _paused

    def _undo(self, event: Event) -> None:
        row = self._place[event.subject]
        self._withdrawn[row] = True
        self._recount([row])

    _void = _undo

    def _take_assignments(self, asked: Assignments) -> None:
        columns = (asked.seq, asked.at, asked.annotator, asked.left, asked.right, asked.gold)
        for policy, seq, at, who, left, right, gold in zip(asked.policy, *(c.tolist() for c in columns), strict=True):
            leaning = self.people[who].leaning
            leaning[self.items[left].code] += 1
            leaning[self.items[right].code] -= 1
            self._asked[seq] = (policy, gold)
            self.open[who] = Open(seq, at, Pending(who, left, right))

    def _take_votes(self, votes: Votes) -> None:
        if not len(votes):
            return
        left, right = (
            np.array([self.items[n].code for n in side.tolist()], np.int64) for side in (votes.left, votes.right)
        )
        people = [self.people[n] for n in votes.annotator.tolist()]
        begin = len(self.folding)
        for row, (person, pair, seq, asked) in enumerate(
            zip(people, pack_pair(left, right).tolist(), votes.seq.tolist(), votes.assignment.tolist(), strict=True),
            begin,
        ):
            person.votes.append(row)
            person.had.add(pair)
            self._place[seq] = row
            self.vote_seq.append(seq)
            if (last := self.open.get(person.id)) is not None and last.seq == asked:
                del self.open[person.id]
            policy, gold = self._asked.pop(asked)
            self.policies.append(policy)
            self.gold.append(gold)
        self.at += votes.at.tolist()
        self.response_ms += votes.response_ms.tolist()
        self._withdrawn = np.append(self._withdrawn, np.zeros(len(votes), bool))
        counts = (votes.outcome != SKIPPED) & ~np.array([person.excluded for person in people])
        self.folding.add(left, right, np.array([person.code for person in people]), votes.outcome, counts)
        self._count_seen(np.arange(begin, len(self.folding))[counts], 1)

    def _recount(self, rows: list[int]) -> None:
        """Votes that were taken back, or whose annotator was excluded or included."""
        places = np.array(rows, np.int64)
        if not len(places):
            return
        folding = self.folding
        kept_out = np.array([person.excluded for person in self._by_code])[folding.annotator[places]]
        counts = (folding.outcome[places] != SKIPPED) & ~self._withdrawn[places] & ~kept_out
        changed = counts != folding.counts[places]
        self._count_seen(places[changed & counts], 1)
        self._count_seen(places[changed & ~counts], -1)
        folding.recount(places, counts)

    @property
    def _by_code(self) -> list[Person]:
        return list(self.people.values())

    def _count_seen(self, rows: IntArray, times: int) -> None:
        for side in (self.folding.left, self.folding.right):
            np.add.at(self.seen, side[rows], times)
