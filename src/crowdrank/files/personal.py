"""Columns about people, which are read by nobody and written nowhere; who judged is known by an id alone."""

from __future__ import annotations

from crowdrank.errors import FormatError
from crowdrank.files.roles import plain
from crowdrank.files.tables import Table

_NAMES = (
    "ip ipaddress clientip hostip useragent email emailaddress mail phone phonenumber mobile address "
    "firstname lastname fullname surname forename realname dob dateofbirth birthdate birthday "
    "secret token accesstoken apikey password passcode completioncode cookie sessionhash "
    "city region latitude longitude pupilpremium"
)
PERSONAL = frozenset(_NAMES.split())


def is_personal(column: str) -> bool:
    return plain(column) in PERSONAL


def refuse_personal(table: Table, column: str) -> str:
    """The column, unless it may tell who somebody is."""
    if is_personal(column):
        raise FormatError(
            f"{table.name}: column {column!r} may tell who somebody is, or open a door; it is not carried over. "
            "Make a column that says only what you need."
        )
    return column
