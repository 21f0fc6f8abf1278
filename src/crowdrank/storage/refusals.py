"""What a collection refuses, and why: each is one answer to whoever asked.

CrowdrankError
├── ContradictionError     the token was answered already, and otherwise
├── ExpiredError           the question was taken back before the answer came
├── QuotaReachedError      this annotator has answered all they are asked to
├── UnavailableError       the database did not take it in time: nothing was stored, try again
└── UnknownTokenError      nobody was given this token
"""

from __future__ import annotations

from crowdrank.errors import CrowdrankError


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
