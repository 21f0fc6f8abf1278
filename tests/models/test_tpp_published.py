"""TPP as published: it recovers a simulated crowd, its M-step stands on the top, and nothing makes it stumble."""

import numpy as np
import pytest

from crowdrank.data import Items
from crowdrank.errors import SettingError
from crowdrank.models.thurstonian.layout import sights_of
from crowdrank.models.thurstonian.mcem import MonteCarloEM, _rescale
from crowdrank.models.thurstonian.mcem_kernels import LARGEST, Draws, Latent, Parameters, log_joint
from crowdrank.simulation import domain_crowd


def sights_and_items(comparisons):
    won = comparisons.outcome > 0
    left, right = comparisons.left, comparisons.right
    winner, loser = np.where(won, left, right), np.where(won, right, left)
    return sights_of(winner, loser, comparisons.annotator, comparisons.items.starts), comparisons.items


def items_of(sizes):
    query = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    labels = np.array([f"item {n}" for n in range(len(query))], object)
    return Items(labels, query, np.array([f"query {n}" for n in range(len(sizes))], object))


def find(rows, sizes, annotators, **settings):
    winner, loser, who = np.array(rows, np.int32).reshape(-1, 3).T
    items = items_of(sizes)
    return MonteCarloEM(**settings).find(sights_of(winner, loser, who, items.starts), items, annotators)


@pytest.fixture(scope="module")
def crowd():
    """As in the paper's Figure 3."""
    return domain_crowd(queries=100, items=5, annotators=10, domains=2, sparsity=0.5, even_domains=True, seed=0)


@pytest.fixture(scope="module")
def found(crowd):
    sights, items = sights_and_items(crowd.judgments)
    return MonteCarloEM(domains=2, seed=1).find(sights, items, 10)


def right_domains(crowd, likeliest):
    same = np.mean(likeliest == crowd.queries["domain"], axis=-1)
    return np.maximum(same, 1 - same)


def discordant(crowd, scores):
    """The mean number of pairs of a query in the wrong order; two that tie are half wrong."""
    apart, truth = (x.reshape(-1, 5, 1) - x.reshape(-1, 1, 5) for x in (scores, crowd.truth))
    return np.mean(np.sum(0.5 - 0.5 * np.sign(apart) * np.sign(truth), axis=(1, 2)) - 2.5) / 2


def test_domains_are_found_from_a_random_start(crowd, found):
    right = right_domains(crowd, found.likeliest)
    assert right[0] < 0.7
    assert right[10] > 0.9
    assert len(found.likeliest) == len(found.log_likelihood) + 1


def test_scores_are_much_nearer_the_truth_than_the_head_count(crowd, found):
    sights, items = sights_and_items(crowd.judgments)
    won, lost = (np.bincount(sights.item[side], minlength=len(items)) for side in (sights.winner, sights.loser))
    assert discordant(crowd, found.scores) < 0.6 * discordant(crowd, (won - lost).astype(float))


def test_who_lies_where_is_found(crowd, found):
    truth = crowd.annotators["expertise"]
    if np.mean(found.likeliest[-1] == crowd.queries["domain"]) < 0.5:
        truth = truth[:, ::-1]
    assert (truth < 0).any()
    assert found.expertise[truth < 0].max() < 0
    assert found.expertise[truth >= 5].min() > 0


def test_the_likelihood_is_climbed_until_it_settles(found):
    assert found.converged
    assert np.mean(found.log_likelihood[-3:]) > np.mean(found.log_likelihood[:3]) + 50


def test_the_identification_conditions_hold(found):
    assert found.difficulty.mean() == pytest.approx(1)
    np.testing.assert_allclose(np.minimum.reduceat(found.scores, np.arange(0, 500, 5)), 0, atol=1e-12)
    np.testing.assert_allclose(found.memberships.sum(axis=1), 1)
    assert found.shares.sum() == pytest.approx(1)


