"""Which queries are of one domain, and how many domains there are, by how well each annotator does in each query.

What is known of an annotator in a query is a curve: the log likelihood of their judgments, had they this or that
expertise. A domain explains its queries by one expertise an annotator, integrated out; the number of domains is what a
Dirichlet process finds likeliest. The search splits domains in two, moves queries one by one, and joins domains, as
long as that explains the judgments better (after Jain & Neal 2004). A query may be upside down beside its domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, IntArray

GRID = np.array([-4.0, -2.5, -1.6, -1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0, 1.6, 2.5, 4.0])
"""Expertise an annotator might have; the same both ways, so that a curve read backwards is its mirror image."""
_TRIES = 8
_SCANS = 6
_PASSES = 10


@dataclass(frozen=True)
class Prior:
    """What is believed of expertise, on the grid, and how readily a query opens a domain of its own."""

    chance: FloatArray
    openness: float = 1.0

    @classmethod
    def normal(cls, middle: float, spread: float) -> Prior:
        weight = np.gradient(GRID) * np.exp(-0.5 * ((GRID - middle) / spread) ** 2)
        return cls(weight / weight.sum())

    def evidence(self, told: FloatArray) -> FloatArray:
        """Log likelihood of what was told of annotators, expertise integrated out; the last two axes are theirs."""
        top = told.max(axis=-1)
        return np.asarray(np.sum(top + np.log(np.exp(told - top[..., None]) @ self.chance), axis=-1))

    def posterior(self, told: FloatArray) -> FloatArray:
        """What is then believed of everyone's expertise, on the grid."""
        weight = np.exp(told - told.max(axis=-1, keepdims=True)) * self.chance
        return np.asarray(weight / weight.sum(axis=-1, keepdims=True))

    def opening(self, size: Any) -> Any:
        """Log chance that so many queries share a domain; what all ways of sharing have in common is left out."""
        from scipy.special import gammaln

        return np.log(self.openness) + gammaln(size)


@dataclass
class Groups:
    """Queries in groups, and the search for better ones. Curves are queries × annotators × grid."""

    curves: FloatArray
    prior: Prior
    group: IntArray
    sign: FloatArray
    """−1 where a query is upside down beside its group."""

    @property
    def count(self) -> int:
        return int(self.group.max()) + 1

    @property
    def sizes(self) -> IntArray:
        return np.bincount(self.group, minlength=self.count)

    @property
    def told(self) -> FloatArray:
        """What each group's queries tell together; groups × annotators × grid."""
        return _told(self._upright, self.group, self.count)

    @property
    def _upright(self) -> FloatArray:
        return np.where(self.sign[:, None, None] > 0, self.curves, self.curves[:, :, ::-1])

    def search(self, rng: np.random.Generator, count: int | None = None) -> Groups:
        """Until nothing helps; with a count given, until there are so many."""
        for _ in range(_PASSES):
            before = self.group.copy()
            self._split(rng)
            self._move()
            self._join(count)
            if np.array_equal(before, self.group):
                break
        while count is not None and self.count < min(count, len(self.group)):
            self._split_one(rng)
        return self

    def _split(self, rng: np.random.Generator) -> None:
        for number in range(self.count):
            gain, others = self._best_halves(rng, number)
            if gain > 0:
                self.group[others] = self.count

    def _split_one(self, rng: np.random.Generator) -> None:
        """The group that can best be split, whether it helps or not; where none can, the largest, anyhow."""
        halves = [self._best_halves(rng, number) for number in range(self.count)]
        gain, others = max(halves, key=lambda found: found[0])
        if gain == -np.inf:
            others = np.flatnonzero(self.group == np.argmax(self.sizes))[::2]
        self.group[others] = self.count

    def _best_halves(self, rng: np.random.Generator, number: int) -> tuple[float, IntArray]:
        """What is gained by splitting a group, and the queries that leave it."""
        members = np.flatnonzero(self.group == number)
        if len(members) < 2:
            return -np.inf, members[:0]
        some = Likelihoods(self._upright[members], self.prior)
        whole = some.worth_of(np.zeros(len(members), np.int64), 1)
        worth, half = max((some.halves(rng) for _ in range(_TRIES)), key=lambda found: found[0])
        return worth - whole, members[half == 1] if worth > -np.inf else members[:0]

    def _move(self) -> None:
        """Each query to where it is likeliest, given the others there, either way up."""
        for _ in range(_SCANS):
            all_of_them, told = Likelihoods(self._upright, self.prior), self.told
            chance = all_of_them.both_ways(told, self.sizes)
            chance[:, : self.count] = all_of_them.chances(told, self.group)
            best = np.argmax(chance, axis=1)
            if np.array_equal(best, self.group):
                break
            self.sign = np.where(best >= self.count, -self.sign, self.sign)
            self.group = _numbered(best % self.count)

    def _join(self, count: int | None) -> None:
        while self.count > 1:
            gain, (one, other), flip = self._best_pair()
            if gain <= 0 and (count is None or self.count <= count):
                return
            joined = self.group == other
            if flip:
                self.sign = np.where(joined, -self.sign, self.sign)
            self.group = _numbered(np.where(joined, one, self.group))

    def _best_pair(self) -> tuple[float, tuple[int, int], bool]:
        """The groups that are best joined, what is gained by it, and whether one has to be turned."""
        told, sizes = self.told, self.sizes
        apart = self.prior.evidence(told) + self.prior.opening(sizes)
        best: tuple[float, tuple[int, int], bool] = (-np.inf, (0, 0), False)
        for one in range(self.count - 1):
            rest = slice(one + 1, None)
            opening = self.prior.opening(sizes[one] + sizes[rest])
            for flip in (False, True):
                others = told[rest, :, ::-1] if flip else told[rest]
                gains = self.prior.evidence(told[one] + others) + opening - apart[one] - apart[rest]
                place = int(np.argmax(gains))
                best = max(best, (float(gains[place]), (one, one + 1 + place), flip))
        return best


