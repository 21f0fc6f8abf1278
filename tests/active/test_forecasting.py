import time

import numpy as np
import pytest

from crowdrank.active.forecasting import FARTHEST, Forecast, forecast
from crowdrank.active.stopping import Accuracy, Kendall, Order, Pair, Top
from crowdrank.errors import DataError, SettingError
from crowdrank.online import Refits, Roll
from crowdrank.online.sequential_mcmc import Draws


def believing(mean, spread=1.0, judged=100, draws=200, seed=0):
    """Beliefs of items with these means, the draws independent."""
    nobody = Refits(keep=draws).nobody()
    scores = np.asarray(mean) + spread * np.random.default_rng(seed).standard_normal((draws, len(mean)))
    scores -= scores.mean(axis=1, keepdims=True)
    of_items = {"mean": scores.mean(axis=0), "variance": scores.var(axis=0)}
    return nobody.changed(
        items=Roll.of([f"i{n}" for n in range(len(mean))]),
        draws=Draws(scores, np.zeros((draws, 0))),
        of_items=of_items,
        judged=judged,
        winner=np.zeros(judged, np.int32),
    )


APART = (3.0, 2.0, 1.0, 0.0)


def test_what_is_settled_takes_no_more_votes():
    assert forecast(believing(APART, 0.1), Top(1)) == Forecast(100, 100, 100)


def test_the_median_lies_within_the_interval_and_beyond_the_votes_so_far():
    told = forecast(believing(APART), Top(1))
    assert 100 < told.low <= told.votes <= told.high


def test_the_less_is_known_the_longer_it_takes():
    soon, late = (forecast(believing(APART, spread), Top(1), pace=1.0).votes for spread in (0.7, 1.5))
    assert soon < late


def test_the_more_is_asked_for_the_longer_it_takes():
    beliefs = believing(APART)
    assert forecast(beliefs, Top(1), 0.8).votes < forecast(beliefs, Top(1), 0.99).votes
    assert forecast(beliefs, Kendall(0.8)).votes < forecast(beliefs, Kendall(0.97)).votes
    assert forecast(beliefs, Pair("i0", "i1")).votes < forecast(beliefs, Order()).votes


def test_a_faster_pace_settles_sooner():
    slow, fast = (forecast(believing(APART), Top(1), pace=pace).votes for pace in (1.0, 3.0))
    assert fast < slow


def test_tau_and_accuracy_are_two_readings_of_the_same():
    beliefs = believing(APART)
    assert forecast(beliefs, Kendall(0.9)) == forecast(beliefs, Accuracy(0.95))


def test_it_counts_from_the_votes_that_it_is_told_of():
    beliefs = believing(APART)
    by_judgments, by_votes = forecast(beliefs, Top(1)), forecast(beliefs, Top(1), votes=200)
    assert by_votes.votes == pytest.approx(2 * by_judgments.votes, abs=1)


def test_a_slow_pace_and_equal_items_are_never_settled():
    told = forecast(believing([0.0] * 12), Order(), pace=0.3)
    assert np.isinf(told.votes)
    assert np.isinf(told.high)
    assert str(told).startswith("not in sight")


def test_nothing_is_foretold_beyond_a_hundred_times_the_votes():
    told = forecast(believing([0.0] * 12), Top(3), pace=1.0)
    assert told.low <= 100 * FARTHEST
    assert told.high == np.inf


def test_of_two_items_the_chance_to_settle_in_time_is_what_normal_theory_says(monkeypatch):
    """At pace 1, four times the votes leave a quarter of the variance, and the mean has moved by three quarters."""
    monkeypatch.setattr("crowdrank.active.forecasting._FACTORS", [4.0])
    monkeypatch.setattr("crowdrank.active.forecasting._SPREAD_OF_PACE", 0.0)
    beliefs = believing((1.0, 0.0), draws=1000)
    lead = beliefs.draws.scores[:, 0] - beliefs.draws.scores[:, 1]
    sure = np.quantile((lead - lead.mean()) / lead.std(), 0.95) * np.sqrt(0.25)
    moved = lead.mean() / lead.std() + np.sqrt(0.75) * np.random.default_rng(5).standard_normal(100_000)
    expected = np.mean(np.abs(moved) > sure)
    told = [forecast(beliefs, Pair("i0", "i1"), pace=1.0, paths=10, seed=seed) for seed in range(60)]
    # the median of ten is finite when at least five settle
    assert np.mean([np.isfinite(one.votes) for one in told]) == pytest.approx(_five_of_ten(expected), abs=0.17)
    assert 0.3 < expected < 0.7


def _five_of_ten(chance):
    return np.mean(np.random.default_rng(6).binomial(10, chance, 100_000) >= 5)


@pytest.mark.parametrize("items", [4, 12])
def test_how_far_scores_are_spread_decides_nothing_where_items_are_many(items):
    """Draws that are twice as wide as others, all through, say the same of the order."""
    beliefs = believing(np.arange(items) / 2)
    scores = beliefs.draws.scores * np.where(np.arange(200) % 2, 1.0, 2.0)[:, None]
    wider = beliefs.changed(draws=Draws(scores, beliefs.draws.qualities))
    assert (forecast(wider, Top(2)) == forecast(beliefs, Top(2))) == (items == 12)


def test_a_seed_gives_the_same_forecast_again():
    beliefs = believing(APART)
    assert forecast(beliefs, Top(2), seed=3) == forecast(beliefs, Top(2), seed=3)


@pytest.mark.parametrize("wish", [Top(3), Kendall(0.97)], ids=str)
def test_a_thousand_items_take_no_longer_than_they_need(wish):
    beliefs = believing(np.linspace(0, 40, 1000), 0.8, judged=5000)
    begin = time.process_time()
    told = forecast(beliefs, wish)
    assert told.votes > 5000
    assert time.process_time() - begin < 5


def test_before_anything_was_judged_there_is_no_forecast():
    with pytest.raises(DataError, match="ask some questions first"):
        forecast(believing(APART, judged=0), Top(1))


def test_a_handful_of_futures_is_refused():
    with pytest.raises(SettingError, match="paths must be at least 10, got 3"):
        forecast(believing(APART), Top(1), paths=3)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Forecast(620, 620, 620), "settled after 620 votes"),
        (Forecast(620, 450, 1100), "about 620 votes in all (450 to 1,100)"),
        (Forecast(620, 450, np.inf), "about 620 votes in all (450 to any number)"),
        (Forecast(np.inf, 1450, np.inf), "not in sight (at least 1,450 votes in all)"),
        (Forecast(np.inf, np.inf, np.inf), "not in sight"),
    ],
)
def test_a_forecast_is_told_in_words(told, words):
    assert str(told) == words
