"""What is believed now of items and annotators, judgment by judgment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import Items
from crowdrank.errors import DataError, UnknownNameError


@dataclass(frozen=True, eq=False, repr=False)
class Roll:
    """Names with codes that never change: who is new comes last. An item is a label within a query."""

    labels: tuple[str, ...]
    queries: tuple[str, ...]
    """The query of each; "" where there is none."""

    def __len__(self) -> int:
        return len(self.labels)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.labels, self.queries))

    @classmethod
    def of(cls, names: Items | Iterable[object], query: object = "") -> Roll:
        if isinstance(names, Items):
            return cls(tuple(map(str, names.labels)), tuple(map(str, names.queries[names.query])))
        labels = tuple(map(str, names))
        return cls(labels, (str(query),) * len(labels))

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        places: dict[tuple[str, str], int] = {}
        for code, key in enumerate(zip(self.queries, self.labels, strict=True)):
            if places.setdefault(key, code) != code:
                raise DataError(f"{key[1]!r} is named twice{f' in query {key[0]!r}' if key[0] else ''}.")
        return places

    @cached_property
    def query(self) -> Int32Array:
        """A code for the query of each."""
        return np.unique(np.array(self.queries, dtype=object), return_inverse=True)[1].astype(np.int32)

    def find(self, label: object, query: object = "") -> int | None:
        return self._places.get((str(query), str(label)))

    def index(self, label: object, query: object = "", kind: str = "item") -> int:
        place = self.find(label, query)
        if place is None:
            raise UnknownNameError(kind, label, self.labels)
        return place

    def codes(self, others: Roll) -> Int32Array:
        """Where each of the others stands on this one, which must hold them all."""
        keys = zip(others.queries, others.labels, strict=True)
        return np.fromiter((self._places[key] for key in keys), np.int32, len(others))

    def joined(self, others: Roll) -> Roll:
        """Those of the others that are not on it yet, added at the end."""
        fresh = [key for key in zip(others.queries, others.labels, strict=True) if key not in self._places]
        if not fresh:
            return self
        queries, labels = zip(*fresh, strict=True)
        return Roll(self.labels + labels, self.queries + queries)

    def with_new(self, labels: Iterable[object], query: object = "") -> Roll:
        """Those that are not on it yet, added at the end."""
        return self.joined(Roll.of(dict.fromkeys(map(str, labels)), query))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Beliefs:
    """A frozen state: one number an item, or an annotator, for everything that is believed of them."""

    items: Roll
    annotators: Roll
    of_items: Mapping[str, FloatArray]
    """By name, such as mean and variance of the score."""
    of_annotators: Mapping[str, FloatArray]
    """By name: truths and lies, the counts of the Beta that a quality is believed to come from."""
    judged: int = 0
    """How many judgments were taken in."""
    left_out: int = 0
    """How many of these were ties that the model leaves out."""

    def __post_init__(self) -> None:
        for roll, columns in ((self.items, self.of_items), (self.annotators, self.of_annotators)):
            for name, column in columns.items():
                if len(column) != len(roll):
                    raise DataError(f"{name}: {len(column)} values for {len(roll)} names.")
                column.flags.writeable = False

    def __repr__(self) -> str:
        return (
            f"<Beliefs of {len(self.items):,} items and {len(self.annotators):,} annotators "
            f"after {self.judged:,} judgments>"
        )

    @property
    def mean(self) -> FloatArray:
        return _named(self.of_items, "mean", "items", "every online model keeps it")

    @property
    def variance(self) -> FloatArray:
        return _named(self.of_items, "variance", "items", "CrowdBT, TrueSkill and Glicko2 keep it")

    @property
    def volatility(self) -> FloatArray:
        return _named(self.of_items, "volatility", "items", "Glicko2 keeps it")

    @property
    def truths(self) -> FloatArray:
        return _named(self.of_annotators, "truths", "annotators", "CrowdBT keeps it")

    @property
    def lies(self) -> FloatArray:
        return _named(self.of_annotators, "lies", "annotators", "CrowdBT keeps it")

    @property
    def quality(self) -> FloatArray:
        """The mean of what is believed of each annotator's quality."""
        return self.truths / (self.truths + self.lies)

    def changed(self, **changes: object) -> Self:
        return replace(self, **changes)  # type: ignore[arg-type]

    def save(self, path: str | Path) -> None:
        """Write everything believed as JSON."""
        from crowdrank.online.saving import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Beliefs:
        """Read what `save` wrote."""
        from crowdrank.online.saving import load

        return load(path)


def _named(columns: Mapping[str, FloatArray], name: str, of: str, remedy: str) -> FloatArray:
    if name not in columns:
        held = ", ".join(columns) or "their names"
        raise DataError(f"These beliefs hold no {name} of {of}, only {held}: {remedy}.")
    return columns[name]