class Likelihoods:
    """Curves as likelihoods, for products in place of exponentials; annotators × queries × grid."""

    def __init__(self, curves: FloatArray, prior: Prior) -> None:
        self.curves, self.prior = curves, prior
        across = np.ascontiguousarray(curves.transpose(1, 0, 2))
        top = across.max(axis=2, keepdims=True)
        self.top = top.sum(axis=(0, 2))
        self.likely = np.maximum(np.exp(across - top), 1e-250)

    def worth_of(self, group: IntArray, count: int) -> float:
        """Log evidence of a grouping."""
        told = _told(self.curves, group, count)
        sizes = np.bincount(group, minlength=count)
        return float(np.sum(self.prior.evidence(told) + self.prior.opening(sizes)))

    def chances(self, told: FloatArray, group: IntArray) -> FloatArray:
        """Log chance of each query in each group, given the other queries there; queries × groups."""
        sizes, rows = np.bincount(group, minlength=len(told)), np.arange(len(group))
        posterior = self.prior.posterior(told).transpose(1, 2, 0)
        chance = self._by_groups(self.likely, posterior) + np.log(np.maximum(sizes, 1e-9))
        own = posterior.transpose(0, 2, 1)[:, group]
        alone = -np.log(np.einsum("kqg,kqg->kq", own, 1.0 / self.likely)).sum(axis=0) + self.top
        chance[rows, group] = alone + np.log(np.maximum(sizes[group] - 1.0, self.prior.openness))
        return np.asarray(chance)

    def both_ways(self, told: FloatArray, sizes: AnyArray) -> FloatArray:
        """Log chance of each query in each group, then of each upside down; queries × twice the groups."""
        posterior, crowd = self.prior.posterior(told).transpose(1, 2, 0), np.log(np.maximum(sizes, 1e-9))
        sides = (self.likely, self.likely[:, :, ::-1])
        return np.concatenate([self._by_groups(side, posterior) + crowd for side in sides], axis=1)

    def first_chances(self, seeds: IntArray) -> FloatArray:
        """Of each query in groups of one other query each."""
        posterior = self.prior.posterior(self.curves[seeds]).transpose(1, 2, 0)
        return self._by_groups(self.likely, posterior)

    def _by_groups(self, likely: FloatArray, posterior: FloatArray) -> FloatArray:
        chance = np.log(np.maximum(likely @ posterior, 1e-300)).sum(axis=0)
        return np.asarray(chance + self.top[:, None])

    def halves(self, rng: np.random.Generator) -> tuple[float, IntArray]:
        """Two groups around two queries at random: their evidence, and the group of each query."""
        seeds = rng.choice(self.curves.shape[0], 2, replace=False)
        half = np.argmax(self.first_chances(seeds), axis=1)
        for _ in range(_SCANS):
            if half.min() == half.max():
                return -np.inf, half
            better = np.argmax(self.chances(_told(self.curves, half, 2), half), axis=1)
            if np.array_equal(better, half):
                break
            half = better
        if half.min() == half.max():
            return -np.inf, half
        return self.worth_of(half, 2), half


def _told(upright: FloatArray, group: IntArray, count: int) -> FloatArray:
    member = (group == np.arange(count)[:, None]).astype(np.float64)
    return np.asarray((member @ upright.reshape(len(upright), -1)).reshape(count, *upright.shape[1:]))


def _numbered(group: IntArray) -> IntArray:
    return np.unique(group, return_inverse=True)[1].astype(np.int64)
