"""What influences a judge besides the items: side, features, and its own family."""

from __future__ import annotations

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.data import AnnotatorDetails, Comparisons, people_from_names
from crowdrank.evaluation.judge_agreement import LEFT_SIDE, OWN_FAMILY, judge_biases

ITEMS = np.array([f"gpt-{n}" for n in range(4)] + [f"system {n}" for n in range(12)])
OWN = np.array([1.0] * 4 + [0.0] * 12)


def answers(rng, name, scores, count, side=0.0, length=0.0, item_length=0.0):
    """Votes by Bradley-Terry, with a preference for the left and for length."""
    left = rng.integers(0, len(ITEMS), count)
    right = (left + rng.integers(1, len(ITEMS), count)) % len(ITEMS)
    difference = rng.normal(0, 1, count) + np.broadcast_to(item_length, len(ITEMS))[left]
    difference -= np.broadcast_to(item_length, len(ITEMS))[right]
    margin = scores[left] - scores[right] + side + length * difference
    won = rng.random(count) < 1 / (1 + np.exp(-margin))
    return [
        (ITEMS[i], ITEMS[j], ITEMS[i if first else j], name, d)
        for i, j, first, d in zip(left, right, won, difference, strict=True)
    ]


def table(*parts):
    rows = [row for part in parts for row in part]
    left, right, winner, who, length = zip(*rows, strict=True)
    return Comparisons.of(left, right, winner, annotator=who, features={"length": length})


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(3)
    truth = rng.normal(0, 1, len(ITEMS))
    votes = table(
        answers(rng, "human", truth, 3000),
        answers(rng, "gpt-9", truth + 1.2 * OWN, 3000, side=0.6, length=0.5),
        answers(rng, "claude", truth, 3000),
    )
    return votes, people_from_names(map(str, votes.annotators))


def test_each_bias_is_within_its_interval(audited):
    found = judge_biases(*audited, features=["length"], level=0.99)
    rows = {(row["annotator"], row["bias"]): row for row in found.iter_rows(named=True)}
    for bias, truth in ((LEFT_SIDE, 0.6), ("length", 0.5), (OWN_FAMILY, 1.2)):
        row = rows["gpt-9", bias]
        assert 0 < row["low"] < truth < row["high"]
    for bias in (LEFT_SIDE, "length"):
        assert rows["claude", bias]["low"] < 0 < rows["claude", bias]["high"]
    assert ("claude", OWN_FAMILY) not in rows  # no item is of its family
    assert "human" not in found["annotator"]


def test_the_audit_says_who_is_partial_to_its_own_family(audited):
    audit = cr.audit_judges(audited[0])
    assert any("partial to items of their own family: gpt-9" in note for note in audit.notes())
    assert audit.clear_biases()["annotator"].unique().to_list() == ["gpt-9"]


def test_without_humans_judges_of_other_families_are_the_reference(audited):
    votes, _ = audited
    who = votes.annotators[votes.annotator]
    machines = votes.take(who != "human")
    found = judge_biases(machines, {"gpt-9": AnnotatorDetails(kind="llm", family="gpt")})
    own = found.filter(annotator="gpt-9", bias=OWN_FAMILY)
    assert own["low"].item() > 0.5


def test_systems_in_many_queries_are_one_item(audited):
    votes, people = audited
    frame = votes.to_polars()
    queries = Comparisons.of(
        frame["left"].to_list(),
        frame["right"].to_list(),
        frame["winner"].to_list(),
        annotator=frame["annotator"].to_list(),
        query=[f"q{n % 7}" for n in range(len(frame))],
    )
    one, several = (judge_biases(given, people)["effect"].to_numpy() for given in (votes, queries))
    assert one == pytest.approx(several, abs=1e-6)


def test_commensurate_bt_removes_a_feature_that_biases_the_judge():
    rng = np.random.default_rng(8)
    truth, lengths = rng.normal(0, 1, len(ITEMS)), rng.normal(0, 1, len(ITEMS))
    votes = table(
        answers(rng, "ann", truth, 150, item_length=lengths),
        answers(rng, "bot", truth, 4000, length=1.0, item_length=lengths),
    )
    people = {"ann": AnnotatorDetails(kind="human"), "bot": AnnotatorDetails(kind="llm")}
    known = cr.SideInformation(people=people)
    plain = cr.CommensurateBT().fit(votes, side_information=known)
    corrected = cr.CommensurateBT(features=("length",)).fit(votes, side_information=known)
    order = [str(label) for label in plain.items.labels]
    target = truth[[list(ITEMS).index(label) for label in order]]
    off = [float(np.std(found.scores - target)) for found in (plain, corrected)]
    assert off[1] < 0.7 * off[0]
    assert corrected.parameters["bias[bot, length]"] == pytest.approx(1.0, abs=0.2)
    assert corrected.parameters["bias_error[bot, length]"] < 0.1


def test_commensurate_bt_corrects_for_self_preference():
    rng = np.random.default_rng(5)
    truth = rng.normal(0, 1, len(ITEMS))
    votes = table(answers(rng, "human", truth, 1500), answers(rng, "gpt-9", truth + 0.8 * OWN, 6000))
    known = cr.SideInformation(people=people_from_names(map(str, votes.annotators)))
    found = cr.CommensurateBT().fit(votes, side_information=known).parameters
    assert found["self_preference[gpt]"] > 2 * found["self_preference_error[gpt]"]
    without = cr.CommensurateBT(self_preference=False).fit(votes, side_information=known).parameters
    assert "self_preference[gpt]" not in without
    assert without["discrepancy"] > found["discrepancy"]
