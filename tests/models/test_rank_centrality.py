import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from crowdrank.errors import ConvergenceWarning, DisconnectedError, SettingError
from crowdrank.models import BradleyTerry, RankCentrality
from crowdrank.models.pairwise import rank_centrality as file
from tests.strategies import comparisons, comparisons_of

quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def walk_of(votes, smoothing=0.5):
    """The chance of going from item to item, straight from Negahban, Oh & Shah."""
    size, query = len(votes.items), votes.items.query
    wins, met = np.zeros((size, size)), np.zeros((size, size))
    for a, b, outcome, weight in zip(votes.left, votes.right, votes.outcome, votes.weights, strict=True):
        wins[a, b] += weight * (1 + outcome) / 2
        wins[b, a] += weight * (1 - outcome) / 2
        met[a, b] += weight
        met[b, a] += weight
    share = np.divide(wins.T + smoothing, met + 2 * smoothing, where=met > 0, out=np.zeros_like(met))
    degree = np.count_nonzero(met, axis=1)
    busiest = np.array([degree[query == q].max() for q in query])
    chance = share / busiest[:, None]
    return chance + np.diag(1 - chance.sum(axis=1))


def by_eigenvector(votes):
    scores = np.empty(len(votes.items))
    chance = walk_of(votes)
    for query in range(len(votes.items.queries)):
        block = votes.items.of_query(query)
        values, vectors = np.linalg.eig(chance[block, block].T)
        first = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
        scores[block] = np.log(first)
    return votes.items.centre(scores)


@pytest.mark.parametrize("solved", [2_000, 0], ids=["solved", "followed"])
@quick
@given(votes=comparisons())
def test_scores_are_the_log_of_the_walks_eigenvector(solved, votes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_LARGEST_SOLVED", solved)
        found = RankCentrality(tolerance=1e-12, max_steps=1_000_000).fit(votes)
    assert found.convergence.converged
    np.testing.assert_allclose(found.scores, by_eigenvector(votes), atol=1e-5)


def two_peaks(size, times=1):
    """A row of items, the outer ones better: the walk can hardly get from one end to the other."""
    rows = []
    for n in range(size - 1):
        outcome = 1 if n < size / 3 else -1
        rows += [(n, n + 1, outcome)] * times
    return comparisons_of(None, *zip(*rows, strict=True))


def by_balance(votes):
    """On a row, time at a over time at b is the odds of b's falling to a: exact, however deep the valley."""
    chance = walk_of(votes)
    place = {label: n for n, label in enumerate(votes.items.labels)}
    order = [place[f"i{n}"] for n in range(len(place))]
    scores = np.zeros(len(order))
    for a, b in itertools.pairwise(order):
        scores[b] = scores[a] + np.log(chance[a, b] / chance[b, a])
    return scores - scores.mean()


@pytest.mark.parametrize(("size", "times"), [(30, 1), (60, 10), (290, 3)])
def test_a_valley_between_two_peaks_is_crossed(size, times):
    votes = two_peaks(size, times)
    found = RankCentrality().fit(votes)
    assert found.convergence.converged
    np.testing.assert_allclose(found.scores, by_balance(votes), atol=1e-8)


def test_a_walk_that_cannot_cross_does_not_call_itself_settled(monkeypatch):
    monkeypatch.setattr(file, "_LARGEST_SOLVED", 300)
    votes = two_peaks(310)
    with pytest.warns(ConvergenceWarning, match="rank-centrality did not converge in 3000 steps"):
        found = RankCentrality(max_steps=3_000).fit(votes)
    assert not found.convergence.converged


def test_many_items_are_followed_to_what_solving_gives(monkeypatch):
    rng = np.random.default_rng(0)
    left = np.concatenate((np.arange(319), rng.integers(320, size=2_500)))
    right = np.concatenate((np.arange(1, 320), (left[319:] + rng.integers(1, 320, size=2_500)) % 320))
    votes = comparisons_of(None, left, right, rng.choice([1, -1], len(left)))
    monkeypatch.setattr(file, "_LARGEST_SOLVED", 300)
    followed = RankCentrality(tolerance=1e-10).fit(votes)
    assert followed.convergence.steps > 10
    monkeypatch.setattr(file, "_LARGEST_SOLVED", 400)
    np.testing.assert_allclose(followed.scores, RankCentrality().fit(votes).scores, atol=1e-6)


@pytest.mark.parametrize("solved", [2_000, 0], ids=["solved", "followed"])
@quick
@given(votes=comparisons())
def test_resamples_are_solved_as_the_judgments_are(solved, votes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_LARGEST_SOLVED", solved)
        model = RankCentrality(tolerance=1e-8, max_steps=1_000_000)
        patch.setattr(file, "_RESAMPLED_TOLERANCE", 1e-8)
        expected = model._stationary(votes.counts, votes.items)[0]
        found = model._resampled_stationary(votes.counts, votes.items, np.zeros(len(votes.items)))
    np.testing.assert_allclose(votes.items.centre(found), votes.items.centre(expected), atol=1e-4)


def test_a_valley_is_crossed_by_resamples():
    votes = two_peaks(150, 3)
    found = RankCentrality()._resampled_stationary(votes.counts, votes.items, np.zeros(150))
    np.testing.assert_allclose(votes.items.centre(found), by_balance(votes), atol=1e-8)


def test_many_judgments_lead_to_bradley_terrys_scores():
    rng = np.random.default_rng(0)
    truth = np.array([1.0, 0.5, 0.0, -0.4, -1.1])
    left = rng.integers(5, size=100_000)
    right = (left + rng.integers(1, 5, size=100_000)) % 5
    outcome = np.where(rng.random(100_000) < 1 / (1 + np.exp(truth[right] - truth[left])), 1, -1)
    votes = comparisons_of(None, left, right, outcome)
    np.testing.assert_allclose(RankCentrality().fit(votes).scores, BradleyTerry().fit(votes).scores, atol=0.05)


def test_refuses_disconnected_components():
    with pytest.raises(DisconnectedError, match="i0, i1; i2, i3.*Rank each by itself"):
        RankCentrality().fit(comparisons_of(None, [0, 2], [1, 3], [1, 1]))


def test_refuses_no_smoothing():
    with pytest.raises(SettingError, match="smoothing must be positive, got 0"):
        RankCentrality(smoothing=0)
