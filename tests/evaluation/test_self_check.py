"""The self-check simulates on the given design, and counts what holds."""

from __future__ import annotations

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.errors import SettingError
from crowdrank.evaluation import count_held
from crowdrank.evaluation.interval_coverage import Coverage, true_ranks
from crowdrank.evaluation.self_check import Generator, default_simulations, draw_quality, wrongly_accused
from crowdrank.results import Uncertainty
from crowdrank.simulation import crowd_bt


@pytest.fixture(scope="module")
def votes() -> cr.Comparisons:
    return crowd_bt(items=10, annotators=8, pairs=45, votes=6, quality=1.0, labels="logistic", scale=1.0).judgments


def with_draws(ranking, draws):
    uncertainty = Uncertainty(draws, draws.std(axis=0), "given", sampled=True)
    return ranking.with_parts(uncertainty=lambda: uncertainty)


def test_the_right_model_is_calibrated_on_its_own_answers(votes):
    found = cr.check(votes, model="bradley-terry", simulations=25)
    assert found.has_scores
    assert 0.9 < found.fitted.scores.value <= 1
    assert 0.9 < found.fitted.ranks.value <= 1
    assert found.fitted.claims_right.value > 0.9
    assert found.failed == 0
    assert not {"score intervals", "rank intervals", "claimed orders"} & set(found.overconfident)


def test_a_model_that_is_too_sure_is_named(votes):
    class TooSure(cr.BradleyTerry):
        def fit(self, judgments, **options):
            found = super().fit(judgments, **options)
            around = found.scores + 0.2 * (found.uncertainty.draws - found.scores)
            return with_draws(found, around)

    model = TooSure()
    ranking = cr.BradleyTerry().fit(votes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crowdrank.evaluation.self_check.name_of", lambda model: "too-sure")
        found = cr.evaluation.check_design(model, votes, ranking, simulations=10)
    assert found.fitted.scores.value < 0.6
    assert {"score intervals", "rank intervals"} <= set(found.overconfident)
    assert "Overconfident for data like yours: score intervals" in found.lines()[-1]


def test_the_design_is_kept(votes):
    tied = cr.Comparisons.of(["a", "b", "c"] * 20, ["b", "c", "a"] * 20, ["a", "tie", "c"] * 20)
    for design in (votes, tied):
        model = cr.BradleyTerry()
        generator = Generator.of(model, design, model.fit(design))
        tossed = generator.toss(np.random.default_rng(0)).comparisons
        assert tossed.ties == design.ties
        for made in (tossed, generator.simulate(np.random.default_rng(0)).comparisons):
            assert np.array_equal(made.left, design.left)
            assert np.array_equal(made.right, design.right)
            assert made.annotator is None or np.array_equal(made.annotator, design.annotator)


def test_models_of_ties_simulate_them():
    tied = cr.Comparisons.of(["a", "b", "c"] * 40, ["b", "c", "a"] * 40, ["a", "tie", "c", "b", "c", "tie"] * 20)
    made = Generator.of(cr.BradleyTerry(), tied, cr.BradleyTerry().fit(tied)).simulate(np.random.default_rng(1))
    assert 0.15 < made.comparisons.ties / len(tied) < 0.55


def test_a_model_without_probabilities_is_checked_on_answers_of_bradley_terry(votes):
    found = cr.check(votes, model="copeland", simulations=2)
    assert (found.generator, found.has_scores) == ("bradley-terry", False)
    assert found.as_dict()["fitted"]["scores"] is None


def test_quality_is_drawn_around_its_estimate():
    mean, spread = np.array([0.9, 0.6, 0.99]), np.array([0.05, 0.1, 0.0])
    estimates = {"quality": (mean, mean - 1.96 * spread, mean + 1.96 * spread)}
    people = cr.results.Annotators(
        labels=np.array(list("abc"), object), n_judgments=np.ones(3, int), estimates=estimates
    )
    rng = np.random.default_rng(0)
    drawn = np.array([draw_quality(people, rng) for _ in range(2_000)])
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.01)
    assert drawn.std(axis=0) == pytest.approx(spread, abs=0.01)


def test_accusations_are_judged_by_the_true_quality():
    class Found:
        verdict = np.array(["reversed", "reversed", "random", "one-sided", "reliable", "too few to say"], object)

    quality = np.array([0.1, 0.9, 0.5, 0.95, 0.9, 0.9])
    assert wrongly_accused(Found, quality).tolist() == [False, True, False, True, False, False]


def test_what_held_is_counted():
    votes = cr.Comparisons.of(["a", "b", "a"], ["b", "c", "c"], ["a", "b", "a"])
    draws = np.random.default_rng(0).normal([2, 0, -2], 0.1, (500, 3))
    ranking = with_draws(cr.BradleyTerry().fit(votes), draws)
    held = count_held(ranking, np.array([2.0, -2.0, 0.0]))
    assert (held.claims, held.claims_right, held.ranks_held, held.split) == (3, 2, 1, 1)
    assert held.correlation == pytest.approx(1 / 3)
    alike = count_held(ranking, np.zeros(3))
    assert (alike.claims, alike.claims_right, alike.ranks_held) == (3, 0, 3)
    both = Coverage((held, alike))
    assert both.claims_right.value == pytest.approx(2 / 6)
    assert both.split.value == 1


def test_equal_truths_share_their_ranks():
    best, worst = true_ranks(cr.data.Items.of(["a", "b", "c"]), np.array([0.0, 1.0, 0.0]))
    assert (best.tolist(), worst.tolist()) == ([2, 1, 2], [3, 1, 3])


def test_fewer_simulations_of_larger_designs():
    assert [default_simulations(n) for n in (100, 2_000, 4_000, 10**6)] == [100, 100, 50, 20]


@pytest.mark.parametrize("wrong", [{"simulations": 0}, {"level": 0.4}])
def test_impossible_settings_are_refused(votes, wrong):
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} must be"):
        cr.check(votes, model="bradley-terry", **wrong)
