"""Evidence for the spread τ of a normal prior, s ~ N(0, τ²), from the log-likelihood to second order.

With the log-likelihood ℓ(s) ≈ bᵀs − ½sᵀΛs in the basis of its eigenvectors, scores given τ are independent there and

    log P(data | τ) = Σᵢ ½·bᵢ²/(λᵢ + τ⁻²) − ½·log(1 + λᵢτ²) + constant.

So one decomposition serves all values of τ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.inference.laplace_mixture import LaplaceComponent, LaplaceMixture

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
