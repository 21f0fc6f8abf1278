"""The sampler of TRM: the layout of lists, draws from the posterior, and EM."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr

from crowdrank.data import Rankings
from crowdrank.inference.mcmc import effective_sample_size, sample
from crowdrank.models.thurstonian.trm import Sampler
from crowdrank.models.thurstonian.trm_kernels import Prior, State, build_lists, expected_utilities, run

pytestmark = pytest.mark.slow

LISTS = [
    ("p", [["a"], ["b"], ["c"]]),
    ("p", [["b"], ["a"], ["c"]]),
    ("p", [["a", "b"], ["c"]]),
    ("p", [["c"], ["a"]]),
    ("q", [["b"], ["a"], ["c"]]),
    ("q", [["b"], ["a", "c"]]),
    ("q", [["b"], ["c"]]),
]
PRIOR = Prior(difficulty_shape=3.0, difficulty_rate=2.0, variance_shape=3.0, variance_rate=6.0)


def rankings_of(lists):
    return Rankings.of_lists([places for _, places in lists], query=[query for query, _ in lists])


def sampler_of(lists=LISTS, prior=PRIOR):
    rankings = rankings_of(lists)
    return Sampler(
        build_lists(rankings.item, rankings.place, rankings.offsets, rankings.items.starts), rankings.items, prior
    )


def test_lists_are_laid_out_by_query_position_and_item():
    lists = sampler_of().lists
    assert lists.query_starts.tolist() == [0, 4, 7]
    assert np.all(np.diff(lists.position) >= 0)
    assert np.diff(lists.position_starts)[lists.list_starts[1:] - 1].tolist() == [0] * 7
    found = []
    for n in range(7):
        places = range(lists.list_starts[n], lists.list_starts[n + 1] - 1)
        rows = [range(lists.position_starts[place], lists.position_starts[place + 1]) for place in places]
        found.append(("q" if n > 3 else "p", [["abcabc"[lists.item[row]] for row in own] for own in rows]))
    assert sorted(found) == sorted(LISTS)
    for item in range(6):
        rows = lists.row_of_item[lists.row_starts[item] : lists.row_starts[item + 1]]
        assert np.flatnonzero(lists.item == item).tolist() == rows.tolist()


def test_the_order_of_lists_and_of_tied_items_does_not_matter():
    turned = [(query, [place[::-1] for place in places]) for query, places in LISTS[::-1]]
    for one, other in zip(sampler_of().lists, sampler_of(turned).lists, strict=True):
        np.testing.assert_array_equal(one, other)


def list_probabilities(scores, lists=LISTS):
    """Probability of all lists by Gauss–Hermite quadrature, given scores of a, b, c in both queries.

    One item of each list is alone at its position: given its utility t, all items before it lie above t, and all after
    it below. Scores are in units of the noise.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    total = np.ones(scores.shape[:-1])
    for query, places in lists:
        column = {label: scores[..., "abc".index(label) + 3 * (query == "q")] for label in "abc"}
        pivot = next(n for n in (1, 0, 2) if n < len(places) and len(places[n]) == 1)
        t = column[places[pivot][0]][..., None] + nodes
        inside = np.zeros(t.shape)
        for n, place in enumerate(places):
            for label in place if n != pivot else []:
                inside += log_ndtr((1 if n > pivot else -1) * (t - column[label][..., None]))
        total *= np.exp(inside) @ weights / weights.sum()
    return total


def statistics(scores, difficulty, scale):
    return np.concatenate((expit(scores), np.log(difficulty), np.log(scale)), axis=-1)


@pytest.fixture(scope="module")
def expected():
    """The posterior by importance sampling: draws from the prior, weighted by their likelihood."""
    rng, count = np.random.default_rng(7), 150_000
    scale = PRIOR.variance_rate / rng.gamma(PRIOR.variance_shape, size=(count, 1))
    difficulty = PRIOR.difficulty_rate / rng.gamma(PRIOR.difficulty_shape, size=(count, 2))
    scores = np.sqrt(scale / difficulty[:, [0, 0, 0, 1, 1, 1]]) * rng.normal(size=(count, 6))
    weight = list_probabilities(scores)
    return weight / weight.sum(), statistics(scores, difficulty, scale)


