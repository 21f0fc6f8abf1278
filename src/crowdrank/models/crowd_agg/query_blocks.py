"""The data of CrowdAgg in blocks of queries, held by an engine: contests of items, and preferences of annotators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.data.pair_counts import ROUNDING
from crowdrank.engines import Engine, ShardedData
from crowdrank.engines.local import MAX_PIECES
from crowdrank.models.crowd_agg.contests import ExpectedUtilities, WinRule, build_contests

Codes = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class AnnotatorIndex:
    """Units that have a quality of their own: annotators, or annotators within a query.

    Parameters
    ----------
    unit : array
        Unit of each comparison.
    annotator : array
        Annotator of each unit.
    group : array
        Group of units that judge the same items: one for all, or one per query.
    n_annotators : int
        Number of annotators.
    """

    unit: IntArray
    annotator: IntArray
    group: IntArray
    n_annotators: int

    @classmethod
    def of(cls, comparisons: Comparisons, pooled: bool) -> AnnotatorIndex:
        """Index the comparisons; without annotators, all are treated as one annotator's."""
        named = comparisons.annotator
        who = np.zeros(len(comparisons), np.int64) if named is None else named.astype(np.int64)
        n_annotators = max(1, len(comparisons.annotators))
        if pooled:
            return cls(who, np.arange(n_annotators), np.zeros(n_annotators, np.int64), n_annotators)
        queries = len(comparisons.items.queries)
        units, row = np.unique(who * queries + comparisons.items.query[comparisons.left], return_inverse=True)
        return cls(row, *np.divmod(units, queries), n_annotators)

    def __len__(self) -> int:
        return len(self.annotator)

    def by_annotator(self, value: FloatArray) -> FloatArray:
        """Sums of a value of the units, per annotator."""
        return np.bincount(self.annotator, value, self.n_annotators).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Preferences:
    """The answers that are not ties, as winner and loser with their unit and weight."""

    items: Items
    winner: IntArray
    loser: IntArray
    unit: IntArray
    weight: FloatArray
    n_units: int

    @classmethod
    def of(cls, comparisons: Comparisons, unit: IntArray, n_units: int) -> Preferences:
        rows = np.flatnonzero(comparisons.outcome)
        left, right, left_won = comparisons.left[rows], comparisons.right[rows], comparisons.outcome[rows] > 0
        return cls(
            comparisons.items,
            np.where(left_won, left, right),
            np.where(left_won, right, left),
            unit[rows],
            comparisons.weights[rows],
            n_units,
        )

    def agreement(self, scores: FloatArray, tolerance: float, size: FloatArray) -> npt.NDArray[np.int8]:
        """1 where the scores agree with an answer, -1 where they disagree, 0 where they tie the two items."""
        return compare_scores(self.items, scores, self.winner, self.loser, tolerance, size)

    def agreed_weight(self, agreement: npt.NDArray[np.int8]) -> FloatArray:
        """Weight of each unit's answers that agree with the scores; half of it where scores tie."""
        return np.bincount(self.unit, self.weight * (0.5 + 0.5 * agreement), self.n_units).astype(np.float64)


def compare_scores(
    items: Items, scores: FloatArray, one: Codes, other: Codes, tolerance: float, size: FloatArray
) -> npt.NDArray[np.int8]:
    """Sign of the score difference of pairs of items, 0 if they are tied.

    Scores are tied if they are closer than `tolerance` × the largest absolute score of their query. If all scores of a
    query cancel to zero, that largest is rounding itself, so the rounding of the terms counts, too: `size` is the sum
    of the absolute values of an item's terms.
    """
    margin_needed = np.maximum(tolerance * np.abs(scores), ROUNDING * size)
    margin_needed = np.maximum.reduceat(margin_needed, items.starts[:-1])[items.query]
    margin = scores[one] - scores[other]
    return np.where(np.abs(margin) > margin_needed[one], np.sign(margin), 0.0).astype(np.int8)


# Answers per block below which a block of its own does not pay.
_MIN_ROWS = 100_000


class BlockAnswers(NamedTuple):
    """The answers of consecutive queries, with items coded from 0.

    `units` are the units that answered, as codes of `AnnotatorIndex`; `unit` is the position in `units` per comparison.
    """

    comparisons: Comparisons
    units: IntArray
    unit: IntArray