def test_the_m_step_stands_on_the_top():
    rng, items = np.random.default_rng(3), items_of([3, 2])
    rows = np.array([(0, 1, 0), (1, 2, 1), (3, 4, 0), (4, 3, 1), (0, 2, 1)], np.int32)
    sights = sights_of(*rows.T, items.starts)
    draws = Draws(rng.integers(2, size=(40, 2)), rng.normal(size=(40, len(sights.item))))
    at = Parameters(np.zeros(5), np.ones(2), np.full(2, 0.5), np.ones((2, 2)))
    members = np.mean(draws.domain[..., None] == np.arange(2), axis=0)
    there = MonteCarloEM(domains=2)._update(sights, items, draws, at, members)
    top = log_joint(sights, draws, there)
    assert top > log_joint(sights, draws, at)
    for n in range(5):
        for step in (-0.02, 0.02):
            assert log_joint(sights, draws, there._replace(scores=there.scores + step * np.eye(5)[n])) < top
    for n in range(2):
        for factor in (0.95, 1.05):
            changed = np.where(np.arange(2) == n, factor, 1.0)
            assert log_joint(sights, draws, there._replace(difficulty=there.difficulty * changed)) < top
            other = there.shares * changed
            assert log_joint(sights, draws, there._replace(shares=other / other.sum())) < top


def test_rescaling_leaves_the_chances_of_all_answers():
    rng, items = np.random.default_rng(3), items_of([3, 2])
    rows = np.array([(0, 1, 0), (1, 2, 1), (3, 4, 0), (4, 3, 1)], np.int32)
    sights = sights_of(*rows.T, items.starts)
    at = Parameters(rng.normal(size=5), np.array([3.0, 0.2]), np.ones(1), rng.normal(size=(2, 1)))
    latent = Latent(np.zeros(2, np.int64), rng.normal(size=len(sights.item)), rng.random(4))
    there, moved = _rescale(at, latent, sights, items)

    def margins(at, latent):
        tau = at.expertise[sights.annotator, 0]
        blur = (latent.seen - at.scores[sights.item]) / np.sqrt(at.difficulty[items.query[sights.item]])
        apart = latent.seen[sights.winner] - latent.seen[sights.loser]
        return np.concatenate((tau * apart, tau * latent.noisy, blur))

    np.testing.assert_allclose(margins(there, moved), margins(at, latent))


def test_what_is_shared_is_the_same_for_all(crowd):
    sights, items = sights_and_items(crowd.judgments)
    found = MonteCarloEM(domains=2, expertise="shared", difficulty="shared", iterations=3).find(sights, items, 10)
    assert found.expertise.shape == (10, 2)
    assert np.ptp(found.expertise, axis=0).max() == 0
    np.testing.assert_allclose(found.difficulty, 1)


def test_a_fit_repeats_with_its_seed_and_not_with_another(crowd):
    sights, items = sights_and_items(crowd.judgments)
    one, same, other = (
        MonteCarloEM(domains=2, iterations=2, seed=seed).find(sights, items, 10).scores for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(0, 1, 0)],
        [(0, 1, 0)] * 100 + [(0, 2, 0)] * 100 + [(1, 2, 0)] * 100,
        [(0, 1, 0), (1, 0, 0)] * 100,
        [(a, b, k) for a in range(3) for b in range(a) for k in range(10)],
        [*[(2, 1, 0), (1, 0, 0), (2, 0, 0)] * 5, (0, 2, 1)],
    ],
    ids=["nothing", "one judgment", "one of one mind", "contradictions", "unanimous", "one judgment of the second"],
)
@pytest.mark.parametrize("difficulty", ["each", "shared"])
@pytest.mark.parametrize("domains", [1, 4])
def test_sparse_and_unanimous_judgments_stay_finite(rows, domains, difficulty):
    """The second query has no judgment at all."""
    found = find(rows, [3, 2], 11, domains=domains, difficulty=difficulty, iterations=60, tolerance=0.0)
    for part in (found.scores, found.difficulty, found.shares, found.memberships, found.log_likelihood):
        assert np.all(np.isfinite(part))
    assert np.abs(found.expertise).max() <= LARGEST
    assert found.difficulty.min() > 0
    assert len(found.log_likelihood) == 60


def test_what_always_won_comes_first_and_what_nobody_judged_in_between():
    rows = [(a, b, k) for a in (0, 1, 2) for b in (0, 1, 2) if a > b for k in range(5)]
    found = find(rows, [4], 5, domains=1, iterations=5)
    assert list(np.argsort(found.scores)) in ([0, 1, 3, 2], [0, 3, 1, 2])


@pytest.mark.parametrize(
    "settings",
    [{"domains": 0}, {"expertise": "none"}, {"difficulty": "all"}, {"sweeps": 0}, {"iterations": 0}, {"tolerance": -1}],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        MonteCarloEM(**settings)
