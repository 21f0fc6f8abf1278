import numpy as np
import pytest

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.simulation import mixed_crowd

ANIMALS = {"whale": 140_000.0, "elephant": 5_000.0, "cow": 600.0, "cat": 4.0, "mouse": 0.02}


def share_right(crowd, kind):
    votes = crowd.judgments.take(np.flatnonzero((crowd.annotators["kind"] == kind)[crowd.judgments.annotator]))
    return ((crowd.truth[votes.left] > crowd.truth[votes.right]) == (votes.outcome == 1)).mean()


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("good", 0.92, 1), ("noisy", 0.6, 0.8), ("random", 0.47, 0.53), ("reversed", 0, 0.1)]
)
def test_each_kind_is_right_as_often_as_it_should_be_on_easy_questions(kind, low, high):
    crowd = mixed_crowd(30, kinds={kind: 40}, votes_each=200, scale=1000, seed=1)
    assert low < share_right(crowd, kind) < high


def test_one_sided_annotators_never_leave_their_side():
    crowd = mixed_crowd(kinds={"left": 3, "right": 2, "good": 5})
    votes, kind = crowd.judgments, crowd.annotators["kind"][crowd.judgments.annotator]
    assert set(votes.outcome[kind == "left"]) == {1}
    assert set(votes.outcome[kind == "right"]) == {-1}
    assert set(votes.outcome[kind == "good"]) == {1, -1}


def test_close_items_are_harder():
    crowd = mixed_crowd(40, kinds={"good": 50}, votes_each=300, seed=2)
    votes = crowd.judgments
    gap = np.abs(crowd.truth[votes.left] - crowd.truth[votes.right])
    right = (crowd.truth[votes.left] > crowd.truth[votes.right]) == (votes.outcome == 1)
    assert right[gap <= 3].mean() < 0.75
    assert right[gap >= 20].mean() > 0.9


def test_logarithms_make_ratios_count():
    """In kilograms, a cow and a cat hardly differ compared with a whale."""
    plain = mixed_crowd(ANIMALS, kinds={"good": 1000}, votes_each=10, seed=3)
    ratios = mixed_crowd(ANIMALS, kinds={"good": 1000}, votes_each=10, log=True, seed=3)
    cow, cat = plain.judgments.items.index("cow"), plain.judgments.items.index("cat")
    assert cow_over_cat(plain, cow, cat) == pytest.approx(0.5, abs=0.07)
    assert cow_over_cat(ratios, cow, cat) > 0.85


def cow_over_cat(crowd, cow, cat):
    votes = crowd.judgments
    one, other = (votes.left == cow) & (votes.right == cat), (votes.left == cat) & (votes.right == cow)
    return np.concatenate((votes.outcome[one] == 1, votes.outcome[other] == -1)).mean()


def test_truth_stays_with_its_label():
    crowd = mixed_crowd(ANIMALS, kinds={"good": 3}, votes_each=5)
    assert crowd.judgments.items.labels.tolist() == sorted(ANIMALS)
    assert dict(zip(crowd.judgments.items.labels, crowd.truth, strict=True)) == ANIMALS


def test_annotators_answer_the_requested_number_of_different_pairs():
    votes = mixed_crowd(20, kinds={"good": 10}, votes_each="uniform(30,60)").judgments
    load = np.bincount(votes.annotator)
    assert load.min() >= 30
    assert load.max() <= 60
    assert len(set(load)) > 1
    for who in range(10):
        assert np.all(votes.take(np.flatnonzero(votes.annotator == who)).counts.total == 1)


def test_names_do_not_give_the_kind_away():
    crowd = mixed_crowd(kinds={"good": 10, "reversed": 10}, votes_each=5, names=[f"n{n:02d}" for n in range(20)])
    assert crowd.judgments.annotators.tolist() == [f"n{n:02d}" for n in range(20)]
    first_half = set(crowd.annotators["kind"][:10])
    assert first_half == {"good", "reversed"}


def test_the_same_seed_gives_the_same_crowd():
    assert mixed_crowd(seed=1).judgments.to_frame().equals(mixed_crowd(seed=1).judgments.to_frame())
    assert not mixed_crowd(seed=1).judgments.to_frame().equals(mixed_crowd(seed=2).judgments.to_frame())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"items": 1}, "items must be at least 2, got 1"),
        ({"items": {"a": 1.0}}, "at least two"),
        ({"items": {"a": 1.0, "b": float("nan")}}, "Item 'b': its value must be a finite number"),
        ({"items": {"a": 1.0, "b": 0.0}, "votes_each": 1, "log": True}, "log needs values above zero, got 0"),
        ({"items": 5, "votes_each": 11}, "votes_each must lie between 1 and 10"),
        ({"votes_each": 0}, "votes_each must lie between 1 and 780"),
        ({"kinds": {}}, "at least one annotator"),
        ({"kinds": {"good": -1}}, "The number of good annotators must be at least 0, got -1"),
        ({"kinds": {"good": 2}, "names": ["ann", "ann"]}, "names must be 2 different names"),
        ({"scale": -1.0}, "scale must be a number above zero"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        mixed_crowd(**settings)


def test_an_unknown_kind_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'noisy'"):
        mixed_crowd(kinds={"nosy": 3})