def deviation(sampler, expected, draws):
    """Largest deviation of a first or second moment, in standard errors of both samples."""
    samples = sample(
        sampler.init,
        sampler.run,
        lambda s: statistics(s.scores, s.difficulty, s.score_variance),
        chains=2,
        warmup=100,
        draws=draws,
        thin=2,
        seed=3,
    )
    weight, values = expected
    worst = 0.0
    for power in (1, 2):
        drawn, truth = samples.draws**power, values**power
        mean = weight @ truth
        error = np.sqrt(drawn.var(axis=(0, 1)) / effective_sample_size(drawn) + weight**2 @ (truth - mean) ** 2)
        worst = max(worst, np.max(np.abs(drawn.mean(axis=(0, 1)) - mean) / error))
    return worst


def test_draws_follow_the_posterior(expected):
    weight, _ = expected
    assert 1 / np.sum(weight**2) > 5_000
    assert deviation(sampler_of(), expected, 8000) < 4


@pytest.mark.parametrize(
    "fault",
    [
        {"prior": PRIOR._replace(difficulty_rate=3.0)},
        {"prior": PRIOR._replace(variance_rate=9.0)},
        {"lists": [("p", [["a"], ["c"], ["b"]]), *LISTS[1:]]},
        {"lists": [*LISTS[:2], ("p", [["a"], ["b"], ["c"]]), *LISTS[3:]]},
    ],
    ids=["difficulty", "scale", "a reversed list", "a missing tie"],
)
def test_a_faulty_sweep_is_detected(fault, expected):
    """Negative control of the previous test."""
    assert deviation(sampler_of(**fault), expected, 4000) > 6


