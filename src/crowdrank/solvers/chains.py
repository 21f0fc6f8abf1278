"""Markov chains: several, from different starts, each with randomness of its own.

A sampler is two functions, init(rng) -> state and walk(rng, state, steps) -> (state, info), and knows nothing of how
many chains there are or what is kept of them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from crowdrank.solvers.diagnostics import effective_size, r_hat

Vector = npt.NDArray[np.float64]
State = TypeVar("State")


class Info(Protocol):
    """How steps went."""

    @property
    def accepted(self) -> float:
        """The share of proposals that were taken."""
        ...


@dataclass(frozen=True)
class Samples:
    """What was drawn, chain by chain."""

    draws: Vector
    """Chains × draws × dimensions."""
    accepted: float
    """The share of proposals that were taken."""

    @cached_property
    def r_hat(self) -> float:
        """The worst over the dimensions: 1 where the chains have met."""
        return float(np.nanmax(r_hat(self.draws), initial=1.0))

    @cached_property
    def effective_size(self) -> float:
        """The worst over the dimensions: how many independent draws would tell as much."""
        return float(np.nanmin(effective_size(self.draws), initial=self.draws.shape[0] * self.draws.shape[1]))

    @property
    def together(self) -> Vector:
        """All chains' draws, one row each."""
        return self.draws.reshape(-1, self.draws.shape[-1])


def sample(
    init: Callable[[np.random.Generator], State],
    walk: Callable[[np.random.Generator, State, int], tuple[State, Info]],
    read: Callable[[State], Vector],
    *,
    chains: int,
    warmup: int,
    draws: int,
    thin: int,
    seed: int,
) -> Samples:
    """Run the chains side by side; of each, forget `warmup` steps and keep what `read` says of every `thin`-th."""

    def run(source: np.random.SeedSequence) -> tuple[list[Vector], float]:
        rng = np.random.default_rng(source)
        state = init(rng)
        if warmup:
            state, _ = walk(rng, state, warmup)
        kept, accepted = [], 0.0
        for _ in range(draws):
            state, info = walk(rng, state, thin)
            accepted += info.accepted
            kept.append(read(state))
        return kept, accepted / draws

    sources = np.random.SeedSequence(seed).spawn(chains)
    with ThreadPoolExecutor(chains) as threads:
        walked: list[Any] = list(threads.map(run, sources))
    return Samples(np.array([kept for kept, _ in walked]), float(np.mean([share for _, share in walked])))


def sample_until(
    init: Callable[[np.random.Generator], State],
    tune: Callable[[np.random.Generator, State], State],
    walk: Callable[[np.random.Generator, State, int], tuple[State, Info]],
    read: Callable[[State], Vector],
    *,
    settled: Callable[[Samples], bool],
    chains: int,
    first: int,
    most: int,
    draws: int,
    seed: int,
) -> tuple[Samples, int]:
    """Walk `first` steps, and as long as they are not settled forget them and walk twice as far, up to `most` in all.

    Before each walk a chain may be tuned: within one nothing of how it walks may change. At most `draws` of each chain
    are kept, evenly spaced; with them comes how many steps each chain took.
    """

    def run(chain: tuple[np.random.Generator, State]) -> tuple[list[Vector], float, State]:
        rng, state = chain
        state = tune(rng, state)
        kept, accepted = [], 0.0
        thin = -(-steps // draws)
        for _ in range(steps // thin):
            state, info = walk(rng, state, thin)
            accepted += info.accepted
            kept.append(read(state))
        return kept, accepted / len(kept), state

    sources = [np.random.default_rng(source) for source in np.random.SeedSequence(seed).spawn(chains)]
    steps, taken = min(first, most), 0
    with ThreadPoolExecutor(chains) as threads:
        states: Any = list(threads.map(init, sources))
        while True:
            walked: list[Any] = list(threads.map(run, zip(sources, states, strict=True)))
            kept, accepted, states = zip(*walked, strict=True)
            samples = Samples(np.array(kept), float(np.mean(accepted)))
            taken += steps
            if settled(samples) or taken + 2 * steps > most:
                return samples, taken
            steps *= 2
