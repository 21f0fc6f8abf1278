"""Sweeps of the TPP sampler leave the posterior invariant, and the tests detect deliberate faults."""

import numpy as np
import pytest
from scipy.special import expit, log_ndtr

from crowdrank.data import Items
from crowdrank.inference.mcmc import effective_sample_size, sample
from crowdrank.models.thurstonian.gibbs import Prior, make_state, proposal_share
from crowdrank.models.thurstonian.initialization import InitialValues
from crowdrank.models.thurstonian.layout import build_layout
from crowdrank.models.thurstonian.sampler import Sampler

pytestmark = pytest.mark.slow

STARTS = np.array([0, 3, 6])
ROWS = [
    (0, 1, 0),
    (1, 2, 0),
    (0, 2, 0),
    (0, 1, 1),
    (2, 1, 1),
    (0, 1, 0),
    (3, 4, 0),
    (5, 4, 0),
    (4, 3, 1),
    (4, 5, 1),
    (3, 5, 1),
]
N_ANNOTATORS, DOMAINS = 2, 2
PRIOR = Prior(variance_shape=3.0, variance_rate=6.0, difficulty_shape=3.0, difficulty_rate=3.0)


def sampler_of(rows=ROWS, starts=STARTS, n_annotators=N_ANNOTATORS, domains=DOMAINS, prior=PRIOR):
    winner, loser, who = np.array(rows, np.int32).T
    queries = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    labels = tuple(f"i{n}" for n in range(starts[-1]))
    items = Items(labels=labels, query=queries.astype(np.int32), queries=tuple(f"q{q}" for q in range(len(starts) - 1)))
    start = InitialValues(
        np.zeros(starts[-1]), np.arange(len(starts) - 1) % domains, np.ones((n_annotators, domains)), 2.0
    )
    return Sampler(build_layout(winner, loser, who, starts), items, start, prior)


def statistics(scores, difficulty, domain, expertise, scale):
    """Statistics that do not depend on the labels of the domains."""
    own = np.take_along_axis(expertise, domain[..., None, :], axis=-1)
    same_domain = (domain[..., :1] == domain[..., 1:]).astype(np.float64)
    parts = expit(scores), np.tanh(own).reshape(*domain.shape[:-1], -1), np.log(difficulty), np.log(scale), same_domain
    return np.concatenate(parts, axis=-1)


