"""The sampler of Thurstonian pairwise preferences: that draws are of the posterior, and that a fault would show."""

import numpy as np
import pytest
from scipy.special import expit, log_ndtr

from crowdrank.data import Items
from crowdrank.inference.mcmc import effective_size, sample
from crowdrank.models.thurstonian.gibbs import Beliefs, ready
from crowdrank.models.thurstonian.layout import sights_of
from crowdrank.models.thurstonian.sampler import Sampler
from crowdrank.models.thurstonian.start import Start

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
PEOPLE, DOMAINS = 2, 2
BELIEFS = Beliefs(scale_shape=3.0, scale_rate=6.0, difficulty_shape=3.0, difficulty_rate=3.0)


def sampler_of(rows=ROWS, starts=STARTS, people=PEOPLE, domains=DOMAINS, beliefs=BELIEFS):
    winner, loser, who = np.array(rows, np.int32).T
    queries = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    labels = tuple(f"i{n}" for n in range(starts[-1]))
    items = Items(labels=labels, query=queries.astype(np.int32), queries=tuple(f"q{q}" for q in range(len(starts) - 1)))
    start = Start(np.zeros(starts[-1]), np.arange(len(starts) - 1) % domains, np.ones((people, domains)), 2.0)
    return Sampler(sights_of(winner, loser, who, starts), items, start, beliefs)


def told(scores, difficulty, domain, expertise, scale):
    """What the draws are compared by: none of it changes with the names of the domains."""
    own = np.take_along_axis(expertise, domain[..., None, :], axis=-1)
    together = (domain[..., :1] == domain[..., 1:]).astype(np.float64)
    parts = expit(scores), np.tanh(own).reshape(*domain.shape[:-1], -1), np.log(difficulty), np.log(scale), together
    return np.concatenate(parts, axis=-1)


