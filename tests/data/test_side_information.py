"""Side information: names become codes, gold pairs are checked, contradictions raise errors."""

import pytest

from crowdrank import Comparisons, SideInformation
from crowdrank.data import agreed_pairs
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError


@pytest.fixture
def votes():
    return Comparisons.of(["a", "b", "a"], ["b", "c", "c"], ["a", "b", "tie"], annotator=["ann", "bob", "ann"])


def answered(for_a, for_b, ties=0, weight=None, annotator=None):
    """These numbers of annotators prefer a, b or neither; all of them also prefer b to c."""
    said = ["a"] * for_a + ["b"] * for_b + ["tie"] * ties
    who = [f"w{n:02d}" for n in range(len(said))] if annotator is None else annotator
    left, right = ["a", *["a"] * len(said)], ["c", *["b"] * len(said)]
    return Comparisons.of(left, right, ["a", *said], annotator=["other", *who], weight=weight)


def pairs_of(votes, better, worse):
    labels = votes.items.labels
    return [(str(labels[a]), str(labels[b])) for a, b in zip(better, worse, strict=True)]


def encoded(votes, **known):
    return SideInformation(**known).encode(votes)


def gold_of(votes, gold):
    known = encoded(votes, gold=gold)
    return pairs_of(votes, known.gold_better, known.gold_worse)


def test_nothing_is_known_by_default(votes):
    assert not encoded(votes)
    gold_only = encoded(votes, gold=[("a", "b")])
    assert gold_only.has_gold
    assert not gold_only.has_annotators


def test_labels_become_codes(votes):
    known = encoded(
        votes, quality={"ann": 0.9}, between={"bob": (0.2, 0.6)}, better=[("ann", "bob")], gold=[("c", "a")]
    )
    assert (known.quality, known.between, known.better) == ({0: 0.9}, {1: (0.2, 0.6)}, ((0, 1),))
    assert pairs_of(votes, known.gold_better, known.gold_worse) == [("c", "a")]
    assert known
    assert known.has_annotators


def test_order_may_come_from_an_iterator(votes):
    known = SideInformation(better=iter([("ann", "bob")]))
    assert known.encode(votes).better == known.encode(votes).better == ((0, 1),)


def test_names_that_are_numbers_are_found_by_number_or_text():
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"], annotator=["7", "8"])
    assert encoded(votes, quality={7: 0.9, "8": 0.5}).quality == {0: 0.9, 1: 0.5}


@pytest.mark.parametrize(
    "known", [{"quality": {"anna": 0.9}}, {"between": {"anna": (0.1, 0.9)}}, {"better": [("bob", "anna")]}]
)
def test_an_annotator_nobody_knows_is_refused_and_the_nearest_suggested(votes, known):
    with pytest.raises(UnknownNameError, match="No annotator named 'anna'; did you mean 'ann'"):
        encoded(votes, **known)


@pytest.mark.parametrize("ends", [(0.9, 0.6), (0.6, 0.6), (float("nan"), 0.9)])
def test_a_range_goes_up(votes, ends):
    with pytest.raises(SettingError, match="quality of ann must lie between a lower and a higher value"):
        encoded(votes, between={"ann": ends})


def test_nobody_is_better_than_themselves(votes):
    with pytest.raises(SettingError, match="ann cannot be better than ann"):
        encoded(votes, better=[("ann", "ann")])


@pytest.mark.parametrize(
    ("better", "said"),
    [
        ([("ann", "bob"), ("bob", "ann")], "(ann > bob > ann|bob > ann > bob) is a cycle"),
        (
            [("ann", "bob"), ("cem", "ann"), ("dev", "cem"), ("bob", "cem")],
            "cannot be better than .*(ann > bob|bob > cem|cem > ann).* is a cycle",
        ),
    ],
)
def test_better_does_not_go_in_circles(better, said):
    votes = Comparisons.of(["a"] * 4, ["b"] * 4, ["a"] * 4, annotator=["ann", "bob", "cem", "dev"])
    with pytest.raises(SettingError, match=said):
        encoded(votes, better=better)
    assert len(encoded(votes, better=[*better[:1], ("ann", "cem"), ("bob", "cem")]).better) == 3