def weighted_prior_draws(prior=PRIOR, count=400_000):
    """The posterior by importance sampling: draws from the prior, weighted by their likelihood."""
    rng, layout = np.random.default_rng(7), sampler_of().layout
    scale = prior.variance_rate / rng.gamma(prior.variance_shape, size=(count, 1))
    scores = np.sqrt(scale) * rng.normal(size=(count, 6))
    difficulty = rng.gamma(prior.difficulty_shape, size=(count, 2)) / prior.difficulty_rate
    item = layout.utility_item
    perceived = scores[:, item] + np.sqrt(difficulty[:, item // 3]) * rng.normal(size=(count, len(item)))
    expertise = rng.normal(prior.expertise_mean, prior.expertise_std, (count, N_ANNOTATORS, DOMAINS))
    domain = (rng.random((count, 2)) < rng.random((count, 1))).astype(np.int64)
    query = item[layout.winner_utility] // 3
    tau = expertise[np.arange(count)[:, None], layout.annotator, domain[:, query]]
    log_weight = log_ndtr(
        tau * (perceived[:, layout.winner_utility] - perceived[:, layout.loser_utility]) / np.sqrt(2)
    ).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum(), statistics(scores, difficulty, domain, expertise, scale)


@pytest.fixture(scope="module")
def expected():
    return weighted_prior_draws()


def started(sampler):
    return lambda rng: sampler.tune(rng, sampler.init(rng))


def deviation(sampler, expected, draws):
    """Largest deviation of a first or second moment, in standard errors of both samples."""
    samples = sample(
        started(sampler),
        sampler.run,
        lambda s: statistics(s.scores, s.difficulty, s.domain, s.expertise, s.score_variance),
        chains=2,
        warmup=200,
        draws=draws,
        thin=8,
        seed=3,
    )
    weight, values = expected
    worst = 0.0
    for power in (1, 2):
        draws, truth = samples.draws**power, values**power
        mean = weight @ truth
        theirs = weight**2 @ (truth - mean) ** 2
        ours = draws.var(axis=(0, 1)) / effective_sample_size(draws)
        worst = max(worst, np.max(np.abs(draws.mean(axis=(0, 1)) - mean) / np.sqrt(ours + theirs)))
    return worst


def test_draws_follow_the_posterior(expected):
    weight, _ = expected
    assert 1 / np.sum(weight**2) > 2_000
    assert deviation(sampler_of(), expected, 4000) < 4


@pytest.mark.parametrize(
    "fault",
    [
        {"prior": PRIOR._replace(expertise_std=2.0)},
        {"prior": PRIOR._replace(difficulty_rate=1.5)},
        {"prior": PRIOR._replace(variance_rate=9.0)},
        {"rows": [(1, 0, 0), *ROWS[1:]]},
    ],
    ids=["expertise", "difficulty", "scale", "a reversed judgment"],
)
def test_a_faulty_sweep_is_detected(fault, expected):
    """Negative control of the previous test."""
    assert deviation(sampler_of(**fault), expected, 1000) > 6


PAIRS = [(4 * q + a, 4 * q + b, k) for q in range(2) for a in range(4) for b in range(a) for k in range(3)] * 2


# The preconditioner must not depend on the state that is moved, so it comes from an unrelated state.
UNRELATED_STATE = (
    np.zeros(8),
    np.zeros(24),
    np.ones(2),
    np.zeros(2, np.int64),
    np.ones((3, 2)),
    np.full(2, 0.5),
    np.full(1, 4.0),
)


def truth_and_sampler(rng, prior, pairs=PAIRS):
    """A state from the prior and a sampler of judgments simulated from it: the state is a draw from their posterior."""
    left, right, who = np.array(pairs, np.int32).T
    scale = prior.variance_rate / rng.gamma(prior.variance_shape, size=1)
    scores = np.sqrt(scale) * rng.normal(size=8)
    difficulty = rng.gamma(prior.difficulty_shape, size=2) / prior.difficulty_rate
    perceived = scores[:, None] + np.sqrt(difficulty)[np.arange(8) // 4, None] * rng.normal(size=(8, 3))
    expertise = rng.normal(prior.expertise_mean, prior.expertise_std, (3, 2))
    domain_probs = rng.dirichlet(np.ones(2))
    domain = rng.choice(2, size=2, p=domain_probs)
    margin = expertise[who, domain[left // 4]] * (perceived[left, who] - perceived[right, who]) / np.sqrt(2)
    won = margin + rng.normal(size=len(margin)) > 0
    rows = np.stack((np.where(won, left, right), np.where(won, right, left), who), axis=1)
    sampler = sampler_of(rows, np.array([0, 4, 8]), n_annotators=3, prior=PRIOR)
    state = make_state(sampler.layout, *(part.copy() for part in UNRELATED_STATE))
    parts = {"scores": scores, "perceived": perceived.ravel(), "difficulty": difficulty, "domain": domain}
    return state._replace(**parts, expertise=expertise, domain_probs=domain_probs, score_variance=scale), sampler


def state_statistics(state, layout):
    """Statistics that change if any one move is faulty."""
    item, query = layout.utility_item, layout.utility_item // 4
    tau = state.expertise[layout.annotator, state.domain[query[layout.winner_utility]]]
    log_likelihood = log_ndtr(
        tau * (state.perceived[layout.winner_utility] - state.perceived[layout.loser_utility]) / np.sqrt(2)
    ).sum()
    noise = np.mean((state.perceived - state.scores[item]) ** 2 / state.difficulty[query])
    size = np.mean(state.scores**2) / state.score_variance[0]
    width = np.mean((state.expertise - PRIOR.expertise_mean) ** 2)
    parts = statistics(state.scores, state.difficulty, state.domain, state.expertise, state.score_variance)
    return np.concatenate(
        (parts, [log_likelihood, noise, size, width, state.domain_probs[0], state.domain_probs.max()])
    )


def drift(prior, times=2000, sweeps=3):
    """Largest mean change of posterior draws after a few sweeps, in standard errors."""
    rng, moved = np.random.default_rng(11), []
    for _ in range(times):
        state, sampler = truth_and_sampler(rng, prior)
        there, _ = sampler.run(rng, state, sweeps)
        moved.append(state_statistics(there, sampler.layout) - state_statistics(state, sampler.layout))
    return np.max(np.abs(np.mean(moved, axis=0)) / (np.std(moved, axis=0) / np.sqrt(times)))


def test_sweeps_leave_the_posterior_invariant():
    assert drift(PRIOR) < 4


def test_sweeps_for_another_posterior_are_detected():
    """Negative control of the previous test."""
    assert drift(PRIOR._replace(expertise_std=1.2), times=1500) > 6


@pytest.mark.parametrize(
    "rows",
    [[(0, 1, 0)], [(0, 1, 0)] * 200, [(0, 1, 0), (1, 0, 0)] * 100],
    ids=["one judgment", "unanimous", "contradictory"],
)
def test_sparse_and_unanimous_judgments_stay_finite(rows):
    """The second query has no judgment, and the second annotator gave none."""
    sampler, rng = sampler_of(rows, prior=Prior()), np.random.default_rng(0)
    state, _ = sampler.run(rng, started(sampler)(rng), 2000)
    assert all(np.all(np.isfinite(part)) for part in state)
    assert state.difficulty.min() > 0
    assert np.abs(state.expertise).max() < 10


def test_an_annotator_without_judgments_is_drawn_from_the_prior():
    sampler = sampler_of([(0, 1, 0), (3, 4, 0)], n_annotators=2)
    samples = sample(
        started(sampler), sampler.run, lambda s: s.expertise[1], chains=2, warmup=100, draws=2000, thin=5, seed=1
    )
    error = 1.5 / np.sqrt(effective_sample_size(samples.draws))
    assert np.all(np.abs(samples.pooled.mean(axis=0) - 1.0) < 4 * error)
    assert samples.pooled.std(axis=0) == pytest.approx(np.full(2, 1.5), rel=0.1)


def test_a_run_leaves_its_start_unchanged_and_is_reproducible():
    sampler = sampler_of()
    start = sampler.init(np.random.default_rng(0))
    before = [part.copy() for part in start]
    one, _ = sampler.run(np.random.default_rng(1), start, 5)
    other, _ = sampler.run(np.random.default_rng(1), start, 5)
    for then, now, a, b in zip(before, start, one, other, strict=True):
        np.testing.assert_array_equal(then, now)
        np.testing.assert_array_equal(a, b)


def test_other_domains_are_proposed_less_often_in_long_lists():
    shares = []
    for size in (5, 20, 100):
        pairs = np.array([(one, other, 0) for one in range(size) for other in range(one)], np.int32)
        shares.append(proposal_share(build_layout(*pairs.T, np.array([0, size])), 0))
    assert shares[0] == 0.3
    np.testing.assert_array_less(shares[1:], [0.1, 0.004])
