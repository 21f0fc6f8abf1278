"""Draws, read: units, domains that change their names between draws, and quality over what was judged."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

from crowdrank import Comparisons
from crowdrank.models.thurstonian.postprocess import Reading, given_in, interval, read
from crowdrank.models.thurstonian.sampler import laid_out

DOMAIN = np.array([0, 0, 1, 1, 1, 2])
EXPERTISE = np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]])
VOTES = Comparisons.of([*"aabc"], [*"bbca"], [*"aabc"], annotator=[*"xyxy"], query=[*"1122"])


def reading_of(names, seed=0):
    """Draws of the same domains, called by other names in each; now and then a query strays."""
    rng, domain, expertise = np.random.default_rng(seed), [], []
    for name in names:
        drawn = DOMAIN.copy()
        drawn[2] = rng.choice([1, 1, 1, 0])
        domain.append(name[drawn])
        expertise.append(EXPERTISE[:, np.argsort(name)])
    count = len(names)
    return Reading(np.zeros((count, 8)), np.ones((count, 6)), np.array(expertise), np.array(domain), np.ones(count))


def test_domains_are_called_the_same_in_all_draws():
    rng = np.random.default_rng(1)
    same, other = (
        reading_of([np.arange(3)] * 40).named_alike(),
        reading_of([np.arange(3), *(rng.permutation(3) for _ in range(39))]).named_alike(),
    )
    np.testing.assert_array_equal(same.domain, other.domain)
    np.testing.assert_array_equal(same.expertise, other.expertise)
    np.testing.assert_array_equal(other.expertise, np.broadcast_to(EXPERTISE, (40, 2, 3)))
    np.testing.assert_allclose(other.membership.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.argmax(other.membership, axis=1), DOMAIN)


def test_names_left_as_they_are_would_have_mixed_domains():
    """The negative control of the test above."""
    rng = np.random.default_rng(1)
    mixed = reading_of([rng.permutation(3) for _ in range(40)])
    assert mixed.membership.max() < 0.8
    assert np.std(mixed.expertise[:, 0, 0]) > 0.5


def test_draws_are_taken_apart_as_they_were_put_together():
    queries, people, domains, items = 2, 2, 3, VOTES.items
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=(5, n)) for n in (len(items), queries, people * domains)]
    domain = np.tile([0.0, 1.0], (5, 1))
    reading = Reading.of(np.concatenate((*parts, domain, np.full((5, 1), 7.0)), axis=1), items, people, domains)
    np.testing.assert_array_equal(reading.scores, parts[0])
    np.testing.assert_array_equal(reading.difficulty, parts[1])
    np.testing.assert_array_equal(reading.expertise.reshape(5, -1), parts[2])
    np.testing.assert_array_equal(reading.domain, domain)
    assert reading.spread.tolist() == [7.0] * 5


def test_units_are_those_that_are_told():
    """Scores have a root mean square of one, difficulty a mean of one; margins are the same in other units."""
    scores, difficulty, tau = np.array([3.0, 0.0, 1.0, 5.0, 2.0]), np.array([0.5, 3.0]), np.array([[2.0], [-1.0]])
    state = SimpleNamespace(scores=scores, difficulty=difficulty, expertise=tau, domain=np.zeros(2))
    drawn = read(SimpleNamespace(items=VOTES.items, upright=lambda state: state), state)
    found, level, expertise, domain, spread = np.split(drawn, np.cumsum([5, 2, 2, 2]))
    assert np.mean(found**2) == pytest.approx(1.0)
    assert level.mean() == pytest.approx(1.0)
    np.testing.assert_allclose(np.bincount(VOTES.items.query, found), 0.0, atol=1e-12)
    np.testing.assert_array_equal(domain, 0)
    # τ (s_a − s_b) in the sampler's units, and here
    assert expertise[0] * spread[0] * (found[0] - found[1]) == pytest.approx(2.0 * 3.0)
    assert expertise[1] ** 2 * level[1] == pytest.approx(1.0 * 3.0)


def test_judgments_are_counted_by_query_and_annotator():
    np.testing.assert_array_equal(given_in(laid_out(VOTES), 2), [[1, 1], [1, 1]])
    assert given_in(laid_out(VOTES), 3).shape == (2, 3)


def test_quality_is_weighed_by_what_was_judged():
    reading = reading_of([np.arange(3)] * 3)
    reading.domain[:] = DOMAIN
    given = np.zeros((6, 2), np.int64)
    given[[0, 5], 0] = 3, 1  # the first annotator: three judgments of the first domain, one of the third
    found = reading.quality(given)
    chance = ndtr(EXPERTISE / np.sqrt(2))
    np.testing.assert_allclose(found[:, 0], 0.75 * chance[0, 0] + 0.25 * chance[0, 2])
    np.testing.assert_allclose(found[:, 1], chance[1, DOMAIN].mean())


def test_an_interval_is_mean_and_quantiles():
    middle, low, high = interval(np.arange(101.0)[:, None], 0.9)
    assert (middle.item(), low.item(), high.item()) == pytest.approx((50.0, 5.0, 95.0))
