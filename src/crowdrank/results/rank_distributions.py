"""How likely each rank is for each item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.judgments import Items

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class RankDistributions:
    """A table of items × ranks for each query; every row adds up to one."""

    items: Items
    tables: Sequence[Matrix]

    def __repr__(self) -> str:
        return f"<RankDistributions of {len(self.items):,} items>"

    def of(self, item: object, query: object | None = None) -> npt.NDArray[np.float64]:
        """The chances of the ranks 1, 2, … for one item."""
        code = self.items.query_code(query)
        return np.asarray(self.tables[code][self.items.index(item, query) - self.items.starts[code]])

    def frame(self, query: object | None = None) -> pl.DataFrame:
        """One row for each item of a query and each rank: item, rank and chance."""
        code = self.items.query_code(query)
        table, labels = self.tables[code], self.items.labels[self.items.of_query(code)]
        size = len(labels)
        return pl.DataFrame(
            {
                "item": np.repeat(labels, size).tolist(),
                "rank": np.tile(np.arange(1, size + 1), size),
                "chance": table.ravel(),
            }
        )
