"""Beliefs about items and annotators, and the vocabulary that maps their labels to codes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import Items
from crowdrank.errors import DataError, UnknownNameError


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Append-only index of labels: codes never change, and new labels are added at the end.

    An item is a label within a query, so the same label may occur in several queries.

    Parameters
    ----------
    labels : tuple of str
        The label of each code.
    queries : tuple of str
        The query of each code; ``""`` where there is none.

    Examples
    --------
    >>> vocabulary = Vocabulary.of(["Rome", "Oslo"]).with_labels(["Oslo", "Lima"])
    >>> vocabulary.labels, vocabulary.index("Lima")
    (('Rome', 'Oslo', 'Lima'), 2)
    """

    labels: tuple[str, ...]
    queries: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.labels, self.queries))

    @classmethod
    def of(cls, names: Items | Iterable[object], query: object = "") -> Vocabulary:
        """Build a vocabulary from the items of a table, or from labels of one query."""
        if isinstance(names, Items):
            return cls(tuple(map(str, names.labels)), tuple(map(str, names.queries[names.query])))
        labels = tuple(map(str, names))
        return cls(labels, (str(query),) * len(labels))

    @cached_property
    def _code_of(self) -> dict[tuple[str, str], int]:
        codes: dict[tuple[str, str], int] = {}
        for code, key in enumerate(zip(self.queries, self.labels, strict=True)):
            if codes.setdefault(key, code) != code:
                raise DataError(f"{key[1]!r} is named twice{f' in query {key[0]!r}' if key[0] else ''}.")
        return codes

    @cached_property
    def query(self) -> Int32Array:
        """Integer code of the query of each entry."""
        return np.unique(np.array(self.queries, dtype=object), return_inverse=True)[1].astype(np.int32)

    def find(self, label: object, query: object = "") -> int | None:
        """Return the code of a label, or None if it is unknown."""
        return self._code_of.get((str(query), str(label)))

    def index(self, label: object, query: object = "", kind: str = "item") -> int:
        """Return the code of a label.

        Raises
        ------
        UnknownNameError
            If the label is unknown. `kind` says in the message what the label stands for.
        """
        code = self.find(label, query)
        if code is None:
            raise UnknownNameError(kind, label, self.labels)
        return code

    def codes(self, others: Vocabulary) -> Int32Array:
        """Return the code of every entry of `others`, all of which must be known."""
        keys = zip(others.queries, others.labels, strict=True)
        return np.fromiter((self._code_of[key] for key in keys), np.int32, len(others))

    def union(self, others: Vocabulary) -> Vocabulary:
        """Append those entries of `others` that are not known yet."""
        new = [key for key in zip(others.queries, others.labels, strict=True) if key not in self._code_of]
        if not new:
            return self
        queries, labels = zip(*new, strict=True)
        return Vocabulary(self.labels + labels, self.queries + queries)

    def with_labels(self, labels: Iterable[object], query: object = "") -> Vocabulary:
        """Append those labels that are not known yet."""
        return self.union(Vocabulary.of(dict.fromkeys(map(str, labels)), query))

    def take(self, codes: Iterable[int]) -> Vocabulary:
        """Return a vocabulary of these codes only, in the given order."""
        codes = list(codes)
        return Vocabulary(tuple(self.labels[n] for n in codes), tuple(self.queries[n] for n in codes))

    def check_unique(self) -> Vocabulary:
        """Return the vocabulary, or raise DataError if a label occurs twice in a query."""
        _ = self._code_of
        return self


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Beliefs:
    """Beliefs of an online model: an immutable state with one number per item or annotator and quantity.

    Parameters
    ----------
    items : Vocabulary
        The items.
    annotators : Vocabulary
        The annotators.
    item_columns : mapping of str to array
        One array per quantity, such as ``"mean"`` and ``"variance"`` of the score, in the order of `items`.
    annotator_columns : mapping of str to array
        The same for annotators: ``"alpha"`` and ``"beta"`` of the Beta distribution of an annotator's quality.
    n_judgments : int, default 0
        Number of judgments that the beliefs include.
    n_ties_dropped : int, default 0
        How many of these were ties that the model ignores.

    See Also
    --------
    crowdrank.online.CrowdBT : A model that produces beliefs.
    """

    items: Vocabulary
    annotators: Vocabulary
    item_columns: Mapping[str, FloatArray]
    annotator_columns: Mapping[str, FloatArray]
    n_judgments: int = 0
    n_ties_dropped: int = 0

    def __post_init__(self) -> None:
        for vocabulary, columns in ((self.items, self.item_columns), (self.annotators, self.annotator_columns)):
            for name, column in columns.items():
                if len(column) != len(vocabulary):
                    raise DataError(f"{name}: {len(column)} values for {len(vocabulary)} names.")
                column.flags.writeable = False

    def __repr__(self) -> str:
        return (
            f"<Beliefs of {len(self.items):,} items and {len(self.annotators):,} annotators "
            f"after {self.n_judgments:,} judgments>"
        )

    @property
    def mean(self) -> FloatArray:
        """Mean score of each item."""
        return _column(self.item_columns, "mean", "items", "every online model keeps it")

    @property
    def variance(self) -> FloatArray:
        """Variance of each item's score."""
        return _column(self.item_columns, "variance", "items", "CrowdBT, TrueSkill and Glicko2 keep it")

    @property
    def volatility(self) -> FloatArray:
        """Volatility of each item's rating (Glicko-2)."""
        return _column(self.item_columns, "volatility", "items", "Glicko2 keeps it")

    @property
    def alpha(self) -> FloatArray:
        """First parameter of the Beta distribution of each annotator's quality: pseudo-count of true answers."""
        return _column(self.annotator_columns, "alpha", "annotators", "CrowdBT keeps it")

    @property
    def beta(self) -> FloatArray:
        """Second parameter of that Beta distribution: pseudo-count of false answers."""
        return _column(self.annotator_columns, "beta", "annotators", "CrowdBT keeps it")

    @property
    def quality(self) -> FloatArray:
        """Mean quality of each annotator, α / (α + β)."""
        return self.alpha / (self.alpha + self.beta)

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields replaced."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def after_one(
        self,
        item_columns: Mapping[str, FloatArray],
        annotator_columns: Mapping[str, FloatArray],
        n_ties_dropped: int = 0,
    ) -> Beliefs:
        """Return beliefs with these columns, of the same names and lengths, after one more judgment."""
        for columns in (item_columns, annotator_columns):
            for column in columns.values():
                column.flags.writeable = False
        # Nothing can be wrong, so the checks and the slow assignments of a frozen class are left out.
        after = object.__new__(Beliefs)
        after.__dict__.update(
            items=self.items,
            annotators=self.annotators,
            item_columns=item_columns,
            annotator_columns=annotator_columns,
            n_judgments=self.n_judgments + 1,
            n_ties_dropped=self.n_ties_dropped + n_ties_dropped,
        )
        return after

    def save(self, path: str | Path) -> None:
        """Write the beliefs as JSON; `load` restores every number exactly."""
        from crowdrank.online.sequential_mcmc import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Beliefs:
        """Read beliefs that `save` wrote."""
        from crowdrank.online.sequential_mcmc import load

        return load(path)


def _column(columns: Mapping[str, FloatArray], name: str, of: str, remedy: str) -> FloatArray:
    if name not in columns:
        kept = ", ".join(columns) or "their names"
        raise DataError(f"These beliefs have no {name} of {of}, only {kept}: {remedy}.")
    return columns[name]
