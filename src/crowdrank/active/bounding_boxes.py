"""Items in boxes within boxes, by mean and variance of their scores: a tree for each query, in one set of arrays.

What an answer can teach at most, over all pairs whose beliefs lie within a box: bounds of the gain of `gain`.

A box: the lead |μᵢ − μⱼ| from `low` to `high`, variances up to u and v, their sum from `least` to `most`. WLOG α ≥ β.

Proven. At a given lead and chance C, the change of an item grows with its variance, as x − ln(1 + x) grows with |x|.
The gain is linear in C, and C lies between its values at the least and at the most variance. pull = L(d + ℓ) − L(d)
with L logistic and ℓ = ln α/β falls with d ≥ 0; that of the other answer, L(d) − L(d − ℓ), is largest at d = ℓ/2. Their
slopes are the bends, of which |second derivative| ≤ 1/6, as that of L′ lies between −1/8 and 1/24.

Checked on wide grids by the tests, not proven:
- the annotator's part K grows with |C₁ − ½|; in y = logit C₁ it is concave by at most CURVED·K(1), in y² by at most
  SQUARE_CURVED·K(1); `quality_at` interpolates it to within SLACK·K(1);
- with variances up to TAME, the items' part falls with the lead d; it is concave in d by at most
  M = tanh²(ℓ/4)·[(u + v)/2 + 0.17(u² + v²)/2], in d² by at most SQUARE_ITEMS·M.

So, up to TAME, the gain over a box is at most the items' part at `low` with the annotator's at `high`; and, sharper for
small boxes, the larger of its values at both ends with concavity·width²/8, be the width that of d or of d². With larger
variances every pull and bend is put at its largest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.active import gain_formulas
from crowdrank.active.gain_formulas import item_change, items_changes, quality_gain
from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.engines.compilation import compiled
from crowdrank.online.moments import chance_of, expected_lead, pull

LEAF = 4
"""Items that are not parted any more."""


class Tree(NamedTuple):
    """Items in the order of the leaves, and the nodes above them, the roots first."""

    item: IntArray
    mean: FloatArray
    variance: FloatArray
    roots: int
    start: IntArray
    stop: IntArray
    child: IntArray
    """The first of a node's two children, which stand side by side; 0 at a leaf."""
    box: FloatArray
    """Of each node: least and largest mean, least and largest variance."""
    depth: int
    """Nodes from a root to the deepest leaf."""


class Leaves(NamedTuple):
    """Items query by query; of queries of one item there is none."""

    item: IntArray
    starts: IntArray
    """Where the items of each query begin."""

    @classmethod
    def of(cls, query: AnyArray) -> Leaves:
        several = np.bincount(query, minlength=1) > 1
        item = np.argsort(query, kind="stable")
        item = item[several[query[item]]]
        return cls(item, np.append(np.flatnonzero(np.diff(query[item], prepend=-1)), len(item)))


def grow(mean: FloatArray, variance: FloatArray, leaves: Leaves) -> Tree:
    item, starts = leaves.item.copy(), leaves.starts
    mean, variance = mean[item], variance[item]
    return Tree(item, mean, variance, len(starts) - 1, *_part(item, mean, variance, starts, LEAF))


@compiled()
def _part(item: Any, mean: Any, variance: Any, starts: Any, leaf: int) -> Any:
    """Sort the items of every node into two, at the middle of its longer side, until all in a node are few or alike.

    A side of variances is reckoned in halves of the largest of them.
    """
    room, count = 2 * len(item), len(starts) - 1
    start, stop, child = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64)
    box, depth = np.zeros((room, 4)), np.ones(room, np.int64)
    for root in range(count):
        start[root], stop[root] = starts[root], starts[root + 1]
    node = deepest = 0
    while node < count:
        first, last = start[node], stop[node]
        low = high = mean[first]
        calm = wild = variance[first]
        for i in range(first + 1, last):
            low, high = min(low, mean[i]), max(high, mean[i])
            calm, wild = min(calm, variance[i]), max(wild, variance[i])
        box[node, 0], box[node, 1], box[node, 2], box[node, 3] = low, high, calm, wild
        deepest = max(deepest, depth[node])
        if last - first > leaf and (high > low or wild > calm):
            by_mean = (high - low) * wild >= 2.0 * (wild - calm)
            key = mean if by_mean else variance
            least, most = (low, high) if by_mean else (calm, wild)
            middle = 0.5 * (least + most)
            if middle >= most:  # the two are neighbours among floating-point numbers
                middle = least
            i, j = first, last - 1
            while i <= j:
                if key[i] <= middle:
                    i += 1
                else:
                    item[i], item[j] = item[j], item[i]
                    mean[i], mean[j] = mean[j], mean[i]
                    variance[i], variance[j] = variance[j], variance[i]
                    j -= 1
            if first < i < last:
                child[node] = count
                start[count], stop[count], start[count + 1], stop[count + 1] = first, i, i, last
                depth[count] = depth[count + 1] = depth[node] + 1
                count += 2
        node += 1
    return start[:count], stop[:count], child[:count], box[:count], deepest


TAME = 2.8
CURVED = 0.25
SQUARE_ITEMS = 0.12
SQUARE_CURVED = 0.125
SLACK = 2.4e-9
_KNOTS_PER_UNIT = 64.0
KNOTS = 24 * 64 + 3
"""Up to y = 24: further out C₁ is 1 but for 4e-11, and K(1) will do."""


