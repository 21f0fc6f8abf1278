"""Side information in every model that accepts it: constraints hold, and gold pairs decide the sign."""

import numpy as np
import pytest

from crowdrank import BayesianCrowdBT, BradleyTerry, CrowdBT, FactorBT, PairwiseHITS, SideInformation, VarianceBT
from crowdrank.data import EncodedSideInformation
from crowdrank.errors import SettingError
from crowdrank.evaluation import accuracy
from crowdrank.models.base import FitOptions
from crowdrank.models.crowd import Priors, fit_map
from crowdrank.models.crowd.factor_bt import ScaledFeatures
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT, FACTOR_BT, VARIANCE_BT
from crowdrank.models.crowd.priors import PERFECT_LOGIT, quality_constraints
from crowdrank.simulation import mixed_crowd
from tests.strategies import joint_crowd_bt

pytestmark = pytest.mark.filterwarnings("ignore:bayesian:crowdrank.errors.ConvergenceWarning")

MODELS = {
    "crowd-bt": CrowdBT(),
    "crowd-bt probit": CrowdBT(link="probit"),
    "crowd-bt joint": joint_crowd_bt(),
    "crowd-bt alternating": joint_crowd_bt(solver="alternating", start="one", tolerance=1e-3),
    "crowd-bt from one": joint_crowd_bt(start="one"),
    "factor-bt": FactorBT(),
    "factor-bt by conjugate gradients": FactorBT(solver="conjugate-gradients"),
    "variance-bt": VarianceBT(),
    "pairwise-hits": PairwiseHITS(),
    "bayesian-crowd-bt": BayesianCrowdBT(chains=2, draws=30, warmup=100),
}
every_model = pytest.mark.parametrize("model", list(MODELS.values()), ids=list(MODELS))


@pytest.fixture(scope="module")
def crowd():
    """Annotators 1 to 3 are good, 4 to 6 noisy, whatever their names say."""
    return mixed_crowd(items=15, kinds={"good": 3, "noisy": 3}, votes_each=60, seed=1)


@pytest.fixture(scope="module")
def mostly_reversed():
    return mixed_crowd(items=15, kinds={"good": 6, "reversed": 9}, votes_each=40, seed=3)


def quality_of(ranking):
    """The first estimate: quality, attention, precision or ability."""
    return next(iter(ranking.annotators.estimates.values()))[0]


def good_and_noisy(crowd):
    kinds, names = crowd.annotators["kind"], crowd.judgments.annotators
    return [str(n) for n in names[kinds == "good"]], [str(n) for n in names[kinds == "noisy"]]


def fit(model, votes, **known):
    return model.fit(votes, side_information=SideInformation(**known))


def estimates(model, votes, **known):
    ranking = fit(model, votes, **known) if known else model.fit(votes)
    return dict(zip(map(str, votes.annotators), quality_of(ranking), strict=True))


def gold_pairs(crowd, apart=5):
    ordered = [str(crowd.judgments.items.labels[n]) for n in np.argsort(-crowd.truth)]
    return list(zip(ordered[:-apart], ordered[apart:], strict=True))


@every_model
def test_known_quality_is_held(crowd, model):
    (good, *_), (noisy, *_) = good_and_noisy(crowd)
    found = estimates(model, crowd.judgments, quality={good: 0.6, noisy: 0.9})
    assert found[good] == pytest.approx(0.6, abs=0.01)
    assert found[noisy] == pytest.approx(0.9, abs=0.01)


@every_model
def test_a_range_is_kept(crowd, model):
    (good, *_), (noisy, *_) = good_and_noisy(crowd)
    found = estimates(model, crowd.judgments, between={good: (0.55, 0.6), noisy: (0.85, 0.9)})
    assert 0.55 <= found[good] <= 0.6
    assert 0.85 <= found[noisy] <= 0.9


@every_model
def test_a_range_that_holds_what_is_found_anyway_changes_little(crowd, model):
    found = quality_of(model.fit(crowd.judgments))
    names = [str(name) for name in crowd.judgments.annotators]
    ends = (found[0] / 2, (1 + found[0]) / 2 if found[0] < 1 else 9.0)
    ranking = fit(model, crowd.judgments, between={names[0]: ends})
    np.testing.assert_allclose(quality_of(ranking), found, atol=0.08 if isinstance(model, BayesianCrowdBT) else 0.01)


