"""Models that estimate annotators with the scores find no order in coin tosses, and still find one that is there."""

from dataclasses import replace

import numpy as np
import pytest

from crowdrank import MPM, Comparisons, FactorBT, LinearBias, VarianceBT
from crowdrank.models.coin_tosses import coin_tosses
from crowdrank.simulation import crowd_bt

MODELS = (VarianceBT(), FactorBT(), MPM(), LinearBias())


def table(scale, seed, votes=300):
    crowd = crowd_bt(
        items=12, annotators=10, pairs=66, votes=-(-votes // 66), quality=1.0, labels="logistic", scale=scale, seed=seed
    )
    return crowd.judgments


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_coin_tosses_are_hardly_ever_split_into_groups(model):
    """Without the calibration, nine or more of ten tables are."""
    split = 0
    for seed in range(12):
        tossed = coin_tosses(table(1.0, 0), np.random.default_rng(seed))
        split += model.fit(tossed).to_polars()["group"].max() > 1
    assert split <= 3


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_clear_order_has_several_groups(model):
    ranking = model.fit(table(3.0, 1))
    assert ranking.to_polars()["group"].max() > 2
    assert "calibrated on coin tosses" in ranking.uncertainty.method


def test_tosses_keep_ties_and_do_not_depend_on_the_order_of_the_rows():
    votes = Comparisons.of(["a", "b", "c", "a"], ["b", "c", "a", "c"], ["a", "tie", "c", "a"], annotator=list("xyxz"))
    tossed = coin_tosses(votes, np.random.default_rng(0))
    assert np.flatnonzero(tossed.outcome == 0).tolist() == [1]
    order = np.array([2, 0, 3, 1])
    np.testing.assert_array_equal(
        coin_tosses(votes.take(order), np.random.default_rng(0)).outcome, tossed.outcome[order]
    )
    turned = replace(votes, left=votes.right, right=votes.left, outcome=-votes.outcome)
    np.testing.assert_array_equal(coin_tosses(turned, np.random.default_rng(0)).outcome, -tossed.outcome)
