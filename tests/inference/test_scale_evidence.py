"""The evidence for the spread of a normal prior, against numerical integration, and its mixture."""

import numpy as np
import pytest
from scipy.integrate import quad

from crowdrank.inference.laplace import SCALES, QuadraticExpansion

EXPANSION = QuadraticExpansion(np.array([4.0, 0.5]), np.array([3.0, -0.2]))


def by_integration(scale):
    def one(curvature, linear):
        return quad(
            lambda s: np.exp(linear * s - curvature * s**2 / 2 - s**2 / scale**2 / 2) / scale / np.sqrt(2 * np.pi),
            -40 * scale,
            40 * scale,
            points=[0.0],
            limit=200,
        )[0]

    return sum(np.log(one(c, b)) for c, b in zip(EXPANSION.curvature, EXPANSION.linear, strict=True))


def test_evidence_is_the_integral_over_the_scores():
    scales = np.array([0.1, 0.5, 2.0])
    expected = [by_integration(scale) for scale in scales]
    np.testing.assert_allclose(EXPANSION.log_evidence(scales), expected, rtol=1e-6)


def test_best_scale_has_the_highest_evidence():
    best = EXPANSION.best_scale()
    evidence = EXPANSION.log_evidence(np.array([best / 1.1, best, best * 1.1]))
    assert SCALES[0] < best < SCALES[-1]
    assert evidence[1] == evidence.max()


def test_the_mixture_has_the_moments_of_its_draws():
    angle = 0.4
    vectors = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    rotated = QuadraticExpansion(EXPANSION.curvature, EXPANSION.linear, vectors)
    mixture = rotated.mixture(lambda rows: rows - rows.mean(axis=-1, keepdims=True))
    draws = mixture.draw(40_000, seed=0)
    np.testing.assert_allclose(draws.mean(axis=0), mixture.mean, atol=0.02)
    np.testing.assert_allclose(draws.std(axis=0), mixture.std_error, rtol=0.03)
    assert mixture.mean.sum() == pytest.approx(0, abs=1e-12)
