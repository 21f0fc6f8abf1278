"""CrowdAgg (Niu et al. 2015): the order with the largest expected NDCG or RBP, given the annotators' answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items, Judgments, Ratings
from crowdrank.data.pair_counts import ROUNDING
from crowdrank.engines import LOCAL, Engine, ShardedData
from crowdrank.engines.local import MAX_PIECES
from crowdrank.errors import DataWarning, SettingError, issue_warning
from crowdrank.models.base import (
    FitOptions,
    Model,
    build_ranking,
    check_solver,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.bootstrap import bootstrap_weights, by_annotator
from crowdrank.models.crowd.contests import ExpectedUtilities, GradedPairs, WinRule, build_contests
from crowdrank.models.crowd.encoding import EVEN, annotator_votes
from crowdrank.results import Convergence, Ranking, Uncertainty
from crowdrank.results.parts import RankDistributions

# The data of CrowdAgg in blocks of queries, held by an engine: contests of items, and preferences of annotators.

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


_CONVERGENCE_UNIT = "of change in an annotator's quality in the last step"


@dataclass(frozen=True, kw_only=True)
class CrowdAgg(Model):
    """Order items by the expected discount of NDCG or RBP under rank distributions from the annotators' answers.

    Parameters
    ----------
    measure : {"ndcg", "rbp"}, default "ndcg"
        Metric whose expected value is maximised: its discount of ranks is 1/log₂(2 + r) or (1 − p)·pʳ for r items
        above. The order hardly depends on it.
    persistence : float, default 0.95
        RBP's p, the probability of reading on to the next item.
    win_rule : {"auto", "answer", "share", "printed"}, default "auto"
        How eq. 6 turns answers into win probabilities: the answer itself; ½ plus half the lead in wins divided by the
        number of items judged ("share"); or the equation as printed. "auto" is "share" for ratings, else "answer".
    quality_prior : tuple of two floats or None, default (10.0, 5.0)
        Beta prior on quality: pseudo-counts of correct and wrong answers per annotator. None for no prior, as
        published.
    pooled : bool, default True
        Estimate one quality per annotator; if False, one per annotator and query, as published.
    resolve_sign : bool, default True
        If more annotators disagree with the order than agree, restart from the opposite qualities and keep the solution
        that more annotators agree with.
    tolerance : float, default 1e-9
        Two scores closer than this fraction of the largest one of their query are tied.
    max_steps : int, default 100
        Maximum number of alternations between order and quality.
    seed : int, default 0
        Seed of the bootstrap.

    Notes
    -----
    An answer is correct with probability q, the annotator's quality, so the rank of an item in an annotator's view is a
    Poisson binomial (Algorithms 1 and 2). The fit alternates: order the items by the sum of expected discounts over
    annotators; set each quality to the fraction of answers that agree with the order (eq. 17), plus the prior. It ends
    when an order repeats. `ranking.parameters["cycle"]` is the length of the cycle, 1 for a fixed point.

    Reference: Niu et al. (2015), Listwise approach for rank aggregation in crowdsourcing.

    Examples
    --------
    >>> grades = Ratings.of(["a", "b", "c", "a", "b"], [3, 2, 0, 2, 1], annotator=["x", "x", "x", "y", "y"])
    >>> CrowdAgg().fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[tuple[type, ...]] = (Comparisons, Ratings)
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True

    measure: Literal["ndcg", "rbp"] = "ndcg"
    persistence: float = 0.95
    win_rule: Literal["auto", "answer", "share", "printed"] = "auto"
    quality_prior: tuple[float, float] | None = (10.0, 5.0)
    pooled: bool = True
    resolve_sign: bool = True
    tolerance: float = 1e-9
    max_steps: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        check_solver(self)
        if self.measure not in ("ndcg", "rbp"):
            raise SettingError(f"measure must be ndcg or rbp, got {self.measure!r}.")
        if not 0 < self.persistence < 1:
            raise SettingError(f"persistence must lie between 0 and 1, got {self.persistence}.")
        if self.win_rule not in ("auto", "answer", "share", "printed"):
            raise SettingError(f"win_rule must be auto, answer, share or printed, got {self.win_rule!r}.")
        prior = self.quality_prior
        if prior is not None and not (len(prior) == 2 and min(prior) > 0):
            raise SettingError(f"quality_prior must be two positive numbers or None, got {prior!r}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        pairs = self._as_pairs(judgments)
        blocks = self._blocks(pairs, options.engine)
        result = self._run(blocks)
        ranking = build_ranking(
            self,
            judgments,
            result.scores,
            convergence=result.convergence,
            parameters={"cycle": result.cycle},
            measure=lambda: self._uncertainty(judgments, pairs, blocks, options.engine),
        )
        ranking = ranking.with_parts(notes=lambda: diagnose(judgments).notes() + result.notes())
        return with_annotators(ranking, judgments, lambda: {"quality": self._quality_estimates(blocks.index, result)})

    def rank_distributions(self, judgments: Judgments) -> RankDistributions:
        """Probability of every rank of every item, at the estimated qualities.

        Parameters
        ----------
        judgments : Comparisons or Ratings
            The judgments.

        Returns
        -------
        RankDistributions
            The mean over the annotators who compared an item.
        """
        pairs = self._as_pairs(judgments)
        blocks = self._blocks(pairs, LOCAL)
        contests = build_contests(pairs.comparisons, blocks.index.unit, pairs.win_rule)
        return RankDistributions(judgments.items, contests.distributions(self._run(blocks).quality))

    def _as_pairs(self, judgments: Judgments) -> PairwiseJudgments:
        if self.win_rule == "printed":
            issue_warning(
                "crowd-agg: eq. 6 as printed treats a narrow win as a defeat; the other win rules rank better.",
                DataWarning,
                stacklevel=3,
            )
        if isinstance(judgments, Ratings):
            pairs = GradedPairs.of(require_kind(Ratings, judgments, self))
            rule = "share" if self.win_rule == "auto" else self.win_rule
            return PairwiseJudgments(pairs.comparisons, rule, pairs.resampled)
        comparisons = require_kind(Comparisons, judgments, self)
        rule = "answer" if self.win_rule == "auto" else self.win_rule
        return PairwiseJudgments(comparisons, rule, comparisons.reweighted)

    def _blocks(self, pairs: PairwiseJudgments, engine: Engine) -> QueryBlocks:
        utility = self._utility(pairs.comparisons.items)
        return QueryBlocks.of(pairs.comparisons, self.pooled, pairs.win_rule, utility, engine)

    def _run(self, blocks: QueryBlocks, multiplicity: FloatArray | None = None) -> AlternationResult:
        """Alternate from perfect qualities; if most annotators disagree with the result, from opposite ones, too."""
        result = self._alternate(blocks, multiplicity, np.ones(len(blocks.index)))
        if not self.resolve_sign:
            return result
        majority = np.bincount(blocks.index.group, result.votes(multiplicity))
        outvoted = majority[blocks.index.group] < -EVEN
        if not np.any(outvoted):
            return result
        start = np.where(outvoted, 1.0 - result.quality, result.quality)
        other = self._alternate(blocks, multiplicity, start)
        return other if np.sum(other.votes(multiplicity)) > np.sum(majority) + EVEN else result

    def _alternate(self, blocks: QueryBlocks, multiplicity: FloatArray | None, start: FloatArray) -> AlternationResult:
        """Alternate order and quality until an order repeats; from then on everything repeats."""
        seen: dict[bytes, int] = {}
        qualities = [start]
        for number in range(self.max_steps):
            step = blocks.step(qualities[number], multiplicity, self.tolerance)
            qualities.append(self._quality(step.agreed, blocks.judged))
            first = seen.setdefault(step.order_digest, number)
            if first < number:
                cycle = np.array(qualities[first + 1 : number + 1])
                return self._cycle_result(blocks, multiplicity, cycle, number + 1)
        change = float(np.max(np.abs(qualities[-1] - qualities[-2])))
        convergence = Convergence(False, self.max_steps, change, _CONVERGENCE_UNIT)
        return AlternationResult(step.scores, qualities[-2], step.agreed, blocks.judged, convergence)

    def _cycle_result(
        self, blocks: QueryBlocks, multiplicity: FloatArray | None, cycle: FloatArray, steps: int
    ) -> AlternationResult:
        """The order at the mean quality of the cycle, which usually has length one."""
        quality, amplitude = cycle.mean(axis=0), float(np.max(np.ptp(cycle, axis=0)))
        step = blocks.step(quality, multiplicity, self.tolerance)
        convergence = Convergence(True, steps, amplitude, _CONVERGENCE_UNIT)
        return AlternationResult(step.scores, quality, step.agreed, blocks.judged, convergence, len(cycle))

    def _quality(self, agreed: FloatArray, judged: FloatArray) -> FloatArray:
        """Eq. 17 with the prior's pseudo-counts; 1, the starting value, without any count."""
        correct, wrong = self.quality_prior or (0.0, 0.0)
        total = judged + correct + wrong
        return np.divide(agreed + correct, total, out=np.ones(len(judged)), where=total > 0)

    def _utility(self, items: Items) -> FloatArray:
        """The discount for r = 0, 1, … items above; log(2 + r), because log(1 + 0) would divide by zero."""
        above = np.arange(int(np.max(np.diff(items.starts))))
        if self.measure == "ndcg":
            return np.asarray(1.0 / np.log2(2.0 + above))
        return np.asarray((1.0 - self.persistence) * self.persistence**above)

    def _quality_estimates(
        self, index: AnnotatorIndex, result: AlternationResult
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Each annotator's quality over all queries, with a 95 % posterior interval (uniform prior if None)."""
        from scipy.special import betaincinv

        agreed, judged = index.by_annotator(result.agreed), index.by_annotator(result.judged)
        quality = self._quality(agreed, judged)
        correct, wrong = self.quality_prior or (1.0, 1.0)
        low, high = (betaincinv(agreed + correct, judged - agreed + wrong, end) for end in (0.025, 0.975))
        return quality, np.minimum(low, quality), np.maximum(high, quality)

    def _uncertainty(
        self, judgments: Judgments, pairs: PairwiseJudgments, blocks: QueryBlocks, engine: Engine
    ) -> Uncertainty:
        """Bootstrap over annotators; over judgments if there are few annotators."""
        items = judgments.items

        def refit_with_multiplicity(weight: FloatArray) -> FloatArray:
            # Resampled annotators only change how often a unit counts, so the contests need not be built again.
            total = _annotator_weight(judgments, judgments.weights)
            drawn = np.divide(_annotator_weight(judgments, weight), total, out=np.zeros(len(total)), where=total > 0)
            return items.centre(self._run(blocks, drawn[blocks.index.annotator]).scores)

        def refit(weight: FloatArray) -> FloatArray:
            replicate = replace(pairs, comparisons=pairs.resample(weight))
            if not len(replicate.comparisons):
                return np.zeros(len(items))
            return items.centre(self._run(self._blocks(replicate, engine)).scores)

        chosen = refit_with_multiplicity if by_annotator(judgments) else refit
        return bootstrap_weights(judgments, chosen, seed=self.seed)


def _annotator_weight(judgments: Judgments, weight: FloatArray) -> FloatArray:
    """Total weight of each annotator's judgments."""
    assert judgments.annotator is not None
    return np.bincount(judgments.annotator, weight, len(judgments.annotators)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class PairwiseJudgments:
    """Judgments as comparisons.

    Parameters
    ----------
    comparisons : Comparisons
        The judgments themselves, or all pairs of ratings.
    win_rule : {"answer", "share", "printed"}
        How answers become win probabilities.
    resample : callable
        Maps resampled weights of the judgments to comparisons.
    """

    comparisons: Comparisons
    win_rule: WinRule
    resample: Callable[[FloatArray], Comparisons]


@dataclass(frozen=True, eq=False)
class AlternationResult:
    """End of the alternation: a fixed point, or a cycle of several orders and the order at its mean quality."""

    scores: FloatArray
    quality: FloatArray
    agreed: FloatArray
    judged: FloatArray
    convergence: Convergence
    cycle: int = 1

    def votes(self, multiplicity: FloatArray | None) -> FloatArray:
        """Vote of each unit for (positive) or against the order, times its multiplicity."""
        vote = annotator_votes(self.agreed, self.judged)
        return vote if multiplicity is None else vote * multiplicity

    def notes(self) -> list[str]:
        if self.cycle == 1:
            return []
        amplitude = self.convergence.distance
        return [
            f"The alternation ended in a cycle of {self.cycle} orders (qualities vary by up to {amplitude:.2g}); "
            "the ranking uses their mean quality."
        ]
