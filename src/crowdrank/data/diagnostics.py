"""Diagnostics of comparison data: disconnected components, and items that wins tie to the rest in one way only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from crowdrank.arrays import AnyArray, BoolArray, Int32Array, IntArray
from crowdrank.data.comparisons import Comparisons
from crowdrank.data.labels import Items

# Up to this many items a dense table of who beat whom is faster than a sparse graph.
_MAX_DENSE_ITEMS = 500
# Up to this many items and comparisons a search in Python takes less time than importing SciPy.
_MAX_SEARCHED = 20_000
_MAX_NAME = 60


@dataclass(frozen=True, eq=False)
class DataDiagnostics:
    """Connectivity of the comparison graph, computed when it is first needed.

    Parameters
    ----------
    comparisons : Comparisons
        The judgments. Ratings and rankings are reduced to comparisons that connect the same items.
    from_ratings : bool, default False
        Whether the comparisons stand for ratings: grades of different annotators share a scale, even where no
        annotator graded both items.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "c"], ["b", "d"], ["a", "c"])
    >>> print(DataDiagnostics(votes).describe_components())
    2 groups of items were never compared with each other: a, b; c, d.
    """

    comparisons: Comparisons
    from_ratings: bool = False

    @property
    def items(self) -> Items:
        return self.comparisons.items

    @cached_property
    def component_of_item(self) -> Int32Array:
        """The connected component of each item: items joined by a chain of comparisons share a number."""
        return self._components("weak")

    @cached_property
    def disconnected_components(self) -> list[IntArray]:
        """The items of each component, for queries that have several; largest first, empty if all are connected."""
        component = self.component_of_item
        if int(component.max(initial=0)) < len(self.items.queries):
            return []
        of_query = np.unique(np.stack((self.items.query, component)), axis=1)
        has_several = np.bincount(of_query[0], minlength=len(self.items.queries)) > 1
        order = np.argsort(component, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(component[order])) + 1)
        return sorted((g for g in groups if has_several[self.items.query[g[0]]]), key=len, reverse=True)

    @cached_property
    def strong_component_of_item(self) -> Int32Array:
        """The strongly connected component of each item: chains of wins lead both ways between its members."""
        return self._components("strong")

    @property
    def strongly_connected(self) -> bool:
        """Whether every query is strongly connected, so that the maximum-likelihood scores are finite."""
        return int(self.strong_component_of_item.max(initial=0)) < len(self.items.queries)

    @cached_property
    def separated(self) -> IntArray:
        """Items whose maximum-likelihood score is infinite, because no chain of wins leads both to and from them."""
        if self.strongly_connected:
            return np.array([], np.int64)
        strong, component = self.strong_component_of_item, self.component_of_item
        # The largest strong component of each component keeps its finite scores; the others are separated from it.
        sizes = np.bincount(strong)
        body = np.empty(int(component.max()) + 1, np.int64)
        largest_last = np.argsort(sizes[strong], kind="stable")
        body[component[largest_last]] = strong[largest_last]
        alone = (strong != body[component]) | (sizes[strong] == 1)
        return np.flatnonzero(alone & (self.comparisons.n_judgments_per_item > 0))

    @cached_property
    def _won_and_lost(self) -> BoolArray:
        """Whether each item both won and lost; a tie counts as both."""
        won, lost = np.zeros((2, len(self.items)), bool)
        for chunk in self.comparisons.chunks():
            winners, losers = _edges(chunk)
            won[winners] = lost[losers] = True
        return won & lost

    def _components(self, connection: str) -> Int32Array:
        size = len(self.items)
        if size <= _MAX_DENSE_ITEMS and len(self.items.queries) == 1 and _all_reach_all(size, self.comparisons):
            return np.zeros(size, np.int32)
        labels = np.arange(size, dtype=np.int32)
        edges: tuple[Int32Array, Int32Array] = (labels[:0], labels[:0])
        for piece in self._pieces():
            source, target = (labels[end] for end in _edges(piece))
            edges = _unique_edges(np.concatenate((edges[0], source)), np.concatenate((edges[1], target)), size)
            # Items that are connected within a piece stay connected, so they are contracted to one node.
            node = _components(int(labels.max(initial=0)) + 1, *edges, connection)
            labels, edges = node[labels], (node[edges[0]], node[edges[1]])
            if labels.max(initial=0) < len(self.items.queries):
                break
        return labels

    def _pieces(self) -> Iterator[Comparisons]:
        """Cut the rows so that a small first piece can settle the connectivity of a long table."""
        size = len(self.items)
        for chunk in self.comparisons.chunks():
            cuts = [cut for cut in (0, 8 * size, 64 * size) if cut < len(chunk)]
            yield from (chunk.take(slice(a, b)) for a, b in pairwise([*cuts, len(chunk)]))

    def notes(self) -> list[str]:
        """Return sentences for the reader of a ranking; none if the data determine all scores."""
        found = []
        if self.disconnected_components:
            scale = "Only the scale of the grades relates" if self.from_ratings else "The data do not relate"
            found.append(f"{self.describe_components()} {scale} one group to another.")
        if self.separated.size:
            whose = "its score" if self.separated.size == 1 else "their scores"
            found.append(f"{self.describe_separation()}, so the data alone do not bound {whose}.")
        return found

    def describe_components(self) -> str:
        """Return a sentence that names the disconnected components."""
        groups = "; ".join(self.names(group, 3) for group in self.disconnected_components[:4])
        more = "; …" if len(self.disconnected_components) > 4 else ""
        never = "graded by a common annotator" if self.from_ratings else "compared with each other"
        return f"{len(self.disconnected_components)} groups of items were never {never}: {groups}{more}."

    def describe_separation(self) -> str:
        """Return a clause that names the separated items, without a full stop."""
        count = self.separated.size
        items = "1 item" if count == 1 else f"{count:,} items"
        if count == len(self.items):
            return f"Among all {items} ({self.names(self.separated)}), wins lead in one direction only"
        if not self._won_and_lost[self.separated].any():
            return f"{items} only won or only lost against the rest ({self.names(self.separated)})"
        return f"Between {items} ({self.names(self.separated)}) and the rest, wins lead in one direction only"

    def names(self, items: IntArray, most: int = 5) -> str:
        """Return the names of some items, up to a maximum number."""
        shown = ", ".join(_shortened(self.items.name(int(index))) for index in items[:most])
        return shown + (f", … ({len(items)} in all)" if len(items) > most else "")


def _shortened(name: str) -> str:
    """Return a name in one line; a long one, such as a whole text, is cut."""
    line = " ".join(name.split())
    return line if len(line) <= _MAX_NAME else f"{line[: _MAX_NAME - 1]}…"


def _edges(table: Comparisons) -> tuple[Int32Array, Int32Array]:
    """Return edges from winners to losers; a tie counts both ways."""
    if not table.ties:
        won = table.outcome > 0
        return np.where(won, table.left, table.right), np.where(won, table.right, table.left)
    won, lost = table.outcome >= 0, table.outcome <= 0
    return (
        np.concatenate((table.left[won], table.right[lost])),
        np.concatenate((table.right[won], table.left[lost])),
    )


def _unique_edges(source: Int32Array, target: Int32Array, size: int) -> tuple[Int32Array, Int32Array]:
    """Drop loops, and duplicates if there are many."""
    no_loop = source != target
    source, target = source[no_loop], target[no_loop]
    if len(source) <= 64 * size:
        return source, target
    cells = np.unique(source.astype(np.int64) * size + target)
    return (cells // size).astype(np.int32), (cells % size).astype(np.int32)


def _all_reach_all(size: int, table: Comparisons) -> bool:
    """Return whether chains of wins lead from the first item to every other and back."""
    beat = np.zeros(size * size, np.float32)
    for chunk in table.chunks():
        winners, losers = _edges(chunk)
        beat[winners * size + losers] = 1.0
    beat = beat.reshape(size, size)
    return _reaches_all(beat) and _reaches_all(beat.T)


def _reaches_all(beat: AnyArray) -> bool:
    reached = beat[0] > 0
    reached[0] = True
    count = 0
    while count < (count := int(np.count_nonzero(reached))):
        reached |= reached @ beat > 0
    return count == len(reached)


def _components(size: int, source: Int32Array, target: Int32Array, connection: str) -> Int32Array:
    if size + len(source) <= _MAX_SEARCHED:
        if connection == "weak":
            source, target = np.concatenate((source, target)), np.concatenate((target, source))
        return _strong_components(size, source, target)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(size, size))
    _, label = connected_components(graph.tocsr(), directed=True, connection=connection)
    return np.asarray(label, np.int32)


def _strong_components(size: int, source: Int32Array, target: Int32Array) -> Int32Array:
    """Tarjan's depth-first search, without recursion. Components are numbered by their first item."""
    order = np.argsort(source, kind="stable")
    ends = np.cumsum(np.bincount(source, minlength=size)).tolist()
    targets = target[order].tolist()
    position = [0, *ends[:-1]]  # of the next edge of each node
    found = [0] * size  # when a node was found, from 1
    lowest = [0] * size  # earliest open node that is reached; beyond all once the component of a node is known
    label = [0] * size
    time = count = 0
    path: list[int] = []
    open_nodes: list[int] = []
    for root in range(size):
        if found[root]:
            continue
        path.append(root)
        while path:
            node = path[-1]
            if not found[node]:
                time += 1
                found[node] = lowest[node] = time
                open_nodes.append(node)
            low, edge, end = lowest[node], position[node], ends[node]
            while edge < end and found[targets[edge]]:
                # An edge to a node below on the path is seen again when that node is done: its `lowest` counts then.
                low = min(low, lowest[targets[edge]])
                edge += 1
            lowest[node], position[node] = low, edge
            if edge < end:
                path.append(targets[edge])
                continue
            path.pop()
            if low == found[node]:
                while True:
                    member = open_nodes.pop()
                    lowest[member], label[member] = size + 1, count
                    if member == node:
                        break
                count += 1
    first = np.full(count, size)
    np.minimum.at(first, label, np.arange(size))
    return np.argsort(np.argsort(first))[label].astype(np.int32)
