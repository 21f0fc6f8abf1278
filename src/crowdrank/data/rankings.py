"""Rankings: ordered lists of items, complete, partial or top-k, with ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, BoolArray, FloatArray, Int32Array, IntArray
from crowdrank.data.labels import encode_annotators, encode_items, encode_labels
from crowdrank.data.tables import (
    JudgmentTable,
    check_codes,
    check_column_lengths,
    check_lengths,
    number_column,
    text_series,
    weight_column,
)
from crowdrank.errors import DataError

if TYPE_CHECKING:
    from crowdrank.data.comparisons import Comparisons
    from crowdrank.data.ratings import Ratings


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rankings(JudgmentTable):
    """Ordered lists, best item first. Build them with `Rankings.of`, `of_lists`, `of_choices` or `crowdrank.read`.

    Parameters
    ----------
    items : Items
        The items that were ranked.
    item : array of int32
        The items of all lists, one list after the other, as positions in `items`.
    place : array of int32
        The place of each row in its list: 0 for the best. Items on one place are tied.
    offsets : array of int64
        Where each list begins in `item`; one more entry than there are lists.
    annotators : array of str
        Names of the annotators; empty if the annotators are unknown.
    annotator : array of int32, optional
        Who made each list, as positions in `annotators`. None if the annotators are unknown.
    weight : array of float, optional
        One weight per list; None if all weights are 1.
    frame_backend : {"polars", "pandas", "pyarrow"}
        The kind of data frame that `to_frame` returns.
    import_report : ImportReport, optional
        What became of each row of the source.

    Examples
    --------
    >>> lists = Rankings.of_lists([[["a"], ["b", "c"]], [["b"], ["a"]]], annotator=["ann", "bob"])
    >>> lists
    Rankings(2 lists, 3 items, 2 annotators)
    >>> lists.to_comparisons()
    Comparisons(3 judgments, 3 items, 2 annotators)
    """

    item: Int32Array
    place: Int32Array
    offsets: IntArray

    def _validate(self) -> None:
        check_lengths({"item": len(self.item), "place": len(self.place)})
        check_codes(self.item, "item", len(self.items))
        lengths = np.diff(self.offsets)
        if not len(self.offsets) or self.offsets[0] or self.offsets[-1] != len(self.item) or (lengths < 1).any():
            raise DataError(
                f"offsets must increase from 0 to {len(self.item)} (the rows), got {self.offsets[:5].tolist()}."
            )
        super()._validate()

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
        frame_backend: str = "polars",
    ) -> Rankings:
        """Build rankings from long columns, one row per item of a list.

        Parameters
        ----------
        item : sequence of labels
            The item of each row.
        rank : sequence of float
            Its rank in the list: 1 is the best, equal ranks are ties.
        annotator, query, list : sequence of labels, optional
            Rows with the same annotator, query and list name form one list.
        frame_backend : {"polars", "pandas", "pyarrow"}
            The kind of data frame that `to_frame` returns.

        Returns
        -------
        Rankings

        Raises
        ------
        DataError
            If columns differ in length, a label is missing, a rank is not a finite number, or a list names an item
            twice.

        Examples
        --------
        >>> Rankings.of(item=["a", "b", "c"], rank=[1, 2, 2], annotator=["ann"] * 3)
        Rankings(1 lists, 3 items, 1 annotators)
        """
        check_column_lengths({"item": item, "rank": rank, "annotator": annotator, "query": query, "list": list})
        items, (codes,) = encode_items([item], ["item"], query)
        ranks = number_column(rank, "rank", len(codes))
        keys: dict[str, Any] = {"query": items.query[codes]}
        annotators, annotator_codes = encode_annotators(annotator)
        if annotator_codes is not None:
            keys["annotator"] = annotator_codes
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
            annotators=annotators,
            annotator=None if annotator_codes is None else annotator_codes[order][offsets[:-1]],
            frame_backend=frame_backend,
        )
        found._refuse_repeated_items()
        return found

    @classmethod
    def of_choices(cls, chosen: Sequence[Any], offered: Sequence[Sequence[Any]], *, annotator: Any = None) -> Rankings:
        """Build rankings from choices of the best of a set.

        Parameters
        ----------
        chosen : sequence of labels
            The item that was chosen.
        offered : sequence of sequences of labels
            The items that it was chosen from, itself included; at least two.
        annotator : sequence of labels, optional
            Who chose.

        Notes
        -----
        Equation 2 of Chen et al. (2013), Crowd-BT: the chosen item is first, the others are tied in second place.

        Examples
        --------
        >>> Rankings.of_choices(["x", "y"], [["x", "y", "z"], ["y", "z"]])
        Rankings(2 lists, 3 items, 0 annotators)
        """
        check_column_lengths({"chosen": chosen, "offered": offered, "annotator": annotator})
        lists = []
        for n, (best, choice) in enumerate(zip(chosen, offered, strict=True)):
            rest = [o for o in choice if o != best]
            if len(rest) == len(choice) or not rest:
                raise DataError(
                    f"Row {n + 1}: the chosen item must be one of several offered, got {best!r} from {choice!r}."
                )
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
        """Build rankings from Python lists.

        Parameters
        ----------
        lists : sequence of lists of places
            One list per ranking, best place first; a place is the list of the items tied on it.
        annotator, query : sequence of labels, optional
            Who made each list, and for which query.
        weight : sequence of float, optional
            One weight per list; only for lists without annotators and queries.

        Examples
        --------
        >>> Rankings.of_lists([[["a"], ["b", "c"]]])
        Rankings(1 lists, 3 items, 0 annotators)
        """
        check_column_lengths({"lists": lists, "annotator": annotator, "query": query, "weight": weight})
        rows = [(n, str(label), p) for n, places in enumerate(lists) for p, tied in enumerate(places) for label in tied]
        if not rows:
            raise DataError(
                "The lists contain no items.", remedy="Give lists of places, such as [[['a'], ['b', 'c']]]."
            )
        number, label, place = zip(*rows, strict=True)
        list_of_row = np.array(number)
        found = cls.of(
            item=label,
            rank=np.array(place) + 1,
            list=[f"{n:09d}" for n in number],
            annotator=None if annotator is None else np.asarray(annotator, dtype=object)[list_of_row],
            query=None if query is None else np.asarray(query, dtype=object)[list_of_row],
        )
        if weight is None:
            return found
        if query is not None or annotator is not None:
            raise DataError("weight works only for lists without query and annotator.")
        given = weight_column(weight, len(lists))
        assert given is not None
        return replace(found, weight=given[np.unique(list_of_row)])  # lists that name no items are dropped

    def _refuse_repeated_items(self) -> None:
        key = self.list_of_row * len(self.items) + self.item
        order = np.argsort(key, kind="stable")
        if (twice := np.flatnonzero(key[order][1:] == key[order][:-1])).size:
            index = int(self.item[order[twice[0]]])
            raise DataError(
                f"Item {self.items.name(index)} is in one list twice.",
                remedy="Name the lists (list=…) if an annotator made several.",
            )

    @property
    def lengths(self) -> IntArray:
        """Number of items in each list."""
        return np.diff(self.offsets)

    @property
    def list_of_row(self) -> IntArray:
        """The list that each row of `item` belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def _sum_per_item(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.item, values[self.list_of_row], len(self.items)), np.float64)

    @cached_property
    def weights(self) -> FloatArray:
        """One weight per list; ones if no weights were given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    def take(self, lists: AnyArray) -> Rankings:
        """Return some of the lists, in the given order; items and annotators keep their codes."""
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

    def with_outcomes_reversed(self) -> Rankings:
        """Return every list in reverse order."""
        rows = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, self.lengths) - np.arange(len(self.item))
        last = np.repeat(self.place[self.offsets[1:] - 1], self.lengths)
        return replace(self, item=self.item[rows], place=last - self.place[rows])

    def with_missing_last(self) -> Rankings:
        """Return complete lists: the items of the query that a list does not name are tied for last."""
        from crowdrank.data.conversions import add_missing_last

        return add_missing_last(self)

    def to_comparisons(
        self, pairs: Literal["all", "adjacent"] = "all", ties: Literal["drop", "keep", "above_last"] = "drop"
    ) -> Comparisons:
        """Compare the items of each list.

        Parameters
        ----------
        pairs : {"all", "adjacent"}
            Every two items of a list, or only items on neighbouring places.
        ties : {"drop", "keep", "above_last"}
            Whether tied items are left out, or become ties. With "above_last", items tied on the last place of a list
            are left out: the annotator left them unordered.
        """
        from crowdrank.data.conversions import rankings_to_comparisons

        return rankings_to_comparisons(self, pairs, ties)

    def to_ratings(self) -> Ratings:
        """Grade every item of a list from 0 to 1: the share of the others below it, tied ones counted half."""
        from crowdrank.data.conversions import rankings_to_ratings

        return rankings_to_ratings(self)

    def to_polars(self) -> pl.DataFrame:
        """Return one row per item of a list, with ranks from 1 and labels in place of codes."""
        who = None if self.annotator is None else self.annotator[self.list_of_row]
        columns: dict[str, Any] = dict(self._label_columns(self.item, who))
        columns |= {"list": self.list_of_row, "item": text_series(self.items.labels[self.item]), "rank": self.place + 1}
        return pl.DataFrame(columns)


def _changes(*columns: AnyArray) -> BoolArray:
    """True where a row differs from the one before it in any column."""
    changed = np.zeros(len(columns[0]), bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed
