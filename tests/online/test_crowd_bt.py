import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import DataWarning, SettingError
from crowdrank.online import CrowdBT
from tests.online.test_moments import integrated, printed

numbers = st.floats(-3, 3)
variances = st.floats(0.05, 60)
counts = st.floats(0.5, 30)
HOW = pytest.mark.parametrize("how", ["exact", "closed"])


def beliefs_of(mean, variance, alpha, beta):
    start = CrowdBT().start(["a", "b"], ["ann"])
    return start.replace(
        item_columns={"mean": np.array(mean), "variance": np.array(variance)},
        annotator_columns={"alpha": np.array([alpha]), "beta": np.array([beta])},
    )


def answer(winner="a"):
    return Comparison("a", "b", winner, "ann")


def test_as_printed_an_update_is_the_papers():
    model = CrowdBT(moments="closed", win_probability="taylor")
    for lead in (-2.0, 0.0, 1.5):
        after = model.update(beliefs_of([lead, 0.0], [0.6, 0.9], 10.0, 1.0), answer())
        expected = printed(lead, 0.0, 0.6, 0.9, 10.0, 1.0)
        for name, printed_name in (("mean", "mean"), ("variance", "variance"), ("alpha", "truths"), ("beta", "lies")):
            np.testing.assert_allclose(getattr(after, name), expected[printed_name], rtol=1e-12)


def test_an_exact_update_has_the_moments_of_the_posterior():
    after = CrowdBT().update(beliefs_of([1.0, -0.5], [50.0, 8.0], 4.0, 2.0), answer())
    true = integrated(1.0, -0.5, 50.0, 8.0, 4.0, 2.0)
    np.testing.assert_allclose(after.mean, true["mean"], rtol=1e-6)
    np.testing.assert_allclose(after.variance, true["variance"], rtol=1e-6)
    np.testing.assert_allclose(after.quality, true["quality"][0], rtol=1e-6)


@HOW
@settings(max_examples=50, deadline=None)
@given(lead=numbers, variance=variances, count=counts)
def test_a_random_annotator_moves_no_score(how, lead, variance, count):
    before = beliefs_of([lead, 0.0], [variance, 1.0], count, count)
    after = CrowdBT(moments=how).update(before, answer())
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(after.variance, before.variance, rtol=1e-12)


