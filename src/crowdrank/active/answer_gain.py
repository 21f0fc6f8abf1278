"""The gain of an answer: how many more pairs of items are expected in the right order, given a normal distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray

GOLD, HUMAN = "gold", "human"
# Share of the variance of a difference that answers can explain at most.
_MOST_EXPLAINED = 0.999
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


class Source(NamedTuple):
    """Someone whose answers can be bought.

    Parameters
    ----------
    name : str
        A name, "human" or "gold".
    price : float
        Price of an answer.
    quality : float
        Probability that an answer is the intended one.
    noise : float
        Standard deviation of the noise on the difference of scores.
    free : array of bool
        Which pairs can be asked.
    """

    name: str
    price: float
    quality: float
    noise: float
    free: BoolArray


class _Best(NamedTuple):
    """The best answer of a source: its gain, its pair, and the state after it."""

    gain: float
    pair: int
    information: float
    explained: FloatArray
    accuracy: FloatArray


@dataclass(eq=False)
class _Choice:
    """Differences of pairs, how much of their variance the chosen answers explain, and how sure their orders are."""

    margin: FloatArray
    covariance: FloatArray
    within: FloatArray
    share: float
    before: FloatArray
    explained: FloatArray
    accuracy: FloatArray
    settled: BoolArray

    def best_of(self, source: Source, free: BoolArray) -> _Best | None:
        """The pair whose answer by this source gains most."""
        candidates = np.flatnonzero(free)
        if not len(candidates):
            return None
        information = _information(self.margin, self.covariance, source)[candidates]
        explained = self.explained + self._relation(source)[candidates] ** 2 * information[:, None]
        explained = np.minimum(explained, _MOST_EXPLAINED * self.before)
        accuracy = _expected_accuracy(self.margin, self.before, explained)
        accuracy[:, self.settled] = 1.0
        rise = accuracy - self.accuracy
        own = rise[np.arange(len(candidates)), candidates]
        gain = self.share * (rise.sum(axis=1) - own)
        if source.name == GOLD:
            # The pair itself is settled, whichever it is: choosing by that would prefer pairs that teach nothing.
            at = int(np.argmax(gain))
            own = 1.0 - self.accuracy[candidates]
        else:
            at = int(np.argmax(gain + own))
        return _Best(
            float(gain[at] + own[at]), int(candidates[at]), float(information[at]), explained[at], accuracy[at]
        )

    def _relation(self, source: Source) -> FloatArray:
        """What an answer has in common with other pairs: only gold tells which direction is the truth."""
        return self.covariance if source.name == GOLD else self.within

    def take(self, best: _Best, source: Source) -> None:
        """Count an answer as given."""
        self.explained, self.accuracy = best.explained, best.accuracy
        if source.name == GOLD:
            self.settled[best.pair], self.accuracy[best.pair] = True, 1.0
        column, own = self._relation(source)[:, best.pair], self.within[:, best.pair]
        self.covariance = self.covariance - best.information * np.outer(column, column)
        self.within = self.within - best.information * np.outer(own, own)


def choose_by_gain(
    margin: FloatArray,
    covariance: FloatArray,
    within: FloatArray,
    share: float,
    sources: Sequence[Source],
    count: int,
) -> list[tuple[int, int, float]]:
    """Sources and pairs one after the other, each with its gain given those before it."""
    from scipy.special import ndtr

    before = np.maximum(np.diag(covariance), 1e-12)
    nothing = np.zeros(len(margin))
    accuracy = ndtr(np.abs(margin) / np.sqrt(before))
    state = _Choice(margin, covariance, within, share, before, nothing, accuracy, nothing.astype(bool))
    free = [source.free.copy() for source in sources]
    chosen: list[tuple[int, int, float]] = []
    for _ in range(count):
        offers = [state.best_of(source, mask) for source, mask in zip(sources, free, strict=True)]
        worth = [-np.inf if o is None else o.gain / s.price for o, s in zip(offers, sources, strict=True)]
        number = int(np.argmax(worth))
        best, name = offers[number], sources[number].name
        if best is None:
            break
        chosen.append((number, best.pair, max(best.gain, 0.0)))
        state.take(best, sources[number])
        for n, mask in enumerate(free):
            # Another person can be asked about the same pair; nobody needs to be once its answer is known.
            mask[best.pair] &= name != GOLD and (n != number or name == HUMAN)
    return chosen


def _information(margin: FloatArray, covariance: FloatArray, source: Source) -> FloatArray:
    """κ: an answer to pair p reduces the variance of pair q by Cov(p, q)²·κ, by linear regression on the answer."""
    from scipy.special import ndtr

    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0) + source.noise**2)
    spread = np.maximum(spread, 1e-9)
    ahead = np.clip(margin / spread, -8, 8)
    trust = 2 * source.quality - 1
    likely = 0.5 + trust * (ndtr(ahead) - 0.5)
    density = np.exp(-0.5 * ahead**2) / np.sqrt(2 * np.pi)
    return np.asarray((trust * density / spread) ** 2 / np.maximum(likely * (1 - likely), 1e-12))


def _expected_accuracy(margin: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Expected probability of the more probable order of each pair, if `after` of its variance is explained."""
    from scipy.special import ndtr

    root, rest = np.sqrt(after), np.sqrt(before - after)
    found = np.zeros(after.shape)
    for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
        found += weight * ndtr(np.abs(margin + root * node) / rest)
    return found