def truth_and_lists(rng, prior):
    """A state from the prior and lists simulated from it, some short, some with ties: a draw from their posterior."""
    scale = prior.variance_rate / rng.gamma(prior.variance_shape, size=1)
    difficulty = prior.difficulty_rate / rng.gamma(prior.difficulty_shape, size=2)
    scores = np.sqrt(scale / np.repeat(difficulty, 5)) * rng.normal(size=10)
    made = []
    for n in range(8):
        perceived = scores + rng.normal(size=10)
        item = 5 * (n // 4) + rng.permutation(5)[: 5 - n % 2]
        item = item[np.argsort(-perceived[item])]
        place = np.minimum(np.arange(len(item)), 2 if n % 4 > 1 else 9)
        rows = np.lexsort((item, place))
        made.append((n // 4, item[rows].tobytes(), place.tobytes(), item[rows], place, perceived[item[rows]]))
    made.sort(key=lambda entry: entry[:3])
    item, place, perceived = (np.concatenate([entry[n] for entry in made]) for n in (3, 4, 5))
    lists = build_lists(item, place, np.cumsum([0] + [len(entry[3]) for entry in made]), np.array([0, 5, 10]))
    np.testing.assert_array_equal(lists.item, item)  # laid out in the order in which they are here
    return State(scores, perceived, difficulty, scale), lists


def state_statistics(state, lists):
    """Statistics that change if any one move is faulty."""
    noise = np.mean((state.perceived - state.scores[lists.item]) ** 2)
    size = state.difficulty @ np.add.reduceat(state.scores**2, [0, 5]) / state.score_variance[0]
    spread = np.log(np.add.reduceat(state.scores**2, [0, 5]))
    level = np.tanh(np.add.reduceat(state.scores, [0, 5]))
    top = np.log(state.perceived.max() - state.perceived.min())
    return np.concatenate(
        (statistics(state.scores, state.difficulty, state.score_variance), spread, level, [noise, size, top])
    )


def drift(prior, times=1500, sweeps=3):
    """Largest mean change of posterior draws after a few sweeps, in standard errors."""
    rng, moved = np.random.default_rng(11), []
    for _ in range(times):
        state, lists = truth_and_lists(rng, prior)
        there = State._make(part.copy() for part in state)
        run(rng, lists, PRIOR, there, sweeps)
        moved.append(state_statistics(there, lists) - state_statistics(state, lists))
    return np.max(np.abs(np.mean(moved, axis=0)) / (np.std(moved, axis=0) / np.sqrt(times)))


def test_sweeps_leave_the_posterior_invariant():
    assert drift(PRIOR) < 4


def test_sweeps_for_another_posterior_are_detected():
    """Negative control of the previous test."""
    assert drift(PRIOR._replace(difficulty_rate=2.6)) > 6


def test_expected_utilities_agree_with_eq_27():
    """The middle one of three, and the top one of a shared position, by summation over a fine grid."""
    lists = sampler_of([("p", [["a"], ["b"], ["c"]]), ("q", [["a", "b"], ["c"]])])
    scores = np.array([0.3, 0.5, -0.2, 0.3, 0.5, -0.2])
    state = State(scores, np.array([1.0, 0.0, -1.0, 1.0, 0.5, 0.0]), np.ones(2), np.ones(1))
    mean, square = expected_utilities(np.random.default_rng(5), lists.lists, state, 100, 200_000)
    t = np.linspace(-8, 8, 4001)
    density = np.exp(-((t[:, None] - scores[:3]) ** 2) / 2)
    above, below = (np.exp(log_ndtr(sign * (t[:, None] - scores[:3]))) for sign in (-1, 1))
    weights = {
        1: density[:, 1] * above[:, 0] * below[:, 2],
        5: density[:, 2] * above[:, 0] * above[:, 1],
    }
    for row, weight in weights.items():
        for power, found in ((1, mean), (2, square)):
            assert found[row] == pytest.approx(weight @ t**power / weight.sum(), abs=0.015)


def test_em_converges_to_the_maximum_likelihood_scores():
    """As found by a general optimiser, from eq. 26 with utilities integrated out."""
    lists = [("p", list("abc")), ("p", list("bac")), ("p", list("acb")), ("p", list("cab")), ("p", list("bca"))]
    lists = [(query, [[label] for label in places]) for query, places in lists]
    sampler, rng = sampler_of(lists), np.random.default_rng(2)
    state, path = sampler.init(rng), []
    for _ in range(400):
        state = sampler.em_step(rng, state)
        path.append(sampler.items.centre(state.scores))
    best = minimize(lambda u: -np.log(list_probabilities(np.append(u, [-u.sum(), 0, 0, 0]), lists)), [0.0, 0.0]).x
    np.testing.assert_allclose(np.mean(path[100:], axis=0), np.append(best, -best.sum()), atol=0.03)


@pytest.mark.parametrize(
    "lists",
    [
        [("p", [["a"], ["b"]])],
        [("p", [["a"], ["b"], ["c"]])] * 200,
        [("p", [["a"], ["b"]]), ("p", [["b"], ["a"]])] * 50,
    ],
    ids=["one list", "unanimous", "contradictory"],
)
def test_sparse_and_unanimous_lists_stay_finite(lists):
    sampler, rng = sampler_of(lists, Prior()), np.random.default_rng(0)
    state, _ = sampler.run(rng, sampler.init(rng), 2000)
    assert all(np.all(np.isfinite(part)) for part in state)
    assert state.difficulty.min() > 0


def test_perceived_utilities_keep_the_order_of_their_lists():
    sampler, rng = sampler_of(LISTS * 5), np.random.default_rng(0)
    state, lists = sampler.init(rng), sampler.lists
    for _ in range(20):
        places = [
            state.perceived[a:b] for a, b in zip(lists.position_starts[:-1], lists.position_starts[1:], strict=True)
        ]
        for above, below in pairwise(places):
            assert not (len(above) and len(below)) or above.min() > below.max()
        state, _ = sampler.run(rng, state, 3)


def test_a_run_leaves_its_start_unchanged_and_is_reproducible():
    sampler = sampler_of()
    start = sampler.init(np.random.default_rng(0))
    before = [part.copy() for part in start]
    one, _ = sampler.run(np.random.default_rng(1), start, 5)
    other, _ = sampler.run(np.random.default_rng(1), start, 5)
    for then, now, a, b in zip(before, start, one, other, strict=True):
        np.testing.assert_array_equal(then, now)
        np.testing.assert_array_equal(a, b)
