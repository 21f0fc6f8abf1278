"""The strict parser of answers: a documented verdict, or nothing."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

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
