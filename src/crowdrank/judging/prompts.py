"""Prompts: a template that is checked before anything is sent, and the form in which the model must answer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from string import Formatter
from typing import Any, NamedTuple

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.judging.questions import Item

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
