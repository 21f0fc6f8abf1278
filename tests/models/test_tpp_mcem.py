"""TPP as published: it recovers a simulated crowd, its M-step is at the optimum, and edge cases stay finite."""

import numpy as np
import pytest

from crowdrank.data import Items
from crowdrank.errors import SettingError
from crowdrank.models.thurstonian.layout import build_layout
from crowdrank.models.thurstonian.mcem import (
    MAX_EXPERTISE,
    Draws,
    Latent,
    MonteCarloEM,
    Parameters,
    _rescale,
    log_joint,
)
from crowdrank.simulation import domain_crowd


def layout_and_items(comparisons):
    won = comparisons.outcome > 0
    left, right = comparisons.left, comparisons.right
    winner, loser = np.where(won, left, right), np.where(won, right, left)
    return build_layout(winner, loser, comparisons.annotator, comparisons.items.starts), comparisons.items


def items_of(sizes):
    query = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    labels = np.array([f"item {n}" for n in range(len(query))], object)
    return Items(labels, query, np.array([f"query {n}" for n in range(len(sizes))], object))


def fit_rows(rows, sizes, annotators, **settings):
    winner, loser, who = np.array(rows, np.int32).reshape(-1, 3).T
    items = items_of(sizes)
    return MonteCarloEM(**settings).fit(build_layout(winner, loser, who, items.starts), items, annotators)


@pytest.fixture(scope="module")
def crowd():
    """As in the paper's Figure 3."""
    return domain_crowd(queries=100, items=5, annotators=10, domains=2, sparsity=0.5, even_domains=True, seed=0)


@pytest.fixture(scope="module")
def found(crowd):
    layout, items = layout_and_items(crowd.judgments)
    return MonteCarloEM(domains=2, seed=1).fit(layout, items, 10)


def right_domains(crowd, domain_path):
    same = np.mean(domain_path == crowd.queries["domain"], axis=-1)
    return np.maximum(same, 1 - same)


def discordant(crowd, scores):
    """Mean number of discordant pairs per query; a tied pair counts half."""
    difference, truth = (x.reshape(-1, 5, 1) - x.reshape(-1, 1, 5) for x in (scores, crowd.truth))
    return np.mean(np.sum(0.5 - 0.5 * np.sign(difference) * np.sign(truth), axis=(1, 2)) - 2.5) / 2


def test_domains_are_found_from_a_random_start(crowd, found):
    right = right_domains(crowd, found.domain_path)
    assert right[0] < 0.7
    assert right[10] > 0.9
    assert len(found.domain_path) == len(found.log_likelihood) + 1


def test_scores_are_much_closer_to_the_truth_than_the_majority(crowd, found):
    layout, items = layout_and_items(crowd.judgments)
    won, lost = (
        np.bincount(layout.utility_item[side], minlength=len(items))
        for side in (layout.winner_utility, layout.loser_utility)
    )
    assert discordant(crowd, found.scores) < 0.6 * discordant(crowd, (won - lost).astype(float))


def test_reversed_annotators_are_found_in_their_domains(crowd, found):
    truth = crowd.annotators["expertise"]
    if np.mean(found.domain_path[-1] == crowd.queries["domain"]) < 0.5:
        truth = truth[:, ::-1]
    assert (truth < 0).any()
    assert found.expertise[truth < 0].max() < 0
    assert found.expertise[truth >= 5].min() > 0


def test_the_likelihood_increases_until_convergence(found):
    assert found.converged
    assert np.mean(found.log_likelihood[-3:]) > np.mean(found.log_likelihood[:3]) + 50


def test_the_identification_conditions_hold(found):
    assert found.difficulty.mean() == pytest.approx(1)
    np.testing.assert_allclose(np.minimum.reduceat(found.scores, np.arange(0, 500, 5)), 0, atol=1e-12)
    np.testing.assert_allclose(found.membership.sum(axis=1), 1)
    assert found.domain_probs.sum() == pytest.approx(1)


