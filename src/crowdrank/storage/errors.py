"""Errors of a collection. The server turns each into one HTTP status.

CrowdrankError
├── ConflictError          the assignment has a different vote already, or the vote can no longer be undone
├── ExpiredError           another assignment replaced this one before the vote arrived
├── QuotaReachedError      the annotator has answered as many questions as their quota allows
├── UnavailableError       the database did not respond in time; nothing was stored
└── UnknownTokenError      the token does not exist, was revoked, or belongs to someone else
"""

from __future__ import annotations

from crowdrank.errors import CrowdrankError


class ConflictError(CrowdrankError):
    """The request contradicts what is already stored."""


class ExpiredError(CrowdrankError):
    """Another assignment replaced this one before it was answered."""


class QuotaReachedError(CrowdrankError):
    """The annotator has answered as many questions as their quota allows."""


class UnavailableError(CrowdrankError):
    """The database could not be reached, or was busy for too long. Nothing was stored."""


class UnknownTokenError(CrowdrankError):
    """The token does not exist, was revoked, or belongs to someone else."""
