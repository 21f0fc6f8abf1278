"""Chains: what is kept of them, and when they have met."""

from typing import NamedTuple

import numpy as np
import pytest

from crowdrank.inference.mcmc import Samples, sample, sample_until


class Info(NamedTuple):
    accepted: float


def counted(rng):
    return 0.0


def count(rng, n):
    return n + 1, Info(1.0)


def read(state):
    return np.array([state])


def started_apart(rng):
    return rng.normal(scale=5.0)


def stay(rng, x):
    return x + 0.01 * rng.normal(), Info(0.5)


def forget(rng, x):
    return rng.normal(), Info(0.25)


def run(init=started_apart, step=forget, chains=4, warmup=10, draws=50, thin=2, seed=0):
    def walk(rng, state, steps):
        for _ in range(steps):
            state, info = step(rng, state)
        return state, info

    return sample(init, walk, read, chains=chains, warmup=warmup, draws=draws, thin=thin, seed=seed)


def test_warmup_is_forgotten_and_every_so_manyth_state_kept():
    samples = run(counted, count, chains=2, warmup=7, draws=4, thin=3)
    assert samples.draws.shape == (2, 4, 1)
    assert samples.draws[0, :, 0].tolist() == [10, 13, 16, 19]


def test_without_warmup_the_first_steps_count():
    assert run(counted, count, warmup=0, draws=4, thin=1).draws[0, :, 0].tolist() == [1, 2, 3, 4]


def test_a_seed_gives_the_same_draws_and_another_seed_others():
    np.testing.assert_array_equal(run(seed=3).draws, run(seed=3).draws)
    assert not np.array_equal(run(seed=3).draws, run(seed=4).draws)


def test_chains_share_no_randomness():
    draws = run().draws[..., 0]
    assert len({tuple(chain) for chain in draws}) == 4
    assert np.abs(np.corrcoef(draws) - np.eye(4)).max() < 0.5


def test_more_chains_leave_the_first_ones_as_they_are():
    np.testing.assert_array_equal(run(chains=4).draws[:2], run(chains=2).draws)


def test_what_was_accepted_is_averaged_after_the_warmup():
    def step(rng, n):
        return n + 1, Info(1.0 if n >= 10 else 0.0)

    assert run(counted, step, warmup=10, draws=5, thin=2).accepted == 1.0
    assert run().accepted == 0.25


def test_chains_that_met_and_chains_that_are_stuck():
    met, stuck = run(draws=200), run(step=stay, draws=200)
    assert met.r_hat < 1.02
    assert stuck.r_hat > 1.1
    assert met.effective_size > 400 > 20 > stuck.effective_size


def test_all_chains_together_are_rows():
    samples = run(chains=3, draws=20)
    assert samples.together.shape == (60, 1)
    np.testing.assert_array_equal(samples.together[20:40], samples.draws[1])


def test_the_worst_dimension_speaks_and_one_that_never_moves_is_not_heard():
    draws = np.random.default_rng(1).normal(size=(4, 100, 3))
    draws[..., 1] = 2.0
    assert Samples(draws, 1.0).r_hat < 1.05
    draws[:2, :, 2] += 5.0
    assert Samples(draws, 1.0).r_hat > 1.5
    still = Samples(np.ones((4, 100, 2)), 1.0)
    assert (still.r_hat, still.effective_size) == (1.0, 400)


def test_an_error_in_a_chain_comes_out():
    def fail(rng, x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(step=fail)


def as_it_is(rng, state):
    return state


def run_until(settled, init=counted, step=count, tune=as_it_is, chains=2, first=4, most=100, draws=1000, seed=0):
    def walk(rng, state, steps):
        for _ in range(steps):
            state, info = step(rng, state)
        return state, info

    return sample_until(
        init, tune, walk, read, settled=settled, chains=chains, first=first, most=most, draws=draws, seed=seed
    )


def test_chains_that_have_settled_stop_at_once():
    samples, taken = run_until(lambda _: True)
    assert taken == 4
    np.testing.assert_array_equal(samples.draws[..., 0], [[1, 2, 3, 4]] * 2)


def test_chains_that_have_not_settled_go_on_twice_as_far_and_forget():
    samples, taken = run_until(lambda found: found.draws.shape[1] >= 16)
    assert taken == 4 + 8 + 16
    np.testing.assert_array_equal(samples.draws[0, :, 0], np.arange(13, 29))


@pytest.mark.parametrize(("most", "taken", "kept"), [(100, 60, 32), (28, 28, 16), (27, 12, 8), (3, 3, 3)])
def test_no_chain_takes_more_steps_than_it_may(most, taken, kept):
    samples, steps = run_until(lambda _: False, most=most)
    assert (steps, samples.draws.shape[1]) == (taken, kept)


def test_at_most_so_many_draws_are_kept_evenly_spaced():
    samples, taken = run_until(lambda _: True, first=20, draws=6)
    assert taken == 20
    np.testing.assert_array_equal(samples.draws[0, :, 0], [4, 8, 12, 16, 20])


def test_chains_are_asked_whether_they_have_settled_by_what_they_drew():
    met, taken = run_until(lambda found: found.r_hat < 1.05, started_apart, forget, chains=4, first=50, most=10_000)
    stuck, longer = run_until(lambda found: found.r_hat < 1.05, started_apart, stay, chains=4, first=50, most=1000)
    assert met.r_hat < 1.05 < stuck.r_hat
    assert taken < longer == 50 + 100 + 200 + 400


def test_the_same_seed_settles_on_the_same_draws():
    def settle(seed):
        return run_until(lambda found: found.r_hat < 1.02, started_apart, forget, first=10, seed=seed)

    one, other, another = settle(3), settle(3), settle(4)
    assert one[1] == other[1]
    np.testing.assert_array_equal(one[0].draws, other[0].draws)
    assert not np.array_equal(one[0].draws[:, :5], another[0].draws[:, :5])


def test_what_was_accepted_is_that_of_the_last_round():
    def step(rng, n):
        return n + 1, Info(1.0 if n >= 4 else 0.0)

    assert run_until(lambda found: found.draws.shape[1] > 4, step=step)[0].accepted == 1.0


def test_chains_are_tuned_before_each_walk_and_only_then():
    samples, taken = run_until(lambda found: found.draws.shape[1] >= 8, tune=lambda rng, n: n + 1000)
    assert taken == 4 + 8
    np.testing.assert_array_equal(samples.draws[0, :, 0], 2004 + np.arange(1, 9))
