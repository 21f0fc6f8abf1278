"""Crowd-BT's posterior by Metropolis steps within Gibbs sweeps: scores, qualities, and the spread of both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.judgments import Items
from crowdrank.likelihoods import sweeps
from crowdrank.likelihoods.annotated import sigmoid
from crowdrank.likelihoods.sweeps import Limits, Threads
from crowdrank.models.annotated.hints import Hints

Vector = npt.NDArray[np.float64]


class State(NamedTuple):
    """Where a chain is."""

    scores: Vector
    quality: Vector
    scale: float
    truths: float
    lies: float
    truthful: Vector
    """Of every answer the chance that a truthful annotator gives it …"""
    chance: Vector
    """… and that its annotator does."""


class Info(NamedTuple):
    accepted: float


@dataclass(frozen=True)
class Sampler:
    """How Crowd-BT's posterior is walked; None for what is learnt along the way."""

    threads: Threads
    items: Items
    summit: Vector
    """Scores from which chains start, at some distance, …"""
    gates: Vector
    """… and logits of quality."""
    limits: Limits
    scale: float | None
    quality: tuple[float, float] | None

    def init(self, rng: np.random.Generator) -> State:
        scores = self.summit + rng.normal(scale=0.5, size=len(self.summit))
        wished = sigmoid(self.gates + rng.normal(scale=0.5, size=len(self.gates)))
        return self.at(scores, within(wished, self.limits), *self.expected)

    @property
    def expected(self) -> tuple[float, float, float]:
        """The spread of scores, and the truths and lies of the Beta behind qualities, before anything was said."""
        return self.scale or sweeps.SCALE, *((sweeps.TRUTHS, sweeps.LIES) if self.quality is None else self.quality)

    def at(self, scores: Vector, quality: Vector, scale: float, truths: float, lies: float) -> State:
        """A chain that stands there."""
        truthful, chance = sweeps.chances(self.threads, scores, quality)
        return State(scores, quality, scale, truths, lies, truthful, chance)

    def step(self, rng: np.random.Generator, state: State) -> tuple[State, Info]:
        scores, quality = state.scores.copy(), state.quality.copy()
        truthful, chance = state.truthful.copy(), state.chance.copy()
        moved = sweeps.move_scores(rng, self.threads, scores, quality, state.scale, truthful, chance)
        moved += sweeps.move_quality(
            rng, self.threads, quality, state.truths, state.lies, self.limits, truthful, chance
        )
        state = state._replace(scores=scores, quality=quality, truthful=truthful, chance=chance)
        if self.scale is None:
            state = self._stretched(rng, self._shifted(rng, state))
            state = state._replace(scale=sweeps.draw_scale(rng, state.scores, state.scale))
        if self.quality is None:
            truths, lies = sweeps.draw_beta(rng, self._free(state.quality), state.truths, state.lies)
            state = state._replace(truths=truths, lies=lies)
        return state, Info(moved / (len(scores) + len(quality)))

    def _free(self, quality: Vector) -> Vector:
        """Of those nothing is known about: they alone say what the crowd is like."""
        return quality[self.limits.low < self.limits.high]

    def _shifted(self, rng: np.random.Generator, state: State) -> State:
        """The level of each query is drawn outright: no answer depends on it."""
        scores = state.scores.copy()
        sweeps.shift(rng, scores, self.items.starts, state.scale)
        return state._replace(scores=scores)

    def _stretched(self, rng: np.random.Generator, state: State) -> State:
        """All scores and their spread together, by one factor: the prior of scores given the spread stays as it is."""
        factor = math.exp(rng.standard_normal() * math.exp(3.0 * rng.random() - 3.5))
        gain, truthful, chance = sweeps.stretch(self.threads, state.scores, state.quality, factor, state.chance)
        gain += sweeps.log_prior_of_scale(state.scale * factor) - sweeps.log_prior_of_scale(state.scale)
        if math.log(rng.random()) >= gain:
            return state
        return state._replace(
            scores=state.scores * factor, scale=state.scale * factor, truthful=truthful, chance=chance
        )


def limits_of(hints: Hints, annotators: int) -> Limits:
    """What is known of annotators, as limits of their η."""
    low, high = np.zeros(annotators), np.ones(annotators)
    low[hints.low_of], high[hints.high_of] = sigmoid(hints.low), sigmoid(hints.high)
    low[hints.known] = high[hints.known] = sigmoid(hints.value)
    return Limits(low, high, hints.better, hints.worse)


def within(quality: Vector, limits: Limits) -> Vector:
    """The nearest qualities within their limits, the better one of each pair a little above the other."""
    span = limits.high - limits.low
    held = np.clip(quality, limits.low + 1e-3 * span, limits.high - 1e-3 * span)
    for _ in range(len(limits.better)):
        for a, b in zip(limits.better, limits.worse, strict=True):
            if held[a] <= held[b]:
                held[a], held[b] = max(held[a], held[b]) + 1e-6, min(held[a], held[b])
    return np.asarray(np.clip(held, np.maximum(limits.low, 1e-12), np.minimum(limits.high, 1 - 1e-13)))
