"""Draws and standard errors against the inverse of the whole curvature, by inversion and by perturbation."""

from dataclasses import replace

import numpy as np
import pytest

from crowdrank.engines import LOCAL, LocalEngine
from crowdrank.inference import curvature, laplace
from crowdrank.inference.laplace import LaplaceApproximation
from crowdrank.models.pairwise import likelihood
from crowdrank.models.pairwise.likelihood import DAVIDSON, LOGISTIC, Pairs


def approximate(sizes, *, formula=LOGISTIC, prior=0.3, seed=0, engine=LOCAL, rows_per_item=4):
    """Random comparisons within blocks of these sizes, and the curvature at random scores."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    left, right = [], []
    for begin, size in zip(starts[:-1], sizes, strict=True):
        chain = np.arange(size - 1)
        a = np.concatenate((chain, rng.integers(size, size=rows_per_item * size)))
        b = np.concatenate((chain + 1, (a[size - 1 :] + rng.integers(1, size, size=rows_per_item * size)) % size))
        left.append(begin + a)
        right.append(begin + b)
    left, right = np.concatenate(left).astype(np.int32), np.concatenate(right).astype(np.int32)
    outcome = (
        rng.integers(-1, 2, len(left)).astype(np.float64) if formula == DAVIDSON else rng.choice([1.0, -1.0], len(left))
    )
    held = engine.load(Pairs(left, right, outcome, rng.uniform(0.5, 2, len(left))))
    pairs, terms = held.map_and_sum(likelihood.evaluate, rng.normal(size=starts[-1]), 0.4, formula)
    on_diagonal = np.full(int(starts[-1]), prior)
    return LaplaceApproximation(
        curvature=pairs,
        diagonal=terms.diagonal + on_diagonal,
        prior=on_diagonal,
        starts=starts,
        border=terms.border if formula == DAVIDSON else None,
        corner=terms.corner + prior,
    )


def covariance_of(approximation):
    """By brute force: the whole matrix, θ too, inverted, then centred block by block."""
    size = len(approximation.diagonal)
    (matrix,) = approximation.curvature.sum(curvature.hessian_matrix, size)
    matrix[np.diag_indices(size)] += approximation.prior
    if approximation.border is not None:
        matrix = np.block(
            [
                [matrix, approximation.border[:, None]],
                [approximation.border[None, :], np.array([[approximation.corner]])],
            ]
        )
    inverse = np.linalg.pinv(matrix, hermitian=True)[:size, :size]
    centre = np.eye(size)
    for a, b in zip(approximation.starts[:-1], approximation.starts[1:], strict=True):
        centre[a:b, a:b] -= 1.0 / (b - a)
    return centre @ inverse @ centre.T


def assert_drawn_from(drawn, covariance):
    count = len(drawn)
    found = drawn.T @ drawn / count
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(found, covariance, atol=6 * np.outer(scale, scale).max() / np.sqrt(count))


@pytest.mark.parametrize("prior", [0.3, 0.0], ids=["prior", "no prior"])
@pytest.mark.parametrize("formula", [LOGISTIC, DAVIDSON], ids=["without ties", "with ties"])
@pytest.mark.parametrize("sizes", [[12], [5, 2, 9]], ids=["one query", "three queries"])
def test_inverting_gives_the_standard_errors_of_the_whole_matrix(sizes, formula, prior):
    approximation = approximate(sizes, formula=formula, prior=prior)
    covariance = covariance_of(approximation)
    error, drawn = approximation.draw(0)
    np.testing.assert_allclose(error, np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert_drawn_from(drawn, covariance)


def solved(approximation, seed, monkeypatch):
    monkeypatch.setattr(laplace, "LARGEST_BLOCK", 1)
    return approximation.draw(seed)


@pytest.mark.parametrize("prior", [0.3, 0.0], ids=["prior", "no prior"])
@pytest.mark.parametrize("formula", [LOGISTIC, DAVIDSON], ids=["without ties", "with ties"])
@pytest.mark.parametrize("sizes", [[40], [2, 30, 3]], ids=["one query", "queries of all sizes"])
def test_solving_gives_them_to_within_chance(sizes, formula, prior, monkeypatch):
    approximation = approximate(sizes, formula=formula, prior=prior)
    covariance = covariance_of(approximation)
    errors, samples = zip(*(solved(approximation, seed, monkeypatch) for seed in range(30)), strict=True)
    # each is the root of a mean over a hundred draws or two, of which a part is known exactly
    np.testing.assert_allclose(np.mean(errors, axis=0), np.sqrt(np.diag(covariance)), rtol=0.02)
    np.testing.assert_allclose(errors[0], np.sqrt(np.diag(covariance)), rtol=0.25)
    assert_drawn_from(np.concatenate(samples), covariance)


@pytest.mark.parametrize("largest", [2_000, 1], ids=["inverted", "solved"])
def test_draws_have_mean_zero_in_every_query(largest, monkeypatch):
    monkeypatch.setattr(laplace, "LARGEST_BLOCK", largest)
    approximation = approximate([5, 2, 9])
    _, drawn = approximation.draw(0)
    means = np.add.reduceat(drawn, approximation.starts[:-1], axis=1)
    np.testing.assert_allclose(means, 0.0, atol=1e-5)  # solved in single precision


@pytest.mark.parametrize("largest", [2_000, 1], ids=["inverted", "solved"])
def test_a_seed_decides_the_draws(largest, monkeypatch):
    monkeypatch.setattr(laplace, "LARGEST_BLOCK", largest)
    approximation = approximate([6])
    np.testing.assert_array_equal(approximation.draw(1)[1], approximation.draw(1)[1])
    assert not np.allclose(approximation.draw(1)[1], approximation.draw(2)[1])


def test_shards_have_independent_noise(monkeypatch):
    whole, cut = approximate([20]), approximate([20], engine=LocalEngine(rows_per_shard=15))
    assert len(cut.curvature.shards) > 4
    covariance = covariance_of(whole)
    np.testing.assert_allclose(covariance_of(cut), covariance, rtol=1e-9, atol=1e-12)
    drawn = np.concatenate([solved(cut, seed, monkeypatch)[1] for seed in range(30)])
    assert_drawn_from(drawn, covariance)


def test_many_cells_are_solved_not_inverted(monkeypatch):
    called = []
    monkeypatch.setattr(laplace, "_by_perturbation", lambda *_: called.append("solved"))
    monkeypatch.setattr(laplace, "_by_inverting", lambda *_: called.append("inverted"))
    approximation = approximate([5, 5])
    approximation.draw(0)
    monkeypatch.setattr(laplace, "MOST_CELLS", 49)
    approximation.draw(0)
    assert called == ["inverted", "solved"]


@pytest.mark.parametrize("compiled", [True, False])
def test_one_matrix_multiplies_as_all_rows_do(compiled, monkeypatch):
    monkeypatch.setattr(curvature, "COMPILE_MIN_ROWS", 0 if compiled else 10**9)
    monkeypatch.setattr(laplace, "_CELLS_AT_ONCE", 50)  # some rows of the matrix at a time
    approximation = approximate([12, 5], rows_per_item=20, engine=LocalEngine(rows_per_shard=60))
    columns = np.random.default_rng(1).normal(size=(17, 3)).astype(np.float32)
    prior = approximation.prior[:, None]
    by_matrix = laplace._multiplier(approximation, prior)(columns)
    monkeypatch.setattr(laplace, "LARGEST_MATRIX", 0)
    np.testing.assert_allclose(by_matrix, laplace._multiplier(approximation, prior)(columns), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("memory_left", "dense"), [(8 * 17**2, 1), (8 * 17**2 - 1, 0)], ids=["fits", "does not fit"])
def test_a_dense_matrix_is_used_only_if_it_fits_in_memory(memory_left, dense, monkeypatch):
    approximation = approximate([12, 5], rows_per_item=20)
    asked = []

    class Tight:
        def __init__(self):
            self.memory_left = memory_left

        def sum(self, formula, *parameters):
            asked.append(formula)
            return approximation.curvature.sum(formula, *parameters)

    laplace._multiplier(replace(approximation, curvature=Tight()), approximation.prior[:, None])
    assert asked.count(curvature.hessian_rows) == dense
