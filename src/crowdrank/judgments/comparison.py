"""One answer on its own, as it arrives: the row that a table of comparisons is made of."""

from __future__ import annotations

from typing import NamedTuple


class Comparison(NamedTuple):
    """What one annotator said of two items."""

    left: str
    right: str
    winner: str
    """The item that won, or "tie"."""
    annotator: str = ""
    query: str = ""
