"""The search finds the same triplet as scoring all of them."""

import numpy as np
import pytest

from crowdrank.active.branch_and_bound import QueryBlocks, build_tree, group_annotators, search
from crowdrank.active.gain_formulas import expected_gain
from crowdrank.active.questions import Exclusions


def state(seed):
    """Beliefs, prices, exclusions and an exploration weight: widely spread, clustered, or all equal."""
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
    alpha, beta = 10 ** rng.uniform(np.log10(0.5), np.log10(200), (2, people))
    if rng.random() < 0.3:
        alpha, beta = np.round(alpha) + 1, np.round(beta)
        beta += beta == alpha
    price = rng.choice([0.5, 1.0, 2.0], people) if rng.random() < 0.5 else np.ones(people)
    query = rng.integers(0, rng.integers(1, 4), items)
    exclusions = Exclusions(items)
    if rng.random() < 0.7:
        count = int(rng.integers(1, items * items * people // 2 + 2))
        one = rng.integers(items, size=count)
        other = (one + rng.integers(1, items, size=count)) % items
        exclusions = exclusions.with_pairs(rng.integers(-(rng.random() < 0.3), people, size=count), one, other)
    if rng.random() < 0.4:
        exclusions = exclusions.with_items(rng.integers(-1, people, size=3), rng.integers(items, size=3))
    exploration = float(rng.choice([0, 0.5, 1, 5, 30]))
    return mean, variance, query, alpha, beta, price, exclusions, exploration


def score_all(mean, variance, query, alpha, beta, price, exclusions, exploration):
    """Gains per price, annotators by items by items; −inf where excluded."""
    codes = np.arange(len(mean))
    one, other = codes[:, None], codes
    who = np.arange(len(alpha))[:, None, None]
    gains = expected_gain(mean[one] - mean[other], variance[one], variance[other], alpha[who], beta[who], exploration)
    allowed = exclusions.allows(who, one, other) & (query[one] == query[other]) & (one != other)
    return np.where(allowed, gains / price[who], -np.inf)


def look(mean, variance, query, alpha, beta, price, exclusions, exploration):
    everyone = np.arange(len(alpha))
    return search(
        build_tree(mean, variance, QueryBlocks.of(query)),
        group_annotators(everyone, alpha, beta, price),
        exclusions,
        exploration,
    )


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
        Exclusions(300),
        3.0,
    )
    found = look(*given)
    assert found.gain == pytest.approx(score_all(*given).max(), rel=1e-12, abs=0)
    assert found.boxes + found.pairs < 5_000


@pytest.mark.parametrize("exploration", [0.0, 1.0, 10.0])
def test_a_million_ties_are_no_burden(exploration):
    given = (np.zeros(2000), np.ones(2000), np.zeros(2000, int), np.full(50, 10.0), np.ones(50), np.ones(50))
    found = look(*given, Exclusions(2000).with_pairs(-1, 0, np.arange(1, 2000)), exploration)
    assert found.pairs < 5000
    assert found.annotator >= 0
    assert 0 not in (found.left, found.right)


def test_an_annotator_who_may_answer_is_found_within_a_group_of_equal_beliefs():
    exclusions = Exclusions(2).with_pairs(np.arange(4), 0, 1)
    given = (np.zeros(2), np.ones(2), np.zeros(2, int), np.full(5, 3.0), np.ones(5), np.ones(5))
    assert look(*given, exclusions, 1.0).annotator == 4


def test_always_wrong_is_as_informative_as_always_right():
    alike = group_annotators(np.arange(3), np.array([9.0, 1.0, 9.0]), np.array([1.0, 9.0, 2.0]), np.ones(3))
    assert len(alike.alpha) == 2


def test_a_question_is_found_even_if_no_gain_is_possible():
    given = (np.zeros(5), np.ones(5), np.zeros(5, int), np.ones(2), np.ones(2), np.ones(2), Exclusions(5), 0.0)
    found = look(*given)
    assert found.annotator >= 0
    assert found.gain == 0


def test_queries_of_one_item_hold_no_pair():
    given = (np.zeros(3), np.ones(3), np.arange(3), np.ones(1), np.ones(1), np.ones(1), Exclusions(3), 1.0)
    assert look(*given).annotator == -1


def test_a_tree_holds_every_item_once_in_boxes_that_hold_them():
    rng = np.random.default_rng(0)
    mean, variance, query = rng.normal(size=300), rng.uniform(size=300), rng.integers(0, 3, 300)
    mean[:50], variance[:50] = 0, 1
    tree = build_tree(mean, variance, QueryBlocks.of(query))
    assert sorted(tree.item) == list(range(300))
    np.testing.assert_array_equal(tree.mean, mean[tree.item])
    for node, (start, stop) in enumerate(zip(tree.start, tree.stop, strict=True)):
        inside = tree.item[start:stop]
        assert len(set(query[inside])) == 1
        box = mean[inside].min(), mean[inside].max(), variance[inside].min(), variance[inside].max()
        assert tuple(tree.box[node]) == box


def test_a_tree_of_neighbouring_numbers_ends():
    mean = np.repeat([1.0, np.nextafter(1.0, 2.0)], 10)
    tree = build_tree(mean, np.zeros(20), QueryBlocks.of(np.zeros(20, int)))
    assert len(tree.start) == 3
