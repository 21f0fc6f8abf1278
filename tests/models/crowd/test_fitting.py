"""Ways to fit Crowd-BT and its relatives: all end at the optimum, with the right sign, with settings chosen by data."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, log_ndtr, logit, ndtr

from crowdrank import Comparisons, CrowdBT, FactorBT, SideInformation, VarianceBT
from crowdrank.data import Items
from crowdrank.engines import LOCAL
from crowdrank.errors import SettingError
from crowdrank.evaluation import accuracy
from crowdrank.models.base import FitOptions
from crowdrank.models.cross_validation import CANDIDATES, assign_folds, log_probabilities, tune_settings
from crowdrank.models.crowd import Priors, fit_map
from crowdrank.models.crowd.encoding import encode_answers, gold_accuracy
from crowdrank.models.crowd.fitting import StartingValues, best_logits
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT
from crowdrank.models.crowd.objective import Layout, Objective
from crowdrank.models.crowd.priors import PERFECT_LOGIT
from crowdrank.simulation import crowd_bt, mixed_crowd
from tests.strategies import joint_crowd_bt

links = pytest.mark.parametrize("link", ["logistic", "probit"])


@pytest.fixture(scope="module")
def crowd():
    return crowd_bt(
        items=15, annotators=12, pairs=70, votes=7, quality="beta(4,1.5)", labels="logistic", scale=1.5, seed=3
    )


def winners_and_losers(votes):
    left_won = votes.outcome > 0
    return np.where(left_won, votes.left, votes.right), np.where(left_won, votes.right, votes.left)


# The objectives, written again from the papers, over (scores, logits, weights).


def crowd_bt_objective(model, votes, x):
    """Eq. 8 and eq. 9, with a normal prior on scores and Beta's on η as a density of its logit."""
    scores, logits = np.split(x, [len(votes.items)])
    won, lost = winners_and_losers(votes)
    log_truthful = log_expit if model.link == "logistic" else lambda d: log_ndtr(d / np.sqrt(2))
    margin = scores[won] - scores[lost]
    informative, lying = log_expit(logits)[votes.annotator], log_expit(-logits)[votes.annotator]
    value = votes.weights @ np.logaddexp(informative + log_truthful(margin), lying + log_truthful(-margin))
    if model.prior_scale is not None:
        value -= 0.5 * scores @ scores / model.prior_scale**2
    value += model.virtual_weight * (log_truthful(scores) + log_truthful(-scores)).sum()
    alpha, beta = model.quality_prior or (0.0, 0.0)
    return float(value + alpha * log_expit(logits).sum() + beta * log_expit(-logits).sum())


def factor_bt_objective(model, votes, x):
    """Eq. 3 of Bugakova et al. with the position as the only feature, and normal priors."""
    scores, logits, weights = np.split(x, [len(votes.items), len(votes.items) + len(votes.annotators)])
    won, lost = winners_and_losers(votes)
    bias = np.where(votes.outcome > 0, 1.0, -1.0) * weights[votes.annotator]
    attention = expit(logits)[votes.annotator]
    value = votes.weights @ np.log(attention * expit(scores[won] - scores[lost]) + (1 - attention) * expit(bias))
    value -= 0.5 * scores @ scores / model.prior_scale**2 + 0.5 * weights @ weights / model.feature_weight_scale**2
    mean, spread = model.attention_prior
    return float(value - 0.5 * np.sum((logits - mean) ** 2) / spread**2)


def variance_bt_objective(model, votes, x):
    scores, logits = np.split(x, [len(votes.items)])
    won, lost = winners_and_losers(votes)
    value = votes.weights @ log_expit(np.exp(logits)[votes.annotator] * (scores[won] - scores[lost]))
    return float(
        value - 0.5 * scores @ scores / model.prior_scale**2 - 0.5 * logits @ logits / model.precision_scale**2
    )


def parameters_of(ranking):
    """Where the model says it stands. Scores are centred, which a prior around zero does anyway."""
    people = ranking.annotators
    if "precision" in people.estimates:
        return np.concatenate((ranking.scores, np.log(people["precision"])))
    if "attention" in people.estimates:
        return np.concatenate((ranking.scores, logit(people["attention"]), people["weight_of_position"]))
    return np.concatenate((ranking.scores, logit(people["quality"])))


