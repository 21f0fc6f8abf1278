"""Markov chain Monte Carlo: running chains, and their diagnostics.

A sampler is a pair of functions, init(rng) -> state and run(rng, state, sweeps) -> (state, info). It is
independent of the number of chains, where they run and which draws are kept.

The diagnostics are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Rank-normalization, folding, and
localization: an improved R̂ for assessing convergence of MCMC. Draws are replaced by normal scores of their ranks, so
no moments need to exist.
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

_CHUNK = 256


def r_hat(draws: FloatArray) -> FloatArray:
    """Rank-normalised split-R̂ of each dimension: 1 if the chains agree, above 1.01 if more draws are needed.

    Parameters
    ----------
    draws : array of chains × draws × dimensions
        At least 4 draws per chain.

    Returns
    -------
    array per dimension
        nan where all draws are equal.

    Notes
    -----
    The larger of two values, for the draws and for their distances from the median: chains may differ in location or in
    scale (Vehtari et al. 2021).
    """
    return _by_chunks(_r_hat, draws)


def effective_sample_size(draws: FloatArray, part: Literal["bulk", "tail"] = "bulk") -> FloatArray:
    """Effective sample size of each dimension: the number of independent draws that would estimate it as well.

    Parameters
    ----------
    draws : array of chains × draws × dimensions
        At least 4 draws per chain.
    part : {"bulk", "tail"}, default "bulk"
        The size for the centre of the distribution, or the smaller one of its 5 % and 95 % quantiles.

    Returns
    -------
    array per dimension
        nan where all draws are equal.
    """
    return _by_chunks(_bulk_ess if part == "bulk" else _tail_ess, draws)


def _by_chunks(measure: Callable[[FloatArray], FloatArray], draws: FloatArray) -> FloatArray:
    """Apply a diagnostic to a few dimensions at a time, to limit memory."""
    if draws.ndim != 3 or draws.shape[1] < 4:
        raise DataError(
            f"Diagnostics need an array of chains × draws × dimensions with at least 4 draws, got shape {draws.shape}."
        )
    cuts = np.arange(_CHUNK, draws.shape[-1], _CHUNK)
    with np.errstate(divide="ignore", invalid="ignore"):  # a tail may be constant, with variance zero
        found = np.concatenate([measure(part) for part in np.split(draws, cuts, axis=-1)])
    return np.where(np.ptp(draws, axis=(0, 1)) > 0, found, np.nan)


def _r_hat(draws: FloatArray) -> FloatArray:
    halves = _split_chains(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.fmax(
        _potential_scale_reduction(_rank_normalize(halves)), _potential_scale_reduction(_rank_normalize(folded))
    )


def _bulk_ess(draws: FloatArray) -> FloatArray:
    return _ess(_rank_normalize(_split_chains(draws)))


def _tail_ess(draws: FloatArray) -> FloatArray:
    below = (draws <= np.quantile(draws, q, axis=(0, 1)) for q in (0.05, 0.95))
    low, high = (_ess(_split_chains(part.astype(np.float64))) for part in below)
    return np.fmin(low, high)


def _split_chains(draws: FloatArray) -> FloatArray:
    """Split each chain into halves, so that a drifting chain disagrees with itself. An odd middle draw is dropped."""
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, -half:]))


def _rank_normalize(draws: FloatArray) -> FloatArray:
    """Normal scores Φ⁻¹ of the ranks among all chains (Blom 1958); ties share their mean rank."""
    from scipy.special import ndtri

    flat = draws.reshape(-1, draws.shape[-1])
    order = np.argsort(flat, axis=0)
    ordered = np.take_along_axis(flat, order, axis=0)
    rank = np.arange(len(flat))[:, None]
    new = np.concatenate((np.ones_like(ordered[:1], bool), ordered[1:] != ordered[:-1]))
    last = np.concatenate((new[1:], new[:1]))
    first_tied = np.maximum.accumulate(np.where(new, rank, 0), axis=0)
    last_tied = np.minimum.accumulate(np.where(last, rank, len(flat))[::-1], axis=0)[::-1]
    scores = np.empty_like(flat)
    np.put_along_axis(scores, order, ndtri(((first_tied + last_tied) / 2 + 0.625) / (len(flat) + 0.25)), axis=0)
    return scores.reshape(draws.shape)


def _potential_scale_reduction(chains: FloatArray) -> FloatArray:
    within, overall = _variances(chains)
    return np.asarray(np.sqrt(overall / within))


def _variances(chains: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance within chains, and the pooled estimate of the total variance."""
    count = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (count - 1) / count + chains.mean(axis=1).var(axis=0, ddof=1)


def _ess(chains: FloatArray) -> FloatArray:
    """Number of draws over the autocorrelation time 1 + 2 Σ ρ, cut off by Geyer's initial monotone sequence."""
    total = chains.shape[0] * chains.shape[1]
    within, overall = _variances(chains)
    correlation = 1.0 - (within - _autocovariance(chains)) / overall
    correlation[0] = 1.0
    end = 2 * max(1, (chains.shape[1] - 1) // 2)
    even, odd = correlation[0:end:2], correlation[1:end:2]
    pairs = even + odd
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    positive[-1] = False
    # The first pair that is cut off may still begin with a positive autocorrelation.
    next_even = np.take_along_axis(even, positive.sum(axis=0)[None], axis=0)[0]
    summed = np.sum(np.minimum.accumulate(pairs, axis=0), axis=0, where=positive)
    autocorrelation_time = -1.0 + 2.0 * summed + np.maximum(next_even, 0.0)
    return np.asarray(total / np.maximum(autocorrelation_time, 1.0 / np.log10(total)))


def _autocovariance(chains: FloatArray) -> FloatArray:
    """Autocovariance at each lag, averaged over chains, by FFT with zero padding against wrap-around."""
    from scipy.fft import irfft, next_fast_len, rfft

    count = chains.shape[1]
    padded = next_fast_len(2 * count, real=True)
    spectrum = rfft(chains - chains.mean(axis=1, keepdims=True), padded, axis=1)
    power = np.mean(spectrum.real**2 + spectrum.imag**2, axis=0)
    return np.asarray(irfft(power, padded, axis=0)[:count] / count)


State = TypeVar("State")
ChainDraws = tuple[FloatArray, float]
"""Draws kept of one chain, and its acceptance rate."""


class Info(Protocol):
    """Information that a sampler reports about its sweeps."""

    @property
    def acceptance_rate(self) -> float: ...


@dataclass(frozen=True)
class Samples:
    """Draws of several chains.

    Parameters
    ----------
    draws : array of chains × draws × dimensions
    acceptance_rate : float
        Share of accepted proposals.
    """

    draws: FloatArray
    acceptance_rate: float

    @cached_property
    def r_hat(self) -> float:
        """Largest R̂ of all dimensions."""
        return float(np.nanmax(r_hat(self.draws), initial=1.0))

    @cached_property
    def effective_sample_size(self) -> float:
        """Smallest effective sample size of all dimensions."""
        return float(np.nanmin(effective_sample_size(self.draws), initial=self.draws.shape[0] * self.draws.shape[1]))

    @property
    def pooled(self) -> FloatArray:
        """Draws of all chains, one row per draw."""
        return self.draws.reshape(-1, self.draws.shape[-1])


def sample(
    init: Callable[[np.random.Generator], State],
    run: Callable[[np.random.Generator, State, int], tuple[State, Info]],
    extract: Callable[[State], FloatArray],
    *,
    chains: int,
    warmup: int,
    draws: int,
    thin: int,
    seed: int,
    engine: Engine = LOCAL,
) -> Samples:
    """Run several chains for a fixed number of sweeps.

    Parameters
    ----------
    init : callable
        `init(rng)` returns the initial state of a chain.
    run : callable
        `run(rng, state, sweeps)` returns the new state and an `Info`.
    extract : callable
        `extract(state)` returns the vector that is kept of a state.
    chains : int
        Number of chains.
    warmup : int
        Sweeps discarded at the start of each chain.
    draws : int
        Draws kept per chain.
    thin : int
        Sweeps per draw.
    seed : int
        Each chain has its own generator, spawned from this seed.
    engine : Engine, default: this process
        Where the chains run.

    Returns
    -------
    Samples

    Examples
    --------
    >>> class Info:
    ...     acceptance_rate = 1.0
    >>> samples = sample(
    ...     lambda rng: 0.0,
    ...     lambda rng, state, sweeps: (rng.normal(), Info()),
    ...     lambda state: np.array([state]),
    ...     chains=2, warmup=0, draws=100, thin=1, seed=0,
    ... )
    >>> samples.draws.shape
    (2, 100, 1)
    """
    held = engine.distribute(np.random.SeedSequence(seed).spawn(chains))
    (drawn,) = held.sum(_run_chain, init, run, extract, warmup, draws, thin)
    return _to_samples(drawn)


def sample_until(
    init: Callable[[np.random.Generator], State],
    tune: Callable[[np.random.Generator, State], State],
    run: Callable[[np.random.Generator, State, int], tuple[State, Info]],
    extract: Callable[[State], FloatArray],
    *,
    converged: Callable[[Samples], bool],
    chains: int,
    initial_sweeps: int,
    max_sweeps: int,
    draws: int,
    seed: int,
    engine: Engine = LOCAL,
) -> tuple[Samples, int]:
    """Run several chains until they have converged, doubling their length each round.

    The first round has `initial_sweeps` sweeps. As long as the chains have not converged, their draws are discarded and
    they run twice as long, up to `max_sweeps` in total.

    Parameters
    ----------
    init, run, extract, chains, seed, engine
        As for `sample`.
    tune : callable
        `tune(rng, state)` returns a state with new tuning parameters. It is called before each round, because tuning
        parameters must not change within a round.
    converged : callable
        `converged(samples)` says whether to stop.
    initial_sweeps, max_sweeps : int
        Sweeps of the first round, and the maximum number of sweeps per chain.
    draws : int
        Maximum number of draws kept per chain, evenly spaced.

    Returns
    -------
    samples : Samples
        Draws of the last round.
    sweeps : int
        Sweeps per chain in all rounds.
    """
    sweeps, total = min(initial_sweeps, max_sweeps), 0
    held, _ = engine.distribute(np.random.SeedSequence(seed).spawn(chains)).map_and_sum(_start_chain, init)
    while True:
        held, (drawn,) = held.map_and_sum(_continue_chain, tune, run, extract, sweeps, draws)
        samples = _to_samples(drawn)
        total += sweeps
        if converged(samples) or total + 2 * sweeps > max_sweeps:
            return samples, total
        sweeps *= 2


def _run_chain(
    source: np.random.SeedSequence, init: Any, run: Any, extract: Any, warmup: int, draws: int, thin: int
) -> tuple[list[ChainDraws]]:
    rng = np.random.default_rng(source)
    state = init(rng)
    if warmup:
        state, _ = run(rng, state, warmup)
    return ([_draw(rng, state, run, extract, draws, thin)[1]],)


def _start_chain(source: np.random.SeedSequence, init: Any) -> tuple[Any, tuple[()]]:
    rng = np.random.default_rng(source)
    return (rng, init(rng)), ()


def _continue_chain(
    chain: Any, tune: Any, run: Any, extract: Any, sweeps: int, draws: int
) -> tuple[Any, tuple[list[ChainDraws]]]:
    rng, state = deepcopy(chain[0]), chain[1]  # a round that is lost with its worker runs again from here
    thin = -(-sweeps // draws)
    state, drawn = _draw(rng, tune(rng, state), run, extract, sweeps // thin, thin)
    return (rng, state), ([drawn],)


def _draw(
    rng: np.random.Generator, state: Any, run: Any, extract: Any, draws: int, thin: int
) -> tuple[Any, ChainDraws]:
    kept, acceptance_rate = [], 0.0
    for _ in range(draws):
        state, info = run(rng, state, thin)
        acceptance_rate += info.acceptance_rate
        kept.append(extract(state))
    return state, (np.array(kept), acceptance_rate / draws)


def _to_samples(drawn: list[ChainDraws]) -> Samples:
    kept, acceptance_rate = zip(*drawn, strict=True)
    return Samples(np.array(kept), float(np.mean(acceptance_rate)))
