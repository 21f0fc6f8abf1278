"""Six chocolate puddings: the classic fit of a model with ties.

Source of the data: R. R. Davidson 1970, "On extending the Bradley-Terry model to accommodate ties in paired comparison
experiments", JASA 65, 317-328. Source of the numbers: the vignette of the R package PlackettLuce, which prints
0.1388005 0.1729985 0.1617420 0.1653930 0.1586805 0.2023855, ν = 0.7468147 after seven rounds of its algorithm, before
convergence (like Davidson's own). The last two digits are therefore not reliable; an independent fit is below.
"""

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from crowdrank.data import Comparisons
from crowdrank.models import BradleyTerry

pytestmark = pytest.mark.data

PUBLISHED = [0.1388005, 0.1729985, 0.1617420, 0.1653930, 0.1586805, 0.2023855]
PUBLISHED_NU = 0.7468147


@pytest.fixture(scope="module")
def counts(data_folder):
    return pl.read_csv(data_folder / "reference_small" / "pudding_counts.csv")


@pytest.fixture(scope="module")
def votes(counts):
    rows = [
        (i, j, winner, times)
        for i, j, _, i_won, j_won, tied in counts.iter_rows()
        for winner, times in ((str(i), i_won), (str(j), j_won), ("tie", tied))
    ]
    left, right, winner, weight = zip(*rows, strict=True)
    return Comparisons.of(left, right, winner, weight=weight)


def strengths(scores):
    return np.exp(scores) / np.exp(scores).sum()


def test_strengths_and_ties_are_the_published_ones(votes):
    found = BradleyTerry(prior_scale=None).fit(votes)
    np.testing.assert_allclose(strengths(found.scores), PUBLISHED, atol=5e-5)
    assert np.exp(found.parameters["tie"]) == pytest.approx(PUBLISHED_NU, abs=5e-5)


def test_strengths_are_those_of_davidsons_own_likelihood(counts, votes):
    """π₁ … π₆ and ν as he wrote them: P(i) : P(j) : P(tie) = πᵢ : πⱼ : ν√(πᵢπⱼ)."""
    first, second = counts["i"].to_numpy() - 1, counts["j"].to_numpy() - 1
    won, lost, tied = (counts[c].to_numpy() for c in ("wins_i", "wins_j", "ties"))

    def loss(x):
        pi, nu = np.exp(np.append(x[:5], -x[:5].sum())), np.exp(x[5])
        a, b, t = pi[first], pi[second], nu * np.sqrt(pi[first] * pi[second])
        return -float(
            np.sum(won * np.log(a) + lost * np.log(b) + tied * np.log(t) - (won + lost + tied) * np.log(a + b + t))
        )

    reference = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
    found = BradleyTerry(prior_scale=None, tolerance=1e-8).fit(votes)
    assert found.log_likelihood == pytest.approx(-reference.fun, rel=1e-10)
    expected = np.append(reference.x[:5], -reference.x[:5].sum())
    np.testing.assert_allclose(found.scores, expected, atol=1e-5)
    assert found.parameters["tie"] == pytest.approx(reference.x[5], abs=1e-5)
