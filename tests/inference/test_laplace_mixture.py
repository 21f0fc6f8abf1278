"""Mixtures of Laplace approximations."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank.inference.laplace import LaplaceComponent, LaplaceMixture, allocate


def component(log_weight: float, mode: list[float], sd: float) -> LaplaceComponent:
    centre = np.array(mode)
    return LaplaceComponent(
        log_weight,
        centre,
        np.full(len(mode), sd**2),
        lambda rng, n: sd * rng.standard_normal((n, len(mode))),
    )


def test_weights_are_proportional_to_the_evidence() -> None:
    mixture = LaplaceMixture([component(-1000.0, [0.0], 1.0), component(-1000.0 + np.log(3), [1.0], 1.0)])
    assert mixture.weights == pytest.approx([0.25, 0.75])
    assert mixture.mean == pytest.approx([0.75])


def test_moments_agree_with_the_draws() -> None:
    mixture = LaplaceMixture([component(0.0, [-1.0, 1.0], 0.5), component(0.5, [2.0, -2.0], 0.2)])
    draws = mixture.draw(200_000, seed=1)
    assert draws.mean(axis=0) == pytest.approx(mixture.mean, abs=0.02)
    assert draws.std(axis=0) == pytest.approx(mixture.std_error, rel=0.01)


def test_every_draw_is_allocated() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights = rng.dirichlet(np.full(30, 0.2))
        counts = allocate(weights, 1000)
        assert counts.sum() == 1000
        assert np.all(np.abs(counts - 1000 * weights) <= 1.0)
