"""The sampler of Thurstonian preferences: what it is given, where it starts, and which way is up."""

import numpy as np
import pytest

from crowdrank import Comparisons
from crowdrank.errors import DataError
from crowdrank.models.thurstonian.gibbs import State
from crowdrank.models.thurstonian.sampler import Sampler, laid_out
from crowdrank.models.thurstonian.start import head_count
from crowdrank.simulation import domain_crowd

CROWD = domain_crowd(queries=12, items=5, annotators=8, domains=2, sparsity=0.8, even_domains=True, seed=1)


@pytest.fixture(scope="module")
def sampler():
    return Sampler.of(CROWD.judgments, 2, seed=0)


@pytest.fixture(scope="module")
def state(sampler):
    rng = np.random.default_rng(0)
    return sampler.walk(rng, sampler.tune(rng, sampler.init(rng)), 20)[0]


def test_judgments_are_laid_out_winner_first_as_often_as_they_weigh():
    votes = Comparisons.of(
        [*"abab"], [*"bcba"], ["b", "b", "tie", "a"], annotator=[*"xyxy"], weight=[1.0, 3.0, 0.5, 2.0]
    )
    sights = laid_out(votes)
    rows = sorted(zip(sights.above, sights.below, sights.annotator, strict=True))
    assert rows == [(0, 1, 1), (0, 1, 1), (1, 0, 0), (1, 2, 1), (1, 2, 1), (1, 2, 1)]


def test_half_a_judgment_is_refused_by_its_row():
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "c"], weight=[1.0, 0.5])
    with pytest.raises(DataError, match=r"Row 2: TPP counts whole judgments, got a weight of 0\.5"):
        laid_out(votes)


def test_a_walk_leaves_its_start_alone_and_says_what_was_accepted(sampler, state):
    before = State._make(part.copy() for part in state)
    there, info = sampler.walk(np.random.default_rng(1), state, 3)
    for then, now in zip(before, state, strict=True):
        np.testing.assert_array_equal(then, now)
    assert not np.array_equal(there.scores, state.scores)
    assert 0 < info.accepted <= 1


def test_coordinates_and_strides_stay_as_they_were_set(sampler, state):
    there, _ = sampler.walk(np.random.default_rng(1), state, 3)
    np.testing.assert_array_equal(there.frames, state.frames)
    np.testing.assert_array_equal(there.stride, state.stride)


def test_tuning_changes_coordinates_and_leaves_its_start_alone(sampler, state):
    before = State._make(part.copy() for part in state)
    there = sampler.tune(np.random.default_rng(1), state)
    assert not np.array_equal(there.frames, state.frames)
    for then, now in zip(before, state, strict=True):
        np.testing.assert_array_equal(then, now)


def test_starts_differ_from_chain_to_chain(sampler):
    one, other = (sampler.init(np.random.default_rng(seed)) for seed in (0, 1))
    assert not np.array_equal(one.scores, other.scores)


@pytest.mark.parametrize("turned", [0, 1])
def test_a_domain_upside_down_is_turned(sampler, state, turned):
    up = sampler.upright(state)
    inside = (state.domain == turned)[CROWD.judgments.items.query]
    mirrored = state._replace(
        scores=np.where(inside, -state.scores, state.scores),
        seen=np.where(inside[sampler.sights.item], -state.seen, state.seen),
        expertise=state.expertise * np.where(np.arange(state.expertise.shape[1]) == turned, -1, 1),
    )
    for one, other in zip(up, sampler.upright(mirrored), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.sum(head_count(sampler.sights, sampler.items) * up.scores) > 0


def test_turning_a_domain_leaves_every_margin_as_it_is(sampler, state):
    def margins(s):
        domain = s.domain[CROWD.judgments.items.query[sampler.sights.above]]
        apart = s.seen[sampler.sights.winner] - s.seen[sampler.sights.loser]
        return s.expertise[sampler.sights.annotator, domain] * apart

    upside_down = state._replace(scores=-state.scores, seen=-state.seen, expertise=-state.expertise)
    for s in (state, upside_down):
        np.testing.assert_allclose(margins(sampler.upright(s)), margins(state))
