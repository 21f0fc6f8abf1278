"""`read`: judgments from a file, a data frame or a dict of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import polars as pl

from crowdrank.data import ImportReport, Judgments, Rankings
from crowdrank.errors import DataWarning, FormatError, SettingError, issue_warning
from crowdrank.io.builders import build_comparisons, build_rankings, build_ratings, with_numbers_for_words
from crowdrank.io.column_roles import (
    DEFINING_ROLES,
    NAMES_BY_ROLE,
    RoleMatch,
    UnmatchedColumnsError,
    find_column,
    load_expressions,
    match_roles,
    normalize_name,
)
from crowdrank.io.formats.registry import TIDY, check_format_name, detect_format, get_format
from crowdrank.io.rows import Rows, parse_labels
from crowdrank.io.source_table import SourceTable, combine_tables, with_columns_computed, with_fields
from crowdrank.io.sources import Source, open_sources
from crowdrank.io.wide_tables import (
    free_name,
    read_choices,
    read_crosstable,
    read_listed_objects,
    read_lists,
    read_pairs_in_text,
    read_ranked_lists,
    read_tallies,
    read_wide,
    spread_roles,
)

if TYPE_CHECKING:
    from crowdrank.io.guesses import Guide

# Columns with personal data or secrets. They are never read: annotators are known by an id alone.
PERSONAL_COLUMNS = frozenset(
    [
        "ip",
        "ipaddress",
        "clientip",
        "hostip",
        "useragent",
        "email",
        "emailaddress",
        "mail",
        "phone",
        "phonenumber",
        "mobile",
        "address",
        "firstname",
        "lastname",
        "fullname",
        "surname",
        "forename",
        "realname",
        "dob",
        "dateofbirth",
        "birthdate",
        "birthday",
        "secret",
        "token",
        "accesstoken",
        "apikey",
        "password",
        "passcode",
        "completioncode",
        "cookie",
        "sessionhash",
        "city",
        "region",
        "latitude",
        "longitude",
        "pupilpremium",
    ]
)
_BUILDERS: dict[str, Callable[[Rows], Judgments]] = {
    "comparisons": build_comparisons,
    "ratings": build_ratings,
    "rankings": build_rankings,
}
_MIN_ROWS_FOR_QUERY_NOTE = 20
_PRACTICE = frozenset(["practice", "ispractice", "practicetrial", "ispracticetrial"])
# Columns that can only mean one comparison per row, so that no other shape needs to be tried.
_ONE_COMPARISON_PER_ROW = frozenset(["left", "right", "winner"])


class ReadOptions(TypedDict, total=False):
    """The keyword arguments of `read` that `read_with_report` passes on."""

    kind: str | None
    columns: Mapping[str, str | None] | None
    features: Sequence[str]
    format: str | None
    encoding: str | None
    header: bool | None
    strict: bool


def read(
    source: Any,
    *,
    kind: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    features: Sequence[str] = (),
    format: str | None = None,  # noqa: A002 - the word users have for it
    encoding: str | None = None,
    header: bool | None = None,
    strict: bool = False,
    warn: bool = True,
) -> Judgments:
    """Read judgments from a file, a data frame or a dict of columns.

    Parameters
    ----------
    source : path, list of paths, data frame or mapping of str to sequence
        A CSV, TSV, JSON, JSONL, Parquet, Excel or other file, which may be compressed or in a zip file; several files,
        a folder, or a pattern such as ``votes/*.csv``; "-" for standard input; a polars, pandas or Arrow frame; or a
        dict of columns.
    kind : {"comparisons", "ratings", "rankings"}, optional
        The kind of judgments, if the columns would allow several.
    columns : mapping of str to str or None, optional
        The column of a role, for example ``{"annotator": "who"}``; None for a role without a column. The other roles
        are guessed from the names of the columns.
    features : sequence of str, optional
        Columns of comparisons that describe the task, to keep as features.
    format : str, optional
        The format of the source; detected by default. ``crowdrank.io.list_formats()`` lists them.
    encoding : str, optional
        The encoding of a text file that is not UTF-8, for example "latin-1".
    header : bool, optional
        Whether the first line of a text file names the columns; guessed by default. Columns without names are
        numbered from 1: ``columns={"winner": "1", "loser": "2"}``.
    strict : bool, default False
        Raise an error for any row that would be left out.
    warn : bool, default True
        Emit a `DataWarning` if rows could not be used. The `import_report` of the result counts them in any case.

    Returns
    -------
    Comparisons, Ratings or Rankings
        Their `import_report` says how each row was handled.

    Raises
    ------
    FormatError
        If the source cannot be read, roles cannot be matched, or most rows cannot be used.

    Examples
    --------
    >>> votes = read({"worker": ["ann", "bob"], "left": ["x", "x"], "right": ["y", "y"], "winner": ["x", "tie"]})
    >>> votes
    Comparisons(2 judgments, 2 items, 2 annotators)
    >>> votes.import_report.columns["annotator"]
    'worker'
    """
    table, format_name = _open(source, format, encoding, header)
    try:
        shaped, match = _match_shape(table, kind, columns)
        rows, found = _build(shaped, match, features, strict)
    except FormatError as error:
        if not error.problem.startswith(table.name):
            error.problem = f"{table.name}: {error.problem}"
        if error.option == "columns" and table.rows:
            guide = _guide(table, source, kind, columns, encoding)
            error.add_note(str(guide))
            error.suggestion = guide.columns
        raise
    notes = (*rows.table.notes, *match.notes, *rows.counts.notes, *_query_note(found, match.roles))
    report = _report(rows, format_name, notes)
    if warn and (sentence := report.dropped_summary()):
        issue_warning(sentence, DataWarning, stacklevel=2)
    return replace(found, import_report=report)


def read_with_report(source: Any, **options: Unpack[ReadOptions]) -> tuple[Judgments, ImportReport]:
    """Read judgments without a warning, and return them with their import report.

    Parameters
    ----------
    source, **options
        As for `read`.

    Returns
    -------
    Comparisons, Ratings or Rankings
    ImportReport

    Examples
    --------
    >>> votes, report = read_with_report({"left": ["x", "x"], "right": ["y", "x"], "winner": ["x", "x"]})
    >>> report.kept, report.self_comparisons
    (1, 1)
    """
    found = read(source, warn=False, **options)
    assert found.import_report is not None
    return found, found.import_report


def _open(source: Any, name: str | None, encoding: str | None, header: bool | None) -> tuple[SourceTable, str]:
    """Return the table of a source, of all its files if there are several, and its format."""
    opened = open_sources(source, encoding, header)
    names = [detect_format(one) if name is None else check_format_name(name) for one in opened]
    if len(set(names)) > 1:
        other = next(n for n, name in enumerate(names) if name != names[0])
        raise FormatError(
            f"{opened[0].name} has the format {names[0]}, and {opened[other].name} has {names[other]}.",
            remedy="Read them one by one.",
        )
    tables = [_load_table(name, one) for name, one in zip(names, opened, strict=True)]
    if len(tables) == 1:
        return tables[0], names[0]
    found = combine_tables(tables)
    listed = ", ".join(table.name for table in tables[:3]) + (", …" if len(tables) > 3 else "")
    return replace(found, notes=(f"Read {len(tables)} files: {listed}.", *found.notes)), names[0]


def _load_table(format_name: str, source: Source) -> SourceTable:
    if format_name == TIDY:  # nothing to translate, and no format module to import
        return _without_practice(_with_last_messages(with_fields(source.table)))
    try:
        return get_format(format_name).read(source)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise FormatError(
            f"{source.name}: cannot be read as {format_name} ({reason}).",
            remedy="If it has another format, pass format='NAME'.",
            option="format",
            value="NAME",
        ) from error


def _without_practice(table: SourceTable) -> SourceTable:
    """Set trials aside that a column marks as practice."""
    column = next((c for c in table.columns if normalize_name(c) in _PRACTICE), None)
    if column is None or (cells := table.load([column], None)[column]).dtype.is_nested():
        return table
    words = parse_labels(cells, strip_spaces=True).str.to_lowercase()
    practice = words.is_in(("true", "1", "yes")).fill_null(False).to_numpy()
    return replace(table, set_aside={**table.set_aside, "practice": practice}) if practice.any() else table


def _with_last_messages(table: SourceTable) -> SourceTable:
    """Replace conversations that are compared (chosen, rejected) by the text of their last message."""
    types = table.load(table.columns, 1).schema if table.columns else {}
    texts = []
    for column, kind in types.items():
        message = kind.inner if isinstance(kind, pl.List) else None
        if isinstance(message, pl.Struct) and "content" in [field.name for field in message.fields]:
            name = normalize_name(column)
            if any(name in tier for role in ("left", "right", "winner", "loser") for tier in NAMES_BY_ROLE[role]):
                texts.append(column)
    if not texts:
        return table
    frame = table.load(texts, None)
    last = {column: frame[column].list.last().struct.field("content") for column in texts}
    note = f"The items of {', '.join(map(repr, texts))} are the last messages of the conversations."
    changed = with_columns_computed(table, pl.DataFrame(last))
    return replace(changed, columns=table.columns, notes=(*table.notes, note))


def _build(table: SourceTable, match: RoleMatch, features: Sequence[str], strict: bool) -> tuple[Rows, Judgments]:
    if features and match.kind != "comparisons":
        raise SettingError(f"Features describe comparisons; {table.name} contains {match.kind}.")
    if match.kind == "ratings":
        table = with_numbers_for_words(table, match.roles["grade"])
    rows = Rows(table, match, [_refuse_personal(table, find_column(table, name)) for name in features], strict)
    return rows, _BUILDERS[match.kind](rows)


def _guide(
    table: SourceTable,
    source: Any,
    kind: str | None,
    columns: Mapping[str, str | None] | None,
    encoding: str | None,
) -> Guide:
    """Return a guide whose call was tried on the table."""
    from crowdrank.io.guesses import make_guide

    def attempt(roles: Mapping[str, str | None]) -> None:
        shaped, match = _match_shape(table, kind, roles)
        _build(shaped, match, (), strict=False)

    # Columns that the caller named and that exist are kept, except those that say who won.
    kept = {role: name for role, name in (columns or {}).items() if role not in DEFINING_ROLES}
    options = {name: value for name, value in (("kind", kind), ("encoding", encoding)) if value is not None}
    return make_guide(table, source, kept, attempt, options)


def explain(source: Any, **options: Unpack[ReadOptions]) -> str:
    """Return how a source is read: its first rows, the role of each column, and the import report.

    Parameters
    ----------
    source, **options
        As for `read`.

    Returns
    -------
    str
        Several lines. If the source is not understood: what each column might be, and the call that reads it.

    Examples
    --------
    >>> print(explain({"who": ["ann", "bob"], "left": ["x", "x"], "right": ["y", "z"], "winner": ["x", "z"]}))
      column  first rows  read as
      who     ann, bob
      left    x, x        left
      right   y, z        right
      winner  x, z        winner
    the columns: comparisons from the columns left, right, winner.
    2 rows read, 2 kept.
    """
    from crowdrank.io.guesses import describe_columns

    try:
        found = read(source, warn=False, **options)
    except FormatError as error:
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    assert found.import_report is not None
    table, _ = _open(source, options.get("format"), options.get("encoding"), options.get("header"))
    return "\n".join([describe_columns(table, found.import_report.columns), *found.import_report.lines()])


def _match_shape(
    table: SourceTable, kind: str | None, columns: Mapping[str, str | None] | None
) -> tuple[SourceTable, RoleMatch]:
    """Match columns to roles; a table with several judgments per row is changed to one per row."""
    if not columns and kind in (None, "comparisons") and _ONE_COMPARISON_PER_ROW.issubset(table.columns):
        return table, match_roles(table, kind, {})
    table, given = spread_roles(table, columns)
    defining = DEFINING_ROLES & ({role for role, column in given.items() if column} | set(table.roles))
    if not defining and kind in (None, "comparisons") and (games := read_crosstable(table)) is not None:
        return games, match_roles(games, "comparisons", given)
    lists = None
    if not defining and kind in (None, "rankings"):
        lists = read_lists(table) or read_choices(table) or read_ranked_lists(table)
    if lists is not None:
        return lists, match_roles(lists, "rankings", given)
    if not defining and not table.has_header and (unnamed := _guess_unnamed(table)):
        said = ", ".join(f"column {column} as {role}" for role, column in unnamed.items())
        # Of two columns the other order is the only alternative; of more, the user knows which to exchange.
        other = dict(unnamed) if len(unnamed) > 2 else dict(zip(unnamed, reversed([*unnamed.values()]), strict=True))
        remedy = f" If this is wrong, name them yourself: columns={other!r}." if len(other) > 1 else ""
        note = f"They were read by their cells: {said}.{remedy}"
        found = replace(table, notes=(*table.notes, note))
        return found, match_roles(found, kind, {**unnamed, **given})
    try:
        return _with_names(table, match_roles(table, kind, given))
    except UnmatchedColumnsError:
        wide = None if defining - {"left", "right"} else read_tallies(table, kind) or read_wide(table, kind)
        wide = wide if wide is not None or defining else read_listed_objects(table, kind)
        if wide is None and defining <= {"winner"} and kind in (None, "comparisons"):
            wide = read_pairs_in_text(table)
        if wide is None:
            raise
        wide = _without_addresses(wide, given)
        return wide, match_roles(wide, kind, given)


def _with_names(table: SourceTable, match: RoleMatch) -> tuple[SourceTable, RoleMatch]:
    """Show items by their names if the winner is an id, and every id has one name of its own."""
    if match.names is None or "winner" not in match.roles:
        return table, match
    ids, winner = [match.roles["left"], match.roles["right"]], match.roles["winner"]
    frame = load_expressions(table, [*dict.fromkeys([*ids, *match.names, winner])])
    cells = {column: parse_labels(frame[column], table.strip_spaces) for column in frame.columns}
    sides = [pl.DataFrame({"id": cells[key], "name": cells[name]}) for key, name in zip(ids, match.names, strict=True)]
    known = pl.concat(sides).drop_nulls().unique()
    keys, names = known["id"].to_list(), known["name"].to_list()
    if not len({*keys}) == len({*names}) == len(keys) or {*keys} & {*names}:
        return table, match
    named = free_name(table, "winner")
    found = with_columns_computed(table, pl.DataFrame({named: cells[winner].replace(keys, names)}))
    roles = {**match.roles, "left": match.names[0], "right": match.names[1], "winner": named}
    said = f"{winner!r} was matched with {ids[0]!r} and {ids[1]!r}; the items have the names beside these."
    chosen = f"{ids[0]!r} and {ids[1]!r} were read as left and right"
    notes = [note for note in match.notes if not note.startswith(chosen)]
    return found, replace(match, roles=roles, notes=(*notes, said), names=None)


def _without_addresses(table: SourceTable, columns: Mapping[str, str | None]) -> SourceTable:
    """Number the people of a form who are known by their addresses: those are not kept."""
    who = table.roles.get("annotator", "")
    if who not in table.columns or not is_personal(who) or "annotator" in columns:
        return table
    cells = parse_labels(table.load([who], None)[who], strip_spaces=True)
    numbers = {name: f"voter {n}" for n, name in enumerate(cells.drop_nulls().unique(maintain_order=True), 1)}
    named = free_name(table, "voter")
    said = f"The people of {who!r} are numbered in the order in which they appear; their addresses are not kept."
    found = cells.replace_strict(list(numbers), list(numbers.values()), default=None, return_dtype=pl.String)
    return with_columns_computed(
        table,
        pl.DataFrame({named: found}),
        roles={**table.roles, "annotator": named},
        notes=(*table.notes, said),
    )


def _guess_unnamed(table: SourceTable) -> Mapping[str, str]:
    from crowdrank.io.guesses import guess_unnamed

    return guess_unnamed(table)


def _report(rows: Rows, format_name: str, notes: tuple[str, ...]) -> ImportReport:
    errors, counts, match = rows.errors, rows.counts, rows.match
    return ImportReport(
        source=rows.table.name,
        kind=match.kind,
        format=format_name,
        columns=dict(match.roles),
        rows_read=errors.rows_read,
        kept=errors.kept,
        entries=rows.table.entries,
        ties=counts.ties,
        both_bad=counts.both_bad,
        skips=counts.skips,
        duplicates=counts.duplicates,
        set_aside=errors.set_aside,
        malformed_count=errors.count,
        self_comparisons=counts.self_comparisons,
        unknown_items=counts.unknown_items,
        broken_lines=errors.unreadable,
        malformed=errors.malformed(),
        unit=rows.table.unit,
        notes=notes,
    )


def _query_note(found: Judgments, roles: Mapping[str, str]) -> list[str]:
    """Warn if nearly every judgment has its own query: it is probably the number of the judgment, not a query."""
    if len(found) < _MIN_ROWS_FOR_QUERY_NOTE or 2 * len(found.items.queries) <= len(found):
        return []
    column = roles.get("query", "")
    listed = isinstance(found, Rankings) and "list" not in roles
    columns = {"list": column, "query": None} if listed else {"query": None}
    return [
        f"{column!r} was read as the query, and most judgments have one of their own. Items of different queries are "
        f"never compared; if they should be, read the source with columns={columns!r}."
    ]


def is_personal(column: str) -> bool:
    return normalize_name(column) in PERSONAL_COLUMNS


def _refuse_personal(table: SourceTable, column: str) -> str:
    if is_personal(column):
        raise FormatError(
            f"{table.name}: column {column!r} may contain personal data or secrets, so it is not read as a feature.",
            remedy="Make a column that contains only what you need.",
        )
    return column
