"""The TPP sampler: its data, starting values and the orientation of domains."""

import numpy as np
import pytest

from crowdrank import Comparisons
from crowdrank.errors import DataError
from crowdrank.models.thurstonian.gibbs import State
from crowdrank.models.thurstonian.initialization import majority_scores
from crowdrank.models.thurstonian.sampler import Sampler, layout_from_comparisons
from crowdrank.simulation import domain_crowd

CROWD = domain_crowd(queries=12, items=5, annotators=8, domains=2, sparsity=0.8, even_domains=True, seed=1)


@pytest.fixture(scope="module")
def sampler():
    return Sampler.of(CROWD.judgments, 2, seed=0)


@pytest.fixture(scope="module")
def state(sampler):
    rng = np.random.default_rng(0)
    return sampler.run(rng, sampler.tune(rng, sampler.init(rng)), 20)[0]


def test_judgments_are_repeated_by_weight_with_the_winner_first():
    votes = Comparisons.of(
        [*"abab"], [*"bcba"], ["b", "b", "tie", "a"], annotator=[*"xyxy"], weight=[1.0, 3.0, 0.5, 2.0]
    )
    layout = layout_from_comparisons(votes)
    rows = sorted(zip(layout.winner_item, layout.loser_item, layout.annotator, strict=True))
    assert rows == [(0, 1, 1), (0, 1, 1), (1, 0, 0), (1, 2, 1), (1, 2, 1), (1, 2, 1)]


def test_a_fractional_weight_is_refused_with_its_row():
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "c"], weight=[1.0, 0.5])
    with pytest.raises(DataError, match=r"Row 2: TPP needs whole numbers as weights, got 0\.5"):
        layout_from_comparisons(votes)


def test_a_run_leaves_its_start_unchanged_and_reports_its_acceptance_rate(sampler, state):
    before = State._make(part.copy() for part in state)
    there, info = sampler.run(np.random.default_rng(1), state, 3)
    for then, now in zip(before, state, strict=True):
        np.testing.assert_array_equal(then, now)
    assert not np.array_equal(there.scores, state.scores)
    assert 0 < info.acceptance_rate <= 1


def test_a_run_does_not_change_its_tuning(sampler, state):
    there, _ = sampler.run(np.random.default_rng(1), state, 3)
    np.testing.assert_array_equal(there.preconditioners, state.preconditioners)
    np.testing.assert_array_equal(there.step_size, state.step_size)


def test_tuning_changes_the_preconditioners_and_leaves_its_start_unchanged(sampler, state):
    before = State._make(part.copy() for part in state)
    there = sampler.tune(np.random.default_rng(1), state)
    assert not np.array_equal(there.preconditioners, state.preconditioners)
    for then, now in zip(before, state, strict=True):
        np.testing.assert_array_equal(then, now)


def test_chains_start_at_different_states(sampler):
    one, other = (sampler.init(np.random.default_rng(seed)) for seed in (0, 1))
    assert not np.array_equal(one.scores, other.scores)


@pytest.mark.parametrize("flipped", [0, 1])
def test_a_flipped_domain_is_flipped_back(sampler, state, flipped):
    up = sampler.resolve_orientation(state)
    inside = (state.domain == flipped)[CROWD.judgments.items.query]
    negated = state._replace(
        scores=np.where(inside, -state.scores, state.scores),
        perceived=np.where(inside[sampler.layout.utility_item], -state.perceived, state.perceived),
        expertise=state.expertise * np.where(np.arange(state.expertise.shape[1]) == flipped, -1, 1),
    )
    for one, other in zip(up, sampler.resolve_orientation(negated), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.sum(majority_scores(sampler.layout, sampler.items) * up.scores) > 0


def test_flipping_a_domain_leaves_every_margin_unchanged(sampler, state):
    def margins(s):
        domain = s.domain[CROWD.judgments.items.query[sampler.layout.winner_item]]
        apart = s.perceived[sampler.layout.winner_utility] - s.perceived[sampler.layout.loser_utility]
        return s.expertise[sampler.layout.annotator, domain] * apart

    upside_down = state._replace(scores=-state.scores, perceived=-state.perceived, expertise=-state.expertise)
    for s in (state, upside_down):
        np.testing.assert_allclose(margins(sampler.resolve_orientation(s)), margins(state))
