"""Have the chains met, and how many independent draws are theirs worth (Vehtari, Gelman, Simpson, Carpenter & Bürkner
2021)? For draws of chains × draws × dimensions; one number a dimension, nan where nothing ever moved.

Each chain is cut in two, so that one that drifts disagrees with itself, and draws are replaced by normal scores of
their ranks, so that nothing is asked of the moments.

Markov chains: several, from different starts, each with randomness of its own.

A sampler is two functions, init(rng) -> state and walk(rng, state, steps) -> (state, info), and knows nothing of how
many chains there are, where they run or what is kept of them.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.engines import LOCAL, Engine
from crowdrank.errors import DataError

_COLUMNS_AT_ONCE = 256


def r_hat(draws: FloatArray) -> FloatArray:
    """How much wider all chains are than each: 1 where they have met, above 1.01 where more draws are needed.

    The larger of two, of the draws and of their distances from the median: chains may differ in place or in width.
    """
    return _by_columns(_r_hat, draws)


def effective_size(draws: FloatArray, part: Literal["bulk", "tail"] = "bulk") -> FloatArray:
    """How many independent draws would tell as much: of the middle, or of the 5 % and 95 % points."""
    return _by_columns(_bulk_size if part == "bulk" else _tail_size, draws)


def _by_columns(measure: Callable[[FloatArray], FloatArray], draws: FloatArray) -> FloatArray:
    """A few dimensions at a time, for the memory's sake."""
    if draws.ndim != 3 or draws.shape[1] < 4:
        raise DataError(f"Chains × draws × dimensions are needed, with 4 draws or more, got {draws.shape}.")
    cuts = np.arange(_COLUMNS_AT_ONCE, draws.shape[-1], _COLUMNS_AT_ONCE)
    with np.errstate(divide="ignore", invalid="ignore"):  # a tail may be one value: no variance to divide by
        found = np.concatenate([measure(part) for part in np.split(draws, cuts, axis=-1)])
    return np.where(np.ptp(draws, axis=(0, 1)) > 0, found, np.nan)


def _r_hat(draws: FloatArray) -> FloatArray:
    halves = _halved(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.fmax(_ratio(_normal_scores(halves)), _ratio(_normal_scores(folded)))


def _bulk_size(draws: FloatArray) -> FloatArray:
    return _size(_normal_scores(_halved(draws)))


def _tail_size(draws: FloatArray) -> FloatArray:
    below = (draws <= np.quantile(draws, q, axis=(0, 1)) for q in (0.05, 0.95))
    low, high = (_size(_halved(part.astype(np.float64))) for part in below)
    return np.fmin(low, high)


def _halved(draws: FloatArray) -> FloatArray:
    """The halves of the chains as chains; of an odd number of draws the middle one is left out."""
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, -half:]))


def _normal_scores(draws: FloatArray) -> FloatArray:
    """Φ⁻¹ of the ranks among all chains (Blom 1958), ties sharing theirs."""
    from scipy.special import ndtri

    flat = draws.reshape(-1, draws.shape[-1])
    order = np.argsort(flat, axis=0)
    ordered = np.take_along_axis(flat, order, axis=0)
    place = np.arange(len(flat))[:, None]
    new = np.concatenate((np.ones_like(ordered[:1], bool), ordered[1:] != ordered[:-1]))
    last = np.concatenate((new[1:], new[:1]))
    first = np.maximum.accumulate(np.where(new, place, 0), axis=0)
    final = np.minimum.accumulate(np.where(last, place, len(flat))[::-1], axis=0)[::-1]
    scores = np.empty_like(flat)
    np.put_along_axis(scores, order, ndtri(((first + final) / 2 + 0.625) / (len(flat) + 0.25)), axis=0)
    return scores.reshape(draws.shape)


def _ratio(chains: FloatArray) -> FloatArray:
    within, overall = _variances(chains)
    return np.asarray(np.sqrt(overall / within))


def _variances(chains: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Within chains, and of all draws as the chains estimate it together."""
    count = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (count - 1) / count + chains.mean(axis=1).var(axis=0, ddof=1)


def _size(chains: FloatArray) -> FloatArray:
    """Draws over 1 + 2·Σ autocorrelations, summed in pairs for as long as these are positive, never rising (Geyer)."""
    total = chains.shape[0] * chains.shape[1]
    within, overall = _variances(chains)
    correlation = 1.0 - (within - _autocovariance(chains)) / overall
    correlation[0] = 1.0
    end = 2 * max(1, (chains.shape[1] - 1) // 2)
    even, odd = correlation[0:end:2], correlation[1:end:2]
    pairs = even + odd
    going = np.logical_and.accumulate(pairs > 0, axis=0)
    going[-1] = False
    # the first pair left out may begin with an autocorrelation worth counting
    next_even = np.take_along_axis(even, going.sum(axis=0)[None], axis=0)[0]
    summed = np.sum(np.minimum.accumulate(pairs, axis=0), axis=0, where=going)
    time = -1.0 + 2.0 * summed + np.maximum(next_even, 0.0)
    return np.asarray(total / np.maximum(time, 1.0 / np.log10(total)))


def _autocovariance(chains: FloatArray) -> FloatArray:
    """At each lag, the mean over the chains; by Fourier, padded so that ends do not meet."""
    from scipy.fft import irfft, next_fast_len, rfft

    count = chains.shape[1]
    padded = next_fast_len(2 * count, real=True)
    waves = rfft(chains - chains.mean(axis=1, keepdims=True), padded, axis=1)
    power = np.mean(waves.real**2 + waves.imag**2, axis=0)
    return np.asarray(irfft(power, padded, axis=0)[:count] / count)


State = TypeVar("State")
Walked = tuple[FloatArray, float]
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

    draws: FloatArray
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
    def together(self) -> FloatArray:
        """All chains' draws, one row each."""
        return self.draws.reshape(-1, self.draws.shape[-1])


def sample(
    init: Callable[[np.random.Generator], State],
    walk: Callable[[np.random.Generator, State, int], tuple[State, Info]],
    read: Callable[[State], FloatArray],
    *,
    chains: int,
    warmup: int,
    draws: int,
    thin: int,
    seed: int,
    engine: Engine = LOCAL,
) -> Samples:
    """Run the chains side by side; of each, forget `warmup` steps and keep what `read` says of every `thin`-th."""
    held = engine.distribute(np.random.SeedSequence(seed).spawn(chains))
    (walked,) = held.sum(_run, init, walk, read, warmup, draws, thin)
    return _together(walked)


def sample_until(
    init: Callable[[np.random.Generator], State],
    tune: Callable[[np.random.Generator, State], State],
    walk: Callable[[np.random.Generator, State, int], tuple[State, Info]],
    read: Callable[[State], FloatArray],
    *,
    settled: Callable[[Samples], bool],
    chains: int,
    first: int,
    most: int,
    draws: int,
    seed: int,
    engine: Engine = LOCAL,
) -> tuple[Samples, int]:
    """Walk `first` steps, and as long as they are not settled forget them and walk twice as far, up to `most` in all.

    Before each walk a chain may be tuned: within one nothing of how it walks may change. At most `draws` of each chain
    are kept, evenly spaced; with them comes how many steps each chain took.
    """
    steps, taken = min(first, most), 0
    held, _ = engine.distribute(np.random.SeedSequence(seed).spawn(chains)).map_and_sum(_start, init)
    while True:
        held, (walked,) = held.map_and_sum(_go_on, tune, walk, read, steps, draws)
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
