"""Choose pairs for many annotators who work at the same time, with one set of arrays for all of them.

The choice is that of the policy `EpsilonGreedy`, with the same probabilities. A server makes it for every vote, so that
nothing is computed per annotator that all of them share: the tree of the search for the largest gain is built once, and
updated when a question is handed out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.active import questions
from crowdrank.active.branch_and_bound import (
    LEAF_SIZE,
    SEARCH_FORMULAS,
    QueryBlocks,
    Tree,
    box_bound,
    build_tree,
    descend,
)
from crowdrank.active.candidates import Candidate
from crowdrank.active.gain_formulas import BOUND_FORMULAS, N_KNOTS
from crowdrank.active.questions import Exclusions
from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled

_N_ATTEMPTS = 32
"""Random pairs that are drawn, at most, until one may be asked."""
_ME = np.zeros(1, np.int64)


class ConcurrentChoice:
    """The items that questions are chosen from, with the beliefs expected once all pending answers have come.

    Parameters
    ----------
    blocks : QueryBlocks
        The items by query.
    mean, variance : array of float
        The expected beliefs about the items.
    counts : array of int
        How often each item was asked about.
    pending : array of int
        Pairs whose answers are pending, as two rows of codes.

    Examples
    --------
    >>> blocks = QueryBlocks.of(np.zeros(4, np.int64))
    >>> choice = ConcurrentChoice(blocks, np.zeros(4), np.ones(4), np.array([3, 1, 2, 1]), np.zeros((2, 0), int))
    >>> chosen = choice.choose(np.zeros((2, 0), int), (4.0, 2.0), 0.0, 5, np.random.default_rng(0))
    >>> chosen.first, chosen.second, chosen.policy, round(chosen.probability, 3)
    (1, 3, 'coverage', 1.0)
    """

    def __init__(
        self, blocks: QueryBlocks, mean: FloatArray, variance: FloatArray, counts: IntArray, pending: IntArray
    ) -> None:
        self._blocks, self._mean, self._variance, self._counts = blocks, mean, variance.copy(), counts.copy()
        sizes = np.diff(blocks.starts)
        self._pairs_up_to = np.cumsum(sizes * (sizes - 1) // 2)
        self.n_pairs = int(self._pairs_up_to[-1]) if len(sizes) else 0
        self._pending = self._keys(pending)
        self._tree: Tree | None = None
        self._place = np.zeros(0, np.int64)

    def _keys(self, pairs: IntArray) -> IntArray:
        return np.asarray(np.minimum(*pairs) * len(self._mean) + np.maximum(*pairs))

    def add(self, first: int, second: int, variances: tuple[float, float]) -> None:
        """Add a question that was handed out; `variances` are those expected after its answer."""
        self._pending = np.append(self._pending, min(first, second) * len(self._mean) + max(first, second))
        for item, variance in zip((first, second), variances, strict=True):
            self._counts[item] += 1
            self._variance[item] = variance
            if self._tree is not None and not _set_variance(self._tree, self._place[item], variance):
                self._tree = None

    def choose(
        self,
        answered: IntArray,
        quality: tuple[float, float],
        epsilon: float,
        floor: int,
        rng: np.random.Generator,
        exploration: float = 1.0,
    ) -> Candidate | None:
        """Choose a pair for one annotator.

        Parameters
        ----------
        answered : array of int
            Pairs that the annotator must not be asked again, as two rows of codes.
        quality : tuple of float
            α and β of the annotator.
        epsilon : float
            Share of questions drawn at random.
        floor : int
            How often every item is asked about before questions are chosen by information gain.
        rng : numpy.random.Generator
        exploration : float, default 1.0
            γ: weight of the information about the annotator.

        Returns
        -------
        Candidate or None
            None if so many pairs are excluded that `CandidateSet` must enumerate the rest.
        """
        excluded = np.concatenate((self._keys(answered), self._pending))
        excluded.sort()
        if len(excluded):
            excluded = excluded[np.append(True, excluded[1:] != excluded[:-1])]
        if self.n_pairs - len(excluded) <= max(len(self._mean), self.n_pairs // 2):
            return None
        covered = bool((self._counts[self._blocks.item] >= floor).all())
        if covered and self._tree is None:
            self._tree = build_tree(self._mean, self._variance, self._blocks)
            self._place = np.empty(len(self._mean), np.int64)
            self._place[self._tree.item] = np.arange(len(self._tree.item))
        draws = rng.random(2 + 2 * _N_ATTEMPTS)
        arguments = (self._blocks, self._pairs_up_to, self._counts, excluded, epsilon, draws)
        if covered:
            assert self._tree is not None
            better, worse = max(quality), min(quality)
            found = _most_informative(*arguments, self._tree, better, worse, exploration, len(self._mean))
        else:
            found = _least_shown(*arguments)
        first, second, at_random, probability = found
        policy = "random" if at_random else "gain" if covered else "coverage"
        return None if first < 0 else Candidate(first, second, 0, probability, policy)


@compiled()
def _set_variance(tree: Any, place: int, variance: float) -> bool:
    """Change the variance of an item and the boxes around it; False if the tree must be built anew."""
    tree.variance[place] = variance
    path, depth, node = np.empty(tree.depth, np.int64), 0, 0
    while tree.stop[node] <= place:  # the roots are in the order of the items
        node += 1
    while tree.child[node] > 0:
        path[depth] = node
        depth += 1
        node = tree.child[node]
        if tree.stop[node] <= place:
            node += 1
    if tree.stop[node] - tree.start[node] > LEAF_SIZE:
        # A large leaf has equal items, so that one of its pairs stands for all. They are not equal any more.
        return False
    low = high = variance
    for other in range(tree.start[node], tree.stop[node]):
        low, high = min(low, tree.variance[other]), max(high, tree.variance[other])
    tree.box[node, 2], tree.box[node, 3] = low, high
    # Boxes that are not tightened up to the root would let every later search look at items that were just asked about.
    while depth > 0:
        depth -= 1
        node = path[depth]
        one = tree.child[node]
        tree.box[node, 2] = min(tree.box[one, 2], tree.box[one + 1, 2])
        tree.box[node, 3] = max(tree.box[one, 3], tree.box[one + 1, 3])
    return True


def _random_pair(blocks: Any, pairs_up_to: Any, size: int, excluded: Any, draws: Any) -> Any:
    """Draw a pair uniformly from those that are not excluded; (-1, -1) if none is found."""
    for attempt in range(len(draws) // 2):
        row = draws[2 * attempt] * pairs_up_to[-1]
        block = min(np.searchsorted(pairs_up_to, row, side="right"), len(pairs_up_to) - 1)
        start, stop = blocks.starts[block], blocks.starts[block + 1]
        n = stop - start
        ordered = min(int(draws[2 * attempt + 1] * n * (n - 1)), n * (n - 1) - 1)
        i, j = ordered // (n - 1), ordered % (n - 1)
        j += j >= i
        one, other = blocks.item[start + i], blocks.item[start + j]
        first, second = min(one, other), max(one, other)
        if not questions.has_key(excluded, first * size + second):
            return first, second
    return -1, -1


def _count_partners(blocks: Any, size: int, excluded: Any) -> Any:
    """Count the items that each item can be compared with."""
    partners = np.zeros(size, np.int64)
    for block in range(len(blocks.starts) - 1):
        start, stop = blocks.starts[block], blocks.starts[block + 1]
        for place in range(start, stop):
            partners[blocks.item[place]] = stop - start - 1
    for key in excluded:
        partners[key // size] -= 1
        partners[key % size] -= 1
    return partners


def _least_shown_partners(blocks: Any, block: Any, counts: Any, excluded: Any, item: int) -> Any:
    """Return the least shown of the items that an item can be compared with, and their number."""
    size = len(counts)
    start, stop = blocks.starts[block[item]], blocks.starts[block[item] + 1]
    found, n, least = np.empty(stop - start, np.int64), 0, np.iinfo(np.int64).max
    for place in range(start, stop):
        other = blocks.item[place]
        if other == item or counts[other] > least:
            continue
        if questions.has_key(excluded, min(item, other) * size + max(item, other)):
            continue
        if counts[other] < least:
            least, n = counts[other], 0
        found[n] = other
        n += 1
    return found, n


@compiled(questions.has_key, _random_pair, _count_partners, _least_shown_partners)
def _least_shown(blocks: Any, pairs_up_to: Any, counts: Any, excluded: Any, epsilon: float, draws: Any) -> Any:
    """Choose as `Coverage` does, except for a random share."""
    size = len(counts)
    partners, block = _count_partners(blocks, size, excluded), np.zeros(size, np.int64)
    for b in range(len(blocks.starts) - 1):
        block[blocks.item[blocks.starts[b] : blocks.starts[b + 1]]] = b
    least, n = np.iinfo(np.int64).max, 0
    firsts = np.empty(size, np.int64)
    for item in blocks.item:
        if partners[item] > 0 and counts[item] <= least:
            if counts[item] < least:
                least, n = counts[item], 0
            firsts[n] = item
            n += 1
    at_random = draws[0] < epsilon
    if n == 0 or at_random:
        first, second = _random_pair(blocks, pairs_up_to, size, excluded, draws[2:])
    else:
        one = firsts[min(int(draws[1] * n), n - 1)]
        found, m = _least_shown_partners(blocks, block, counts, excluded, one)
        other = found[min(int(draws[2] * m), m - 1)]
        first, second = min(one, other), max(one, other)
    if n == 0 or first < 0:
        return -1, -1, at_random, 0.0
    probability = epsilon / (pairs_up_to[-1] - len(excluded))
    for one, other in ((first, second), (second, first)):  # either of the two may have been drawn first
        if partners[one] > 0 and counts[one] == least:
            found, m = _least_shown_partners(blocks, block, counts, excluded, one)
            if m and counts[other] == counts[found[0]]:
                probability += (1 - epsilon) / n / m
    return first, second, at_random, probability


@compiled(*BOUND_FORMULAS, *questions.FORMULAS, *SEARCH_FORMULAS, _random_pair)
def _most_informative(
    blocks: Any,
    pairs_up_to: Any,
    counts: Any,
    excluded: Any,
    epsilon: float,
    draws: Any,
    tree: Any,
    alpha: float,
    beta: float,
    exploration: float,
    size: int,
) -> Any:
    """Choose as `InformationGain` does, except for a random share."""
    table = np.full(N_KNOTS, np.nan)
    bounds = np.empty(tree.roots)
    for root in range(tree.roots):
        bounds[root] = box_bound(tree, root, root, alpha, beta, exploration, table)
    exclusions = Exclusions(size, excluded, excluded[:0])
    best = descend(tree, np.argsort(bounds), alpha, beta, _ME, exclusions, exploration, table, -1.0)
    first, second, at_random = min(best[1], best[2]), max(best[1], best[2]), draws[0] < epsilon
    probability = epsilon / (pairs_up_to[-1] - len(excluded))
    if not at_random or first < 0:
        return first, second, at_random, probability + (1 - epsilon)
    one, other = _random_pair(blocks, pairs_up_to, size, excluded, draws[2:])
    return one, other, at_random, probability + (1 - epsilon) * (one == first and other == second)
