"""Tables of annotators: one row per annotator, with kind, family, quota, price and availability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from crowdrank.data.side_information import KINDS_OF_ANNOTATORS, AnnotatorDetails
from crowdrank.errors import FormatError
from crowdrank.io.column_roles import RoleMatch, RoleMatcher, require_role, resolve_columns
from crowdrank.io.rows import Rows, parse_labels, parse_numbers
from crowdrank.io.sources import open_table
from crowdrank.io.synonyms import each

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
    """Return "human" or "llm" by annotator, from the usual words for them."""
    known = {word: kind for kind, words in _KINDS.items() for word in words.split()}
    kinds = {}
    for name, word in _words(rows, labels, "kind").items():
        plain = "".join(word.lower().split())
        if plain not in known:
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
