"""Columns about people, which are read by nobody and written nowhere; who judged is known by an id alone.

The door: any source in, judgments out, with an account of every row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from crowdrank.data import Judgments, Rankings
from crowdrank.errors import DataWarning, FormatError, SettingError
from crowdrank.io.builders import comparisons, rankings, ratings
from crowdrank.io.column_roles import plain
from crowdrank.io.formats import Format, by_name, recognise
from crowdrank.io.import_report import ImportReport
from crowdrank.io.role_matching import find_column, match
from crowdrank.io.rows import Rows
from crowdrank.io.sources import Source, open_source
from crowdrank.io.tables import Table

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


_BUILDERS: dict[str, Callable[[Rows], Judgments]] = {
    "comparisons": comparisons,
    "ratings": ratings,
    "rankings": rankings,
}
_FEWEST_FOR_QUERY_NOTE = 20


def read(
    source: Any,
    *,
    kind: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    features: Sequence[str] = (),
    format: str | None = None,  # noqa: A002 - the word users have for it
    encoding: str | None = None,
    strict: bool = False,
) -> Judgments:
    """Judgments from a file, a data frame or a dict of columns; warns where rows had to be left out.

    `columns` names the column of a role (`{"annotator": "who"}`; None for "there is none"), `features` the columns
    that describe the task, `format` whose format it is, where that is not to be guessed. With `strict`, any row that
    would be left out is an error.

    >>> read({"worker": ["ann", "bob"], "left": ["x", "x"], "right": ["y", "y"], "winner": ["x", "tie"]})
    Comparisons(2 judgments, 2 items, 2 annotators)
    """
    found, report = read_with_report(
        source, kind=kind, columns=columns, features=features, format=format, encoding=encoding, strict=strict
    )
    if sentence := report.dropped():
        warnings.warn(sentence, DataWarning, stacklevel=2)
    return found


def read_with_report(
    source: Any,
    *,
    kind: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    features: Sequence[str] = (),
    format: str | None = None,  # noqa: A002 - the word users have for it
    encoding: str | None = None,
    strict: bool = False,
) -> tuple[Judgments, ImportReport]:
    """Like `read`, with an account of every row in place of the warning."""
    opened = open_source(source, encoding)
    chosen = recognise(opened) if format is None else by_name(format)
    table = _translated(chosen, opened)
    matched = match(table, kind, columns)
    if features and matched.kind != "comparisons":
        raise SettingError(f"Features describe comparisons; {table.name} holds {matched.kind}.")
    rows = Rows(table, matched, [refuse_personal(table, find_column(table, name)) for name in features], strict)
    try:
        found = _BUILDERS[matched.kind](rows)
    except FormatError as error:
        raise error if str(error).startswith(table.name) else FormatError(f"{table.name}: {error}") from error
    problems, counted = rows.problems, rows.counted
    report = ImportReport(
        source=table.name,
        kind=matched.kind,
        format=chosen.name,
        columns=dict(matched.roles),
        rows_read=problems.rows_read,
        kept=int(np.count_nonzero(problems.usable)),
        ties=counted.ties,
        skips=counted.skips,
        duplicates=counted.duplicates,
        set_aside=problems.set_aside,
        malformed_count=problems.count,
        self_comparisons=counted.self_comparisons,
        unknown_items=counted.unknown_items,
        broken_lines=problems.broken,
        malformed=problems.malformed(),
        unit=table.unit,
        notes=(*table.notes, *matched.notes, *counted.notes, *_query_note(found, matched.roles.get("query", ""))),
    )
    return found, report


def _translated(chosen: Format, source: Source) -> Table:
    try:
        return chosen.read(source)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise FormatError(
            f"{source.name}: cannot be read as {chosen.name} ({reason}). If it is another format, say --format NAME."
        ) from error


def _query_note(found: Judgments, column: str) -> list[str]:
    """A query for nearly every judgment is more likely a number of its own than what items share."""
    if len(found) < _FEWEST_FOR_QUERY_NOTE or 2 * len(found.items.queries) <= len(found):
        return []
    instead = f"--column list={column!r} --column query=" if isinstance(found, Rankings) else "--column query="
    return [
        f"{column!r} was read as the query, and most judgments have one of their own: items of different queries are "
        f"never compared. If they should be, say {instead} (columns={{'query': None}})."
    ]
