"""Other names for items, and judgments without some annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crowdrank.arrays import AnyArray, BoolArray, ObjectArray
from crowdrank.data import Comparisons, Items, Judgments, Rankings
from crowdrank.errors import DataError, DataWarning, UnknownNameError, issue_warning


def without_annotators(judgments: Judgments, names: Sequence[str]) -> Judgments:
    """Return the judgments without those of some annotators, and without items that nobody else judged.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        Judgments that name annotators.
    names : sequence of str
        Annotators to leave out.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a"], ["b", "c"], ["a", "c"], annotator=["ann", "bob"])
    >>> without_annotators(votes, ["bob"])
    Comparisons(1 judgments, 2 items, 1 annotators)
    """
    if not names:
        return judgments
    if judgments.annotator is None:
        raise DataError("exclude= names annotators, but these judgments do not.")
    for name in names:
        if name not in judgments.annotators.tolist():
            raise UnknownNameError("annotator", name, judgments.annotators)
    kept = ~np.isin(judgments.annotators, list(names))
    if not kept.any():
        raise DataError("exclude= names all annotators: no judgments would remain.")
    rest: Any = judgments.take(np.flatnonzero(kept[judgments.annotator]))
    rest = replace(
        rest,
        annotators=judgments.annotators[kept],
        annotator=(np.cumsum(kept) - 1)[rest.annotator].astype(np.int32),
    )
    return _recoded(rest, rest.items.labels, rest.n_judgments_per_item > 0)


def with_aliases(judgments: Judgments, aliases: Mapping[str, str]) -> Judgments:
    """Return the judgments with items renamed; two items that get one name become one.

    Comparisons of an item with itself are left out, with a warning.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments.
    aliases : mapping of str to str
        The new name of each old one.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a-v2"], ["b", "b"], ["a", "b"])
    >>> with_aliases(votes, {"a-v2": "a"}).items.labels.tolist()
    ['a', 'b']
    """
    if not aliases:
        return judgments
    old = judgments.items.labels
    for name in aliases:
        if name not in old.tolist():
            raise UnknownNameError("item", name, dict.fromkeys(old))
    labels = np.array([aliases.get(str(label), label) for label in old], dtype=object)
    if isinstance(judgments, Rankings) and len(set(zip(judgments.items.query, labels, strict=True))) < len(labels):
        raise DataError("aliases= cannot make two items of ranked lists one: a list may hold both.")
    if isinstance(judgments, Comparisons):
        query = judgments.items.query
        same = (labels[judgments.left] == labels[judgments.right]) & (query[judgments.left] == query[judgments.right])
        if count := int(same.sum()):
            found = "1 comparison" if count == 1 else f"{count:,} comparisons"
            issue_warning(f"aliases= left out {found} of an item with itself.", DataWarning)
            judgments = judgments.take(np.flatnonzero(~same))
    return _recoded(judgments, labels, judgments.n_judgments_per_item > 0)


def _recoded(judgments: Any, labels: ObjectArray, used: BoolArray) -> Judgments:
    """The judgments with other labels of the items, and without the items that are not used."""
    items: Items = judgments.items
    names = [(int(q), str(label)) for q, label in zip(items.query, labels, strict=True)]
    kept = sorted({name for name, is_used in zip(names, used, strict=True) if is_used})
    if not kept:
        raise DataError("No judgments are left.")
    place = {name: n for n, name in enumerate(kept)}
    code = np.array([place.get(name, -1) for name in names], np.int32)
    queries, query = np.unique([q for q, _ in kept], return_inverse=True)
    fresh = Items(np.array([label for _, label in kept], dtype=object), query.astype(np.int32), items.queries[queries])
    columns: dict[str, AnyArray] = {
        name: code[getattr(judgments, name)] for name in ("left", "right", "item") if hasattr(judgments, name)
    }
    storage = {"storage": None} if isinstance(judgments, Comparisons) else {}
    recoded: Judgments = replace(judgments, items=fresh, **columns, **storage)
    return recoded
