"""The append-only log of a collection, in SQLite or PostgreSQL."""

from crowdrank.storage.access import Visitor
from crowdrank.storage.annotators import Annotator
from crowdrank.storage.batches import SKIPPED, Assignments, Batch, Votes
from crowdrank.storage.collection import Collection
from crowdrank.storage.events import Event
from crowdrank.storage.items import Item, NewItem
from crowdrank.storage.leases import Answer, Assignment, Pending, Progress, Recorded
from crowdrank.storage.validation import (
    ContradictionError,
    ExpiredError,
    QuotaReachedError,
    UnavailableError,
    UnknownTokenError,
)
from crowdrank.storage.writer import Job, Task

__all__ = [
    "SKIPPED",
    "Annotator",
    "Answer",
    "Assignment",
    "Assignments",
    "Batch",
    "Collection",
    "ContradictionError",
    "Event",
    "ExpiredError",
    "Item",
    "Job",
    "NewItem",
    "Pending",
    "Progress",
    "QuotaReachedError",
    "Recorded",
    "Task",
    "UnavailableError",
    "UnknownTokenError",
    "Visitor",
    "Votes",
]
