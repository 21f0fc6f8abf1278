"""Markov chains: several, from different starts, each with randomness of its own.

A sampler is two functions, init(rng) -> state and walk(rng, state, steps) -> (state, info), and knows nothing of how
many chains there are, where they run or what is kept of them.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.solvers.diagnostics import effective_size, r_hat

Vector = npt.NDArray[np.float64]
State = TypeVar("State")
Walked = tuple[Vector, float]
"""What was kept of a chain, and the share of proposals that were taken."""


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
    engine: Engine = here,
) -> Samples:
    """Run the chains side by side; of each, forget `warmup` steps and keep what `read` says of every `thin`-th."""
    held = engine.spread(np.random.SeedSequence(seed).spawn(chains))
    (walked,) = held.total(_run, init, walk, read, warmup, draws, thin)
    return _together(walked)


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
    engine: Engine = here,
) -> tuple[Samples, int]:
    """Walk `first` steps, and as long as they are not settled forget them and walk twice as far, up to `most` in all.

    Before each walk a chain may be tuned: within one nothing of how it walks may change. At most `draws` of each chain
    are kept, evenly spaced; with them comes how many steps each chain took.
    """
    steps, taken = min(first, most), 0
    held, _ = engine.spread(np.random.SeedSequence(seed).spawn(chains)).keep(_start, init)
    while True:
        held, (walked,) = held.keep(_go_on, tune, walk, read, steps, draws)
        samples = _together(walked)
        taken += steps
        if settled(samples) or taken + 2 * steps > most:
            return samples, taken
        steps *= 2


def _run(
    source: np.random.SeedSequence, init: Any, walk: Any, read: Any, warmup: int, draws: int, thin: int
) -> tuple[list[Walked]]:
    rng = np.random.default_rng(source)
    state = init(rng)
    if warmup:
        state, _ = walk(rng, state, warmup)
    return ([_walk(rng, state, walk, read, draws, thin)[1]],)


def _start(source: np.random.SeedSequence, init: Any) -> tuple[Any, tuple[()]]:
    rng = np.random.default_rng(source)
    return (rng, init(rng)), ()


def _go_on(chain: Any, tune: Any, walk: Any, read: Any, steps: int, draws: int) -> tuple[Any, tuple[list[Walked]]]:
    rng, state = deepcopy(chain[0]), chain[1]  # a walk that is lost with its worker is walked again
    thin = -(-steps // draws)
    state, walked = _walk(rng, tune(rng, state), walk, read, steps // thin, thin)
    return (rng, state), ([walked],)


def _walk(rng: np.random.Generator, state: Any, walk: Any, read: Any, draws: int, thin: int) -> tuple[Any, Walked]:
    kept, accepted = [], 0.0
    for _ in range(draws):
        state, info = walk(rng, state, thin)
        accepted += info.accepted
        kept.append(read(state))
    return state, (np.array(kept), accepted / draws)


def _together(walked: list[Walked]) -> Samples:
    kept, accepted = zip(*walked, strict=True)
    return Samples(np.array(kept), float(np.mean(accepted)))
