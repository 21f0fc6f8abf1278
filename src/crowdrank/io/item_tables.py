"""Tables of items: one row per item, with columns that describe it or with its true value (gold)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import Items
from crowdrank.data.side_information import KINDS_OF_ANNOTATORS, AnnotatorDetails
from crowdrank.errors import DataError, FormatError, UnknownNameError
from crowdrank.io.column_roles import (
    RoleMatch,
    RoleMatcher,
    each,
    normalize_name,
    refuse_repeated_name,
    require_role,
    resolve_columns,
)
from crowdrank.io.rows import Rows, parse_labels, parse_numbers, parse_numbers_or_text
from crowdrank.io.sources import open_table

_ITEM_ROLES = ("item", "query")
_MAX_SHOWN = 3
_SIDE_PATTERNS = (("left{}", "right{}"), ("{}left", "{}right"), ("{}a", "{}b"), ("{}1", "{}2"), ("{}x", "{}y"))


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemTable:
    """Columns of items, as `read_items` returns them.

    Parameters
    ----------
    source : str
        The name in messages.
    item : array of str
        The label of each row.
    query : array of str, optional
        The query of each row.
    columns : mapping of str to array
        The other columns: numbers (NaN if missing) if every cell is a number, else text ("" if missing).
    """

    source: str
    item: ObjectArray
    query: ObjectArray | None
    columns: Mapping[str, AnyArray]

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def align(self, items: Items, name: str) -> AnyArray:
        """Return one value per item, in the order of the items.

        Parameters
        ----------
        items : Items
            The items of the judgments.
        name : str
            Name of a column; case and punctuation do not matter.

        Raises
        ------
        UnknownNameError
            If there is no such column.
        DataError
            If the table has no row for some item.
        """
        column = self._find(name)
        if column is None:
            raise UnknownNameError("column", name, self.columns)
        values = self.columns[column]
        row_of = self._row_by_item(items.has_queries and self.query is not None, values)
        queries = items.queries[items.query] if items.has_queries and self.query is not None else [None] * len(items)
        found = [row_of.get(key, -1) for key in zip(queries, items.labels, strict=True)]
        self._refuse_missing(items, np.flatnonzero(np.array(found) < 0))
        return np.asarray(values[found])

    def _find(self, name: str) -> str | None:
        """Find a column by its name, or by a name that differs in case and punctuation only."""
        alike = [column for column in self.columns if normalize_name(column) == normalize_name(name)]
        return name if name in self.columns else alike[0] if len(alike) == 1 else None

    def _row_by_item(self, by_query: bool, values: AnyArray) -> dict[tuple[object, str], int]:
        """Return the row of each item; without queries, the rows of one label must agree."""
        rows: dict[tuple[object, str], int] = {}
        for row, label in enumerate(self.item):
            key = (self.query[row] if by_query and self.query is not None else None, label)
            if _differ(values[rows.setdefault(key, row)], values[row]):
                raise DataError(
                    f"{self.source}: item {label!r} has different values in several queries, and the judgments have no "
                    "queries."
                )
        return rows

    def _refuse_missing(self, items: Items, missing: IntArray) -> None:
        if not missing.size:
            return
        shown = ", ".join(items.name(int(index)) for index in missing[:_MAX_SHOWN])
        problem = (
            f"{self.source}: no row for {missing.size:,} of {len(items):,} items, such as {shown}. Every item that was "
            "judged needs a row."
        )
        if self.query is None:
            raise DataError(problem)
        remedy = "If the table has no queries, read it with columns={'query': None}."
        raise DataError(problem, remedy=remedy, option="item_columns", value={"query": ""})


def read_items(source: Any, columns: Mapping[str, str | None] | None = None) -> ItemTable:
    """Read columns of items from a file, a data frame or a dict of columns.

    Parameters
    ----------
    source : path, data frame or mapping of str to sequence
        One row per item.
    columns : mapping of str to str or None, optional
        The column of the roles `item` and `query`; None for a role without a column. The others keep their names.

    Returns
    -------
    ItemTable

    Raises
    ------
    FormatError
        If there is no column of items, or rows of one item contradict each other.

    Examples
    --------
    >>> read_items({"item": ["a", "b"], "length": ["12", "7"], "style": ["bold", "plain"]}).columns["length"]
    array([12.,  7.])
    """
    table = open_table(source)
    matcher = RoleMatcher(table, resolve_columns(table, columns, _ITEM_ROLES))
    roles: dict[str, str] = {}
    matcher.add(roles, "item")
    matcher.add(roles, "query")
    require_role(table, roles, "item")
    others = [refuse_repeated_name(table, column) for column in table.columns if column not in roles.values()]
    rows = Rows(table, RoleMatch("items", roles), others, strict=True)
    item, query = rows.labels("item"), rows.optional_labels("query")
    rows.finish_checks()
    flat = [name for name in others if not rows.frame[name].dtype.is_nested()]
    found = {name: parse_numbers_or_text(rows.usable(rows.frame[name])) for name in flat}
    frame = pl.DataFrame({"item": rows.usable(item)} | ({} if query is None else {"query": rows.usable(query)}))
    kept = _one_row_each(frame, found, table.name)
    return ItemTable(
        source=table.name,
        item=np.array(frame["item"].to_list(), dtype=object)[kept],
        query=None if query is None else np.array(frame["query"].to_list(), dtype=object)[kept],
        columns={name: values[kept] for name, values in found.items()},
    )


def as_labels(values: AnyArray) -> ObjectArray:
    """Convert a column to labels: whole numbers without a decimal point, "" for missing values."""
    text = parse_labels(pl.Series(values.tolist()), strip_spaces=True)
    return np.array(text.fill_null("").to_list(), dtype=object)


def column_names(source: Any, encoding: str | None = None) -> list[str]:
    """Return the names of the columns of a file, a data frame or a dict of columns."""
    return list(open_table(source, encoding).columns)


def find_side_columns(source: Any, name: str, encoding: str | None = None) -> tuple[str, str]:
    """Find the two columns that hold a property of the left and of the right item.

    Parameters
    ----------
    source : path, data frame or mapping of str to sequence
        Comparisons.
    name : str
        The property. For "engine" the columns are left_engine and right_engine, engine_left and engine_right, or
        engine_a and engine_b (1 and 2, x and y).
    encoding : str, optional
        The encoding of a text file that is not UTF-8.

    Returns
    -------
    tuple of (str, str)

    Examples
    --------
    >>> find_side_columns({"left": ["p"], "right": ["q"], "Engine A": ["g"], "Engine B": ["y"]}, "engine")
    ('Engine A', 'Engine B')
    """
    table = open_table(source, encoding)
    by_name = {normalize_name(column): column for column in table.columns}
    for first, second in _SIDE_PATTERNS:
        pair = normalize_name(first.format(name)), normalize_name(second.format(name))
        if all(side in by_name for side in pair):
            return refuse_repeated_name(table, by_name[pair[0]]), refuse_repeated_name(table, by_name[pair[1]])
    raise FormatError(
        f"{table.name}: no columns for the {name} of the left and the right item: left_{name} and right_{name}, "
        f"{name}_left and {name}_right, or {name}_a and {name}_b.",
        remedy=f"Or read a table of items that has a column {name!r} with read_items.",
        option="items",
        value="FILE",
    )


def _one_row_each(frame: pl.DataFrame, columns: Mapping[str, AnyArray], source: str) -> IntArray:
    """Return the first row of each item; an exact repeat is allowed, a contradiction is an error."""
    first: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(frame.iter_rows()):
        if (before := first.setdefault(key, row)) == row:
            continue
        for name, values in columns.items():
            if _differ(values[before], values[row]):
                raise FormatError(
                    f"{source}: item {key[0]!r} has more than one {name}: {values[before]} and {values[row]}."
                )
    return np.fromiter(first.values(), np.int64)


def _differ(a: Any, b: Any) -> bool:
    """Return whether two values differ; two NaNs do not."""
    return bool(a != b) and bool(a == a or b == b)


_GOLD_ROLES = ("item", "value", "rank", "query")
_VALUES = each("value gold label truth truevalue grade rating relevance score staffgrade")
_RANKS = each("rank truerank goldrank position place group")


@dataclass(frozen=True, eq=False)
class GoldTable:
    """True values of items; larger is better.

    Parameters
    ----------
    item : array of str
        The label of each item.
    value : array of float
        Its true value.
    query : array of str, optional
        Its query.
    """

    item: ObjectArray
    value: FloatArray
    query: ObjectArray | None


def read_gold(source: Any, columns: Mapping[str, str | None] | None = None) -> GoldTable:
    """Read true values of items from a file, a data frame or a dict of columns.

    Parameters
    ----------
    source : path, data frame or mapping of str to sequence
        One row per item. Items without a value are left out.
    columns : mapping of str to str or None, optional
        The column of the roles `item`, `query` and `value`. For a column in which 1 is the best, name it as `rank`
        instead of `value`: its values are negated. Columns called rank, true_rank, gold_rank, position, place or
        group are read as ranks.

    Returns
    -------
    GoldTable

    Examples
    --------
    >>> read_gold({"item": ["a", "b"], "true_rank": [1, 2]}).value
    array([-1., -2.])
    """
    table = open_table(source)
    matcher = RoleMatcher(table, resolve_columns(table, columns, _GOLD_ROLES))
    roles: dict[str, str] = {}
    matcher.add(roles, "item")
    matcher.add(roles, "query")
    require_role(table, roles, "item")
    value = _value_column(matcher, roles)
    rows = Rows(table, RoleMatch("gold", {**roles, "value": value}), strict=True)
    frame = _frame(rows)
    is_rank = "rank" in matcher.given or (normalize_name(value),) in _RANKS
    numbers = frame["value"].to_numpy()
    return GoldTable(
        item=np.array(frame["item"].to_list(), dtype=object),
        value=-numbers if is_rank else numbers,
        query=np.array(frame["query"].to_list(), dtype=object) if "query" in frame.columns else None,
    )


def _value_column(matcher: RoleMatcher, roles: Mapping[str, str]) -> str:
    """Return the column that was given, or one with a known name, or the only one left."""
    given = [column for role in ("value", "rank") if (column := matcher.given.get(role))]
    for tiers in (_VALUES, _RANKS):
        if not given and (found := matcher.find("value", tiers, roles.values())):
            return found
    left = given or [column for column in matcher.table.columns if column not in roles.values()]
    if len(left) != 1:
        raise FormatError(
            f"{matcher.table.name}: cannot decide which of {', '.join(map(repr, left)) or 'no columns'} is the value.",
            remedy="Name it: columns={'value': 'COLUMN'}, or columns={'rank': 'COLUMN'} if 1 is the best.",
            option="gold_columns",
            value={"value": "COLUMN"},
        )
    return left[0]


def _frame(rows: Rows) -> pl.DataFrame:
    """Return one row per item, in the order of the source."""
    item, query = rows.labels("item"), rows.optional_labels("query")
    rows.errors.ignore(parse_labels(rows.column("value"), strip_spaces=True).is_null().to_numpy())
    value = rows.numbers("value")
    rows.finish_checks()
    columns = {"item": rows.usable(item), "value": rows.usable(value)}
    if query is not None:
        columns["query"] = rows.usable(query)
    frame = pl.DataFrame(columns).unique(maintain_order=True)
    names = [name for name in frame.columns if name != "value"]
    if (twice := frame.filter(frame.select(names).is_duplicated())).height:
        raise FormatError(f"{rows.table.name}: item {twice['item'][0]!r} has more than one value.")
    return frame


# Tables of annotators: one row per annotator, with kind, family, quota, price and availability.

_ROLES = {
    "quota": each("quota limit max most maxquestions maxvotes"),
    "price": each("price cost pay fee rate"),
    "available": each("available active present"),
    "kind": each("kind type judgekind judgetype annotatorkind annotatortype"),
    "family": each("family model basemodel modelfamily group"),
}
_KINDS = {
    "human": "human person people expert crowd worker",
    "llm": "llm model ai machine bot lm languagemodel",
}
_NO = ("", "0", "no", "false", "n", "f")


@dataclass(frozen=True, eq=False, kw_only=True)
class AnnotatorTable:
    """Annotators who can be asked, as `read_annotators` returns them.

    Parameters
    ----------
    annotators : tuple of str
        Names of all annotators.
    available : tuple of str
        Names of those who can be asked now.
    quota : mapping of str to int
        The maximum number of questions, for annotators who have one.
    price : mapping of str to float
        The price of an answer, for annotators who have one.
    kind : mapping of str to {"human", "llm"}
        Whether an annotator is a person or a language model, for annotators whose kind is known.
    family : mapping of str to str
        What an annotator has in common with others (base model, prompt, instructions), for those who have one.
    """

    annotators: tuple[str, ...]
    available: tuple[str, ...]
    quota: Mapping[str, int]
    price: Mapping[str, float]
    kind: Mapping[str, str] = field(default_factory=dict)
    family: Mapping[str, str] = field(default_factory=dict)

    @property
    def details(self) -> dict[str, AnnotatorDetails]:
        """Kind, family and price by annotator, as side information of a fit."""
        return {
            name: AnnotatorDetails(kind=self.kind.get(name), family=self.family.get(name), price=self.price.get(name))
            for name in self.annotators
        }


def read_annotators(source: Any, columns: Mapping[str, str | None] | None = None) -> AnnotatorTable:
    """Read annotators from a file, a data frame or a dict of columns.

    Parameters
    ----------
    source : path, data frame or mapping of str to sequence
        One row per annotator. A column of names is needed; `quota`, `price`, `available` (no, false, 0 or empty for
        those who are not), `kind` (human or llm) and `family` are optional.
    columns : mapping of str to str or None, optional
        The column of the roles `annotator`, `quota`, `price`, `available`, `kind` and `family`.

    Returns
    -------
    AnnotatorTable

    Raises
    ------
    FormatError
        If there is no column of annotators, an annotator has two rows, a quota or price is not a number, or a kind is
        neither human nor llm.

    Examples
    --------
    >>> people = read_annotators({"annotator": ["ann", "gpt"], "kind": ["human", "llm"], "price": ["2", ""]})
    >>> people.kind, people.price
    ({'ann': 'human', 'gpt': 'llm'}, {'ann': 2.0})
    """
    table = open_table(source)
    matcher = RoleMatcher(table, resolve_columns(table, columns, ("annotator", *_ROLES)))
    roles: dict[str, str] = {}
    matcher.add(roles, "annotator")
    if "annotator" not in roles and len(table.columns) == 1:
        roles["annotator"] = table.columns[0]
    require_role(table, roles, "annotator")
    for role, tiers in _ROLES.items():
        matcher.add(roles, role, tiers)
    rows = Rows(table, RoleMatch("annotators", roles), strict=True)
    names = rows.labels("annotator")
    rows.finish_checks()
    if (twice := names.filter(names.is_duplicated())).len():
        raise FormatError(f"{table.name}: annotator {twice[0]!r} has more than one row.", remedy="Remove one.")
    labels = tuple(names.to_list())
    available = labels
    if rows.has("available"):
        answers = parse_labels(rows.column("available"), strip_spaces=True).fill_null("").str.to_lowercase()
        available = tuple(n for n, answer in zip(labels, answers, strict=True) if answer not in _NO)
    quota = {name: int(value) for name, value in _numbers(rows, labels, "quota", 0.0).items()}
    return AnnotatorTable(
        annotators=labels,
        available=available,
        quota=quota,
        price=_numbers(rows, labels, "price", 1e-9),
        kind=_kinds(rows, labels),
        family=_words(rows, labels, "family"),
    )


def read_people(source: Any) -> dict[str, AnnotatorDetails]:
    """Read kind, family and price of annotators: a source of `read_annotators`, or a mapping from name to details.

    Examples
    --------
    >>> read_people({"annotator": ["gpt"], "kind": ["llm"], "family": ["openai"]})
    {'gpt': AnnotatorDetails(kind='llm', family='openai', price=None)}
    """
    if isinstance(source, AnnotatorTable):
        return source.details
    if isinstance(source, Mapping) and all(isinstance(value, AnnotatorDetails) for value in source.values()):
        return {str(name): details for name, details in source.items()}
    return read_annotators(source).details


def _words(rows: Rows, labels: tuple[str, ...], role: str) -> dict[str, str]:
    """Return the text of the cells that are not empty, by annotator."""
    if not rows.has(role):
        return {}
    cells = parse_labels(rows.column(role), strip_spaces=True)
    return {name: str(cell) for name, cell in zip(labels, cells, strict=True) if cell is not None}


def _kinds(rows: Rows, labels: tuple[str, ...]) -> dict[str, str]:
    """Return "human" or "llm" by annotator, from the usual words for them.

    A column without any of these words is about something else, and is ignored.
    """
    known = {word: kind for kind, words in _KINDS.items() for word in words.split()}
    given = _words(rows, labels, "kind")
    plain_words = {name: "".join(word.lower().split()) for name, word in given.items()}
    if known.keys().isdisjoint(plain_words.values()):
        return {}
    kinds = {}
    for name, plain in plain_words.items():
        if plain not in known:
            word = given[name]
            accepted = " or ".join(KINDS_OF_ANNOTATORS)
            raise FormatError(f"{rows.table.name}: the kind of {name!r} must be {accepted}, got {word!r}.")
        kinds[name] = known[plain]
    return kinds


def _numbers(rows: Rows, labels: tuple[str, ...], role: str, minimum: float) -> dict[str, float]:
    """Return the numbers of the cells that are not empty, by annotator."""
    if not rows.has(role):
        return {}
    column = rows.column(role)
    given = parse_labels(column, strip_spaces=True).is_not_null().to_numpy()
    found = parse_numbers(column)
    if (bad := np.flatnonzero(given & ~(found >= minimum))).size:
        raise FormatError(
            f"{rows.table.name}: the {role} of {labels[bad[0]]!r} must be a number ≥ {minimum:g}, "
            f"got {pl.Series(column)[int(bad[0])]!r}."
        )
    return {labels[n]: float(found[n]) for n in np.flatnonzero(given)}
