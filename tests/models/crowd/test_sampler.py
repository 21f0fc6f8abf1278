"""Crowd-BT's sampler: its cached sums stay up to date, and it draws from the posterior (numerical integration)."""

from dataclasses import replace
from functools import partial
from itertools import product as pairs_of

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import betaln, expit, log_expit, ndtr

from crowdrank.data import Items
from crowdrank.inference.mcmc import sample
from crowdrank.models.crowd import quality_grid, sampler_kernels
from crowdrank.models.crowd.encoding import index_answers
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT, Answers
from crowdrank.models.crowd.priors import QualityBounds
from crowdrank.models.crowd.sampler import Sampler, State

links = pytest.mark.parametrize("formula", [CROWD_BT, CROWD_BT_PROBIT], ids=["logistic", "probit"])
ITEMS, PEOPLE = 3, 2
ROWS = [(0, 1, 0), (0, 1, 1), (1, 2, 0), (0, 2, 0), (2, 1, 1), (0, 2, 1), (1, 0, 0), (1, 2, 1), (0, 1, 0), (2, 0, 1)]


def answers_of(rows=ROWS, weight=None):
    winner, loser, who = np.array(rows, np.int32).T
    return Answers(winner, loser, who, np.ones(len(rows)) if weight is None else weight, np.zeros((len(rows), 0)))


def sampler_of(answers, formula=CROWD_BT, scale=1.0, quality=(3.0, 1.5), items=ITEMS, people=PEOPLE):
    free = QualityBounds(np.zeros(people), np.ones(people), np.zeros(0, np.int64), np.zeros(0, np.int64))
    index = index_answers(answers, items, people, formula)
    named = Items.of([f"i{n}" for n in range(items)])
    return Sampler(index, named, np.zeros(items), np.ones(people), free, scale, quality)


def log_likelihood(answers, scores, quality, formula):
    """Eq. 8 written out plainly."""
    margin, eta = scores[answers.winner] - scores[answers.loser], quality[answers.annotator]
    truthful = expit(margin) if formula == CROWD_BT else ndtr(margin / np.sqrt(2))
    return float(answers.weight @ np.log(eta * truthful + (1 - eta) * (1 - truthful)))


def crowded(seed=0, items=6, people=4, rows=80):
    rng = np.random.default_rng(seed)
    winner = rng.integers(items, size=rows).astype(np.int32)
    loser = ((winner + rng.integers(1, items, size=rows)) % items).astype(np.int32)
    who = rng.integers(people, size=rows).astype(np.int32)
    return Answers(winner, loser, who, rng.choice([0.5, 1.0, 3.0], rows), np.zeros((rows, 0)))


@links
@pytest.mark.parametrize("learnt", [False, True], ids=["priors given", "priors learnt"])
def test_probabilities_stay_up_to_date(formula, learnt):
    priors = {"scale": None, "quality": None} if learnt else {}
    sampler = sampler_of(crowded(), formula, items=6, people=4, **priors)
    rng = np.random.default_rng(1)
    state = sampler.init(rng)
    for _ in range(300):
        state, info = sampler.sample(rng, state, 1)
        assert 0 <= info.acceptance_rate <= 1
    truthful, chance = sampler_kernels.answer_probabilities(sampler.index, state.scores, state.quality)
    np.testing.assert_allclose(state.p_truthful, truthful, rtol=1e-10)
    np.testing.assert_allclose(state.p_answer, chance, rtol=1e-10)
    log_lik = float(sampler.index.answers.weight @ np.log(state.p_answer))
    assert log_lik == pytest.approx(log_likelihood(crowded(), state.scores, state.quality, formula))


def position(index, scores, log_scale, quality):
    """Log posterior of a move's coordinates, with alpha 2.5 and beta 0.7; annotator 1 stays where it is."""
    movable, found = np.arange(len(quality)) != 1, np.empty(len(scores) + 1 + len(quality))
    answers, truthful = index.answers, np.empty(len(index.answers.winner))
    value = sampler_kernels._log_posterior_gradient(
        scores,
        log_scale,
        quality,
        np.array([np.nan, 2.5, 0.7]),
        True,
        movable,
        *answers[:4],
        index.logistic,
        truthful,
        found,
    )
    return value, found


