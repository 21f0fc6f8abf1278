"""What a format is: a way to know a table, and to translate it into tidy words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from crowdrank.files.tables import Table


@dataclass(frozen=True)
class Format:
    name: str
    description: str
    recognises: Callable[[Sequence[str], pl.DataFrame], bool]
    """From the names of the columns and a sample of the first rows."""
    read: Callable[[Table], Table]
    """The same judgments under names that `crowdrank.files.roles` knows, one row a judgment."""
