"""Known truth about items: one row an item, with a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.errors import FormatError
from crowdrank.files.matching import Match, Search, told_roles
from crowdrank.files.rows import Rows
from crowdrank.files.sources import open_table

_ROLES = ("item", "value", "rank", "query")
_VALUES = tuple((name,) for name in "value gold label truth truevalue grade rating relevance score staffgrade".split())
_RANKS = tuple((name,) for name in "rank truerank goldrank position place group".split())


@dataclass(frozen=True, eq=False)
class GoldColumns:
    """What is known, as columns of one length; larger values are better."""

    item: npt.NDArray[np.object_]
    value: npt.NDArray[np.float64]
    query: npt.NDArray[np.object_] | None
