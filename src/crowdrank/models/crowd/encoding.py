"""Comparisons as rows of winner, loser and annotator, the form that the likelihoods of this package read.

The sampler reads them indexed by item and by annotator.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array
from crowdrank.data import Comparisons, EncodedSideInformation, Items
from crowdrank.data.side_information import NO_SIDE_INFORMATION
from crowdrank.engines import ShardedData
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled
from crowdrank.errors import SettingError
from crowdrank.models.crowd.likelihood import CROWD_BT, FORMULAS, MIN_PROBABILITY, Answers

Ties = Literal["drop", "half"]
Start = Literal["several", "one", "gold"]

# With at most this many possible (annotator, winner, loser), equal answers can be counted in a table.
_MAX_CELLS = 1 << 24
# From this many annotators on, their parameters outgrow the cache, and sorting answers by annotator pays off.
_MANY_ANNOTATORS = 50_000


class FeatureEncoder(Protocol):
    """Makes the feature matrix of some comparisons: one column per feature, positive where it favours the left item."""

    def __len__(self) -> int: ...

    def __call__(self, comparisons: Comparisons) -> FloatArray: ...


def check_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        raise SettingError(f"ties must be drop or half, got {ties!r}.")


def select_judgments(comparisons: Comparisons, ties: Ties) -> Comparisons:
    """The comparisons that a model uses: without ties if they are dropped, unless there are only ties."""
    if ties == "half" or comparisons.ties == len(comparisons):
        return comparisons
    return comparisons.decided


def answer_table(
    comparisons: Comparisons,
    features: FeatureEncoder | None = None,
    ties: Ties = "half",
    known: EncodedSideInformation = NO_SIDE_INFORMATION,
) -> Any:
    """The answers as a table for an engine, in memory or in chunks. Equal answers are merged where that pays off."""
    rows = select_judgments(comparisons, ties)
    people, size = max(1, len(comparisons.annotators)), len(comparisons.items)
    if features is None and people * size**2 <= min(len(rows) // 2, _MAX_CELLS):
        own = _merge_equal(rows, people, size)
    else:
        own = rows.map_chunks(partial(_encode, features=features))
        if people >= _MANY_ANNOTATORS and isinstance(own, Answers):
            own = own.sorted_by_annotator()
    gold = _gold_answers(comparisons, known, 0 if features is None else len(features))
    return own if gold is None else own.joined(gold)


def encode_answers(
    comparisons: Comparisons,
    features: FeatureEncoder | None = None,
    ties: Ties = "half",
    known: EncodedSideInformation = NO_SIDE_INFORMATION,
) -> Answers:
    """The answers in memory. With ties="half" a tie becomes two answers of half its weight, one each way.

    Judgments without annotators count as those of one annotator. Gold pairs are answers of an additional annotator who
    is always right.
    """
    own = _encode(select_judgments(comparisons, ties), features)
    gold = _gold_answers(comparisons, known, own.features.shape[1])
    return own if gold is None else own.joined(gold)


def _encode(comparisons: Comparisons, features: FeatureEncoder | None = None) -> Answers:
    left, right, outcome, weight = comparisons.left, comparisons.right, comparisons.outcome, comparisons.weights
    who = np.zeros(len(left), np.int32) if comparisons.annotator is None else comparisons.annotator
    columns = np.zeros((len(left), 0)) if features is None else features(comparisons)
    left_won, tied = outcome >= 0, np.flatnonzero(outcome == 0)
    winner, loser = np.where(left_won, left, right), np.where(left_won, right, left)
    towards_winner = np.where(left_won, 1.0, -1.0)[:, None] * columns if columns.size else columns
    answers = Answers(winner, loser, who, weight, towards_winner)
    if not len(tied):
        return answers
    weight = np.array(weight)
    weight[tied] /= 2
    opposite = Answers(loser[tied], winner[tied], who[tied], weight[tied], -towards_winner[tied])
    return answers._replace(weight=weight).joined(opposite)


def _merge_equal(comparisons: Comparisons, people: int, size: int) -> Answers:
    """One answer per annotator, winner and loser, with the total weight."""
    table = np.zeros(people * size**2)
    for part in comparisons.chunks():
        answers = _encode(part)
        cells = (answers.annotator * np.int64(size) + answers.winner) * size + answers.loser
        np.add.at(table, cells, answers.weight)
    seen = np.flatnonzero(table)
    pair = seen % size**2
    winner, loser, who = (code.astype(np.int32) for code in (pair // size, pair % size, seen // size**2))
    return Answers(winner, loser, who, table[seen], np.zeros((len(seen), 0)))


def _gold_answers(comparisons: Comparisons, known: EncodedSideInformation, features: int) -> Answers | None:
    gold_annotator = known.gold_annotator(comparisons)
    if gold_annotator is None:
        return None
    pairs = len(known.gold_better)
    who, weight = np.full(pairs, gold_annotator, np.int32), np.full(pairs, known.gold_weight)
    return Answers(known.gold_better, known.gold_worse, who, weight, np.zeros((pairs, features)))


class AnswerIndex(NamedTuple):
    """Answers indexed by item and by annotator (compressed rows).

    Parameters
    ----------
    answers : Answers
        The answers, equal ones merged.
    item_starts, item_rows : arrays of int
        Rows of the answers about item i: `item_rows[item_starts[i]:item_starts[i + 1]]`.
    sign : array of float
        For each entry of `item_rows`, 1 if the item won the answer and −1 if it lost.
    other : array of int
        For each entry of `item_rows`, the other item of the answer.
    annotator_starts, annotator_rows : arrays of int
        The same by annotator.
    logistic : bool
        Whether F is logistic, else Thurstone's normal.
    """

    answers: Answers
    item_starts: AnyArray
    item_rows: AnyArray
    sign: AnyArray
    other: AnyArray
    annotator_starts: AnyArray
    annotator_rows: AnyArray
    logistic: bool


def index_answers(answers: Answers, items: int, annotators: int, formula: int) -> AnswerIndex:
    """Index the answers. Equal answers of an annotator are merged into one of their total weight."""
    answers = _merge_equal_answers(answers, items)
    count = len(answers.winner)
    touched = np.concatenate((answers.winner, answers.loser))
    order = np.argsort(touched, kind="stable")
    rows = np.tile(np.arange(count, dtype=np.int32), 2)[order]
    sign = np.repeat((1.0, -1.0), count)[order]
    other = np.concatenate((answers.loser, answers.winner))[order]
    people = np.argsort(answers.annotator, kind="stable").astype(np.int32)
    return AnswerIndex(
        answers,
        _starts(touched, items),
        rows,
        sign,
        other,
        _starts(answers.annotator, annotators),
        people,
        formula == CROWD_BT,
    )


def _merge_equal_answers(answers: Answers, items: int) -> Answers:
    winner, loser, who, weight, features, _ = answers
    key = (who.astype(np.int64) * items + winner) * items + loser
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return Answers(winner[first], loser[first], who[first], np.bincount(place, weight), features[first])


def _starts(codes: AnyArray, size: int) -> AnyArray:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size))))


# Counts over a shard of answers, the starting values that follow from them in closed form, and votes on an order.

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
