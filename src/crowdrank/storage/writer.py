"""Write to the log: one transaction at a time, with concurrent writes grouped into one (group commit).

Making a write durable takes the disk milliseconds, and as long for one row as for a hundred. So writers that arrive
while another transaction is running wait in a queue. The first of them then writes everything that is queued in one
transaction, and every writer receives its own result once that transaction is committed.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from sqlalchemy import ClauseElement, Connection, Dialect, Executable, bindparam, insert, select, text

from crowdrank.errors import CrowdrankError, DataError
from crowdrank.storage.database import Database, StudyClosedError, StudyPausedError, UnavailableError, check_name
from crowdrank.storage.schema import IS_EVENT, log

# Decide whether an annotator may answer: not while the study is paused or closed, and not while they are excluded.
#
# The decision is made inside the transaction that would write the answer, so that nothing slips in between the moment
# an admin closes the study and the moment another process reads it.

EXCLUSIONS = ("annotator_excluded", "annotator_included")
RELEVANT = ("paused", "resumed", "closed", *EXCLUSIONS)
"""Event kinds that change who may answer."""

_CHANGES = (
    select(log.c.seq, log.c.kind, log.c.subject, log.c.detail)
    .where(text(f"log.{IS_EVENT}"), log.c.seq > bindparam("after"), log.c.kind.in_(RELEVANT))
    .order_by(log.c.seq)
)


def is_quarantine(detail: str) -> bool:
    """Return whether an exclusion only sets votes aside: a quarantined annotator may go on answering."""
    return bool(json.loads(detail).get("quarantine"))


class Admission:
    """The state of the study and the excluded annotators, as of a row of the log."""

    def __init__(self) -> None:
        self._seq = 0
        self._state = "open"
        self._excluded: set[int] = set()

    def check(self, annotator: int) -> None:
        """Raise StudyPausedError or StudyClosedError if the annotator may not answer."""
        if self._state == "closed" or annotator in self._excluded:
            raise StudyClosedError("This study accepts no more answers. Your earlier answers are saved.")
        if self._state == "paused":
            raise StudyPausedError("This study is paused. The question stays open and can be answered when it resumes.")

    def now(self, connection: Connection, committed: int) -> Admission:
        """Return the admission in a transaction that began after row `committed`.

        Rows up to `committed` are remembered. Later ones belong to the transaction, which may be rolled back.
        """
        current = Admission()
        rows = connection.execute(_CHANGES, {"after": self._seq}).fetchall()
        for seq, kind, subject, detail in rows:
            if seq <= committed:
                self._apply(kind, subject, detail)
        self._seq = max(self._seq, committed)
        current._state, current._excluded = self._state, set(self._excluded)
        for seq, kind, subject, detail in rows:
            if seq > committed:
                current._apply(kind, subject, detail)
        return current

    def _apply(self, kind: str, subject: int, detail: str) -> None:
        if kind not in EXCLUSIONS:
            self._state = {"resumed": "open"}.get(kind, kind)
        elif kind == "annotator_excluded" and not is_quarantine(detail):
            self._excluded.add(subject)
        else:
            self._excluded.discard(subject)


K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")
Clock = Callable[[], int]

MAX_JOBS = 128
"""Jobs written in one transaction, at most."""

_LAST_ROW = select(log.c.seq, log.c.at).order_by(log.c.seq.desc()).limit(1)
_APPEND = insert(log)


def microseconds() -> int:
    """Return the current time in microseconds since 1970."""
    return time.time_ns() // 1000


class LogTransaction:
    """A transaction that may append to the log. It assigns the row numbers and the time."""

    def __init__(self, connection: Connection, clock: Clock, admission: Admission | None = None) -> None:
        self.connection = connection
        last = connection.execute(_LAST_ROW).first()
        self.last_seq, last_time = (0, 0) if last is None else (int(last.seq), int(last.at))
        # The clock may have been set back, or may belong to another machine: the log's time never goes backwards.
        self.now = max(clock(), last_time)
        self._deferred: dict[ClauseElement, list[dict[str, Any]]] = {}
        self._committed, self._admission = self.last_seq, admission or Admission()
        self._admitted: Admission | None = None

    def check_admission(self, annotator: int) -> None:
        """Raise StudyPausedError or StudyClosedError if the annotator may not answer now."""
        if self._admitted is None:
            self._admitted = self._admission.now(self.connection, self._committed)
        self._admitted.check(annotator)

    def next_seq(self) -> int:
        """Take the number of the next row."""
        self.last_seq += 1
        return self.last_seq

    def defer(self, statement: ClauseElement, row: dict[str, Any]) -> None:
        """Queue a row, to be inserted together with the other rows of this statement."""
        self._deferred.setdefault(statement, []).append(row)

    def flush(self) -> None:
        """Execute the deferred statements."""
        for statement, rows in self._deferred.items():
            sql, names = _driver_statement(statement, self.connection.dialect, tuple(rows[0]))
            values: Any = rows if names is None else [tuple(row[name] for name in names) for row in rows]
            self.connection.exec_driver_sql(sql, values)
        self._deferred.clear()

    def execute(self, statement: Executable) -> None:
        """Execute a statement on a table outside the log."""
        self.connection.execute(statement)

    def append(self, kind: str, actor: str, subject: int | None = None, detail: Mapping[str, Any] | None = None) -> int:
        """Append one event and return its number."""
        return self.append_all(kind, actor, [(subject, detail or {})])[0]

    def append_all(self, kind: str, actor: str, rows: Iterable[tuple[int | None, Mapping[str, Any]]]) -> list[int]:
        """Append events of one kind, given as (subject, detail), and return their numbers."""
        common = {"at": self.now, "kind": kind, "actor": check_name(actor, "The actor")}
        new = [{**common, "subject": subject, "detail": to_json(detail)} for subject, detail in rows]
        numbers = [self.next_seq() for _ in new]
        if new:
            self._admitted = None if kind in RELEVANT else self._admitted
            self.connection.execute(_APPEND, [{"seq": seq, **row} for seq, row in zip(numbers, new, strict=True)])
        return numbers


@lru_cache(maxsize=64)
def _driver_statement(
    statement: ClauseElement, dialect: Dialect, columns: tuple[str, ...]
) -> tuple[str, tuple[str, ...] | None]:
    """Return a statement as the driver executes it, with the order of its values; None if it takes them by name.

    Rows of votes and assignments are plain values, which need none of what SQLAlchemy does with every single row.
    """
    compiled = statement.compile(dialect=dialect, column_keys=list(columns))
    positions = getattr(compiled, "positiontup", None)
    return str(compiled), None if positions is None else tuple(positions)


def to_json(detail: Mapping[str, Any]) -> str:
    """Serialise a detail with sorted keys, as ASCII, so that any text can be stored."""
    try:
        return json.dumps(dict(detail), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"The detail of an event must be JSON: {error}.") from error


@dataclass(frozen=True, eq=False)
class Task(Generic[K, R, T]):
    """A write that concerns one annotator only, so that it can share its reads with the tasks of others.

    Parameters
    ----------
    annotator : int
        The annotator whose rows are read and written. Tasks of one annotator run one after the other.
    read : callable
        Reads what the tasks of a batch need, by their keys, in one query.
    key : hashable
        The key of this task in what `read` returns.
    decide : callable
        Receives what was read under the key (or None) and the transaction. It writes with `defer`, and reads nothing
        but whether the annotator may answer.
    """

    annotator: int
    read: Callable[[Connection, Sequence[K]], Mapping[K, R]]
    key: K
    decide: Callable[[R | None, LogTransaction], T]


class Job(Generic[T]):
    """A piece of work in the queue, and its result or error once it was written."""

    def __init__(self, work: Callable[[LogTransaction], T] | Task[Any, Any, T]) -> None:
        self.work = work
        self.done = False
        self._value: T | None = None
        self._error: Exception | None = None

    def attempt(self, transaction: LogTransaction, work: Callable[[LogTransaction], T]) -> None:
        """Run the work. An error is kept for `result`, unless rows were already written: then it must roll back."""
        self._value, self._error = None, None
        before = transaction.last_seq
        try:
            self._value = work(transaction)
        except CrowdrankError as error:
            if transaction.last_seq != before:
                raise
            self._error = error

    def fail(self, error: Exception) -> None:
        self._error, self.done = error, True

    def result(self) -> T:
        """Return the result of the work, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class _JobGroup:
    """Jobs that were submitted together. One group at a time is the leader, which writes for the whole queue."""

    def __init__(self, jobs: list[Job[Any]], durable: bool) -> None:
        self.jobs, self.is_durable, self.is_leader = jobs, durable, False
        self.wake_up = threading.Event()  # set when all jobs are done, or when the group becomes the leader

    @property
    def done(self) -> bool:
        return all(job.done for job in self.jobs)