@links
def test_the_gradient_is_that_of_the_log_posterior(formula):
    rng, index = np.random.default_rng(2), index_answers(crowded(), 6, 4, formula)
    at = np.concatenate((rng.normal(size=6), [0.4], rng.normal(size=4)))
    value, found = position(index, at[:6], at[6], expit(at[7:]))
    prior = -6 * at[6] - 0.5 * np.sum(at[:6] ** 2) * np.exp(-2 * at[6]) - 0.5 * (at[6] - np.log(3.0)) ** 2
    free = np.delete(at[7:], 1)
    prior += np.sum(2.5 * log_expit(free) + 0.7 * log_expit(-free))
    assert value == pytest.approx(prior + log_likelihood(crowded(), at[:6], expit(at[7:]), formula))
    for n in range(len(at)):
        values = []
        for by in (1e-5, -1e-5):
            moved = at + by * (np.arange(len(at)) == n)
            values.append(position(index, moved[:6], moved[6], expit(moved[7:]))[0])
        expected = 0.0 if n == 8 else (values[0] - values[1]) / 2e-5
        assert found[n] == pytest.approx(expected, abs=1e-5)


def grid_of(quality, low=0.0, high=1.0, collapsed=True):
    people = len(quality)
    shape = (people, quality_grid.GRID_POINTS)
    eta, log_eta, log_one_minus_eta, jacobian, place = *(np.empty(shape) for _ in range(4)), np.empty(people, np.int64)
    quality_grid.build_grids(
        quality,
        np.full(people, low),
        np.full(people, high),
        np.full(people, collapsed),
        np.full(people, True),
        eta,
        log_eta,
        log_one_minus_eta,
        jacobian,
        place,
    )
    return eta, log_eta, log_one_minus_eta, jacobian, place


def test_every_point_of_a_grid_builds_the_same_grid():
    eta, log_eta, log_one_minus_eta, _, place = grid_of(np.array([0.8, 0.05]))
    np.testing.assert_allclose(eta[[0, 1], place], [0.8, 0.05])
    np.testing.assert_allclose(np.exp(log_eta), eta, rtol=1e-9)
    np.testing.assert_allclose(np.exp(log_eta) + np.exp(log_one_minus_eta), 1.0)
    logits = log_eta - log_one_minus_eta
    for g in np.flatnonzero(np.abs(logits[0]) < 20):
        again = grid_of(eta[:1, g])
        np.testing.assert_allclose((again[1] - again[2])[0], logits[0], rtol=1e-5, atol=1e-6)
        assert again[4][0] == g


def test_a_grid_keeps_to_bounds_and_to_one_point_where_nothing_is_summed_out():
    eta, *_, jacobian, _ = grid_of(np.array([0.8]), low=0.6, high=0.9)
    np.testing.assert_array_equal(jacobian[0] > 0, (eta[0] > 0.6) & (eta[0] < 0.9))
    *_, jacobian, place = grid_of(np.array([0.8]), collapsed=False)
    np.testing.assert_array_equal(np.flatnonzero(jacobian[0]), place)


@links
def test_qualities_are_summed_out(formula):
    """Sums over a grid are integrals: by quadrature, the marginal likelihood of each annotator's answers."""
    answers, scores = crowded(rows=30), np.random.default_rng(1).normal(size=6)
    index = index_answers(answers, 6, 4, formula)
    truthful, _ = sampler_kernels.answer_probabilities(index, scores, np.full(4, 0.5))
    eta, log_eta, log_one_minus_eta, jacobian, _ = grid_of(np.array([0.8, 0.3, 0.6, 0.99]))
    log_lik, mass = np.empty_like(eta), np.empty_like(eta)
    quality_grid.grid_log_likelihoods(
        eta, index.annotator_starts, index.annotator_rows, index.answers.weight, truthful, log_lik
    )
    for k, g in pairs_of(range(4), (3, 12, 20)):
        own = Answers(*(column[answers.annotator == k] for column in answers[:5]))
        assert log_lik[k, g] == pytest.approx(log_likelihood(own, scores, np.full(4, eta[k, g]), formula))
    one, other = (
        quality_grid.log_marginal(a, 1.5, log_eta, log_one_minus_eta, jacobian, log_lik, mass) for a in (2.0, 3.0)
    )
    logits, expected = np.linspace(-30, 30, 2001), 0.0
    for k in range(4):
        own = Answers(*(column[answers.annotator == k] for column in answers[:5]))
        value = np.array([log_likelihood(own, scores, np.full(4, q), formula) for q in expit(logits)])
        two, three = (np.sum(np.exp(value + a * log_expit(logits) + 1.5 * log_expit(-logits))) for a in (2.0, 3.0))
        expected += np.log(two / three)
    assert one - other == pytest.approx(expected, abs=0.02)


