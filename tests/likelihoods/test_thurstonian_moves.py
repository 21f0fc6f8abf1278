"""Each move of the sampler by itself, as plain Python: it leaves the posterior as it is, and a fault would show."""

import numpy as np
import pytest

from crowdrank.models.thurstonian import expertise_moves, gibbs, hmc, query_posterior
from crowdrank.models.thurstonian.expertise_moves import Powers
from crowdrank.models.thurstonian.gibbs import State
from crowdrank.models.thurstonian.hmc import Room
from crowdrank.models.thurstonian.layout import sights_of
from tests.likelihoods.test_thurstonian import BELIEFS, PAIRS, traits, truth_and_sampler

pytestmark = pytest.mark.slow

EACH_ONCE = PAIRS[: len(PAIRS) // 2]


class Place:
    """A state drawn with its judgments, and where a move works."""

    def __init__(self, rng):
        self.state, sampler = truth_and_sampler(rng, BELIEFS, EACH_ONCE)
        self.rng, self.sights, self.starts = rng, sampler.sights, gibbs._frame_starts(sampler.sights)
        self.room = Room(*(np.zeros(len(EACH_ONCE)) for _ in Room._fields))
        self.bench = np.zeros((7, *self.state.expertise.shape))
        self.state.odds[:] = [0.3, 0.7]

    def elsewhere(self):
        """The same, with a state of its own to move."""
        other = object.__new__(Place)
        vars(other).update(vars(self) | {"state": State._make(part.copy() for part in self.state)})
        return other

    def slope(self, query):
        return np.sqrt(0.5) * self.state.expertise[:, self.state.domain[query]]

    def frame(self, query):
        return self.state.frames[self.starts[query] : self.starts[query + 1]]


def each_query(move):
    def all_of_them(p, beliefs):
        for query in range(2):
            move(p, beliefs, query)

    return all_of_them


MOVES = {
    "glide": each_query(lambda p, b, q: hmc.glide(p.rng, p.sights, p.state, q, p.slope(q), p.frame(q), p.room)),
    "look again": each_query(lambda p, b, q: hmc.look_again(p.rng, p.sights, p.state, q, p.slope(q), p.room)),
    "jump": each_query(lambda p, b, q: hmc.jump(p.rng, p.sights, p.state, q, p.slope(q))),
    "domain": each_query(lambda p, b, q: gibbs._draw_domain(p.rng, p.sights, p.state, q, np.zeros(4))),
    "jump to a domain": each_query(lambda p, b, q: gibbs._jump_domain(p.rng, p.sights, p.state, q)),
    "difficulty": each_query(
        lambda p, b, q: gibbs._draw_difficulty(p.rng, p.sights, b, p.state, q, p.slope(q), p.room)
    ),
    "stretch of a query": each_query(
        lambda p, b, q: gibbs._stretch_query(p.rng, p.sights, b, p.state, q, p.slope(q), p.room)
    ),
    "shift": each_query(lambda p, b, q: gibbs._shift(p.rng, p.sights, p.state, q)),
    "unit": lambda p, b: [gibbs._change_unit(p.rng, p.sights, b, p.state, m) for m in range(2)],
    "stretch of all": lambda p, b: [gibbs._stretch_all(p.rng, p.sights, b, p.state, p.room) for _ in range(3)],
    "expertise": lambda p, b: expertise_moves.draw_expertise(p.rng, p.sights, b, p.state, p.bench),
    "expertise against blur": lambda p, b: expertise_moves.trade_expertise(p.rng, p.sights, b, p.state, p.bench),
}


@pytest.fixture(autouse=True)
def a_rough_approximation(monkeypatch):
    """However rough it is, a jump leaves the posterior as it is; and plain Python is slow."""
    monkeypatch.setattr(query_posterior, "_ROUNDS", 1)


@pytest.fixture(scope="module")
def places():
    rng = np.random.default_rng(5)
    return [Place(rng) for _ in range(400)]


def drift(places, move, beliefs=BELIEFS):
    """How many standard errors draws of the posterior have moved, on average, and the share of them that moved."""
    beliefs, moved = beliefs.of(3, 2), []
    for place in places:
        there = place.elsewhere()
        MOVES[move](there, beliefs)
        moved.append(traits(there.state, place.sights) - traits(place.state, place.sights))
    changed = np.std(moved, axis=0) > 1e-9
    error = np.std(moved, axis=0)[changed] / np.sqrt(len(places))
    return np.max(np.abs(np.mean(moved, axis=0)[changed]) / error), np.mean(np.any(np.array(moved) != 0, axis=1))


@pytest.mark.parametrize("move", MOVES)
def test_a_move_leaves_the_posterior_as_it_is_and_does_move(move, places):
    off, moving = drift(places, move)
    assert off < 4
    assert moving > 0.05


@pytest.mark.parametrize(
    ("move", "fault"),
    [
        ("difficulty", {"difficulty_rate": 4.0}),
        ("stretch of a query", {"difficulty_shape": 6.0}),
        ("unit", {"expertise_spread": 0.7}),
        ("stretch of all", {"scale_rate": 14.0}),
        ("expertise", {"expertise_spread": 0.9}),
        ("expertise against blur", {"expertise_spread": 0.6}),
    ],
)
def test_a_move_with_other_beliefs_is_noticed(move, fault, places):
    assert drift(places, move, BELIEFS._replace(**fault))[0] > 5


def without_volume(*powers):
    """A prior that forgets how volumes change with the factor."""
    return Powers(*powers)._replace(log=0.0)


@pytest.mark.parametrize("move", ["difficulty", "stretch of a query", "stretch of all"])
def test_a_stretch_that_forgets_a_jacobian_is_noticed(move, places, monkeypatch):
    monkeypatch.setattr(gibbs, "Powers", without_volume)
    assert drift(places, move)[0] > 5


@pytest.mark.parametrize("move", ["glide", "look again", "jump"])
def test_a_path_that_does_not_ask_the_judgments_is_noticed(move, places, monkeypatch):
    monkeypatch.setattr(hmc, "log_cdf_by_table", lambda x: 0.0)
    assert drift(places, move)[0] > 5


def test_a_domain_that_does_not_ask_the_judgments_is_noticed(places, monkeypatch):
    monkeypatch.setattr(gibbs, "log_cdf_by_table", lambda x: 0.0)
    assert drift(places, "domain")[0] > 5


def test_a_jump_that_does_not_ask_the_judgments_is_noticed(places, monkeypatch):
    monkeypatch.setattr(query_posterior, "log_cdf_by_table", lambda x: 0.0)
    assert drift(places, "jump to a domain")[0] > 5


def test_a_jump_that_counts_its_density_the_wrong_way_round_is_noticed(places, monkeypatch):
    monkeypatch.setattr(gibbs, "place", lambda *parts: -query_posterior.place(*parts))
    assert drift(places, "jump to a domain")[0] > 4


def test_how_often_a_domain_is_proposed_does_not_matter():
    """A query without judgments is of a domain as often as its share says."""
    sights = sights_of(*np.array([(0, 1, 0)], np.int32).T, np.array([0, 2, 4]))
    state = gibbs.ready(
        sights,
        np.zeros(4),
        np.zeros(2),
        np.ones(2),
        np.zeros(2, np.int64),
        np.ones((1, 2)),
        np.array([0.4, 0.6]),
        np.ones(1),
    )
    state.odds[:] = [0.75, 0.25]
    rng, drawn = np.random.default_rng(8), []
    for _ in range(4000):
        gibbs._jump_domain(rng, sights, state, 1)
        drawn.append(state.domain[1])
    # Of 4,000 draws that hang together for about four, the standard error is .015.
    assert np.mean(drawn) == pytest.approx(0.6, abs=0.06)
    assert np.mean(np.diff(drawn) != 0) > 0.1
