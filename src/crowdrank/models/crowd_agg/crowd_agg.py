"""Niu et al. 2015 (CrowdAgg): the order whose expected NDCG, or RBP, is largest over what annotators' answers allow."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Items, Judgments, Ratings
from crowdrank.engines import LOCAL, Engine
from crowdrank.errors import DataWarning, SettingError
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
from crowdrank.models.crowd.sign_resolution import EVEN, annotator_votes
from crowdrank.models.crowd_agg.contests import GradedPairs, Reading, contests_of
from crowdrank.models.crowd_agg.query_blocks import Blocks, Seats
from crowdrank.results import Convergence, Ranking, Uncertainty
from crowdrank.results.uncertainty import RankDistributions

_UNIT = "of some annotator's quality still moving"


@dataclass(frozen=True, kw_only=True)
class CrowdAgg(Model):
    """Items by what they can expect of a measure's discount, over the ranks that each annotator's answers allow.

    In turn: items are ordered by expected discount, and an annotator's quality is the share of answers that agree with
    the order.

    >>> grades = Ratings.of(["a", "b", "c", "a", "b"], [3, 2, 0, 2, 1], annotator=["x", "x", "x", "y", "y"])
    >>> CrowdAgg().fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[tuple[type, ...]] = (Comparisons, Ratings)
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True

    measure: Literal["ndcg", "rbp"] = "ndcg"
    """Whose discount of ranks: 1/log₂(2 + r) or (1 − p)·pʳ for r items above. The order hardly depends on it."""
    persistence: float = 0.95
    """RBP's p, the chance to look at the next item."""
    reading: Literal["auto", "answer", "share", "printed"] = "auto"
    """Eq. 6: the answer, the lead in wins by items judged, or as printed; "auto" is answer, and share for ratings."""
    quality_prior: tuple[float, float] | None = (10.0, 5.0)
    """Beta prior on quality: right and wrong answers each annotator is credited with; None for none, as published."""
    pooled: bool = True
    """One quality an annotator; if False, one for each query, as published."""
    head_count: bool = True
    """Where more annotators go against the order than with it, start again from the other side."""
    tolerance: float = 1e-9
    """Two scores closer than this share of the largest of their query are tied."""
    max_steps: int = 100
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        check_solver(self)
        if self.measure not in ("ndcg", "rbp"):
            raise SettingError(f"measure must be ndcg or rbp, got {self.measure!r}.")
        if not 0 < self.persistence < 1:
            raise SettingError(f"persistence must lie between 0 and 1, got {self.persistence}.")
        if self.reading not in ("auto", "answer", "share", "printed"):
            raise SettingError(f"reading must be auto, answer, share or printed, got {self.reading!r}.")
        prior = self.quality_prior
        if prior is not None and not (len(prior) == 2 and min(prior) > 0):
            raise SettingError(f"quality_prior must be two positive numbers or None, got {prior!r}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        read = self._read(judgments)
        blocks = self._blocks(read, options.engine)
        settled = self._settle(blocks)
        ranking = build_ranking(
            self,
            judgments,
            settled.scores,
            convergence=settled.convergence,
            parameters={"cycle": settled.cycle},
            measure=lambda: self._measure(judgments, read, blocks, options.engine),
        )
        ranking = ranking.with_parts(notes=lambda: diagnose(judgments).notes() + settled.notes())
        return with_annotators(ranking, judgments, lambda: {"quality": self._qualities(blocks.seats, settled)})

    def rank_distributions(self, judgments: Judgments) -> RankDistributions:
        """The chance of every rank for every item, by the quality found: the mean over those who compared the item."""
        read = self._read(judgments)
        blocks = self._blocks(read, LOCAL)
        contests = contests_of(read.comparisons, blocks.seats.of_row, read.reading)
        return RankDistributions(judgments.items, contests.distributions(self._settle(blocks).quality))

    def _read(self, judgments: Judgments) -> Read:
        if self.reading == "printed":
            warnings.warn(
                "crowd-agg: eq. 6 as printed takes a narrow win for a defeat; the other readings rank better.",
                DataWarning,
                stacklevel=3,
            )
        if isinstance(judgments, Ratings):
            pairs = GradedPairs.of(require_kind(Ratings, judgments, self))
            return Read(pairs.comparisons, "share" if self.reading == "auto" else self.reading, pairs.redrawn)
        comparisons = require_kind(Comparisons, judgments, self)
        return Read(comparisons, "answer" if self.reading == "auto" else self.reading, comparisons.reweighted)

    def _blocks(self, read: Read, engine: Engine) -> Blocks:
        return Blocks.of(read.comparisons, self.pooled, read.reading, self._utility(read.comparisons.items), engine)

    def _settle(self, blocks: Blocks, drawn: FloatArray | None = None) -> Settled:
        """Where the alternation ends; if heads are against that, where it ends from the other side."""
        found = self._alternate(blocks, drawn, np.ones(len(blocks.seats)))
        if not self.head_count:
            return found
        heads = np.bincount(blocks.seats.group, found.votes(drawn))
        against = heads[blocks.seats.group] < -EVEN
        if not np.any(against):
            return found
        start = np.where(against, 1.0 - found.quality, found.quality)
        other = self._alternate(blocks, drawn, start)
        return other if np.sum(other.votes(drawn)) > np.sum(heads) + EVEN else found

    def _alternate(self, blocks: Blocks, drawn: FloatArray | None, start: FloatArray) -> Settled:
        """Order and quality in turn, until an order comes again: then all that follows does."""
        seen: dict[bytes, int] = {}
        qualities = [start]
        for step in range(self.max_steps):
            turn = blocks.turn(qualities[step], drawn, self.tolerance)
            qualities.append(self._quality(turn.agreed, blocks.judged))
            first = seen.setdefault(turn.sides, step)
            if first < step:
                return self._ended(blocks, drawn, np.array(qualities[first + 1 : step + 1]), step + 1)
        moved = float(np.max(np.abs(qualities[-1] - qualities[-2])))
        short = Convergence(False, self.max_steps, moved, _UNIT)
        return Settled(turn.scores, qualities[-2], turn.agreed, blocks.judged, short)

    def _ended(self, blocks: Blocks, drawn: FloatArray | None, cycle: FloatArray, steps: int) -> Settled:
        """What orders by the mean quality of a cycle, which is mostly of one."""
        quality, swing = cycle.mean(axis=0), float(np.max(np.ptp(cycle, axis=0)))
        turn = blocks.turn(quality, drawn, self.tolerance)
        found = Convergence(True, steps, swing, _UNIT)
        return Settled(turn.scores, quality, turn.agreed, blocks.judged, found, len(cycle))

    def _quality(self, agreed: FloatArray, judged: FloatArray) -> FloatArray:
        """Eq. 17 with the prior counted in; 1, as at the start, where nothing is known."""
        right, wrong = self.quality_prior or (0.0, 0.0)
        known = judged + right + wrong
        return np.divide(agreed + right, known, out=np.ones(len(judged)), where=known > 0)

    def _utility(self, items: Items) -> FloatArray:
        """The discount of r = 0, 1, … items above; log(2 + r), for log(1 + 0) would divide by zero."""
        above = np.arange(int(np.max(np.diff(items.starts))))
        if self.measure == "ndcg":
            return np.asarray(1.0 / np.log2(2.0 + above))
        return np.asarray((1.0 - self.persistence) * self.persistence**above)

    def _qualities(self, seats: Seats, settled: Settled) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Each annotator's over all queries, with the 95 % interval of the posterior (of a uniform prior, for None)."""
        from scipy.special import betaincinv

        agreed, judged = seats.by_annotator(settled.agreed), seats.by_annotator(settled.judged)
        quality = self._quality(agreed, judged)
        right, wrong = self.quality_prior or (1.0, 1.0)
        low, high = (betaincinv(agreed + right, judged - agreed + wrong, end) for end in (0.025, 0.975))
        return quality, np.minimum(low, quality), np.maximum(high, quality)

    def _measure(self, judgments: Judgments, read: Read, blocks: Blocks, engine: Engine) -> Uncertainty:
        """Annotators drawn anew, the twice drawn counting twice; where they are few, judgments drawn anew."""
        items = judgments.items

        def redrawn(weight: FloatArray) -> FloatArray:
            spoken = _spoken(judgments, judgments.weights)
            times = np.divide(_spoken(judgments, weight), spoken, out=np.zeros(len(spoken)), where=spoken > 0)
            return items.centre(self._settle(blocks, times[blocks.seats.annotator]).scores)

        def refitted(weight: FloatArray) -> FloatArray:
            again = replace(read, comparisons=read.redraw(weight))
            if not len(again.comparisons):
                return np.zeros(len(items))
            return items.centre(self._settle(self._blocks(again, engine)).scores)

        return bootstrap_weights(judgments, redrawn if by_annotator(judgments) else refitted, seed=self.seed)


def _spoken(judgments: Judgments, weight: FloatArray) -> FloatArray:
    """What each annotator's judgments weigh."""
    assert judgments.annotator is not None
    return np.bincount(judgments.annotator, weight, len(judgments.annotators)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Read:
    """Judgments as comparisons, and how these are read."""

    comparisons: Comparisons
    reading: Reading
    redraw: Callable[[FloatArray], Comparisons]
    """The comparisons when the judgments, drawn anew, weigh this."""


@dataclass(frozen=True, eq=False)
class Settled:
    """Where the turns ended: in one order, or going round a cycle of several, of whose qualities this is the mean."""

    scores: FloatArray
    quality: FloatArray
    agreed: FloatArray
    judged: FloatArray
    convergence: Convergence
    cycle: int = 1

    def votes(self, drawn: FloatArray | None) -> FloatArray:
        """With the order or against it, each seat as often as it was drawn."""
        heads = annotator_votes(self.agreed, self.judged)
        return heads if drawn is None else heads * drawn

    def notes(self) -> list[str]:
        if self.cycle == 1:
            return []
        swing = self.convergence.distance
        return [
            f"The turns end in a cycle of {self.cycle} orders, qualities swinging by up to {swing:.2g}: "
            "this is the order by their mean."
        ]
