"""The posterior of a true list: exact sums against enumeration, and samplers against exact sums."""

from itertools import permutations

import numpy as np
import pytest

from crowdrank.ltr.list_posterior import (
    exact_posterior,
    expected_distances,
    gibbs,
    local_mode,
    log_joint,
    metropolis_swaps,
    pair_weights,
)
from crowdrank.models.lists.mallows_likelihood import estimate_theta, sample_lists


def plackett_luce(scores, order):
    strength = np.exp(scores[list(order)])
    return float(np.sum(np.log(strength / np.cumsum(strength[::-1])[::-1])))


def above_of(orders, weight):
    place = np.argsort(orders, axis=1)
    return np.einsum("o,oab->ab", weight, place[:, :, None] < place[:, None, :])


def crowd(rng, size, theta):
    """Lists around one true order, and their pair weights."""
    truth = rng.permutation(size)
    lists = truth[sample_lists(rng, theta, size)]
    rows = lists.ravel(), np.tile(np.arange(size), len(theta)), np.arange(len(theta) + 1) * size
    return truth, rows, pair_weights(*rows, theta, size)


def test_the_exact_posterior_equals_a_sum_over_all_lists():
    rng = np.random.default_rng(1)
    for size in (1, 2, 3, 6):
        scores, weight = 2 * rng.normal(size=size), 3 * rng.normal(size=(size, size))
        orders = np.array(list(permutations(range(size))))
        pairs = [sum(weight[a, b] for n, a in enumerate(o) for b in o[n + 1 :]) for o in orders]
        log_p = np.array([plackett_luce(scores, o) for o in orders]) + pairs
        evidence = np.logaddexp.reduce(log_p)
        found = exact_posterior(scores, weight, rng.random((3, size)))
        assert found.log_evidence == pytest.approx(evidence, abs=1e-9)
        assert found.precedence == pytest.approx(above_of(orders, np.exp(log_p - evidence)), abs=1e-9)
        assert found.best.tolist() == orders[np.argmax(log_p)].tolist()
        assert [log_joint(scores, weight, o) for o in orders] == pytest.approx(log_p, abs=1e-9)


def test_derivatives_of_the_evidence_are_the_precedence_probabilities():
    """d log evidence / dW[a, b] = P(a before b)."""
    rng = np.random.default_rng(2)
    scores, weight, h = rng.normal(size=5), rng.normal(size=(5, 5)), 1e-5
    found, uniforms = exact_posterior(scores, weight, np.zeros((0, 5))), np.zeros((0, 5))
    for a, b in ((0, 1), (3, 2), (4, 0)):
        shift = np.zeros((5, 5))
        shift[a, b] = h
        slope = (
            exact_posterior(scores, weight + shift, uniforms)[0] - exact_posterior(scores, weight - shift, uniforms)[0]
        ) / (2 * h)
        assert found.precedence[a, b] == pytest.approx(slope, abs=1e-8)


def test_extreme_scores_and_weights_stay_finite():
    scores = np.array([800.0, -800.0, 0.0, 3.0])
    weight = -1e6 * (1 - np.eye(4))
    weight[[0, 0, 0, 3, 3, 2], [1, 2, 3, 1, 2, 1]] = 0.0
    found = exact_posterior(scores, weight, np.full((2, 4), 0.5))
    assert np.isfinite(found.log_evidence)
    assert found.best.tolist() == [0, 3, 2, 1]
    assert (found.orders == [0, 3, 2, 1]).all()
    assert gibbs(scores, weight, np.arange(4), np.full((9, 4), 0.5), 6).best.tolist() == [0, 3, 2, 1]


@pytest.mark.parametrize("way", ["exact_posterior", "gibbs", "metropolis_swaps"])
def test_draws_are_from_the_posterior(way):
    rng = np.random.default_rng(3)
    size = 6
    scores, weight = rng.normal(size=size), -rng.random((size, size))
    sums = exact_posterior(scores, weight, rng.random((20_000, size)))
    found = {
        "exact_posterior": lambda: sums,
        "gibbs": lambda: gibbs(scores, weight, np.arange(size), rng.random((20_006, size)), 6),
        "metropolis_swaps": lambda: metropolis_swaps(scores, weight, np.arange(size), rng.random((400_000, 3)), 20_000),
    }[way]()
    drawn = above_of(found.orders, np.full(len(found.orders), 1 / len(found.orders)))
    assert drawn == pytest.approx(sums.precedence, abs=0.02)
    assert found.precedence == pytest.approx(sums.precedence, abs=0.01)
    others = exact_posterior(scores, -weight, np.zeros((0, size))).precedence  # the negative control
    assert np.abs(found.precedence - others).max() > 0.1


@pytest.mark.parametrize(("low", "high", "most"), [(-2.5, -0.5, 0.05), (-0.4, -0.02, 0.02)])
@pytest.mark.parametrize("size", [10, 13])
def test_gibbs_agrees_with_the_exact_posterior(size, low, high, most):
    rng = np.random.default_rng(4)
    theta = rng.uniform(low, high, 8)
    far, found, queries = np.zeros((2, 8)), 0, 20
    for _ in range(queries):
        truth, rows, weight = crowd(rng, size, theta)
        scores = np.empty(size)
        scores[truth] = np.linspace(2, -2, size) + 0.5 * rng.normal(size=size)
        sums = exact_posterior(scores, weight, np.zeros((0, size)))
        borda = np.argsort(-weight.sum(axis=1), kind="stable")
        drawn = gibbs(scores, weight, borda, rng.random((26, size)), 6)
        far += expected_distances(*rows, sums.precedence), expected_distances(*rows, drawn.precedence)
        found += log_joint(scores, weight, drawn.best) > log_joint(scores, weight, sums.best) - 1e-9
    fitted = np.array([[estimate_theta(total / queries, size) for total in one] for one in far])
    assert np.sqrt(np.mean((fitted[0] - fitted[1]) ** 2)) <= most
    assert found >= 0.95 * queries


def test_the_local_mode_has_no_better_single_move():
    rng = np.random.default_rng(5)
    scores, weight = rng.normal(size=9), -rng.random((9, 9))
    order = local_mode(scores, weight, np.arange(9))
    here = log_joint(scores, weight, order)
    for a in range(9):
        others = order[order != a]
        for p in range(9):
            assert log_joint(scores, weight, np.insert(others, p, a)) <= here + 1e-8


def test_ties_and_missing_items_contribute_nothing():
    item, place, offsets = np.array([2, 0, 1, 3, 1]), np.array([0, 1, 1, 0, 1]), np.array([0, 3, 5])
    weight = pair_weights(item, place, offsets, np.array([-2.0, 0.5]), 4)
    expected = np.zeros((4, 4))
    expected[0, 2] = expected[1, 2] = -2.0
    expected[1, 3] = 0.5
    assert weight.tolist() == expected.tolist()
    precedence = np.arange(16.0).reshape(4, 4)
    assert expected_distances(item, place, offsets, precedence).tolist() == [
        precedence[0, 2] + precedence[1, 2],
        precedence[1, 3],
    ]
