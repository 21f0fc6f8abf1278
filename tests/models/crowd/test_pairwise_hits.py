"""Pairwise HITS: the two equations hold at the end, and able annotators are identified."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from crowdrank import Comparisons, PairwiseHITS
from crowdrank.data import EncodedSideInformation
from crowdrank.errors import DataError, DataWarning
from crowdrank.evaluation import accuracy
from crowdrank.models.crowd import least_squares
from crowdrank.models.crowd.pairwise_hits import project_to_constraints
from crowdrank.simulation import mixed_crowd
from tests.strategies import comparisons, comparisons_of, disconnected_allowed

quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def scores_by_hand(votes, abilities):
    """Eq. 4 with NumPy's own least squares: of many solutions it gives the smallest."""
    rows, sums = {}, {}
    for a, b, outcome, weight, who in zip(
        votes.left, votes.right, votes.outcome, votes.weights, votes.annotator, strict=True
    ):
        pair, sign = ((a, b), 1) if a < b else ((b, a), -1)
        rows[pair] = np.eye(len(votes.items))[pair[0]] - np.eye(len(votes.items))[pair[1]]
        sums[pair] = sums.get(pair, 0.0) + sign * outcome * weight * abilities[who]
    found = np.linalg.lstsq(np.array(list(rows.values())), np.array([sums[p] for p in rows]), rcond=None)[0]
    return votes.items.centre(found)


def abilities_by_hand(votes, scores):
    """Eq. 5, a tie counted half."""
    margin = scores[votes.left] - scores[votes.right]
    side = np.where(np.abs(margin) > 1e-9 * np.abs(scores).max(), np.sign(margin), 0)
    agreed = 0.5 + 0.5 * side * votes.outcome
    return np.array(
        [
            np.average(agreed[votes.annotator == k], weights=votes.weights[votes.annotator == k])
            for k in range(len(votes.annotators))
        ]
    )


@quick
@given(votes=comparisons(most_queries=1))
def test_both_equations_hold_where_it_ends(votes):
    ranking = PairwiseHITS().fit(votes)
    abilities = ranking.annotators["ability"]
    np.testing.assert_allclose(ranking.scores, scores_by_hand(votes, abilities), atol=1e-8)
    if ranking.convergence.distance == 0:  # not of the mean of a cycle
        np.testing.assert_allclose(abilities, abilities_by_hand(votes, ranking.scores), atol=1e-12)


def test_two_who_agree_outweigh_one_who_does_not():
    votes = comparisons_of(None, [0, 0, 0, 1, 1], [1, 1, 1, 2, 2], [1, 1, -1, 1, 1], annotator=[0, 1, 2, 0, 1])
    ranking = PairwiseHITS().fit(votes)
    assert ranking.annotators["ability"].tolist() == [1.0, 1.0, 0.0]
    # by eq. 4: i0 − i1 = 1 + 1 − 0 and i1 − i2 = 1 + 1
    np.testing.assert_allclose(ranking.scores, [2.0, 0.0, -2.0], atol=1e-12)


def test_ties_agree_by_half():
    votes = comparisons_of(None, [0, 0, 1], [1, 1, 2], [1, 0, 0], annotator=[0, 1, 1])
    assert PairwiseHITS().fit(votes).annotators["ability"].tolist() == [1.0, 0.5]


def cycling():
    """What w0 says makes i0 and i4 all but equal: which is above depends on how far w0 is believed, and the reverse."""
    rows = [(0, 2, -1), (4, 1, -1), (0, 3, -1), (2, 4, 1), (0, 2, -1), (4, 0, -1), (0, 2, -1)]
    return comparisons_of(None, *zip(*rows, strict=True), annotator=[0, 0, 0, 2, 0, 0, 0])


def test_a_cycle_is_reported_in_a_note_without_a_warning():
    ranking = PairwiseHITS().fit(cycling())
    assert ranking.convergence.converged
    assert ranking.convergence.steps < 10
    assert ranking.convergence.distance > 0
    assert any("a cycle of 2" in note for note in ranking.notes)
    assert ranking.annotators["ability"][0] == pytest.approx((11 / 12 + 1) / 2)


def test_annotators_who_guess_or_lie_are_found():
    crowd = mixed_crowd(items=20, kinds={"good": 8, "random": 4, "reversed": 2}, votes_each=60, seed=1)
    ranking = PairwiseHITS().fit(crowd.judgments)
    ability, kinds = ranking.annotators["ability"], crowd.annotators["kind"]
    assert ability[kinds == "good"].min() > ability[kinds == "random"].max()
    assert ability[kinds == "random"].min() > ability[kinds == "reversed"].max()
    assert accuracy(ranking.scores, crowd.truth) > 0.9
    assert ranking.annotators.reversed == []


def test_intervals_of_abilities_are_those_of_a_share():
    votes = comparisons_of(None, [0] * 10, [1] * 10, [1] * 8 + [-1] * 2, annotator=[0] * 10)
    (share,), (low,), (high,) = PairwiseHITS().fit(votes).annotators.estimates["ability"]
    # Wilson's interval of 8 of 10, from his formula
    assert (share, round(low, 3), round(high, 3)) == (0.8, 0.490, 0.943)