def weighed_prior_draws(beliefs=BELIEFS, count=400_000):
    """The posterior by importance sampling: draws from the prior, weighed by their likelihood."""
    rng, sights = np.random.default_rng(7), sampler_of().sights
    scale = beliefs.scale_rate / rng.gamma(beliefs.scale_shape, size=(count, 1))
    scores = np.sqrt(scale) * rng.normal(size=(count, 6))
    difficulty = rng.gamma(beliefs.difficulty_shape, size=(count, 2)) / beliefs.difficulty_rate
    item = sights.item
    seen = scores[:, item] + np.sqrt(difficulty[:, item // 3]) * rng.normal(size=(count, len(item)))
    expertise = rng.normal(beliefs.expertise, beliefs.expertise_spread, (count, PEOPLE, DOMAINS))
    domain = (rng.random((count, 2)) < rng.random((count, 1))).astype(np.int64)
    query = item[sights.winner] // 3
    tau = expertise[np.arange(count)[:, None], sights.annotator, domain[:, query]]
    log_weight = log_ndtr(tau * (seen[:, sights.winner] - seen[:, sights.loser]) / np.sqrt(2)).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum(), told(scores, difficulty, domain, expertise, scale)


@pytest.fixture(scope="module")
def expected():
    return weighed_prior_draws()


def started(sampler):
    return lambda rng: sampler.tune(rng, sampler.init(rng))


def off(sampler, expected, draws):
    """How many standard errors of both the worst of means and second moments is off."""
    samples = sample(
        started(sampler),
        sampler.walk,
        lambda s: told(s.scores, s.difficulty, s.domain, s.expertise, s.scale),
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
        ours = draws.var(axis=(0, 1)) / effective_size(draws)
        worst = max(worst, np.max(np.abs(draws.mean(axis=(0, 1)) - mean) / np.sqrt(ours + theirs)))
    return worst


def test_draws_are_of_the_posterior(expected):
    weight, _ = expected
    assert 1 / np.sum(weight**2) > 2_000
    assert off(sampler_of(), expected, 4000) < 4


@pytest.mark.parametrize(
    "fault",
    [
        {"beliefs": BELIEFS._replace(expertise_spread=2.0)},
        {"beliefs": BELIEFS._replace(difficulty_rate=1.5)},
        {"beliefs": BELIEFS._replace(scale_rate=9.0)},
        {"rows": [(1, 0, 0), *ROWS[1:]]},
    ],
    ids=["expertise", "difficulty", "scale", "a judgment turned"],
)
def test_a_sweep_with_a_fault_is_noticed(fault, expected):
    """The negative control of the test above."""
    assert off(sampler_of(**fault), expected, 1000) > 6


PAIRS = [(4 * q + a, 4 * q + b, k) for q in range(2) for a in range(4) for b in range(a) for k in range(3)] * 2


# Coordinates must not depend on the state that is moved: they are those of one that has nothing to do with it.
ANYWHERE = (
    np.zeros(8),
    np.zeros(24),
    np.ones(2),
    np.zeros(2, np.int64),
    np.ones((3, 2)),
    np.full(2, 0.5),
    np.full(1, 4.0),
)


def truth_and_sampler(rng, beliefs, pairs=PAIRS):
    """A state from the prior, and the sampler of judgments made with it: the state is a draw of their posterior."""
    left, right, who = np.array(pairs, np.int32).T
    scale = beliefs.scale_rate / rng.gamma(beliefs.scale_shape, size=1)
    scores = np.sqrt(scale) * rng.normal(size=8)
    difficulty = rng.gamma(beliefs.difficulty_shape, size=2) / beliefs.difficulty_rate
    seen = scores[:, None] + np.sqrt(difficulty)[np.arange(8) // 4, None] * rng.normal(size=(8, 3))
    expertise = rng.normal(beliefs.expertise, beliefs.expertise_spread, (3, 2))
    shares = rng.dirichlet(np.ones(2))
    domain = rng.choice(2, size=2, p=shares)
    margin = expertise[who, domain[left // 4]] * (seen[left, who] - seen[right, who]) / np.sqrt(2)
    won = margin + rng.normal(size=len(margin)) > 0
    rows = np.stack((np.where(won, left, right), np.where(won, right, left), who), axis=1)
    sampler = sampler_of(rows, np.array([0, 4, 8]), people=3, beliefs=BELIEFS)
    state = ready(sampler.sights, *(part.copy() for part in ANYWHERE))
    parts = {"scores": scores, "seen": seen.ravel(), "difficulty": difficulty, "domain": domain}
    return state._replace(**parts, expertise=expertise, shares=shares, scale=scale), sampler


def traits(state, sights):
    """What a fault in any one move would change."""
    item, query = sights.item, sights.item // 4
    tau = state.expertise[sights.annotator, state.domain[query[sights.winner]]]
    likely = log_ndtr(tau * (state.seen[sights.winner] - state.seen[sights.loser]) / np.sqrt(2)).sum()
    blur = np.mean((state.seen - state.scores[item]) ** 2 / state.difficulty[query])
    size = np.mean(state.scores**2) / state.scale[0]
    width = np.mean((state.expertise - BELIEFS.expertise) ** 2)
    parts = told(state.scores, state.difficulty, state.domain, state.expertise, state.scale)
    return np.concatenate((parts, [likely, blur, size, width, state.shares[0], state.shares.max()]))


def drift(beliefs, times=2000, sweeps=3):
    """How many standard errors draws of the posterior have moved, on average, after a few sweeps."""
    rng, moved = np.random.default_rng(11), []
    for _ in range(times):
        state, sampler = truth_and_sampler(rng, beliefs)
        there, _ = sampler.walk(rng, state, sweeps)
        moved.append(traits(there, sampler.sights) - traits(state, sampler.sights))
    return np.max(np.abs(np.mean(moved, axis=0)) / (np.std(moved, axis=0) / np.sqrt(times)))


def test_sweeps_leave_the_posterior_as_it_is():
    assert drift(BELIEFS) < 4


def test_sweeps_of_another_posterior_are_noticed():
    """The negative control of the test above."""
    assert drift(BELIEFS._replace(expertise_spread=1.2), times=1500) > 6


@pytest.mark.parametrize(
    "rows",
    [[(0, 1, 0)], [(0, 1, 0)] * 200, [(0, 1, 0), (1, 0, 0)] * 100],
    ids=["one judgment", "unanimous", "contradictory"],
)
def test_sparse_and_unanimous_judgments_stay_finite(rows):
    """The second query has no judgment, and the second annotator gave none."""
    sampler, rng = sampler_of(rows, beliefs=Beliefs()), np.random.default_rng(0)
    state, _ = sampler.walk(rng, started(sampler)(rng), 2000)
    assert all(np.all(np.isfinite(part)) for part in state)
    assert state.difficulty.min() > 0
    assert np.abs(state.expertise).max() < 10


def test_an_annotator_without_judgments_is_drawn_from_the_prior():
    sampler = sampler_of([(0, 1, 0), (3, 4, 0)], people=2)
    samples = sample(
        started(sampler), sampler.walk, lambda s: s.expertise[1], chains=2, warmup=100, draws=2000, thin=5, seed=1
    )
    error = 1.5 / np.sqrt(effective_size(samples.draws))
    assert np.all(np.abs(samples.together.mean(axis=0) - 1.0) < 4 * error)
    assert samples.together.std(axis=0) == pytest.approx(np.full(2, 1.5), rel=0.1)


def test_a_walk_leaves_its_start_alone_and_repeats():
    sampler = sampler_of()
    start = sampler.init(np.random.default_rng(0))
    before = [part.copy() for part in start]
    one, _ = sampler.walk(np.random.default_rng(1), start, 5)
    other, _ = sampler.walk(np.random.default_rng(1), start, 5)
    for then, now, a, b in zip(before, start, one, other, strict=True):
        np.testing.assert_array_equal(then, now)
        np.testing.assert_array_equal(a, b)
