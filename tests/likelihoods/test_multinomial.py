"""The multinomial of preferences: a worked example, slopes and curvature against differences."""

import numpy as np
import pytest

from crowdrank.engines.base import add
from crowdrank.models.crowd.mpm_likelihood import Cells, blocks, diagonal, look, product


def cells_by_hand():
    """Two annotators; the first chose among items 0, 1, 2 and among 3, 4, the second among 0, 1, 2 only."""
    return Cells(
        items=5,
        annotators=2,
        who=np.array([0, 0, 1]),
        total=np.array([3.0, 2.0, 1.5]),
        start=np.array([0, 3, 5]),
        cell=np.array([0, 0, 0, 1, 1, 2, 2, 2]),
        item=np.array([0, 1, 2, 3, 4, 0, 1, 2]),
        net=np.array([1.0, 0.5, -1.5, 0.5, -0.5, -0.75, 0.25, 0.5]),
    )


def written_out(cells, x):
    """Every ordered pair of every cell."""
    scores, adherence = x[: cells.items], x[cells.items :]
    value = 0.0
    for c in range(len(cells.who)):
        mine = np.flatnonzero(cells.cell == c)
        s, theta = scores[cells.item[mine]], adherence[cells.who[c]]
        z = sum(np.exp(theta * (a - b) / 2) for i, a in enumerate(s) for j, b in enumerate(s) if i != j)
        value += theta * cells.net[mine] @ s - cells.total[c] * np.log(z)
    return value


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=7)


def slope_at(cells, x):
    _, slopes = look(cells, x[: cells.items], x[cells.items :])
    return np.concatenate((slopes.by_score, slopes.by_adherence))


def curvature_by_differences(cells, x, step=1e-6):
    return -np.array([(slope_at(cells, x + e) - slope_at(cells, x - e)) / (2 * step) for e in step * np.eye(len(x))])


def test_a_worked_example():
    """One item twice as strong as two others: e^(s/2) is 2, and Z = 2 + 2 + 1 + 1 + 1/2 + 1/2."""
    one = Cells(3, 1, np.array([0]), np.array([1.0]), np.array([0]), np.zeros(3, int), np.arange(3), np.zeros(3))
    said = one._replace(net=np.array([0.5, -0.5, 0.0]))
    scores = np.array([2 * np.log(2.0), 0.0, 0.0])
    assert np.exp(look(said, scores, np.ones(1))[1].value) == pytest.approx(2 / 7)
    assert np.exp(look(said, scores, -np.ones(1))[1].value) == pytest.approx((1 / 2) / 7)
    assert np.exp(look(said, scores, np.zeros(1))[1].value) == pytest.approx(1 / 6)


def test_the_value_is_that_of_every_ordered_pair(x):
    cells = cells_by_hand()
    assert look(cells, x[:5], x[5:])[1].value == pytest.approx(written_out(cells, x), abs=1e-12)


def test_slopes_are_differences(x):
    cells, step = cells_by_hand(), 1e-6
    expected = [(written_out(cells, x + e) - written_out(cells, x - e)) / (2 * step) for e in step * np.eye(7)]
    np.testing.assert_allclose(slope_at(cells, x), expected, atol=1e-8)


def test_curvature_is_the_difference_of_slopes(x):
    cells = cells_by_hand()
    (seen, _), expected = look(cells, x[:5], x[5:]), curvature_by_differences(cells, x)
    own, across = blocks(seen)
    np.testing.assert_allclose(own, expected[:5, :5], atol=1e-8)
    np.testing.assert_allclose(across.toarray(), expected[:5, 5:], atol=1e-8)
    np.testing.assert_allclose(np.concatenate(diagonal(seen)), np.diag(expected), atol=1e-8)
    columns = [np.concatenate(product(seen, e[:5], e[5:])) for e in np.eye(7)]
    np.testing.assert_allclose(np.array(columns).T, expected, atol=1e-8)


def test_nothing_overflows():
    cells = cells_by_hand()
    seen, slopes = look(cells, 1e4 * np.array([1.0, -1.0, 0.5, 2.0, -2.0]), np.array([3.0, -3.0]))
    assert np.isfinite(slopes.value)
    assert np.isfinite(np.concatenate((slopes.by_score, slopes.by_adherence, *diagonal(seen)))).all()


def test_parts_are_whole_cells_and_add_up(x):
    cells = cells_by_hand()
    parts = cells.split(3)
    assert sum(part.rows for part in parts) == cells.rows
    assert [part.start[0] for part in parts] == [part.cell[0] for part in parts] == [0] * len(parts)
    assert len(parts) > 1
    slopes = add(look(part, x[:5], x[5:])[1] for part in parts)
    np.testing.assert_allclose(np.concatenate(slopes[1:]), slope_at(cells, x), atol=1e-12)
    whole, in_parts = blocks(look(cells, x[:5], x[5:])[0]), add(blocks(look(part, x[:5], x[5:])[0]) for part in parts)
    np.testing.assert_allclose(in_parts[0], whole[0], atol=1e-12)
    np.testing.assert_allclose(in_parts[1].toarray(), whole[1].toarray(), atol=1e-12)
