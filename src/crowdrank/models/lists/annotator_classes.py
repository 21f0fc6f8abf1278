"""Classes of annotators who make lists: a grid of precisions, with weights learnt from all annotators.

A regular annotator has a precision κ with log κ ~ N(0, ω²), cut to the grid; some annotators answer at random (κ = 0),
and a few in reverse (κ = −1). The unit of the scores is that of an annotator with κ = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items
from crowdrank.models.lists.crowd_likelihood import class_posterior

_LOG_PRECISION = np.log(2.0) * 0.75 * np.arange(-4, 5)
PRECISION = np.concatenate((np.exp(_LOG_PRECISION), [0.0], [-1.0]))
"""Precision κ of each class: regular, random, reversed."""
_KIND = np.repeat([0, 1, 2], [len(_LOG_PRECISION), 1, 1])
SPREADS = (0.7, 0.25, 1.3)
"""Values of ω, the standard deviation of log κ, that are tried, the most usual first."""
# The Dirichlet prior of the shares, as a number of regular, random and reversed annotators seen before.
_SEEN = np.array([6.0, 0.6, 0.15])
_EM_STEPS = 30
_EM_TOLERANCE = 1e-4
# Pairs of items over which the quality of annotators is averaged: of this many queries, and items of each.
_QUERIES_IN_QUALITY, _ITEMS_IN_QUALITY = 200, 50


@dataclass(frozen=True, eq=False)
class Population:
    """Weights of the classes.

    Parameters
    ----------
    spread : float
        Standard deviation ω of the log precision of regular annotators; 0 if all annotators are alike.
    shares : array of float
        Shares of regular, random and reversed annotators.
    """

    spread: float
    shares: FloatArray

    @classmethod
    def prior(cls, spread: float) -> Population:
        """What is assumed before any list is seen; all annotators are regular if the spread is 0."""
        return cls(spread, _SEEN / _SEEN.sum() if spread else np.array([1.0, 0.0, 0.0]))

    @property
    def log_weight(self) -> FloatArray:
        """Log weight of each class."""
        regular = -0.5 * (_LOG_PRECISION / max(self.spread, 1e-3)) ** 2
        regular -= np.logaddexp.reduce(regular)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.shares)[_KIND] + np.append(regular, [0.0, 0.0]))

    @property
    def log_prior(self) -> float:
        """Log prior density of the shares, up to a constant."""
        return float(_SEEN @ np.log(self.shares)) if self.spread else 0.0

    def learn(self, classes: FloatArray, annotator_weight: FloatArray) -> Population:
        """The most probable shares given log P(lists | class), annotators × classes, by EM."""
        found = self
        for _ in range(_EM_STEPS if self.spread else 0):
            posterior, _ = class_posterior(classes, found.log_weight)
            shares = np.bincount(_KIND, annotator_weight @ posterior) + _SEEN
            before, found = found, replace(found, shares=shares / shares.sum())
            if np.max(np.abs(found.shares - before.shares)) < _EM_TOLERANCE:
                break
        return found

    def log_posterior(self, classes: FloatArray, annotator_weight: FloatArray) -> float:
        """log P(lists | this population) plus the log prior of its shares."""
        _, total = class_posterior(classes, self.log_weight)
        return float(annotator_weight @ total) + self.log_prior


def class_quality(items: Items, scores: FloatArray) -> FloatArray:
    """Probability that an annotator of each class orders two items of a query right, on average over pairs."""
    gaps = []
    queries = np.linspace(0, len(items.queries) - 1, min(len(items.queries), _QUERIES_IN_QUALITY)).astype(int)
    for query in queries:
        own = np.sort(scores[items.of_query(query)])
        own = own[np.linspace(0, len(own) - 1, min(len(own), _ITEMS_IN_QUALITY)).astype(int)]
        first, second = np.triu_indices(len(own), 1)
        gaps.append(own[second] - own[first])
    gap = np.concatenate(gaps)
    if not len(gap):
        return np.full(len(PRECISION), 0.5)
    return np.array([float(np.mean(1 / (1 + np.exp(-np.clip(kappa * gap, -500, 500))))) for kappa in PRECISION])


def summarise(
    posterior: FloatArray, value: FloatArray, level: float = 0.95
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior mean of a value of the classes for each annotator, and the ends of its interval."""
    order: IntArray = np.argsort(value, kind="stable")
    below = np.cumsum(posterior[:, order], axis=1)
    tail = (1 - level) / 2
    low = value[order][np.argmax(below > tail, axis=1)]
    high = value[order][np.argmax(below >= 1 - tail - 1e-12, axis=1)]
    mean = posterior @ value
    # On a grid, a small share of a distant class can move the mean beyond the quantiles.
    return mean, np.minimum(low, mean), np.maximum(high, mean)
