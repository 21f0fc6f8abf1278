"""The posterior of Thurstonian preferences (Wang et al. 2016), walked: where chains start, which way is up."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.judgments import Items
from crowdrank.likelihoods import thurstonian
from crowdrank.likelihoods.thurstonian import Beliefs, Sights

Vector = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_ROUNDS = 20


class State(NamedTuple):
    """Where a chain is."""

    scores: Vector
    seen: Vector
    """What each annotator perceived of each item they judged."""
    difficulty: Vector
    """δ² of each query."""
    domain: Codes
    expertise: Vector
    """τ, annotators × domains."""
    shares: Vector
    """θ, the share of each domain."""
    scale: Vector
    """ω², the variance of true scores; one number."""


class Info(NamedTuple):
    accepted: float


@dataclass(frozen=True)
class Sampler:
    """How the posterior is walked."""

    sights: Sights
    items: Items
    annotators: int
    domains: int
    beliefs: Beliefs = field(default_factory=Beliefs)

    @cached_property
    def borda(self) -> Vector:
        """Wins less losses of each item over its judgments and one more: a head count, nobody weighed."""
        size, item = len(self.items), self.sights.item
        won, lost = (np.bincount(item[side], minlength=size) for side in (self.sights.winner, self.sights.loser))
        return self.items.centre((won - lost) / (won + lost + 1.0))

    @cached_property
    def agreement(self) -> Vector:
        """How far each annotator goes with the head count in each query, from −1 to 1; queries × annotators.

        An annotator's own judgment is left out of the count of the pair's items.
        """
        sights, item, size = self.sights, self.sights.item, len(self.items)
        winner, loser = item[sights.winner], item[sights.loser]
        won, lost = (np.bincount(side, minlength=size) for side in (winner, loser))
        above = (won[winner] - 1 - lost[winner]) / (won[winner] + lost[winner])
        below = (won[loser] - lost[loser] + 1) / (won[loser] + lost[loser])
        agreed = np.bincount(self._cell, above - below, self.given.size).reshape(self.given.shape)
        return np.asarray(agreed / (self.given + 1.0))

    @cached_property
    def given(self) -> Codes:
        """How many judgments each annotator gave in each query; queries × annotators."""
        queries = len(self.items.starts) - 1
        return np.bincount(self._cell, minlength=queries * self.annotators).reshape(queries, self.annotators)

    @property
    def _cell(self) -> Codes:
        """Query and annotator of each judgment, as one number."""
        each = np.diff(self.sights.judgment_starts)
        return np.repeat(np.arange(len(each)), each) * self.annotators + self.sights.annotator

    def init(self, rng: np.random.Generator) -> State:
        """Scores by head count; domains by which annotators agree with it in which queries."""
        domain, middle = clusters(rng, self.agreement, self.domains)
        scores = 3.0 * self.borda + rng.normal(scale=0.3, size=len(self.items))
        seen = scores[self.sights.item] + rng.normal(scale=0.3, size=len(self.sights.item))
        expertise = 2.0 * middle.T + rng.normal(scale=0.3, size=(self.annotators, self.domains))
        shares = (np.bincount(domain, minlength=self.domains) + 1.0) / (len(domain) + self.domains)
        return State(scores, seen, np.ones(len(domain)), domain, expertise, shares, np.full(1, 4.0))

    def walk(self, rng: np.random.Generator, state: State, steps: int) -> tuple[State, Info]:
        """So many sweeps over everything."""
        there = State._make(part.copy() for part in state)
        accepted = thurstonian.walk(rng, self.sights, self.beliefs, *there, steps)
        return there, Info(accepted / max(1, steps))

    def upright(self, state: State) -> State:
        """Each domain turned so that its scores go with the head count: the judgments cannot tell which way is up."""
        queries = np.repeat(np.arange(len(state.domain)), np.diff(self.items.starts))
        along = np.bincount(queries, self.borda * state.scores, len(state.domain))
        up = np.where(np.bincount(state.domain, along, self.domains) < 0, -1.0, 1.0)
        of_item = up[state.domain][queries]
        return state._replace(
            scores=of_item * state.scores, seen=of_item[self.sights.item] * state.seen, expertise=up * state.expertise
        )

    def quality(self, state: State) -> Vector:
        """The chance that each annotator names the better of two items seen one unit apart, over what they judged.

        Of annotators without judgments: over all queries.
        """
        from scipy.special import ndtr

        given = self.given + 1e-9
        chance = ndtr(state.expertise / np.sqrt(2))[:, state.domain].T
        return np.asarray(np.sum(given * chance, axis=0) / given.sum(axis=0))


def clusters(rng: np.random.Generator, points: Vector, count: int) -> tuple[Codes, Vector]:
    """k-means from starts far apart: the cluster of each point, and the clusters' middles."""
    middles = points[[rng.integers(len(points))]]
    for _ in range(1, count):
        gap = np.min(_squares(points, middles), axis=1)
        far = gap / gap.sum() if gap.sum() > 0 else None
        middles = np.concatenate((middles, points[[rng.choice(len(points), p=far)]]))
    for _ in range(_ROUNDS):
        nearest = np.argmin(_squares(points, middles), axis=1)
        member = (nearest[:, None] == np.arange(count)).astype(np.float64)
        size = member.sum(axis=0)[:, None]
        middles = np.where(size > 0, member.T @ points / np.maximum(size, 1.0), middles)
    return nearest.astype(np.int64), middles


def _squares(points: Vector, middles: Vector) -> Vector:
    return np.asarray(np.sum((points[:, None] - middles) ** 2, axis=2))