@every_model
def test_an_order_is_kept(crowd, model):
    (good, *_), (noisy, *_) = good_and_noisy(crowd)
    plain = estimates(model, crowd.judgments)
    assert plain[good] > plain[noisy]
    found = estimates(model, crowd.judgments, better=[(noisy, good)])
    assert found[noisy] >= found[good]


@pytest.mark.parametrize("model", [CrowdBT(), FactorBT(), VarianceBT()], ids=["crowd-bt", "factor-bt", "variance-bt"])
def test_an_order_of_three_is_kept(crowd, model):
    (good, better, *_), (noisy, *_) = good_and_noisy(crowd)
    found = estimates(model, crowd.judgments, better=[(noisy, good), (good, better)])
    assert found[noisy] >= found[good] >= found[better]


@pytest.mark.parametrize("model", [CrowdBT(), FactorBT(), VarianceBT()], ids=["crowd-bt", "factor-bt", "variance-bt"])
def test_constraints_hold_however_many_answers_there_are(crowd, model):
    (good, *_), (noisy, other, *_) = good_and_noisy(crowd)
    many = crowd.judgments.reweighted(np.full(len(crowd.judgments), 500.0))
    found = estimates(model, many, quality={good: 0.6})
    assert found[good] == pytest.approx(0.6, abs=0.01)
    found = estimates(model, many, between={good: (0.5, 0.6)})
    assert 0.5 <= found[good] <= 0.6
    found = estimates(model, many, better=[(noisy, other), (noisy, good)])
    assert found[noisy] >= max(found[good], found[other])


@every_model
def test_gold_moves_the_scores(crowd, model):
    votes = crowd.judgments
    worst, best = (str(votes.items.labels[n]) for n in np.argsort(crowd.truth)[[0, -1]])
    at = [votes.items.index(name) for name in (worst, best)]

    def gap(ranking):
        return float(np.subtract(*ranking.scores[at]) / np.std(ranking.scores))

    before, after = gap(model.fit(votes)), gap(fit(model, votes, gold=[(worst, best)]))
    assert after > before + 0.02


@pytest.mark.parametrize(
    ("model", "weight"),
    [
        (CrowdBT(), 5.0),
        (CrowdBT(), 0.0),
        (CrowdBT(link="probit"), 5.0),
        (joint_crowd_bt(), 5.0),
        (joint_crowd_bt(solver="alternating", tolerance=1e-3), 5.0),
        (FactorBT(), 5.0),
        (BayesianCrowdBT(chains=2, draws=30, warmup=100), 5.0),
        (BayesianCrowdBT(chains=2, draws=30, warmup=100), 0.0),
        # in these models nobody is reversed, only imprecise: it takes more weight
        (VarianceBT(), 50.0),
        (PairwiseHITS(), 50.0),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, float) else f"{value:g}",
)
def test_gold_flips_a_mostly_reversed_crowd(mostly_reversed, model, weight):
    votes, truth = mostly_reversed.judgments, mostly_reversed.truth
    assert accuracy(model.fit(votes).scores, truth) < 0.3
    told = fit(model, votes, gold=gold_pairs(mostly_reversed), gold_weight=weight)
    assert accuracy(told.scores, truth) > 0.8


@every_model
def test_the_annotator_of_the_gold_pairs_is_hidden(crowd, model):
    ranking = fit(model, crowd.judgments, gold=gold_pairs(crowd))
    people = ranking.annotators
    assert people.labels.tolist() == crowd.judgments.annotators.tolist()
    for parts in people.estimates.values():
        assert all(len(part) == len(people) for part in parts)
    assert people.frame().height == len(people)
    assert int(people.n_judgments.sum()) == len(crowd.judgments)
    assert ranking.n_judgments.sum() == 2 * len(crowd.judgments)
    assert ranking.uncertainty.std_error.shape == ranking.scores.shape


