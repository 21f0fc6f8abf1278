"""Crowd-BT's likelihood with the annotators integrated out: quadrature, derivatives, and both ways to compute it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import beta, norm

from crowdrank.data.side_information import NO_SIDE_INFORMATION, EncodedSideInformation
from crowdrank.engines import LOCAL
from crowdrank.models.crowd import marginal_likelihood, quality_priors
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT, Answers
from crowdrank.models.crowd.marginal_likelihood import GridPosterior, grid_tables, margin_terms, tables_of_draws
from crowdrank.models.crowd.marginal_objective import Hyperparameters, MarginalObjective
from crowdrank.models.crowd.quality_priors import NO_TIES, QualityDistribution, TieDistribution, make_grids

ITEMS = 6
EFFECT = np.array([0.3, -0.2, 0.0, 0.1, 0.4, -0.5])
HYPER = Hyperparameters(1.3, QualityDistribution(0.8, 4.0), TieDistribution(-0.5, 0.7, 0.8, EFFECT))
FORMULAS = {"logistic": CROWD_BT, "probit": CROWD_BT_PROBIT}
CASES = {
    "plain": {},
    "ties": {"ties": True},
    "weights": {"weights": True},
    "ties and weights": {"ties": True, "weights": True},
    "a heavy annotator": {"heavy": 4_000},
    "a heavy annotator, ties": {"heavy": 4_000, "ties": True},
    "constraints": {"known": EncodedSideInformation(quality={0: 0.7}, between={1: (0.4, 0.9)})},
}
every_case = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
every_formula = pytest.mark.parametrize("formula", list(FORMULAS.values()), ids=list(FORMULAS))


def answers(ties=False, weights=False, heavy=0, seed=0):
    """Answers of five annotators about six items, and optionally many of one more."""
    rng = np.random.default_rng(seed)
    rows = 60 + heavy
    who = np.sort(np.append(rng.integers(5, size=60), np.full(heavy, 5))).astype(np.int32)
    truth = np.linspace(1.0, -1.0, ITEMS)
    left = rng.integers(ITEMS, size=rows)
    right = (left + rng.integers(1, ITEMS, size=rows)) % ITEMS
    honest = rng.random(rows) < np.array([0.95, 0.9, 0.8, 0.6, 0.2, 0.85])[who]
    left_won = (rng.random(rows) < expit(truth[left] - truth[right])) == honest
    weight = rng.choice([0.5, 1.0, 2.5], size=rows) if weights else np.ones(rows)
    features = (rng.random((rows, 1)) < 0.3).astype(float) if ties else np.zeros((rows, 0))
    won, lost = np.where(left_won, left, right), np.where(left_won, right, left)
    return Answers(won.astype(np.int32), lost.astype(np.int32), who, weight, features)


def objective_of(table, formula=CROWD_BT, hyper=HYPER, known=NO_SIDE_INFORMATION):
    people = int(table.annotator.max()) + 1
    counts = np.bincount(table.annotator, table.weight, people)
    grids = make_grids(counts, np.full(people, 0.7), known, None, table.features.shape[1] > 0)
    return MarginalObjective(LOCAL.load(table), grids, hyper, formula)


def objective_in(case, formula):
    case = dict(case)
    known = case.pop("known", NO_SIDE_INFORMATION)
    return objective_of(answers(**case), formula, known=known)


def scores_for(seed=1):
    return np.random.default_rng(seed).normal(size=ITEMS)


@every_formula
@every_case
def test_the_gradient_agrees_with_finite_differences(case, formula):
    objective, x = objective_in(case, formula), scores_for()
    gradient = objective(x).gradient
    for n in range(ITEMS):
        step = 1e-5 * (np.arange(ITEMS) == n)
        difference = (objective(x + step).value - objective(x - step).value) / 2e-5
        assert difference == pytest.approx(gradient[n], rel=1e-5, abs=1e-5)


def hessian_by_differences(objective, x, step=1e-5):
    ways = step * np.eye(len(x))
    return -np.array([(objective(x + way).gradient - objective(x - way).gradient) / (2 * step) for way in ways])


@every_formula
@every_case
def test_the_curvature_agrees_with_differences_of_gradients(case, formula):
    """Two polynomials per annotator hold nearly all of the covariance between grid points, not all of it."""
    objective, x = objective_in(case, formula), scores_for()
    expected = hessian_by_differences(objective, x)
    curvature = objective(x).curvature
    found = curvature.matrix
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.01 * np.linalg.norm(expected, 2))
    way = np.random.default_rng(2).normal(size=ITEMS)
    np.testing.assert_allclose(curvature._product(way), found @ way, rtol=1e-9, atol=1e-9)


def test_without_the_covariance_the_curvature_is_too_large():
    """The negative control of the test above."""
    objective, x = objective_in({}, CROWD_BT), scores_for()
    expected = hessian_by_differences(objective, x)
    (alone,) = objective(x).curvature.rows.sum(marginal_likelihood.curvature_matrix, ITEMS)
    assert np.abs(alone + np.eye(ITEMS) / HYPER.scale**2 - expected).max() > 0.05 * np.linalg.norm(expected, 2)


@every_formula
@pytest.mark.parametrize("rows", [1, 20, 200])
def test_the_grid_integrates_quality_out(formula, rows):
    rng = np.random.default_rng(rows)
    won = rng.integers(ITEMS, size=rows)
    lost = (won + rng.integers(1, ITEMS, size=rows)) % ITEMS
    who = np.zeros(rows, np.int32)
    table = Answers(won.astype(np.int32), lost.astype(np.int32), who, np.ones(rows), np.zeros((rows, 0)))
    objective, x = objective_of(table, formula), scores_for()
    margin = x[won] - x[lost]
    truthful = expit(margin) if formula == CROWD_BT else ndtr(margin / np.sqrt(2))
    prior = beta(HYPER.quality.alpha, HYPER.quality.beta)

    def density(eta):
        return float(np.sum(np.log(eta * truthful + (1 - eta) * (1 - truthful))))

    largest = max(density(eta) for eta in np.linspace(0.01, 0.99, 99))
    inside = quad(lambda eta: np.exp(density(eta) - largest) * prior.pdf(eta), 0, 1, limit=200)[0]
    assert objective.log_likelihood(objective.tables(x)) == pytest.approx(largest + np.log(inside), abs=0.01)


def test_the_grid_integrates_the_tendency_to_tie_out():
    table = answers(ties=True)
    table = table._replace(annotator=np.zeros(table.rows, np.int32))
    objective, x = objective_of(table), scores_for()
    effect = EFFECT[table.winner] + EFFECT[table.loser]
    odds = 2 * np.cosh(0.5 * HYPER.tie.slope * (x[table.winner] - x[table.loser])) * np.exp(-effect)
    tied = table.features[:, 0] == 1

    def density(log_nu):
        nu = np.exp(log_nu)
        return float(np.sum(np.log(np.where(tied, nu, odds) / (nu + odds))))

    prior = norm(HYPER.tie.mean, HYPER.tie.scale)
    largest = max(density(log_nu) for log_nu in np.linspace(-4, 4, 81))
    inside = quad(lambda t: np.exp(density(t) - largest) * prior.pdf(t), -5, 5, limit=200)[0]
    tables = objective.tables(x)
    of_ties = objective.log_likelihood(tables) - objective.log_likelihood(
        tables._replace(tie=np.zeros_like(tables.tie))
    )
    assert of_ties == pytest.approx(largest + np.log(inside), abs=0.01)


@every_formula
@every_case
def test_compiled_loops_agree_with_numpy(case, formula):
    case = {name: value for name, value in case.items() if name != "known"}
    table, x = answers(**case), scores_for()
    objective = objective_of(table, formula)
    points, tables = objective.points, objective.tables(x)
    posterior = objective.posterior(tables)
    rng = np.random.default_rng(3)
    stacked = GridPosterior(
        np.stack([posterior.quality, *(posterior.quality * rng.normal(size=(2, *posterior.quality.shape)))]),
        np.stack([posterior.tie, posterior.tie * rng.normal(size=posterior.tie.shape)]),
    )
    rows, terms = margin_terms(table, x, points, stacked, formula, False)
    for one, other in zip(tables, grid_tables(table, x, points, formula, True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    other_rows, other_terms = margin_terms(table, x, points, stacked, formula, True)
    for one, other in zip((*rows, *terms), (*other_rows, *other_terms), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("rank", [1, 2])
def test_compiled_weights_of_grids_agree_with_numpy(rank):
    rng = np.random.default_rng(8)
    log_likelihood, grid_of = 5.0 * rng.normal(size=(9, 16)), np.array([0] * 7 + [1, 2], np.int32)
    points, log_prior = np.sort(rng.random((3, 16)), axis=1), rng.normal(size=(3, 16))
    points[2] = 1.0  # a known quality
    weights, value = quality_priors.weigh_grids(log_likelihood, log_prior, points, grid_of, rank, False)
    compiled, compiled_value = quality_priors.weigh_grids(log_likelihood, log_prior, points, grid_of, rank, True)
    np.testing.assert_allclose(compiled, weights, rtol=1e-9, atol=1e-12)
    assert compiled_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(weights[0].sum(axis=1), 1.0)
    assert not weights[1:, 8].any()


@every_formula
@every_case
def test_tables_of_draws_are_tables_of_each_draw(case, formula):
    objective = objective_in(case, formula)
    draws = np.random.default_rng(4).normal(size=(3, ITEMS))
    quality, tie = objective.shards.sum(tables_of_draws, draws, objective.points, formula)
    for n, x in enumerate(draws):
        expected = objective.tables(x)
        np.testing.assert_allclose(quality[n], expected.quality, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(tie[n], expected.tie, rtol=1e-9, atol=1e-9)


@every_formula
@every_case
def test_replicates_are_evaluated_as_if_each_was_alone(case, formula):
    objective = objective_in(case, formula)
    draws = np.random.default_rng(6).normal(size=(4, ITEMS))
    together = objective.replicated(2, ITEMS)
    each = [objective(x) for x in draws]
    found = together.mean_over(draws)
    np.testing.assert_allclose(found.gradient, np.mean([one.gradient for one in each], axis=0), rtol=1e-8, atol=1e-9)
    matrices = [one.curvature.matrix for one in each]
    np.testing.assert_allclose(found.matrix, np.mean(matrices, axis=0), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(together.log_densities(draws), [one.value for one in each], rtol=1e-10)


def test_answers_need_no_order():
    table, x = answers(ties=True, heavy=300), scores_for()
    order = np.random.default_rng(5).permutation(table.rows)
    mixed = Answers(*(part[order] for part in table[:5]))
    one, other = objective_of(table)(x), objective_of(mixed)(x)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-9, atol=1e-9)


def test_many_annotators_have_a_sparse_matrix_of_gradients(monkeypatch):
    objective, x = objective_in({"ties": True}, CROWD_BT), scores_for()
    dense = objective(x).curvature.matrix
    monkeypatch.setattr(marginal_likelihood, "_MAX_DENSE_CELLS", 1)
    np.testing.assert_allclose(objective(x).curvature.matrix, dense, rtol=1e-9, atol=1e-12)


def test_known_qualities_are_single_points_and_ranges_are_kept():
    known = EncodedSideInformation(quality={0: 0.7}, between={1: (0.4, 0.9)})
    grids = objective_in({"known": known}, CROWD_BT).grids
    eta = grids.points(NO_TIES).eta[grids.grid_of]
    np.testing.assert_allclose(eta[0], 0.7)
    assert 0.4 < eta[1].min() < eta[1].max() < 0.9


def test_posterior_weights_sum_to_one():
    objective = objective_in({"ties": True, "heavy": 4_000}, CROWD_BT)
    posterior = objective.posterior(objective.tables(scores_for()))
    np.testing.assert_allclose(posterior.quality.sum(axis=1), 1.0)
    np.testing.assert_allclose(posterior.tie.sum(axis=1), 1.0)
