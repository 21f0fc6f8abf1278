"""Running chains: which draws are kept, and when chains stop."""

from typing import NamedTuple

import numpy as np
import pytest

from crowdrank.inference.mcmc import Samples, sample, sample_until


class Info(NamedTuple):
    acceptance_rate: float


def counted(rng):
    return 0.0


def count(rng, n):
    return n + 1, Info(1.0)


def extract(state):
    return np.array([state])


def started_apart(rng):
    return rng.normal(scale=5.0)


def stay(rng, x):
    return x + 0.01 * rng.normal(), Info(0.5)


def forget(rng, x):
    return rng.normal(), Info(0.25)


def run(init=started_apart, step=forget, chains=4, warmup=10, draws=50, thin=2, seed=0):
    def run_sweeps(rng, state, steps):
        for _ in range(steps):
            state, info = step(rng, state)
        return state, info

    return sample(init, run_sweeps, extract, chains=chains, warmup=warmup, draws=draws, thin=thin, seed=seed)


def test_warmup_is_discarded_and_draws_are_thinned():
    samples = run(counted, count, chains=2, warmup=7, draws=4, thin=3)
    assert samples.draws.shape == (2, 4, 1)
    assert samples.draws[0, :, 0].tolist() == [10, 13, 16, 19]


def test_without_warmup_the_first_steps_count():
    assert run(counted, count, warmup=0, draws=4, thin=1).draws[0, :, 0].tolist() == [1, 2, 3, 4]


def test_draws_are_reproducible_with_their_seed():
    np.testing.assert_array_equal(run(seed=3).draws, run(seed=3).draws)
    assert not np.array_equal(run(seed=3).draws, run(seed=4).draws)


def test_chains_are_independent():
    draws = run().draws[..., 0]
    assert len({tuple(chain) for chain in draws}) == 4
    assert np.abs(np.corrcoef(draws) - np.eye(4)).max() < 0.5


def test_more_chains_leave_the_first_ones_unchanged():
    np.testing.assert_array_equal(run(chains=4).draws[:2], run(chains=2).draws)


def test_the_acceptance_rate_is_averaged_after_the_warmup():
    def step(rng, n):
        return n + 1, Info(1.0 if n >= 10 else 0.0)

    assert run(counted, step, warmup=10, draws=5, thin=2).acceptance_rate == 1.0
    assert run().acceptance_rate == 0.25


def test_diagnostics_tell_converged_from_stuck_chains():
    mixed, stuck = run(draws=200), run(step=stay, draws=200)
    assert mixed.r_hat < 1.02
    assert stuck.r_hat > 1.1
    assert mixed.effective_sample_size > 400 > 20 > stuck.effective_sample_size


def test_pooled_draws_are_rows():
    samples = run(chains=3, draws=20)
    assert samples.pooled.shape == (60, 1)
    np.testing.assert_array_equal(samples.pooled[20:40], samples.draws[1])


def test_diagnostics_are_those_of_the_worst_dimension_that_varies():
    draws = np.random.default_rng(1).normal(size=(4, 100, 3))
    draws[..., 1] = 2.0
    assert Samples(draws, 1.0).r_hat < 1.05
    draws[:2, :, 2] += 5.0
    assert Samples(draws, 1.0).r_hat > 1.5
    still = Samples(np.ones((4, 100, 2)), 1.0)
    assert (still.r_hat, still.effective_sample_size) == (1.0, 400)


def test_an_error_in_a_chain_is_raised():
    def fail(rng, x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(step=fail)


def as_it_is(rng, state):
    return state


def run_until(
    converged, init=counted, step=count, tune=as_it_is, chains=2, initial_sweeps=4, max_sweeps=100, draws=1000, seed=0
):
    def run_sweeps(rng, state, steps):
        for _ in range(steps):
            state, info = step(rng, state)
        return state, info

    return sample_until(
        init,
        tune,
        run_sweeps,
        extract,
        converged=converged,
        chains=chains,
        initial_sweeps=initial_sweeps,
        max_sweeps=max_sweeps,
        draws=draws,
        seed=seed,
    )


def test_converged_chains_stop_after_the_first_round():
    samples, taken = run_until(lambda _: True)
    assert taken == 4
    np.testing.assert_array_equal(samples.draws[..., 0], [[1, 2, 3, 4]] * 2)


def test_chains_that_have_not_converged_run_twice_as_long_and_discard_their_draws():
    samples, taken = run_until(lambda found: found.draws.shape[1] >= 16)
    assert taken == 4 + 8 + 16
    np.testing.assert_array_equal(samples.draws[0, :, 0], np.arange(13, 29))


@pytest.mark.parametrize(("max_sweeps", "taken", "kept"), [(100, 60, 32), (28, 28, 16), (27, 12, 8), (3, 3, 3)])
def test_no_chain_exceeds_the_maximum_number_of_sweeps(max_sweeps, taken, kept):
    samples, steps = run_until(lambda _: False, max_sweeps=max_sweeps)
    assert (steps, samples.draws.shape[1]) == (taken, kept)


def test_draws_are_limited_and_evenly_spaced():
    samples, taken = run_until(lambda _: True, initial_sweeps=20, draws=6)
    assert taken == 20
    np.testing.assert_array_equal(samples.draws[0, :, 0], [4, 8, 12, 16, 20])


def test_convergence_is_decided_from_the_draws():
    mixed, taken = run_until(
        lambda found: found.r_hat < 1.05, started_apart, forget, chains=4, initial_sweeps=50, max_sweeps=10_000
    )
    stuck, longer = run_until(
        lambda found: found.r_hat < 1.05, started_apart, stay, chains=4, initial_sweeps=50, max_sweeps=1000
    )
    assert mixed.r_hat < 1.05 < stuck.r_hat
    assert taken < longer == 50 + 100 + 200 + 400


def test_sampling_until_convergence_is_reproducible():
    def settle(seed):
        return run_until(lambda found: found.r_hat < 1.02, started_apart, forget, initial_sweeps=10, seed=seed)

    one, other, another = settle(3), settle(3), settle(4)
    assert one[1] == other[1]
    np.testing.assert_array_equal(one[0].draws, other[0].draws)
    assert not np.array_equal(one[0].draws[:, :5], another[0].draws[:, :5])


def test_the_acceptance_rate_is_that_of_the_last_round():
    def step(rng, n):
        return n + 1, Info(1.0 if n >= 4 else 0.0)

    assert run_until(lambda found: found.draws.shape[1] > 4, step=step)[0].acceptance_rate == 1.0


def test_chains_are_tuned_before_each_round_and_only_then():
    samples, taken = run_until(lambda found: found.draws.shape[1] >= 8, tune=lambda rng, n: n + 1000)
    assert taken == 4 + 8
    np.testing.assert_array_equal(samples.draws[0, :, 0], 2004 + np.arange(1, 9))
