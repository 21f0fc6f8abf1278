"""Calibration: predicted and observed fractions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons, Copeland
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation import Calibration, calibration
from crowdrank.evaluation.diagnostics import wilson_interval
from crowdrank.simulation import crowd_bt


@pytest.fixture(scope="module")
def votes() -> Comparisons:
    return crowd_bt(items=20, annotators=20, pairs=190, votes=20, quality="1", labels="logistic", seed=4).judgments


class Overconfident(BradleyTerry):
    """A model whose probabilities are too extreme."""

    def predict(self, ranking, comparisons):
        return super().predict(replace(ranking, scores=4 * ranking.scores), comparisons)


def test_the_model_that_made_the_data_is_calibrated(votes):
    found = calibration(BradleyTerry(), votes)
    assert len(found) == len(votes)
    assert abs(found.predicted - found.observed) < 3 * found.std_error


def test_an_overconfident_model_is_detected(votes):
    found = calibration(Overconfident(), votes)
    assert found.predicted - found.observed > 10 * found.std_error


def test_bins_hold_every_judgment_once_and_observed_lies_in_its_interval(votes):
    frame = calibration(BradleyTerry(), votes).frame()
    assert frame["judgments"].sum() == len(votes)
    for row in frame.iter_rows(named=True):
        assert row["from"] <= row["predicted"] <= row["to"]
        assert row["low"] <= row["observed"] <= row["high"]


def test_certainty_has_a_bin_and_even_odds_count_half():
    frame = Calibration(np.array([1.0, 0.5]), np.array([1.0, 0.5])).frame()
    assert frame["judgments"].to_list() == [1, 1]
    assert frame["observed"].to_list() == [0.5, 1.0]


def test_max_folds_limits_the_folds_predicted(votes):
    assert len(calibration(BradleyTerry(), votes, folds=4, max_folds=1)) == len(votes) // 4


def test_ties_are_not_predicted():
    votes = Comparisons.of(["a", "b"] * 20, ["b", "c"] * 20, ["tie", "b"] * 20)
    assert len(calibration(BradleyTerry(), votes)) == 20
    with pytest.raises(DataError, match="every judgment is a tie"):
        calibration(BradleyTerry(), Comparisons.of(["a"] * 9, ["b"] * 9, ["tie"] * 9))


def test_a_model_without_probabilities_is_refused(votes):
    with pytest.raises(SettingError, match="an order but no probabilities"):
        calibration(Copeland(), votes)


def test_wilsons_interval_holds_as_often_as_it_says():
    rng = np.random.default_rng(0)
    low, high = wilson_interval(rng.binomial(400, 0.8, 4000), np.full(4000, 400))
    assert 0.93 < np.mean((low <= 0.8) & (high >= 0.8)) < 0.97
    low, high = wilson_interval([0], [0])
    assert (low[0], high[0]) == pytest.approx((0.0, 1.0))
