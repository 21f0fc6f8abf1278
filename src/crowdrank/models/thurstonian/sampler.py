"""The posterior of Thurstonian preferences (Wang et al. 2016), walked: where chains start, which way is up."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.errors import DataError
from crowdrank.models.thurstonian import gibbs
from crowdrank.models.thurstonian.domains import Prior
from crowdrank.models.thurstonian.gibbs import Beliefs, State
from crowdrank.models.thurstonian.layout import Sights, climb, sights_of, slope_of
from crowdrank.models.thurstonian.postprocess import given_in
from crowdrank.models.thurstonian.start import Start, begin, begin_with, head_count
from crowdrank.models.thurstonian.transfer import Known

_TUNING = (10, 8, 8)
_CLIMBED = 6
_WORTH_A_LOOK = 20.0


class Info(NamedTuple):
    accepted: float


@dataclass(frozen=True)
class Sampler:
    """How the posterior is walked, from about one start."""

    sights: Sights
    items: Items
    start: Start
    beliefs: Beliefs = field(default_factory=Beliefs)
    oriented: bool = False
    """Whether the beliefs say which way is up."""

    @classmethod
    def of(cls, comparisons: Comparisons, count: int | None, seed: int, known: Known | None = None) -> Sampler:
        """Of judgments as they come; with so many domains, those that are known, or as many as are asked for."""
        sights, items = laid_out(comparisons), comparisons.items
        rng, counted = np.random.default_rng(seed), head_count(sights, items)
        if known is None:
            beliefs = Beliefs()
            prior = Prior.normal(beliefs.expertise, beliefs.expertise_spread)
            people = max(1, len(comparisons.annotators))
            return cls(sights, items, begin(rng, sights, counted, people, prior, count), beliefs)
        beliefs = known.beliefs(comparisons.annotators)
        return cls(sights, items, begin_with(sights, counted, beliefs, known.variance), beliefs, oriented=True)

    @cached_property
    def _given(self) -> IntArray:
        return given_in(self.sights, len(self.start.expertise))

    @cached_property
    def _beliefs(self) -> Beliefs:
        return self.beliefs.of(*self.start.expertise.shape)

    def init(self, rng: np.random.Generator) -> State:
        """Near the start."""
        start, sights = self.start, self.sights
        scores = start.scores + rng.normal(scale=0.5, size=len(start.scores))
        seen = scores[sights.item] + rng.normal(size=len(sights.item))
        expertise = start.expertise + rng.normal(scale=0.2, size=start.expertise.shape)
        domains = expertise.shape[1]
        shares = (np.bincount(start.domain, minlength=domains) + 1.0) / (len(start.domain) + domains)
        return gibbs.ready(
            sights,
            scores,
            seen,
            np.ones(len(start.domain)),
            start.domain.copy(),
            expertise,
            shares,
            np.full(1, start.variance),
        )

    def tune(self, rng: np.random.Generator, state: State) -> State:
        """After some sweeps that find out how far the chain may go at a time, where it is now."""
        there = State._make(part.copy() for part in state)
        for sweeps in _TUNING:
            gibbs.set_frames(self.sights, there)
            there.odds[:] = odds(self.sights, there)
            gibbs.walk(rng, self.sights, self._beliefs, there, sweeps, tune=True)
        return there

    def walk(self, rng: np.random.Generator, state: State, steps: int) -> tuple[State, Info]:
        """So many sweeps over everything."""
        there = State._make(part.copy() for part in state)
        return there, Info(gibbs.walk(rng, self.sights, self._beliefs, there, steps))

    def upright(self, state: State) -> State:
        """Each domain turned so that most judgments in it are expected to be right: they cannot tell which way is up.

        Scores are not asked: little may be known of them, and turned one way in every draw they would look certain.
        """
        from scipy.special import ndtr

        if self.oriented:
            return state
        given = self._given.T @ (state.domain[:, None] == np.arange(len(state.shares)))
        right = ndtr(state.expertise * np.sqrt(state.difficulty.mean() / 2.0))
        up = np.where(np.sum(given * (right - 0.5), axis=0) < 0, -1.0, 1.0)
        of_item = np.repeat(up[state.domain], np.diff(self.items.starts))
        return state._replace(
            scores=of_item * state.scores, seen=of_item[self.sights.item] * state.seen, expertise=up * state.expertise
        )


def odds(sights: Sights, state: State) -> FloatArray:
    """How often to propose each domain for each query: by the root of its evidence, given expertise.

    The root proposes more than is likely, for the evidence is approximate and moves with the chain. A first look, each
    judgment by itself, says which domains are worth a second one.
    """
    from scipy.special import log_ndtr

    slopes, domains = slope_of(state.expertise), len(state.shares)
    query = np.repeat(np.arange(len(state.domain)), np.diff(sights.judgment_starts))
    of_item = np.repeat(np.arange(len(state.domain)), np.diff(sights.item_starts))
    found = np.empty((len(state.domain), domains))
    for domain in range(domains):
        variance, everywhere = float(state.scale[0]), np.full(len(state.domain), domain)
        scores, bent = climb(sights, np.zeros(len(state.scores)), slopes, everywhere, variance, _CLIMBED)
        margin = slopes[sights.annotator, domain] * (scores[sights.above] - scores[sights.below])
        prior = -0.5 * (scores**2 / variance + np.log(bent * variance))
        found[:, domain] = np.bincount(query, log_ndtr(margin), len(found)) + np.bincount(of_item, prior, len(found))
    found -= found.max(axis=1, keepdims=True)
    asked = (found > -_WORTH_A_LOOK) & (np.sum(found > -_WORTH_A_LOOK, axis=1, keepdims=True) > 1)
    better = gibbs.evidence(sights, state, asked)
    found = np.where(asked, better - np.fmax.reduce(better, axis=1, keepdims=True), found)
    chance = np.exp(0.5 * found) * state.shares**0.5
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def laid_out(comparisons: Comparisons) -> Sights:
    """The judgments that were decided, each as often as its weight says."""
    times = np.where(comparisons.outcome == 0, 0, comparisons.weights)
    broken = np.flatnonzero(times != np.round(times))
    if len(broken):
        row = int(broken[0])
        raise DataError(
            f"Row {row + 1}: TPP counts whole judgments, got a weight of {times[row]}: round weights, or drop them."
        )
    rows = np.repeat(np.arange(len(comparisons)), times.astype(np.int64))
    won = comparisons.outcome[rows] > 0
    left, right = comparisons.left[rows], comparisons.right[rows]
    who = np.zeros(len(rows), np.int32) if comparisons.annotator is None else comparisons.annotator[rows]
    return sights_of(np.where(won, left, right), np.where(won, right, left), who, comparisons.items.starts)
