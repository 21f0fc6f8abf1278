import time

import numpy as np
import pytest

from crowdrank.active.stopping import HORIZON, Accuracy, Forecast, Kendall, Order, Pair, Top, forecast
from crowdrank.errors import DataError, SettingError
from crowdrank.online import SequentialMCMC, Vocabulary
from crowdrank.online.sequential_mcmc import Draws


def believing(mean, spread=1.0, votes=100, draws=200, seed=0):
    """Beliefs about items with these means, with independent draws."""
    nobody = SequentialMCMC(draws=draws).empty()
    scores = np.asarray(mean) + spread * np.random.default_rng(seed).standard_normal((draws, len(mean)))
    scores -= scores.mean(axis=1, keepdims=True)
    item_columns = {"mean": scores.mean(axis=0), "variance": scores.var(axis=0)}
    return nobody.replace(
        items=Vocabulary.of([f"i{n}" for n in range(len(mean))]),
        draws=Draws(scores, np.zeros((draws, 0))),
        item_columns=item_columns,
        n_judgments=votes,
        winner=np.zeros(votes, np.int32),
    )


APART = (3.0, 2.0, 1.0, 0.0)


def test_a_decision_that_is_made_takes_no_more_votes():
    assert forecast(believing(APART, 0.1), Top(1)) == Forecast(100, 100, 100)


def test_the_median_lies_within_the_interval_and_beyond_the_votes_so_far():
    told = forecast(believing(APART), Top(1))
    assert 100 < told.low <= told.votes <= told.high


def test_a_wider_posterior_takes_longer():
    soon, late = (forecast(believing(APART, spread), Top(1), exponent=1.0).votes for spread in (0.7, 1.5))
    assert soon < late


def test_stricter_decisions_take_longer():
    beliefs = believing(APART)
    assert forecast(beliefs, Top(1), 0.8).votes < forecast(beliefs, Top(1), 0.99).votes
    assert forecast(beliefs, Kendall(0.8)).votes < forecast(beliefs, Kendall(0.97)).votes
    assert forecast(beliefs, Pair("i0", "i1")).votes < forecast(beliefs, Order()).votes


def test_a_larger_exponent_decides_sooner():
    slow, fast = (forecast(believing(APART), Top(1), exponent=exponent).votes for exponent in (1.0, 3.0))
    assert fast < slow


def test_tau_and_accuracy_are_equivalent():
    beliefs = believing(APART)
    assert forecast(beliefs, Kendall(0.9)) == forecast(beliefs, Accuracy(0.95))


def test_the_forecast_scales_with_the_votes_so_far():
    beliefs = believing(APART)
    by_judgments, by_votes = forecast(beliefs, Top(1)), forecast(beliefs, Top(1), votes=200)
    assert by_votes.votes == pytest.approx(2 * by_judgments.votes, abs=1)


def test_equal_items_with_a_small_exponent_are_never_decided():
    told = forecast(believing([0.0] * 12), Order(), exponent=0.3)
    assert np.isinf(told.votes)
    assert np.isinf(told.high)
    assert str(told).startswith("out of reach")


def test_nothing_is_forecast_beyond_a_hundred_times_the_votes():
    told = forecast(believing([0.0] * 12), Top(3), exponent=1.0)
    assert told.low <= 100 * HORIZON
    assert told.high == np.inf


def test_for_two_items_the_probability_of_a_decision_agrees_with_normal_theory(monkeypatch):
    """At exponent 1, four times the votes leave a quarter of the variance, and the mean has moved by three quarters."""
    monkeypatch.setattr("crowdrank.active.stopping._FACTORS", [4.0])
    monkeypatch.setattr("crowdrank.active.stopping._EXPONENT_SPREAD", 0.0)
    beliefs = believing((1.0, 0.0), draws=1000)
    lead = beliefs.draws.scores[:, 0] - beliefs.draws.scores[:, 1]
    sure = np.quantile((lead - lead.mean()) / lead.std(), 0.95) * np.sqrt(0.25)
    moved = lead.mean() / lead.std() + np.sqrt(0.75) * np.random.default_rng(5).standard_normal(100_000)
    expected = np.mean(np.abs(moved) > sure)
    told = [forecast(beliefs, Pair("i0", "i1"), exponent=1.0, paths=10, seed=seed) for seed in range(60)]
    # the median of ten paths is finite if at least five reach the decision
    assert np.mean([np.isfinite(one.votes) for one in told]) == pytest.approx(_five_of_ten(expected), abs=0.17)
    assert 0.3 < expected < 0.7


def _five_of_ten(chance):
    return np.mean(np.random.default_rng(6).binomial(10, chance, 100_000) >= 5)


@pytest.mark.parametrize("items", [4, 12])
def test_the_scale_of_the_scores_does_not_matter_with_many_items(items):
    """Multiplying all draws by two does not change the order."""
    beliefs = believing(np.arange(items) / 2)
    scores = beliefs.draws.scores * np.where(np.arange(200) % 2, 1.0, 2.0)[:, None]
    wider = beliefs.replace(draws=Draws(scores, beliefs.draws.qualities))
    assert (forecast(wider, Top(2)) == forecast(beliefs, Top(2))) == (items == 12)


def test_a_seed_gives_the_same_forecast_again():
    beliefs = believing(APART)
    assert forecast(beliefs, Top(2), seed=3) == forecast(beliefs, Top(2), seed=3)


@pytest.mark.parametrize("target", [Top(3), Kendall(0.97)], ids=str)
def test_a_thousand_items_take_no_longer_than_they_need(target):
    beliefs = believing(np.linspace(0, 40, 1000), 0.8, votes=5000)
    begin = time.process_time()
    told = forecast(beliefs, target)
    assert told.votes > 5000
    assert time.process_time() - begin < 5


def test_before_anything_was_judged_there_is_no_forecast():
    with pytest.raises(DataError, match="ask some questions first"):
        forecast(believing(APART, votes=0), Top(1))


def test_too_few_paths_are_refused():
    with pytest.raises(SettingError, match="paths must be at least 10, got 3"):
        forecast(believing(APART), Top(1), paths=3)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Forecast(620, 620, 620), "decided after 620 votes"),
        (Forecast(620, 450, 1100), "about 620 votes in total (450 to 1,100)"),
        (Forecast(620, 450, np.inf), "about 620 votes in total (450 to no upper limit)"),
        (Forecast(np.inf, 1450, np.inf), "out of reach (at least 1,450 votes in total)"),
        (Forecast(np.inf, np.inf, np.inf), "out of reach"),
    ],
)
def test_a_forecast_is_described_in_words(told, words):
    assert str(told) == words