def test_models_without_annotator_parameters_refuse_side_information(crowd):
    with pytest.raises(SettingError, match="bradley-terry cannot use side information. Models that do: .*crowd-bt"):
        fit(BradleyTerry(), crowd.judgments, gold=gold_pairs(crowd))


def test_with_a_known_annotator_no_draw_is_flipped():
    """Half the crowd is reversed: only the one who is known decides the sign, even with few answers."""
    crowd = mixed_crowd(items=12, kinds={"good": 5, "reversed": 5}, votes_each=40, seed=4)
    name = str(crowd.judgments.annotators[0])
    ranking = fit(BayesianCrowdBT(chains=2, draws=50, warmup=50), crowd.judgments, quality={name: 0.8})
    estimate, low, high = (part[0] for part in ranking.annotators.estimates["quality"])
    assert (estimate, low, high) == pytest.approx((0.8, 0.8, 0.8))
    assert ranking.parameters["flipped"] == 0


@pytest.mark.parametrize(
    ("model", "value", "word"),
    [(CrowdBT(), 1.2, "between 0 and 1"), (FactorBT(), -0.1, "between 0 and 1"), (VarianceBT(), 0.0, "positive")],
)
def test_a_quality_outside_the_models_range_is_refused(crowd, model, value, word):
    with pytest.raises(SettingError, match=word):
        fit(model, crowd.judgments, quality={str(crowd.judgments.annotators[0]): value})


def test_variance_bt_accepts_a_precision_above_one(crowd):
    name = str(crowd.judgments.annotators[0])
    assert estimates(VarianceBT(), crowd.judgments, quality={name: 2.5})[name] == pytest.approx(2.5, abs=0.03)


# The formulas behind it.

TOLD = EncodedSideInformation(quality={0: 0.7}, between={1: (0.4, 0.8), 2: (0.1, 0.9)}, better=((1, 2), (3, 1), (3, 4)))
every_formula = pytest.mark.parametrize("formula", [CROWD_BT, CROWD_BT_PROBIT, VARIANCE_BT, FACTOR_BT])
PEOPLE = 6


def told_priors(formula):
    constraints = quality_constraints(TOLD, formula, PEOPLE - 1, np.linspace(0.5, 4.0, PEOPLE))
    if formula in (CROWD_BT, CROWD_BT_PROBIT):
        return Priors(scale=2.0, virtual=0.3, quality=(3.0, 0.5), constraints=constraints)
    return Priors(scale=2.0, logit=(0.5, 1.5), feature_weight=0.7, constraints=constraints)


def near_constraints(formula, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=0.1, size=PEOPLE) + np.array([0.8, 0.3, 0.2, 0.35, 0.3, PERFECT_LOGIT])
    if formula == VARIANCE_BT:
        logits -= np.array([1.2, 0.8, 0.9, 0.9, 0.8, PERFECT_LOGIT])
    return rng.normal(size=4), logits, rng.normal(size=(PEOPLE, 2))


def parted(x):
    return x[:4], x[4 : 4 + PEOPLE], x[4 + PEOPLE :].reshape(PEOPLE, 2)


