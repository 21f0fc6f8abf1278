"""Counts over a shard of answers, the starting values that follow from them in closed form, and votes on an order."""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array
from crowdrank.data import Comparisons, Items
from crowdrank.engines import ShardedData
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled
from crowdrank.models.crowd.likelihood import FORMULAS, MIN_PROBABILITY, Answers

# Scores that differ by less are tied. They are sums of logarithms, and rounding must not decide who agrees.
_TIED = 1e-9
# Sums of votes smaller than this are a draw: rounding must not reverse an order.
EVEN = 1e-9


def weight_by_annotator(shard: Answers, annotators: int) -> tuple[AnyArray]:
    """Total weight of each annotator's answers."""
    return (np.bincount(shard.annotator, shard.weight, annotators),)


def win_loss_counts(shard: Answers, size: int, trust: AnyArray | None) -> tuple[AnyArray, AnyArray]:
    """Wins less losses of each item, and its answers; answers are weighted by the trust in their annotator."""
    if shard.rows >= COMPILE_MIN_ROWS:
        found: tuple[AnyArray, AnyArray] = np.zeros(size), np.zeros(size)
        _win_loss_loop(*shard[:4], np.empty(0) if trust is None else trust, *found)
        return found
    weight = shard.weight if trust is None else shard.weight * trust[shard.annotator]
    won, lost = (np.bincount(side, weight, size) for side in (shard.winner, shard.loser))
    if trust is None:
        return won - lost, won + lost
    absolute = np.abs(weight)
    return won - lost, np.bincount(shard.winner, absolute, size) + np.bincount(shard.loser, absolute, size)


@compiled()
def _win_loss_loop(winner, loser, annotator, weight, trust, net, total):  # type: ignore[no-untyped-def]
    for row in range(len(winner)):
        counts = weight[row] * trust[annotator[row]] if len(trust) else weight[row]
        net[winner[row]] += counts
        net[loser[row]] -= counts
        total[winner[row]] += abs(counts)
        total[loser[row]] += abs(counts)


def agreement_counts(shard: Answers, scores: AnyArray, annotators: int) -> tuple[AnyArray, AnyArray]:
    """Answers of each annotator that agree with the scores less those that disagree, and all their answers.

    Answers about tied scores count as neither.
    """
    if shard.rows >= COMPILE_MIN_ROWS:
        found: tuple[AnyArray, AnyArray] = np.zeros(annotators), np.zeros(annotators)
        _agreement_loop(*shard[:4], scores, *found)
        return found
    margin = scores[shard.winner] - scores[shard.loser]
    sign = np.where(np.abs(margin) > _TIED, np.sign(margin), 0.0)
    return np.bincount(shard.annotator, sign * shard.weight, annotators), weight_by_annotator(shard, annotators)[0]


@compiled()
def _agreement_loop(winner, loser, annotator, weight, scores, net, total):  # type: ignore[no-untyped-def]
    for row in range(len(winner)):
        k, w = annotator[row], weight[row]
        margin = scores[winner[row]] - scores[loser[row]]
        if abs(margin) > _TIED:
            net[k] += w * np.sign(margin)
        total[k] += w


def sampled_log_likelihoods(
    shard: Answers, candidates: list[tuple[AnyArray, AnyArray]], formula: int, every: int
) -> tuple[AnyArray]:
    """Log-likelihood of every `every`-th answer at each candidate (scores, logits), without features."""
    rows = slice(-shard.start % every, None, every)
    winner, loser, who, weight = (column[rows] for column in shard[:4])
    found = np.empty(len(candidates))
    for n, (scores, logits) in enumerate(candidates):
        probability = FORMULAS[formula](scores[winner] - scores[loser], logits[who], 0.0)[0]
        found[n] = weight @ np.log(np.maximum(probability, MIN_PROBABILITY))
    return (found,)


def initial_scores(shards: ShardedData, items: Items, trust: FloatArray | None = None) -> FloatArray:
    """Log odds of winning, as if all opponents were average; answers weighted by the trust in their annotator."""
    net, total = shards.sum(win_loss_counts, len(items), trust)
    return items.centre(np.log((total + net + 1) / (total - net + 1)))


def agreement_logits(shards: ShardedData, scores: FloatArray, annotators: int) -> FloatArray:
    """Logit of the share of each annotator's answers that agree with the scores, with 2 right and 1 wrong added."""
    net, total = shards.sum(agreement_counts, scores, annotators)
    return np.asarray(np.log((total + net + 4) / (total - net + 2)))


def gold_accuracy(comparisons: Comparisons, better: Int32Array, worse: Int32Array) -> FloatArray:
    """Share of right answers of each annotator on gold pairs (Chen et al. 2013, §3.3); ½ if they answered none."""
    size = len(comparisons.items)
    truth = np.sort(better.astype(np.int64) * size + worse)
    annotators = max(1, len(comparisons.annotators))
    who = np.zeros(len(comparisons), np.int32) if comparisons.annotator is None else comparisons.annotator
    left_won = comparisons.outcome > 0
    winner = np.where(left_won, comparisons.left, comparisons.right).astype(np.int64)
    loser = np.where(left_won, comparisons.right, comparisons.left).astype(np.int64)
    weight = np.where(comparisons.outcome == 0, 0.0, comparisons.weights)
    right = np.bincount(who, weight * np.isin(winner * size + loser, truth), annotators)
    wrong = np.bincount(who, weight * np.isin(loser * size + winner, truth), annotators)
    return np.asarray(np.divide(right, right + wrong, out=np.full(annotators, 0.5), where=right + wrong > 0))


def is_reversed(agreed: FloatArray, judged: FloatArray) -> bool:
    """Whether the majority of annotators contradicts the order, so that its sign should be flipped.

    `agreed` is the weight of each annotator's answers that agree with the order, `judged` the weight of all of them.
    Every annotator has one vote, however many answers they gave: a few annotators who always answer in reverse must not
    outvote many who are right more often than not.
    """
    return float(np.sum(annotator_votes(agreed, judged))) < -EVEN


def annotator_votes(agreed: FloatArray, judged: FloatArray) -> FloatArray:
    """1 for annotators who agree with the order, −1 for those who contradict it, in between if that is uncertain.

    A vote is full from posterior odds of three to one on (uniform prior on the share that agrees). Without that cap a
    few certain annotators would outvote many; by the sign alone, those who guess would count fully.
    """
    from scipy.special import betainc

    against = betainc(agreed + 1.0, judged - agreed + 1.0, 0.5)
    return np.asarray(np.clip(2.0 * (1.0 - 2.0 * against), -1.0, 1.0))
