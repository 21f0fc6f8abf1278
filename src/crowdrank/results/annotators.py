"""What was concluded about the annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from crowdrank.arrays import FloatArray, IntArray, ObjectArray


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Annotators:
    """One row an annotator: estimates with intervals, and how much each judged."""

    labels: ObjectArray
    judged: IntArray
    estimates: Mapping[str, tuple[FloatArray, FloatArray, FloatArray]]
    """By name: estimate, lower and upper end of its interval."""
    level: float = 0.95

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Annotators: {len(self):,}, with {', '.join(self.estimates)}>"

    def __getitem__(self, name: str) -> FloatArray:
        """An estimate by its name, one value an annotator."""
        return self.estimates[name][0]

    @property
    def reversed(self) -> list[str]:
        """Those who surely answer the wrong way round: their quality lies below one half, interval and all."""
        if "quality" not in self.estimates:
            return []
        return [str(label) for label in self.labels[self.estimates["quality"][2] < 0.5]]

    def frame(self) -> pl.DataFrame:
        """Best first, by the first estimate."""
        columns: dict[str, Any] = {"annotator": self.labels.tolist()}
        for name, (estimate, low, high) in self.estimates.items():
            columns |= {name: estimate, f"{name}_low": low, f"{name}_high": high}
        columns["judgments"] = self.judged
        return pl.DataFrame(columns).sort(next(iter(self.estimates)), "annotator", descending=[True, False])
