"""Gibbs sampler of Thurstonian ordered lists, as compiled loops, and the layout of the lists.

Wang et al. (2016), §II: in query l annotator k perceives s⁽ᵏ⁾_i ~ N(s_i, δ_l²), and their list is the order of what
they perceive. Lists determine scores only in units of their query's noise, u = s / δ, so all perceived utilities (one
per row of a list) are in that unit: x ~ N(u_i, 1). δ² and ω², the variance of s, enter through the prior
u ~ N(0, ω² / δ²) only. Every move draws from a conditional distribution, so nothing is rejected.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import compiled
from crowdrank.inference.special import sample_tail_excess, sample_truncated_normal


class Lists(NamedTuple):
    """Rows of lists, best first, sorted by query.

    Before each list, and after the last one, there is an empty position, which imposes no bounds on its neighbours.

    Parameters
    ----------
    item, position : integer arrays per row
        The item, and the position counted through all lists.
    position_starts, list_starts, query_starts, item_starts : integer arrays
        First row of each position, first position of each list, first list and first item of each query.
    row_starts, row_of_item : integer arrays
        Rows of each item, in compressed sparse form.
    """

    item: AnyArray
    position: AnyArray
    position_starts: AnyArray
    list_starts: AnyArray
    query_starts: AnyArray
    item_starts: AnyArray
    row_starts: AnyArray
    row_of_item: AnyArray


def build_lists(item: AnyArray, position: AnyArray, offsets: AnyArray, item_starts: AnyArray) -> Lists:
    """Lay out lists given as rows end to end, best first, with positions from 0.

    The result does not depend on the order of the lists.
    """
    query = np.searchsorted(item_starts, item[offsets[:-1]], side="right") - 1
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    rows = [np.lexsort((item[a:b], position[a:b])) + a for a, b in bounds]
    keys = [(int(q), item[own].tobytes(), position[own].tobytes()) for q, own in zip(query, rows, strict=True)]
    order = sorted(range(len(rows)), key=keys.__getitem__)
    row = np.concatenate([rows[n] for n in order])
    positions = np.array([position[rows[n][-1]] + 1 for n in order], np.int64)
    list_starts = np.concatenate(([1], 1 + np.cumsum(positions + 1)))
    row_position = (position[row] + np.repeat(list_starts[:-1], np.diff(offsets)[order])).astype(np.int64)
    item = item[row].astype(np.int64)
    return Lists(
        item,
        row_position,
        _starts(row_position, int(list_starts[-1])),
        list_starts,
        _starts(query, len(item_starts) - 1),
        np.asarray(item_starts, np.int64),
        _starts(item, int(item_starts[-1])),
        np.argsort(item, kind="stable"),
    )


def _starts(codes: AnyArray, size: int) -> AnyArray:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size)))).astype(np.int64)


class Prior(NamedTuple):
    """Prior of the model. The prior of δ² sets the unit of scores.

    Parameters
    ----------
    difficulty_shape, difficulty_rate : float
        Inverse gamma prior of δ².
    variance_shape, variance_rate : float
        Inverse gamma prior of ω², the variance of the true scores.
    """

    difficulty_shape: float = 2.0
    difficulty_rate: float = 1.0
    variance_shape: float = 2.0
    variance_rate: float = 4.0


class State(NamedTuple):
    """State of one chain. Arrays are updated in place.

    Parameters
    ----------
    scores : array per item
        u, in units of the noise of their query.
    perceived : array per row
        Perceived utilities, in the same unit.
    difficulty : array per query
        δ².
    score_variance : array of one number
        ω².
    """

    scores: AnyArray
    perceived: AnyArray
    difficulty: AnyArray
    score_variance: AnyArray


class PositionBounds(NamedTuple):
    """The smallest and the largest perceived utility at each position."""

    low: AnyArray
    high: AnyArray


def run(rng: np.random.Generator, lists: Lists, prior: Prior, state: State, sweeps: int) -> None:
    """Run a number of sweeps in place."""
    _run(rng, lists, Prior(*(float(value) for value in prior)), state, sweeps)


def expected_utilities(
    rng: np.random.Generator, lists: Lists, state: State, warmup: int, kept: int
) -> tuple[AnyArray, AnyArray]:
    """Means of the perceived utilities and of their squares, given the scores. Updates the state in place."""
    total, squares = np.zeros_like(state.perceived), np.zeros_like(state.perceived)
    _expected_utilities(rng, lists, state, total, squares, warmup, kept)
    return total / kept, squares / kept


def _find_bounds(lists: Any, state: Any, bounds: Any, first: Any, last: Any) -> None:
    for position in range(first, last):
        low, high = math.inf, -math.inf
        for row in range(lists.position_starts[position], lists.position_starts[position + 1]):
            low, high = min(low, state.perceived[row]), max(high, state.perceived[row])
        bounds.low[position], bounds.high[position] = low, high


def _draw_utilities(rng: Any, lists: Any, state: Any, bounds: Any, first: Any, last: Any) -> None:
    """Eq. 27: draw each perceived utility between those of the neighbouring positions."""
    for position in range(first, last):
        below, above = bounds.high[position + 1], bounds.low[position - 1]
        for row in range(lists.position_starts[position], lists.position_starts[position + 1]):
            state.perceived[row] = sample_truncated_normal(rng, state.scores[lists.item[row]], below, above)
        _find_bounds(lists, state, bounds, position, position + 1)


def _shift_upper_positions(rng: Any, lists: Any, state: Any, bounds: Any, first: Any, last: Any) -> None:
    """Shift a list's perceived utilities from each position upwards by one step.

    Bounded by its neighbours, a single utility cannot move far on its own.
    """
    starts, perceived = lists.position_starts, state.perceived
    count, residual, shift = starts[last] - starts[first], 0.0, 0.0
    for row in range(starts[first], starts[last]):
        residual += state.scores[lists.item[row]] - perceived[row]
    for position in range(last - 1, first - 1, -1):
        root = math.sqrt(count)
        gap = bounds.low[position] + shift - bounds.high[position + 1]
        step = sample_truncated_normal(rng, residual / root, -gap * root, math.inf) / root
        shift += step
        residual -= step * count
        for row in range(starts[position], starts[position + 1]):
            perceived[row] += shift
            residual -= state.scores[lists.item[row]] - perceived[row]
        count -= starts[position + 1] - starts[position]
        bounds.low[position] += shift
        bounds.high[position] += shift


def _draw_scores(rng: Any, lists: Any, state: Any, query: Any, prior_precision: Any) -> None:
    """Draw the scores given the perceived utilities. `prior_precision` is δ² / ω²."""
    for item in range(lists.item_starts[query], lists.item_starts[query + 1]):
        start, end = lists.row_starts[item], lists.row_starts[item + 1]
        total, precision = 0.0, prior_precision + end - start
        for n in range(start, end):
            total += state.perceived[lists.row_of_item[n]]
        state.scores[item] = total / precision + rng.standard_normal() / math.sqrt(precision)


def _shift_items(rng: Any, lists: Any, state: Any, bounds: Any, query: Any, prior_precision: Any) -> None:
    """Shift each score with all its perceived utilities: an item that is always on top may move far."""
    root = math.sqrt(prior_precision)
    for item in range(lists.item_starts[query], lists.item_starts[query + 1]):
        rows = lists.row_of_item[lists.row_starts[item] : lists.row_starts[item + 1]]
        score, low, high = state.scores[item], -math.inf, math.inf
        for row in rows:
            low = max(low, bounds.high[lists.position[row] + 1] - state.perceived[row])
            high = min(high, bounds.low[lists.position[row] - 1] - state.perceived[row])
        state.scores[item] = sample_truncated_normal(rng, 0.0, root * (score + low), root * (score + high)) / root
        for row in rows:
            position, before = lists.position[row], state.perceived[row]
            after = before + state.scores[item] - score
            state.perceived[row] = after
            if bounds.low[position] < before < bounds.high[position]:
                bounds.low[position], bounds.high[position] = (
                    min(bounds.low[position], after),
                    max(bounds.high[position], after),
                )
            else:
                _find_bounds(lists, state, bounds, position, position + 1)


def _shift_and_scale_query(rng: Any, lists: Any, state: Any, bounds: Any, query: Any, prior_precision: Any) -> None:
    """Shift and rescale a query's scores and perceived utilities together, which keeps their order."""
    first, last = lists.item_starts[query], lists.item_starts[query + 1]
    top, end = lists.list_starts[lists.query_starts[query]], lists.list_starts[lists.query_starts[query + 1]]
    start, stop = lists.position_starts[top], lists.position_starts[end]
    scores, perceived = state.scores[first:last], state.perceived[start:stop]
    noise = 0.0
    for row in range(start, stop):
        noise += (state.perceived[row] - state.scores[lists.item[row]]) ** 2
    step = rng.standard_normal() / math.sqrt(prior_precision * len(scores)) - np.mean(scores)
    scores += step
    rate = 0.5 * (noise + prior_precision * np.sum(scores * scores))
    factor = math.sqrt(rng.standard_gamma(0.5 * (len(scores) + len(perceived))) / rate)
    scores *= factor
    for column in (perceived, bounds.low[top:end], bounds.high[top:end]):
        column += step
        column *= factor


