"""Ordered lists laid out for compiled loops: rows by place, places by list, lists by query.

Sweeps of a Gibbs sampler over Thurstonian ordered lists, as compiled loops.

Wang et al. 2016, §II: in query l annotator k perceives s⁽ᵏ⁾_i ~ N(s_i, δ_l²), and their list is the order of what they
perceive. Lists know scores in units of their query's noise only, u = s / δ, and so here everything perceived (a
*sight*, one a row of a list) is in that unit: x ~ N(u_i, 1). δ² and ω², the variance of s, say how far u are spread,
N(0, ω² / δ²), and no more. Every move draws from a conditional distribution: nothing is proposed and refused.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import compiled
from crowdrank.inference.truncated_normal import normal_between, overshoot


class Lists(NamedTuple):
    """Rows of lists, best first, sorted by query.

    Before each list, and after the last, there is a place with nothing on it, and so with no bounds for its neighbours.
    """

    item: AnyArray
    """Of each row."""
    place: AnyArray
    """Of each row, counted through all lists."""
    place_starts: AnyArray
    """Where each place's rows start, …"""
    list_starts: AnyArray
    """… each list's places, …"""
    query_starts: AnyArray
    """… each query's lists, …"""
    item_starts: AnyArray
    """… each query's items, …"""
    row_starts: AnyArray
    """… and in `row_of_item` each item's rows."""
    row_of_item: AnyArray


def lists_of(item: AnyArray, place: AnyArray, offsets: AnyArray, item_starts: AnyArray) -> Lists:
    """From rows of lists end to end, best first, places from 0; the order of the lists is forgotten."""
    query = np.searchsorted(item_starts, item[offsets[:-1]], side="right") - 1
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    rows = [np.lexsort((item[a:b], place[a:b])) + a for a, b in bounds]
    keys = [(int(q), item[own].tobytes(), place[own].tobytes()) for q, own in zip(query, rows, strict=True)]
    order = sorted(range(len(rows)), key=keys.__getitem__)
    row = np.concatenate([rows[n] for n in order])
    places = np.array([place[rows[n][-1]] + 1 for n in order], np.int64)
    list_starts = np.concatenate(([1], 1 + np.cumsum(places + 1)))
    of_row = (place[row] + np.repeat(list_starts[:-1], np.diff(offsets)[order])).astype(np.int64)
    item = item[row].astype(np.int64)
    return Lists(
        item,
        of_row,
        _starts(of_row, int(list_starts[-1])),
        list_starts,
        _starts(query, len(item_starts) - 1),
        np.asarray(item_starts, np.int64),
        _starts(item, int(item_starts[-1])),
        np.argsort(item, kind="stable"),
    )


def _starts(codes: AnyArray, size: int) -> AnyArray:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size)))).astype(np.int64)


class Beliefs(NamedTuple):
    """What is believed beforehand. The prior of δ², around one, sets the unit of scores."""

    difficulty_shape: float = 2.0
    difficulty_rate: float = 1.0
    """δ² is inverse gamma, and so is …"""
    scale_shape: float = 2.0
    scale_rate: float = 4.0
    """… ω², the variance of true scores."""


class State(NamedTuple):
    """Where a chain is."""

    scores: AnyArray
    """u, in units of the noise of their query."""
    seen: AnyArray
    """What was perceived in each row of each list, in the same units."""
    difficulty: AnyArray
    """δ² of each query."""
    scale: AnyArray
    """ω², the variance of true scores; one number."""


class Edges(NamedTuple):
    """The lowest and the highest sight on each place."""

    low: AnyArray
    high: AnyArray


def walk(rng: np.random.Generator, lists: Lists, beliefs: Beliefs, state: State, steps: int) -> None:
    """So many sweeps, in place."""
    _walk(rng, lists, Beliefs(*(float(value) for value in beliefs)), state, steps)


def expect(
    rng: np.random.Generator, lists: Lists, state: State, forgotten: int, kept: int
) -> tuple[AnyArray, AnyArray]:
    """Means of what is seen in each row, and of its square, given the scores; what is seen moves on in place."""
    total, squares = np.zeros_like(state.seen), np.zeros_like(state.seen)
    _expect(rng, lists, state, total, squares, forgotten, kept)
    return total / kept, squares / kept


def _find_edges(lists: Any, state: Any, edges: Any, first: Any, last: Any) -> None:
    for place in range(first, last):
        low, high = math.inf, -math.inf
        for row in range(lists.place_starts[place], lists.place_starts[place + 1]):
            low, high = min(low, state.seen[row]), max(high, state.seen[row])
        edges.low[place], edges.high[place] = low, high