class Block(NamedTuple):
    """The same answers as contests of items and as preferences of annotators."""

    units: IntArray
    utilities: ExpectedUtilities
    preferences: Preferences


class AlternationStep(NamedTuple):
    """Scores given the qualities, and the agreement of the annotators with them.

    Parameters
    ----------
    scores : array
        Score of each item.
    agreed : array
        Weight of each unit's answers that agree with the scores.
    order_digest : bytes
        Hash of the order of all compared pairs: equal for equal orders.
    """

    scores: FloatArray
    agreed: FloatArray
    order_digest: bytes


@dataclass(frozen=True, eq=False)
class QueryBlocks:
    """All answers, in blocks of queries held by an engine.

    Parameters
    ----------
    index : AnnotatorIndex
        The units with a quality.
    judged : array
        Weight of each unit's answers that are not ties.
    members : sequence of arrays
        Units of each block.
    held : Held
        The blocks.
    """

    index: AnnotatorIndex
    judged: FloatArray
    members: Sequence[IntArray]
    held: ShardedData

    @classmethod
    def of(
        cls, comparisons: Comparisons, pooled: bool, win_rule: WinRule, utility: FloatArray, engine: Engine
    ) -> QueryBlocks:
        index = AnnotatorIndex.of(comparisons, pooled)
        pieces = list(_split_by_query(comparisons, index))
        held, _ = engine.distribute(pieces).map_and_sum(_build_block, win_rule, utility)
        weight = np.where(comparisons.outcome == 0, 0.0, comparisons.weights)
        judged = np.bincount(index.unit, weight, len(index)).astype(np.float64)
        return cls(index, judged, [piece.units for piece in pieces], held)

    def step(self, quality: FloatArray, multiplicity: FloatArray | None, tolerance: float) -> AlternationStep:
        """Scores given the quality of the units, and who agrees with them; `multiplicity` as in a bootstrap."""
        (steps,) = self.held.sum(_block_step, quality, multiplicity, tolerance)
        agreed = np.zeros(len(self.index))
        for units, step in zip(self.members, steps, strict=True):
            agreed[units] += step.agreed
        scores = np.concatenate([step.scores for step in steps])
        return AlternationStep(scores, agreed, b"".join(step.order_digest for step in steps))


def _split_by_query(comparisons: Comparisons, index: AnnotatorIndex) -> Iterator[BlockAnswers]:
    """Blocks of consecutive queries with about equally many answers; the cuts depend only on the data."""
    items, query = comparisons.items, comparisons.items.query[comparisons.left]
    blocks = min(MAX_PIECES, max(1, len(comparisons) // _MIN_ROWS))
    answered = np.append(0, np.cumsum(np.bincount(query, minlength=len(items.queries))))
    cuts = np.searchsorted(answered, np.linspace(0, len(comparisons), blocks + 1)[1:-1])
    order = np.argsort(query, kind="stable")
    within = cuts[answered[cuts] < len(comparisons)]
    for a, b in pairwise(np.unique([0, *within, len(items.queries)])):
        rows, first = order[answered[a] : answered[b]], int(items.starts[a])
        units, unit = np.unique(index.unit[rows], return_inverse=True)
        part = Comparisons(
            items=items.query_range(a, b),
            left=comparisons.left[rows] - first,
            right=comparisons.right[rows] - first,
            outcome=comparisons.outcome[rows],
            weight=None if comparisons.weight is None else comparisons.weight[rows],
        )
        yield BlockAnswers(part, units, unit)


def _build_block(answers: BlockAnswers, win_rule: WinRule, utility: FloatArray) -> tuple[Block, tuple[()]]:
    contests = build_contests(answers.comparisons, answers.unit, win_rule)
    preferences = Preferences.of(answers.comparisons, answers.unit, len(answers.units))
    return Block(answers.units, ExpectedUtilities(contests, utility), preferences), ()


def _block_step(
    block: Block, quality: FloatArray, multiplicity: FloatArray | None, tolerance: float
) -> tuple[list[AlternationStep]]:
    scores = block.utilities(quality[block.units], None if multiplicity is None else multiplicity[block.units])
    agreement = block.preferences.agreement(scores, tolerance, block.utilities.size)
    digest = sha256(agreement.tobytes()).digest()
    return ([AlternationStep(scores, block.preferences.agreed_weight(agreement), digest)],)
