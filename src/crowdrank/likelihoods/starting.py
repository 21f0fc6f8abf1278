"""What a climb over answers starts from: counts of them, by item and by annotator, and heights at a few points."""

from __future__ import annotations

import numpy as np

from crowdrank.likelihoods.annotated import FORMULAS, LEAST, Answers, Vector


def spoken(shard: Answers, annotators: int) -> tuple[Vector]:
    """The weight of each annotator's answers."""
    return (np.bincount(shard.annotator, shard.weight, annotators),)


def tallies(shard: Answers, size: int, trust: Vector | None) -> tuple[Vector, Vector]:
    """Wins less losses of each item, and all its answers, each counted by how far its annotator is trusted."""
    weight = shard.weight if trust is None else shard.weight * trust[shard.annotator]
    won, lost = (np.bincount(side, weight, size) for side in (shard.winner, shard.loser))
    if trust is None:
        return won - lost, won + lost
    heavy = np.abs(weight)
    return won - lost, np.bincount(shard.winner, heavy, size) + np.bincount(shard.loser, heavy, size)


def sidings(shard: Answers, scores: Vector, annotators: int) -> tuple[Vector, Vector]:
    """How much more often each annotator sided with the scores than against them, and all their answers."""
    sided = np.sign(scores[shard.winner] - scores[shard.loser])
    return np.bincount(shard.annotator, sided * shard.weight, annotators), spoken(shard, annotators)[0]


def heights(shard: Answers, points: list[tuple[Vector, Vector]], formula: int, every: int) -> tuple[Vector]:
    """The log-likelihood of every so-manieth answer at some scores and gates, without features."""
    rows = slice(-shard.start % every, None, every)
    winner, loser, who, weight = (column[rows] for column in shard[:4])
    found = np.empty(len(points))
    for place, (scores, gates) in enumerate(points):
        chance = FORMULAS[formula](scores[winner] - scores[loser], gates[who], 0.0)[0]
        found[place] = weight @ np.log(np.maximum(chance, LEAST))
    return (found,)