def test_products_of_thousands_of_answers_do_not_underflow():
    answers = answers_of([(0, 1, 0), (1, 0, 0)] * 3000)
    truthful, found = np.full(6000, 1e-9), np.empty((1, quality_grid.GRID_POINTS))
    eta = grid_of(np.array([0.8]))[0]
    quality_grid.grid_log_likelihoods(eta, np.array([0, 6000]), np.arange(6000), answers.weight, truthful, found)
    np.testing.assert_allclose(found[0], 6000 * np.log(1 - 1e-9 + (2e-9 - 1) * eta[0]), rtol=1e-6)


def test_equal_answers_are_merged_and_order_does_not_matter():
    answers = crowded()
    index = index_answers(answers, 6, 4, CROWD_BT)
    assert index.answers.weight.sum() == pytest.approx(answers.weight.sum())
    rows = set(zip(answers.winner.tolist(), answers.loser.tolist(), answers.annotator.tolist(), strict=True))
    assert len(index.answers.winner) == len(rows) < len(answers.winner)
    reordered = Answers(*(column[::-1] for column in answers[:5]))
    for one, other in zip(index[1:], index_answers(reordered, 6, 4, CROWD_BT)[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_answer_is_indexed_by_two_items_and_one_annotator():
    index = index_answers(crowded(), 6, 4, CROWD_BT)
    answers = index.answers
    for item in range(6):
        for place in range(index.item_starts[item], index.item_starts[item + 1]):
            row, won = index.item_rows[place], index.sign[place] > 0
            ours, theirs = (answers.winner, answers.loser) if won else (answers.loser, answers.winner)
            assert (ours[row], theirs[row]) == (item, index.other[place])
    assert index.item_starts[-1] == 2 * len(answers.winner)
    for k in range(4):
        rows = index.annotator_rows[index.annotator_starts[k] : index.annotator_starts[k + 1]]
        np.testing.assert_array_equal(np.sort(rows), np.flatnonzero(answers.annotator == k))


def sampled_state(answers, steps=100):
    sampler, rng = sampler_of(answers, scale=None, quality=None), np.random.default_rng(3)
    state = sampler.init(rng)
    for _ in range(steps):
        state, _ = sampler.sample(rng, state, 1)
    return np.concatenate((state.scores, state.quality))


def test_weights_are_repetitions():
    twice = sampled_state(answers_of(ROWS + ROWS))
    np.testing.assert_array_equal(twice, sampled_state(answers_of(weight=np.full(len(ROWS), 2.0))))
    assert not np.allclose(twice, sampled_state(answers_of()))


def test_a_weight_of_one_is_no_special_case():
    """It is multiplied where others are raised to a power: the same chain, to rounding."""
    nearly = answers_of(weight=np.full(len(ROWS), 1.0 + 1e-13))
    np.testing.assert_allclose(sampled_state(answers_of()), sampled_state(nearly), rtol=1e-6)


# The posterior of three items and two annotators, by quadrature.

CONTRASTS = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
LOGITS = np.linspace(-11, 11, 67)


def posterior(answers, formula, scale, quality):
    """Means and standard deviations of scores and qualities, and of logarithms of what is learnt.

    Of scores their sigmoid, centred: where the scale is learnt they have long tails.
    """
    scales = np.exp(np.linspace(-2.3, 4.5, 24) if scale is None else [np.log(scale)])
    node, mass = hermegauss(24)
    z, z_mass = np.array(list(pairs_of(node, node))), np.array([a * b for a, b in pairs_of(mass, mass)])
    scores = (scales[:, None, None] * (z @ CONTRASTS)).reshape(-1, ITEMS)
    log_scale = np.repeat(np.log(scales), len(z))
    weight = np.tile(z_mass, len(scales)) * (1.0 if scale else np.exp(-0.5 * (log_scale - np.log(3.0)) ** 2))
    counts = np.log([quality]) if quality else np.array(list(pairs_of(np.linspace(-1.9, 3.2, 14), repeat=2)))
    middle = np.log((2.0, 1.0))
    believed = np.ones(1) if quality else np.exp(-0.5 * np.sum(((counts - middle) / 0.7) ** 2, axis=1))
    a, b = np.exp(counts).T
    beta = np.exp(a * log_expit(LOGITS)[:, None] + b * log_expit(-LOGITS)[:, None] - betaln(a, b))
    eta, whole, of_eta = expit(LOGITS), np.outer(weight, believed), []
    for k in range(PEOPLE):
        own = Answers(*(column[answers.annotator == k] for column in answers[:5]))
        margin = scores[:, own.winner] - scores[:, own.loser]
        truthful = (expit(margin) if formula == CROWD_BT else ndtr(margin / np.sqrt(2)))[:, None]
        chance = eta[:, None] * truthful + (1 - eta[:, None]) * (1 - truthful)
        log_lik = np.prod(chance**own.weight, axis=2)
        held = log_lik @ beta
        of_eta.append([(log_lik * eta**power) @ beta / held for power in (1, 2)])
        whole *= held
    whole /= whole.sum()
    of_scores, of_counts = whole.sum(axis=1), whole.sum(axis=0)
    columns = [(of_scores @ expit(scores), of_scores @ expit(scores) ** 2)]
    columns += [([np.sum(whole * first)], [np.sum(whole * second)]) for first, second in of_eta]
    if scale is None:
        columns.append(([of_scores @ log_scale], [of_scores @ log_scale**2]))
    if quality is None:
        columns.append((of_counts @ counts, of_counts @ counts**2))
    first, second = (np.concatenate(part) for part in zip(*columns, strict=True))
    return first, np.sqrt(second - first**2)


def drawn(sampler, scale, quality, draws=700):
    def read(state: State):
        learnt = [[np.log(state.scale)]] if scale is None else []
        learnt += [np.log([state.alpha, state.beta])] if quality is None else []
        return np.concatenate((expit(state.scores - state.scores.mean()), state.quality, *learnt))

    return sample(sampler.init, sampler.sample, read, chains=4, warmup=200, draws=draws, thin=4, seed=5)


def worst(samples, mean, spread):
    """How many Monte-Carlo errors the worst mean, and the worst standard deviation, is off."""
    from crowdrank.inference.mcmc import effective_sample_size

    draws = samples.pooled
    size = effective_sample_size(samples.draws)
    of_mean = np.abs(draws.mean(axis=0) - mean) / (spread / np.sqrt(size))
    squares = (samples.draws - mean) ** 2
    error = squares.std(axis=(0, 1)) / np.sqrt(effective_sample_size(squares))
    of_spread = np.abs(squares.mean(axis=(0, 1)) - spread**2) / error
    return max(of_mean.max(), of_spread.max())


PRIORS = {"given": (1.0, (3.0, 1.5)), "scale learnt": (None, (3.0, 1.5)), "quality learnt": (1.0, None)}


@pytest.mark.parametrize(
    ("formula", "priors"),
    [(CROWD_BT, "given"), (CROWD_BT_PROBIT, "given"), (CROWD_BT, "scale learnt"), (CROWD_BT, "quality learnt")],
)
def test_draws_are_of_the_posterior(formula, priors):
    scale, quality = PRIORS[priors]
    answers = answers_of(weight=np.array([1.0, 2.0, *np.ones(len(ROWS) - 2)]))
    samples = drawn(sampler_of(answers, formula, scale, quality), scale, quality)
    assert samples.r_hat < 1.03
    assert worst(samples, *posterior(answers, formula, scale, quality)) < 4


@pytest.mark.parametrize(
    "fault", [{"scale": 30.0}, {"quality": (1e-6, 1e-6)}], ids=["no prior of scores", "no prior of quality"]
)
def test_a_sweep_without_its_prior_is_noticed(fault):
    """The negative control of the test above."""
    answers = answers_of()
    sampler = replace(sampler_of(answers), **fault)
    assert worst(drawn(sampler, 1.0, (3.0, 1.5), draws=500), *posterior(answers, CROWD_BT, 1.0, (3.0, 1.5))) > 6


def test_bounds_and_order_truncate_the_posterior():
    """Draws under bounds are those of the whole posterior that lie within them."""
    answers = answers_of()
    free = sampler_of(answers)
    bounds = QualityBounds(np.array([0.5, 0.0]), np.ones(2), np.array([1]), np.array([0]))
    whole = drawn(free, 1.0, (3.0, 1.5), draws=1500).pooled
    eta = whole[:, ITEMS:]
    inside = whole[(eta[:, 0] > 0.5) & (eta[:, 1] > eta[:, 0])]
    held = drawn(replace(free, bounds=bounds), 1.0, (3.0, 1.5))
    assert held.pooled[:, ITEMS].min() >= 0.5
    assert np.all(held.pooled[:, ITEMS + 1] > held.pooled[:, ITEMS])
    off = np.abs(held.pooled.mean(axis=0) - inside.mean(axis=0)) / inside.std(axis=0)
    assert off.max() < 0.1
    assert np.abs(whole.mean(axis=0) - inside.mean(axis=0)).max() > 0.1


# Parameters from their priors and answers from these; after a few sweeps the parameters still have their priors.


def drift(sweep, times, sweeps_each=2, seed=0):
    """How many standard errors means and squares have moved, for the worst of all parameters."""
    rng, moved = np.random.default_rng(seed), []
    free = QualityBounds(np.zeros(PEOPLE), np.ones(PEOPLE), np.zeros(0, np.int64), np.zeros(0, np.int64))
    for _ in range(times):
        hyper = np.exp(rng.normal(size=3) * (1.0, 0.7, 0.7)) * (
            sampler_kernels.SCALE_MEDIAN,
            sampler_kernels.ALPHA_MEDIAN,
            sampler_kernels.BETA_MEDIAN,
        )
        scores = hyper[0] * rng.normal(size=ITEMS)
        quality = np.clip(rng.beta(hyper[1], hyper[2], PEOPLE), 1e-14, 1 - 1e-14)
        left, right, who = np.array(ROWS).T
        chance = expit(scores[left] - scores[right])
        chance = quality[who] * chance + (1 - quality[who]) * (1 - chance)
        won = rng.random(len(ROWS)) < chance
        index = index_answers(
            answers_of(np.stack((np.where(won, left, right), np.where(won, right, left), who), axis=1)),
            ITEMS,
            PEOPLE,
            CROWD_BT,
        )
        before = summary(scores, quality, hyper)
        sweep(
            rng,
            index,
            np.array([0, ITEMS]),
            free,
            (True, True),
            scores,
            quality,
            hyper,
            *sampler_kernels.answer_probabilities(index, scores, quality),
            np.array([1.0] * ITEMS + [6.0] + [1.0] * PEOPLE),
            np.array([0.8]),
            sweeps_each,
        )
        moved.append(summary(scores, quality, hyper) - before)
    return np.max(np.abs(np.mean(moved, axis=0)) / (np.std(moved, axis=0) / np.sqrt(times)))


def summary(scores, quality, hyper):
    logs = np.log(hyper) - np.log(
        (sampler_kernels.SCALE_MEDIAN, sampler_kernels.ALPHA_MEDIAN, sampler_kernels.BETA_MEDIAN)
    )
    shape = np.abs(scores / hyper[0])
    logits = np.abs(np.log(quality) - np.log1p(-quality))
    return np.concatenate((logs, logs**2, shape, shape**2, quality, quality**2, logits, [logs[1] * logs[2]]))


def test_sweeps_leave_the_posterior_as_it_is():
    assert drift(sampler_kernels.sweep, 12_000) < 4.2


FAULTS = {
    "a grid without its Jacobian": ("build_grids", 1600, lambda real, *at: (real(*at), np.sign(at[8], out=at[8]))),
    "a Beta without its norm": ("_log_density_of_counts", 500, lambda real, a, b, count: real(a, b, 0)),
    "a scale without its prior": (
        "_log_rescaling_ratio",
        500,
        lambda real, *given: real(*given) + 3.0 * np.log(given[2]),
    ),
}


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_sweeps_of_another_posterior_are_noticed(fault, monkeypatch):
    """The same sweeps, not compiled, so that one of their parts can be replaced by a faulty one."""
    times = 500
    if fault:
        name, times, faulty = FAULTS[fault]
        monkeypatch.setattr(sampler_kernels, name, partial(faulty, getattr(sampler_kernels, name)))
    monkeypatch.setattr(sampler_kernels, "_sweep_loop", sampler_kernels._sweep_loop.function)
    monkeypatch.setattr(sampler_kernels, "_fill_truthful_compiled", sampler_kernels._fill_truthful)
    monkeypatch.setattr(
        sampler_kernels, "_truthful_probability", lambda margin, _: float(expit(margin))
    )  # Python's exp may overflow
    found = drift(sampler_kernels.sweep, times, sweeps_each=3)
    assert found > 5 if fault else found < 4.2
