"""The sampler of Thurstonian lists: how lists are laid out, and that draws are of the posterior."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr

from crowdrank.data import Rankings
from crowdrank.inference.mcmc import effective_size, sample
from crowdrank.models.thurstonian.trm_kernels import Beliefs, State, expect, lists_of, walk
from crowdrank.models.thurstonian.trm_sampler import Sampler

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
BELIEFS = Beliefs(difficulty_shape=3.0, difficulty_rate=2.0, scale_shape=3.0, scale_rate=6.0)


def rankings_of(lists):
    return Rankings.of_lists([places for _, places in lists], query=[query for query, _ in lists])


def sampler_of(lists=LISTS, beliefs=BELIEFS):
    told = rankings_of(lists)
    return Sampler(lists_of(told.item, told.place, told.offsets, told.items.starts), told.items, beliefs)


def test_lists_are_laid_out_by_query_place_and_item():
    lists = sampler_of().lists
    assert lists.query_starts.tolist() == [0, 4, 7]
    assert np.all(np.diff(lists.place) >= 0)
    assert np.diff(lists.place_starts)[lists.list_starts[1:] - 1].tolist() == [0] * 7
    found = []
    for n in range(7):
        places = range(lists.list_starts[n], lists.list_starts[n + 1] - 1)
        rows = [range(lists.place_starts[place], lists.place_starts[place + 1]) for place in places]
        found.append(("q" if n > 3 else "p", [["abcabc"[lists.item[row]] for row in own] for own in rows]))
    assert sorted(found) == sorted(LISTS)
    for item in range(6):
        rows = lists.row_of_item[lists.row_starts[item] : lists.row_starts[item + 1]]
        assert np.flatnonzero(lists.item == item).tolist() == rows.tolist()


def test_the_order_of_lists_and_of_tied_items_is_forgotten():
    turned = [(query, [place[::-1] for place in places]) for query, places in LISTS[::-1]]
    for one, other in zip(sampler_of().lists, sampler_of(turned).lists, strict=True):
        np.testing.assert_array_equal(one, other)


def chances(scores, lists=LISTS):
    """P of all lists by Gauss and Hermite, given scores of a, b, c in both queries in units of the noise.

    Of a list one item is alone on its place: at t, all before it lie above t and all after it below.
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


def told(scores, difficulty, scale):
    return np.concatenate((expit(scores), np.log(difficulty), np.log(scale)), axis=-1)


@pytest.fixture(scope="module")
def expected():
    """The posterior by importance sampling: draws from the prior, weighed by their likelihood."""
    rng, count = np.random.default_rng(7), 150_000
    scale = BELIEFS.scale_rate / rng.gamma(BELIEFS.scale_shape, size=(count, 1))
    difficulty = BELIEFS.difficulty_rate / rng.gamma(BELIEFS.difficulty_shape, size=(count, 2))
    scores = np.sqrt(scale / difficulty[:, [0, 0, 0, 1, 1, 1]]) * rng.normal(size=(count, 6))
    weight = chances(scores)
    return weight / weight.sum(), told(scores, difficulty, scale)


