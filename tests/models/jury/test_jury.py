"""The jury model: judges who err together, gold first, consistency with oneself."""

import numpy as np
import polars as pl
import pytest

from crowdrank import AnnotatorDetails, Comparisons, CrowdBT, Jury, SideInformation
from crowdrank.errors import SettingError
from crowdrank.models.jury.factors import fit_factors, make_cells
from tests.models.jury.simulated import QUESTIONS, gold_pairs, jury, share_right


def test_consistent_judges_are_believed_against_a_majority():
    votes, truth = jury()
    assert share_right(CrowdBT().fit(votes), truth) < 0.7
    assert share_right(Jury().fit(votes), truth) > 0.85


def test_gold_tells_whom_to_believe_where_the_wrong_ones_are_consistent():
    votes, truth = jury(good=3, bad=9, orders=("first",))  # no order was swapped: nothing but gold can tell
    known = SideInformation(gold=gold_pairs(truth, 10))
    assert share_right(Jury().fit(votes), truth) < 0.8
    assert share_right(Jury().fit(votes, side_information=known), truth) > 0.85


def test_gold_pairs_hold():
    votes, truth = jury()
    ranking = Jury().fit(votes, side_information=SideInformation(gold=gold_pairs(truth, QUESTIONS)))
    assert share_right(ranking, truth) == 1.0
    first, second = ranking.uncertainty.draws.reshape(-1, QUESTIONS, 2).transpose(2, 0, 1)
    assert np.mean(np.sign(first - second) == truth) > 0.98


def test_copies_of_a_judge_count_once():
    votes, truth = jury(good=3, bad=3)
    frame = votes.to_polars()
    copied = [frame.filter(annotator="bad0").with_columns(annotator=pl.lit(f"copy{n}")) for n in range(20)]
    many = pl.concat([frame, *copied])
    votes = Comparisons.of(**{name: many[name] for name in ("left", "right", "winner", "query", "annotator")})
    ranking = Jury().fit(votes)
    assert share_right(ranking, truth) > 0.85
    assert ranking.parameters["effective_judges"] < 8
    assert "The 26 judges share errors and are worth only about" in ranking.notes[0]


def test_independent_judges_are_as_many_as_they_are():
    votes, _ = jury(good=8, bad=0)
    ranking = Jury().fit(votes)
    assert ranking.parameters["effective_judges"] > 5
    assert not any("share errors" in note for note in ranking.notes)


def test_a_judge_who_always_chooses_left_says_nothing():
    votes = Comparisons.of(["a", "b"] * 5, ["b", "a"] * 5, ["a", "b"] * 5, annotator=["x"] * 10)
    np.testing.assert_allclose(Jury().fit(votes).scores, 0, atol=1e-9)


def test_two_orders_are_one_judgment_seen_twice():
    votes, _ = jury()
    cells = make_cells(votes)
    assert cells.balanced.all()
    assert (cells.count == 2).all()
    weight = fit_factors(cells).answer_weight(cells)
    assert ((weight >= 1) & (weight < 1.98)).all()
    assert cells.reliability[[str(name).startswith("good") for name in votes.annotators]].min() > 0.5


def test_quality_is_that_of_the_judges():
    votes, truth = jury()
    known = SideInformation(gold=gold_pairs(truth, 20))
    found = Jury().fit(votes, side_information=known).annotators
    assert min(found[f"good{n}"]["quality"].value for n in range(3)) > 0.8
    assert max(found[f"bad{n}"]["quality"].value for n in range(9)) < 0.7
    told = Jury().fit(votes, side_information=SideInformation(quality={f"bad{n}": 0.95 for n in range(9)}))
    assert told.annotators["bad0"]["quality"].value > found["bad0"]["quality"].value


def test_a_family_weighs_as_much_as_a_lone_judge():
    votes, _ = jury(good=2, bad=10, orders=("first",))
    people = {f"bad{n}": AnnotatorDetails(kind="llm", family="bad") for n in range(10)}
    plain, families = (
        Jury().fit(votes, side_information=SideInformation(people=given)).annotators["good0"]["quality"].value
        for given in ({}, people)
    )
    assert families > plain


def test_an_order_of_annotators_is_refused():
    votes, _ = jury(questions=5)
    with pytest.raises(SettingError, match="annotator_order"):
        Jury().fit(votes, side_information=SideInformation(better=[("good0", "bad0")]))


def test_items_in_many_pairs_are_ranked_by_all_of_them():
    rng, pairs = np.random.default_rng(0), [(a, b) for a in range(8) for b in range(a + 1, 8)]
    rows = [(a, b, who, rng.random() < 0.9) for a, b in pairs for who in "uvwxyz"]
    left, right = [f"i{a}" for a, *_ in rows], [f"i{b}" for _, b, *_ in rows]
    winner = [a if right_one else b for a, b, (*_, right_one) in zip(left, right, rows, strict=True)]
    ranking = Jury().fit(Comparisons.of(left, right, winner, annotator=[who for _, _, who, _ in rows]))
    assert ranking["i0"].rank <= 2
    assert ranking["i7"].rank >= 7
    low, high = ranking.rank_intervals(0.95)
    assert np.mean((low <= np.arange(1, 9)) & (np.arange(1, 9) <= high)) > 0.8
