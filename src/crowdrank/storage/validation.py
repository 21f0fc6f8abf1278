"""Text as it comes in from people: what both databases can hold, and nothing else.

What a collection refuses, and why: each is one answer to whoever asked.

CrowdrankError
├── ContradictionError     the token was answered already, and otherwise
├── ExpiredError           the question was taken back before the answer came
├── QuotaReachedError      this annotator has answered all they are asked to
├── UnavailableError       the database did not take it in time: nothing was stored, try again
└── UnknownTokenError      nobody was given this token
"""

from __future__ import annotations

from crowdrank.errors import CrowdrankError, DataError
from crowdrank.storage.schema import LONGEST_NAME


def text(value: object, what: str) -> str:
    """A text that can be stored: no NUL, and no half of a character."""
    if not isinstance(value, str):
        raise DataError(f"{what} must be text, got {type(value).__name__}.")
    if "\x00" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise DataError(f"{what} holds a sign that is no character (NUL, or half of a pair): remove it.")
    return value


def name(value: object, what: str, *, may_be_empty: bool = False) -> str:
    """A text short enough to be looked up by."""
    told = text(value, what)
    if not told and not may_be_empty:
        raise DataError(f"{what} must not be empty.")
    if len(told) > LONGEST_NAME:
        raise DataError(f"{what} must have at most {LONGEST_NAME} characters, got {len(told)}: {told[:30]!r} …")
    return told


def number(value: object, what: str) -> int:
    """A whole number that fits 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise DataError(f"{what} must be a whole number, got {value!r}.")
    return value


class ContradictionError(CrowdrankError):
    """What was said before stands; this says otherwise."""


class ExpiredError(CrowdrankError):
    """Another question took the place of this one before it was answered."""


class QuotaReachedError(CrowdrankError):
    """The annotator has answered as many questions as they are asked to."""


class UnavailableError(CrowdrankError):
    """The database could not be reached, or was busy for too long."""


class UnknownTokenError(CrowdrankError):
    """No question that was put to this annotator has this token."""
