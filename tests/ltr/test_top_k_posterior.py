"""The posterior of the first k items against enumeration."""

from itertools import permutations

import numpy as np
import pytest

from crowdrank.ltr.top_k_posterior import log_joint, potentials, top_k_distances, top_k_gibbs
from crowdrank.models.lists.mallows_likelihood import top_k_distance

SIZE, TOP = 6, 3
FIRSTS = np.array(list(permutations(range(SIZE), TOP)))


@pytest.fixture
def told():
    rng = np.random.default_rng(0)
    lists = np.array([rng.permutation(4)[:TOP] for _ in range(4)])  # nobody lists items 4 and 5
    return rng.normal(size=SIZE), lists, np.array([-1.0, -0.5, 0.2, -0.3])


def log_probabilities(scores, lists, theta):
    """Plackett-Luce over all items, and Definition 1's distances."""
    strength, found = np.exp(scores), []
    for first in FIRSTS:
        left = strength.sum() - np.append(0, np.cumsum(strength[first])[:-1])
        said = [t * top_k_distance(tuple(first), tuple(one)) for t, one in zip(theta, lists, strict=True)]
        found.append(np.sum(np.log(strength[first] / left)) + sum(said))
    return np.array(found)


def test_potentials_sum_to_definition_1(told):
    scores, lists, theta = told
    potential = potentials(lists, theta, SIZE)
    ours = np.array([log_joint(scores, potential, first) for first in FIRSTS])
    assert np.ptp(ours - log_probabilities(scores, lists, theta)) < 1e-9


def test_draws_are_from_the_posterior(told):
    scores, lists, theta = told
    log_p = log_probabilities(scores, lists, theta)
    chance = np.exp(log_p - np.logaddexp.reduce(log_p))
    uniforms = np.random.default_rng(1).random((60_006, 3 * TOP))
    drawn = top_k_gibbs(scores, potentials(lists, theta, SIZE), np.arange(TOP), uniforms, 6)
    code = FIRSTS @ [36, 6, 1]
    shares = np.bincount(drawn.orders @ [36, 6, 1], minlength=216)[code] / len(drawn.orders)
    assert np.abs(shares - chance).sum() < 0.03
    assert drawn.best.tolist() == FIRSTS[np.argmax(log_p)].tolist()
    far = [[top_k_distance(tuple(f), tuple(one)) for f in FIRSTS] for one in lists]
    assert top_k_distances(drawn.orders, lists, SIZE) == pytest.approx(np.array(far) @ chance, abs=0.03)
    assert top_k_distances(FIRSTS, lists, SIZE) == pytest.approx(np.mean(far, axis=1))


def test_unlisted_items_can_enter_the_top_k(told):
    _, lists, _ = told
    scores = np.array([0.0, 0.0, 0.0, 0.0, 9.0, -9.0])
    drawn = top_k_gibbs(
        scores, potentials(lists, np.full(4, -0.2), SIZE), np.arange(TOP), np.full((20, 3 * TOP), 0.4), 6
    )
    assert 4 in drawn.best
    assert 5 not in drawn.best
