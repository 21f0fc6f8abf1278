"""Post-processing of draws: units, label switching of domains, and quality averaged over judgments."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

from crowdrank import Comparisons
from crowdrank.models.thurstonian.layout import judgment_counts, layout_from_comparisons
from crowdrank.models.thurstonian.sampler import PosteriorDraws, mean_and_interval, state_to_draw

DOMAIN = np.array([0, 0, 1, 1, 1, 2])
EXPERTISE = np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]])
VOTES = Comparisons.of([*"aabc"], [*"bbca"], [*"aabc"], annotator=[*"xyxy"], query=[*"1122"])


def draws_with_labels(names, seed=0):
    """Draws of the same domains with other labels in each; sometimes a query changes its domain."""
    rng, domain, expertise = np.random.default_rng(seed), [], []
    for name in names:
        drawn = DOMAIN.copy()
        drawn[2] = rng.choice([1, 1, 1, 0])
        domain.append(name[drawn])
        expertise.append(EXPERTISE[:, np.argsort(name)])
    count = len(names)
    return PosteriorDraws(
        np.zeros((count, 8)), np.ones((count, 6)), np.array(expertise), np.array(domain), np.ones(count)
    )


def test_domains_have_the_same_label_in_all_draws():
    rng = np.random.default_rng(1)
    same, other = (
        draws_with_labels([np.arange(3)] * 40).with_aligned_domains(),
        draws_with_labels([np.arange(3), *(rng.permutation(3) for _ in range(39))]).with_aligned_domains(),
    )
    np.testing.assert_array_equal(same.domain, other.domain)
    np.testing.assert_array_equal(same.expertise, other.expertise)
    np.testing.assert_array_equal(other.expertise, np.broadcast_to(EXPERTISE, (40, 2, 3)))
    np.testing.assert_allclose(other.membership.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.argmax(other.membership, axis=1), DOMAIN)


def test_without_alignment_domains_are_mixed():
    """Negative control of the previous test."""
    rng = np.random.default_rng(1)
    mixed = draws_with_labels([rng.permutation(3) for _ in range(40)])
    assert mixed.membership.max() < 0.8
    assert np.std(mixed.expertise[:, 0, 0]) > 0.5


def test_draws_are_split_into_their_parts():
    queries, n_annotators, domains, items = 2, 2, 3, VOTES.items
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=(5, n)) for n in (len(items), queries, n_annotators * domains)]
    domain = np.tile([0.0, 1.0], (5, 1))
    draws = PosteriorDraws.from_matrix(
        np.concatenate((*parts, domain, np.full((5, 1), 7.0)), axis=1), items, n_annotators, domains
    )
    np.testing.assert_array_equal(draws.scores, parts[0])
    np.testing.assert_array_equal(draws.difficulty, parts[1])
    np.testing.assert_array_equal(draws.expertise.reshape(5, -1), parts[2])
    np.testing.assert_array_equal(draws.domain, domain)
    assert draws.spread.tolist() == [7.0] * 5


def test_scores_and_difficulty_have_their_documented_units():
    """Scores have a root mean square of one, difficulty a mean of one; margins are the same in other units."""
    scores, difficulty, tau = np.array([3.0, 0.0, 1.0, 5.0, 2.0]), np.array([0.5, 3.0]), np.array([[2.0], [-1.0]])
    state = SimpleNamespace(scores=scores, difficulty=difficulty, expertise=tau, domain=np.zeros(2))
    drawn = state_to_draw(SimpleNamespace(items=VOTES.items, resolve_orientation=lambda state: state), state)
    found, level, expertise, domain, spread = np.split(drawn, np.cumsum([5, 2, 2, 2]))
    assert np.mean(found**2) == pytest.approx(1.0)
    assert level.mean() == pytest.approx(1.0)
    np.testing.assert_allclose(np.bincount(VOTES.items.query, found), 0.0, atol=1e-12)
    np.testing.assert_array_equal(domain, 0)
    # τ (s_a − s_b) in the units of the sampler and of the draw
    assert expertise[0] * spread[0] * (found[0] - found[1]) == pytest.approx(2.0 * 3.0)
    assert expertise[1] ** 2 * level[1] == pytest.approx(1.0 * 3.0)


def test_judgments_are_counted_by_query_and_annotator():
    np.testing.assert_array_equal(judgment_counts(layout_from_comparisons(VOTES), 2), [[1, 1], [1, 1]])
    assert judgment_counts(layout_from_comparisons(VOTES), 3).shape == (2, 3)


def test_quality_is_weighted_by_the_number_of_judgments():
    draws = draws_with_labels([np.arange(3)] * 3)
    draws.domain[:] = DOMAIN
    counts = np.zeros((6, 2), np.int64)
    counts[[0, 5], 0] = 3, 1  # the first annotator: three judgments of the first domain, one of the third
    found = draws.quality(counts)
    chance = ndtr(EXPERTISE / np.sqrt(2))
    np.testing.assert_allclose(found[:, 0], 0.75 * chance[0, 0] + 0.25 * chance[0, 2])
    np.testing.assert_allclose(found[:, 1], chance[1, DOMAIN].mean())


def test_an_interval_is_mean_and_quantiles():
    middle, low, high = mean_and_interval(np.arange(101.0)[:, None], 0.9)
    assert (middle.item(), low.item(), high.item()) == pytest.approx((50.0, 5.0, 95.0))
