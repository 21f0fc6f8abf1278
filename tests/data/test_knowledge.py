"""What is known beside the judgments: names, ranges, gold pairs, and that they stay with the judgments."""

import numpy as np
import pytest

from crowdrank import Comparisons
from crowdrank.data import Better, Between, Known, agreed_pairs
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError


@pytest.fixture
def votes():
    return Comparisons.of(["a", "b", "a"], ["b", "c", "c"], ["a", "b", "tie"], annotator=["ann", "bob", "ann"])


def answered(for_a, for_b, ties=0, weight=None, annotator=None):
    """So many annotators prefer a, so many b, so many neither; all of them also like b above c."""
    said = ["a"] * for_a + ["b"] * for_b + ["tie"] * ties
    who = [f"w{n:02d}" for n in range(len(said))] if annotator is None else annotator
    left, right = ["a", *["a"] * len(said)], ["c", *["b"] * len(said)]
    return Comparisons.of(left, right, ["a", *said], annotator=["other", *who], weight=weight)


def pairs_of(votes, better, worse):
    labels = votes.items.labels
    return [(str(labels[a]), str(labels[b])) for a, b in zip(better, worse, strict=True)]


def gold_of(votes):
    return pairs_of(votes, votes.knowledge.gold_better, votes.knowledge.gold_worse)


def test_nothing_is_known_unless_told(votes):
    assert not votes.knowledge
    assert not votes.knowing().knowledge
    assert not votes.knowing(gold=[("a", "b")]).knowledge.of_annotators


def test_labels_become_codes(votes):
    told = votes.knowing(quality={"ann": 0.9}, between={"bob": (0.2, 0.6)}, better=[("ann", "bob")], gold=[("c", "a")])
    known = told.knowledge
    assert (known.quality, known.between, known.better) == ({0: 0.9}, {1: (0.2, 0.6)}, ((0, 1),))
    assert gold_of(told) == [("c", "a")]
    assert known
    assert known.of_annotators


def test_names_that_are_numbers_are_found_by_number_or_text():
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"], annotator=["7", "8"])
    assert votes.knowing(quality={7: 0.9, "8": 0.5}).knowledge.quality == {0: 0.9, 1: 0.5}


@pytest.mark.parametrize(
    "told", [{"quality": {"anna": 0.9}}, {"between": {"anna": (0.1, 0.9)}}, {"better": [("bob", "anna")]}]
)
def test_an_annotator_nobody_knows_is_refused_and_the_nearest_suggested(votes, told):
    with pytest.raises(UnknownNameError, match="No annotator named 'anna'; did you mean 'ann'"):
        votes.knowing(**told)


@pytest.mark.parametrize("ends", [(0.9, 0.6), (0.6, 0.6), (float("nan"), 0.9)])
def test_a_range_goes_up(votes, ends):
    with pytest.raises(SettingError, match="quality of ann must lie between a lower and a higher value"):
        votes.knowing(between={"ann": ends})


def test_nobody_is_better_than_themselves(votes):
    with pytest.raises(SettingError, match="ann cannot be better than ann"):
        votes.knowing(better=[("ann", "ann")])


@pytest.mark.parametrize(
    ("better", "said"),
    [
        ([("ann", "bob"), ("bob", "ann")], "(ann > bob > ann|bob > ann > bob) goes in a circle"),
        (
            [("ann", "bob"), ("cem", "ann"), ("dev", "cem"), ("bob", "cem")],
            "cannot be better than .*(ann > bob|bob > cem|cem > ann).* goes in a circle",
        ),
    ],
)
def test_better_does_not_go_in_circles(better, said):
    votes = Comparisons.of(["a"] * 4, ["b"] * 4, ["a"] * 4, annotator=["ann", "bob", "cem", "dev"])
    with pytest.raises(SettingError, match=said):
        votes.knowing(better=better)
    assert len(votes.knowing(better=[*better[:1], ("ann", "cem"), ("bob", "cem")]).knowledge.better) == 3


@pytest.mark.parametrize("weight", [-1.0, float("inf"), float("nan")])
def test_the_weight_of_gold_is_a_number(votes, weight):
    with pytest.raises(SettingError, match="gold_weight must be zero or more"):
        votes.knowing(gold=[("a", "b")], gold_weight=weight)


def test_gold_may_be_comparisons_whose_ties_say_nothing(votes):
    gold = Comparisons.of(["c", "a", "a"], ["a", "b", "c"], ["c", "b", "tie"])
    assert gold_of(votes.knowing(gold=gold)) == [("c", "a"), ("b", "a")]


@pytest.mark.parametrize("pair", [("a", "b", "c"), ("a",), "ab"])
def test_a_gold_pair_is_two_items(votes, pair):
    with pytest.raises(SettingError, match="two items, the better one first"):
        votes.knowing(gold=[pair])


def test_gold_on_items_nobody_judged_is_left_out_and_told(votes):
    with pytest.warns(DataWarning, match="2 gold pairs name an item nobody judged"):
        told = votes.knowing(gold=[("a", "b"), ("a", "z"), ("y", "z")])
    assert gold_of(told) == [("a", "b")]
    with pytest.warns(DataWarning, match="1 gold pair names an item nobody judged"):
        votes.knowing(gold=[("a", "b"), ("a", "z")])


@pytest.mark.parametrize("gold", [[("y", "z")], []])
def test_gold_of_which_nothing_can_be_used_is_refused(votes, gold):
    with pytest.raises(DataError, match="No gold pair"):
        votes.knowing(gold=gold)


