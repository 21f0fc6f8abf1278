"""The evaluation for few answers is that of any data."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import CrowdBT
from crowdrank.data import SideInformation
from crowdrank.engines import LOCAL, ProgressEngine
from crowdrank.inference.newton import maximize
from crowdrank.models.crowd import Priors
from crowdrank.models.crowd.encoding import answer_table
from crowdrank.models.crowd.few_answers import FewAnswers, with_few_answers
from crowdrank.models.crowd.likelihood import CROWD_BT, VARIANCE_BT
from crowdrank.models.crowd.objective import Layout, Objective
from crowdrank.simulation import mixed_crowd

ITEMS, PEOPLE = 12, 8


def crowd(seed=1):
    return mixed_crowd(items=ITEMS, kinds={"good": 5, "reversed": 1, "random": 2}, votes_each=30, seed=seed).judgments


def posterior(weighted=False, formula=CROWD_BT, **priors):
    table = answer_table(crowd())
    if weighted:
        table = table._replace(weight=np.random.default_rng(0).gamma(2.0, size=table.rows))
    given = {"scale": 2.0, "quality": (3.0, 0.5)} | priors
    return Objective(LOCAL.load(table), Layout(ITEMS, PEOPLE), formula, Priors(**given))


def points():
    """Random parameters, and the optimum."""
    rng = np.random.default_rng(3)
    start = np.append(np.zeros(ITEMS), np.ones(PEOPLE))
    best = maximize(posterior(), start, max_step=2.0).parameters
    return [*(scale * rng.standard_normal(ITEMS + PEOPLE) for scale in (0.1, 1.0, 3.0)), best]


@pytest.mark.parametrize("priors", [{}, {"scale": None, "virtual": 0.5}, {"quality": None}])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_gradient_and_newton_step_are_those_of_the_whole_objective(weighted, priors):
    whole = posterior(weighted, **priors)
    few = with_few_answers(whole)
    assert isinstance(few, FewAnswers)
    for x in points():
        ours, reference = few(x), whole(x)
        assert ours.value == pytest.approx(reference.value, rel=1e-12)
        np.testing.assert_allclose(ours.gradient, reference.gradient, rtol=1e-9, atol=1e-10)
        # far from the optimum the Hessian is indefinite and has to be damped
        target = np.ones(len(x))
        step = reference.curvature.solve(target, 1e-10)
        np.testing.assert_allclose(ours.curvature.solve(target, 1e-10), step, rtol=1e-6, atol=1e-8)


def test_some_of_these_points_need_damping():
    whole = posterior()
    smallest = [np.linalg.eigvalsh(whole(x).curvature.matrix()).min() for x in points()]
    assert min(smallest) < 0 < max(smallest)


def test_a_solution_is_remembered_for_the_same_vector_only():
    curvature = with_few_answers(posterior())(points()[0]).curvature
    one, other = np.ones(ITEMS + PEOPLE), np.arange(1.0, ITEMS + PEOPLE + 1)
    first = curvature.solve(one, 1e-10)
    assert curvature.solve(one, 1e-10) is first
    assert not np.allclose(curvature.solve(other, 1e-10), first)
    np.testing.assert_allclose(curvature.solve(2.0 * one, 1e-10), 2.0 * first, rtol=1e-9)


def test_large_parameters_are_left_to_the_whole_objective():
    whole = posterior()
    x = points()[0]
    x[0] = 80.0
    assert with_few_answers(whole)(x).value == pytest.approx(whole(x).value, rel=1e-12)


def test_other_formulas_and_watched_passes_are_left_as_they_are():
    other = posterior(formula=VARIANCE_BT)
    assert with_few_answers(other) is other
    watched = ProgressEngine(LOCAL, lambda number: None).load(answer_table(crowd()))
    objective = Objective(watched, Layout(ITEMS, PEOPLE), CROWD_BT, Priors(scale=2.0))
    assert with_few_answers(objective) is objective


@pytest.mark.parametrize("has_known_quality", [False, True])
def test_a_fit_is_the_same_whether_or_not_its_passes_are_watched(has_known_quality):
    votes, model = crowd(), CrowdBT(estimation="joint", prior_scale=2.0, quality_prior=(3.0, 0.5))
    known = SideInformation(quality={str(votes.annotators[0]): 0.9}) if has_known_quality else None
    few = model.fit(votes, side_information=known)
    watched = model.fit(votes, engine=ProgressEngine(LOCAL, lambda number: None), side_information=known)
    np.testing.assert_allclose(few.scores, watched.scores, atol=1e-6)
    np.testing.assert_allclose(few.uncertainty.std_error, watched.uncertainty.std_error, rtol=1e-6)
    assert few.log_likelihood == pytest.approx(watched.log_likelihood, rel=1e-9)