def test_the_m_step_is_at_the_optimum():
    rng, items = np.random.default_rng(3), items_of([3, 2])
    rows = np.array([(0, 1, 0), (1, 2, 1), (3, 4, 0), (4, 3, 1), (0, 2, 1)], np.int32)
    layout = build_layout(*rows.T, items.starts)
    draws = Draws(rng.integers(2, size=(40, 2)), rng.normal(size=(40, len(layout.utility_item))))
    parameters = Parameters(np.zeros(5), np.ones(2), np.full(2, 0.5), np.ones((2, 2)))
    members = np.mean(draws.domain[..., None] == np.arange(2), axis=0)
    there = MonteCarloEM(domains=2)._m_step(layout, items, draws, parameters, members)
    best = log_joint(layout, draws, there)
    assert best > log_joint(layout, draws, parameters)
    for n in range(5):
        for step in (-0.02, 0.02):
            assert log_joint(layout, draws, there._replace(scores=there.scores + step * np.eye(5)[n])) < best
    for n in range(2):
        for factor in (0.95, 1.05):
            changed = np.where(np.arange(2) == n, factor, 1.0)
            assert log_joint(layout, draws, there._replace(difficulty=there.difficulty * changed)) < best
            other = there.domain_probs * changed
            assert log_joint(layout, draws, there._replace(domain_probs=other / other.sum())) < best


def test_rescaling_leaves_the_probabilities_of_all_answers():
    rng, items = np.random.default_rng(3), items_of([3, 2])
    rows = np.array([(0, 1, 0), (1, 2, 1), (3, 4, 0), (4, 3, 1)], np.int32)
    layout = build_layout(*rows.T, items.starts)
    parameters = Parameters(rng.normal(size=5), np.array([3.0, 0.2]), np.ones(1), rng.normal(size=(2, 1)))
    latent = Latent(np.zeros(2, np.int64), rng.normal(size=len(layout.utility_item)), rng.random(4))
    there, moved = _rescale(parameters, latent, layout, items)

    def margins(parameters, latent):
        tau = parameters.expertise[layout.annotator, 0]
        noise = (latent.perceived - parameters.scores[layout.utility_item]) / np.sqrt(
            parameters.difficulty[items.query[layout.utility_item]]
        )
        difference = latent.perceived[layout.winner_utility] - latent.perceived[layout.loser_utility]
        return np.concatenate((tau * difference, tau * latent.noisy_difference, noise))

    np.testing.assert_allclose(margins(there, moved), margins(parameters, latent))


def test_shared_parameters_are_equal_for_all(crowd):
    layout, items = layout_and_items(crowd.judgments)
    found = MonteCarloEM(domains=2, expertise="shared", difficulty="shared", iterations=3).fit(layout, items, 10)
    assert found.expertise.shape == (10, 2)
    assert np.ptp(found.expertise, axis=0).max() == 0
    np.testing.assert_allclose(found.difficulty, 1)


def test_a_fit_is_reproducible_with_its_seed(crowd):
    layout, items = layout_and_items(crowd.judgments)
    one, same, other = (
        MonteCarloEM(domains=2, iterations=2, seed=seed).fit(layout, items, 10).scores for seed in (1, 1, 2)
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
    ids=[
        "nothing",
        "one judgment",
        "one consistent annotator",
        "contradictions",
        "unanimous",
        "one judgment of the second",
    ],
)
@pytest.mark.parametrize("difficulty", ["each", "shared"])
@pytest.mark.parametrize("domains", [1, 4])
def test_sparse_and_unanimous_judgments_stay_finite(rows, domains, difficulty):
    """The second query has no judgment at all."""
    found = fit_rows(rows, [3, 2], 11, domains=domains, difficulty=difficulty, iterations=60, tolerance=0.0)
    for part in (found.scores, found.difficulty, found.domain_probs, found.membership, found.log_likelihood):
        assert np.all(np.isfinite(part))
    assert np.abs(found.expertise).max() <= MAX_EXPERTISE
    assert found.difficulty.min() > 0
    assert len(found.log_likelihood) == 60


def test_an_item_that_always_won_comes_first_and_one_without_judgments_in_between():
    rows = [(a, b, k) for a in (0, 1, 2) for b in (0, 1, 2) if a > b for k in range(5)]
    found = fit_rows(rows, [4], 5, domains=1, iterations=5)
    assert list(np.argsort(found.scores)) in ([0, 1, 3, 2], [0, 3, 1, 2])


@pytest.mark.parametrize(
    "settings",
    [{"domains": 0}, {"expertise": "none"}, {"difficulty": "all"}, {"sweeps": 0}, {"iterations": 0}, {"tolerance": -1}],
)
def test_invalid_settings_are_refused(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        MonteCarloEM(**settings)