def test_gold_belongs_to_its_query():
    votes = Comparisons.of(["a", "a"], ["b", "b"], ["a", "b"], annotator=["ann", "bob"], query=["one", "two"])
    gold = Comparisons.of(["b"], ["a"], ["b"], query=["two"])
    known = votes.knowing(gold=gold).knowledge
    places = [*known.gold_better, *known.gold_worse]
    assert [str(votes.items.queries[votes.items.query[n]]) for n in places] == ["two", "two"]
    assert [str(votes.items.labels[n]) for n in places] == ["b", "a"]


def test_queries_are_named_on_both_sides_or_on_none(votes):
    with pytest.raises(DataError, match="The gold pairs name queries"):
        votes.knowing(gold=Comparisons.of(["a"], ["b"], ["a"], query=["one"]))
    asked = Comparisons.of(["a"], ["b"], ["a"], annotator=["ann"], query=["one"])
    with pytest.raises(DataError, match="The judgments name queries"):
        asked.knowing(gold=[("a", "b")])


def test_gold_is_pairs_or_agreed(votes):
    with pytest.raises(SettingError, match="got 'majority'"):
        votes.knowing(gold="majority")


@pytest.mark.parametrize(
    ("for_a", "for_b", "ties", "gold"),
    [
        (11, 0, 0, [("a", "b")]),
        (0, 11, 0, [("b", "a")]),
        (10, 0, 0, []),
        (10, 1, 0, [("a", "b")]),
        (9, 2, 0, []),
        (18, 2, 0, [("a", "b")]),
        (17, 3, 0, []),
        (18, 0, 2, [("a", "b")]),
        (18, 1, 2, []),
    ],
)
def test_agreed_pairs_have_more_than_ten_annotators_of_whom_nine_in_ten_agree(for_a, for_b, ties, gold):
    """Footnote 4 of Chen et al. 2013."""
    votes = answered(for_a, for_b, ties)
    assert pairs_of(votes, *agreed_pairs(votes)) == gold
    if gold:
        assert gold_of(votes.knowing(gold="agreed")) == gold
    else:
        with pytest.raises(DataError, match="none can serve as gold"):
            votes.knowing(gold="agreed")


def test_annotators_are_counted_not_their_answers_or_weights():
    assert not len(agreed_pairs(answered(12, 0, annotator=["w"] * 12))[0])
    assert not len(agreed_pairs(answered(3, 0, weight=[1.0, 10.0, 10.0, 10.0]))[0])
    two_voices = [f"w{n}" for n in range(11)] + ["w0"] * 9
    votes = answered(11, 9, annotator=two_voices)  # w0 says b nine times: ten of eleven say a
    assert pairs_of(votes, *agreed_pairs(votes)) == [("a", "b")]


def test_an_annotator_of_two_minds_agrees_with_nobody():
    votes = answered(20, 3, annotator=[f"w{n}" for n in range(20)] + ["w0", "w1", "w2"])
    assert not len(agreed_pairs(votes)[0])


def test_sides_of_the_screen_do_not_matter_to_agreement():
    said = ["a"] * 12
    left, right = ["a", "b"] * 6, ["b", "a"] * 6
    votes = Comparisons.of(left * 2, right * 2, said * 2, annotator=[f"w{n % 12}" for n in range(24)])
    assert pairs_of(votes, *agreed_pairs(votes)) == [("a", "b")]


def test_judgments_that_name_nobody_are_one_answer_each():
    votes = Comparisons.of(["a"] * 12, ["b"] * 12, ["a"] * 12)
    assert pairs_of(votes, *agreed_pairs(votes)) == [("a", "b")]


def test_what_is_known_stays_with_the_judgments(votes):
    told = votes.knowing(quality={"ann": 0.9}, gold=[("a", "c")], gold_weight=2.0)
    some = told.take(np.array([0, 1]))
    for kept in (some, told.reweighted(np.array([2.0, 1.0, 0.0])), told.with_outcomes_reversed()):
        assert kept.knowledge is told.knowledge
    assert votes.knowledge is not told.knowledge
    assert not told.knowing().knowledge


def test_facts_say_the_same_as_words(votes):
    by_words = votes.knowing(quality={"ann": 0.9}, between={"bob": (0.2, 0.6)}, better=[("ann", "bob")]).knowledge
    by_facts = votes.knowing(Known("ann", 0.9), Between("bob", 0.2, 0.6), Better("ann", "bob")).knowledge
    for name in ("quality", "between", "better"):
        assert getattr(by_facts, name) == getattr(by_words, name)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ([Known("ann", 0.9), Known("ann", 0.8)], "told twice"),
        ([Known("ann", 0.9), Between("ann", 0.1, 0.8)], "ann is known to be 0.9, and to lie between 0.1 and 0.8"),
        ([Known("ann", 0.6), Known("bob", 0.9), Better("ann", "bob")], "ann is told to be better than bob"),
        ([Between("ann", 0.5, 0.6), Between("bob", 0.7, 0.9), Better("ann", "bob")], "ann is told to be better"),
        ([Known("ann", float("nan"))], "must be a number"),
        (["ann"], "Known"),
    ],
)
def test_what_cannot_all_be_true_is_refused(votes, facts, said):
    with pytest.raises(SettingError, match=said):
        votes.knowing(*facts)


def test_ranges_that_meet_are_no_contradiction(votes):
    ranges = votes.knowing(Between("ann", 0.5, 0.8), Between("bob", 0.7, 0.9), Better("ann", "bob")).knowledge
    assert (len(ranges.between), len(ranges.better)) == (2, 1)
    equal = votes.knowing(Known("ann", 0.8), Known("bob", 0.8), Better("ann", "bob")).knowledge
    assert (len(equal.quality), len(equal.better)) == (2, 1)
