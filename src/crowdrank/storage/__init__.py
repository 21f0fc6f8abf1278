"""The append-only log of a collection, in SQLite or PostgreSQL.

Votes are written in `votes.py`, assignments in `assignments.py`; both go through the queue in `writer.py`. `log.py`
reads everything back, and `schema.py` has the tables.
"""

from crowdrank.storage.access import Principal
from crowdrank.storage.accounts import Account, AccountRole, AccountSession
from crowdrank.storage.annotators import Annotator
from crowdrank.storage.assignments import Assignment, PendingPair, Progress
from crowdrank.storage.collection import Collection
from crowdrank.storage.database import (
    ConflictError,
    ExpiredError,
    QuotaReachedError,
    StudyClosedError,
    StudyPausedError,
    UnavailableError,
    UnknownTokenError,
)
from crowdrank.storage.items import Item, NewItem
from crowdrank.storage.judgments import TASK_TYPES, Question, TaskType, task_type
from crowdrank.storage.log import ANSWERED, BOTH_BAD, SKIPPED, AssignmentColumns, Batch, Event, VoteColumns
from crowdrank.storage.votes import Outcome, RecordedVote
from crowdrank.storage.writer import Job, Task

__all__ = [
    "ANSWERED",
    "BOTH_BAD",
    "SKIPPED",
    "TASK_TYPES",
    "Account",
    "AccountRole",
    "AccountSession",
    "Annotator",
    "Assignment",
    "AssignmentColumns",
    "Batch",
    "Collection",
    "ConflictError",
    "Event",
    "ExpiredError",
    "Item",
    "Job",
    "NewItem",
    "Outcome",
    "PendingPair",
    "Principal",
    "Progress",
    "Question",
    "QuotaReachedError",
    "RecordedVote",
    "StudyClosedError",
    "StudyPausedError",
    "Task",
    "TaskType",
    "UnavailableError",
    "UnknownTokenError",
    "VoteColumns",
    "task_type",
]
