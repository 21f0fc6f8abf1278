"""Queries in groups by how well each annotator does: planted groups are found, in number too."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, log_ndtr, ndtr

from crowdrank.models.thurstonian.domains import GRID, Groups, Likelihoods, Prior

PRIOR = Prior.normal(1.0, 1.5)


def planted(seed, expertise, domain, judgments=30, upside_down=()):
    """Curves of annotators of this expertise (annotators × domains) on pairs one and a half units apart."""
    rng = np.random.default_rng(seed)
    tau = np.array(expertise, np.float64)[:, domain].T
    right = rng.binomial(judgments, ndtr(1.5 * tau))
    curves = right[..., None] * log_ndtr(1.5 * GRID) + (judgments - right)[..., None] * log_ndtr(-1.5 * GRID)
    for query in upside_down:
        curves[query] = curves[query, :, ::-1]
    return curves


def search(curves, count=None, seed=0):
    one = Groups(curves, PRIOR, np.zeros(len(curves), np.int64), np.ones(len(curves)))
    return one.search(np.random.default_rng(seed), count)


def together(group):
    return np.equal.outer(group, group)


THREE = [[2, 2, -2], [2, -2, 2], [-2, 2, 2], [0, 2, 0], [2, 0, 2], [1, 1, 1]]
DOMAIN = np.arange(18) % 3


@pytest.mark.parametrize("seed", range(3))
def test_planted_groups_are_found_and_so_is_their_number(seed):
    found = search(planted(seed, THREE, DOMAIN))
    assert found.count == 3
    np.testing.assert_array_equal(together(found.group), together(DOMAIN))


def test_queries_alike_stay_one_group():
    assert search(planted(1, [[2], [1], [0], [-2], [1]], np.zeros(15, int))).count == 1


def test_queries_that_tell_nothing_stay_one_group():
    assert search(np.zeros((10, 4, len(GRID)))).count == 1


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_there_are_as_many_groups_as_are_asked_for(count):
    found = search(planted(0, THREE, DOMAIN), count)
    assert found.count == count
    assert found.sizes.min() > 0


def test_there_are_at_most_as_many_groups_as_queries():
    assert search(planted(0, THREE, DOMAIN), 100).count <= len(DOMAIN)
    assert search(np.zeros((5, 4, len(GRID))), 100).count <= 5


def test_what_is_joined_against_its_will_is_what_is_most_alike():
    expertise = [[2, 2, -1], [2, 1, 2], [-1, -1, 2], [1, 0.5, -1.5], [0, 0, 2]]
    found = search(planted(0, expertise, DOMAIN, judgments=60), 2)
    np.testing.assert_array_equal(together(found.group), together(DOMAIN == 2))


def test_queries_upside_down_are_turned():
    expertise = [[2.5, 2], [1.5, -2], [-2, 0], [0.5, 2], [2, -1]]
    domain, down = np.arange(16) % 2, np.array([1, 6, 7])
    found = search(planted(2, expertise, domain, upside_down=down))
    np.testing.assert_array_equal(together(found.group), together(domain))
    expected = np.where(np.isin(np.arange(16), down), -1.0, 1.0)
    for group in range(2):
        members = found.group == group
        assert abs(np.sum(found.sign[members] * expected[members])) == members.sum()


def test_one_query_is_one_group():
    found = search(planted(0, [[1.0]], np.zeros(1, int)))
    assert (found.count, found.group.tolist(), found.sign.tolist()) == (1, [0], [1.0])


def test_the_same_generator_finds_the_same_groups():
    curves = planted(3, THREE, DOMAIN, judgments=6)
    np.testing.assert_array_equal(search(curves, seed=5).group, search(curves, seed=5).group)


def evidence(curves):
    """Log likelihood of some queries' judgments by annotators of one expertise each, integrated out, plainly."""
    told = curves.sum(axis=0)
    return np.sum(np.log(np.exp(told) @ PRIOR.chance))


def test_chances_are_those_given_the_other_queries_of_the_group():
    curves, group = planted(4, THREE, np.arange(6) % 3, judgments=5), np.array([0, 0, 0, 1, 1, 2])
    likelihoods = Likelihoods(curves, PRIOR)
    told = np.array([curves[group == number].sum(axis=0) for number in range(3)])
    found = likelihoods.chances(told, group)
    for query, number in product(range(6), range(3)):
        others = (group == number) & (np.arange(6) != query)
        alone = curves[others] if others.any() else np.zeros((1, *curves.shape[1:]))
        gained = evidence(np.concatenate((alone, curves[[query]]))) - evidence(alone)
        # alone it would open a group
        assert found[query, number] == pytest.approx(gained + np.log(max(others.sum(), PRIOR.openness)), abs=1e-9)


def test_chances_both_ways_are_those_of_the_mirror_image_too():
    curves = planted(4, THREE, np.arange(6) % 3, judgments=5)
    told, sizes = curves[:2], np.array([3, 1])
    found = Likelihoods(curves, PRIOR).both_ways(told, sizes)
    mirrored = Likelihoods(curves[:, :, ::-1], PRIOR).both_ways(told, sizes)
    np.testing.assert_allclose(found, np.roll(mirrored, 2, axis=1))
    expected = evidence(np.array([told[0], curves[3]])) - evidence(told[:1]) + np.log(3)
    assert found[3, 0] == pytest.approx(expected)


def test_the_worth_of_a_grouping_is_its_evidence_and_the_process_that_grouped_it():
    curves, group = planted(4, THREE, np.arange(6) % 3, judgments=5), np.array([0, 0, 0, 1, 1, 2])
    expected = sum(evidence(curves[group == number]) + gammaln(np.sum(group == number)) for number in range(3))
    assert Likelihoods(curves, PRIOR).worth_of(group, 3) == pytest.approx(expected)


def test_the_prior_of_expertise_is_the_normal_it_is_called_after():
    assert PRIOR.chance.sum() == pytest.approx(1.0)
    assert PRIOR.chance @ GRID == pytest.approx(1.0, abs=0.15)
    np.testing.assert_array_equal(GRID, -GRID[::-1])


def test_far_apart_likelihoods_stay_finite():
    curves = 1e4 * planted(0, THREE, DOMAIN)
    found = search(curves)
    assert np.all(np.isfinite(Likelihoods(curves, PRIOR).chances(found.told, found.group)))
    assert found.count <= 18
