"""What is asked and answered: an assignment with its token, one vote for it, and votes taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, select

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage import leases, validation, voting
from crowdrank.storage.access import hashed
from crowdrank.storage.database import Database, pairs
from crowdrank.storage.leases import Answer, Assignment, Pending, Progress, Recorded
from crowdrank.storage.schema import annotator as annotators
from crowdrank.storage.schema import item, lease
from crowdrank.storage.validation import QuotaReachedError
from crowdrank.storage.writer import Clock, Job, Task, Writer, Writing

T = TypeVar("T")

_SECONDS = 900.0
_Standing = tuple[Assignment | None, int]


class Questions:
    """What was put to whom, and what they said."""

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database, self._writer, self._clock = database, writer, clock
        self._queries: dict[int, str] = {}
        self._people: set[int] = set()

    def assign(self, annotator: int, left: int, right: int, **told: Any) -> Assignment:
        """Put two items to an annotator; `to_assign` says what can be told."""
        return self.together([self.to_assign(annotator, left, right, **told)])[0].outcome()

    def to_assign(
        self,
        annotator: int,
        left: int,
        right: int,
        *,
        policy: str,
        probability: float,
        seconds: float = _SECONDS,
        gold: int | None = None,
        quota: int | None = None,
    ) -> Task[Any, Any, Assignment]:
        """Two items for an annotator, for so many seconds; gives the question back that they hold, if they do.

        With a `quota`, refused once as many were decided and skipped.
        """
        validation.name(policy, "The policy")
        if not 0 < probability <= 1:
            raise DataError(f"The probability of a question must be above 0 and at most 1, got {probability}.")
        if gold is not None and gold not in (left, right):
            raise DataError(f"The gold item must be {left} or {right}, got {gold}.")
        new = {
            "annotator": self._known(annotator),
            "query": self._query(left, right),
            "left_item": left,
            "right_item": right,
            "policy": policy,
            "probability": float(probability),
            "gold_item": gold,
        }

        def decide(told: _Standing | None, writing: Writing) -> Assignment:
            held, answered = told or (None, 0)
            if held is not None and held.expires_at > writing.now:
                return held
            if quota is not None and answered >= quota:
                raise QuotaReachedError(f"Annotator {annotator} has answered all {quota} questions.")
            return leases.put(writing, new, seconds)

        return Task(annotator, _standing, (annotator, quota is not None), decide)

    def together(self, tasks: Sequence[Task[Any, Any, T]]) -> list[Job[T]]:
        """Store many at once: hardly dearer than one."""
        return self._writer.run_all(tasks) if tasks else []

    def held(self, annotator: int) -> Assignment | None:
        """The question that an annotator holds, has not answered, and still may in time."""
        return self.held_by([annotator]).get(annotator)

    def held_by(self, annotators: Sequence[int]) -> dict[int, Assignment]:
        """The same of many."""
        if not annotators:
            return {}
        found = self._database.read(lambda connection: leases.all_held(connection, annotators))
        return {who: held for who, held in found.items() if held.expires_at > self._clock()}

    def pending(self) -> list[Pending]:
        """Every question that is out and may still be answered in time: pairs to leave alone meanwhile."""
        return self._database.read(lambda connection: leases.pending(connection, self._clock()))

    def release(self, annotator: int) -> None:
        """Take back the question that an annotator holds: it can no longer be answered."""
        gone = delete(lease).where(lease.c.annotator == annotator)
        self._writer.run(lambda writing: writing.do(gone))

    def vote(self, token: str, answer: Answer, *, annotator: int, **told: Any) -> Recorded:
        """Record what an annotator said; `to_vote` says what else can be told."""
        return self.together([self.to_vote(token, answer, annotator=annotator, **told)])[0].outcome()

    def to_vote(
        self, token: str, answer: Answer, *, annotator: int, reason: str = "", response_ms: int | None = None
    ) -> Task[Any, Any, Recorded]:
        """What an annotator said to the question with this token; the same again gives what was stored.

        After its time a question may still be answered, as long as no other took its place: nothing said is lost.
        """
        validation.text(reason, "The reason")
        if response_ms is not None and validation.number(response_ms, "The response time") < 0:
            raise DataError(f"The response time must not be negative, got {response_ms} ms.")
        said = {"reason": reason, "response_ms": response_ms}

        def decide(asked: Any, writing: Writing) -> Recorded:
            return voting.record(writing, asked, answer, annotator, said)

        return Task(annotator, voting.asked_by, hashed(token), decide)

    def progress(self, annotator: int, quota: int | None = None) -> Progress:
        """How many questions an annotator decided and skipped; votes taken back do not count."""
        return self._database.read(lambda connection: voting.progress(connection, annotator, quota))

    def last_vote(self, annotator: int) -> int | None:
        """The number of the annotator's last vote that stands."""
        return self._database.read(lambda connection: voting.last_vote(connection, annotator))

    def undo(self, annotator: int, vote: int, *, seconds: float = _SECONDS) -> Assignment:
        """Take back an annotator's last vote, and put the same question again; the same again gives that question."""
        return self._writer.run(lambda writing: voting.undo(writing, annotator, vote, seconds))

    def void(self, votes: Iterable[int], *, actor: str, reason: str = "") -> list[int]:
        """These votes count no longer; gives the numbers of those that counted until now."""
        wanted = sorted({validation.number(one, "A vote") for one in votes})
        return self._writer.run(lambda writing: voting.void(writing, wanted, actor, reason))

    def void_all(self, annotator: int, *, actor: str, reason: str = "") -> list[int]:
        """No vote of an annotator so far counts any longer; gives the numbers of those that did until now."""
        return self._writer.run(lambda writing: voting.void_all(writing, annotator, actor, reason))

    def _known(self, annotator: int) -> int:
        if annotator not in self._people:
            self._people |= set(
                self._database.read(lambda connection: connection.scalars(select(annotators.c.id)).all())
            )
            if annotator not in self._people:
                raise UnknownNameError("annotator", annotator, sorted(self._people)[:9])
        return annotator

    def _query(self, left: int, right: int) -> str:
        """The query of two items. Items never move to another, so what was read once stays true."""
        if left == right:
            raise DataError(f"Item {left} would be compared with itself.")
        if not {left, right} <= self._queries.keys():
            rows = select(item.c.id, item.c.query)
            self._queries |= self._database.read(lambda connection: pairs(connection, rows))
        for one in (left, right):
            if one not in self._queries:
                raise UnknownNameError("item", one, sorted(self._queries)[:9])
        if self._queries[left] != self._queries[right]:
            raise DataError(f"Items {left} and {right} are of different queries: they cannot be compared.")
        return self._queries[left]


def _standing(connection: Connection, keys: Sequence[tuple[int, bool]]) -> dict[tuple[int, bool], _Standing]:
    """What annotators hold and, where it matters, how much they have answered."""
    held = leases.all_held(connection, [who for who, _ in keys])
    done = voting.all_progress(connection, [who for who, counted in keys if counted])
    return {key: (held.get(key[0]), sum(done.get(key[0], ()))) for key in keys}
