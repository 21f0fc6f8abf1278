"""Each annotator's view of each item as contests against the other items, for rank distributions (Niu et al. 2015, §4).

Also `GradedPairs`: ratings as comparisons that can be resampled with the ratings.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items, Ratings
from crowdrank.data.pair_counts import pair_cells
from crowdrank.engines.compilation import compiled

# Rank distributions (Niu et al. 2015, Algorithms 1 and 2).
#
# The number of items above an item is a sum of independent contests, a Poisson binomial: P(r) = ∗ⱼ [1 − ℓⱼ, ℓⱼ].
# `losing` holds the loss probabilities ℓ against the opponents that were compared. Against the `even` others ℓ = ½,
# so together they are one binomial, and only the compared opponents remain to be convolved.

# Contests × ranks up to which plain NumPy is faster than loading the compiler.
_PLAIN_UP_TO = 200_000
# Contests from which divide and conquer with FFTs beats the compiled convolution.
_DIVIDE_FROM = 10_000
# Probabilities below this are treated as zero.
_NEGLIGIBLE = 1e-30
# Lengths up to which two polynomials are multiplied term by term.
_SHORT = 32


def rank_distribution(losing: FloatArray, even: int = 0) -> FloatArray:
    """P(r items above this one) for r = 0, 1, …, by the faster algorithm."""
    return by_divide_and_conquer(losing, even) if len(losing) >= _DIVIDE_FROM else by_convolution(losing, even)


def by_convolution(losing: FloatArray, even: int = 0) -> FloatArray:
    """Algorithm 1: add one contest after the other."""
    ranks = np.zeros(even + len(losing) + 1)
    ranks[: even + 1] = fair_binomial(even)
    if len(losing) * len(ranks) > _PLAIN_UP_TO:
        _convolve(ranks, even, losing)
        return ranks
    for probability in losing:
        ranks[1:] += probability * (ranks[:-1] - ranks[1:])
        ranks[0] *= 1.0 - probability
    return ranks


@compiled()
def _convolve(ranks, last, losing):  # type: ignore[no-untyped-def]
    """Convolve in place between the first and last non-negligible rank: denormal numbers beyond would be slow."""
    first = 0
    for probability in losing:
        last += 1
        for r in range(last, first, -1):
            ranks[r] += probability * (ranks[r - 1] - ranks[r])
        ranks[first] *= 1.0 - probability
        while ranks[last] < _NEGLIGIBLE:
            ranks[last] = 0.0
            last -= 1
        while ranks[first] < _NEGLIGIBLE:
            ranks[first] = 0.0
            first += 1


def by_divide_and_conquer(losing: FloatArray, even: int = 0) -> FloatArray:
    """Algorithm 2: multiply neighbouring polynomials, all pairs of a level at once."""
    # Pad to a power of two with contests that are never lost, which change nothing.
    leaves = np.zeros(1 << max(0, len(losing) - 1).bit_length())
    leaves[: len(losing)] = losing
    terms = np.stack((1.0 - leaves, leaves), axis=1)
    while len(terms) > 1:
        terms = _products(terms[0::2], terms[1::2])
    ranks = _products(terms[:, : len(losing) + 1], fair_binomial(even)[None])[0]
    return np.asarray(np.maximum(ranks, 0.0))  # FFT rounding can leave tiny negative values


def _products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Row-wise products of the polynomials in `a` and `b`."""
    if a.shape[1] > b.shape[1]:
        a, b = b, a
    size = a.shape[1] + b.shape[1] - 1
    if a.shape[1] > _SHORT:
        length = 1 << (size - 1).bit_length()
        return np.asarray(np.fft.irfft(np.fft.rfft(a, length) * np.fft.rfft(b, length), length)[:, :size])
    product = np.zeros((len(a), size))
    for power in range(a.shape[1]):
        product[:, power : power + b.shape[1]] += a[:, power, None] * b
    return product


