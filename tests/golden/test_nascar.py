"""NASCAR 2002, 36 races: the classic fit of Plackett-Luce.

Source of the data: D. R. Hunter 2004, "MM algorithms for generalized Bradley-Terry models", Annals of Statistics 32,
Table 2. Source of the numbers: the documentation of the R package PlackettLuce (Turner, van Etten, Firth, Kosmidis;
data set `nascar`), which prints the coefficients of that table to two decimals, relative to driver 1, in order of
average place. The strengths are also checked against Hunter's own algorithm, written out below.
"""

import numpy as np
import polars as pl
import pytest

from crowdrank.data import Rankings
from crowdrank.errors import SeparationError
from crowdrank.models import PlackettLuce

pytestmark = pytest.mark.data

FIRST_THREE, LAST_THREE = [4.15, 3.62, 2.08], [0.03, -0.31, -0.15]


@pytest.fixture(scope="module")
def races(data_folder):
    table = pl.read_csv(
        data_folder / "reference_small" / "nascar2002_rankings.csv", schema_overrides={"item": pl.String}
    )
    return Rankings.of(table["item"], table["rank"], list=table["query"])


@pytest.fixture(scope="module")
def without_the_last(races):
    """Drop the four drivers who were last in every race they entered: their strength is zero."""
    frame = races.to_frame().filter(~pl.col("item").is_in(["84", "85", "86", "87"]))
    return Rankings.of(frame["item"], frame["rank"], list=frame["list"])


def test_the_four_who_were_always_last_are_named(races):
    assert len(races) == 36
    assert len(races.items) == 87
    with pytest.raises(SeparationError, match=r"^4 items only won or only lost against the rest \(84, 85, 86, 87\)"):
        PlackettLuce(prior_scale=None).fit(races)


def test_coefficients_are_the_published_ones(races, without_the_last):
    found = PlackettLuce(prior_scale=None).fit(without_the_last)
    relative = found.scores - found.scores[found.items.index("1")]
    frame = races.to_frame().group_by("item").agg(pl.col("rank").mean())
    average = dict(zip(frame["item"], frame["rank"], strict=True))
    order = np.argsort([average[label] for label in found.items.labels], kind="stable")
    assert np.round(relative[order[:3]], 2).tolist() == FIRST_THREE
    assert sorted(np.round(relative[order[-3:]], 2).tolist()) == sorted(LAST_THREE)


def minorise_maximise(lists, rounds=600):
    """Hunter 2004, eq. (30): γᵢ = (places won) / Σ over draws i was still in of 1 / (strength then left)."""
    size = len(lists.items)
    strength = np.full(size, 1.0 / size)
    for _ in range(rounds):
        won, exposed = np.zeros(size), np.zeros(size)
        for a, b in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
            order = lists.item[a:b]
            left = np.cumsum(strength[order][::-1])[::-1]
            won[order[:-1]] += 1
            exposed[order] += np.cumsum(np.append(1 / left[:-1], 0.0))
        strength = won / exposed
        strength /= strength.sum()
    return strength


def test_strengths_are_those_hunters_own_algorithm_reaches(without_the_last):
    expected = minorise_maximise(without_the_last)
    found = np.exp(PlackettLuce(prior_scale=None, tolerance=1e-8).fit(without_the_last).scores)
    np.testing.assert_allclose(found / found.sum(), expected, rtol=1e-6)


def test_drivers_of_a_single_race_have_wide_intervals(without_the_last):
    """The top two drivers raced once, so their ranks are far less certain than that of the driver behind them."""
    table = PlackettLuce(prior_scale=None).fit(without_the_last).table()
    once, often = table.filter(pl.col("lists") == 1), table.filter(pl.col("lists") == 36)
    assert table["item"].to_list()[:2] == ["58", "68"]
    assert once["std_error"].min() > 4 * often["std_error"].max()
