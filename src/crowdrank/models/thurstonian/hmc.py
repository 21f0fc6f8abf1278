"""The scores of one query along Hamiltonian paths (Neal 2011), and what annotators saw of its items along ellipses.

Given domain, τ and δ they are log-concave. Blurs, what was seen less the true score, go with the scores. Scores are
moved in coordinates in which the judgments of a typical state bend them alike in all directions; only coordinates that
do not depend on where a path starts leave the posterior as it is, so they are set while a chain warms up.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.inference.special import hazard_by_table, log_cdf_by_table

DENSE_UP_TO = 64
"""Queries of more items are moved item by item: their coordinates would not pay."""

_LENGTH = 2.0
_MOST_STEPS = 40
_FLOOR = 0.03


class Room(NamedTuple):
    """Where a walk works: by item, …"""

    scores: AnyArray
    pull: AnyArray
    pace: AnyArray
    seen: AnyArray
    """… by sight, …"""
    noise: AnyArray
    offset: AnyArray
    """… by judgment, …"""
    truly: AnyArray
    other: AnyArray
    near: AnyArray
    """… and by annotator."""
    far: AnyArray


def _push(sights: Any, query: Any, slope: Any, spread: Any, room: Any) -> None:
    """The slopes of the log posterior by scores, blurs as they are."""
    for item in range(sights.item_starts[query], sights.item_starts[query + 1]):
        room.pull[item] = -room.scores[item] / spread
    for row in range(sights.judgment_starts[query], sights.judgment_starts[query + 1]):
        one, other, steep = sights.above[row], sights.below[row], slope[sights.annotator[row]]
        push = steep * hazard_by_table(steep * (room.scores[one] - room.scores[other]) + room.offset[row])
        room.pull[one] += push
        room.pull[other] -= push


def _energy(sights: Any, query: Any, slope: Any, spread: Any, room: Any) -> Any:
    """Less the log posterior of scores, and of how fast they go."""
    total = 0.0
    for row in range(sights.judgment_starts[query], sights.judgment_starts[query + 1]):
        apart = room.scores[sights.above[row]] - room.scores[sights.below[row]]
        total -= log_cdf_by_table(slope[sights.annotator[row]] * apart + room.offset[row])
    for item in range(sights.item_starts[query], sights.item_starts[query + 1]):
        total += 0.5 * (room.scores[item] ** 2 / spread + room.pace[item] ** 2)
    return total


def _go(frame: Any, along: Any, pace: Any, scores: Any) -> None:
    """Scores as far as their paces take them."""
    count = len(scores)
    for item in range(count):
        if len(frame) > count:  # an upper triangle
            step = 0.0
            for other in range(item, count):
                step += frame[item * count + other] * pace[other]
        else:
            step = frame[item] * pace[item]
        scores[item] += along * step


def _hasten(frame: Any, along: Any, pull: Any, pace: Any) -> None:
    """Paces as the forces change them."""
    count = len(pace)
    for item in range(count):
        if len(frame) > count:
            gain = 0.0
            for other in range(item + 1):
                gain += frame[other * count + item] * pull[other]
        else:
            gain = frame[item] * pull[item]
        pace[item] += along * gain


def glide(rng: Any, sights: Any, state: Any, query: Any, slope: Any, frame: Any, room: Any) -> Any:
    """A path of scores, of random length, sights going with them; the chance that its end was taken with."""
    first, last = sights.item_starts[query], sights.item_starts[query + 1]
    spread, seen, true = state.scale[0], state.seen, state.scores
    for row in range(sights.judgment_starts[query], sights.judgment_starts[query + 1]):
        blurred = seen[sights.winner[row]] - seen[sights.loser[row]]
        truly = true[sights.above[row]] - true[sights.below[row]]
        room.offset[row] = slope[sights.annotator[row]] * (blurred - truly)
    for item in range(first, last):
        room.scores[item] = true[item]
        room.pace[item] = rng.standard_normal()
    scores, pace, pull = room.scores[first:last], room.pace[first:last], room.pull[first:last]
    stride = min(1.0, state.stride[0] * (1.0 + last - first) ** -0.25) * (0.7 + 0.6 * rng.random())
    steps = min(_MOST_STEPS, 1 + int(2.0 * _LENGTH * rng.random() / stride))
    here = _energy(sights, query, slope, spread, room)
    _push(sights, query, slope, spread, room)
    _hasten(frame, 0.5 * stride, pull, pace)
    for step in range(steps):
        _go(frame, stride, pace, scores)
        _push(sights, query, slope, spread, room)
        _hasten(frame, stride if step < steps - 1 else 0.5 * stride, pull, pace)
    gain = here - _energy(sights, query, slope, spread, room)
    if not gain > -700.0:  # also where the path left the numbers there are
        return 0.0
    chance = math.exp(min(0.0, gain))
    if rng.random() < chance:
        for item in range(first, last):
            seen[sights.sight_starts[item] : sights.sight_starts[item + 1]] += room.scores[item] - true[item]
            true[item] = room.scores[item]
    return chance


def look_again(rng: Any, sights: Any, state: Any, query: Any, slope: Any, room: Any) -> None:
    """What each annotator saw, true scores as they are: along an ellipse through other blurs (Murray et al. 2010)."""
    first, last = sights.item_starts[query], sights.item_starts[query + 1]
    width = math.sqrt(state.difficulty[query])
    for sight in range(sights.sight_starts[first], sights.sight_starts[last]):
        room.noise[sight] = width * rng.standard_normal()
    start, end = sights.judgment_starts[query], sights.judgment_starts[query + 1]
    for row in range(start, end):
        one, other, steep = sights.winner[row], sights.loser[row], slope[sights.annotator[row]]
        truly = state.scores[sights.above[row]] - state.scores[sights.below[row]]
        room.truly[row] = steep * truly
        room.offset[row] = steep * (state.seen[one] - state.seen[other] - truly)
        room.other[row] = steep * (room.noise[one] - room.noise[other])
    while start < end:
        who, stop = sights.annotator[start], start + 1
        while stop < end and sights.annotator[stop] == who:
            stop += 1
        angle = _angle(rng, room.truly[start:stop], room.offset[start:stop], room.other[start:stop])
        room.near[who], room.far[who] = math.cos(angle), math.sin(angle)
        start = stop
    for item in range(first, last):
        for sight in range(sights.sight_starts[item], sights.sight_starts[item + 1]):
            who = sights.annotator_of_sight[sight]
            blur = room.near[who] * (state.seen[sight] - state.scores[item]) + room.far[who] * room.noise[sight]
            state.seen[sight] = state.scores[item] + blur


def _turned(truly: Any, blur: Any, other: Any, angle: Any) -> Any:
    """Log likelihood of one annotator's judgments, blurs turned by an angle towards other ones."""
    near, far, total = math.cos(angle), math.sin(angle), 0.0
    for row in range(len(truly)):
        total += log_cdf_by_table(truly[row] + near * blur[row] + far * other[row])
    return total


