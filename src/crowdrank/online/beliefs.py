"""Beliefs about items and annotators, and the vocabulary that maps their labels to codes."""

from __future__ import annotations

import dataclasses
import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import Comparison, Comparisons, Items
from crowdrank.engines.compilation import Compiled
from crowdrank.errors import DataError, SettingError, UnknownNameError


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
    def codes_by_key(self) -> dict[tuple[str, str], int]:
        """Codes by query and label."""
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
        return self.codes_by_key.get((str(query), str(label)))

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
        return np.fromiter((self.codes_by_key[key] for key in keys), np.int32, len(others))

    def union(self, others: Vocabulary) -> Vocabulary:
        """Append those entries of `others` that are not known yet."""
        new = [key for key in zip(others.queries, others.labels, strict=True) if key not in self.codes_by_key]
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
        _ = self.codes_by_key
        return self


class Columns(dict[str, Any]):
    """Numbers that are changed one at a time, by name of their quantity.

    An entry of an `array` is a plain number, which is read, used and stored in a fraction of the time of NumPy's.
    """

    @classmethod
    def copy_of(cls, columns: Mapping[str, FloatArray]) -> Columns:
        return cls({name: array("d", column.tobytes()) for name, column in columns.items()})

    def arrays(self) -> dict[str, FloatArray]:
        return {name: np.array(column) for name, column in self.items()}

    def entries(self, codes: Sequence[int]) -> list[list[float]]:
        """Return the numbers of one or two codes, by column."""
        if len(codes) == 1:
            (one,) = codes
            return [[column[one]] for column in self.values()]
        one, other = codes
        return [[column[one], column[other]] for column in self.values()]  # a loop over codes takes twice as long

    def put(self: dict[str, Any], codes: Sequence[int], entries: list[list[float]]) -> None:
        """Set the numbers of these codes to what `entries` returned."""
        for column, values in zip(self.values(), entries, strict=True):
            for code, value in zip(codes, values, strict=True):
                column[code] = value


@dataclass(slots=True)
class _Held:
    """Columns of the latest of a chain of beliefs, and the number of judgments since they were copied."""

    items: Columns
    annotators: Columns
    age: int = 0


