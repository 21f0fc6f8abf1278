"""Pairs that must not be asked."""

import numpy as np

from crowdrank.active.questions import EVERYONE, Exclusions, first_allowed


def test_nothing_is_excluded_at_first():
    assert Exclusions(5).allows(0, 1, 2)


def test_a_pair_is_kept_from_one_annotator_whichever_way_round():
    exclusions = Exclusions(5).with_pairs(1, 4, 2)
    assert not exclusions.allows(1, 2, 4)
    assert not exclusions.allows(1, 4, 2)
    assert exclusions.allows(0, 2, 4)
    assert exclusions.allows(1, 2, 3)


def test_a_pair_is_kept_from_everyone():
    exclusions = Exclusions(5).with_pairs(EVERYONE, 0, 3)
    assert not exclusions.allows(np.arange(4), 3, 0).any()


def test_an_item_is_kept_from_one_annotator_in_every_pair():
    exclusions = Exclusions(5).with_items(2, 4)
    assert exclusions.allows(2, [0, 4, 1], [1, 0, 4]).tolist() == [True, False, False]
    assert exclusions.allows(1, 0, 4)


def test_an_item_may_be_kept_from_everyone():
    assert not Exclusions(5).with_items(EVERYONE, 4).allows(3, 4, 0)


def test_adding_leaves_what_was_there_and_repeats_do_no_harm():
    first = Exclusions(4).with_pairs([0, 0, 1], [0, 1, 2], [1, 0, 3])
    second = first.with_pairs([], [], []).with_pairs(0, 0, 1).with_pairs(3, 2, 1)
    assert len(first.pairs) == 2
    assert len(second.pairs) == 3
    assert np.all(np.diff(second.pairs) > 0)


def test_single_lookups_agree_with_those_of_arrays():
    rng = np.random.default_rng(0)
    exclusions = Exclusions(9).with_pairs(rng.integers(-1, 4, 40), rng.integers(0, 4, 40), rng.integers(4, 9, 40))
    exclusions = exclusions.with_items(rng.integers(-1, 4, 3), rng.integers(9, size=3))
    for one in range(9):
        for other in set(range(9)) - {one}:
            allowed = np.flatnonzero(exclusions.allows(np.arange(4), one, other))
            assert first_allowed(exclusions, np.arange(4), one, other) == (allowed[0] if len(allowed) else -1)