def test_disconnected_components_are_each_centred_and_warned_of():
    votes = comparisons_of(None, [0, 2, 3], [1, 3, 4], [1, 1, 1], annotator=[0, 0, 0])
    with pytest.warns(DataWarning, match="never compared"):
        ranking = PairwiseHITS().fit(votes)
    np.testing.assert_allclose(ranking.scores, [0.5, -0.5, 1.0, 0.0, -1.0], atol=1e-12)


def test_judgments_that_name_nobody_are_one_annotator_s():
    ranking = PairwiseHITS().fit(comparisons_of(None, [0, 0, 1], [1, 1, 2], [1, 1, 1]))
    np.testing.assert_allclose(ranking.scores, [5 / 3, -1 / 3, -4 / 3], atol=1e-12)
    with pytest.raises(DataError, match="has no estimates of annotators"):
        _ = ranking.annotators


@quick
@given(votes=comparisons())
def test_many_items_are_solved_for_alike(votes):
    with disconnected_allowed():
        usual = PairwiseHITS().fit(votes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(least_squares, "MAX_FACTORED_ITEMS", 0)
            np.testing.assert_allclose(PairwiseHITS().fit(votes).scores, usual.scores, atol=1e-9)


@pytest.mark.parametrize("votes_of_a_pair", [1, 4])
def test_errors_are_as_large_as_scores_vary(votes_of_a_pair):
    """Over fresh answers to the same pairs."""
    scores = np.linspace(-1.5, 1.5, 14)
    pairs = np.array([(a, b) for a in range(14) for b in range(a) if (a + b) % 3])
    left, right = np.repeat(pairs, votes_of_a_pair, axis=0).T
    chance = 1 / (1 + np.exp(scores[right] - scores[left]))
    found, errors = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        said = np.where(rng.random(len(left)) < chance, 1, -1)
        ranking = PairwiseHITS().fit(
            comparisons_of(None, left, right, said, annotator=rng.integers(20, size=len(left)))
        )
        found.append(ranking.scores)
        if seed < 3:
            errors.append(ranking.uncertainty.std_error)
    assert 0.8 < np.mean(errors) / np.std(found, axis=0).mean() < 1.3


def known_of(quality=None, between=None, better=()):
    return EncodedSideInformation(quality=quality or {}, between=between or {}, better=tuple(better))


def test_a_chain_in_the_wrong_order_becomes_one_block():
    found = project_to_constraints(
        known_of(better=[(0, 1), (1, 2)]), np.array([0.6, 0.8, 0.9]), np.array([1.0, 2.0, 3.0])
    )
    np.testing.assert_allclose(found, (0.6 + 1.6 + 2.7) / 6)


def test_only_those_out_of_order_are_pooled():
    found = project_to_constraints(
        known_of(better=[(0, 1), (1, 2), (3, 2)]), np.array([0.9, 0.5, 0.7, 0.65]), np.ones(4)
    )
    np.testing.assert_allclose(found, [0.9, 0.6, 0.6, 0.65])


@pytest.mark.parametrize(
    ("known", "held"),
    [
        (known_of({0: 0.5}, better=[(0, 1)]), [0.5, 0.5, 0.9]),
        (known_of({2: 0.7}, better=[(0, 1), (1, 2)]), [0.7, 0.7, 0.7]),
        (known_of({1: 0.3}, {2: (0.8, 0.85)}), [0.6, 0.3, 0.85]),
        (known_of(between={0: (0.1, 0.4)}, better=[(0, 1)]), [0.4, 0.4, 0.9]),
        (known_of(between={0: (0.85, 1.0)}, better=[(0, 1)]), [0.85, 0.8, 0.9]),
        (known_of({0: 0.2, 1: 0.7}, better=[(0, 1), (1, 2)]), [0.2, 0.7, 0.2]),
    ],
)
def test_known_values_and_ranges_go_before_the_order(known, held):
    np.testing.assert_allclose(project_to_constraints(known, np.array([0.6, 0.8, 0.9]), np.ones(3)), held)


@pytest.mark.parametrize("seed", range(200))
def test_all_constraints_hold(seed):
    rng = np.random.default_rng(seed)
    truth = np.sort(rng.random(7))[::-1]
    ordered = [(a, b) for a in range(7) for b in range(a + 1, 7) if rng.random() < 0.3]
    known = known_of(
        {n: float(truth[n]) for n in range(7) if rng.random() < 0.2},
        {n: (float(truth[n] - 0.1), float(truth[n] + 0.1)) for n in range(7) if rng.random() < 0.2},
        ordered,
    )
    found = project_to_constraints(known, rng.random(7), rng.integers(0, 9, 7).astype(float))
    assert all(found[n] == value for n, value in known.quality.items())
    assert all(low <= found[n] <= high for n, (low, high) in known.between.items() if n not in known.quality)
    assert all(found[a] >= found[b] for a, b in ordered)


def test_annotators_without_an_answer_are_known_to_be_unknown():
    votes = comparisons_of(None, [0, 1, 0], [1, 2, 1], [1, 1, -1], annotator=[0, 0, 1]).take(np.array([0, 1]))
    assert isinstance(votes, Comparisons)
    share, low, high = (part[1] for part in PairwiseHITS().fit(votes).annotators.estimates["ability"])
    assert (share, low, high) == (0.5, pytest.approx(0.0), pytest.approx(1.0))