# Only one thread at a time follows or changes a chain of beliefs.
_changing = threading.RLock()
# Beliefs are copied now and then: at most this many judgments, or as many as there are items, lie between copies.
_OLDEST = 256


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
    def item_quantities(self) -> KeysView[str]:
        """The names of the columns of items."""
        held = self.__dict__.get("_held")
        return (self.item_columns if held is None else held.items).keys()

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

    def after_one(self, update: Callable[[Columns, Columns], int], items: Sequence[int], annotator: int) -> Beliefs:
        """Return the beliefs after one more judgment, which changes entries of two items and of an annotator.

        The numbers are changed where they are, and these beliefs remember those that were there before. So a judgment
        costs the same for ten items and for a million. If these beliefs are not the latest, the numbers are copied.

        Parameters
        ----------
        update : callable
            Changes the columns of items and of annotators in place. Returns the number of ties that were dropped.
        items : sequence of int
            The items whose entries change.
        annotator : int
            The annotator whose entries change.
        """
        after = object.__new__(Beliefs)  # nothing can be wrong: leave out the checks and the slow frozen assignments
        with _changing:
            own = self.__dict__
            held = own.pop("_held", None)
            if held is None or held.age > max(_OLDEST, len(self.items)):
                if held is not None:  # keeps the way back to these beliefs short
                    own.update(item_columns=held.items.arrays(), annotator_columns=held.annotators.arrays())
                held = _Held(Columns.copy_of(self.item_columns), Columns.copy_of(self.annotator_columns))
                before = None
            else:
                before = held.items.entries(items), held.annotators.entries((annotator,))
            try:
                dropped = update(held.items, held.annotators)
            except BaseException:  # a warning made an error: these beliefs stay as they were
                if before is not None:
                    held.items.put(items, before[0])
                    held.annotators.put((annotator,), before[1])
                    own["_held"] = held
                raise
            held.age += 1
            after.__dict__.update(
                items=self.items,
                annotators=self.annotators,
                n_judgments=self.n_judgments + 1,
                n_ties_dropped=self.n_ties_dropped + dropped,
                _held=held,
            )
            if before is not None and "item_columns" not in own:
                own["_later"] = after, items, annotator, *before
        return after

    def __getattr__(self, name: str) -> Any:
        """Make the columns of beliefs after single judgments when they are first used."""
        if name not in ("item_columns", "annotator_columns"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with _changing:
            if name not in self.__dict__:
                self._make_columns()
        return self.__dict__[name]

    def _make_columns(self) -> None:
        """Copy the columns of the latest beliefs, and put back what has been changed since these."""
        changes, at = [], self
        while "_held" not in at.__dict__ and "item_columns" not in at.__dict__:
            changes.append(at.__dict__["_later"])
            at = changes[-1][0]
        held = at.__dict__.get("_held")
        if held is not None:
            columns = [held.items.arrays(), held.annotators.arrays()]
        else:
            columns = [{k: v.copy() for k, v in c.items()} for c in (at.item_columns, at.annotator_columns)]
        for _, items, annotator, item_entries, annotator_entries in reversed(changes):
            Columns.put(columns[0], items, item_entries)
            Columns.put(columns[1], (annotator,), annotator_entries)
        for part in columns:
            for column in part.values():
                column.flags.writeable = False
        self.__dict__.update(item_columns=columns[0], annotator_columns=columns[1])
        self.__dict__.pop("_later", None)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, to copy or pickle the beliefs."""
        return {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}

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


# Base classes of the online models: judgments are checked, new labels are added, and labels become codes.

COMPILE_ABOVE = 2_000
"""Number of answers (rows times weight) above which a loop is worth loading the compiler."""


class OnlineModel(Protocol):
    """A model that updates beliefs with one judgment at a time.

    The model holds settings only. Its methods take beliefs and return new ones. A label that is new in a judgment is
    added with the model's prior.
    """

    def start(self, items: Items | Iterable[object] = (), annotators: Iterable[object] = ()) -> Beliefs:
        """Return the beliefs before any judgment."""
        ...

    def update(self, beliefs: Beliefs, judgment: Comparison) -> Beliefs:
        """Return the beliefs after one more judgment."""
        ...

    def fold(self, beliefs: Beliefs, comparisons: Comparisons) -> Beliefs:
        """Return the beliefs after a table of judgments, in order of time if there are times."""
        ...


class Answers(NamedTuple):
    """Judgments in the order in which they came, one row each, in the codes of the beliefs."""

    left: Int32Array
    right: Int32Array
    outcome: npt.NDArray[np.int8]
    annotator: Int32Array
    weight: FloatArray

    @property
    def n_ties(self) -> int:
        return int((self.outcome == 0).sum())

    def loop(self, fold: Compiled) -> Callable[..., Any]:
        """Return the loop to run over these rows: compiled if there are many, plain Python otherwise."""
        return fold if self.weight.sum() > COMPILE_ABOVE else fold.function


class OneAnswer(NamedTuple):
    """A single judgment with the fields of `Answers`, as tuples: making five arrays takes longer than an update."""

    left: tuple[int]
    right: tuple[int]
    outcome: tuple[int]
    annotator: tuple[int]
    weight: tuple[float] = (1.0,)

    @property
    def n_ties(self) -> int:
        return int(self.outcome[0] == 0)

    def loop(self, fold: Compiled) -> Callable[..., Any]:
        return fold.function


class SequentialModel(ABC):
    """An online model, defined by its empty beliefs and by how it applies answers."""

    @abstractmethod
    def empty(self) -> Beliefs:
        """Return beliefs without items and annotators."""

    @abstractmethod
    def apply(self, beliefs: Beliefs, items: Vocabulary, annotators: Vocabulary, answers: Answers) -> Beliefs:
        """Return the beliefs after the answers, about all of these items and annotators, new ones included."""

    def start(self, items: Items | Iterable[object] = (), annotators: Iterable[object] = ()) -> Beliefs:
        """Return the beliefs before any judgment.

        Parameters
        ----------
        items : Items or iterable of labels, optional
            The items. Others may be added later.
        annotators : iterable of labels, optional
            The annotators. Others may be added later.
        """
        known = Vocabulary.of(items).check_unique(), Vocabulary.of(annotators).check_unique()
        return self.apply(self.empty(), *known, _NO_ANSWERS)

    def update(self, beliefs: Beliefs, judgment: Comparison) -> Beliefs:
        """Return the beliefs after one more judgment."""
        outcome = _outcome(judgment)
        items = beliefs.items.with_labels((judgment.left, judgment.right), judgment.query)
        annotators = beliefs.annotators.with_labels((judgment.annotator,))
        left, right = (items.index(label, judgment.query) for label in (judgment.left, judgment.right))
        annotator = annotators.index(judgment.annotator)
        answer = Answers(
            np.array([left], np.int32),
            np.array([right], np.int32),
            np.array([outcome], np.int8),
            np.array([annotator], np.int32),
            np.ones(1),
        )
        return self.apply(beliefs, items, annotators, answer)

    def fold(self, beliefs: Beliefs, comparisons: Comparisons) -> Beliefs:
        """Return the beliefs after a table of judgments, in order of time if there are times.

        Judgments without annotators are treated as those of one annotator named ``""``.
        """
        comparisons = comparisons.sorted_by_time()
        anonymous = comparisons.annotator is None
        new_items = Vocabulary.of(comparisons.items)
        new_annotators = Vocabulary.of(("",) if anonymous else comparisons.annotators)
        items, annotators = beliefs.items.union(new_items), beliefs.annotators.union(new_annotators)
        item_code, annotator_code = items.codes(new_items), annotators.codes(new_annotators)
        rows = np.zeros(len(comparisons), np.int32) if comparisons.annotator is None else comparisons.annotator
        answers = Answers(
            item_code[comparisons.left],
            item_code[comparisons.right],
            np.array(comparisons.outcome),
            annotator_code[rows],
            np.array(comparisons.weights),
        )
        return self.apply(beliefs, items, annotators, answers)


class ColumnarModel(SequentialModel):
    """An online model whose beliefs are columns of numbers, updated row by row.

    A subclass says what it believes about a new item and a new annotator, and updates the columns.
    """

    @property
    @abstractmethod
    def new_item(self) -> Mapping[str, float]:
        """The prior of an item, by column."""

    @property
    def new_annotator(self) -> Mapping[str, float]:
        """The prior of an annotator, by column; no columns by default."""
        return {}

    @cached_property
    def _item_columns(self) -> frozenset[str]:
        return frozenset(self.new_item)

    @property
    def changes_only_the_judged(self) -> bool:
        """Whether a judgment changes only what is believed about its two items and its annotator."""
        return True

    @abstractmethod
    def update_columns(
        self,
        answers: Answers | OneAnswer,
        item_columns: Mapping[str, Any],
        annotator_columns: Mapping[str, Any],
    ) -> int:
        """Update the columns in place, row by row. Returns the number of ties that were dropped."""

    def empty(self) -> Beliefs:
        return Beliefs(
            items=Vocabulary.of(()),
            annotators=Vocabulary.of(()),
            item_columns=dict.fromkeys(self.new_item, np.zeros(0)),
            annotator_columns=dict.fromkeys(self.new_annotator, np.zeros(0)),
        )

    def update(self, beliefs: Beliefs, judgment: Comparison) -> Beliefs:
        """Return the beliefs after one more judgment."""
        find, query = beliefs.items.codes_by_key.get, str(judgment.query)
        left, right = find((query, str(judgment.left))), find((query, str(judgment.right)))
        who = beliefs.annotators.find(judgment.annotator)
        if left is None or right is None or who is None:
            return super().update(beliefs, judgment)
        if not self.changes_only_the_judged or beliefs.item_quantities != self._item_columns:
            return super().update(beliefs, judgment)
        answer = OneAnswer((left,), (right,), (_outcome(judgment),), (who,))
        return beliefs.after_one(partial(self.update_columns, answer), (left, right), who)

    def apply(self, beliefs: Beliefs, items: Vocabulary, annotators: Vocabulary, answers: Answers) -> Beliefs:
        item_columns = _extended(beliefs.item_columns, self.new_item, len(items), self)
        annotator_columns = _extended(beliefs.annotator_columns, self.new_annotator, len(annotators), self)
        dropped = self.update_columns(answers, item_columns, annotator_columns)
        return Beliefs(
            items=items,
            annotators=annotators,
            item_columns=item_columns,
            annotator_columns=annotator_columns,
            n_judgments=beliefs.n_judgments + len(answers.left),
            n_ties_dropped=beliefs.n_ties_dropped + dropped,
        )


_NO_CODES = np.zeros(0, np.int32)
_NO_ANSWERS = Answers(_NO_CODES, _NO_CODES, np.zeros(0, np.int8), _NO_CODES, np.zeros(0))


def check_positive(model: object, *names: str) -> None:
    """Raise SettingError unless these settings are positive and finite."""
    for name in names:
        value = getattr(model, name)
        if not 0 < value < np.inf:
            raise SettingError(f"{name} must be positive, got {value!r}.")


def check_finite(model: object, *names: str) -> None:
    """Raise SettingError unless these settings are finite."""
    for name in names:
        value = getattr(model, name)
        if not np.isfinite(value):
            raise SettingError(f"{name} must be a finite number, got {value!r}.")


def _outcome(judgment: Comparison) -> int:
    left, right, winner = str(judgment.left), str(judgment.right), str(judgment.winner)
    if left == right:
        raise DataError(f"{left!r} is compared with itself.")
    if winner not in (left, right, "tie", "both_bad"):
        raise DataError(f"winner must be {left!r}, {right!r}, 'tie' or 'both_bad', got {winner!r}.")
    return 1 if winner == left else -1 if winner == right else 0


def _extended(
    columns: Mapping[str, FloatArray], prior: Mapping[str, float], size: int, model: object
) -> dict[str, FloatArray]:
    """Return writable copies of the columns, extended to `size` by the prior."""
    if columns.keys() != prior.keys():
        kept, held = (" and ".join(names) or "nothing" for names in (prior, columns))
        raise DataError(
            f"{type(model).__name__} keeps {kept}, but these beliefs hold {held}: they are another model's. "
            f"Begin with {type(model).__name__}().start()."
        )
    extended = {name: np.full(size, float(value)) for name, value in prior.items()}
    for name, column in columns.items():
        extended[name][: len(column)] = column
    return extended
