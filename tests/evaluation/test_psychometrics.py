"""Reliability agrees with formulas computed in another way."""

import itertools
import json

import numpy as np
import pytest

import crowdrank as cr
from crowdrank import BradleyTerry, Comparisons, Rankings, Ratings
from crowdrank.errors import DataError
from crowdrank.evaluation import krippendorff_alpha, reliability
from crowdrank.evaluation.psychometrics import scale_separation, split_half
from crowdrank.simulation import mixed_crowd
from tests.cli.conftest import crowdrank

__all__ = ["crowdrank"]
VOTES = mixed_crowd(items=8, kinds={"good": 8, "random": 1}, votes_each=25, seed=3).judgments


def test_scale_separation_is_the_share_of_true_variance():
    plain = BradleyTerry(prior_scale=None).fit(VOTES)
    error = np.mean(plain.uncertainty.std_error**2)
    assert scale_separation(plain) == pytest.approx((np.var(plain.scores) - error) / np.var(plain.scores))
    shrunk = BradleyTerry().fit(VOTES)
    assert 0.5 < scale_separation(shrunk) < 1
    # both estimate the same share
    assert scale_separation(shrunk) == pytest.approx(scale_separation(plain), abs=0.05)


def test_misfit_is_that_of_rasch_models():
    model = BradleyTerry(prior_scale=1.0)
    ranking = model.fit(VOTES)
    found = reliability(model, VOTES, ranking)
    who, scores = 2, ranking.scores
    rows = [n for n in range(len(VOTES)) if VOTES.annotator[n] == who]
    squares = variances = standardised = 0.0
    for n in rows:
        p = 1 / (1 + np.exp(scores[VOTES.right[n]] - scores[VOTES.left[n]]))
        error = (VOTES.outcome[n] == 1) - p
        squares, variances = squares + error**2, variances + p * (1 - p)
        standardised += error**2 / (p * (1 - p))
    row = found.judges.filter(found.judges["judge"] == VOTES.annotators[who]).to_dicts()[0]
    assert row["infit"] == pytest.approx(squares / variances)
    assert row["outfit"] == pytest.approx(standardised / len(rows))
    assert row["judgments"] == len(rows)
    assert found.items["judgments"].sum() == 2 * len(VOTES)


def test_a_judge_who_answers_at_random_fits_worst():
    truth = mixed_crowd(items=8, kinds={"good": 8, "random": 1}, votes_each=25, seed=3)
    found = reliability(BradleyTerry(), VOTES, BradleyTerry().fit(VOTES))
    assert found.judges["judge"][0] in VOTES.annotators[truth.annotators["kind"] == "random"]


def test_halves_of_random_answers_are_not_reliable():
    rng = np.random.default_rng(0)
    pairs = [rng.permutation(6)[:2] for _ in range(400)]
    votes = Comparisons.of(*np.array(pairs).T, [rng.choice(pair) for pair in pairs])
    assert split_half(BradleyTerry(prior_scale=1.0), votes) < 0.6
    assert split_half(BradleyTerry(prior_scale=1.0), VOTES) > 0.8


def test_alpha_is_one_minus_the_ratio_of_disagreements():
    grades = {"x": [1, 2, 2], "y": [3, 3], "z": [5, 4, 5, 5], "alone": [2]}
    rows = [(item, grade, f"w{n}") for item, given in grades.items() for n, grade in enumerate(given)]
    ratings = Ratings.of(item=[r[0] for r in rows], grade=[r[1] for r in rows], annotator=[r[2] for r in rows])
    kept = [given for given in grades.values() if len(given) > 1]
    values = [value for given in kept for value in given]
    observed = sum(
        sum((a - b) ** 2 for a, b in itertools.permutations(given, 2)) / (len(given) - 1) for given in kept
    ) / len(values)
    expected = sum((a - b) ** 2 for a, b in itertools.permutations(values, 2)) / len(values) / (len(values) - 1)
    assert krippendorff_alpha(ratings) == pytest.approx(1 - observed / expected)


def test_alpha_of_comparisons_ignores_the_side():
    agree = Comparisons.of(["a", "b", "c", "b"], ["b", "a", "b", "c"], ["a", "a", "b", "b"])
    assert krippendorff_alpha(agree) == 1.0
    assert np.isnan(krippendorff_alpha(Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])))
    with pytest.raises(DataError, match="not for lists"):
        krippendorff_alpha(Rankings.of_lists([[["a"], ["b"]]]))


def test_the_command_shows_reliability(crowdrank, tmp_path):
    VOTES.to_polars().write_csv(tmp_path / "votes.csv")
    shown = crowdrank("rank", tmp_path / "votes.csv", "--model", "bradley-terry", "--reliability")
    assert (shown.code, shown.err) == (0, "")
    assert "Scale separation reliability 0." in shown.out
    assert "infit" in shown.out
    words = ("--model", "bradley-terry", "--reliability", "--json")
    found = json.loads(crowdrank("rank", tmp_path / "votes.csv", *words).out)["reliability"]
    expected = reliability(BradleyTerry(), cr.read(tmp_path / "votes.csv"), BradleyTerry().fit(VOTES))
    assert found["split_half"] == pytest.approx(expected.split_half)
    assert len(found["judges"]) == 9
    refused = crowdrank("rank", tmp_path / "votes.csv", "--model", "mean-rating", "--reliability")
    assert "--reliability needs a model of comparisons" in refused.err


@pytest.mark.data
@pytest.mark.parametrize("study", ["pme_fractions", "ijrume_algebra", "she2014_peer1"])
def test_real_studies_agree_with_the_formulas(data_folder, study):
    votes = cr.read(data_folder / "cj_with_criterion" / f"{study}_votes.csv")
    model = BradleyTerry(prior_scale=1.0)
    ranking = model.fit(votes)
    found = reliability(model, votes, ranking)
    rows = votes.to_frame().to_dicts()
    score = {str(name): value for name, value in zip(ranking.items.labels, ranking.scores, strict=True)}
    squares: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        p = 1 / (1 + np.exp(score[row["right"]] - score[row["left"]]))
        squares.setdefault(row["annotator"], []).append((((row["winner"] == row["left"]) - p) ** 2, p * (1 - p)))
    for judge, infit, outfit, count in found.judges.iter_rows():
        mine = np.array(squares[judge])
        assert count == len(mine)
        assert infit == pytest.approx(mine[:, 0].sum() / mine[:, 1].sum())
        assert outfit == pytest.approx((mine[:, 0] / mine[:, 1]).mean())
    error, variance = np.mean(ranking.uncertainty.std_error**2), np.var(ranking.scores)
    assert found.scale_separation == pytest.approx(variance / (variance + error))


def test_halves_may_miss_an_item():
    names = [f"i{n}" for n in range(8)]
    pairs = [(a, b) for n, a in enumerate(names) for b in names[n + 1 :]] * 4
    left, right = zip(*pairs, ("i0", "rare"), strict=True)
    judges = [f"j{n % 6}" for n in range(len(left))]
    votes = Comparisons.of(list(left), list(right), list(left), annotator=judges)
    assert split_half(BradleyTerry(prior_scale=1.0), votes) > 0.9
    few = Comparisons.of(["a", "b", "c", "d"], ["b", "c", "d", "a"], ["a", "b", "c", "d"], annotator=list("wxyz"))
    assert np.isnan(split_half(BradleyTerry(prior_scale=1.0), few.take(np.array([0, 1]))))
