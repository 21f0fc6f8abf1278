"""Crowd-BT's posterior by Metropolis steps within Gibbs sweeps: scores, qualities, and the spread of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items
from crowdrank.models.crowd import sampler_kernels
from crowdrank.models.crowd.likelihood import sigmoid
from crowdrank.models.crowd.sampler_kernels import Limits, Threads
from crowdrank.models.crowd.side_information import Hints

_STIFF = 0.7
"""Step in the log scale, in its standard deviations given the scores."""
_DRAWN = 10
"""Sweeps that what is believed of a variance counts for."""


class State(NamedTuple):
    """Where a chain is."""

    scores: FloatArray
    quality: FloatArray
    scale: float
    truths: float
    lies: float
    truthful: FloatArray
    """Of every answer the chance that a truthful annotator gives it …"""
    chance: FloatArray
    """… and that its annotator does."""
    curvature: FloatArray
    """Information on each score and on the log of their scale where the chain was tuned last …"""
    step_size: float
    """… and the step size of Hamiltonian steps in these units."""


class Info(NamedTuple):
    acceptance_rate: float


@dataclass(frozen=True)
class Sampler:
    """How Crowd-BT's posterior is walked; None for what is learnt along the way."""

    threads: Threads
    items: Items
    summit: FloatArray
    """Scores from which chains start, at some distance, …"""
    gates: FloatArray
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
        return self.scale or sampler_kernels.SCALE, *(
            (sampler_kernels.TRUTHS, sampler_kernels.LIES) if self.quality is None else self.quality
        )

    def at(self, scores: FloatArray, quality: FloatArray, scale: float, truths: float, lies: float) -> State:
        """A chain that stands there."""
        truthful, chance = sampler_kernels.chances(self.threads, scores, quality)
        curvature = sampler_kernels.curvature_of(self.threads, scores, quality, scale)
        return State(scores, quality, scale, truths, lies, truthful, chance, curvature, len(scores) ** -0.25)

    def tune(self, rng: np.random.Generator, state: State, steps: int) -> State:
        """After so many sweeps, the precision of each score and the step size for where the chain is now."""
        state, _ = self.walk(rng, state, steps // 4, tune=True)
        seen: list[FloatArray] = []
        for _ in range(steps // 4):
            state, _ = self.walk(rng, state, 1)
            logits = np.log(state.quality) - np.log1p(-state.quality)
            seen.append(np.concatenate((self.items.centre(state.scores), [np.log(state.scale)], logits)))
        if seen:
            state = state._replace(curvature=self._precision(np.array(seen), state))
        return self.walk(rng, state, steps - 2 * (steps // 4), tune=True)[0]

    def _precision(self, seen: FloatArray, state: State) -> FloatArray:
        """Inverse variances, drawn towards the information there is where they were seen too seldom to tell."""
        known, items = (
            sampler_kernels.curvature_of(self.threads, state.scores, state.quality, state.scale),
            len(state.scores),
        )
        variance = (len(seen) * seen.var(axis=0) + _DRAWN / known) / (len(seen) + _DRAWN)
        # The log scale is stiff given the scores: its steps are as long as the step size lets them be.
        variance[items] = max(1.0, (_STIFF / state.step_size) ** 2) / known[items]
        variance[items + 1 :] = np.minimum(1.0, variance[items + 1 :])
        return np.asarray(1.0 / variance)

    def walk(self, rng: np.random.Generator, state: State, steps: int, tune: bool = False) -> tuple[State, Info]:
        """So many sweeps over everything."""
        scores, quality, spreads = state.scores.copy(), state.quality.copy(), np.array(state[2:5], np.float64)
        truthful, chance = state.truthful.copy(), state.chance.copy()
        learns = self.scale is None, self.quality is None
        step_size = np.array([state.step_size])
        accepted = sampler_kernels.walk(
            rng,
            self.threads,
            self.items.starts,
            self.limits,
            learns,
            scores,
            quality,
            spreads,
            truthful,
            chance,
            state.curvature,
            step_size,
            steps,
            tune,
        )
        scale, truths, lies = spreads.tolist()
        there = State(scores, quality, scale, truths, lies, truthful, chance, state.curvature, float(step_size[0]))
        return there, Info(accepted / max(1, steps))


def limits_of(hints: Hints, annotators: int) -> Limits:
    """What is known of annotators, as limits of their η."""
    low, high = np.zeros(annotators), np.ones(annotators)
    low[hints.low_of], high[hints.high_of] = sigmoid(hints.low), sigmoid(hints.high)
    low[hints.known] = high[hints.known] = sigmoid(hints.value)
    return Limits(low, high, hints.better, hints.worse)


def within(quality: FloatArray, limits: Limits) -> FloatArray:
    """The nearest qualities within their limits, the better one of each pair a little above the other."""
    span = limits.high - limits.low
    held = np.clip(quality, limits.low + 1e-3 * span, limits.high - 1e-3 * span)
    for _ in range(len(limits.better)):
        for a, b in zip(limits.better, limits.worse, strict=True):
            if held[a] <= held[b]:
                held[a], held[b] = max(held[a], held[b]) + 1e-6, min(held[a], held[b])
    return np.asarray(np.clip(held, np.maximum(limits.low, 1e-12), np.minimum(limits.high, 1 - 1e-13)))
