"""Adapters for one pass over the answers: online models of crowdrank, trueskill, openskill and evalica.

Each starts from its prior and ends with one score per item. Equal models have equal settings.
"""

from __future__ import annotations

from typing import Any

import crowd_peers
import numpy as np
from crowd_peers import Drawn, winners
from peers import OURS, Contender

from crowdrank import online
from crowdrank.data import Comparison, Comparisons


def draw(items: int, rows: int, seed: int = 0) -> Drawn:
    """As many annotators as items."""
    return crowd_peers.draw(items, items, rows, seed)


class OnePass(Contender):
    """There is nothing to converge to, hence no setting to tighten."""

    settings = (0.0,)


class Folded(OnePass):
    """All answers in one call, as for a file."""

    family, module = OURS, "crowdrank"

    def __init__(self, model: Any, way: str):
        self.model, self.way = model, way

    def load(self, votes: Drawn) -> Comparisons:
        return votes[0]

    def fit(self, built: Comparisons, setting: float) -> Any:
        return self.model.fold(self.model.start(built.items, built.annotators), built).mean


class OneByOne(Folded):
    """A call a judgment, by names, as where answers come in one at a time; beliefs are copied, never changed."""

    most_rows = 100_000

    def load(self, votes: Drawn) -> Any:
        seen, labels = votes[0], votes[0].items.labels
        names = zip(labels[seen.left], labels[seen.right], seen.outcome, seen.annotators[seen.annotator], strict=True)
        return seen, [Comparison(a, b, a if won > 0 else b, who) for a, b, won, who in names]

    def fit(self, built: Any, setting: float) -> Any:
        seen, judgments = built
        beliefs = self.model.start(seen.items, seen.annotators)
        for judgment in judgments:
            beliefs = self.model.update(beliefs, judgment)
        return beliefs.mean


class Pairs(OnePass):
    """Winner and loser, as lists."""

    warm = ((20, 200),)
    most_rows = 1_000_000

    def load(self, votes: Drawn) -> Any:
        won, lost, _ = winners(votes[0])
        return len(votes[0].items), won.tolist(), lost.tolist()


class TrueSkill(Pairs):
    family, way, module = "trueskill", "rate_1vs1", "trueskill"

    def fit(self, built: Any, setting: float) -> Any:
        import trueskill

        items, won, lost = built
        world = trueskill.TrueSkill()
        ratings = [world.create_rating() for _ in range(items)]
        for a, b in zip(won, lost, strict=True):
            ratings[a], ratings[b] = trueskill.rate_1vs1(ratings[a], ratings[b], env=world)
        return [rating.mu for rating in ratings]


class OpenSkill(Pairs):
    family, module = "openskill", "openskill"

    def __init__(self, way: str):
        self.way = way

    def fit(self, built: Any, setting: float) -> Any:
        from openskill import models

        items, won, lost = built
        model = getattr(models, self.way)()
        ratings = [model.rating() for _ in range(items)]
        for a, b in zip(won, lost, strict=True):
            [[ratings[a]], [ratings[b]]] = model.rate([[ratings[a]], [ratings[b]]])
        return [rating.mu for rating in ratings]


class Evalica(OnePass):
    """Integer arrays with their index, its quickest way in; K, start and scale as ours."""

    family, way, module = "evalica", "elo, codes", "evalica"
    warm = ((100, 4_000),)

    def load(self, votes: Drawn) -> Any:
        import pandas as pd
        from evalica import Winner

        seen = votes[0]
        won = np.where(seen.outcome > 0, Winner.X, Winner.Y).astype(np.uint8)
        return (seen.left, seen.right, won), pd.RangeIndex(len(seen.items))

    def fit(self, built: Any, setting: float) -> Any:
        import evalica

        columns, index = built
        ours = online.Elo()
        return evalica.elo(*columns, index=index, initial=ours.initial, k=ours.step, scale=ours.scale).scores

    def scores(self, found: Any, items: int) -> Any:
        return found.loc[np.arange(items)].to_numpy()


CONTENDERS: tuple[OnePass, ...] = (
    Folded(online.CrowdBT(), "CrowdBT"),
    Folded(online.CrowdBT(moments="closed"), "CrowdBT, closed form"),
    Folded(online.TrueSkill(), "TrueSkill"),
    Folded(online.Glicko2(), "Glicko2"),
    Folded(online.Elo(), "Elo"),
    OneByOne(online.CrowdBT(), "CrowdBT, a call a judgment"),
    OneByOne(online.TrueSkill(), "TrueSkill, a call a judgment"),
    TrueSkill(),
    OpenSkill("PlackettLuce"),
    OpenSkill("BradleyTerryFull"),
    Evalica(),
)
