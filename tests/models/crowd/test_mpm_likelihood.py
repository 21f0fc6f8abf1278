"""Likelihood of the multinomial preference model: a worked example, derivatives against finite differences."""

import numpy as np
import pytest

from crowdrank.engines.local import add
from crowdrank.models.crowd import mpm_likelihood
from crowdrank.models.crowd.mpm_likelihood import (
    ChoiceSets,
    evaluate,
    hessian_blocks,
    hessian_diagonal,
    hessian_product,
)


def sets_by_hand():
    """Two annotators; the first chose among items 0, 1, 2 and among 3, 4, the second among 0, 1, 2 only."""
    return ChoiceSets(
        items=5,
        annotators=2,
        annotator=np.array([0, 0, 1]),
        weight=np.array([3.0, 2.0, 1.5]),
        start=np.array([0, 3, 5]),
        set_of=np.array([0, 0, 0, 1, 1, 2, 2, 2]),
        item=np.array([0, 1, 2, 3, 4, 0, 1, 2]),
        half_net_wins=np.array([1.0, 0.5, -1.5, 0.5, -0.5, -0.75, 0.25, 0.5]),
    )


def written_out(sets, x):
    """Every ordered pair of every cell."""
    scores, adherence = x[: sets.items], x[sets.items :]
    value = 0.0
    for c in range(len(sets.annotator)):
        mine = np.flatnonzero(sets.set_of == c)
        s, theta = scores[sets.item[mine]], adherence[sets.annotator[c]]
        z = sum(np.exp(theta * (a - b) / 2) for i, a in enumerate(s) for j, b in enumerate(s) if i != j)
        value += theta * sets.half_net_wins[mine] @ s - sets.weight[c] * np.log(z)
    return value


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=7)


def gradient_at(sets, x):
    _, found = evaluate(sets, x[: sets.items], x[sets.items :])
    return np.concatenate((found.by_score, found.by_adherence))


def curvature_by_differences(sets, x, step=1e-6):
    return -np.array(
        [(gradient_at(sets, x + e) - gradient_at(sets, x - e)) / (2 * step) for e in step * np.eye(len(x))]
    )


def test_a_worked_example():
    """One item twice as strong as two others: e^(s/2) is 2, and Z = 2 + 2 + 1 + 1 + 1/2 + 1/2."""
    one = ChoiceSets(3, 1, np.array([0]), np.array([1.0]), np.array([0]), np.zeros(3, int), np.arange(3), np.zeros(3))
    said = one._replace(half_net_wins=np.array([0.5, -0.5, 0.0]))
    scores = np.array([2 * np.log(2.0), 0.0, 0.0])
    assert np.exp(evaluate(said, scores, np.ones(1))[1].value) == pytest.approx(2 / 7)
    assert np.exp(evaluate(said, scores, -np.ones(1))[1].value) == pytest.approx((1 / 2) / 7)
    assert np.exp(evaluate(said, scores, np.zeros(1))[1].value) == pytest.approx(1 / 6)


def test_the_value_is_that_of_every_ordered_pair(x):
    sets = sets_by_hand()
    assert evaluate(sets, x[:5], x[5:])[1].value == pytest.approx(written_out(sets, x), abs=1e-12)


def test_gradients_agree_with_finite_differences(x):
    sets, step = sets_by_hand(), 1e-6
    expected = [(written_out(sets, x + e) - written_out(sets, x - e)) / (2 * step) for e in step * np.eye(7)]
    np.testing.assert_allclose(gradient_at(sets, x), expected, atol=1e-8)


def full_sets():
    """Two annotators, three sets of all five items."""
    item, weight = np.tile(np.arange(5), 3), np.array([3.0, 2.0, 1.5])
    net = np.random.default_rng(1).normal(size=15)
    return ChoiceSets(5, 2, np.array([0, 1, 1]), weight, np.array([0, 5, 10]), np.repeat(np.arange(3), 5), item, net)


@pytest.mark.parametrize("sets", [sets_by_hand(), full_sets()], ids=["some items", "all items"])
@pytest.mark.parametrize("dense", [0, 10, 1_000_000])
def test_curvature_agrees_with_differences_of_gradients(x, sets, dense, monkeypatch):
    monkeypatch.setattr(mpm_likelihood, "_MOST_DENSE", dense)
    (seen, _), expected = evaluate(sets, x[:5], x[5:]), curvature_by_differences(sets, x)
    own, across = hessian_blocks(seen)
    np.testing.assert_allclose(own, expected[:5, :5], atol=1e-8)
    np.testing.assert_allclose(across.toarray() if dense == 0 else across, expected[:5, 5:], atol=1e-8)
    np.testing.assert_allclose(np.concatenate(hessian_diagonal(seen)), np.diag(expected), atol=1e-8)
    columns = [np.concatenate(hessian_product(seen, e[:5], e[5:])) for e in np.eye(7)]
    np.testing.assert_allclose(np.array(columns).T, expected, atol=1e-8)


def test_nothing_overflows():
    sets = sets_by_hand()
    seen, found = evaluate(sets, 1e4 * np.array([1.0, -1.0, 0.5, 2.0, -2.0]), np.array([3.0, -3.0]))
    assert np.isfinite(found.value)
    assert np.isfinite(np.concatenate((found.by_score, found.by_adherence, *hessian_diagonal(seen)))).all()


def test_shards_are_whole_sets_and_add_up(x):
    sets = sets_by_hand()
    parts = sets.split(3)
    assert sum(part.rows for part in parts) == sets.rows
    assert [part.start[0] for part in parts] == [part.set_of[0] for part in parts] == [0] * len(parts)
    assert len(parts) > 1
    found = add(evaluate(part, x[:5], x[5:])[1] for part in parts)
    np.testing.assert_allclose(np.concatenate(found[1:]), gradient_at(sets, x), atol=1e-12)
    whole, in_parts = (
        hessian_blocks(evaluate(sets, x[:5], x[5:])[0]),
        add(hessian_blocks(evaluate(part, x[:5], x[5:])[0]) for part in parts),
    )
    np.testing.assert_allclose(in_parts[0], whole[0], atol=1e-12)
    np.testing.assert_allclose(in_parts[1], whole[1], atol=1e-12)
