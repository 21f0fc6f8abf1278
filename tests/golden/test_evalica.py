"""Scores of another library on the same judgments.

Source: the fixtures of evalica (Dmitry Ustalov, https://github.com/dustalov/evalica, Apache-2.0), `simple`, `food`
and `llmfao`, each with the scores its own test suite expects. They are read from the folder of real judgments, never
copied. Its settings: a tie is half a win to each side, plain maximum likelihood, Elo with K = 4 from 1000; its
`newman` (Newman 2023) maximises the likelihood of Davidson 1970.
"""

import numpy as np
import polars as pl
import pytest

from crowdrank.data import Comparisons
from crowdrank.models import Borda, BradleyTerry, Elo, WinRate

pytestmark = pytest.mark.data
CASES = ["simple", "food", "llmfao"]


def read(folder, case):
    if case == "llmfao":
        frame = pl.read_csv(folder / "llmfao" / "pairwise.csv", infer_schema=False)
        return Comparisons.of(frame["left"], frame["right"], frame["winner"])
    frame = pl.read_csv(folder / "evalica_fixtures" / f"{case}.csv", infer_schema=False)
    side = {"left": frame["left"], "right": frame["right"], "tie": ["tie"] * len(frame)}
    winner = [side[said][row] for row, said in enumerate(frame["winner"])]
    return Comparisons.of(frame["left"], frame["right"], winner)


def golden(folder, case, algorithm, votes):
    table = pl.read_csv(folder / "evalica_fixtures" / f"{case}-golden.csv", schema_overrides={"item": pl.String})
    own = table.filter(pl.col("algorithm") == algorithm)
    score = dict(zip(own["item"], own["score"], strict=True))
    assert set(score) == set(votes.items.labels)
    return np.array([score[label] for label in votes.items.labels])


def centred_log(strengths):
    return np.log(strengths) - np.log(strengths).mean()


@pytest.mark.parametrize("case", CASES)
def test_bradley_terry_with_ties_counted_half(data_folder, case):
    votes = read(data_folder, case)
    found = BradleyTerry(ties="half", prior_scale=None, tolerance=1e-9).fit(votes)
    expected = centred_log(golden(data_folder, case, "bradley_terry", votes))
    np.testing.assert_allclose(found.scores, expected, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_bradley_terry_with_davidsons_ties(data_folder, case):
    votes = read(data_folder, case)
    found = BradleyTerry(ties="davidson", prior_scale=None, tolerance=1e-9).fit(votes)
    expected = centred_log(golden(data_folder, case, "newman", votes))
    np.testing.assert_allclose(found.scores, expected, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_elo(data_folder, case):
    votes = read(data_folder, case)
    found = Elo(step=4, initial=1000, scale=400).fit(votes)
    np.testing.assert_allclose(found.scores, golden(data_folder, case, "elo", votes), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_points_counted(data_folder, case):
    """A win is a point and a tie half of one: our win rate times comparisons, and half of Borda plus comparisons."""
    votes = read(data_folder, case)
    points = golden(data_folder, case, "counting", votes)
    np.testing.assert_allclose(WinRate().fit(votes).scores * votes.n_judgments_per_item, points, rtol=1e-12)
    borda = Borda().fit(votes).scores
    np.testing.assert_allclose((borda + votes.n_judgments_per_item) / 2, points, rtol=1e-12, atol=1e-12)


def test_another_treatment_of_ties_would_not_pass(data_folder):
    """The negative control."""
    votes = read(data_folder, "food")
    expected = centred_log(golden(data_folder, "food", "bradley_terry", votes))
    dropped = BradleyTerry(ties="drop", prior_scale=None, tolerance=1e-9).fit(votes)
    assert not np.allclose(dropped.scores, expected, atol=1e-3)
