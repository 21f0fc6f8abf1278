"""R-hat and effective sample size: reference values, processes of known size, and chains that have not converged."""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata

from crowdrank.errors import DataError
from crowdrank.inference import mcmc
from crowdrank.inference.mcmc import effective_sample_size, r_hat


def drawn(count):
    """Four chains of six dimensions: four autoregressive, one with a shifted chain, one with two wider chains."""
    draws = ndtri(np.random.default_rng(1).random((4, count, 6)))
    for t in range(1, count):
        draws[:, t] += [0.0, 0.5, 0.95, -0.7, 0.5, 0.5] * draws[:, t - 1]
    draws[0, :, 4] += 3.0
    draws[:2, :, 5] *= 4.0
    return np.round(draws, 1)  # so that there are ties


# Made by arviz-stats 0.8.0 on the draws above, for each dimension d:
#   array_stats.rhat(draws[:, :, d], chain_axis=0, draw_axis=1, method="rank")
#   array_stats.ess(draws[:, :, d], chain_axis=0, draw_axis=1, method="bulk")
#   array_stats.ess(draws[:, :, d], chain_axis=0, draw_axis=1, method="tail", prob=(0.05, 0.95))
GOLDEN = {
    100: (
        [1.003691, 1.004755, 1.400696, 1.003104, 1.516762, 1.217382],
        [455.272669, 160.709148, 9.443863, 1040.823997, 8.022883, 183.845579],
        [372.218687, 221.669922, 64.510092, 250.844652, 45.444479, 129.29643],
    ),
    37: (
        [1.012536, 1.07834, 1.466254, 1.071561, 1.524203, 1.147196],
        [232.491988, 48.266954, 9.369667, 310.804199, 9.138254, 58.338368],
        [166.383147, 55.104893, 12.194084, 173.269565, 46.344371, 25.071274],
    ),
}


@pytest.mark.parametrize("count", GOLDEN, ids=["even", "odd"])
def test_the_diagnostics_agree_with_arviz(count):
    expected_r_hat, bulk, tail = GOLDEN[count]
    np.testing.assert_allclose(r_hat(drawn(count)), expected_r_hat, atol=1e-6)
    np.testing.assert_allclose(effective_sample_size(drawn(count)), bulk, atol=1e-6)
    np.testing.assert_allclose(effective_sample_size(drawn(count), "tail"), tail, atol=1e-6)


@pytest.mark.parametrize("repeat", [-0.5, 0.0, 0.6, 0.9])
def test_the_size_of_an_autoregressive_chain_agrees_with_theory(repeat):
    """For the mean, the autocorrelation time is 1 + 2 Σ repeatᵗ = (1 + repeat) / (1 − repeat)."""
    draws = np.random.default_rng(2).standard_normal((4, 4000, 10))
    draws[:, 0] /= np.sqrt(1 - repeat**2)
    for t in range(1, draws.shape[1]):
        draws[:, t] += repeat * draws[:, t - 1]
    expected = 16_000 * (1 - repeat) / (1 + repeat)
    assert effective_sample_size(draws).mean() == pytest.approx(expected, rel=0.08)
    assert r_hat(draws).max() < 1.02


def independent(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape)


def test_converged_chains_have_an_r_hat_of_one():
    assert np.all(np.abs(r_hat(independent(4, 500, 20)) - 1) < 0.01)


@pytest.mark.parametrize("fault", ["two modes", "two widths", "drift", "one stuck chain"])
def test_chains_that_have_not_converged_are_detected(fault):
    draws = independent(4, 500, 3)
    if fault == "two modes":
        draws[:2] += 3.0
    elif fault == "two widths":
        draws[:2] *= 3.0
    elif fault == "drift":
        draws += np.linspace(-2, 2, 500)[:, None]
    else:
        draws[0] = draws[0, 0]
    assert r_hat(draws).min() > 1.1
    if fault in ("two modes", "drift"):
        assert effective_sample_size(draws).max() < 20


def test_the_diagnostics_need_no_moments():
    """Only ranks count: monotone transformations change nothing, and Cauchy draws are fine."""
    draws = independent(4, 200, 3)
    np.testing.assert_allclose(effective_sample_size(draws), effective_sample_size(np.exp(3 * draws)))
    np.testing.assert_allclose(effective_sample_size(draws, "tail"), effective_sample_size(np.exp(3 * draws), "tail"))
    assert r_hat(np.tan(np.random.default_rng(4).uniform(-1.57, 1.57, (4, 500, 3)))).max() < 1.02


def test_ties_share_their_rank():
    draws = np.random.default_rng(5).integers(0, 6, (2, 30, 4)).astype(np.float64)
    ranks = rankdata(draws.reshape(-1, 4), axis=0).reshape(draws.shape)
    np.testing.assert_allclose(mcmc._rank_normalize(draws), ndtri((ranks - 0.375) / 60.25))


def test_dimensions_are_independent_of_each_other(monkeypatch):
    draws = independent(3, 40, 7)
    whole = [r_hat(draws), effective_sample_size(draws), effective_sample_size(draws, "tail")]
    monkeypatch.setattr(mcmc, "_CHUNK", 3)
    np.testing.assert_allclose(
        [r_hat(draws), effective_sample_size(draws), effective_sample_size(draws, "tail")], whole
    )
    np.testing.assert_allclose(r_hat(draws[..., 4:5]), whole[0][4:5])


def test_constant_dimensions_have_no_value():
    draws = independent(4, 50, 2)
    draws[..., 1] = 1.0
    for found in (r_hat(draws), effective_sample_size(draws), effective_sample_size(draws, "tail")):
        assert np.isnan(found).tolist() == [False, True]


@pytest.mark.parametrize("shape", [(4, 100), (4, 3, 2)])
def test_draws_of_another_shape_are_refused(shape):
    with pytest.raises(DataError, match="chains × draws × dimensions"):
        r_hat(np.zeros(shape))