@pytest.mark.parametrize("weight", [-1.0, float("inf"), float("nan")])
def test_the_weight_of_gold_is_a_number(votes, weight):
    with pytest.raises(SettingError, match="gold_weight must be zero or more"):
        encoded(votes, gold=[("a", "b")], gold_weight=weight)


def test_gold_may_be_comparisons_whose_ties_say_nothing(votes):
    gold = Comparisons.of(["c", "a", "a"], ["a", "b", "c"], ["c", "b", "tie"])
    assert gold_of(votes, gold) == [("c", "a"), ("b", "a")]


@pytest.mark.parametrize("pair", [("a", "b", "c"), ("a",), "ab"])
def test_a_gold_pair_is_two_items(votes, pair):
    with pytest.raises(SettingError, match="two items, the better one first"):
        encoded(votes, gold=[pair])


def test_gold_on_items_nobody_judged_is_left_out_and_told(votes):
    with pytest.warns(DataWarning, match="2 gold pairs name an item nobody judged"):
        assert gold_of(votes, [("a", "b"), ("a", "z"), ("y", "z")]) == [("a", "b")]
    with pytest.warns(DataWarning, match="1 gold pair names an item nobody judged"):
        encoded(votes, gold=[("a", "b"), ("a", "z")])


@pytest.mark.parametrize("gold", [[("y", "z")], []])
def test_gold_of_which_nothing_can_be_used_is_refused(votes, gold):
    with pytest.raises(DataError, match="No gold pair"):
        encoded(votes, gold=gold)


def test_gold_belongs_to_its_query():
    votes = Comparisons.of(["a", "a"], ["b", "b"], ["a", "b"], annotator=["ann", "bob"], query=["one", "two"])
    gold = Comparisons.of(["b"], ["a"], ["b"], query=["two"])
    known = encoded(votes, gold=gold)
    places = [*known.gold_better, *known.gold_worse]
    assert [str(votes.items.queries[votes.items.query[n]]) for n in places] == ["two", "two"]
    assert [str(votes.items.labels[n]) for n in places] == ["b", "a"]


def test_queries_are_named_on_both_sides_or_on_none(votes):
    with pytest.raises(DataError, match="The gold pairs name queries"):
        encoded(votes, gold=Comparisons.of(["a"], ["b"], ["a"], query=["one"]))
    asked = Comparisons.of(["a"], ["b"], ["a"], annotator=["ann"], query=["one"])
    with pytest.raises(DataError, match="The judgments name queries"):
        encoded(asked, gold=[("a", "b")])


def test_gold_is_pairs_or_agreed(votes):
    with pytest.raises(SettingError, match="got 'majority'"):
        encoded(votes, gold="majority")


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
        assert gold_of(votes, "agreed") == gold
    else:
        with pytest.raises(DataError, match="none can serve as gold"):
            encoded(votes, gold="agreed")


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


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            {"quality": {"ann": 0.9}, "between": {"ann": (0.1, 0.8)}},
            "ann is known to be 0.9, and to lie between 0.1 and 0.8",
        ),
        ({"quality": {"ann": 0.6, "bob": 0.9}, "better": [("ann", "bob")]}, "ann is given as better than bob"),
        (
            {"between": {"ann": (0.5, 0.6), "bob": (0.7, 0.9)}, "better": [("ann", "bob")]},
            "ann is given as better than bob",
        ),
        ({"quality": {"ann": float("nan")}}, "must be a number"),
    ],
)
def test_contradictions_are_refused(votes, known, said):
    with pytest.raises(SettingError, match=said):
        encoded(votes, **known)


def test_intervals_that_overlap_do_not_contradict_an_order(votes):
    ranges = encoded(votes, between={"ann": (0.5, 0.8), "bob": (0.7, 0.9)}, better=[("ann", "bob")])
    assert (len(ranges.between), len(ranges.better)) == (2, 1)
    equal = encoded(votes, quality={"ann": 0.8, "bob": 0.8}, better=[("ann", "bob")])
    assert (len(equal.quality), len(equal.better)) == (2, 1)
