"""What a climb over answers starts from: counts of them, by item and by annotator, and heights at a few points.

Comparisons as rows of winner, loser and who said so, and where a climb over them may start.

Which way is up: an order and its reverse fit alike where annotators may be reversed, so heads are counted.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Protocol, get_args

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array
from crowdrank.data import Comparisons, EncodedSideInformation, Items
from crowdrank.data.side_information import NO_SIDE_INFORMATION
from crowdrank.engines import ShardedData
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled
from crowdrank.errors import SettingError
from crowdrank.models.crowd.likelihood import FORMULAS, LEAST, Answers

# Scores closer than this are tied. They are sums of logarithms: rounding must not decide with whom annotators side.
_TIED = 1e-9


def spoken(shard: Answers, annotators: int) -> tuple[AnyArray]:
    """The weight of each annotator's answers."""
    return (np.bincount(shard.annotator, shard.weight, annotators),)


def tallies(shard: Answers, size: int, trust: AnyArray | None) -> tuple[AnyArray, AnyArray]:
    """Wins less losses of each item, and all its answers, each counted by how far its annotator is trusted."""
    if shard.rows >= COMPILE_MIN_ROWS:
        found: tuple[AnyArray, AnyArray] = np.zeros(size), np.zeros(size)
        _tallies_loop(*shard[:4], np.empty(0) if trust is None else trust, *found)
        return found
    weight = shard.weight if trust is None else shard.weight * trust[shard.annotator]
    won, lost = (np.bincount(side, weight, size) for side in (shard.winner, shard.loser))
    if trust is None:
        return won - lost, won + lost
    heavy = np.abs(weight)
    return won - lost, np.bincount(shard.winner, heavy, size) + np.bincount(shard.loser, heavy, size)


@compiled()
def _tallies_loop(winner, loser, annotator, weight, trust, net, total):  # type: ignore[no-untyped-def]
    for row in range(len(winner)):
        counts = weight[row] * trust[annotator[row]] if len(trust) else weight[row]
        net[winner[row]] += counts
        net[loser[row]] -= counts
        total[winner[row]] += abs(counts)
        total[loser[row]] += abs(counts)


def sidings(shard: Answers, scores: AnyArray, annotators: int) -> tuple[AnyArray, AnyArray]:
    """How much more often each annotator sided with the scores than against them, and all their answers.

    Answers about tied scores count for neither side.
    """
    if shard.rows >= COMPILE_MIN_ROWS:
        found: tuple[AnyArray, AnyArray] = np.zeros(annotators), np.zeros(annotators)
        _sidings_loop(*shard[:4], scores, *found)
        return found
    margin = scores[shard.winner] - scores[shard.loser]
    sided = np.where(np.abs(margin) > _TIED, np.sign(margin), 0.0)
    return np.bincount(shard.annotator, sided * shard.weight, annotators), spoken(shard, annotators)[0]


@compiled()
def _sidings_loop(winner, loser, annotator, weight, scores, net, total):  # type: ignore[no-untyped-def]
    for row in range(len(winner)):
        k, w = annotator[row], weight[row]
        margin = scores[winner[row]] - scores[loser[row]]
        if abs(margin) > _TIED:
            net[k] += w * np.sign(margin)
        total[k] += w


def heights(shard: Answers, points: list[tuple[AnyArray, AnyArray]], formula: int, every: int) -> tuple[AnyArray]:
    """The log-likelihood of every so-manieth answer at some scores and gates, without features."""
    rows = slice(-shard.start % every, None, every)
    winner, loser, who, weight = (column[rows] for column in shard[:4])
    found = np.empty(len(points))
    for place, (scores, gates) in enumerate(points):
        chance = FORMULAS[formula](scores[winner] - scores[loser], gates[who], 0.0)[0]
        found[place] = weight @ np.log(np.maximum(chance, LEAST))
    return (found,)


Ties = Literal["drop", "half"]

# Up to this many different answers can be told apart in a table.
_MOST_CELLS = 1 << 24
# Beyond this many what is known of annotators outgrows a processor's cache: sorting answers by them repays itself.
_MANY_ANNOTATORS = 50_000


class Features(Protocol):
    """Features of some rows as columns of a matrix, positive where they speak for the left item."""

    def __len__(self) -> int: ...

    def __call__(self, comparisons: Comparisons) -> FloatArray: ...


def check_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        raise SettingError(f"ties must be drop or half, got {ties!r}.")


def counted(comparisons: Comparisons, ties: Ties) -> Comparisons:
    """The judgments that count: with ties dropped those decided, unless nothing was."""
    if ties == "half" or comparisons.ties == len(comparisons):
        return comparisons
    return comparisons.decided


