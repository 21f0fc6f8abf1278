"""Cases small enough to solve with pencil and paper."""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

from crowdrank.data import Comparisons, Rankings
from crowdrank.models import BradleyTerry, PlackettLuce, RankCentrality, Thurstone, WinRate


def duel(wins, losses, ties=0):
    return Comparisons.of(
        ["a"] * (wins + losses + ties), ["b"] * (wins + losses + ties), ["a"] * wins + ["b"] * losses + ["tie"] * ties
    )


def lead(ranking):
    return float(ranking.scores[0] - ranking.scores[1])


@pytest.mark.parametrize(("wins", "losses"), [(1, 1), (3, 1), (1, 9), (70, 30)])
def test_two_items_differ_by_the_log_odds(wins, losses):
    votes = duel(wins, losses)
    share = wins / (wins + losses)
    assert lead(BradleyTerry(prior_scale=None).fit(votes)) == pytest.approx(np.log(wins / losses), abs=1e-4)
    assert lead(Thurstone(prior_scale=None).fit(votes)) == pytest.approx(np.sqrt(2) * ndtri(share), abs=1e-4)
    assert WinRate().fit(votes).scores[0] == pytest.approx(share)
    smoothed = np.log((wins + 0.5) / (losses + 0.5))
    assert lead(RankCentrality().fit(votes)) == pytest.approx(smoothed, abs=1e-6)


def test_the_standard_error_of_two_is_that_of_a_log_odds():
    """Var(log w/l) = 1/w + 1/l; each score is half of the difference."""
    found = BradleyTerry(prior_scale=None).fit(duel(30, 20))
    np.testing.assert_allclose(found.uncertainty.std_error, np.sqrt(1 / 30 + 1 / 20) / 2, rtol=1e-4)


def test_davidson_of_two_solves_by_hand():
    """e^d = w/l and e^θ = ties / √(w·l)."""
    found = BradleyTerry(prior_scale=None, tolerance=1e-8).fit(duel(20, 5, ties=10))
    assert lead(found) == pytest.approx(np.log(20 / 5), abs=1e-6)
    assert found.parameters["tie"] == pytest.approx(np.log(10 / np.sqrt(20 * 5)), abs=1e-6)


def test_glenn_and_david_of_two_solves_by_hand():
    """Φ((d−θ)/√2) = w/n and Φ((−d−θ)/√2) = l/n."""
    found = Thurstone(prior_scale=None, tolerance=1e-8).fit(duel(20, 5, ties=10))
    up, down = np.sqrt(2) * ndtri(20 / 35), np.sqrt(2) * ndtri(5 / 35)
    assert lead(found) == pytest.approx((up - down) / 2, abs=1e-6)
    assert found.parameters["tie"] == pytest.approx(-(up + down) / 2, abs=1e-6)


def test_ties_counted_half_are_half_a_win():
    assert lead(BradleyTerry(ties="half", prior_scale=None).fit(duel(5, 3, ties=4))) == pytest.approx(
        np.log(7 / 5), abs=1e-4
    )
    assert lead(BradleyTerry(ties="drop", prior_scale=None).fit(duel(5, 3, ties=4))) == pytest.approx(
        np.log(5 / 3), abs=1e-4
    )


def test_virtual_games_are_wins_and_losses_against_one_at_zero():
    """λ = 1 and w = l = 0 beyond: one win over b, one win and one loss of each against the virtual item."""
    found = BradleyTerry(prior_scale=None, virtual_weight=1.0, tolerance=1e-8).fit(duel(1, 0))
    d = lead(found)
    slope = 1 / (1 + np.exp(d)) + (1 - 2 / (1 + np.exp(-d / 2)))
    assert slope == pytest.approx(0.0, abs=1e-7)


def test_one_win_under_the_prior_solves_by_hand():
    """At the optimum, the gradient of the one win equals that of the prior."""
    scale = 2.0
    found = BradleyTerry(prior_scale=scale, tolerance=1e-9).fit(duel(1, 0))
    s = lead(found) / 2
    assert s / scale**2 == pytest.approx(1 / (1 + np.exp(2 * s)), abs=1e-9)
    probit = Thurstone(prior_scale=scale, tolerance=1e-9).fit(duel(1, 0))
    s = lead(probit) / 2
    x = 2 * s / np.sqrt(2)
    assert s / scale**2 == pytest.approx(norm.pdf(x) / norm.cdf(x) / np.sqrt(2), abs=1e-9)


def test_choices_among_three_give_their_shares():
    """If the best of the same three items is chosen repeatedly, strengths are shares of choices."""
    chosen = ["a"] * 5 + ["b"] * 3 + ["c"] * 2
    found = PlackettLuce(prior_scale=None, tolerance=1e-9).fit(Rankings.of_choices(chosen, [["a", "b", "c"]] * 10))
    strength = np.exp(found.scores)
    np.testing.assert_allclose(strength / strength.sum(), [0.5, 0.3, 0.2], rtol=1e-7)


def test_a_chain_of_three_adds_its_log_odds():
    """On a tree the fit is exact: a over b 3:1, b over c 2:1."""
    votes = Comparisons.of(["a"] * 4 + ["b"] * 3, ["b"] * 4 + ["c"] * 3, ["a", "a", "a", "b", "b", "b", "c"])
    scores = BradleyTerry(prior_scale=None, tolerance=1e-9).fit(votes).scores
    assert scores[0] - scores[1] == pytest.approx(np.log(3), abs=1e-8)
    assert scores[1] - scores[2] == pytest.approx(np.log(2), abs=1e-8)
    assert scores.sum() == pytest.approx(0.0, abs=1e-12)