def _keeps_order(lists: Any, state: Any, growth: Any, positions: Any) -> Any:
    """Whether the first positions keep their order if scores grow by a share, and perceived utilities by as much."""
    above = math.inf
    for position in range(positions):
        low = math.inf
        for row in range(lists.position_starts[position], lists.position_starts[position + 1]):
            x = state.perceived[row] + growth * state.scores[lists.item[row]]
            if x > above:
                return False
            low = min(low, x)
        above = low
    return True


def _log_density(x: float, power: float, rate: float, inverse_rate: float) -> float:
    return power * x - rate * math.exp(x) - inverse_rate * math.exp(-x)


def _draw_variance(
    rng: Any, value: Any, power: Any, rate: Any, inverse_rate: Any, lists: Any, state: Any, positions: Any
) -> Any:
    """Slice sampler (Neal 2003) on log v for the density v^(power − 1) · exp(−rate · v − inverse_rate / v).

    Restricted to values that keep the order of the first positions when scores grow like √v.
    """
    current = math.log(value)
    level = _log_density(current, power, rate, inverse_rate) - rng.standard_exponential()
    low = current - rng.random()
    high = low + 1.0
    while _log_density(low, power, rate, inverse_rate) > level:
        low -= 1.0
    while _log_density(high, power, rate, inverse_rate) > level:
        high += 1.0
    while True:
        proposal = low + (high - low) * rng.random()
        if proposal == current:  # rounding left nothing else of the slice
            return value
        inside = _log_density(proposal, power, rate, inverse_rate) > level
        if inside and _keeps_order(lists, state, math.expm1(0.5 * (proposal - current)), positions):
            return math.exp(proposal)
        low, high = (proposal, high) if proposal < current else (low, proposal)


