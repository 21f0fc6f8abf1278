"""How anything gets into the log: one writer at a time, and those who wait are stored together.

A disk takes milliseconds to promise that something is there to stay, and a promise for ten is no dearer than for one.
So whoever comes while another is being stored waits in line; the first of the line stores for all of it, in one
transaction, and each is told its own outcome once that is there to stay.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Executable, insert, select

from crowdrank.errors import CrowdrankError, DataError
from crowdrank.storage.database import Database
from crowdrank.storage.schema import log
from crowdrank.storage.validation import UnavailableError, name

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")
Clock = Callable[[], int]

AT_ONCE = 128
"""Of the line, how many are stored together."""

_HEAD = select(log.c.seq, log.c.at).order_by(log.c.seq.desc()).limit(1)
_APPEND = insert(log)


def microseconds() -> int:
    """Now, by this machine's clock."""
    return time.time_ns() // 1000


class Writing:
    """A transaction that may add to the log. It numbers what is added, and says what time it is."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.connection = connection
        head = connection.execute(_HEAD).first()
        self.last, before = (0, 0) if head is None else (int(head.seq), int(head.at))
        self.now = max(clock(), before)  # a clock that was set back, or another machine's: the log's time runs forward
        self._later: dict[Executable, list[dict[str, Any]]] = {}

    def later(self, statement: Executable, row: dict[str, Any]) -> None:
        """A row to be written with others of its kind, before anything else is read."""
        self._later.setdefault(statement, []).append(row)

    def flush(self) -> None:
        for statement, rows in self._later.items():
            self.connection.execute(statement, rows)
        self._later.clear()

    def number(self) -> int:
        """The number of the next row."""
        self.last += 1
        return self.last

    def do(self, statement: Executable) -> None:
        """Something that the log does not hold."""
        self.connection.execute(statement)

    def append(self, kind: str, actor: str, subject: int | None = None, detail: Mapping[str, Any] | None = None) -> int:
        """One more row; gives its number."""
        return self.append_all(kind, actor, [(subject, detail or {})])[0]

    def append_all(self, kind: str, actor: str, rows: Iterable[tuple[int | None, Mapping[str, Any]]]) -> list[int]:
        """Rows of one kind, each about a subject (or none) and with its detail; gives their numbers."""
        told = {"at": self.now, "kind": kind, "actor": name(actor, "The actor")}
        new = [{**told, "subject": subject, "detail": as_json(detail)} for subject, detail in rows]
        numbers = [self.number() for _ in new]
        if new:
            self.connection.execute(_APPEND, [{"seq": seq, **row} for seq, row in zip(numbers, new, strict=True)])
        return numbers


def as_json(detail: Mapping[str, Any]) -> str:
    """The one way in which a detail is written; ASCII, so that any text can be stored."""
    try:
        return json.dumps(dict(detail), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"Only what JSON can hold can be stored: {error}.") from error


@dataclass(frozen=True, eq=False)
class Task(Generic[K, R, T]):
    """What reads and writes rows of one annotator only, so that it can be done together with others'."""

    annotator: int
    read: Callable[[Connection, Sequence[K]], Mapping[K, R]]
    """What is known under many keys at once."""
    key: K
    decide: Callable[[R | None, Writing], T]
    """What to do, by what was read. It writes by `later`, and reads nothing more."""


