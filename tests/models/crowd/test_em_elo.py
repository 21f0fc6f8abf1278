"""EMeloRating: EM over pairs and annotators, and the fixed point of Elo."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from crowdrank.errors import SettingError
from crowdrank.models.crowd.em_elo import EMElo, e_step, log_likelihood, pair_votes
from crowdrank.models.pairwise import elo
from crowdrank.simulation import mixed_crowd
from tests.strategies import comparisons, comparisons_of

quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
KINDS = {"good": 12, "noisy": 6, "reversed": 6}


@pytest.fixture(scope="module")
def crowd():
    return mixed_crowd(8, kinds=KINDS, votes_each=24, seed=1)


def log_posterior(model, votes, quality):
    right, wrong = model.quality_prior
    return log_likelihood(votes, quality) + float(np.sum(right * np.log(quality) + wrong * np.log1p(-quality)))


@quick
@given(votes=comparisons())
def test_em_never_decreases_the_log_posterior(votes):
    model, answers = EMElo(), pair_votes(votes, "half")
    quality = np.random.default_rng(0).uniform(0.05, 0.95, answers.annotators)
    values = []
    for _ in range(15):
        values.append(log_posterior(model, answers, quality))
        quality = model._m_step(answers, e_step(answers, quality))
    assert (np.diff(values) >= -1e-10).all()
    assert values[-1] > values[0]


def test_em_ends_at_a_maximum(crowd):
    model = EMElo(tolerance=1e-10)
    ranking, answers = model.fit(crowd.judgments), pair_votes(crowd.judgments, "half")
    quality, rng = ranking.annotators["quality"], np.random.default_rng(0)
    best = log_posterior(model, answers, quality)
    assert ranking.log_likelihood == pytest.approx(log_likelihood(answers, quality))
    for _ in range(30):
        assert log_posterior(model, answers, quality + 1e-4 * rng.normal(size=len(quality))) < best


def test_a_worked_example():
    """Two of three say a; a quality of 2/3 each makes that odds of two to one, and one round of EM from there."""
    votes = comparisons_of(None, [0, 0, 0], [1, 1, 1], [1, 1, -1], annotator=[0, 1, 2])
    answers = pair_votes(votes, "half")
    chance = e_step(answers, np.full(3, 2 / 3))
    np.testing.assert_allclose(chance, [2 / 3])
    np.testing.assert_allclose(EMElo(quality_prior=(2, 1))._m_step(answers, chance), [8 / 12, 8 / 12, 7 / 12])
    # either a is better, and two are right and one wrong, or b
    assert np.exp(log_likelihood(answers, np.full(3, 2 / 3))) == pytest.approx((2 / 3 * 2 / 9 + 1 / 3 * 2 / 9) / 2)


def test_one_pass_moves_by_the_mean_surprise():
    """From equal ratings an item that surely won and one that surely lost move by half a step each."""
    votes = comparisons_of(None, [0, 0], [1, 2], [1, 1], annotator=[0, 1])
    ranking = EMElo(passes=1, step=20, quality_prior=(1e9, 1.0)).fit(votes)
    # i0 won twice, which is +10 on the mean; the others lost once each; then all are centred
    np.testing.assert_allclose(ranking.scores - 1500, np.array([10, -10, -10]) + 10 / 3, atol=1e-6)


def test_elo_ends_where_single_games_in_random_order_end(crowd):
    """Played one after the other in random order with a falling step, as Elo would be."""
    votes, rng = pair_votes(crowd.judgments, "half"), np.random.default_rng(0)
    chance = rng.uniform(0.2, 0.8, len(votes.pairs))
    at_rest = EMElo(passes=500)._run_elo(votes, chance, crowd.judgments.items)
    ratings, kept = np.full(8, 1500.0), []
    for n in range(600):
        order = rng.permutation(len(votes.pairs))
        first, second, outcome = votes.first[order], votes.second[order], 2 * chance[order] - 1
        step = 32.0 / (1 + n / 20)
        elo.update_ratings.function(first, second, outcome, np.ones(len(order)), ratings, step, np.log(10) / 400)
        kept.append(ratings.copy())
    assert np.ptp(at_rest) > 50
    np.testing.assert_allclose(np.mean(kept[300:], axis=0), at_rest, atol=1.0)


def test_reversed_annotators_are_found(crowd):
    ranking = EMElo().fit(crowd.judgments)
    quality, low, high = ranking.annotators.estimates["quality"]
    kind = crowd.annotators["kind"]
    assert quality[kind == "reversed"].max() < 0.5 < quality[kind == "good"].min()
    assert ((low < quality) & (quality < high)).all()
    assert ranking.annotators.reversed
    assert np.corrcoef(ranking.scores, crowd.truth)[0, 1] > 0.9


def test_a_few_who_answer_much_do_not_reverse_the_order():
    crowd = mixed_crowd(8, kinds={"noisy": 30, "reversed": 8}, votes_each=20, seed=2)
    votes, kind = crowd.judgments, crowd.annotators["kind"]
    loud = votes.reweighted(np.where(kind[votes.annotator] == "reversed", 4.0, 1.0))
    assert np.dot(loud.counts.net_wins, crowd.truth - crowd.truth.mean()) < 0
    assert np.corrcoef(EMElo().fit(loud).scores, crowd.truth)[0, 1] > 0.8


def test_errors_are_of_the_size_of_what_varies():
    """Ratings of many crowds from the same truth, against the bootstrap of two."""
    truth, kinds = {f"i{n:02}": float(n) for n in range(12)}, {"good": 8, "noisy": 8}
    crowds = [mixed_crowd(truth, kinds=kinds, votes_each=15, seed=seed) for seed in range(20)]
    rankings = [EMElo().fit(crowd.judgments) for crowd in crowds]
    varied = np.std([ranking.scores for ranking in rankings], axis=0, ddof=1).mean()
    answers = np.mean([ranking.uncertainty.std_error.mean() for ranking in rankings[:2]])
    assert 0.8 < answers / varied < 1.8


def test_predictions_depend_on_quality(crowd):
    model, votes = EMElo(), crowd.judgments
    ranking = model.fit(votes)
    found = model.predict(ranking, votes)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    odds = 10 ** ((ranking.scores[votes.left] - ranking.scores[votes.right]) / 400)
    better, quality = odds / (1 + odds), ranking.annotators["quality"][votes.annotator]
    np.testing.assert_allclose(found[:, 0], quality * better + (1 - quality) * (1 - better))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"quality_prior": (0.0, 1.0)}, "two positive numbers"),
        ({"step": 500.0}, "less than scale"),
        ({"passes": 0}, "at least 1"),
        ({"ties": "model"}, "drop or half"),
    ],
    ids=str,
)
def test_settings_that_mean_nothing_are_refused(setting, message):
    with pytest.raises(SettingError, match=message):
        EMElo(**setting)
