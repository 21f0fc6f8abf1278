"""Normal approximation of a posterior by variational inference, as a refinement of Laplace's.

Laplace's method takes the mode and the curvature there. Where a parameter has few data its posterior is skewed and
wider than that. The normal distribution q = N(m, P⁻¹) that is closest to the posterior in the sense of
KL(q ‖ posterior) has a zero mean gradient, and a precision P that is the mean curvature, both under q itself (Opper &
Archambeau 2009). Here the means are taken over a few pairs of opposite draws. The draws are made from the same random
numbers in every round, so that the iteration converges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.engines.local import limit_blas_threads
from crowdrank.inference.curvature import DampedCurvature, solve_factored, solve_transposed

# The largest change of a parameter in one round.
_MAX_STEP = 1.0


class MeanEvaluation(Protocol):
    """Means of a log posterior's gradient and curvature (with a positive diagonal for damping) over some draws."""

    @property
    def gradient(self) -> FloatArray: ...

    @property
    def matrix(self) -> FloatArray: ...

    @property
    def diagonal(self) -> FloatArray: ...


E = TypeVar("E", bound=MeanEvaluation)


@dataclass(frozen=True, eq=False)
class NormalApproximation(Generic[E]):
    """A normal distribution that approximates a posterior.

    Parameters
    ----------
    mean : array of float
        Its mean.
    root : array of float
        Cholesky factor L of its precision, LLᵀ.
    shift : float
        How far the last round moved the mean, in standard errors: √((m′−m)ᵀP(m′−m) / n).
    evaluation : MeanEvaluation
        The means over the draws of the last round.
    """

    mean: FloatArray
    root: FloatArray
    shift: float
    evaluation: E


def refine(
    mean_over: Callable[[FloatArray], E],
    mean: FloatArray,
    root: FloatArray,
    noise: FloatArray,
    prior_precision: float,
    damping: float = 0.0,
) -> NormalApproximation[E]:
    """One round of variational inference.

    Parameters
    ----------
    mean_over : callable
        Mean gradient and curvature of the log posterior density over draws of the parameters (draws × parameters).
    mean, root : arrays of float
        The approximation so far.
    noise : array of float, pairs × parameters
        Random numbers of mean 0 and variance 1; each row is used with both signs.
    prior_precision : float
        Precision of the prior of each parameter. The approximation is nowhere wider than the prior.
    damping : float, default 0
        Share of the former precision that is kept, and by which the step is shortened, for rounds that oscillate.
    """
    size = len(mean)
    with limit_blas_threads(size):
        around = np.linalg.solve(root.T, noise.T).T
        evaluation = mean_over(mean + np.concatenate((around, -around)))
        matrix = (1.0 - damping) * evaluation.matrix + damping * (root @ root.T)
        matrix.flat[:: size + 1] -= 0.99 * prior_precision
        of_likelihood = DampedCurvature(lambda x: matrix @ x, evaluation.diagonal, lambda: matrix).cholesky()
        precision = of_likelihood @ of_likelihood.T
        precision.flat[:: size + 1] += 0.99 * prior_precision
        new_root = np.asarray(np.linalg.cholesky(precision))
        step = solve_factored(new_root, evaluation.gradient)
        step *= min(1.0, _MAX_STEP / max(float(np.max(np.abs(step))), 1e-300))
        shift = float(np.linalg.norm(new_root.T @ step)) / size**0.5
    return NormalApproximation(mean + (1.0 - damping) * step, new_root, shift, evaluation)


def log_evidence(
    log_densities: Callable[[FloatArray], FloatArray], mean: FloatArray, root: FloatArray, noise: FloatArray
) -> float:
    """Log evidence by the first two cumulants of the log of posterior density over approximation.

    The mean of that is the evidence lower bound; half its variance is most of what the bound lacks, as long as that is
    a few units. The draws must not be those that the approximation was found with, to which it is fitted too well.
    Gauss-Hermite draws of three points would not do either: skewness adds the third Hermite polynomial to the log
    density, which is zero there.

    Parameters
    ----------
    log_densities : callable
        Log density of the posterior, without its constant, at draws (draws × parameters).
    mean, root : arrays of float
        The approximation.
    noise : array of float, pairs × parameters
        Draws from the standard normal; each row is used with both signs.

    Returns
    -------
    float
        Log evidence, less ½·log 2π for each parameter.
    """
    around = solve_transposed(root, noise.T).T
    values = log_densities(mean + np.concatenate((around, -around)))
    ratios = values + 0.5 * np.tile(np.sum(noise**2, axis=1), 2)
    return float(np.mean(ratios) + 0.5 * np.var(ratios, ddof=1) - np.sum(np.log(np.diag(root))))


def gauss_hermite_draws(pairs: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Draws that have, with their opposites, the first five moments of the standard normal in every coordinate.

    Each coordinate takes the nodes of the Gauss-Hermite rule of three points, 0 and ±√3, in their proportions of 4 to 1
    to 1, in random order (a Latin hypercube).
    """
    nodes = np.where(np.arange(pairs) % 3 == 0, np.sqrt(3.0), 0.0)
    draws = rng.permuted(np.tile(nodes[:, None], size), axis=0)
    return np.asarray(draws * rng.choice([-1.0, 1.0], draws.shape))
