"""Draws and standard errors against the inverse of the whole curvature, on both roads."""

from dataclasses import replace

import numpy as np
import pytest

from crowdrank.engines import LOCAL, LocalEngine
from crowdrank.models import laplace
from crowdrank.models.laplace import Summit, draw
from crowdrank.models.pairwise import likelihood
from crowdrank.models.pairwise.likelihood import DAVIDSON, LOGISTIC, Pairs


def summit_of(sizes, *, formula=LOGISTIC, prior=0.3, seed=0, engine=LOCAL, rows_per_item=4):
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
    bends, slopes = held.map_and_sum(likelihood.slopes, rng.normal(size=starts[-1]), 0.4, formula)
    on_diagonal = np.full(int(starts[-1]), prior)
    return Summit(
        bends=bends,
        diagonal=slopes.diagonal + on_diagonal,
        prior=on_diagonal,
        starts=starts,
        border=slopes.border if formula == DAVIDSON else None,
        corner=slopes.corner + prior,
    )


def covariance_of(summit):
    """By brute force: the whole matrix, θ too, inverted, then centred block by block."""
    size = len(summit.diagonal)
    (matrix,) = summit.bends.sum(likelihood.matrix, size)
    matrix[np.diag_indices(size)] += summit.prior
    if summit.border is not None:
        matrix = np.block([[matrix, summit.border[:, None]], [summit.border[None, :], np.array([[summit.corner]])]])
    inverse = np.linalg.pinv(matrix, hermitian=True)[:size, :size]
    centre = np.eye(size)
    for a, b in zip(summit.starts[:-1], summit.starts[1:], strict=True):
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
    summit = summit_of(sizes, formula=formula, prior=prior)
    covariance = covariance_of(summit)
    error, drawn = draw(summit, seed=0)
    np.testing.assert_allclose(error, np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert_drawn_from(drawn, covariance)


def solved(summit, seed, monkeypatch):
    monkeypatch.setattr(laplace, "LARGEST_BLOCK", 1)
    return draw(summit, seed)


@pytest.mark.parametrize("prior", [0.3, 0.0], ids=["prior", "no prior"])
@pytest.mark.parametrize("formula", [LOGISTIC, DAVIDSON], ids=["without ties", "with ties"])
@pytest.mark.parametrize("sizes", [[40], [2, 30, 3]], ids=["one query", "queries of all sizes"])
def test_solving_gives_them_to_within_chance(sizes, formula, prior, monkeypatch):
    summit = summit_of(sizes, formula=formula, prior=prior)
    covariance = covariance_of(summit)
    errors, samples = zip(*(solved(summit, seed, monkeypatch) for seed in range(30)), strict=True)
    # each is the root of a mean over a hundred draws or two, of which a part is known exactly
    np.testing.assert_allclose(np.mean(errors, axis=0), np.sqrt(np.diag(covariance)), rtol=0.02)
    np.testing.assert_allclose(errors[0], np.sqrt(np.diag(covariance)), rtol=0.25)
    assert_drawn_from(np.concatenate(samples), covariance)


@pytest.mark.parametrize("largest", [2_000, 1], ids=["inverted", "solved"])
def test_draws_have_mean_zero_in_every_query(largest, monkeypatch):
    monkeypatch.setattr(laplace, "LARGEST_BLOCK", largest)
    summit = summit_of([5, 2, 9])
    _, drawn = draw(summit, seed=0)
    means = np.add.reduceat(drawn, summit.starts[:-1], axis=1)
    np.testing.assert_allclose(means, 0.0, atol=1e-5)  # solved in single precision


@pytest.mark.parametrize("largest", [2_000, 1], ids=["inverted", "solved"])
def test_a_seed_decides_the_draws(largest, monkeypatch):
    monkeypatch.setattr(laplace, "LARGEST_BLOCK", largest)
    summit = summit_of([6])
    np.testing.assert_array_equal(draw(summit, 1)[1], draw(summit, 1)[1])
    assert not np.allclose(draw(summit, 1)[1], draw(summit, 2)[1])


def test_shards_shake_independently(monkeypatch):
    whole, cut = summit_of([20]), summit_of([20], engine=LocalEngine(rows_per_shard=15))
    assert len(cut.bends.shards) > 4
    covariance = covariance_of(whole)
    np.testing.assert_allclose(covariance_of(cut), covariance, rtol=1e-9, atol=1e-12)
    drawn = np.concatenate([solved(cut, seed, monkeypatch)[1] for seed in range(30)])
    assert_drawn_from(drawn, covariance)


def test_many_cells_are_solved_not_inverted(monkeypatch):
    called = []
    monkeypatch.setattr(laplace, "_by_solving", lambda *_: called.append("solved"))
    monkeypatch.setattr(laplace, "_by_inverting", lambda *_: called.append("inverted"))
    summit = summit_of([5, 5])
    draw(summit, 0)
    monkeypatch.setattr(laplace, "MOST_CELLS", 49)
    draw(summit, 0)
    assert called == ["inverted", "solved"]


@pytest.mark.parametrize("compiled", [True, False])
def test_one_matrix_multiplies_as_all_rows_do(compiled, monkeypatch):
    monkeypatch.setattr(likelihood, "COMPILE_MIN_ROWS", 0 if compiled else 10**9)
    monkeypatch.setattr(laplace, "_CELLS_AT_ONCE", 50)  # some rows of the matrix at a time
    summit = summit_of([12, 5], rows_per_item=20, engine=LocalEngine(rows_per_shard=60))
    columns = np.random.default_rng(1).normal(size=(17, 3)).astype(np.float32)
    prior = summit.prior[:, None]
    by_matrix = laplace._multiplying(summit, prior)(columns)
    monkeypatch.setattr(laplace, "LARGEST_MATRIX", 0)
    np.testing.assert_allclose(by_matrix, laplace._multiplying(summit, prior)(columns), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("spare", "strips"), [(8 * 17**2, 1), (8 * 17**2 - 1, 0)], ids=["room", "no room"])
def test_a_matrix_is_made_only_where_there_is_room_for_it(spare, strips, monkeypatch):
    summit = summit_of([12, 5], rows_per_item=20)
    asked = []

    class Tight:
        def __init__(self):
            self.spare = spare

        def sum(self, formula, *parameters):
            asked.append(formula)
            return summit.bends.sum(formula, *parameters)

    laplace._multiplying(replace(summit, bends=Tight()), summit.prior[:, None])
    assert asked.count(likelihood.strip) == strips
