"""Integration over hyperparameters: Laplace approximations at several values, mixed by their evidence.

Where data are few, hyperparameters such as the spread of the scores are uncertain, and that uncertainty belongs in the
intervals. As in INLA (Rue, Martino & Chopin 2009), the posterior of the scores is approximated by a normal distribution
at each of several values of the hyperparameters. The mixture of these, weighted by the evidence of each value, is the
posterior with the hyperparameters integrated out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LaplaceComponent:
    """The normal approximation of the scores at one value of the hyperparameters.

    Parameters
    ----------
    log_weight : float
        Log evidence of this value, plus the log of its prior and of its quadrature weight. A constant that is the same
        for all components may be left out.
    mode : array of float
        Scores at the mode, centred in each query.
    variance : array of float
        Variance of each centred score.
    draw_around : callable
        `draw_around(rng, n)` returns `n` draws of the centred scores around zero, as rows.
    """

    log_weight: float
    mode: FloatArray
    variance: FloatArray
    draw_around: Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True, eq=False)
class LaplaceMixture:
    """Posterior of the scores as a mixture of normal distributions.

    Parameters
    ----------
    components : sequence of LaplaceComponent
        The approximation at each value of the hyperparameters.
    """

    components: Sequence[LaplaceComponent]

    @cached_property
    def weights(self) -> FloatArray:
        """Posterior probability of each component."""
        log_weight = np.array([component.log_weight for component in self.components])
        weight = np.exp(log_weight - log_weight.max())
        return np.asarray(weight / weight.sum())

    @cached_property
    def mean(self) -> FloatArray:
        """Posterior mean of the scores."""
        return np.asarray(self.weights @ self._modes)

    @cached_property
    def std_error(self) -> FloatArray:
        """Posterior standard deviation of the scores: within the components and between them."""
        within = self.weights @ np.array([component.variance for component in self.components])
        between = self.weights @ (self._modes - self.mean) ** 2
        return np.asarray(np.sqrt(within + between))

    def draw(self, count: int, seed: int) -> FloatArray:
        """Return joint draws of the scores, as rows. Each component gets its share of the draws."""
        rng = np.random.default_rng(seed)
        drawn = [
            component.mode + component.draw_around(rng, int(n))
            for component, n in zip(self.components, allocate(self.weights, count), strict=True)
            if n
        ]
        return np.concatenate(drawn)

    @cached_property
    def _modes(self) -> FloatArray:
        return np.array([component.mode for component in self.components])


def allocate(weights: FloatArray, count: int) -> IntArray:
    """Share out `count` draws in proportion to the weights: systematic sampling from the middle of each step."""
    edges = np.append(0.0, np.cumsum(weights))
    edges[-1] = 1.0
    return np.diff(np.round(edges * count)).astype(np.int64)