class Job(Generic[T]):
    """Something to store: what to do, and what came of it."""

    def __init__(self, work: Callable[[Writing], T] | Task[Any, Any, T]) -> None:
        self.work = work
        self.done = False
        self._value: T | None = None
        self._error: Exception | None = None

    def attempt(self, writing: Writing, work: Callable[[Writing], T]) -> None:
        self._value, self._error = None, None
        before = writing.last
        try:
            self._value = work(writing)
        except CrowdrankError as error:
            if writing.last != before:  # it had begun to write: nothing of it may stay
                raise
            self._error = error

    def fail(self, error: Exception) -> None:
        self._error, self.done = error, True

    def outcome(self) -> T:
        """What the work gave; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class _Party:
    """Jobs that came together, and wait for one another."""

    def __init__(self, jobs: list[Job[Any]]) -> None:
        self.jobs, self.leads = jobs, False
        self.called = threading.Event()
        """Set when all are done, or when it is its turn to store for the line."""

    @property
    def done(self) -> bool:
        return all(job.done for job in self.jobs)


class Writer:
    """The line of those who have something to store, of whom at most one is storing."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._line: deque[_Party] = deque()
        self._busy = False
        self._lock = threading.Lock()

    def run(self, work: Callable[[Writing], T] | Task[Any, Any, T]) -> T:
        """What `work` gives, once it is there to stay. It may be tried again, so it must decide by what it reads."""
        return self.run_all([work])[0].outcome()

    def run_all(self, works: Sequence[Callable[[Writing], T] | Task[Any, Any, T]]) -> list[Job[T]]:
        """Several at once, each with an outcome of its own."""
        jobs = [Job(work) for work in works]
        party = _Party(list(jobs))
        with self._lock:
            self._line.append(party)
            party.leads, self._busy = not self._busy, True
        try:
            if not party.leads:
                party.called.wait()
            if party.leads:
                self._serve_the_line()
        finally:
            self._leave(party)
        return jobs

    def _serve_the_line(self) -> None:
        parties: list[_Party] = []
        with self._lock:
            while self._line and sum(len(party.jobs) for party in parties) < AT_ONCE:
                parties.append(self._line.popleft())
        try:
            self._serve([job for party in parties for job in party.jobs if not job.done])
        finally:
            with self._lock:  # were we interrupted, the others still stand in line
                self._line.extendleft(reversed([party for party in parties if not party.done]))
            for party in parties:
                if party.done:
                    party.called.set()

    def _leave(self, party: _Party) -> None:
        """Whoever led hands on to the first in line, interrupted or not."""
        with self._lock:
            if not party.done:
                with suppress(ValueError):
                    self._line.remove(party)
            if party.leads:
                self._busy = bool(self._line)
                if self._busy:
                    self._line[0].leads = True
                    self._line[0].called.set()

    def _serve(self, jobs: list[Job[Any]]) -> None:
        try:
            self._database.persist(lambda: self._store(jobs))
        except UnavailableError as error:
            for job in jobs:
                job.fail(UnavailableError(str(error)))
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].fail(error)
            else:  # one of them failed, and took the others with it
                for job in jobs:
                    self._serve([job])

    def _store(self, jobs: list[Job[Any]]) -> None:
        with self._database.writing() as connection:
            writing = Writing(connection, self._clock)
            for group in _groups(jobs):
                _attempt(writing, group)
        for job in jobs:
            job.done = True


def _groups(jobs: list[Job[Any]]) -> Iterator[list[Job[Any]]]:
    """Tasks of different annotators go together; anything else goes by itself, in its turn."""
    group: dict[int, Job[Any]] = {}
    for job in jobs:
        who = job.work.annotator if isinstance(job.work, Task) else None
        if group and (who is None or who in group):
            yield list(group.values())
            group = {}
        if who is None:
            yield [job]
        else:
            group[who] = job
    if group:
        yield list(group.values())


def _attempt(writing: Writing, group: list[Job[Any]]) -> None:
    kinds: dict[Any, list[tuple[Job[Any], Task[Any, Any, Any]]]] = {}
    for job in group:
        if isinstance(job.work, Task):
            kinds.setdefault(job.work.read, []).append((job, job.work))
        else:
            job.attempt(writing, job.work)
            writing.flush()
    for read, tasks in kinds.items():  # kind by kind: rows of one table have numbers that follow one another
        found = read(writing.connection, [task.key for _, task in tasks])
        for job, task in tasks:
            job.attempt(writing, partial(task.decide, found.get(task.key)))
        writing.flush()