class Writer:
    """The queue of writes to the log. At most one thread writes at a time, for all that are queued."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._admission = Admission()
        self._queue: deque[_JobGroup] = deque()
        self._busy = False
        self._lock = threading.Lock()

    def run(self, work: Callable[[LogTransaction], T] | Task[Any, Any, T]) -> T:
        """Run `work` in a transaction and return its result once that is committed.

        The work may run more than once, so it must decide by what it reads in the transaction.
        """
        return self.run_all([work])[0].result()

    def run_all(
        self, works: Sequence[Callable[[LogTransaction], T] | Task[Any, Any, T]], *, durable: bool = True
    ) -> list[Job[T]]:
        """Run several pieces of work in one transaction; each has its own result.

        With `durable=False`, SQLite does not wait for the disk: a power cut may lose the rows, but a crash of the
        program does not. The next durable transaction makes them durable, too.
        """
        if not works:
            return []
        jobs = [Job(work) for work in works]
        group = _JobGroup(list(jobs), durable)
        with self._lock:
            self._queue.append(group)
            group.is_leader, self._busy = not self._busy, True
        try:
            if not group.is_leader:
                group.wake_up.wait()
            if group.is_leader:
                self._write_queued()
        finally:
            self._leave(group)
        return jobs

    def _write_queued(self) -> None:
        groups: list[_JobGroup] = []
        with self._lock:
            while self._queue and sum(len(group.jobs) for group in groups) < MAX_JOBS:
                groups.append(self._queue.popleft())
        try:
            durable = any(group.is_durable for group in groups)
            self._write([job for group in groups for job in group.jobs if not job.done], durable)
        finally:
            with self._lock:  # if we were interrupted, the others go back to the front of the queue
                self._queue.extendleft(reversed([group for group in groups if not group.done]))
            for group in groups:
                if group.done:
                    group.wake_up.set()

    def _leave(self, group: _JobGroup) -> None:
        """Leave the queue. A leader hands over to the first group in it, whether it was interrupted or not."""
        with self._lock:
            if not group.done:
                with suppress(ValueError):
                    self._queue.remove(group)
            if group.is_leader:
                self._busy = bool(self._queue)
                if self._busy:
                    self._queue[0].is_leader = True
                    self._queue[0].wake_up.set()

    def _write(self, jobs: list[Job[Any]], durable: bool) -> None:
        try:
            self._database.retry(lambda: self._write_once(jobs, durable))
        except UnavailableError as error:
            for job in jobs:
                job.fail(UnavailableError(str(error)))
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].fail(error)
            else:  # one job failed and rolled back all of them: write each in a transaction of its own
                for job in jobs:
                    self._write([job], durable)

    def _write_once(self, jobs: list[Job[Any]], durable: bool) -> None:
        with self._database.writing(durable) as connection:
            transaction = LogTransaction(connection, self._clock, self._admission)
            for batch in _independent_batches(jobs):
                _attempt(transaction, batch)
        for job in jobs:
            job.done = True


def _independent_batches(jobs: list[Job[Any]]) -> Iterator[list[Job[Any]]]:
    """Group consecutive tasks of different annotators. Any other job is a batch of its own, in its place."""
    batch: dict[int, Job[Any]] = {}
    for job in jobs:
        annotator = job.work.annotator if isinstance(job.work, Task) else None
        if batch and (annotator is None or annotator in batch):
            yield list(batch.values())
            batch = {}
        if annotator is None:
            yield [job]
        else:
            batch[annotator] = job
    if batch:
        yield list(batch.values())


def _attempt(transaction: LogTransaction, batch: list[Job[Any]]) -> None:
    tasks_by_read: dict[Any, list[tuple[Job[Any], Task[Any, Any, Any]]]] = {}
    for job in batch:
        if isinstance(job.work, Task):
            tasks_by_read.setdefault(job.work.read, []).append((job, job.work))
        else:
            job.attempt(transaction, job.work)
            transaction.flush()
    # Kind by kind: deferred rows are inserted table by table, and their numbers must be in that order.
    for read, tasks in tasks_by_read.items():
        found = read(transaction.connection, [task.key for _, task in tasks])
        for job, task in tasks:
            job.attempt(transaction, partial(task.decide, found.get(task.key)))
        transaction.flush()
