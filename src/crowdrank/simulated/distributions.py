"""Distributions as one writes them: "beta(2,1)", "uniform(0.5,1)", "normal(0,1)", "0.8"."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from crowdrank.errors import SettingError, UnknownNameError

Numbers = npt.NDArray[np.float64]
Sampler = Callable[[np.random.Generator, int], Numbers]

_FAMILIES: dict[str, Callable[[np.random.Generator, float, float, int], Numbers]] = {
    "beta": lambda rng, a, b, count: rng.beta(a, b, count),
    "uniform": lambda rng, low, high, count: low + (high - low) * rng.random(count),
    "normal": lambda rng, mean, spread, count: rng.normal(mean, spread, count),
}
_FORM = re.compile(r"\s*([a-z_]+)\s*\(([^()]*)\)\s*", re.IGNORECASE)


def sampler(text: str | float, setting: str = "distribution") -> Sampler:
    """What `text` describes, to be drawn from; a lone number is always itself.

    >>> sampler("0.8")(np.random.default_rng(0), 3)
    array([0.8, 0.8, 0.8])
    """
    written = str(text)
    if found := _FORM.fullmatch(written):
        family, inside = found[1].lower(), found[2].split(",")
        if family not in _FAMILIES:
            raise UnknownNameError("distribution", family, _FAMILIES)
        if len(inside) != 2:
            raise SettingError(f"{setting}: {family} takes two numbers, got {written!r}.")
        first, second = (_number(part, written, setting) for part in inside)
        _check(family, first, second, written, setting)
        return lambda rng, count: _FAMILIES[family](rng, first, second, count)
    value = _number(written, written, setting)
    return lambda rng, count: np.full(count, value)


def draw(
    text: str | float, setting: str, rng: np.random.Generator, count: int, low: float = -np.inf, high: float = np.inf
) -> Numbers:
    """`count` numbers from what `text` describes, refused if any lies outside `low` … `high`."""
    drawn = sampler(text, setting)(rng, count)
    outside = (drawn < low) | (drawn > high)
    if outside.any():
        raise SettingError(f"{setting} must lie between {low:g} and {high:g}, but {text} gave {drawn[outside][0]:.4g}.")
    return drawn


def _number(part: str, written: str, setting: str) -> float:
    try:
        value = float(part)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise SettingError(
            f'{setting} must be a number, or a distribution like "beta(2,1)", "uniform(0.5,1)" or "normal(0,1)", '
            f"got {written!r}."
        )
    return value


def _check(family: str, first: float, second: float, written: str, setting: str) -> None:
    if family == "beta" and min(first, second) <= 0:
        raise SettingError(f"{setting}: both numbers of a beta must be positive, got {written!r}.")
    if family == "uniform" and first > second:
        raise SettingError(f"{setting}: a uniform goes from the smaller to the larger number, got {written!r}.")
    if family == "normal" and second < 0:
        raise SettingError(f"{setting}: the spread of a normal cannot be negative, got {written!r}.")