def _draw_sights(rng: Any, lists: Any, state: Any, edges: Any, first: Any, last: Any) -> None:
    """Eq. 27: each sight of a list between what stands on the next places."""
    for place in range(first, last):
        below, above = edges.high[place + 1], edges.low[place - 1]
        for row in range(lists.place_starts[place], lists.place_starts[place + 1]):
            state.seen[row] = normal_between(rng, state.scores[lists.item[row]], below, above)
        _find_edges(lists, state, edges, place, place + 1)


def _shift_tops(rng: Any, lists: Any, state: Any, edges: Any, first: Any, last: Any) -> None:
    """A list's sights from each place up, all by one step: hemmed in by its neighbours, none goes far alone."""
    starts, seen = lists.place_starts, state.seen
    count, short, moved = starts[last] - starts[first], 0.0, 0.0
    for row in range(starts[first], starts[last]):
        short += state.scores[lists.item[row]] - seen[row]
    for place in range(last - 1, first - 1, -1):
        root = math.sqrt(count)
        gap = edges.low[place] + moved - edges.high[place + 1]
        step = normal_between(rng, short / root, -gap * root, math.inf) / root
        moved += step
        short -= step * count
        for row in range(starts[place], starts[place + 1]):
            seen[row] += moved
            short -= state.scores[lists.item[row]] - seen[row]
        count -= starts[place + 1] - starts[place]
        edges.low[place] += moved
        edges.high[place] += moved


def _draw_scores(rng: Any, lists: Any, state: Any, query: Any, tightness: Any) -> None:
    """True scores given all sights of them, and how tight their prior is: δ² / ω²."""
    for item in range(lists.item_starts[query], lists.item_starts[query + 1]):
        start, end = lists.row_starts[item], lists.row_starts[item + 1]
        total, precision = 0.0, tightness + end - start
        for n in range(start, end):
            total += state.seen[lists.row_of_item[n]]
        state.scores[item] = total / precision + rng.standard_normal() / math.sqrt(precision)


def _move_items(rng: Any, lists: Any, state: Any, edges: Any, query: Any, tightness: Any) -> None:
    """Each true score with all sights of it by one step: what is always on top may go far."""
    root = math.sqrt(tightness)
    for item in range(lists.item_starts[query], lists.item_starts[query + 1]):
        rows = lists.row_of_item[lists.row_starts[item] : lists.row_starts[item + 1]]
        score, least, most = state.scores[item], -math.inf, math.inf
        for row in rows:
            least = max(least, edges.high[lists.place[row] + 1] - state.seen[row])
            most = min(most, edges.low[lists.place[row] - 1] - state.seen[row])
        state.scores[item] = normal_between(rng, 0.0, root * (score + least), root * (score + most)) / root
        for row in rows:
            place, before = lists.place[row], state.seen[row]
            after = before + state.scores[item] - score
            state.seen[row] = after
            if edges.low[place] < before < edges.high[place]:
                edges.low[place], edges.high[place] = min(edges.low[place], after), max(edges.high[place], after)
            else:
                _find_edges(lists, state, edges, place, place + 1)


def _shift_and_stretch(rng: Any, lists: Any, state: Any, edges: Any, query: Any, tightness: Any) -> None:
    """A query's scores and sights together, by a step and by a factor: the order of sights stays what it is."""
    first, last = lists.item_starts[query], lists.item_starts[query + 1]
    top, end = lists.list_starts[lists.query_starts[query]], lists.list_starts[lists.query_starts[query + 1]]
    start, stop = lists.place_starts[top], lists.place_starts[end]
    scores, seen = state.scores[first:last], state.seen[start:stop]
    noise = 0.0
    for row in range(start, stop):
        noise += (state.seen[row] - state.scores[lists.item[row]]) ** 2
    step = rng.standard_normal() / math.sqrt(tightness * len(scores)) - np.mean(scores)
    scores += step
    rate = 0.5 * (noise + tightness * np.sum(scores * scores))
    factor = math.sqrt(rng.standard_gamma(0.5 * (len(scores) + len(seen))) / rate)
    scores *= factor
    for column in (seen, edges.low[top:end], edges.high[top:end]):
        column += step
        column *= factor


def _keeps_order(lists: Any, state: Any, growth: Any, places: Any) -> Any:
    """Whether so many places would keep their order if true scores grew so much, and all sights of them as far."""
    above = math.inf
    for place in range(places):
        least = math.inf
        for row in range(lists.place_starts[place], lists.place_starts[place + 1]):
            x = state.seen[row] + growth * state.scores[lists.item[row]]
            if x > above:
                return False
            least = min(least, x)
        above = least
    return True


def _log_density(x: float, power: float, rate: float, rate_of_inverse: float) -> float:
    return power * x - rate * math.exp(x) - rate_of_inverse * math.exp(-x)


