"""What the data can and cannot say: islands that never meet, items that only win."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crowdrank.judgments.comparisons import Comparisons
from crowdrank.judgments.labels import Items


@dataclass(frozen=True, eq=False)
class Health:
    """Looked at lazily: connectivity of the comparison graph, whole and by who beat whom."""

    comparisons: Comparisons

    @property
    def items(self) -> Items:
        return self.comparisons.items

    @cached_property
    def island_of_item(self) -> npt.NDArray[np.int32]:
        """Items joined by a chain of comparisons share a number."""
        return self._components("weak")

    @cached_property
    def islands(self) -> list[npt.NDArray[np.int64]]:
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
    def separated(self) -> npt.NDArray[np.int64]:
        """Items whose score has no finite maximum: no chain of wins leads both to them and from them."""
        strong, island = self._components("strong"), self.island_of_item
        if strong.max(initial=0) == island.max(initial=0):
            return np.array([], np.int64)
        # Within each island the largest circle of mutual wins is held to be the body; the rest hang off it.
        sizes = np.bincount(strong)
        largest = np.zeros(int(island.max()) + 1, np.int64)
        np.maximum.at(largest, island, sizes[strong])
        alone = (sizes[strong] < largest[island]) | (sizes[strong] == 1)
        return np.flatnonzero(alone & (self.comparisons.comparisons_of_item > 0))

    def _components(self, kind: str) -> npt.NDArray[np.int32]:
        """A first part of a long table nearly always settles it; the whole is looked at only if not."""
        size, rows = len(self.items), len(self.comparisons)
        first = 8 * size + 1000
        if rows > 2 * first:
            labels = _components(size, self.comparisons.take(np.arange(first)), kind)
            if labels.max(initial=0) < len(self.items.queries):
                return labels
        return _components(size, self.comparisons, kind)

    def notes(self) -> list[str]:
        """What a reader of the ranking should know, in plain words."""
        found = []
        if self.islands:
            found.append(f"{self.describe_islands()} Their places relative to each other come from the prior alone.")
        if self.separated.size:
            count, one = self.separated.size, self.separated.size == 1
            found.append(
                f"{count} {'item' if one else 'items'} never both won and lost within the rest "
                f"({self.names(self.separated)}): only the prior keeps {'its score' if one else 'their scores'} finite."
            )
        return found

    def describe_islands(self) -> str:
        parts = "; ".join(self.names(group, 3) for group in self.islands[:4])
        more = "; …" if len(self.islands) > 4 else ""
        return f"{len(self.islands)} groups of items were never compared with each other: {parts}{more}."

    def names(self, places: npt.NDArray[np.int64], most: int = 5) -> str:
        shown = ", ".join(self.items.name(int(p)) for p in places[:most])
        return shown + (f", … ({len(places)} in all)" if len(places) > most else "")


def _components(size: int, table: Comparisons, kind: str) -> npt.NDArray[np.int32]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    beat, lost = table.outcome >= 0, table.outcome <= 0  # a tie is a little of both
    source = np.concatenate((table.left[beat], table.right[lost]))
    target = np.concatenate((table.right[beat], table.left[lost]))
    graph = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(size, size))
    _, label = connected_components(graph.tocsr(), directed=True, connection=kind)
    return np.asarray(label, np.int32)
