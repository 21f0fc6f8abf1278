"""Where chains over Thurstonian preferences start: which queries are of one domain, who is good there, who is better.

Scores begin at a head count. Given scores, how well each annotator does in each query is a curve over their expertise;
by these queries are grouped. Then scores are fitted anew, each judgment by itself, and so on a few times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.data import Items
from crowdrank.models.thurstonian.domains import GRID, Groups, Likelihoods, Prior
from crowdrank.models.thurstonian.gibbs import Beliefs
from crowdrank.models.thurstonian.layout import Sights, climb, curves, slope_of

# More rounds would fit scores to noise: nothing holds them but a prior that follows them.
_ROUNDS = 3
# Queries that are grouped together; the others then go where they fit best.
_AT_ONCE = 400
_FEW = 50
# Of blur beside noise, where expertise is one.
_BLUR = 0.5
_SPREADS = 2.0 ** np.arange(0, 7)
_STRETCHES = 2.0 ** np.arange(-1, 1.5, 0.5)
# Of the variance of scores: a head count of circles, or of nothing, is even.
_LEAST_VARIANCE = 0.01


class Start(NamedTuple):
    """A first idea of everything."""

    scores: FloatArray
    domain: IntArray
    expertise: FloatArray
    """Annotators × domains."""
    variance: float
    """Of scores."""


def head_count(sights: Sights, items: Items) -> FloatArray:
    """Wins less losses of each item over its judgments and one more: nobody is weighed."""
    size = len(items)
    won, lost = (np.bincount(sights.item[side], minlength=size) for side in (sights.winner, sights.loser))
    return items.centre((won - lost) / (won + lost + 1.0))


def begin(
    rng: np.random.Generator, sights: Sights, counted: FloatArray, people: int, prior: Prior, count: int | None = None
) -> Start:
    """From scores by head count; with so many domains, or as many as the judgments ask for."""
    look = _Look(sights, people, prior)
    asked = np.sort(rng.permutation(look.queries)[:_AT_ONCE])
    rest = np.setdiff1d(np.arange(look.queries), asked)
    scores = counted * look.best_spread(counted, asked)
    domain, sign = np.zeros(look.queries, np.int64), np.ones(look.queries)
    for _ in range(_ROUNDS):
        found = look.curves(scores, asked)
        groups = Groups(found, prior, domain[asked], np.ones(len(asked))).search(rng, count)
        domain[asked], sign[asked] = groups.group, groups.sign
        domain[rest], sign[rest] = look.place(scores, groups.told, groups.sizes, rest)
        scores, posterior = look.of_items(sign) * scores, prior.posterior(groups.told)
        slopes = (posterior @ look.slopes).T
        variance = max(_LEAST_VARIANCE, float(np.mean(scores**2)))
        scores, bent = climb(sights, scores, slopes, domain, variance)
        scores = scores * look.best_stretch(scores, asked, groups.group)
    return Start(scores, domain, (posterior @ GRID).T, float(np.mean(scores**2 + 1 / bent)))


def begin_with(sights: Sights, counted: FloatArray, beliefs: Beliefs, variance: float) -> Start:
    """With domains and annotators that are known: each query in its likeliest domain."""
    even = Prior(np.full(len(GRID), 1.0 / len(GRID)))
    look = _Look(sights, len(beliefs.expertise), even)
    told = -0.5 * ((GRID - beliefs.expertise.T[..., None]) / beliefs.expertise_spread.T[..., None]) ** 2
    scores = counted * look.best_spread(counted, np.arange(look.queries))
    for _ in range(_ROUNDS):
        domain, sign = look.place(scores, told, beliefs.shares, np.arange(look.queries))
        scores, _ = climb(sights, look.of_items(sign) * scores, slope_of(beliefs.expertise), domain, variance)
    return Start(scores, domain, beliefs.expertise.copy(), variance)


@dataclass(frozen=True)
class _Look:
    """Judgments by annotators whose expertise is one of the grid's."""

    sights: Sights
    people: int
    prior: Prior

    @property
    def slopes(self) -> FloatArray:
        return np.asarray(slope_of(GRID))

    @property
    def queries(self) -> int:
        return len(self.sights.item_starts) - 1

    def curves(self, scores: FloatArray, queries: IntArray) -> FloatArray:
        """Log likelihoods by expertise, less where judgments share sights: they err together, and tell less."""
        found = curves(self.sights, scores, self.slopes, queries, self.people)
        return found * self.independence[queries, :, None]

    @cached_property
    def independence(self) -> FloatArray:
        """How much of what its judgments would tell one by one each query tells of each annotator; below one.

        Judgments of n pairs that g judgments an item share err by blurs that they have in common: beside noise of one
        and blurs of a, differences of scores are known with variance 1 + a (g + 1) in place of 1 + 2 a.
        """
        sights = self.sights
        of_item = np.repeat(np.arange(self.queries), np.diff(sights.item_starts))
        of_judgment = np.repeat(np.arange(self.queries), np.diff(sights.judgment_starts))
        cells = (self.queries, self.people)
        size, who = cells[0] * cells[1], sights.annotator_of_sight
        seen = np.bincount(of_item[sights.item] * self.people + who, minlength=size)
        said = np.bincount(of_judgment * self.people + sights.annotator, minlength=size)
        each = 2.0 * said / np.maximum(seen, 1)
        return ((1.0 + 2.0 * _BLUR) / (1.0 + _BLUR * (np.maximum(each, 1.0) + 1.0))).reshape(cells)

    def of_items(self, sign: FloatArray) -> FloatArray:
        """Of each item what is said of its query."""
        return np.repeat(sign, np.diff(self.sights.item_starts))

    def place(
        self, scores: FloatArray, told: FloatArray, sizes: AnyArray, queries: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """The likeliest domain of these queries, and 1 or −1 for which way up each is there."""
        choice = np.zeros(len(queries), np.int64)
        for first in range(0, len(queries), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            found = Likelihoods(self.curves(scores, queries[some]), self.prior)
            choice[some] = np.argmax(found.both_ways(told, sizes), axis=1)
        return choice % len(told), np.where(choice < len(told), 1.0, -1.0)

    def best_spread(self, counted: FloatArray, asked: IntArray) -> float:
        """How far to stretch the head count, every annotator by themselves in every query."""
        few = asked[:_FEW]
        likely = [np.sum(self.prior.evidence(self.curves(spread * counted, few))) for spread in _SPREADS]
        return float(_SPREADS[int(np.argmax(likely))])

    def best_stretch(self, scores: FloatArray, asked: IntArray, group: IntArray) -> float:
        """How far to stretch scores, every annotator by themselves in every domain."""
        likely = []
        for stretch in _STRETCHES:
            groups = Groups(self.curves(stretch * scores, asked), self.prior, group, np.ones(len(asked)))
            likely.append(np.sum(self.prior.evidence(groups.told)))
        return float(_STRETCHES[int(np.argmax(likely))])