def table_of(
    comparisons: Comparisons,
    features: Features | None = None,
    ties: Ties = "half",
    known: EncodedSideInformation = NO_SIDE_INFORMATION,
) -> Any:
    """The answers as a table for an engine; repeated ones once, where that makes them few."""
    rows = counted(comparisons, ties)
    people, size = max(1, len(comparisons.annotators)), len(comparisons.items)
    if features is None and people * size**2 <= min(len(rows) // 2, _MOST_CELLS):
        own = _collapsed(rows, people, size)
    else:
        own = rows.map_chunks(partial(_answers, features=features))
        if people >= _MANY_ANNOTATORS and isinstance(own, Answers):
            own = own.by_annotator()
    gold = _gold_answers(comparisons, known, 0 if features is None else len(features))
    return own if gold is None else own.joined(gold)


def answers_of(
    comparisons: Comparisons,
    features: Features | None = None,
    ties: Ties = "half",
    known: EncodedSideInformation = NO_SIDE_INFORMATION,
) -> Answers:
    """Rows of winner and loser, in memory; a tie that counts becomes two answers of half the weight, one each way.

    Judgments that name no annotators are taken as one annotator's. Gold pairs are answers of one who never errs.
    """
    own = _answers(counted(comparisons, ties), features)
    gold = _gold_answers(comparisons, known, own.features.shape[1])
    return own if gold is None else own.joined(gold)


def _answers(comparisons: Comparisons, features: Features | None = None) -> Answers:
    left, right, outcome, weight = comparisons.left, comparisons.right, comparisons.outcome, comparisons.weights
    who = np.zeros(len(left), np.int32) if comparisons.annotator is None else comparisons.annotator
    columns = np.zeros((len(left), 0)) if features is None else features(comparisons)
    left_won, tied = outcome >= 0, np.flatnonzero(outcome == 0)
    winner, loser = np.where(left_won, left, right), np.where(left_won, right, left)
    leaning = np.where(left_won, 1.0, -1.0)[:, None] * columns if columns.size else columns
    answers = Answers(winner, loser, who, weight, leaning)
    if not len(tied):
        return answers
    weight = np.array(weight)
    weight[tied] /= 2
    turned = Answers(loser[tied], winner[tied], who[tied], weight[tied], -leaning[tied])
    return answers._replace(weight=weight).joined(turned)


def _collapsed(comparisons: Comparisons, people: int, size: int) -> Answers:
    """Equal answers of one annotator as one, of their weight together."""
    table = np.zeros(people * size**2)
    for part in comparisons.chunks():
        answers = _answers(part)
        cells = (answers.annotator * np.int64(size) + answers.winner) * size + answers.loser
        np.add.at(table, cells, answers.weight)
    seen = np.flatnonzero(table)
    pair = seen % size**2
    winner, loser, who = (code.astype(np.int32) for code in (pair // size, pair % size, seen // size**2))
    return Answers(winner, loser, who, table[seen], np.zeros((len(seen), 0)))


def _gold_answers(comparisons: Comparisons, known: EncodedSideInformation, features: int) -> Answers | None:
    judge = known.gold_annotator(comparisons)
    if judge is None:
        return None
    pairs = len(known.gold_better)
    who, weight = np.full(pairs, judge, np.int32), np.full(pairs, known.gold_weight)
    return Answers(known.gold_better, known.gold_worse, who, weight, np.zeros((pairs, features)))


def first_scores(held: ShardedData, items: Items, trust: FloatArray | None = None) -> FloatArray:
    """Scores as if everyone had met average opponents, each answer counted by how far its annotator is trusted."""
    net, total = held.sum(tallies, len(items), trust)
    return items.centre(np.log((total + net + 1) / (total - net + 1)))


def agreement(held: ShardedData, scores: FloatArray, annotators: int) -> FloatArray:
    """The logit of how often each annotator sided with the scores, two right and one wrong answer added."""
    net, total = held.sum(sidings, scores, annotators)
    return np.asarray(np.log((total + net + 4) / (total - net + 2)))


def right_on_gold(comparisons: Comparisons, better: Int32Array, worse: Int32Array) -> FloatArray:
    """The share of right answers of each annotator on gold pairs (§3.3 of Crowd-BT); ½ of who answered none."""
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


# Votes for both sides that differ by less than this are even: rounding must not turn an order round.
EVEN = 1e-9


def turned(agreed: FloatArray, judged: FloatArray) -> bool:
    """Whether more annotators go against the order than with it, which is upside down then.

    `agreed` is how much of what each one `judged` agrees with the order. Few who always answer the wrong way round must
    not outvote many who are right more often than not: however much or surely one answers, a head is a head.
    """
    return float(np.sum(votes(agreed, judged))) < -EVEN


def votes(agreed: FloatArray, judged: FloatArray) -> FloatArray:
    """1 for annotators with the order, −1 for those against it; in between for those who may be either.

    A head is whole from a chance of three to one on (of a uniform prior). Counted by their surety instead, few sure
    ones would outvote many; by the sign alone, those who guess would.
    """
    from scipy.special import betainc

    against = betainc(agreed + 1.0, judged - agreed + 1.0, 0.5)
    return np.asarray(np.clip(2.0 * (1.0 - 2.0 * against), -1.0, 1.0))