def _angle(rng: Any, truly: Any, blur: Any, other: Any) -> Any:
    least = math.log(rng.random()) + _turned(truly, blur, other, 0.0)
    angle = 2.0 * math.pi * rng.random()
    low, high = angle - 2.0 * math.pi, angle
    while _turned(truly, blur, other, angle) < least:
        if angle < 0.0:
            low = angle
        else:
            high = angle
        if high - low < 1e-12:
            return 0.0
        angle = low + (high - low) * rng.random()
    return angle


def look_through(rng: Any, sights: Any, state: Any, query: Any) -> None:
    """Scores, what was seen as it is: quick where judgments tell much of sights, and scores with their sights stick."""
    precision, blur = 1.0 / state.scale[0], 1.0 / state.difficulty[query]
    for item in range(sights.item_starts[query], sights.item_starts[query + 1]):
        start, end = sights.sight_starts[item], sights.sight_starts[item + 1]
        total = 0.0
        for sight in range(start, end):
            total += state.seen[sight]
        known = precision + blur * (end - start)
        state.scores[item] = blur * total / known + rng.standard_normal() / math.sqrt(known)


def jump(rng: Any, sights: Any, state: Any, query: Any, slope: Any) -> None:
    """Each score with all sights of it by a step of any size: what won always may be far up, with nothing to tell."""
    for item in range(sights.item_starts[query], sights.item_starts[query + 1]):
        step = math.sqrt(state.scale[0]) * math.exp(4.0 * rng.random() - 4.0) * rng.standard_normal()
        gain = -0.5 * step * (2.0 * state.scores[item] + step) / state.scale[0]
        for sight in range(sights.sight_starts[item], sights.sight_starts[item + 1]):
            steep = slope[sights.annotator_of_sight[sight]]
            for touch in range(sights.touch_starts[sight], sights.touch_starts[sight + 1]):
                sloped = sights.touch_sign[touch] * steep
                here = sloped * (state.seen[sight] - state.seen[sights.touch_other[touch]])
                gain += log_cdf_by_table(here + sloped * step) - log_cdf_by_table(here)
        if math.log(rng.random()) < gain:
            state.scores[item] += step
            state.seen[sights.sight_starts[item] : sights.sight_starts[item + 1]] += step


def set_frame(sights: Any, state: Any, query: Any, slope: Any, frame: Any) -> None:
    """Coordinates of scores by what each judgment of this query is expected to tell of the difference it is about."""
    first, last = sights.item_starts[query], sights.item_starts[query + 1]
    count = last - first
    dense = len(frame) > count
    alone, bent = np.full(count, max(_FLOOR, 1.0 / state.scale[0])), np.zeros((count, count) if dense else (0, 0))
    for row in range(sights.judgment_starts[query], sights.judgment_starts[query + 1]):
        one, other = sights.above[row], sights.below[row]
        steep = slope[sights.annotator[row]]
        margin = steep * (state.scores[one] - state.scores[other])
        margin /= math.sqrt(1.0 + 2.0 * steep * steep * state.difficulty[query])
        told = steep * steep * hazard_by_table(margin) * hazard_by_table(-margin)
        alone[one - first] += told
        alone[other - first] += told
        if dense:
            bent[one - first, other - first] -= told
            bent[other - first, one - first] -= told
    if not dense:
        for item in range(count):
            frame[item] = 1.0 / math.sqrt(alone[item])
        return
    for item in range(count):
        bent[item, item] = alone[item]
    turned = np.linalg.inv(np.linalg.cholesky(bent))
    for item in range(count):
        for other in range(count):
            frame[item * count + other] = turned[other, item]


def frame_sizes(items_each: AnyArray) -> AnyArray:
    """How many numbers the coordinates of each query take: dense ones all pairs of items."""
    return np.where(items_each <= DENSE_UP_TO, items_each**2, items_each)


GLIDING = (
    hazard_by_table,
    log_cdf_by_table,
    _push,
    _energy,
    _go,
    _hasten,
    glide,
    _turned,
    _angle,
    look_again,
    look_through,
    jump,
    set_frame,
)
