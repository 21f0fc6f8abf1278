"""Text as it comes in from people: what both databases can hold, and nothing else."""

from __future__ import annotations

from crowdrank.errors import DataError
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
