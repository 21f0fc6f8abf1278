"""Prompts: a template that is checked before anything is sent, and the form in which the model must answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd
from os import PathLike
from string import Formatter
from typing import Any, NamedTuple

import numpy as np

from crowdrank.errors import DataError, FormatError, SettingError, UnknownNameError
from crowdrank.io import as_labels, read_items
from crowdrank.io.column_roles import RoleMatch, RoleMatcher, normalize_name, resolve_columns
from crowdrank.io.rows import Rows
from crowdrank.io.sources import open_table

# Items with their texts, and the pairs of them that language models compare.

_TEXT_COLUMNS = ("text", "body", "markdown", "content", "answer", "response", "output", "completion")
_MAX_PAIRS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Item:
    """An item as a language model sees it.

    Parameters
    ----------
    label : str
        Its name in the votes.
    query : str
        Its query, "" if there is none.
    text : str
        What is compared.
    columns : mapping of str to str
        All columns of its row, by name, for templates.
    """

    label: str
    query: str
    text: str
    columns: Mapping[str, str]


class Pair(NamedTuple):
    """Two items of one query, as they are shown."""

    query: str
    left: str
    right: str


class ItemTexts:
    """The items of a file, found by query and label.

    Parameters
    ----------
    items : sequence of Item
        The items, in the order of the file.
    source : str
        The name of the file in messages.
    """

    def __init__(self, items: Sequence[Item], source: str):
        self.source = source
        self.by_name = {(item.query, item.label): item for item in items}
        self.labels: dict[str, list[str]] = {}
        self.queries: dict[str, list[str]] = {}
        for query, label in self.by_name:
            self.labels.setdefault(query, []).append(label)
            self.queries.setdefault(label, []).append(query)

    def __len__(self) -> int:
        return len(self.by_name)

    def __getitem__(self, name: tuple[str, str]) -> Item:
        query, label = name
        if query not in self.labels:
            raise UnknownNameError("query", query, self.labels)
        if name not in self.by_name:
            raise UnknownNameError("item", label, self.labels[query])
        return self.by_name[name]

    @property
    def has_queries(self) -> bool:
        return any(self.labels)

    @property
    def column_names(self) -> list[str]:
        return list(next(iter(self.by_name.values())).columns) if self.by_name else []

    def query_of(self, left: str, right: str) -> str:
        """The only query that has both items, for pairs that name no query."""
        for label in (left, right):
            if label not in self.queries:
                raise UnknownNameError("item", label, self.queries)
        found = [query for query in self.queries[left] if query in self.queries[right]]
        if not found:
            raise DataError(f"{self.source}: {left!r} and {right!r} belong to different queries.")
        if len(found) > 1:
            raise DataError(
                f"{self.source}: {left!r} and {right!r} are in {len(found):,} queries, so their pair needs a query."
            )
        return found[0]


def read_texts(source: Any, columns: Mapping[str, str | None] | None = None) -> ItemTexts:
    """Read items and their texts from a file, a data frame or a dict of columns.

    Without a column of texts, the labels of the items are compared.
    """
    roles = dict(columns or {})
    text_column = roles.pop("text", None)
    table = read_items(source, roles)
    cells = {name: as_labels(values).tolist() for name, values in table.columns.items()}
    if text_column is not None:
        found = [name for name in cells if normalize_name(name) == normalize_name(text_column)]
        if text_column not in cells and len(found) != 1:
            raise UnknownNameError("column", text_column, cells)
        texts = cells[text_column if text_column in cells else found[0]]
    else:
        names = {name.strip().lower(): name for name in reversed(cells)}
        known = next((names[name] for name in _TEXT_COLUMNS if name in names), None)
        texts = table.item.tolist() if known is None else cells[known]
    queries = [""] * len(table.item) if table.query is None else table.query.tolist()
    if empty := [label for label, text in zip(table.item, texts, strict=True) if not text]:
        raise FormatError(f"{table.source}: {len(empty):,} items have no text, such as {empty[0]!r}.")
    items = [
        Item(label=label, query=queries[n], text=texts[n], columns=_row(cells, label, n))
        for n, label in enumerate(table.item.tolist())
    ]
    return ItemTexts(items, table.source)


def _row(cells: Mapping[str, list[str]], label: str, n: int) -> dict[str, str]:
    return {"item": label, **{name: cell[n] for name, cell in cells.items()}}


def choose_pairs(items: ItemTexts, pairs: Any, seed: int, both_orders: bool) -> list[Pair]:
    """Return the pairs to ask about, one per order, in the order of asking.

    Pairs are shuffled, so that a run that stops at its budget has asked about a random part of them. The two orders
    of a pair stay together.
    """
    from_file = pairs != "all" and not _is_count(pairs)
    if from_file:
        found = list(dict.fromkeys(_read_pairs(items, pairs)))
        if both_orders:
            found = _without_swapped(found)
    else:
        found = [_with_random_sides(pair, seed) for pair in _designed_pairs(items, pairs, seed)]
    if not found:
        raise DataError(f"{items.source}: there is nothing to compare: no query has two items.")
    order = np.random.default_rng(seed).permutation(len(found))
    shuffled = [found[n] for n in order]
    if not both_orders:
        return shuffled
    return [shown for pair in shuffled for shown in (pair, Pair(pair.query, pair.right, pair.left))]


def _is_count(pairs: Any) -> bool:
    return isinstance(pairs, int) or (isinstance(pairs, str) and pairs.strip().isdigit())


def _designed_pairs(items: ItemTexts, pairs: Any, seed: int) -> list[Pair]:
    """All pairs of each query, or a balanced random design in which each item is in the same number of pairs."""
    per_item = None if pairs == "all" else int(pairs)
    if per_item is not None and per_item < 2:
        raise SettingError(f"pairs must be at least 2 per item, got {per_item}: with one, most items are unconnected.")
    planned = sum(len(of) * min(len(of) - 1, per_item or len(of)) // 2 for of in items.labels.values())
    if planned > _MAX_PAIRS:
        raise SettingError(
            f"These are {planned:,} pairs; at most {_MAX_PAIRS:,} are asked at once.",
            remedy="Give a number of pairs per item: pairs=10.",
            option="pairs",
            value="10",
        )
    rng = np.random.default_rng(seed)
    found = []
    for query, of in items.labels.items():
        chosen = combinations(of, 2) if per_item is None or per_item >= len(of) - 1 else _circulant(of, per_item, rng)
        found += [Pair(query, left, right) for left, right in chosen]
    return found


def _circulant(labels: Sequence[str], per_item: int, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Each item with the `per_item` others that stand at chosen distances on a random circle.

    Distance 1 is among them, so that all items are connected. An odd number takes every other pair of one more
    distance. If the number of items is odd too, a few items have one pair less.
    """
    n = len(labels)
    circle = [labels[position] for position in rng.permutation(n)]
    distances = [1, *(2 + rng.permutation(max((n - 1) // 2 - 1, 0)))]
    for distance in distances[: per_item // 2]:
        yield from ((circle[i], circle[(i + distance) % n]) for i in range(n))
    if per_item % 2 and n % 2 == 0:
        yield from ((circle[i], circle[i + n // 2]) for i in range(n // 2))
    elif per_item % 2:
        unused = distances[per_item // 2 :]
        # Steps of a distance that is coprime to n visit all items before they return.
        distance = next((d for d in unused if gcd(int(d), n) == 1), unused[0])
        cycles = gcd(int(distance), n)
        for start in range(cycles):
            path = [circle[(start + step * distance) % n] for step in range(n // cycles)]
            yield from zip(path[:-1:2], path[1::2], strict=True)


def _with_random_sides(pair: Pair, seed: int) -> Pair:
    """Swap half of the pairs, by a hash: a pair keeps its sides when items are added to the file."""
    query, first, second = pair.query, *sorted((pair.left, pair.right))
    swap = hashlib.sha256("\x1f".join((str(seed), query, first, second)).encode()).digest()[0] % 2
    return Pair(query, second, first) if swap else Pair(query, first, second)


def _without_swapped(pairs: Iterable[Pair]) -> list[Pair]:
    """Without pairs that were listed before with left and right swapped: both orders are asked anyway."""
    return list({(pair.query, *sorted(pair[1:])): pair for pair in reversed(list(pairs))}.values())[::-1]


def _read_pairs(items: ItemTexts, source: str | PathLike[str] | Any) -> Iterator[Pair]:
    """Pairs of a file with the columns left and right, and optionally query, as `crowdrank next --out` writes."""
    table = open_table(source)
    matcher = RoleMatcher(table, resolve_columns(table, {}))
    roles = matcher.pair(("left", "right"))
    if roles is None:
        raise FormatError(
            f"{table.name}: no columns left and right. Columns found: {', '.join(map(repr, table.columns))}."
        )
    matcher.add(roles, "query")
    rows = Rows(table, RoleMatch("pairs", roles), strict=True)
    found = rows.labels("left"), rows.labels("right"), rows.optional_labels("query")
    rows.finish_checks()
    left, right, query = (rows.usable(column) for column in found)
    assert left is not None
    assert right is not None
    queries = [""] * len(left) if query is None else query.to_list()
    for of, a, b in zip(queries, left.to_list(), right.to_list(), strict=True):
        if a == b:
            raise DataError(f"{table.name}: {a!r} is paired with itself.")
        pair = Pair(of or items.query_of(a, b), a, b)
        for label in pair[1:]:
            items[pair.query, label]  # raises for an unknown item
        yield pair


DEFAULT_TEMPLATE = """{question}

<A>
{left}
</A>

<B>
{right}
</B>"""
DEFAULT_TEMPLATE_WITH_QUERY = """{question}

<query>
{query}
</query>

<A>
{left}
</A>

<B>
{right}
</B>"""
_FIELDS = ("question", "query", "left", "right")
_SIDES = ("left", "right")


class Template:
    """A prompt with fields in braces: {question}, {query}, {left}, {right}, {left.COLUMN} and {right.COLUMN}.

    Parameters
    ----------
    text : str
        The template. Braces that are not fields are doubled: ``{{`` and ``}}``.

    Examples
    --------
    >>> template = Template("{question} A: {left} B: {right}")
    >>> apple = Item(label="apple", query="", text="an apple", columns={})
    >>> pear = Item(label="pear", query="", text="a {pear}", columns={})
    >>> template.fill("Which is sweeter?", apple, pear)
    'Which is sweeter? A: an apple B: a {pear}'
    """

    def __init__(self, text: str):
        try:
            parsed = list(Formatter().parse(text))
        except ValueError as error:
            raise SettingError(
                f"The template has unbalanced braces ({error}): write {{{{ and }}}} for braces that are not fields."
            ) from error
        self.parts = [(literal, field) for literal, field, _, _ in parsed]
        for _, field, form, conversion in parsed:
            if field is not None:
                self._check_field(field, bool(form or conversion))

    @staticmethod
    def _check_field(field: str, formatted: bool) -> None:
        side, dot, column = field.partition(".")
        if formatted or not (field in _FIELDS or (side in _SIDES and dot and column)):
            raise SettingError(
                f"The template has an unknown field {{{field}}}: the fields are {{question}}, {{query}}, {{left}}, "
                "{right}, {left.COLUMN} and {right.COLUMN}. Write {{ and }} for braces that are not fields."
            )

    @property
    def fields(self) -> set[str]:
        return {field for _, field in self.parts if field is not None}

    def check(self, question: str, has_queries: bool, columns: Collection[str]) -> None:
        """Raise an error if the template does not fit the items or the question."""
        sides = {field.partition(".")[0] for field in self.fields}
        if missing := [side for side in _SIDES if side not in sides]:
            raise SettingError(f"The template does not show the {missing[0]} item: it has no field {{{missing[0]}}}.")
        if ("question" in sides) != bool(question.strip()):
            problem = "The template does not use the question: add the field {question}."
            raise SettingError(problem if question.strip() else "The template needs a question.")
        if "query" in sides and not has_queries:
            raise SettingError("The template has the field {query}, but the items have no queries.")
        for field in sorted(self.fields):
            column = field.partition(".")[2]
            if column and column not in columns:
                raise UnknownNameError("column", column, columns)

    def fill(self, question: str, left: Item, right: Item) -> str:
        """The prompt about two items. Braces in texts are left as they are."""
        values = {"question": question, "query": left.query, "left": left.text, "right": right.text}
        for field in self.fields - values.keys():
            side, _, column = field.partition(".")
            values[field] = (left if side == "left" else right).columns[column]
        return "".join(literal + ("" if field is None else values[field]) for literal, field in self.parts)


def answer_instruction(ties: bool, reasons: bool) -> str:
    """The end of every prompt: which answers are understood. `parsing.parse_answer` accepts these and no others."""
    key = '"reason": "one sentence", ' if reasons else ""
    tie = f', or {{{key}"winner": "tie"}} if they are equally good' if ties else ""
    first, second = f'{{{key}"winner": "A"}}', f'{{{key}"winner": "B"}}'
    return (
        f"Answer with one JSON object and nothing else: {first} if the first is better{'' if tie else ' or'}"
        f"{',' if tie else ''} {second} if the second is better{tie}."
    )


def answer_schema(ties: bool, reasons: bool) -> dict[str, Any]:
    """The same as a JSON schema, for endpoints that constrain the answer to it."""
    winner = {"type": "string", "enum": ["A", "B", "tie"] if ties else ["A", "B"]}
    properties = {"reason": {"type": "string"}, "winner": winner} if reasons else {"winner": winner}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


# The strict parser of answers: a documented verdict, or nothing.

_FENCED = re.compile(r"\A```(?:json)?[ \t]*\n(.*?)\n?```\Z", re.DOTALL)
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_VERDICTS = {"A": "left", "B": "right", "tie": "tie"}
_MAX_CHARACTERS = 100_000


class Verdict(NamedTuple):
    """An answer that was understood.

    Parameters
    ----------
    winner : {"left", "right", "tie"}
        The side that is better.
    reason : str, default ""
        Why, in the words of the model.
    """

    winner: str
    reason: str = ""


def parse_answer(text: str | None, *, ties: bool) -> Verdict | None:
    """Return the verdict of an answer, or None if it is not exactly one.

    The answer must be one JSON object with the key ``winner``, whose value is ``"A"``, ``"B"`` or, if ties are
    allowed, ``"tie"``; and optionally the key ``reason`` with a text. A Markdown code block around the object and a
    ``<think>`` block ahead of it are ignored. Nothing else is accepted: no sentence around the object, no other key,
    no repeated key, no other spelling.

    Examples
    --------
    >>> parse_answer('{"winner": "A"}', ties=True)
    Verdict(winner='left', reason='')
    >>> parse_answer('{"reason": "It is shorter.", "winner": "tie"}', ties=True)
    Verdict(winner='tie', reason='It is shorter.')
    >>> parse_answer('{"winner": "tie"}', ties=False)
    >>> parse_answer("I prefer A.", ties=True)
    """
    if text is None or len(text) > _MAX_CHARACTERS:
        return None
    text = _THOUGHTS.sub("", text, count=1).strip()
    if fenced := _FENCED.match(text):
        text = fenced[1]
    try:
        answer = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or not answer.keys() <= {"winner", "reason"}:
        return None
    winner, reason = answer.get("winner"), answer.get("reason", "")
    if not isinstance(winner, str) or not isinstance(reason, str) or winner not in _VERDICTS:
        return None
    return None if winner == "tie" and not ties else Verdict(_VERDICTS[winner], reason)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is repeated")
    return found
