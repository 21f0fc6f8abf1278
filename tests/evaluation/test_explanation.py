"""Explanations: influences add up to the difference, and agree with refits."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons, CrowdBT, Ratings
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.evaluation import explain
from crowdrank.evaluation.explanation import judgment_influence, widest_chains
from crowdrank.simulation import mixed_crowd

VOTES = mixed_crowd(items=10, kinds={"good": 6, "noisy": 3, "reversed": 1, "left": 1}, votes_each=30, seed=2).judgments


def with_ties(votes: Comparisons) -> Comparisons:
    outcome = np.where(np.arange(len(votes)) % 5 == 0, 0, votes.outcome).astype(np.int8)
    return Comparisons(
        items=votes.items,
        left=votes.left,
        right=votes.right,
        outcome=outcome,
        annotators=votes.annotators,
        annotator=votes.annotator,
    )


@pytest.mark.parametrize("model", ["bradley-terry", "crowd-bt", "factor-bt"])
@pytest.mark.parametrize("votes", [VOTES, with_ties(VOTES)], ids=["decided", "with ties"])
def test_influences_add_up_to_the_difference(model, votes):
    found = explain(votes, "item03", "item07", model=model)
    assert found.direct + found.indirect == pytest.approx(found.difference, abs=1e-4)
    assert sum(row.influence for row in found.annotators) == pytest.approx(found.difference, abs=1e-4)
    assert sum(row.direct for row in found.annotators) == pytest.approx(found.direct)


def test_swapping_the_items_changes_the_sign():
    one, other = explain(VOTES, "item03", "item07"), explain(VOTES, "item07", "item03")
    assert other.difference == pytest.approx(-one.difference)
    assert other.direct == pytest.approx(-one.direct)
    assert other.probability == pytest.approx(1 - one.probability)


def test_chains_and_direct_answers_and_the_prior_make_the_whole():
    model = BradleyTerry(prior_scale=1e4)  # the influence of so wide a prior is negligible
    ranking = model.fit(VOTES)
    found = judgment_influence(model, "bradley-terry", ranking, VOTES, 2, 6)
    direct = {2, 6}
    rows = zip(found.influence, found.left, found.right, strict=True)
    own = sum(influence for influence, left, right in rows if {left, right} == direct)
    indirect = sum(influence for _, influence in widest_chains(found, 2, 6, 1000))
    assert own + indirect == pytest.approx(ranking.scores[2] - ranking.scores[6], abs=0.01)


def test_chains_lead_from_one_to_the_other_through_others():
    found = explain(VOTES, "item03", "item07")
    assert found.chains
    for chain in found.chains:
        assert chain.items[0] == "item03"
        assert chain.items[-1] == "item07"
        assert len(set(chain.items)) == len(chain.items) > 2
        assert chain.judgments >= len(chain.items) - 1


def test_direct_answers_are_counted_by_who_gave_them():
    votes = Comparisons.of(
        ["a", "b", "a", "a", "b"],
        ["b", "a", "b", "c", "c"],
        ["a", "a", "b", "a", "b"],
        annotator=["ann", "bob", "bob", "ann", "bob"],
    )
    found = explain(votes, "a", "b", model="bradley-terry")
    counts = {row.annotator: (row.above, row.below, row.ties) for row in found.annotators}
    assert counts == {"ann": (1, 0, 0), "bob": (1, 1, 0)}
    assert found.judgments == 3


def test_refits_are_fits_to_the_remaining_judgments():
    found = explain(VOTES, "item03", "item07")
    refit = found.refits[-1]
    rest = VOTES.take(np.flatnonzero(VOTES.annotators[VOTES.annotator] != refit.left_out))
    again = CrowdBT().fit(rest)
    assert refit.judgments == len(VOTES) - len(rest)
    assert refit.difference == pytest.approx(again.scores[2] - again.scores[6])
    assert refit.probability == pytest.approx(again.probability("item03", "item07"))


def test_reversed_annotators_have_the_opposite_influence():
    found = explain(VOTES, "item03", "item07", model="crowd-bt")
    worst = min(found.annotators, key=lambda row: row.reliability)
    assert worst.reliability < 0.3
    assert (worst.above, worst.below) == (1, 0)
    assert worst.direct < 0


def test_items_nobody_connects_have_no_chain():
    votes = Comparisons.of(["a", "c"] * 5, ["b", "d"] * 5, ["a", "c"] * 5)
    found = explain(votes, "a", "d")
    assert found.judgments == 0
    assert found.chains == ()
    assert found.difference == pytest.approx(found.indirect, abs=1e-4)


def test_queries_are_explained_by_their_own_judgments():
    votes = Comparisons.of(["a", "a", "a"], ["b", "b", "b"], ["a", "a", "b"], query=["x", "x", "y"])
    assert explain(votes, "a", "b", query="x").difference > 0
    assert explain(votes, "a", "b", query="y").difference < 0


def test_ratings_are_converted_to_comparisons():
    ratings = Ratings.of(["a", "b", "a", "b"], [3, 1, 2, 1], annotator=["ann", "ann", "bob", "bob"])
    found = explain(ratings, "a", "b")
    assert found.difference > 0
    assert "better grade wins" in found.rule


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"item": "item03", "above": "item3"}, UnknownNameError, "did you mean"),
        ({"item": "item03", "above": "item03"}, SettingError, "two different items"),
        ({"item": "item03", "above": "item07", "model": "borda"}, SettingError, "cannot be explained"),
        ({"item": "item03", "above": "item07", "model": "crowdbt"}, UnknownNameError, "crowd-bt"),
    ],
)
def test_invalid_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        explain(VOTES, **arguments)
