"""Ratings from rows."""

from __future__ import annotations

import numpy as np
import polars as pl

from crowdrank.files.rows import Rows
from crowdrank.judgments import Ratings


def ratings(rows: Rows) -> Ratings:
    """Item and grade."""
    item, grade = rows.labels("item"), rows.numbers("grade")
    who, query = rows.maybe_labels("annotator"), rows.maybe_labels("query")
    weight = rows.maybe_weight()
    rows.settle()
    found = Ratings.of(
        item=rows.usable(item), grade=rows.usable(grade), annotator=rows.usable(who), query=rows.usable(query),
        weight=rows.usable(weight), native=rows.table.native,
    )  # fmt: skip
    if found.annotator is not None:
        said = pl.DataFrame({"who": found.annotator, "item": found.item, "grade": np.asarray(found.grade)})
        rows.counted.duplicates = said.height - said.n_unique()
    return found