@HOW
@settings(max_examples=50, deadline=None)
@given(lead=numbers, variance=st.floats(0.05, 4), alpha=counts, beta=counts)
def test_a_reversed_annotator_moves_the_other_way(how, lead, variance, alpha, beta):
    model = CrowdBT(moments=how)
    as_said = model.update(beliefs_of([lead, 0.0], [variance, 1.0], alpha, beta), answer("a"))
    turned = model.update(beliefs_of([lead, 0.0], [variance, 1.0], beta, alpha), answer("b"))
    np.testing.assert_allclose(turned.mean, as_said.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(turned.variance, as_said.variance, rtol=1e-9)
    np.testing.assert_allclose(turned.quality, 1 - as_said.quality, rtol=1e-9)
    moved = as_said.mean[0] - lead
    assert moved * (alpha - beta) >= 0


@settings(max_examples=50, deadline=None)
@given(lead=st.floats(-20, 20), variance=variances, alpha=counts, beta=counts)
def test_beliefs_are_a_martingale_and_variances_shrink_on_average(lead, variance, alpha, beta):
    """The expected posterior over both answers is the prior."""
    before, model = beliefs_of([lead, 0.0], [variance, 2.0], alpha, beta), CrowdBT()
    won, lost = model.update(before, answer("a")), model.update(before, answer("b"))
    gained, missed = won.mean[0] - lead, won.mean[0] - lost.mean[0]
    if abs(missed) < 1e-9 * (1 + abs(lead)):
        return
    chance = 1 - gained / missed
    assert chance * won.quality[0] + (1 - chance) * lost.quality[0] == pytest.approx(before.quality[0], abs=1e-6)
    assert chance * won.variance[0] + (1 - chance) * lost.variance[0] <= variance * (1 + 1e-9)


def test_ties_are_dropped_and_counted_or_half_an_answer_each_way():
    start = CrowdBT().start(["a", "b"], ["ann"])
    dropped = CrowdBT(ties="drop").update(start, answer("tie"))
    assert (dropped.n_judgments, dropped.n_ties_dropped) == (1, 1)
    assert dropped.mean.tolist() == [0.0, 0.0]
    assert dropped.alpha.tolist() == [10.0]
    before = beliefs_of([1.0, 0.0], [1.0, 0.5], 10.0, 1.0)
    model = CrowdBT()
    tied = model.update(before, answer("tie"))
    sides = [model.update(before, answer(winner)) for winner in "ab"]
    assert (tied.n_judgments, tied.n_ties_dropped) == (1, 0)
    for name in ("mean", "variance", "alpha", "beta"):
        np.testing.assert_allclose(getattr(tied, name), np.mean([getattr(s, name) for s in sides], axis=0), rtol=1e-12)
    assert tied.mean[0] - tied.mean[1] < 1.0


def test_the_taylor_series_warns_outside_of_its_range_and_the_stable_form_is_used():
    before = beliefs_of([2.0, 0.0], [20.0, 20.0], 10.0, 1.0)
    with pytest.warns(
        DataWarning, match=r'Eq. 19 left \[0, 1\] in 1 of 1 judgments.*Set win_probability="stable"'
    ) as told:
        as_printed = CrowdBT(moments="closed", win_probability="taylor").update(before, answer())
    assert told[0].filename == __file__
    stable = CrowdBT(moments="closed").update(before, answer())
    assert as_printed.alpha.tolist() == stable.alpha.tolist()


def crowd(rows=1_500, items=60, annotators=20, seed=0):
    rng = np.random.default_rng(seed)
    scores, quality = rng.normal(size=items), np.where(np.arange(annotators) < 15, 0.95, 0.1)
    left, who = rng.integers(items, size=rows), rng.integers(annotators, size=rows)
    right = (left + rng.integers(1, items, size=rows)) % items
    truth = rng.random(rows) < 1 / (1 + np.exp(scores[right] - scores[left]))
    won = np.where(np.where(rng.random(rows) < quality[who], truth, ~truth), left, right)
    votes = Comparisons.of(left, right, won, annotator=who)
    return votes, scores[votes.items.labels.astype(int)], quality[votes.annotators.astype(int)]


@pytest.mark.parametrize("prior_scale", [2.0, 3.0, 10.0])
def test_with_large_variances_the_closed_form_warns_and_stays_within_bounds_and_the_exact_one_learns(prior_scale):
    votes, scores, _ = crowd()
    with pytest.warns(DataWarning, match=r"variances up to 2, but prior_scale=\d+ starts with.*exact") as told:
        closed = CrowdBT(moments="closed", prior_scale=prior_scale)
    assert told[0].filename == __file__
    exact = CrowdBT(prior_scale=prior_scale)
    found = {model.moments: model.fold(model.start(), votes) for model in (closed, exact)}
    for beliefs in found.values():
        assert np.all(np.isfinite(beliefs.mean))
        assert min(*beliefs.variance, *beliefs.alpha, *beliefs.beta) > 0
    assert np.all(found["exact"].variance < prior_scale**2)
    rough, right = (np.corrcoef(found[how].mean, scores)[0, 1] for how in ("closed", "exact"))
    assert right > 0.7
    assert right > rough + 0.05


@HOW
def test_scores_and_reversed_annotators_are_found(how):
    votes, scores, quality = crowd(rows=6_000)
    model = CrowdBT(moments=how, quality_prior=(4.0, 2.0))
    beliefs = model.fold(model.start(), votes)
    assert np.corrcoef(beliefs.mean, scores)[0, 1] > 0.9
    assert np.all((beliefs.quality > 0.5) == (quality > 0.5))


@pytest.mark.parametrize(
    "wrong",
    [
        {"prior_scale": 0.0},
        {"prior_scale": np.inf},
        {"quality_prior": (1.0, 0.0)},
        {"quality_prior": (1.0,)},
        {"quality_prior": (np.inf, 1.0)},
        {"moments": "rough"},
        {"win_probability": "sure"},
        {"ties": "win"},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} must be"):
        CrowdBT(**wrong)
