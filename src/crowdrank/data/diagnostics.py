"""What the data can and cannot say: islands that never meet, items that only win."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from crowdrank.arrays import BoolArray, Int32Array, IntArray
from crowdrank.data.comparisons import Comparisons
from crowdrank.data.labels import Items

# Up to this many items a table of who beat whom is quicker than a sparse graph.
_LARGEST_TABLE = 500


@dataclass(frozen=True, eq=False)
class Health:
    """Looked at lazily: connectivity of the comparison graph, whole and by who beat whom."""

    comparisons: Comparisons
    graded: bool = False
    """Whether these comparisons only join items that one annotator graded: grades have a scale of their own."""

    @property
    def items(self) -> Items:
        return self.comparisons.items

    @cached_property
    def island_of_item(self) -> Int32Array:
        """Items joined by a chain of comparisons share a number."""
        return self._components("weak")

    @cached_property
    def islands(self) -> list[IntArray]:
        """The items of each island, in queries that fall apart into several; largest first."""
        island = self.island_of_item
        if int(island.max(initial=0)) < len(self.items.queries):
            return []
        of_query = np.unique(np.stack((self.items.query, island)), axis=1)
        torn = np.bincount(of_query[0], minlength=len(self.items.queries)) > 1
        order = np.argsort(island, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(island[order])) + 1)
        return sorted((g for g in groups if torn[self.items.query[g[0]]]), key=len, reverse=True)

    @cached_property
    def circle_of_item(self) -> Int32Array:
        """Items that chains of wins join in both directions share a number."""
        return self._components("strong")

    @property
    def sound(self) -> bool:
        """Whether every query hangs together so that all its scores are finite without a prior."""
        return int(self.circle_of_item.max(initial=0)) < len(self.items.queries)

    @cached_property
    def separated(self) -> IntArray:
        """Items whose score has no finite maximum: no chain of wins leads both to them and from them."""
        if self.sound:
            return np.array([], np.int64)
        strong, island = self.circle_of_item, self.island_of_item
        # Within each island the largest circle of mutual wins is held to be the body; the rest hang off it.
        sizes = np.bincount(strong)
        body = np.empty(int(island.max()) + 1, np.int64)
        largest_last = np.argsort(sizes[strong], kind="stable")
        body[island[largest_last]] = strong[largest_last]
        alone = (strong != body[island]) | (sizes[strong] == 1)
        return np.flatnonzero(alone & (self.comparisons.judged_of_item > 0))

    def _components(self, kind: str) -> Int32Array:
        size = len(self.items)
        if size <= _LARGEST_TABLE and len(self.items.queries) == 1 and _all_reach_all(size, self.comparisons):
            return np.zeros(size, np.int32)
        labels = np.arange(size, dtype=np.int32)
        apart: tuple[Int32Array, Int32Array] = (labels[:0], labels[:0])
        for piece in self._pieces():
            source, target = (labels[end] for end in _edges(piece))
            apart = _once(np.concatenate((apart[0], source)), np.concatenate((apart[1], target)), size)
            # what hangs together in a piece does so in the whole: it is one point from then on
            point = _components(int(labels.max(initial=0)) + 1, *apart, kind)
            labels, apart = point[labels], (point[apart[0]], point[apart[1]])
            if labels.max(initial=0) < len(self.items.queries):
                break
        return labels

    def _pieces(self) -> Iterator[Comparisons]:
        """A first piece of a long table settles nearly all of it."""
        size = len(self.items)
        for part in self.comparisons.parts():
            cuts = [cut for cut in (0, 8 * size, 64 * size) if cut < len(part)]
            yield from (part.take(slice(a, b)) for a, b in pairwise([*cuts, len(part)]))

    def notes(self) -> list[str]:
        """What a reader of the ranking should know, in plain words."""
        found = []
        if self.islands:
            alone = "Only the scale of grades says" if self.graded else "No judgment says"
            found.append(f"{self.describe_islands()} {alone} how they stand to each other.")
        if self.separated.size:
            whose = "its score" if self.separated.size == 1 else "their scores"
            found.append(
                f"{self.names(self.separated)} never both won and lost within the rest: "
                f"the judgments alone set no limit to {whose}."
            )
        return found

    def describe_islands(self) -> str:
        parts = "; ".join(self.names(group, 3) for group in self.islands[:4])
        more = "; …" if len(self.islands) > 4 else ""
        never = "graded by one annotator" if self.graded else "compared with each other"
        return f"{len(self.islands)} groups of items were never {never}: {parts}{more}."

    def names(self, places: IntArray, most: int = 5) -> str:
        shown = ", ".join(self.items.name(int(p)) for p in places[:most])
        return shown + (f", … ({len(places)} in all)" if len(places) > most else "")


def _edges(table: Comparisons) -> tuple[Int32Array, Int32Array]:
    """From winners to losers; a tie counts both ways."""
    if not table.ties:
        won = table.outcome > 0
        return np.where(won, table.left, table.right), np.where(won, table.right, table.left)
    won, lost = table.outcome >= 0, table.outcome <= 0
    return (
        np.concatenate((table.left[won], table.right[lost])),
        np.concatenate((table.right[won], table.left[lost])),
    )


def _once(source: Int32Array, target: Int32Array, size: int) -> tuple[Int32Array, Int32Array]:
    """Edges from one point to another, each once where they are many."""
    apart = source != target
    source, target = source[apart], target[apart]
    if len(source) <= 64 * size:
        return source, target
    cells = np.unique(source.astype(np.int64) * size + target)
    return (cells // size).astype(np.int32), (cells % size).astype(np.int32)


def _all_reach_all(size: int, table: Comparisons) -> bool:
    """Whether chains of wins lead from the first item to every other, and back."""
    beat = np.zeros((size, size), bool)
    for part in table.parts():
        beat[_edges(part)] = True
    return _reaches_all(beat) and _reaches_all(beat.T)


def _reaches_all(beat: BoolArray) -> bool:
    reached = beat[0].copy()
    reached[0] = True
    count = 0
    while count < (count := int(np.count_nonzero(reached))):
        reached |= beat[reached].any(axis=0)
    return count == len(reached)


def _components(size: int, source: Int32Array, target: Int32Array, kind: str) -> Int32Array:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(size, size))
    _, label = connected_components(graph.tocsr(), directed=True, connection=kind)
    return np.asarray(label, np.int32)