def quality_at(y: float, truths: float, lies: float, table: FloatArray) -> float:
    """At least K(L(y)), at most 2·SLACK·K(1) above it: through four knots. `table` is filled as needed, from nan."""
    place = y * _KNOTS_PER_UNIT
    last = len(table) - 1
    if not place < last - 2.0:
        return float(_knot(last, truths, lies, table))
    k = int(place)
    t = place - k
    before, here = _knot(abs(k - 1), truths, lies, table), _knot(k, truths, lies, table)
    after, beyond = _knot(k + 1, truths, lies, table), _knot(k + 2, truths, lies, table)
    inner = (t + 1.0) * (t - 2.0) * ((t - 1.0) * here - t * after) / 2.0
    outer = t * (t - 1.0) * ((t + 1.0) * beyond - (t - 2.0) * before) / 6.0
    # the error of a cubic through these knots is so much of the fourth derivative; and a little for rounding
    error = (t + 1.0) * t * (1.0 - t) * (2.0 - t) / 0.5625
    return float(inner + outer + (SLACK * error + 1e-15) * _knot(last, truths, lies, table))


def _knot(k: int, truths: float, lies: float, table: FloatArray) -> Any:
    if np.isnan(table[k]):
        truthful = 1.0 if k == len(table) - 1 else 1.0 / (1.0 + np.exp(-k / _KNOTS_PER_UNIT))
        table[k] = quality_gain(truthful, truths, lies)
    return table[k]


def most_of_items(lead: Any, u: Any, v: Any, least: Any, most: Any, truths: Any, lies: Any) -> Any:
    """At one lead."""
    won, lost = items_changes(lead, u, v, truths, lies)
    return _larger(won, lost, lead, lead, least, most, truths, lies)


def _larger(won: Any, lost: Any, low: Any, high: Any, least: Any, most: Any, truths: Any, lies: Any) -> Any:
    """At that end of the chance where it is larger."""
    one = chance_of(expected_lead(low, most), truths, lies)
    other = chance_of(expected_lead(high, least), truths, lies)
    return lost + np.maximum(one * (won - lost), other * (won - lost))


def most_of_wild_items(low: Any, high: Any, u: Any, v: Any, least: Any, most: Any, truths: Any, lies: Any) -> Any:
    """Over the box, however large the variances: every pull and bend at its largest."""
    margin = (high - low) ** 2 / 48.0
    up, first = pull(low, truths, lies)
    _, last = pull(high, truths, lies)
    bend = np.maximum(np.minimum(first, last) - margin, -0.25)
    won = item_change(u, up, bend) + item_change(v, up, bend)
    steepest = np.minimum(np.maximum(0.5 * np.log(truths / lies), low), high)
    down, _ = pull(-steepest, truths, lies)
    _, first = pull(-low, truths, lies)
    _, last = pull(-high, truths, lies)
    shut = np.maximum(np.minimum(first, last) - margin, -0.25)
    wide = np.minimum(np.maximum(first, last) + margin, 0.25)
    lost = np.maximum(item_change(u, down, shut), item_change(u, down, wide)) + np.maximum(
        item_change(v, down, shut), item_change(v, down, wide)
    )
    return _larger(won, lost, low, high, least, most, truths, lies)


def most_of_box(
    low: float,
    high: float,
    u: float,
    v: float,
    least: float,
    most: float,
    truths: float,
    lies: float,
    exploration: float,
    table: FloatArray,
) -> float:
    """Of the gain, over the box."""
    steep = np.sqrt(1.0 + 0.125 * np.pi * least)
    far = exploration * quality_at(high / steep, truths, lies, table) if exploration > 0.0 else 0.0
    if max(u, v) > TAME:
        return float(most_of_wild_items(low, high, u, v, least, most, truths, lies) + far)
    here = float(most_of_items(low, u, v, least, most, truths, lies))
    if exploration == 0.0:
        return here
    near = exploration * quality_at(low / steep, truths, lies, table)
    bulge = most_above_chord(low, high, u, v, steep, truths, lies, exploration * table[-1])
    if bulge >= far - near:
        return float(here + far)
    there = float(most_of_items(high, u, v, least, most, truths, lies))
    return float(min(here + far, max(here + near, there + far) + bulge))


def most_above_chord(low: Any, high: Any, u: Any, v: Any, steep: Any, truths: Any, lies: Any, quality: Any) -> Any:
    """How far the gain can lie above the chord between both ends; `quality` is γK(1), `steep` √(1 + π·least/8)."""
    # tanh(ℓ/4), of ℓ = ln α/β
    sway = (np.sqrt(truths) - np.sqrt(lies)) / (np.sqrt(truths) + np.sqrt(lies))
    items = sway * sway * (0.5 * (u + v) + 0.085 * (u * u + v * v))
    quality = quality / (steep * steep)
    reach, stretch = high - low, (high - low) * (high + low)
    by_lead = (items + CURVED * quality) * reach * reach
    by_square = (SQUARE_ITEMS * items + SQUARE_CURVED * quality / (steep * steep)) * stretch * stretch
    return 0.125 * np.minimum(by_lead, by_square)


FORMULAS = (
    *gain_formulas.FORMULAS,
    quality_at,
    _knot,
    most_of_items,
    _larger,
    most_of_wild_items,
    most_of_box,
    most_above_chord,
)
"""What a compiled loop calls."""