OBJECTIVES = {CrowdBT: crowd_bt_objective, FactorBT: factor_bt_objective, VarianceBT: variance_bt_objective}
MODELS = {
    "crowd-bt": joint_crowd_bt(tolerance=1e-7),
    "crowd-bt probit": joint_crowd_bt(tolerance=1e-7, link="probit"),
    "crowd-bt alternating": joint_crowd_bt(tolerance=1e-6, solver="alternating"),
    "crowd-bt virtual item": joint_crowd_bt(tolerance=1e-7, virtual_weight=0.5),
    "factor-bt": FactorBT(tolerance=1e-7, feature_weight_scale=1.0),
    "factor-bt by conjugate gradients": FactorBT(
        tolerance=1e-5, feature_weight_scale=1.0, solver="conjugate-gradients"
    ),
    "variance-bt": VarianceBT(tolerance=1e-7),
}
every_model = pytest.mark.parametrize("model", list(MODELS.values()), ids=list(MODELS))


def best_gain(objective, x, step=1e-2, ways=40):
    """The largest gain of small steps: along each parameter both ways, and some directions at random."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(ways, len(x)))
    directions = [*np.eye(len(x)), *-np.eye(len(x)), *(drawn / np.linalg.norm(drawn, axis=1)[:, None])]
    here_now = objective(x)
    return max(objective(x + step * way) for way in directions) - here_now


@every_model
def test_ends_at_the_optimum(crowd, model):
    votes = crowd.judgments
    ranking = model.fit(votes)
    assert ranking.convergence.converged
    x, objective = parameters_of(ranking), OBJECTIVES[type(model)]
    if getattr(model, "virtual_weight", 0):  # both priors hold the level
        shift = minimize_scalar(lambda by: -objective(model, votes, shifted(x, by, votes))).x
        x = shifted(x, shift, votes)
    # a step of 1e-2 loses ½·h·1e-4, where the curvature h is at least that of a prior, about 0.1
    assert best_gain(lambda at: objective(model, votes, at), x) < 0
    rival = minimize(lambda at: -objective(model, votes, at), x, method="L-BFGS-B", options={"maxiter": 15})
    assert -rival.fun <= objective(model, votes, x) + 1e-6


def shifted(x, by, votes):
    return np.append(x[: len(votes.items)] + by, x[len(votes.items) :])


@every_model
@pytest.mark.parametrize("place", [0, 15, -1], ids=["a score", "a logit", "the last"])
def test_a_step_aside_is_noticed(crowd, model, place):
    """The negative control of the test above."""
    x, objective = parameters_of(model.fit(crowd.judgments)), OBJECTIVES[type(model)]
    x[place] += 0.1
    assert best_gain(lambda at: objective(model, crowd.judgments, at), x) > 0


@every_model
def test_the_log_likelihood_is_that_of_the_answers(crowd, model):
    votes, ranking = crowd.judgments, model.fit(crowd.judgments)
    flat = replace(
        model,
        prior_scale=1e9,
        **{
            CrowdBT: {"quality_prior": (1e-12, 1e-12), "virtual_weight": 0.0},
            FactorBT: {"attention_prior": (0.0, 1e9), "feature_weight_scale": 1e9},
            VarianceBT: {"precision_scale": 1e9},
        }[type(model)],
    )
    expected = OBJECTIVES[type(model)](flat, votes, parameters_of(ranking))
    assert ranking.log_likelihood == pytest.approx(expected, rel=1e-9)


# Alternating and joint.

PRIORS = {
    "usual": {},
    "no prior of quality": {"quality_prior": None},
    "virtual item": {"prior_scale": None, "virtual_weight": 0.5},
    "as published": {"prior_scale": None, "virtual_weight": 0.5, "quality_prior": None},
}


@links
@pytest.mark.parametrize("priors", PRIORS)
def test_alternating_and_joint_reach_the_same_optimum(crowd, link, priors):
    usual = joint_crowd_bt(start="one", link=link, tolerance=1e-5, max_steps=500, **PRIORS[priors])
    votes = crowd.judgments
    joint, turns = (replace(usual, solver=solver).fit(votes) for solver in ("newton", "alternating"))
    assert joint.convergence.converged
    assert turns.convergence.converged
    np.testing.assert_allclose(joint.scores, turns.scores, atol=1e-3)
    np.testing.assert_allclose(joint.annotators["quality"], turns.annotators["quality"], atol=1e-3)
    values = [log_posterior(usual, votes) for usual in (usual, replace(usual, solver="alternating"))]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def map_estimate(model, votes):
    priors = Priors(scale=model.prior_scale, virtual=model.virtual_weight, quality=model.quality_prior)
    formula = CROWD_BT if model.link == "logistic" else CROWD_BT_PROBIT
    solver = "joint" if model.solver == "newton" else model.solver
    return fit_map(model, votes, formula, priors, FitOptions(), start=model.start, solver=solver)


def log_posterior(model, votes):
    return map_estimate(model, votes).found.evaluation.value


def objective_of(votes, formula=CROWD_BT, **priors):
    answers = encode_answers(votes)
    layout = Layout(len(votes.items), max(1, len(votes.annotators)))
    return Objective(LOCAL.load(answers), layout, formula, Priors(**({"scale": 3.0} | priors)))


@links
@pytest.mark.parametrize("quality", [None, (3.0, 0.5), (1.0, 1.0)], ids=["no prior", "usual", "even"])
def test_each_quality_is_set_to_the_best_given_the_scores(crowd, link, quality):
    votes = crowd.judgments
    objective = objective_of(votes, CROWD_BT if link == "logistic" else CROWD_BT_PROBIT, quality=quality)
    scores = np.random.default_rng(1).normal(size=len(votes.items))
    found = expit(best_logits(objective, scores))
    won, lost = winners_and_losers(votes)
    margin = scores[won] - scores[lost]
    truthful = expit(margin) if link == "logistic" else ndtr(margin / np.sqrt(2))
    alpha, beta = quality or (0.0, 0.0)
    for k in range(len(votes.annotators)):
        own = truthful[votes.annotator == k]

        def loss(eta, own=own):
            of_prior = alpha * np.log(eta) + beta * np.log1p(-eta)
            return -np.log(eta * own + (1 - eta) * (1 - own)).sum() - of_prior

        best = minimize_scalar(loss, bounds=(1e-12, 1 - 1e-12), method="bounded", options={"xatol": 1e-10})
        assert found[k] == pytest.approx(best.x, abs=1e-5)
        assert loss(np.clip(found[k], 1e-12, 1 - 1e-12)) <= best.fun + 1e-8


def test_who_is_always_right_or_wrong_is_perfect_without_a_prior():
    votes = Comparisons.of(
        ["a", "b", "a", "a", "b", "a"],
        ["b", "c", "c", "b", "c", "c"],
        ["a", "b", "a", "b", "c", "c"],
        annotator=["right"] * 3 + ["wrong"] * 3,
    )
    logits = best_logits(objective_of(votes), np.array([1.0, 0.0, -1.0]))
    np.testing.assert_allclose(logits, [PERFECT_LOGIT, -PERFECT_LOGIT], atol=0.01)


def test_an_annotator_without_answers_is_where_the_prior_says():
    votes = Comparisons.of(["a", "a"], ["b", "b"], ["a", "b"], annotator=["ann", "bob"]).take(np.array([0]))
    logits = best_logits(objective_of(votes, quality=(3.0, 0.5)), np.array([1.0, -1.0]))
    assert expit(logits[1]) == pytest.approx(3.0 / 3.5)


# Where to start.


def gold_of(crowd, apart=4):
    ordered = [str(crowd.judgments.items.labels[n]) for n in np.argsort(-crowd.truth)]
    return list(zip(ordered[:-apart], ordered[apart:], strict=True))


def test_the_share_right_on_gold_is_counted():
    votes = Comparisons.of(
        ["a", "b", "a", "a", "c"],
        ["b", "a", "b", "b", "b"],
        ["a", "a", "b", "tie", "c"],
        annotator=["ann", "ann", "bob", "cat", "dan"],
        weight=[1.0, 2.0, 1.0, 1.0, 1.0],
    )
    known = SideInformation(gold=[("a", "b")]).encode(votes)
    assert gold_accuracy(votes, known.gold_better, known.gold_worse).tolist() == [1.0, 0.0, 0.5, 0.5]


def test_a_start_from_gold_trusts_by_gold(crowd):
    votes = crowd.judgments
    known = SideInformation(gold=gold_of(crowd), gold_weight=0.0).encode(votes)
    objective = objective_of(votes, quality=(3.0, 0.5))
    starts = StartingValues(votes, objective, FitOptions(side_information=known), len(votes), 1e-4)
    (first,) = starts.candidates("gold", "alternating")
    scores, logits, _ = objective.layout.split(first)
    share = gold_accuracy(votes, known.gold_better, known.gold_worse)
    np.testing.assert_allclose(expit(logits), share, atol=1e-12)
    assert not scores.any()
    (second,) = starts.candidates("one", "alternating")
    np.testing.assert_array_equal(objective.layout.split(second)[1], PERFECT_LOGIT)


@pytest.mark.parametrize("solver", ["newton", "alternating"])
def test_a_start_from_gold_flips_a_mostly_reversed_crowd(solver):
    crowd = mixed_crowd(items=12, kinds={"good": 4, "reversed": 6}, votes_each=40, seed=2)
    known = SideInformation(gold=gold_of(crowd), gold_weight=0.0)
    one, gold = (joint_crowd_bt(start=start, solver=solver, tolerance=1e-3) for start in ("one", "gold"))
    assert accuracy(one.fit(crowd.judgments, side_information=known).scores, crowd.truth) < 0.2
    assert accuracy(gold.fit(crowd.judgments, side_information=known).scores, crowd.truth) > 0.9


def test_a_start_from_gold_may_take_what_all_agree_on():
    rng = np.random.default_rng(0)
    pairs = [(a, b) for a in range(4) for b in range(a)]
    rows = [(a, b, k) for a, b in pairs for k in range(14)]
    won = [max(a, b) if rng.random() < 0.97 else min(a, b) for a, b, _ in rows]
    votes = Comparisons.of(
        [f"i{a}" for a, *_ in rows],
        [f"i{b}" for _, b, _ in rows],
        [f"i{w}" for w in won],
        annotator=[f"w{k}" for *_, k in rows],
    )
    assert joint_crowd_bt(start="gold").fit(votes).order.tolist() == [3, 2, 1, 0]
    with pytest.raises(SettingError, match="needs gold pairs"):
        joint_crowd_bt(start="gold").fit(votes.take(np.flatnonzero(votes.annotator < 9)))


def test_several_starts_end_no_lower_than_one():
    """Except for a crowd whose majority flips the sign."""
    gained = []
    for seed in range(12):
        crowd = crowd_bt(items=12, annotators=10, pairs=40, votes=5, quality="beta(1,1)", seed=seed)
        starts = (joint_crowd_bt(start=start, tolerance=1e-6) for start in ("several", "one"))
        several, one = (map_estimate(model, crowd.judgments) for model in starts)
        if several.found.parameters[:12] @ one.found.parameters[:12] > 0:
            gained.append(several.found.evaluation.value - one.found.evaluation.value)
    assert len(gained) > 8
    assert min(gained) > -1e-4


def test_few_who_are_surely_reversed_do_not_outweigh_many_who_are_mostly_right():
    crowds = [mixed_crowd(items=12, kinds={"noisy": 12, "reversed": 5}, votes_each=60, seed=seed) for seed in range(4)]
    for crowd in crowds:
        assert accuracy(joint_crowd_bt().fit(crowd.judgments).scores, crowd.truth) > 0.8


# The sign of the scores.


@pytest.mark.parametrize("quality_prior", [None, (1.0, 1.0)], ids=["none", "even"])
@pytest.mark.parametrize("kinds", [{"good": 7, "reversed": 3}, {"good": 6, "reversed": 5}])
def test_symmetric_priors_follow_the_majority_of_annotators(kinds, quality_prior):
    """Each counts once, though the reversed answer twice as much."""
    crowd = mixed_crowd(items=12, kinds=kinds, votes_each=30, seed=5)
    often = np.where(crowd.annotators["kind"] == "reversed", 3.0, 1.0)[crowd.judgments.annotator]
    ranking = joint_crowd_bt(quality_prior=quality_prior).fit(crowd.judgments.reweighted(often))
    assert np.mean(ranking.annotators["quality"] > 0.5) > 0.5
    assert accuracy(ranking.scores, crowd.truth) > 0.9
    flipped = joint_crowd_bt(quality_prior=quality_prior).fit(crowd.judgments.with_outcomes_reversed())
    assert np.mean(flipped.annotators["quality"] > 0.5) > 0.5
    assert accuracy(flipped.scores, crowd.truth) < 0.1


# Weak priors.


def strongly_connected():
    rng = np.random.default_rng(8)
    truth = np.array([0.9, 0.3, -0.3, -0.9])
    pairs = np.array([(a, b) for a in range(4) for b in range(a)] * 60)
    left, right = pairs.T
    who = rng.integers(3, size=len(left)).astype(np.int32)
    quality = np.array([0.95, 0.85, 0.3])[who]
    chance = expit(truth[left] - truth[right])
    left_won = rng.random(len(left)) < quality * chance + (1 - quality) * (1 - chance)
    outcome = np.where(left_won, 1, -1).astype(np.int8)
    people = np.array(["a", "b", "c"], dtype=object)
    return Comparisons(
        items=Items.of(list("abcd")),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=outcome,
        annotators=people,
        annotator=who,
    )


@links
def test_weak_priors_tend_to_the_maximum_likelihood_estimate(link):
    votes = strongly_connected()
    flat = joint_crowd_bt(prior_scale=1e9, quality_prior=None, link=link)

    def loss(x):
        return -crowd_bt_objective(flat, votes, np.append(x[:3], [-x[:3].sum(), *x[3:]]))

    best = minimize(loss, np.array([0.5, 0.2, -0.2, 2.0, 2.0, -0.5]), method="BFGS", options={"gtol": 1e-7})
    expected = np.append(best.x[:3], -best.x[:3].sum())
    distance = []
    for weak in (1.0, 1e-2, 1e-4):
        published = joint_crowd_bt(prior_scale=None, virtual_weight=weak, quality_prior=None, link=link, tolerance=1e-6)
        usual = joint_crowd_bt(prior_scale=1 / weak, quality_prior=(weak, weak), link=link, tolerance=1e-6)
        distance.append([np.abs(model.fit(votes).scores - expected).max() for model in (published, usual)])
    assert np.all(np.diff(distance, axis=0) < 0)
    assert np.all(np.array(distance[-1]) < 2e-2)


# Settings chosen by cross-validation.


def predicted(model, votes):
    fold = assign_folds(votes, 5, "judgment", np.random.default_rng(model.seed))
    total = 0.0
    for n in range(5):
        unseen = votes.take(np.flatnonzero(fold == n))
        total += log_probabilities(model, model.fit(votes.take(np.flatnonzero(fold != n))), unseen).sum()
    return total


@pytest.fixture(scope="module")
def sharp():
    """Far from the usual settings: scores wide apart, half the annotators careless."""
    return crowd_bt(items=12, annotators=8, pairs=60, votes=5, quality="beta(1,1)", scale=6, labels="logistic", seed=9)


@pytest.mark.parametrize("name", ["prior_scale", "virtual_weight", "quality_prior"])
def test_a_setting_chosen_by_data_predicts_no_worse(sharp, name):
    ranking = joint_crowd_bt(**{name: "auto"}).fit(sharp.judgments)
    chosen = ranking.settings[name]
    assert chosen in (0.0, *CANDIDATES[name])
    known = joint_crowd_bt(**{name: chosen})
    usual = joint_crowd_bt()
    assert predicted(known, sharp.judgments) >= predicted(usual, sharp.judgments) - 1e-9
    np.testing.assert_array_equal(known.fit(sharp.judgments).scores, ranking.scores)


def test_of_all_candidates_the_best_is_chosen(sharp):
    chosen = tune_settings(joint_crowd_bt(quality_prior="auto"), sharp.judgments, FitOptions())
    gained = [predicted(replace(chosen, quality_prior=value), sharp.judgments) for value in CANDIDATES["quality_prior"]]
    assert CANDIDATES["quality_prior"][int(np.argmax(gained))] == chosen.quality_prior
    assert max(gained) > predicted(joint_crowd_bt(), sharp.judgments) + 1


def test_all_settings_may_be_left_to_the_data_and_the_choice_repeats(sharp):
    model = joint_crowd_bt(prior_scale="auto", quality_prior="auto")
    first, second = model.fit(sharp.judgments), model.fit(sharp.judgments)
    assert first.settings == second.settings
    assert isinstance(first.settings["prior_scale"], float)
    assert all(isinstance(count, float) for count in first.settings["quality_prior"])
    np.testing.assert_array_equal(first.scores, second.scores)


def test_too_few_judgments_to_choose_by_leave_the_usual_setting():
    votes = Comparisons.of(["a", "b", "a"], ["b", "c", "c"], ["a", "b", "a"], annotator=["x", "y", "x"])
    assert joint_crowd_bt(prior_scale="auto").fit(votes).settings["prior_scale"] == 3.0


def test_nothing_is_tried_where_nothing_is_left_open(sharp):
    model = joint_crowd_bt(prior_scale=2.0)
    assert tune_settings(model, sharp.judgments, FitOptions()) == model


@pytest.mark.parametrize(
    "wrong",
    [
        {"prior_scale": "best"},
        {"virtual_weight": -1.0},
        {"virtual_weight": "best"},
        {"quality_prior": "no"},
        {"quality_prior": (1.0, 2.0, 3.0)},
        {"start": "two"},
        {"solver": "conjugate-gradients"},
        {"prior_scale": None},
    ],
    ids=str,
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(SettingError):
        joint_crowd_bt(**wrong)
