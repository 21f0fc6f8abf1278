"""What a format is: a way to know a source, to translate it into tidy words, and for some a way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdrank.files.sources import Source
from crowdrank.files.tables import Table


@dataclass(frozen=True)
class Writer:
    """How judgments of one kind are written."""

    kinds: tuple[str, ...]
    """comparisons, ratings, rankings: what the format can hold."""
    suffixes: tuple[str, ...]
    """What the file may be called."""
    holds: frozenset[str]
    """What it keeps beside the judgments themselves: annotator, query, weight, time, duration, features."""
    write: Callable[[Any, Path], list[str]]
    """Judgments of one of the kinds into a file; returns sentences on what else was lost."""


def held(names: str) -> frozenset[str]:
    return frozenset(names.split())


@dataclass(frozen=True, kw_only=True)
class Format:
    name: str
    description: str
    known_by: str
    """What it is recognised by, in words."""
    recognises: Callable[[Source], bool]
    """From the names of the columns, the first lines or the first objects."""
    read: Callable[[Source], Table]
    """The same judgments as columns, one row a judgment, those that are none set aside.

    The table says which column plays which role; what it leaves open is guessed by the columns' names.
    """
    writer: Writer | None = None
