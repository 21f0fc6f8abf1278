"""Normal approximations of a posterior: Laplace's, and its refinement by variational inference.

`LaplaceApproximation` is for pairwise likelihoods, whose curvature is held as shards of `PairCurvature` plus the prior
on the diagonal; queries are its blocks. Small blocks are inverted. Large ones are sampled by perturbation: noise with
the curvature as its covariance, multiplied by the inverse curvature, has the inverse curvature as its covariance
(Papandreou & Yuille 2010). `draw_from_covariance` is for a covariance matrix that is known.

Laplace's method takes the mode and the curvature there. Where a parameter has few data its posterior is skewed and
wider than that; `refine` finds a better normal approximation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.local import ShardedData, limit_blas_threads
from crowdrank.inference.curvature import (
    DampedCurvature,
    conjugate_gradients,
    count_rows,
    hessian_blocks,
    hessian_product,
    hessian_rows,
    sample_with_curvature,
    solve_factored,
    solve_transposed,
)

LARGEST_BLOCK = 1_000
MOST_CELLS = 20_000_000
LARGEST_MATRIX = 12_000
_CELLS_AT_ONCE = 1 << 23
_SOLVED_DRAWS = 192
_DRAWS = 1000


@dataclass(frozen=True)
class LaplaceApproximation:
    """Normal approximation of the scores of pairwise models at the optimum.

    Parameters
    ----------
    curvature : ShardedData
        Shards of `PairCurvature` of the likelihood.
    diagonal : array
        Diagonal of the curvature of likelihood and prior together.
    prior : array
        The prior's share of the diagonal; zero without a prior.
    starts : array of int
        Where each block (query) begins, and the end of the last.
    border : array, optional
        −∂²/∂sᵢ∂θ for one parameter θ that all blocks share.
    corner : float
        −∂²/∂θ².
    """

    curvature: ShardedData
    diagonal: FloatArray
    prior: FloatArray
    starts: IntArray
    border: FloatArray | None = None
    corner: float = 0.0

    def draw(self, seed: int) -> tuple[FloatArray, FloatArray]:
        """Standard errors, and joint draws of the scores around zero, both with mean zero in each block."""
        sizes = np.diff(self.starts)
        rng = np.random.default_rng(seed)
        if sizes.max() <= LARGEST_BLOCK and int((sizes**2).sum()) <= MOST_CELLS:
            with limit_blas_threads(int(sizes.max())):
                return _by_inverting(self, rng)
        return _by_perturbation(self, rng)


def draw_from_covariance(
    covariance: FloatArray, centre: Callable[[FloatArray], FloatArray], seed: int
) -> tuple[FloatArray, FloatArray]:
    """Standard errors and draws for a known covariance; `centre` subtracts the mean of each block from every row."""
    rng, size = np.random.default_rng(seed), len(covariance)
    with limit_blas_threads(size):
        around = centre(rng.standard_normal((_DRAWS, size)) @ np.linalg.cholesky(covariance).T)
    return np.sqrt(np.maximum(np.diag(centre(centre(covariance).T)), 0.0)), around


def _by_inverting(laplace: LaplaceApproximation, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    starts, size = laplace.starts, int(laplace.starts[-1])
    sizes = np.diff(starts)
    count = int(np.clip(4_000_000 // size, 200, 1000))
    ends = np.cumsum(sizes**2)
    local = np.arange(size) - np.repeat(starts[:-1], sizes)
    base = np.repeat(ends - sizes**2, sizes) + local * np.repeat(sizes, sizes)
    (cells,) = laplace.curvature.sum(hessian_blocks, base, local, int(ends[-1]))
    ranges = list(pairwise(starts))
    covariances = []
    sensitivity = np.zeros(size)  # ∂s/∂θ at the optimum: A⁻¹b
    for (a, b), end in zip(ranges, ends, strict=True):
        off = cells[end - (b - a) ** 2 : end].reshape(b - a, b - a)
        covariances.append(_inverse(off, laplace.diagonal[a:b], laplace.prior[a:b]))
        if laplace.border is not None:
            sensitivity[a:b] = covariances[-1] @ laplace.border[a:b]
    shared = 0.0 if laplace.border is None else 1.0 / max(laplace.corner - float(laplace.border @ sensitivity), 1e-12)
    theta_draw = rng.standard_normal((count, 1)) * np.sqrt(shared)
    error, drawn = np.empty(size), np.empty((count, size))
    for (a, b), covariance in zip(ranges, covariances, strict=True):
        centred_sensitivity = sensitivity[a:b] - sensitivity[a:b].mean()
        level = covariance.mean(axis=0)
        centred = np.diag(covariance) - 2 * level + level.mean()
        error[a:b] = np.sqrt(np.maximum(centred, 0.0) + shared * centred_sensitivity**2)
        around = rng.standard_normal((count, b - a)) @ np.linalg.cholesky(covariance).T
        drawn[:, a:b] = around - around.mean(axis=1, keepdims=True) + theta_draw * centred_sensitivity
    return error, drawn


def _inverse(off: Any, diagonal: FloatArray, prior: FloatArray) -> FloatArray:
    """Covariance of one block. Without a prior the common shift, which the likelihood leaves free, is held fixed."""
    matrix = -(off + off.T)
    np.fill_diagonal(matrix, diagonal)
    if not prior.any():
        matrix += diagonal.mean() / len(diagonal)
    return np.asarray(np.linalg.inv(matrix))


def _by_perturbation(laplace: LaplaceApproximation, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draws by perturbation: solve curvature·x = noise, with noise of covariance equal to the curvature."""
    size = len(laplace.diagonal)
    # single precision: these are random draws, and half the memory traffic doubles the speed
    prior = laplace.prior.astype(np.float32)[:, None]
    (noise,) = laplace.curvature.sum(sample_with_curvature, size, _SOLVED_DRAWS, int(rng.integers(1 << 62)))
    noise += np.sqrt(prior) * rng.standard_normal(noise.shape, np.float32)

    multiply = _multiplier(laplace, prior)
    solved = conjugate_gradients(multiply, noise, laplace.diagonal, tolerance=1e-3).astype(np.float64)
    around = solved - _block_means(solved, laplace.starts)
    # Rao-Blackwellised variance: given all other scores, score i has variance 1/Hᵢᵢ exactly; only the variance of its
    # conditional mean is estimated from draws. After centring, score i keeps a share 1 − 1/n of itself.
    own = np.repeat(1.0 - 1.0 / np.diff(laplace.starts), np.diff(laplace.starts))
    expected = around - (own / laplace.diagonal)[:, None] * noise
    variance = own**2 / laplace.diagonal + np.mean(expected**2, axis=1)
    if laplace.border is not None:  # the uncertainty of θ, as in _by_inverting
        border = laplace.border.astype(np.float32)[:, None]
        sensitivity = conjugate_gradients(multiply, border, laplace.diagonal, tolerance=1e-3)
        spread = 1.0 / max(laplace.corner - float(laplace.border @ sensitivity[:, 0]), 1e-12)
        centred_sensitivity = sensitivity - _block_means(sensitivity, laplace.starts)
        variance += spread * centred_sensitivity[:, 0] ** 2
        around += centred_sensitivity * rng.standard_normal(_SOLVED_DRAWS) * np.sqrt(spread)
    return np.sqrt(variance), np.ascontiguousarray(around.T)


