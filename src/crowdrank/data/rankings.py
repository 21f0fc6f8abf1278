"""Ordered lists: full, partial or only a top, ties allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.data.columns import check_weight, freeze, numbers
from crowdrank.data.labels import Items, encode_annotators, encode_items, encode_labels
from crowdrank.errors import DataError

if TYPE_CHECKING:
    from crowdrank.data.comparisons import Comparisons
    from crowdrank.data.ratings import Ratings


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rankings:
    """Lists laid end to end, best item first. Build one with `Rankings.of`, `of_choices` or `crowdrank.read`."""

    items: Items
    item: Int32Array
    """The items of all lists, one list after the other."""
    place: Int32Array
    """0 for the best place of its list; items on one place are tied."""
    offsets: IntArray
    """Where each list begins in `item`; one more entry than there are lists."""
    annotators: ObjectArray = field(default_factory=lambda: np.array([], dtype=object))
    annotator: Int32Array | None = None
    """Who made each list."""
    weight: FloatArray | None = None
    native: str = "polars"

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"Rankings({len(self):,} lists, {len(self.items):,} items, {len(self.annotators):,} annotators)"

    @classmethod
    def of(
        cls,
        item: Any,
        rank: Any,
        *,
        annotator: Any = None,
        query: Any = None,
        list: Any = None,  # noqa: A002 - the word users have for it
        native: str = "polars",
    ) -> Rankings:
        """From long columns: rank 1 is the top, equal ranks are ties; a list is one (query, annotator, list).

        >>> Rankings.of(item=["a", "b", "c"], rank=[1, 2, 2], annotator=["ann"] * 3)
        Rankings(1 lists, 3 items, 1 annotators)
        """
        items, (codes,) = encode_items([item], ["item"], query)
        ranks = numbers(rank, "rank", len(codes))
        keys: dict[str, Any] = {"query": items.query[codes]}
        labels, who = encode_annotators(annotator)
        if who is not None:
            keys["annotator"] = who
        if list is not None:
            _, (keys["list"],) = encode_labels([list], ["list"])
        # lexsort's last key counts most: query, annotator, list, rank, item
        order = np.lexsort((codes, ranks, *reversed(tuple(keys.values()))))
        starts = _changes(*(k[order] for k in keys.values()))
        new_place = _changes(*(k[order] for k in keys.values()), ranks[order])
        offsets = np.append(np.flatnonzero(starts), len(codes)).astype(np.int64)
        place = (np.cumsum(new_place) - 1).astype(np.int32)
        place -= np.repeat(place[offsets[:-1]], np.diff(offsets))
        found = cls(
            items=items,
            item=codes[order],
            place=place,
            offsets=offsets,
            annotators=labels,
            annotator=None if who is None else who[order][offsets[:-1]],
            native=native,
        )
        found._refuse_repeats()
        return found

    @classmethod
    def of_choices(cls, chosen: Sequence[Any], offered: Sequence[Sequence[Any]], *, annotator: Any = None) -> Rankings:
        """Best of a set (Crowd-BT eq. 2): `chosen[n]` was picked among `offered[n]`.

        >>> Rankings.of_choices(["x", "y"], [["x", "y", "z"], ["y", "z"]])
        Rankings(2 lists, 3 items, 0 annotators)
        """
        lists = []
        for n, (best, choice) in enumerate(zip(chosen, offered, strict=True)):
            rest = [o for o in choice if o != best]
            if len(rest) == len(choice) or not rest:
                raise DataError(f"Row {n + 1}: the chosen item must be one of several offered, got {best!r}.")
            lists.append([[best], rest])
        return cls.of_lists(lists, annotator=annotator)

    @classmethod
    def of_lists(
        cls,
        lists: Sequence[Sequence[Sequence[Any]]],
        *,
        annotator: Any = None,
        query: Any = None,
        weight: Any = None,
    ) -> Rankings:
        """From Python lists of places, best first, each place the items tied on it."""
        rows = [(n, str(label), p) for n, places in enumerate(lists) for p, tied in enumerate(places) for label in tied]
        if not rows:
            raise DataError("There are no lists.")
        number, label, place = zip(*rows, strict=True)
        of_row = np.array(number)
        found = cls.of(
            item=label,
            rank=np.array(place) + 1,
            list=[f"{n:09d}" for n in number],
            annotator=None if annotator is None else np.asarray(annotator, dtype=object)[of_row],
            query=None if query is None else np.asarray(query, dtype=object)[of_row],
        )
        if weight is None:
            return found
        if query is not None or annotator is not None:
            raise DataError("Weights can be given only to lists without query and annotator columns.")
        given = check_weight(numbers(weight, "weight", len(lists)))
        return replace(found, weight=given[np.unique(of_row)])  # lists that name nothing are left out

    def _refuse_repeats(self) -> None:
        key = self.list_of_row * len(self.items) + self.item
        order = np.argsort(key, kind="stable")
        if (twice := np.flatnonzero(key[order][1:] == key[order][:-1])).size:
            place = int(self.item[order[twice[0]]])
            raise DataError(f"Item {self.items.name(place)} stands twice in one list.")

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    @property
    def list_of_row(self) -> IntArray:
        """Which list each row of `item` belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def judged_of_item(self) -> IntArray:
        """How many lists each item appears in."""
        return np.bincount(self.item, minlength=len(self.items))

    @property
    def weights(self) -> FloatArray:
        return np.ones(len(self)) if self.weight is None else self.weight

    def take(self, lists: AnyArray) -> Rankings:
        """Some of the lists, in the given order; items and annotators keep their codes."""
        lengths = self.lengths[lists]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][lists] - offsets[:-1], lengths)
        return replace(
            self,
            item=self.item[rows],
            place=self.place[rows],
            offsets=offsets,
            annotator=None if self.annotator is None else self.annotator[lists],
            weight=None if self.weight is None else self.weight[lists],
        )

    def reweighted(self, weight: FloatArray) -> Rankings:
        """The same lists with other weights; lists of weight zero are left out."""
        changed = replace(self, weight=np.asarray(weight, dtype=np.float64))
        return changed if np.all(weight > 0) else changed.take(np.flatnonzero(weight > 0))

    def swapped(self) -> Rankings:
        """Every list upside down."""
        rows = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, self.lengths) - np.arange(len(self.item))
        last = np.repeat(self.place[self.offsets[1:] - 1], self.lengths)
        return replace(self, item=self.item[rows], place=last - self.place[rows])

    def with_missing_last(self) -> Rankings:
        """Items of the query that a list leaves out, tied on one more place at its end: a top-k list made whole."""
        from crowdrank.data.conversions import add_missing_last

        return add_missing_last(self)

    def to_comparisons(
        self, pairs: Literal["all", "adjacent"] = "all", ties: Literal["drop", "keep"] = "drop"
    ) -> Comparisons:
        """Every two items of a list, or only items on neighbouring places."""
        from crowdrank.data.conversions import rankings_to_comparisons

        return rankings_to_comparisons(self, pairs, ties)

    def to_ratings(self) -> Ratings:
        """Every item of a list graded from 0 to 1: the share of the others it was put above, tied ones by half."""
        from crowdrank.data.conversions import rankings_to_ratings

        return rankings_to_ratings(self)

    def to_frame(self) -> pl.DataFrame:
        """Long canonical columns, ranks from 1, labels in place of codes."""
        columns: dict[str, Any] = {}
        if self.items.has_queries:
            columns["query"] = self.items.queries[self.items.query[self.item]].tolist()
        if self.annotator is not None:
            columns["annotator"] = self.annotators[self.annotator[self.list_of_row]].tolist()
        columns |= {"list": self.list_of_row, "item": self.items.labels[self.item].tolist(), "rank": self.place + 1}
        return pl.DataFrame(columns)


def _changes(*columns: AnyArray) -> BoolArray:
    """True where a row differs from the one before it in any column."""
    changed = np.zeros(len(columns[0]), bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed
