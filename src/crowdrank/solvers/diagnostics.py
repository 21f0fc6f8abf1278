"""Have the chains met, and how many independent draws are theirs worth (Vehtari, Gelman, Simpson, Carpenter & Bürkner
2021)? For draws of chains × draws × dimensions; one number a dimension, nan where nothing ever moved.

Each chain is cut in two, so that one that drifts disagrees with itself, and draws are replaced by normal scores of
their ranks, so that nothing is asked of the moments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from crowdrank.errors import DataError

Vector = npt.NDArray[np.float64]

_COLUMNS_AT_ONCE = 256


def r_hat(draws: Vector) -> Vector:
    """How much wider all chains are than each: 1 where they have met, above 1.01 where more draws are needed.

    The larger of two, of the draws and of their distances from the median: chains may differ in place or in width.
    """
    return _by_columns(_r_hat, draws)


def effective_size(draws: Vector, part: Literal["bulk", "tail"] = "bulk") -> Vector:
    """How many independent draws would tell as much: of the middle, or of the 5 % and 95 % points."""
    return _by_columns(_bulk_size if part == "bulk" else _tail_size, draws)


def _by_columns(measure: Callable[[Vector], Vector], draws: Vector) -> Vector:
    """A few dimensions at a time, for the memory's sake."""
    if draws.ndim != 3 or draws.shape[1] < 4:
        raise DataError(f"Chains × draws × dimensions are needed, with 4 draws or more, got {draws.shape}.")
    cuts = np.arange(_COLUMNS_AT_ONCE, draws.shape[-1], _COLUMNS_AT_ONCE)
    with np.errstate(divide="ignore", invalid="ignore"):  # a tail may be one value: no variance to divide by
        found = np.concatenate([measure(part) for part in np.split(draws, cuts, axis=-1)])
    return np.where(np.ptp(draws, axis=(0, 1)) > 0, found, np.nan)


def _r_hat(draws: Vector) -> Vector:
    halves = _halved(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.fmax(_ratio(_normal_scores(halves)), _ratio(_normal_scores(folded)))


def _bulk_size(draws: Vector) -> Vector:
    return _size(_normal_scores(_halved(draws)))


def _tail_size(draws: Vector) -> Vector:
    below = (draws <= np.quantile(draws, q, axis=(0, 1)) for q in (0.05, 0.95))
    low, high = (_size(_halved(part.astype(np.float64))) for part in below)
    return np.fmin(low, high)


def _halved(draws: Vector) -> Vector:
    """The halves of the chains as chains; of an odd number of draws the middle one is left out."""
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, -half:]))


def _normal_scores(draws: Vector) -> Vector:
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


def _ratio(chains: Vector) -> Vector:
    within, overall = _variances(chains)
    return np.asarray(np.sqrt(overall / within))


def _variances(chains: Vector) -> tuple[Vector, Vector]:
    """Within chains, and of all draws as the chains estimate it together."""
    count = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (count - 1) / count + chains.mean(axis=1).var(axis=0, ddof=1)


def _size(chains: Vector) -> Vector:
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


def _autocovariance(chains: Vector) -> Vector:
    """At each lag, the mean over the chains; by Fourier, padded so that ends do not meet."""
    from scipy.fft import irfft, next_fast_len, rfft

    count = chains.shape[1]
    padded = next_fast_len(2 * count, real=True)
    waves = rfft(chains - chains.mean(axis=1, keepdims=True), padded, axis=1)
    power = np.mean(waves.real**2 + waves.imag**2, axis=0)
    return np.asarray(irfft(power, padded, axis=0)[:count] / count)