def _multiplier(laplace: LaplaceApproximation, prior: Any) -> Callable[[Any], Any]:
    """Multiplication by the curvature: over the rows, or by a dense matrix where that fits in memory and is cheaper."""
    size = len(laplace.diagonal)
    too_large = size > LARGEST_MATRIX or 2 * 4 * size**2 > laplace.curvature.memory_left
    if too_large or size**2 > 2 * laplace.curvature.sum(count_rows)[0]:
        return lambda x: laplace.curvature.sum(hessian_product, x)[0] + prior * x
    matrix = np.empty((size, size), np.float32)
    wide = max(1, _CELLS_AT_ONCE // size)
    for low in range(0, size, wide):
        high = min(low + wide, size)
        (matrix[low:high],) = laplace.curvature.sum(hessian_rows, low, high, size)
    diagonal = (matrix.sum(axis=1, dtype=np.float64)).astype(np.float32)[:, None]
    return lambda x: diagonal * x - matrix @ x + prior * x


def _block_means(columns: FloatArray, starts: IntArray) -> FloatArray:
    """For every row the mean of its block, per column."""
    means = np.add.reduceat(columns, starts[:-1], axis=0) / np.diff(starts)[:, None]
    return np.repeat(means, np.diff(starts), axis=0)


# Integration over hyperparameters: Laplace approximations at several values, mixed by their evidence.
#
# Where data are few, hyperparameters such as the spread of the scores are uncertain, and that uncertainty belongs in
# the intervals. As in INLA (Rue, Martino & Chopin 2009), the posterior of the scores is approximated by a normal
# distribution at each of several values of the hyperparameters. The mixture of these, weighted by the evidence of
# each value, is the posterior with the hyperparameters integrated out.


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


# Evidence for the spread τ of a normal prior, s ~ N(0, τ²), from the log-likelihood to second order.
#
# With the log-likelihood ℓ(s) ≈ bᵀs − ½sᵀΛs in the basis of its eigenvectors, scores given τ are independent there
# and
#
# log P(data | τ) = Σᵢ ½·bᵢ²/(λᵢ + τ⁻²) − ½·log(1 + λᵢτ²) + constant.
#
# So one decomposition serves all values of τ.

SCALES: FloatArray = np.geomspace(0.03, 8.0, 145)
"""Values of τ that are tried, in steps of 4 %."""
# The mixture uses every twelfth of them, a factor of 1.6 apart.
_THIN = 12
_NEGLIGIBLE = 8.0


@dataclass(frozen=True, eq=False)
class QuadraticExpansion:
    """Log-likelihood to second order.

    Parameters
    ----------
    curvature : array of float
        Eigenvalues Λ of the negative Hessian, or its diagonal.
    linear : array of float
        b, in the same basis.
    vectors : array of float, optional
        Eigenvectors, as columns; None if the basis is that of the scores.
    """

    curvature: FloatArray
    linear: FloatArray
    vectors: FloatArray | None = None

    def log_evidence(self, scales: FloatArray) -> FloatArray:
        """Log evidence of each spread, up to a constant."""
        square = np.asarray(scales)[:, None] ** 2
        shrunk = 1.0 + self.curvature * square
        return np.asarray(0.5 * np.sum(self.linear**2 * square / shrunk - np.log(shrunk), axis=1))

    def best_scale(self) -> float:
        """The spread with the highest evidence."""
        return float(SCALES[int(np.argmax(self.log_evidence(SCALES)))])

    def mixture(self, centre: Callable[[FloatArray], FloatArray]) -> LaplaceMixture:
        """The posterior with the spread integrated out, with a flat prior on its logarithm.

        `centre` subtracts the mean of each query from every row.
        """
        scales = SCALES[::_THIN]
        evidence = self.log_evidence(scales)
        kept = evidence > evidence.max() - _NEGLIGIBLE
        pairs = zip(scales[kept], evidence[kept], strict=True)
        return LaplaceMixture([self._component(float(scale), float(value), centre) for scale, value in pairs])

    def _component(
        self, scale: float, log_weight: float, centre: Callable[[FloatArray], FloatArray]
    ) -> LaplaceComponent:
        vectors = np.eye(len(self.linear)) if self.vectors is None else self.vectors
        precision = self.curvature + scale**-2
        # Rows are the basis vectors, so that centring a row centres what it contributes to the scores.
        basis = centre(vectors.T) / np.sqrt(precision)[:, None]
        return LaplaceComponent(
            log_weight,
            (self.linear / np.sqrt(precision)) @ basis,
            np.einsum("ij,ij->j", basis, basis),
            lambda rng, count: rng.standard_normal((count, len(precision))) @ basis,
        )


# Variational inference. The normal distribution q = N(m, P⁻¹) that is closest to the posterior in the sense of
# KL(q ‖ posterior) has a zero mean gradient, and a precision P that is the mean curvature, both under q itself (Opper &
# Archambeau 2009). The means are taken over a few pairs of opposite draws, made from the same random numbers in every
# round, so that the iteration converges.

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
