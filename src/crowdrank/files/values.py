"""Python values as columns of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl


def series_of(name: str, values: Sequence[Any]) -> pl.Series:
    """Text where values are plain; lists and objects are kept as they are, for whoever can read them."""
    if any(isinstance(value, list | tuple | dict | set) for value in values):
        return _nested(name, values)
    texts = [text_of(value) for value in values]
    try:
        return pl.Series(name, texts, pl.String)
    except UnicodeEncodeError:
        return pl.Series(name, [None if t is None else whole_text(t) for t in texts], pl.String)


def _nested(name: str, values: Sequence[Any]) -> pl.Series:
    try:
        return pl.Series(name, values)
    except Exception:  # whatever polars cannot type, some format may still read
        return pl.Series(name, values, pl.Object)


def text_of(value: Any) -> str | None:
    """One value as a person would have typed it; None where it is missing."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return None if value != value else str(int(value)) if value.is_integer() else repr(float(value))
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas' own words for missing, without importing it
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def whole_text(text: str) -> str:
    """Without halves of characters, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
