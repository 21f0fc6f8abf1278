"""The search finds what scoring every triplet finds."""

import numpy as np
import pytest

from crowdrank.active.bounding_boxes import Leaves, grow
from crowdrank.active.branch_and_bound import group, search
from crowdrank.active.exclusions import Excluded
from crowdrank.active.gain_formulas import expected_gain


def state(seed):
    """Beliefs, prices, exclusions and an exploration: spread wide, in clumps, all the same …"""
    rng = np.random.default_rng(seed)
    items, people = int(rng.integers(2, 60)), int(rng.integers(1, 12))
    mean = rng.normal(size=items) * 10 ** rng.uniform(-3, 1)
    variance = 10 ** rng.uniform(rng.uniform(-4, 0.9), np.log10(9), items)
    match seed % 5:
        case 0:
            variance[:] = variance[0]
        case 1:
            mean, variance = np.round(mean), np.round(variance) + 0.5
        case 2:
            mean[:] = 0
        case 3:
            variance = 10 ** rng.uniform(-4, -2, items)
    truths, lies = 10 ** rng.uniform(np.log10(0.5), np.log10(200), (2, people))
    if rng.random() < 0.3:
        truths, lies = np.round(truths) + 1, np.round(lies)
        lies += lies == truths
    price = rng.choice([0.5, 1.0, 2.0], people) if rng.random() < 0.5 else np.ones(people)
    query = rng.integers(0, rng.integers(1, 4), items)
    kept = Excluded(items)
    if rng.random() < 0.7:
        count = int(rng.integers(1, items * items * people // 2 + 2))
        one = rng.integers(items, size=count)
        other = (one + rng.integers(1, items, size=count)) % items
        kept = kept.adding(rng.integers(-(rng.random() < 0.3), people, size=count), one, other)
    if rng.random() < 0.4:
        kept = kept.adding_items(rng.integers(-1, people, size=3), rng.integers(items, size=3))
    exploration = float(rng.choice([0, 0.5, 1, 5, 30]))
    return mean, variance, query, truths, lies, price, kept, exploration


def score_all(mean, variance, query, truths, lies, price, kept, exploration):
    """Gains for their price, annotators by items by items; −inf where it must not be asked."""
    codes = np.arange(len(mean))
    one, other = codes[:, None], codes
    who = np.arange(len(truths))[:, None, None]
    gains = expected_gain(mean[one] - mean[other], variance[one], variance[other], truths[who], lies[who], exploration)
    allowed = kept.allows(who, one, other) & (query[one] == query[other]) & (one != other)
    return np.where(allowed, gains / price[who], -np.inf)


def look(mean, variance, query, truths, lies, price, kept, exploration):
    everyone = np.arange(len(truths))
    return search(grow(mean, variance, Leaves.of(query)), group(everyone, truths, lies, price), kept, exploration)


@pytest.mark.parametrize("seed", range(200))
def test_the_best_triplet_is_found(seed):
    given = state(seed)
    values, found = score_all(*given), look(*given)
    best = values.max()
    if best == -np.inf:
        assert found.annotator == -1
        return
    assert values[found.annotator, found.left, found.right] == pytest.approx(best, rel=1e-12, abs=0)
    assert found.gain / given[5][found.annotator] == pytest.approx(best, rel=1e-12, abs=0)


def test_it_is_found_among_many():
    rng = np.random.default_rng(0)
    given = (
        rng.normal(size=300),
        rng.uniform(0.05, 1, 300),
        np.zeros(300, int),
        rng.uniform(5, 20, 2),
        np.ones(2),
        np.ones(2),
        Excluded(300),
        3.0,
    )
    found = look(*given)
    assert found.gain == pytest.approx(score_all(*given).max(), rel=1e-12, abs=0)
    assert found.boxes + found.pairs < 5_000


@pytest.mark.parametrize("exploration", [0.0, 1.0, 10.0])
def test_a_million_ties_are_no_burden(exploration):
    given = (np.zeros(2000), np.ones(2000), np.zeros(2000, int), np.full(50, 10.0), np.ones(50), np.ones(50))
    found = look(*given, Excluded(2000).adding(-1, 0, np.arange(1, 2000)), exploration)
    assert found.pairs < 5000
    assert found.annotator >= 0
    assert 0 not in (found.left, found.right)


def test_who_may_answer_is_found_among_annotators_believed_alike():
    kept = Excluded(2).adding(np.arange(4), 0, 1)
    given = (np.zeros(2), np.ones(2), np.zeros(2, int), np.full(5, 3.0), np.ones(5), np.ones(5))
    assert look(*given, kept, 1.0).annotator == 4


def test_who_always_lies_is_worth_as_much_as_who_never_does():
    alike = group(np.arange(3), np.array([9.0, 1.0, 9.0]), np.array([1.0, 9.0, 2.0]), np.ones(3))
    assert len(alike.truths) == 2


def test_where_nothing_can_be_learnt_some_question_is_found_all_the_same():
    given = (np.zeros(5), np.ones(5), np.zeros(5, int), np.ones(2), np.ones(2), np.ones(2), Excluded(5), 0.0)
    found = look(*given)
    assert found.annotator >= 0
    assert found.gain == 0


def test_queries_of_one_item_hold_no_pair():
    given = (np.zeros(3), np.ones(3), np.arange(3), np.ones(1), np.ones(1), np.ones(1), Excluded(3), 1.0)
    assert look(*given).annotator == -1


def test_a_tree_holds_every_item_once_in_boxes_that_hold_them():
    rng = np.random.default_rng(0)
    mean, variance, query = rng.normal(size=300), rng.uniform(size=300), rng.integers(0, 3, 300)
    mean[:50], variance[:50] = 0, 1
    tree = grow(mean, variance, Leaves.of(query))
    assert sorted(tree.item) == list(range(300))
    np.testing.assert_array_equal(tree.mean, mean[tree.item])
    for node, (start, stop) in enumerate(zip(tree.start, tree.stop, strict=True)):
        inside = tree.item[start:stop]
        assert len(set(query[inside])) == 1
        box = mean[inside].min(), mean[inside].max(), variance[inside].min(), variance[inside].max()
        assert tuple(tree.box[node]) == box


def test_a_tree_of_neighbouring_numbers_ends():
    mean = np.repeat([1.0, np.nextafter(1.0, 2.0)], 10)
    tree = grow(mean, np.zeros(20), Leaves.of(np.zeros(20, int)))
    assert len(tree.start) == 3