@every_formula
def test_gradients_of_priors_agree_with_finite_differences(formula):
    priors = told_priors(formula)
    x = np.concatenate([np.ravel(part) for part in near_constraints(formula)])
    gradient = priors.evaluate(*parted(x), formula).gradient
    for n in range(len(x)):
        step = 2e-6 * (np.arange(len(x)) == n)
        ends = [priors.evaluate(*parted(x + sign * step), formula).value for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 4e-6 == pytest.approx(gradient[n], rel=1e-6, abs=1e-6)


def curvature_matrix(priors, x, formula):
    """The curvature of the priors as a matrix."""
    found = priors.evaluate(*parted(x), formula)
    matrix = np.diag(found.curvature)
    first, second, curvature = found.pairs
    np.subtract.at(matrix, (4 + first, 4 + second), curvature)
    np.subtract.at(matrix, (4 + second, 4 + first), curvature)
    return matrix


@every_formula
def test_curvature_of_priors_agrees_with_differences_of_gradients(formula):
    priors = told_priors(formula)
    x = np.concatenate([np.ravel(part) for part in near_constraints(formula)])
    matrix = curvature_matrix(priors, x, formula)
    np.testing.assert_array_equal(matrix, matrix.T)
    for n in range(len(x)):
        step = 1e-6 * (np.arange(len(x)) == n)
        ends = [priors.evaluate(*parted(x + sign * step), formula).gradient for sign in (1, -1)]
        np.testing.assert_allclose(-(ends[0] - ends[1]) / 2e-6, matrix[n], rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("model", "formula", "of_logits"),
    [
        (CrowdBT(tolerance=1e-8), CROWD_BT, {"quality": (3.0, 0.5)}),
        (FactorBT(tolerance=1e-8, feature_weight_scale=1.0), FACTOR_BT, {"logit": (2.0, 1.5), "feature_weight": 1.0}),
        (VarianceBT(tolerance=1e-8), VARIANCE_BT, {"logit": (0.0, 1.0)}),
    ],
    ids=["crowd-bt", "factor-bt", "variance-bt"],
)
@pytest.mark.parametrize("ordered", [True, False], ids=["with an order", "without"])
def test_errors_are_those_of_the_whole_inverse(crowd, model, formula, of_logits, ordered):
    (good, *_), (noisy, other, *_) = good_and_noisy(crowd)
    order = [(noisy, good), (noisy, other)] if ordered else []
    votes = crowd.judgments
    known = SideInformation(better=order, between={other: (0.5, 0.9)}, gold=gold_pairs(crowd))
    options = FitOptions(side_information=known.encode(votes))
    features = ScaledFeatures(("position",), {"position": 1.0}) if formula == FACTOR_BT else None
    estimate = fit_map(model, votes, formula, Priors(scale=3.0, **of_logits), options, features)
    matrix = estimate.curvature.matrix()
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9 * np.abs(matrix).max())
    way = np.random.default_rng(0).normal(size=len(matrix))
    np.testing.assert_allclose(estimate.curvature.product(way), matrix @ way, rtol=1e-8, atol=1e-6)
    whole, items, people = np.linalg.inv(matrix), len(votes.items), len(votes.annotators)
    covariance, errors = estimate.curvature.marginal()
    np.testing.assert_allclose(covariance, whole[:items, :items], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(errors[:people, 0], np.sqrt(np.diag(whole))[items : items + people], rtol=1e-6)


def test_the_whole_curvature_is_the_derivative_of_the_gradient(crowd):
    (good, *_), (noisy, *_) = good_and_noisy(crowd)
    known = SideInformation(better=[(noisy, good)], gold=gold_pairs(crowd)).encode(crowd.judgments)
    priors, options = Priors(scale=3.0, quality=(3.0, 0.5)), FitOptions(side_information=known)
    estimate = fit_map(CrowdBT(), crowd.judgments, CROWD_BT, priors, options)
    objective, x = estimate.objective, estimate.found.parameters
    matrix = estimate.curvature.matrix()
    for n in range(len(x)):
        step = 1e-6 * (np.arange(len(x)) == n)
        ends = [objective(x + sign * step).gradient for sign in (1, -1)]
        np.testing.assert_allclose(-(ends[0] - ends[1]) / 2e-6, matrix[n], rtol=1e-4, atol=2e-4)


def test_gold_without_weight_only_decides_the_sign(crowd):
    told = fit(CrowdBT(), crowd.judgments, gold=gold_pairs(crowd), gold_weight=0.0)
    np.testing.assert_allclose(told.scores, CrowdBT().fit(crowd.judgments).scores, atol=1e-9)


def test_side_information_goes_by_name(crowd):
    """It is encoded for the judgments of each fit, and applies to a part of them as well."""
    name = good_and_noisy(crowd)[0][0]
    half = crowd.judgments.take(np.arange(0, len(crowd.judgments), 2))
    assert estimates(CrowdBT(), half, quality={name: 0.6})[name] == pytest.approx(0.6, abs=0.01)
    assert estimates(CrowdBT(), half)[name] > 0.7