def _draw_variance(
    rng: Any, value: Any, power: Any, rate: Any, rate_of_inverse: Any, lists: Any, state: Any, places: Any
) -> Any:
    """From v^(power − 1) · exp(−rate · v − rate_of_inverse / v): a slice (Neal 2003) of the density of log v.

    Only of values for which the first so many places keep their order when true scores grow as √v does.
    """
    here = math.log(value)
    height = _log_density(here, power, rate, rate_of_inverse) - rng.standard_exponential()
    low = here - rng.random()
    high = low + 1.0
    while _log_density(low, power, rate, rate_of_inverse) > height:
        low -= 1.0
    while _log_density(high, power, rate, rate_of_inverse) > height:
        high += 1.0
    while True:
        there = low + (high - low) * rng.random()
        if there == here:  # all that rounding left of the slice
            return value
        inside = _log_density(there, power, rate, rate_of_inverse) > height
        if inside and _keeps_order(lists, state, math.expm1(0.5 * (there - here)), places):
            return math.exp(there)
        low, high = (there, high) if there < here else (low, there)


def _stretch_apart(rng: Any, lists: Any, beliefs: Any, state: Any, edges: Any) -> None:
    """All true scores and ω by one factor, the noise of sights as it is: where lists agree, scores may go far."""
    places, scale = len(edges.low), state.scale[0]
    there = _draw_variance(rng, scale, -beliefs.scale_shape, 0.0, beliefs.scale_rate, lists, state, places)
    factor = math.sqrt(there / scale)
    for row in range(len(state.seen)):
        state.seen[row] += (factor - 1.0) * state.scores[lists.item[row]]
    state.scores[:] *= factor
    state.scale[0] = there
    _find_edges(lists, state, edges, 0, places)


def _draw_spreads(rng: Any, lists: Any, beliefs: Any, state: Any) -> None:
    """Each δ² and ω² given the scores, then all of them by one factor, which the scores do not notice."""
    shape, rate, scale = beliefs.difficulty_shape, beliefs.difficulty_rate, state.scale[0]
    squares, inverses = 0.0, 0.0
    for query in range(len(state.difficulty)):
        own = state.scores[lists.item_starts[query] : lists.item_starts[query + 1]]
        size, square = len(own), np.sum(own * own)
        there = _draw_variance(
            rng, state.difficulty[query], 0.5 * size - shape, 0.5 * square / scale, rate, lists, state, 0
        )
        state.difficulty[query] = there
        squares += there * square
        inverses += rate / there
    shapes = beliefs.scale_shape + 0.5 * len(state.scores)
    scale = (beliefs.scale_rate + 0.5 * squares) / rng.standard_gamma(shapes)
    shapes = beliefs.scale_shape + shape * len(state.difficulty)
    factor = (inverses + beliefs.scale_rate / scale) / rng.standard_gamma(shapes)
    state.difficulty[:] *= factor
    state.scale[0] = factor * scale


_SIGHTS = (normal_between, overshoot, _find_edges, _draw_sights, _shift_tops)


@compiled(*_SIGHTS)
def _expect(rng, lists, state, total, squares, forgotten, kept):  # type: ignore[no-untyped-def]
    edges = Edges(np.empty(len(lists.place_starts) - 1), np.empty(len(lists.place_starts) - 1))
    _find_edges(lists, state, edges, 0, len(edges.low))
    for step in range(forgotten + kept):
        for n in range(len(lists.list_starts) - 1):
            first, last = lists.list_starts[n], lists.list_starts[n + 1] - 1
            _draw_sights(rng, lists, state, edges, first, last)
            _shift_tops(rng, lists, state, edges, first, last)
        if step >= forgotten:
            total += state.seen
            squares += state.seen * state.seen


@compiled(
    *_SIGHTS,
    _draw_scores,
    _move_items,
    _shift_and_stretch,
    _keeps_order,
    _log_density,
    _draw_variance,
    _stretch_apart,
    _draw_spreads,
)
def _walk(rng, lists, beliefs, state, steps):  # type: ignore[no-untyped-def]
    edges = Edges(np.empty(len(lists.place_starts) - 1), np.empty(len(lists.place_starts) - 1))
    _find_edges(lists, state, edges, 0, len(edges.low))
    for _ in range(steps):
        for query in range(len(state.difficulty)):
            tightness = state.difficulty[query] / state.scale[0]
            for n in range(lists.query_starts[query], lists.query_starts[query + 1]):
                first, last = lists.list_starts[n], lists.list_starts[n + 1] - 1
                _draw_sights(rng, lists, state, edges, first, last)
                _shift_tops(rng, lists, state, edges, first, last)
            _draw_scores(rng, lists, state, query, tightness)
            _move_items(rng, lists, state, edges, query, tightness)
            _shift_and_stretch(rng, lists, state, edges, query, tightness)
        _draw_spreads(rng, lists, beliefs, state)
        _stretch_apart(rng, lists, beliefs, state, edges)
