"""Decide whether an annotator may answer: not while the study is paused or closed, and not while they are excluded.

The decision is made inside the transaction that would write the answer, so that nothing slips in between the moment an
admin closes the study and the moment another process reads it.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection, bindparam, select, text

from crowdrank.storage.database import StudyClosedError, StudyPausedError
from crowdrank.storage.schema import IS_EVENT, log

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
