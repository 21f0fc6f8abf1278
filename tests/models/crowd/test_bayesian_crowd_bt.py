"""Crowd-BT's posterior: coverage of intervals, convergence, and the posterior mean against the mode."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import expit, ndtr

from crowdrank import BayesianCrowdBT, Comparisons, CrowdBT
from crowdrank.errors import ConvergenceWarning, SettingError
from crowdrank.evaluation import accuracy
from crowdrank.inference.mcmc import sample
from crowdrank.models.crowd.bayesian_crowd_bt import PosteriorDraws, _parameters
from crowdrank.simulation import crowd_bt, mixed_crowd

ITEMS, PEOPLE, ANSWERS, CROWDS = 15, 12, 600, 14
PRIORS = {"given": {"prior_scale": 1.5, "quality_prior": (4.0, 1.5)}, "learnt": {}}


def drawn_from_the_model(seed):
    """Scores and qualities from their priors, answers from both; items are named in an order of no meaning."""
    rng = np.random.default_rng(seed)
    scores, quality = rng.normal(scale=1.5, size=ITEMS), rng.beta(4.0, 1.5, size=PEOPLE)
    left = rng.integers(ITEMS, size=ANSWERS)
    right = (left + rng.integers(1, ITEMS, size=ANSWERS)) % ITEMS
    who = rng.integers(PEOPLE, size=ANSWERS)
    truly, honest = rng.random(ANSWERS) < expit(scores[left] - scores[right]), rng.random(ANSWERS) < quality[who]
    names = np.array([f"i{n:02d}" for n in range(ITEMS)], dtype=object)
    won = np.where(truly == honest, left, right)
    votes = Comparisons.of(names[left], names[right], names[won], annotator=[f"w{k:02d}" for k in who])
    return votes, scores - scores.mean(), quality


def posterior_of(model, votes):
    """All draws, of which a ranking shows but the intervals."""
    sampler = model.sampler(votes)
    samples = sample(
        lambda rng: sampler.tune(rng, sampler.init(rng), model.warmup),
        sampler.sample,
        _parameters,
        chains=model.chains,
        warmup=0,
        draws=model.draws,
        thin=4,
        seed=model.seed,
    )
    drawn = PosteriorDraws.of(samples, votes, sampler)
    return model._ranking(votes, drawn, 4 * model.draws), drawn.quality


@cache
def coverage(priors):
    """How often 90 % intervals of scores, ranks and qualities hold the truth, over several crowds."""
    model = BayesianCrowdBT(chains=2, draws=100, warmup=200, **PRIORS[priors])
    inside = []
    for seed in range(CROWDS):
        votes, scores, quality = drawn_from_the_model(seed)
        ranking, of_quality = posterior_of(model, votes)
        ranks = 1 + np.sum(scores > scores[:, None], axis=1)
        inside.append(
            [
                held(*np.quantile(ranking.uncertainty.draws, (0.05, 0.95), axis=0), scores),
                held(*ranking.rank_intervals(0.9), ranks),
                held(*np.quantile(of_quality, (0.05, 0.95), axis=0), quality),
            ]
        )
    return dict(zip(("scores", "ranks", "quality"), np.mean(inside, axis=0), strict=True))


def held(low, high, truth):
    return np.mean((low <= truth) & (truth <= high))


@pytest.mark.filterwarnings("ignore:bayesian:crowdrank.errors.ConvergenceWarning")
@pytest.mark.parametrize("priors", PRIORS)
@pytest.mark.parametrize("of", ["scores", "ranks", "quality"])
def test_intervals_hold_the_truth_as_often_as_they_say(priors, of):
    """Ranks are whole numbers: an interval holds at least what it says, often a little more.

    Learnt priors are wider than those these crowds were drawn from: of these 168 qualities, long chains hold 0.958.
    """
    most = 0.98 if of == "ranks" else 0.975 if (of, priors) == ("quality", "learnt") else 0.95
    assert 0.85 <= coverage(priors)[of] <= most


@pytest.mark.filterwarnings("ignore:bayesian:crowdrank.errors.ConvergenceWarning")
def test_priors_that_are_wrong_are_noticed():
    """The negative control: with scores taken for a third as wide as they are, intervals hold too little."""
    model = BayesianCrowdBT(chains=2, draws=50, warmup=100, prior_scale=0.3, quality_prior=(4.0, 1.5))
    inside = []
    for seed in range(4):
        votes, scores, _ = drawn_from_the_model(seed)
        ranking = model.fit(votes)
        inside.append(held(*np.quantile(ranking.uncertainty.draws, (0.05, 0.95), axis=0), scores))
    assert np.mean(inside) < 0.8


@pytest.fixture(scope="module")
def crowd():
    return mixed_crowd(items=10, kinds={"good": 5, "noisy": 3}, votes_each=40, seed=1)


@pytest.fixture(scope="module")
def ranking(crowd):
    return BayesianCrowdBT(chains=2).fit(crowd.judgments)


def test_an_ordinary_crowd_converges(ranking):
    assert ranking.convergence.converged
    assert ranking.parameters["r_hat"] <= 1.05
    assert ranking.parameters["effective_size"] > 50
    assert 0.1 < ranking.parameters["accepted"] < 0.9
    assert ranking.parameters["flipped"] == 0


def test_chains_cut_very_short_are_warned_of(crowd):
    with pytest.warns(ConvergenceWarning, match="R̂ above 1, so the chains have not converged.*Raise max_sweeps"):
        cut = BayesianCrowdBT(chains=4, draws=10, warmup=0, max_sweeps=10).fit(crowd.judgments)
    assert not cut.convergence.converged
    assert cut.convergence.steps == 10


def test_chains_go_on_until_they_have_converged(crowd):
    """A round that has not converged is followed by one twice as long, as long as max_sweeps allows it."""
    model = BayesianCrowdBT(chains=2, draws=100, warmup=50, max_sweeps=3000)
    assert model.fit(crowd.judgments).convergence.steps in (400, 1200, 2800)
    with pytest.warns(ConvergenceWarning):
        longest = replace(model, r_hat=1.0001).fit(crowd.judgments)
    assert longest.convergence.steps == 400 + 800 + 1600


@pytest.mark.parametrize("seed", range(6))
def test_a_small_clean_crowd_converges(seed):
    """Few annotators who are nearly always right: the scale of scores, qualities and their priors are coupled."""
    rng = np.random.default_rng(seed)
    scores, quality, votes = rng.normal(scale=2.0, size=10), rng.uniform(0.95, 1.0, 5), 100 + 40 * seed
    left, who = rng.integers(10, size=votes), rng.integers(5, size=votes)
    right = (left + rng.integers(1, 10, size=votes)) % 10
    truly, honest = rng.random(votes) < expit(scores[left] - scores[right]), rng.random(votes) < quality[who]
    names = np.array([f"i{n}" for n in range(10)], dtype=object)
    won = np.where(truly == honest, left, right)
    ranking = BayesianCrowdBT().fit(Comparisons.of(names[left], names[right], names[won], annotator=who.astype(str)))
    assert ranking.convergence.converged
    assert ranking.convergence.steps <= 7000
    assert accuracy(ranking.scores, scores) > 0.8


@pytest.mark.filterwarnings("ignore:bayesian:crowdrank.errors.ConvergenceWarning")
def test_the_posterior_mean_beats_the_mode():
    gained = []
    for seed in range(6):
        crowd = crowd_bt(items=30, annotators=20, pairs=120, votes=5, quality="beta(2,1)", seed=seed)
        model = BayesianCrowdBT(chains=2, draws=60, warmup=200)
        gained.append([accuracy(m.fit(crowd.judgments).scores, crowd.truth) for m in (model, CrowdBT())])
    bayes, point = np.mean(gained, axis=0)
    assert bayes > point + 0.005


def error_of(ranking):
    return ranking.uncertainty.std_error / np.sqrt(ranking.parameters["effective_size"])


def test_the_same_seed_gives_the_same_answer_and_another_nearly(crowd, ranking):
    np.testing.assert_array_equal(BayesianCrowdBT(chains=2).fit(crowd.judgments).scores, ranking.scores)
    other = BayesianCrowdBT(chains=2, seed=1).fit(crowd.judgments)
    assert not np.array_equal(other.scores, ranking.scores)
    assert np.all(np.abs(other.scores - ranking.scores) < 6 * error_of(ranking))


def test_names_of_items_do_not_matter(crowd, ranking):
    votes, items = crowd.judgments, len(crowd.judgments.items)
    frame = votes.to_frame()
    new = dict(zip(map(str, votes.items.labels), (f"x{n:02d}" for n in reversed(range(items))), strict=True))
    left, right, winner = (frame[c].replace(new) for c in ("left", "right", "winner"))
    renamed = BayesianCrowdBT(chains=2).fit(Comparisons.of(left, right, winner, annotator=frame["annotator"]))
    assert np.all(np.abs(renamed.scores[::-1] - ranking.scores) < 6 * error_of(ranking))


def test_reversed_answers_reverse_the_scores(crowd, ranking):
    reversed_ = BayesianCrowdBT(chains=2).fit(crowd.judgments.with_outcomes_reversed())
    assert np.all(np.abs(reversed_.scores + ranking.scores) < 6 * error_of(ranking))
    near = np.abs(reversed_.annotators["quality"] - ranking.annotators["quality"])
    assert near.max() < 0.05


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.filterwarnings("ignore:bayesian:crowdrank.errors.ConvergenceWarning")
def test_predictions_are_averages_over_the_posterior(crowd, link):
    model = BayesianCrowdBT(chains=2, draws=20, warmup=50, link=link)
    ranking, votes = model.fit(crowd.judgments), crowd.judgments
    found = model.predict(ranking, votes)
    draws = ranking.uncertainty.draws
    for row in (0, 7, 40):
        margin = draws[:, votes.left[row]] - draws[:, votes.right[row]]
        truthful = np.mean(expit(margin) if link == "logistic" else ndtr(margin / np.sqrt(2)))
        eta = ranking.annotators["quality"][votes.annotator[row]]
        chance = eta * truthful + (1 - eta) * (1 - truthful)
        assert found[row] == pytest.approx([chance, 0.0, 1 - chance])
    margin = ranking.scores[votes.left] - ranking.scores[votes.right]
    assert np.any(np.abs(found[:, 0] - CrowdBT(link=link).predict(ranking, votes)[:, 0]) > 0.005)
    assert np.corrcoef(found[:, 0], margin)[0, 1] > 0.7


@pytest.mark.filterwarnings("ignore:bayesian:crowdrank.errors.ConvergenceWarning")
def test_half_a_crowd_reversed_is_not_averaged_away():
    """Both signs are equally likely: all draws get one of them, and the share of flipped draws is reported."""
    crowd = mixed_crowd(items=8, kinds={"good": 3, "reversed": 3}, votes_each=20, seed=1)
    ranking = BayesianCrowdBT(chains=4, draws=50, quality_prior=(1.0, 1.0)).fit(crowd.judgments)
    assert 0 <= ranking.parameters["flipped"] <= 1
    assert accuracy(ranking.scores, crowd.truth) not in np.linspace(0.2, 0.8)
    assert max(accuracy(ranking.scores, crowd.truth), accuracy(-ranking.scores, crowd.truth)) > 0.85
    quality = ranking.annotators["quality"]
    assert abs(np.mean(quality[crowd.annotators["kind"] == "good"]) - 0.5) > 0.3


def test_a_reversed_draw_is_flipped_as_a_whole(crowd):
    model = BayesianCrowdBT(chains=2, draws=10)
    sampler = model.sampler(crowd.judgments)
    items, people = len(crowd.judgments.items), len(crowd.judgments.annotators)
    scores, quality = sampler.start_scores, expit(sampler.start_logits)
    straight = np.concatenate((scores, quality, np.log((2.0, 3.0, 0.5))))
    mirror = np.concatenate((-scores, 1 - quality, np.log((2.0, 0.5, 3.0))))
    samples = replace(
        sample(sampler.init, sampler.sample, _parameters, chains=2, warmup=0, draws=4, thin=1, seed=0),
        draws=np.array([[straight, mirror, straight, mirror]] * 2),
    )
    drawn = PosteriorDraws.of(samples, crowd.judgments, sampler)
    assert drawn.flipped == 0.5
    np.testing.assert_allclose(drawn.scores, np.tile(crowd.judgments.items.centre(scores), (8, 1)))
    np.testing.assert_allclose(drawn.quality, np.tile(quality, (8, 1)))
    np.testing.assert_allclose(drawn.hyper, [2.0, 3.0, 0.5])
    one_known = replace(sampler, bounds=sampler.bounds._replace(high=np.full(people, 0.99)))
    assert PosteriorDraws.of(samples, crowd.judgments, one_known).flipped == 0
    assert drawn.scores.shape == (8, items)
    assert drawn.quality.shape == (8, people)


def test_learnt_hyperparameters_are_reported(ranking):
    assert 0.5 < ranking.parameters["prior_scale"] < 10
    assert ranking.parameters["quality_prior_alpha"] > ranking.parameters["quality_prior_beta"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"prior_scale": 0.0},
        {"prior_scale": "auto"},
        {"quality_prior": (1.0, 0.0)},
        {"quality_prior": "auto"},
        {"link": "cauchy"},
        {"chains": 1},
        {"draws": 5},
        {"warmup": -1},
        {"r_hat": 1.0},
        {"max_sweeps": 5},
    ],
    ids=str,
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(SettingError):
        BayesianCrowdBT(**wrong)