def off(sampler, expected, draws):
    """How many standard errors of both the worst of means and second moments is off."""
    samples = sample(
        sampler.init,
        sampler.walk,
        lambda s: told(s.scores, s.difficulty, s.scale),
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
        error = np.sqrt(drawn.var(axis=(0, 1)) / effective_size(drawn) + weight**2 @ (truth - mean) ** 2)
        worst = max(worst, np.max(np.abs(drawn.mean(axis=(0, 1)) - mean) / error))
    return worst


def test_draws_are_of_the_posterior(expected):
    weight, _ = expected
    assert 1 / np.sum(weight**2) > 5_000
    assert off(sampler_of(), expected, 8000) < 4


@pytest.mark.parametrize(
    "fault",
    [
        {"beliefs": BELIEFS._replace(difficulty_rate=3.0)},
        {"beliefs": BELIEFS._replace(scale_rate=9.0)},
        {"lists": [("p", [["a"], ["c"], ["b"]]), *LISTS[1:]]},
        {"lists": [*LISTS[:2], ("p", [["a"], ["b"], ["c"]]), *LISTS[3:]]},
    ],
    ids=["difficulty", "scale", "a list turned", "a tie that is none"],
)
def test_a_sweep_with_a_fault_is_noticed(fault, expected):
    """The negative control of the test above."""
    assert off(sampler_of(**fault), expected, 4000) > 6


def truth_and_lists(rng, beliefs):
    """A state from the prior, and lists made with it, some short, some with ties: a draw of their posterior."""
    scale = beliefs.scale_rate / rng.gamma(beliefs.scale_shape, size=1)
    difficulty = beliefs.difficulty_rate / rng.gamma(beliefs.difficulty_shape, size=2)
    scores = np.sqrt(scale / np.repeat(difficulty, 5)) * rng.normal(size=10)
    made = []
    for n in range(8):
        seen = scores + rng.normal(size=10)
        item = 5 * (n // 4) + rng.permutation(5)[: 5 - n % 2]
        item = item[np.argsort(-seen[item])]
        place = np.minimum(np.arange(len(item)), 2 if n % 4 > 1 else 9)
        rows = np.lexsort((item, place))
        made.append((n // 4, item[rows].tobytes(), place.tobytes(), item[rows], place, seen[item[rows]]))
    made.sort(key=lambda entry: entry[:3])
    item, place, seen = (np.concatenate([entry[n] for entry in made]) for n in (3, 4, 5))
    lists = lists_of(item, place, np.cumsum([0] + [len(entry[3]) for entry in made]), np.array([0, 5, 10]))
    np.testing.assert_array_equal(lists.item, item)  # laid out in the order in which they are here
    return State(scores, seen, difficulty, scale), lists


def traits(state, lists):
    """What a fault in any one move would change."""
    noise = np.mean((state.seen - state.scores[lists.item]) ** 2)
    size = state.difficulty @ np.add.reduceat(state.scores**2, [0, 5]) / state.scale[0]
    spread = np.log(np.add.reduceat(state.scores**2, [0, 5]))
    level = np.tanh(np.add.reduceat(state.scores, [0, 5]))
    top = np.log(state.seen.max() - state.seen.min())
    return np.concatenate((told(state.scores, state.difficulty, state.scale), spread, level, [noise, size, top]))


def drift(beliefs, times=1500, sweeps=3):
    """How many standard errors draws of the posterior have moved, on average, after a few sweeps."""
    rng, moved = np.random.default_rng(11), []
    for _ in range(times):
        state, lists = truth_and_lists(rng, beliefs)
        there = State._make(part.copy() for part in state)
        walk(rng, lists, BELIEFS, there, sweeps)
        moved.append(traits(there, lists) - traits(state, lists))
    return np.max(np.abs(np.mean(moved, axis=0)) / (np.std(moved, axis=0) / np.sqrt(times)))


def test_sweeps_leave_the_posterior_as_it_is():
    assert drift(BELIEFS) < 4


def test_sweeps_of_another_posterior_are_noticed():
    """The negative control of the test above."""
    assert drift(BELIEFS._replace(difficulty_rate=2.6)) > 6


def test_expected_sights_are_those_of_eq_27():
    """Of three in order, the middle sight by a sum over a fine grid; and the top one of a place that two share."""
    lists = sampler_of([("p", [["a"], ["b"], ["c"]]), ("q", [["a", "b"], ["c"]])])
    scores = np.array([0.3, 0.5, -0.2, 0.3, 0.5, -0.2])
    state = State(scores, np.array([1.0, 0.0, -1.0, 1.0, 0.5, 0.0]), np.ones(2), np.ones(1))
    mean, square = expect(np.random.default_rng(5), lists.lists, state, 100, 200_000)
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


def test_rounds_of_em_climb_to_the_likeliest_scores():
    """As a general solver finds them, of eq. 26 with sights integrated out."""
    lists = [("p", list("abc")), ("p", list("bac")), ("p", list("acb")), ("p", list("cab")), ("p", list("bca"))]
    lists = [(query, [[label] for label in places]) for query, places in lists]
    sampler, rng = sampler_of(lists), np.random.default_rng(2)
    state, path = sampler.init(rng), []
    for _ in range(400):
        state = sampler.climb(rng, state)
        path.append(sampler.items.centre(state.scores))
    best = minimize(lambda u: -np.log(chances(np.append(u, [-u.sum(), 0, 0, 0]), lists)), [0.0, 0.0]).x
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
    sampler, rng = sampler_of(lists, Beliefs()), np.random.default_rng(0)
    state, _ = sampler.walk(rng, sampler.init(rng), 2000)
    assert all(np.all(np.isfinite(part)) for part in state)
    assert state.difficulty.min() > 0


def test_sights_stand_in_the_order_of_their_lists():
    sampler, rng = sampler_of(LISTS * 5), np.random.default_rng(0)
    state, lists = sampler.init(rng), sampler.lists
    for _ in range(20):
        places = [state.seen[a:b] for a, b in zip(lists.place_starts[:-1], lists.place_starts[1:], strict=True)]
        for above, below in pairwise(places):
            assert not (len(above) and len(below)) or above.min() > below.max()
        state, _ = sampler.walk(rng, state, 3)


def test_a_walk_leaves_its_start_alone_and_repeats():
    sampler = sampler_of()
    start = sampler.init(np.random.default_rng(0))
    before = [part.copy() for part in start]
    one, _ = sampler.walk(np.random.default_rng(1), start, 5)
    other, _ = sampler.walk(np.random.default_rng(1), start, 5)
    for then, now, a, b in zip(before, start, one, other, strict=True):
        np.testing.assert_array_equal(then, now)
        np.testing.assert_array_equal(a, b)