def _scale_all(rng: Any, lists: Any, prior: Any, state: Any, bounds: Any) -> None:
    """Rescale all scores with ω, with the noise fixed: where lists agree, scores may move far."""
    positions, variance = len(bounds.low), state.score_variance[0]
    proposal = _draw_variance(rng, variance, -prior.variance_shape, 0.0, prior.variance_rate, lists, state, positions)
    factor = math.sqrt(proposal / variance)
    for row in range(len(state.perceived)):
        state.perceived[row] += (factor - 1.0) * state.scores[lists.item[row]]
    state.scores[:] *= factor
    state.score_variance[0] = proposal
    _find_bounds(lists, state, bounds, 0, positions)


def _draw_variances(rng: Any, lists: Any, prior: Any, state: Any) -> None:
    """Draw each δ² and ω² given the scores, then rescale all of them by one factor, to which scores are invariant."""
    shape, rate, variance = prior.difficulty_shape, prior.difficulty_rate, state.score_variance[0]
    squares, inverses = 0.0, 0.0
    for query in range(len(state.difficulty)):
        own = state.scores[lists.item_starts[query] : lists.item_starts[query + 1]]
        size, square = len(own), np.sum(own * own)
        proposal = _draw_variance(
            rng, state.difficulty[query], 0.5 * size - shape, 0.5 * square / variance, rate, lists, state, 0
        )
        state.difficulty[query] = proposal
        squares += proposal * square
        inverses += rate / proposal
    shapes = prior.variance_shape + 0.5 * len(state.scores)
    variance = (prior.variance_rate + 0.5 * squares) / rng.standard_gamma(shapes)
    shapes = prior.variance_shape + shape * len(state.difficulty)
    factor = (inverses + prior.variance_rate / variance) / rng.standard_gamma(shapes)
    state.difficulty[:] *= factor
    state.score_variance[0] = factor * variance


_UTILITY_MOVES = (sample_truncated_normal, sample_tail_excess, _find_bounds, _draw_utilities, _shift_upper_positions)


@compiled(*_UTILITY_MOVES)
def _expected_utilities(rng, lists, state, total, squares, warmup, kept):  # type: ignore[no-untyped-def]
    bounds = PositionBounds(np.empty(len(lists.position_starts) - 1), np.empty(len(lists.position_starts) - 1))
    _find_bounds(lists, state, bounds, 0, len(bounds.low))
    for step in range(warmup + kept):
        for n in range(len(lists.list_starts) - 1):
            first, last = lists.list_starts[n], lists.list_starts[n + 1] - 1
            _draw_utilities(rng, lists, state, bounds, first, last)
            _shift_upper_positions(rng, lists, state, bounds, first, last)
        if step >= warmup:
            total += state.perceived
            squares += state.perceived * state.perceived


@compiled(
    *_UTILITY_MOVES,
    _draw_scores,
    _shift_items,
    _shift_and_scale_query,
    _keeps_order,
    _log_density,
    _draw_variance,
    _scale_all,
    _draw_variances,
)
def _run(rng, lists, prior, state, sweeps):  # type: ignore[no-untyped-def]
    bounds = PositionBounds(np.empty(len(lists.position_starts) - 1), np.empty(len(lists.position_starts) - 1))
    _find_bounds(lists, state, bounds, 0, len(bounds.low))
    for _ in range(sweeps):
        for query in range(len(state.difficulty)):
            prior_precision = state.difficulty[query] / state.score_variance[0]
            for n in range(lists.query_starts[query], lists.query_starts[query + 1]):
                first, last = lists.list_starts[n], lists.list_starts[n + 1] - 1
                _draw_utilities(rng, lists, state, bounds, first, last)
                _shift_upper_positions(rng, lists, state, bounds, first, last)
            _draw_scores(rng, lists, state, query, prior_precision)
            _shift_items(rng, lists, state, bounds, query, prior_precision)
            _shift_and_scale_query(rng, lists, state, bounds, query, prior_precision)
        _draw_variances(rng, lists, prior, state)
        _scale_all(rng, lists, prior, state, bounds)
