"""Verdicts: bad annotators are found, good ones are not accused, and reasons have the numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons
from crowdrank.data import Items
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.evaluation import VERDICTS, Verdicts, verdicts
from crowdrank.simulation import mixed_crowd

ACCUSED = {"noisy", "random", "reversed", "one-sided", "hasty", "different taste"}


def crowd(kinds, votes=60, items=15, scale=3.0, likeness=0.0, seed=0):
    """Judgments and the kind of each annotator. Annotators with another taste rank by other, correlated scores."""
    rng = np.random.default_rng(seed)
    taste, other = rng.standard_normal((2, items))
    other = likeness * taste + np.sqrt(1 - likeness**2) * other
    kind = np.repeat(list(kinds), list(kinds.values()))
    scores = scale * np.where((kind == "taste")[:, None], other, taste)
    quality = np.array([{"coin": 0.5, "noisy": 0.68, "reversed": 0.0}.get(k, 1.0) for k in kind])
    who = np.repeat(np.arange(len(kind)), votes)
    left = rng.integers(items, size=len(who))
    right = (left + rng.integers(1, items, size=len(who))) % items
    sees_left = rng.random(len(who)) < 1 / (1 + np.exp(scores[who, right] - scores[who, left]))
    says_left = sees_left == (rng.random(len(who)) < quality[who])
    judgments = Comparisons(
        items=Items.of([f"item {n:03}" for n in range(items)]),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=np.where(says_left, 1, -1).astype(np.int8),
        annotators=np.array([f"annotator {n:03}" for n in range(len(kind))], dtype=object),
        annotator=who.astype(np.int32),
    )
    return judgments, kind


def by_kind(found: Verdicts, kind) -> dict[str, Counter[str]]:
    return {name: Counter(found.verdict[kind == name].tolist()) for name in np.unique(kind)}


@pytest.fixture(scope="module")
def mixed():
    made = mixed_crowd(seed=3, votes_each=100)
    return made.judgments, made.annotators["kind"], verdicts(made.judgments)


def test_each_kind_of_a_mixed_crowd_is_recognised(mixed):
    _, kind, found = mixed
    seen = by_kind(found, kind)
    assert seen["good"] == {"reliable": 12}
    assert seen["reversed"] == {"reversed": 2}
    assert seen["left"] == seen["right"] == {"one-sided": 1}
    assert seen["random"] == {"random": 2}
    assert seen["noisy"]["noisy"] >= 3
    assert set(seen["noisy"]) <= {"noisy", "reliable"}


def test_reasons_carry_the_numbers(mixed):
    judgments, kind, found = mixed
    first = int(np.flatnonzero(kind == "reversed")[0])
    agreed, decided = found.agreed[first], found.decided[first]
    assert decided == np.count_nonzero(judgments.annotator == first)
    assert found.reason[first] == f"agreed with the others on {agreed} of {decided} answers: below half (p < 0.001)"
    left = int(np.flatnonzero(kind == "left")[0])
    assert found.reason[left].startswith("chose left in 100 of 100 answers, expected 5")
    assert "; agreed with the others on" in found.reason[left]


def test_no_reason_both_allows_and_excludes_random_answers():
    """The bound for a single annotator may be below one half although the adjusted p-value is not significant."""
    below = 0
    for seed in range(12):
        found = verdicts(mixed_crowd(seed=seed, votes_each=25).judgments)
        for reason in map(str, found.reason):
            assert "could be random" not in reason or "at most 0." not in reason or float(reason.split()[-1]) >= 0.5
            below += reason.endswith(")") and "could be random" in reason and " or typical" not in reason
    assert below


def test_the_frame_has_one_row_per_annotator(mixed):
    judgments, _, found = mixed
    frame = found.frame()
    assert frame["annotator"].to_list() == judgments.annotators.tolist()
    assert set(frame["verdict"]) <= set(VERDICTS)
    assert frame["p_hasty"].is_null().all()
    assert frame["p_above_half"].is_between(0, 1).all()
    assert sum(found.counts.values()) == len(found) == 24


def test_the_seed_and_nothing_else_decides(mixed):
    judgments, _, found = mixed
    shuffled = judgments.take(np.random.default_rng(0).permutation(len(judgments)))
    again, other = verdicts(shuffled), verdicts(judgments, seed=1)
    assert again.verdict.tolist() == found.verdict.tolist()
    np.testing.assert_allclose(again.p_values["above_half"], found.p_values["above_half"], rtol=1e-3)
    assert not np.allclose(other.quality, found.quality)


@pytest.mark.parametrize(
    ("kinds", "votes", "items", "scale"),
    [
        ({"coin": 30}, 50, 15, 2),
        ({"coin": 4}, 60, 8, 2),
        ({"good": 30}, 50, 15, 2),
        ({"good": 40}, 20, 30, 2),
        ({"good": 10}, 40, 10, 0.7),
        ({"noisy": 20}, 60, 12, 3),
        ({"good": 3}, 60, 8, 2),
    ],
)
def test_hardly_anyone_is_accused_if_all_are_alike(kinds, votes, items, scale):
    accused, people = 0, 0
    for seed in range(4):
        judgments, kind = crowd(kinds, votes, items, scale, seed=seed)
        durations = np.random.default_rng(seed).exponential(5, len(judgments))
        found = verdicts(replace(judgments, duration=durations))
        accused, people = accused + sum(found.counts.get(word, 0) for word in ACCUSED), people + len(kind)
    assert accused <= max(1, 0.05 * people)


def test_annotators_are_tested_against_scores_fitted_without_them():
    """Otherwise a reversed annotator with more votes than all others would determine the scores and pass."""
    judgments, _ = crowd({"good": 6, "coin": 1}, votes=30, seed=5)
    loud = judgments.annotator == 6
    weights = np.where(loud, 50.0, 1.0)
    found = verdicts(replace(judgments, weight=weights))
    assert found.verdict[6] not in ("reliable", "noisy")
    assert found.verdict[:6].tolist().count("reversed") == 0


def test_weights_do_not_count_as_more_answers():
    judgments, _ = crowd({"good": 12, "reversed": 1}, votes=3, seed=2)
    heavy = verdicts(judgments.reweighted(np.full(len(judgments), 100.0)))
    assert set(heavy.verdict) == {"too few to say"}
    assert heavy.decided.max() == 3


@pytest.mark.parametrize("likeness", [0.0, -0.5])
def test_another_taste_is_told_from_noise_and_from_reversal(likeness):
    judgments, kind = crowd({"good": 16, "taste": 8, "reversed": 3, "coin": 3}, likeness=likeness, votes=80, seed=2)
    seen = by_kind(verdicts(judgments), kind)
    assert seen["taste"]["different taste"] >= 7
    assert seen["reversed"] == {"reversed": 3}
    assert "different taste" not in seen["good"] + seen["coin"]


def test_several_reversed_are_reversed_and_the_honest_stay_honest():
    judgments, kind = crowd({"good": 10, "reversed": 4}, votes=40, items=30, seed=0)
    found = verdicts(judgments)
    assert found.camps is None
    assert by_kind(found, kind) == {"good": {"reliable": 10}, "reversed": {"reversed": 4}}


def test_too_many_to_be_reversed_have_a_different_taste():
    judgments, kind = crowd({"good": 9, "reversed": 7}, votes=40, items=15, seed=0)
    found = verdicts(judgments)
    assert found.camps is not None
    assert found.camps.sizes == (9, 7)
    assert by_kind(found, kind) == {"good": {"reliable": 9}, "reversed": {"different taste": 7}}
    assert found.reason[kind == "reversed"][0].startswith("sided with the smaller camp in ")


def test_a_heavy_annotator_is_not_the_reference_for_casual_ones():
    """A thousand equal voters with a few answers each, beside one with thousands: good, or in reverse."""
    rng = np.random.default_rng(11)
    voters = crowd({"good": 400}, votes=30, items=20, scale=1.0, seed=11)[0]
    casual = voters.take(np.sort(rng.permutation(len(voters))[:1200]))
    heavy, _ = crowd({"good": 1}, votes=3000, items=20, scale=1.0, seed=11)
    for sign in (1, -1):
        both = replace(
            casual,
            left=np.append(casual.left, heavy.left),
            right=np.append(casual.right, heavy.right),
            outcome=np.append(casual.outcome, sign * heavy.outcome),
            annotator=np.append(casual.annotator, heavy.annotator + 400),
            annotators=np.append(casual.annotators, "heavy"),
        )
        found = verdicts(both)
        assert not set(found.verdict[:-1]) & ACCUSED
        assert found.verdict[-1] == ("reliable" if sign > 0 else "reversed")


def test_nobody_is_accused_on_a_few_answers():
    judgments, _ = crowd({"good": 30, "reversed": 30, "coin": 30}, votes=9, scale=6, seed=1)
    found = verdicts(judgments)
    assert not set(found.verdict) & ACCUSED
    assert np.isnan(found.p_values["below_half"]).all()
    assert not any("nan" in reason for reason in found.reason)


def test_nobody_is_accused_if_one_annotator_decides_the_sign():
    judgments, _ = crowd({"good": 3, "reversed": 2}, votes=80)
    found = verdicts(judgments)
    assert set(found.verdict) == {"too few to say"}
    assert "contradict each other" in found.reason[0]


def test_the_quick_are_hasty_unless_they_are_reliable():
    judgments, kind = crowd({"good": 14, "coin": 2}, votes=40, seed=4)
    rng = np.random.default_rng(4)
    quick = np.isin(judgments.annotator, [0, 14])
    duration = rng.exponential(np.where(quick, 1.0, 12.0))
    duration[::7] = np.nan
    found = verdicts(replace(judgments, duration=duration))
    assert found.verdict[14] == "hasty"
    assert found.reason[14].startswith("took ")
    assert found.verdict[0] == "reliable"
    assert found.verdict[15] == "random"
    assert kind[15] == "coin"


def test_sides_are_not_held_against_anyone_where_they_are_unknown(mixed):
    judgments, kind, _ = mixed
    found = verdicts(replace(judgments, positions_known=False))
    assert "one-sided" not in found.counts
    assert found.verdict[kind == "left"][0] in ("random", "too few to say", "noisy")


def test_winners_written_first_make_nobody_one_sided():
    """Each pair is shown in one order only, the better item mostly on the left: the scores account for that."""
    judgments, _ = crowd({"good": 15}, items=8, seed=3)
    turned = judgments.left > judgments.right
    sorted_pairs = replace(
        judgments,
        left=np.where(turned, judgments.right, judgments.left),
        right=np.where(turned, judgments.left, judgments.right),
        outcome=np.where(turned, -judgments.outcome, judgments.outcome),
    )
    assert verdicts(sorted_pairs).counts == {"reliable": 15}


def test_two_annotators_cannot_be_checked():
    judgments, _ = crowd({"good": 2})
    found = verdicts(judgments)
    assert found.counts == {"too few to say": 2}
    assert "at least two other annotators" in found.reason[0]


def test_ties_are_not_decided_answers():
    judgments, _ = crowd({"good": 6}, votes=30)
    outcome = np.where(judgments.annotator == 0, 0, judgments.outcome).astype(np.int8)
    found = verdicts(replace(judgments, outcome=outcome))
    assert found.verdict[0] == "too few to say"
    assert found.reason[0] == "gave no decided answer"
    assert np.isnan(found.p_values["above_half"][0])


def test_items_that_nobody_else_judged_are_not_tested():
    votes = [("a", "b"), ("b", "c"), ("a", "c")] * 4
    alone = [("x", "y")] * 12
    people = [name for name in ("ann", "bob", "cem", "dee") for _ in votes] + ["eve"] * 12
    left, right = zip(*(votes * 4 + alone), strict=True)
    found = verdicts(Comparisons.of(left, right, left, annotator=people))
    assert found.decided.tolist() == [12, 12, 12, 12, 0]
    assert "cannot be checked" in found.reason[4]
    assert found.verdict[:4].tolist() == ["reliable"] * 4


def test_another_model_can_make_the_scores(mixed):
    judgments, kind, _ = mixed
    found = verdicts(judgments, model=BradleyTerry(), folds=24)
    assert by_kind(found, kind)["good"] == {"reliable": 12}


def test_annotators_without_answers_do_no_harm(mixed):
    judgments, _, _ = mixed
    few = judgments.take(np.flatnonzero(judgments.annotator < 8))
    found = verdicts(few)
    assert set(found.reason[8:]) == {"gave no decided answer"}


@pytest.mark.parametrize("wrong", [{"level": 0}, {"level": 0.5}, {"level": np.nan}, {"folds": 1}])
def test_invalid_settings_are_refused(mixed, wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        verdicts(mixed[0], **wrong)


def test_judgments_without_annotators_are_refused():
    with pytest.raises(DataError, match="annotators"):
        verdicts(Comparisons.of(["a"], ["b"], ["a"]))


def test_one_annotator_can_be_looked_up(mixed):
    judgments, _, found = mixed
    name = str(judgments.annotators[3])
    row = found[name]
    assert (row.annotator, row.verdict, row.reason) == (name, found.verdict[3], found.reason[3])
    with pytest.raises(UnknownNameError, match=f"did you mean '{name}'"):
        found[name + "x"]


def test_the_frame_comes_as_the_kind_of_the_judgments(mixed):
    judgments, _, _ = mixed
    few = replace(judgments.take(np.arange(60)), frame_backend="pandas")
    assert type(verdicts(few).frame()).__module__.startswith("pandas")
