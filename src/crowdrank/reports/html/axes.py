"""Axes: values as shares of the width or height of a figure, and the ticks along it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    title: str
    place: Callable[[float], float]
    """A value as a share of the axis, 0 to 1."""
    ticks: tuple[tuple[float, str], ...]
    """Values, and how they are written."""


def linear(title: str, low: float, high: float) -> Axis:
    """With a handful of round ticks."""
    span = (high - low) or 1.0
    step = _round_step(span / 5)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple((n * step, f"{n * step:,.{digits}f}".replace("-", "−")) for n in range(first, last + 1))
    return Axis(title, lambda value: (value - low) / span, ticks)


def shares(title: str, low: float = 0.0, high: float = 1.0) -> Axis:
    """In percent."""
    found = linear(title, low, high)
    return Axis(title, found.place, tuple((value, f"{100 * value:.0f} %") for value, _ in found.ticks))


def numbers(title: str, low: float, high: float) -> Axis:
    """Of things that are counted: ticks are whole."""
    found = linear(title, low, high)
    return Axis(title, found.place, tuple((v, f"{v:,.0f}") for v, _ in found.ticks if abs(v - round(v)) < 1e-6))


def counts(title: str, low: int, high: int) -> Axis:
    """By powers where the largest is many times the smallest."""
    if high <= 20 * max(low, 1):
        return numbers(title, 0.0, 1.05 * high)
    bottom, top = math.log(max(low, 1) / 1.3), math.log(high * 1.3)
    ticks = tuple((float(v), f"{v:,}") for power in range(8) for v in _within(10**power, low, high))
    return Axis(title, lambda value: (math.log(max(value, 1.0)) - bottom) / (top - bottom), ticks)


def _within(power: int, low: int, high: int) -> list[int]:
    return [m * power for m in (1, 3) if low / 1.3 <= m * power <= high * 1.3]


def _round_step(rough: float) -> float:
    """The next of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9))