@lru_cache(maxsize=256)
def fair_binomial(coins: int) -> FloatArray:
    """Binomial(coins, ½) probabilities of 0, 1, … heads."""
    # Ratios of neighbouring terms, outwards from the mode: nothing overflows, and far tails underflow to zero.
    up, down = np.arange(coins // 2, coins), np.arange(coins // 2, 0, -1)
    above, below = np.cumprod((coins - up) / (up + 1.0)), np.cumprod(down / (coins - down + 1.0))
    heads = np.concatenate((below[::-1], [1.0], above))
    heads /= heads.sum()
    heads.flags.writeable = False
    return heads


def terminal_utilities(utility: FloatArray, coins: int, max_losses: int) -> FloatArray:
    """Expected utility after k = 0 … `max_losses` losses in compared contests, over the `coins` fair contests."""
    return np.correlate(utility[: max_losses + coins + 1], fair_binomial(coins), mode="valid")


def expected_utilities(losing: FloatArray, offsets: IntArray, terminal: FloatArray, kind: IntArray) -> FloatArray:
    """Expected utility of many rank distributions, without computing the distributions.

    Parameters
    ----------
    losing : array
        Loss probabilities of all contests.
    offsets : array
        First contest of each distribution, and the number of contests at the end.
    terminal : array of shape (kinds, contests + 1)
        Utility after k losses in all contests of a distribution (see `terminal_utilities`).
    kind : array
        Row of `terminal` for each distribution.

    Notes
    -----
    Backward induction: before the last contest, the utility of k losses is (1 − ℓ)·u(k) + ℓ·u(k + 1).
    """
    return BackwardInduction(offsets, terminal, kind)(losing)


class BackwardInduction:
    """`expected_utilities` as a function of the loss probabilities, with everything else laid out once."""

    def __init__(self, offsets: IntArray, terminal: FloatArray, kind: IntArray):
        counts = np.diff(offsets)
        self._arguments = offsets, terminal, kind
        self._widest = int(counts.max(initial=0))
        steps, cells = float(np.sum(counts.astype(np.float64) ** 2)), len(counts) * (self._widest + 1)
        self._is_long = steps > _PLAIN_UP_TO * 10 or cells > _PLAIN_UP_TO * 100
        if self._is_long:
            return
        # Long distributions first: those with a contest number `last` are then the first ones.
        self._order = np.argsort(-counts, kind="stable")
        begins, longest_first = offsets[self._order], counts[self._order]
        ends = [int(np.searchsorted(-longest_first, -last, side="right")) for last in range(self._widest + 1)]
        self._contests = [begins[:end] + last - 1 for last, end in enumerate(ends)]
        self._terminal = np.ascontiguousarray(terminal.T[: self._widest + 1, kind[self._order]])

    def __call__(self, losing: FloatArray) -> FloatArray:
        """The expected utility of each distribution."""
        offsets, _, _ = self._arguments
        expected = np.empty(len(offsets) - 1)
        if self._is_long:
            _expected_utilities_loop(losing, *self._arguments, expected)
            return expected
        utility = self._terminal.copy()
        for last in range(self._widest, 0, -1):
            probability = losing[self._contests[last]]
            now, after = utility[:last, : len(probability)], utility[1 : last + 1, : len(probability)]
            now += probability * (after - now)
        expected[self._order] = utility[0]
        return expected


@compiled()
def _expected_utilities_loop(losing, offsets, terminal, kind, expected):  # type: ignore[no-untyped-def]
    utility = np.empty(terminal.shape[1])
    for n in range(len(expected)):
        count = offsets[n + 1] - offsets[n]
        utility[: count + 1] = terminal[kind[n], : count + 1]
        for last in range(count, 0, -1):
            probability = losing[offsets[n] + last - 1]
            for k in range(last):
                utility[k] += probability * (utility[k + 1] - utility[k])
        expected[n] = utility[0]


WinRule = Literal["answer", "share", "printed"]

# Rounding that adding weights may leave in a tied pair.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PairwiseContests:
    """Views of items, each with the loss probabilities against the items it was compared with.

    A view is one item as seen by one unit of `AnnotatorIndex` (an annotator, or an annotator within a query).

    Parameters
    ----------
    items : Items
        The items and their queries.
    unit : array
        Unit of each view.
    item : array
        Item of each view.
    offsets : array
        First contest of each view in `losing`, and the number of contests at the end.
    losing : array
        Probability of losing each contest, before accounting for annotator errors.
    weight : array
        Weight of each view: the mean weight of its contests, 1 if every pair was answered once.
    """

    items: Items
    unit: IntArray
    item: IntArray
    offsets: IntArray
    losing: FloatArray
    weight: FloatArray

    @cached_property
    def compared(self) -> IntArray:
        """Number of contests of each view."""
        return np.diff(self.offsets)

    @cached_property
    def size(self) -> IntArray:
        """Number of items in each view's query."""
        return np.asarray(np.diff(self.items.starts)[self.items.query[self.item]])

    def losing_given_quality(self, quality: FloatArray) -> FloatArray:
        """Eq. 9: loss probabilities if the answers of unit i are correct with probability quality[i]."""
        correct = np.repeat(quality[self.unit], self.compared)
        return np.asarray(correct * self.losing + (1.0 - correct) * (1.0 - self.losing))

    def distributions(self, quality: FloatArray) -> list[FloatArray]:
        """Rank distributions, items × ranks per query: the mean over an item's views; binomial for unseen items."""
        losing, starts = self.losing_given_quality(quality), self.items.starts
        sizes = np.diff(starts)
        tables = [np.zeros((size, size)) for size in sizes.tolist()]
        total = np.bincount(self.item, self.weight, len(self.items))
        for view, (item, query) in enumerate(zip(self.item, self.items.query[self.item], strict=True)):
            own = losing[self.offsets[view] : self.offsets[view + 1]]
            fraction = self.weight[view] / total[item]
            tables[query][item - starts[query]] += fraction * rank_distribution(own, int(sizes[query]) - 1 - len(own))
        for item in np.flatnonzero(total == 0).tolist():
            query = self.items.query[item]
            tables[query][item - starts[query]] = fair_binomial(int(sizes[query]) - 1)
        return tables


class ExpectedUtilities:
    """Expected utility of each item's rank, summed over annotators, as a function of their quality."""

    def __init__(self, contests: PairwiseContests, utility: FloatArray):
        self.contests = contests
        widest = int(contests.compared.max(initial=0))
        # Utilities are at most 1, so an item's sum is at most the weight of its views.
        self.size = np.bincount(contests.item, contests.weight, len(contests.items)).astype(np.float64)
        # Views with the same numbers of items and contests share a table of terminal utilities.
        kinds, kind = np.unique(contests.size * (widest + 1) + contests.compared, return_inverse=True)
        size, compared = np.divmod(kinds, widest + 1)
        terminal = np.zeros((len(kinds), widest + 1))
        for row, (n, c) in enumerate(zip(size.tolist(), compared.tolist(), strict=True)):
            terminal[row, : c + 1] = terminal_utilities(utility, n - 1 - c, c)
        self._expected = BackwardInduction(contests.offsets, terminal, kind)
        self._uninformed = np.array([terminal_utilities(utility, n - 1, 0)[0] for n in size.tolist()])[kind]

    def __call__(self, quality: FloatArray, multiplicity: FloatArray | None = None) -> FloatArray:
        """Gain of each item over an item that was not compared, so that a missing view adds nothing.

        In a bootstrap replicate, `multiplicity` says how often each unit was drawn.
        """
        contests = self.contests
        expected = self._expected(contests.losing_given_quality(quality))
        weight = contests.weight if multiplicity is None else contests.weight * multiplicity[contests.unit]
        gain = weight * (expected - self._uninformed)
        return np.bincount(contests.item, gain, len(contests.items)).astype(np.float64)


def build_contests(comparisons: Comparisons, unit: IntArray, win_rule: WinRule) -> PairwiseContests:
    """Every answer as two contests, one per item; repeated answers to a pair are merged by weight."""
    pair_unit, first, second, fraction, weight = _merged_answers(comparisons, unit)
    size = len(comparisons.items)
    view = np.concatenate((pair_unit * size + first, pair_unit * size + second))
    opponent = np.concatenate((pair_unit * size + second, pair_unit * size + first))
    order = np.argsort(view, kind="stable")
    views, counts = np.unique(view, return_counts=True)
    view_unit, item = np.divmod(views, size)
    row, other = np.searchsorted(views, view[order]), np.searchsorted(views, opponent[order])
    won = np.concatenate((fraction, 1.0 - fraction))[order]
    if win_rule != "answer":
        won = _by_wins(won, row, other, _denominators(comparisons.items, view_unit, item, win_rule), win_rule)
    total = np.bincount(row, np.concatenate((weight, weight))[order], len(views))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return PairwiseContests(comparisons.items, view_unit, item, offsets, 1.0 - won, total / counts)


def _merged_answers(
    comparisons: Comparisons, unit: IntArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Unit, first and second item, fraction of answers for the first (a tie counts half), and weight."""
    size, counts = len(comparisons.items), comparisons.counts
    known = pair_cells(size, counts.first, counts.second)
    pair = np.searchsorted(known, pair_cells(size, comparisons.left, comparisons.right))
    cells, row = np.unique(unit * len(known) + pair, return_inverse=True)
    for_first = np.where(comparisons.left < comparisons.right, comparisons.outcome, -comparisons.outcome)
    weight = np.bincount(row, comparisons.weights, len(cells)).astype(np.float64)
    fraction = 0.5 + 0.5 * np.bincount(row, comparisons.weights * for_first, len(cells)) / weight
    pair_unit, pair = np.divmod(cells, len(known))
    return pair_unit, counts.first[pair].astype(np.int64), counts.second[pair].astype(np.int64), fraction, weight


def _by_wins(won: FloatArray, row: IntArray, other: IntArray, denominator: IntArray, win_rule: WinRule) -> FloatArray:
    """Eq. 6 from the number of contests won, corrected ("share") or as printed; a tied pair stays at ½."""
    decided = np.abs(won - 0.5) > _ROUNDING
    wins = np.bincount(row, decided & (won > 0.5), len(denominator)).astype(np.float64)
    lead = wins[row] - wins[other]
    if win_rule == "share":
        probability = 0.5 + lead / (2.0 * denominator[row])
    else:
        relative = lead / denominator[row]
        probability = np.select([lead > 0, lead < 0], [relative, 1.0 + relative], 0.5)
    return np.where(decided, probability, 0.5)


def _denominators(items: Items, unit: IntArray, item: IntArray, win_rule: WinRule) -> IntArray:
    """Per view, the number of items of its query that the annotator judged; as printed, all items of the query."""
    query = items.query[item].astype(np.int64)
    if win_rule == "printed":
        return np.asarray(np.diff(items.starts)[query])
    _, own, judged = np.unique(unit * len(items.queries) + query, return_inverse=True, return_counts=True)
    return np.asarray(judged[own])


@dataclass(frozen=True, eq=False)
class GradedPairs:
    """All pairs of items that one annotator graded in a query, as comparisons; equal grades are ties."""

    ratings: Ratings
    comparisons: Comparisons

    @classmethod
    def of(cls, ratings: Ratings) -> GradedPairs:
        """Weight a comparison by the geometric mean of the weights of its two grades (repeated grades summed)."""
        pairs = cls(ratings, ratings.to_comparisons(ties="keep"))
        weight = np.sqrt(np.prod(pairs.both_sides(ratings.weights), axis=0))
        return cls(ratings, pairs.comparisons.reweighted(weight))

    def both_sides(self, value: FloatArray) -> FloatArray:
        """A value per rating, looked up for the left and the right item of each comparison; repeated grades summed."""
        who, size = self.comparisons.annotator, len(self.ratings.items)
        assert who is not None
        assert self.ratings.annotator is not None
        cells, row = np.unique(self.ratings.annotator.astype(np.int64) * size + self.ratings.item, return_inverse=True)
        total = np.bincount(row, value)
        sides = np.stack((self.comparisons.left, self.comparisons.right))
        return np.asarray(total[np.searchsorted(cells, who.astype(np.int64) * size + sides)])

    def resampled(self, weight: FloatArray) -> Comparisons:
        """The comparisons for resampled weights of the ratings: each pair counts once per pair of copies of its grades.

        Resampling the comparisons themselves would ignore that they share grades, and overstate the evidence.
        """
        copies = self.both_sides(weight) / self.both_sides(self.ratings.weights)
        return self.comparisons.reweighted(self.comparisons.weights * np.prod(copies, axis=0))
