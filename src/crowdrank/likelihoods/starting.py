"""What a climb over answers starts from: counts of them, by item and by annotator, and heights at a few points."""

from __future__ import annotations

import numpy as np

from crowdrank.likelihoods.annotated import FORMULAS, LEAST, Answers, Vector
from crowdrank.likelihoods.compiled import COMPILE_FROM, compiled

# Scores closer than this are tied. They are sums of logarithms: rounding must not decide with whom annotators side.
_TIED = 1e-9


def spoken(shard: Answers, annotators: int) -> tuple[Vector]:
    """The weight of each annotator's answers."""
    return (np.bincount(shard.annotator, shard.weight, annotators),)


def tallies(shard: Answers, size: int, trust: Vector | None) -> tuple[Vector, Vector]:
    """Wins less losses of each item, and all its answers, each counted by how far its annotator is trusted."""
    if shard.rows >= COMPILE_FROM:
        found: tuple[Vector, Vector] = np.zeros(size), np.zeros(size)
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


def sidings(shard: Answers, scores: Vector, annotators: int) -> tuple[Vector, Vector]:
    """How much more often each annotator sided with the scores than against them, and all their answers.

    Answers about tied scores count for neither side.
    """
    if shard.rows >= COMPILE_FROM:
        found: tuple[Vector, Vector] = np.zeros(annotators), np.zeros(annotators)
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


def heights(shard: Answers, points: list[tuple[Vector, Vector]], formula: int, every: int) -> tuple[Vector]:
    """The log-likelihood of every so-manieth answer at some scores and gates, without features."""
    rows = slice(-shard.start % every, None, every)
    winner, loser, who, weight = (column[rows] for column in shard[:4])
    found = np.empty(len(points))
    for place, (scores, gates) in enumerate(points):
        chance = FORMULAS[formula](scores[winner] - scores[loser], gates[who], 0.0)[0]
        found[place] = weight @ np.log(np.maximum(chance, LEAST))
    return (found,)
