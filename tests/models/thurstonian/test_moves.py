"""Each move of the sampler on its own, as plain Python: it leaves the posterior invariant, and faults are detected."""

import numpy as np
import pytest

from crowdrank.models.thurstonian import expectation_propagation, gibbs, parameter_moves, score_moves
from crowdrank.models.thurstonian.gibbs import State
from crowdrank.models.thurstonian.layout import build_layout
from crowdrank.models.thurstonian.parameter_moves import FactorPrior
from crowdrank.models.thurstonian.score_moves import Workspace
from tests.models.thurstonian.test_gibbs import PAIRS, PRIOR, state_statistics, truth_and_sampler

pytestmark = pytest.mark.slow

EACH_ONCE = PAIRS[: len(PAIRS) // 2]


MOVE_SEED = 0


class Setup:
    """A state drawn with its judgments, and the scratch arrays of the moves."""

    def __init__(self, rng):
        self.state, sampler = truth_and_sampler(rng, PRIOR, EACH_ONCE)
        self.rng, self.layout, self.starts = rng, sampler.layout, gibbs._preconditioner_starts(sampler.layout)
        self.workspace = Workspace(*(np.zeros(len(EACH_ONCE)) for _ in Workspace._fields))
        self.buffers = np.zeros((7, *self.state.expertise.shape))
        self.state.domain_proposals[:] = [0.3, 0.7]

    def copy(self, rng):
        """The same with a copy of the state, moved by another generator."""
        other = object.__new__(Setup)
        vars(other).update(vars(self) | {"rng": rng, "state": State._make(part.copy() for part in self.state)})
        return other

    def slopes(self, query):
        return np.sqrt(0.5) * self.state.expertise[:, self.state.domain[query]]

    def preconditioner(self, query):
        return self.state.preconditioners[self.starts[query] : self.starts[query + 1]]


def each_query(move):
    def for_all_queries(p, prior):
        for query in range(2):
            move(p, prior, query)

    return for_all_queries


MOVES = {
    "hmc": each_query(
        lambda p, prior, q: score_moves.hmc_step(
            p.rng, p.layout, p.state, q, p.slopes(q), p.preconditioner(q), p.workspace
        )
    ),
    "elliptical slice": each_query(
        lambda p, prior, q: score_moves.elliptical_slice_step(p.rng, p.layout, p.state, q, p.slopes(q), p.workspace)
    ),
    "random walk": each_query(
        lambda p, prior, q: score_moves.random_walk_step(p.rng, p.layout, p.state, q, p.slopes(q))
    ),
    "domain": each_query(lambda p, prior, q: gibbs._draw_domain(p.rng, p.layout, p.state, q, np.zeros(4))),
    "domain proposal": each_query(lambda p, prior, q: gibbs._propose_domain(p.rng, p.layout, p.state, q)),
    "difficulty": each_query(
        lambda p, prior, q: parameter_moves.draw_difficulty(
            p.rng, p.layout, prior, p.state, q, p.slopes(q), p.workspace
        )
    ),
    "scale of a query": each_query(
        lambda p, prior, q: parameter_moves.scale_query(p.rng, p.layout, prior, p.state, q, p.slopes(q), p.workspace)
    ),
    "shift": each_query(lambda p, prior, q: parameter_moves.shift_query(p.rng, p.layout, p.state, q)),
    "unit": lambda p, prior: [parameter_moves.change_unit(p.rng, p.layout, prior, p.state, m) for m in range(2)],
    "scale of all": lambda p, prior: [
        parameter_moves.scale_all(p.rng, p.layout, prior, p.state, p.workspace) for _ in range(3)
    ],
    "expertise": lambda p, prior: parameter_moves.draw_expertise(p.rng, p.layout, prior, p.state, p.buffers),
    "expertise against noise": lambda p, prior: parameter_moves.scale_expertise_and_noise(
        p.rng, p.layout, prior, p.state, p.buffers
    ),
}


@pytest.fixture(autouse=True)
def a_rough_approximation(monkeypatch):
    """A rough approximation still leaves the posterior invariant, and plain Python is slow."""
    monkeypatch.setattr(expectation_propagation, "_ROUNDS", 1)


@pytest.fixture(scope="module")
def setups():
    rng = np.random.default_rng(5)
    return [Setup(rng) for _ in range(400)]


def drift(setups, move, prior=PRIOR):
    """Largest mean change of posterior draws, in standard errors, and the share of draws that changed."""
    prior, moved = prior.broadcast(3, 2), []
    rng = np.random.default_rng(MOVE_SEED)  # so that the draws do not depend on the tests that ran before
    for setup in setups:
        moved_setup = setup.copy(rng)
        MOVES[move](moved_setup, prior)
        moved.append(state_statistics(moved_setup.state, setup.layout) - state_statistics(setup.state, setup.layout))
    changed = np.std(moved, axis=0) > 1e-9
    error = np.std(moved, axis=0)[changed] / np.sqrt(len(setups))
    return np.max(np.abs(np.mean(moved, axis=0)[changed]) / error), np.mean(np.any(np.array(moved) != 0, axis=1))


@pytest.mark.parametrize("move", MOVES)
def test_a_move_leaves_the_posterior_invariant_and_changes_the_state(move, setups):
    off, moving = drift(setups, move)
    assert off < 4
    assert moving > 0.05


@pytest.mark.parametrize(
    ("move", "fault"),
    [
        ("difficulty", {"difficulty_rate": 4.0}),
        ("scale of a query", {"difficulty_shape": 6.0}),
        ("unit", {"expertise_std": 0.7}),
        ("scale of all", {"variance_rate": 14.0}),
        ("expertise", {"expertise_std": 0.9}),
        ("expertise against noise", {"expertise_std": 0.6}),
    ],
)
def test_a_move_with_another_prior_is_detected(move, fault, setups):
    assert drift(setups, move, PRIOR._replace(**fault))[0] > 5


def without_jacobian(*terms):
    """A factor prior without the Jacobian."""
    return FactorPrior(*terms)._replace(log=0.0)


@pytest.mark.parametrize("move", ["difficulty", "scale of a query", "scale of all"])
def test_a_scale_move_without_its_jacobian_is_detected(move, setups, monkeypatch):
    monkeypatch.setattr(parameter_moves, "FactorPrior", without_jacobian)
    assert drift(setups, move)[0] > 5


@pytest.mark.parametrize("move", ["hmc", "elliptical slice", "random walk"])
def test_a_score_move_that_ignores_the_likelihood_is_detected(move, setups, monkeypatch):
    monkeypatch.setattr(score_moves, "log_normal_cdf_table", lambda x: 0.0)
    assert drift(setups, move)[0] > 5


def test_a_domain_draw_that_ignores_the_likelihood_is_detected(setups, monkeypatch):
    monkeypatch.setattr(gibbs, "log_normal_cdf_table", lambda x: 0.0)
    assert drift(setups, "domain")[0] > 5


def test_a_domain_proposal_that_ignores_the_likelihood_is_detected(setups, monkeypatch):
    monkeypatch.setattr(expectation_propagation, "log_normal_cdf_table", lambda x: 0.0)
    assert drift(setups, "domain proposal")[0] > 5


def test_a_domain_proposal_with_an_inverted_proposal_density_is_detected(setups, monkeypatch):
    monkeypatch.setattr(gibbs, "transform", lambda *parts: -expectation_propagation.transform(*parts))
    assert drift(setups, "domain proposal")[0] > 4


def test_the_proposal_probabilities_of_domains_do_not_affect_the_result():
    """A query without judgments is in each domain with its prior probability."""
    layout = build_layout(*np.array([(0, 1, 0)], np.int32).T, np.array([0, 2, 4]))
    state = gibbs.make_state(
        layout,
        np.zeros(4),
        np.zeros(2),
        np.ones(2),
        np.zeros(2, np.int64),
        np.ones((1, 2)),
        np.array([0.4, 0.6]),
        np.ones(1),
    )
    state.domain_proposals[:] = [0.75, 0.25]
    rng, drawn = np.random.default_rng(8), []
    for _ in range(4000):
        gibbs._propose_domain(rng, layout, state, 1)
        drawn.append(state.domain[1])
    # With 4,000 draws and an autocorrelation time of about four, the standard error is .015.
    assert np.mean(drawn) == pytest.approx(0.6, abs=0.06)
    assert np.mean(np.diff(drawn) != 0) > 0.1
