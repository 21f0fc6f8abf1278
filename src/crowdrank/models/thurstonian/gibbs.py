"""Sweeps of a sampler over Thurstonian pairwise preferences, as compiled loops.

Wang et al. 2016: query l has a domain m_l ~ Mult(θ), difficulty δ_l² and true scores s_i; annotator k perceives
s⁽ᵏ⁾_i = s_i + δ_l e, with e standard normal, and says a over b with chance Φ(τ_km (s⁽ᵏ⁾_a − s⁽ᵏ⁾_b) / √2). The noisy
differences of scores are integrated out everywhere: given them nothing would move far. Only what an annotator perceived
of items they judged is kept: one *sight* an annotator and item.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import compiled
from crowdrank.inference.special import ROOT_HALF, log_cdf_by_table, log_cdf_of_number
from crowdrank.models.thurstonian.expertise_moves import (
    EXPERTISE,
    STRETCHING,
    Powers,
    draw_expertise,
    stretch,
    trade_expertise,
)
from crowdrank.models.thurstonian.hmc import (
    GLIDING,
    Room,
    frame_sizes,
    glide,
    jump,
    look_again,
    look_through,
    set_frame,
)
from crowdrank.models.thurstonian.layout import Sights
from crowdrank.models.thurstonian.query_posterior import QUERY_POSTERIOR, approximate, log_posterior, place

_AIM = 0.75
_REDRAWN = 0.2
_JUMPED = 0.3


class Beliefs(NamedTuple):
    """What is believed beforehand. The prior of δ², around one, sets the unit of scores and of τ."""

    expertise: Any = 1.0
    expertise_spread: Any = 1.5
    """τ is normal; one number, or annotators × domains."""
    shares: Any = 1.0
    """θ is Dirichlet; one number, or one a domain."""
    difficulty_shape: float = 1.5
    difficulty_rate: float = 1.5
    """δ² is gamma, …"""
    scale_shape: float = 1.0
    scale_rate: float = 4.0
    """… and ω², the variance of true scores, inverse gamma."""

    def of(self, annotators: int, domains: int) -> Beliefs:
        """The same, spelt out for each annotator and domain."""
        table = (annotators, domains)
        one, two = (np.array(np.broadcast_to(v, table), np.float64) for v in (self.expertise, self.expertise_spread))
        shares = np.array(np.broadcast_to(self.shares, domains), np.float64)
        return Beliefs(one, two, shares, *(float(value) for value in self[3:]))


class State(NamedTuple):
    """Where a chain is."""

    scores: AnyArray
    seen: AnyArray
    """What each annotator perceived of each item they judged."""
    difficulty: AnyArray
    """δ² of each query."""
    domain: AnyArray
    expertise: AnyArray
    """τ, annotators × domains."""
    shares: AnyArray
    """θ, the share of each domain."""
    scale: AnyArray
    """ω², the variance of true scores; one number."""
    frames: AnyArray
    """The coordinates in which each query's scores are moved, …"""
    stride: AnyArray
    """… and how far they go at a time; one number."""
    odds: AnyArray
    """How often each domain is proposed for each query; queries × domains, rows add up to one."""


def ready(
    sights: Sights,
    scores: AnyArray,
    seen: AnyArray,
    difficulty: AnyArray,
    domain: AnyArray,
    expertise: AnyArray,
    shares: AnyArray,
    scale: AnyArray,
) -> State:
    """A state with coordinates of its own."""
    frames = np.empty(int(np.sum(frame_sizes(np.diff(sights.item_starts)))))
    odds = np.full((len(domain), len(shares)), 1.0 / len(shares))
    state = State(scores, seen, difficulty, domain, expertise, shares, scale, frames, np.ones(1), odds)
    set_frames(sights, state)
    return state


def set_frames(sights: Sights, state: State) -> None:
    """New coordinates, by where the state is now."""
    _set_frames(sights, state, _frame_starts(sights))


def evidence(sights: Sights, state: State, asked: AnyArray) -> AnyArray:
    """Log evidence of the judgments on each query in each domain, given expertise; nan where it is not asked for."""
    found: AnyArray = _evidence(sights, state, asked)
    return found


def walk(
    rng: np.random.Generator, sights: Sights, beliefs: Beliefs, state: State, steps: int, tune: bool = False
) -> float:
    """So many sweeps, in place; the chance that paths were accepted with. Only while tuned does the stride change."""
    accepted: float = _walk(rng, sights, beliefs, state, _frame_starts(sights), steps, tune)
    return accepted / max(1, steps)


def _frame_starts(sights: Sights) -> AnyArray:
    return np.concatenate(([0], np.cumsum(frame_sizes(np.diff(sights.item_starts)))))


@compiled(log_cdf_of_number, *GLIDING)
def _set_frames(sights, state, frame_starts):  # type: ignore[no-untyped-def]
    for query in range(len(state.domain)):
        slope = ROOT_HALF * state.expertise[:, state.domain[query]]
        set_frame(sights, state, query, slope, state.frames[frame_starts[query] : frame_starts[query + 1]])


@compiled(log_cdf_of_number, *QUERY_POSTERIOR)
def _evidence(sights, state, asked):  # type: ignore[no-untyped-def]
    found = np.full(asked.shape, np.nan)
    for query in range(len(asked)):
        first, last = sights.item_starts[query], sights.item_starts[query + 1]
        scores, seen = np.empty(last - first), np.empty(sights.sight_starts[last] - sights.sight_starts[first])
        for domain in range(asked.shape[1]):
            if asked[query, domain]:
                slope = ROOT_HALF * state.expertise[:, domain]
                near = approximate(sights, query, slope, state.scale[0], state.difficulty[query])
                density = place(sights, near, np.zeros(len(scores) + len(seen)), scores, seen, True)
                found[query, domain] = log_posterior(sights, query, slope, near, scores, seen) - density
    return found


def _draw_domain(rng: Any, sights: Any, state: Any, query: Any, gain: Any) -> None:
    """The domain of a query given what was seen; at times with its mirror image: it may be upside down in another."""
    domains = len(state.shares)
    sides = 2 if rng.random() < 0.25 else 1
    start, end = sights.judgment_starts[query], sights.judgment_starts[query + 1]
    for choice in range(sides * domains):
        gain[choice] = math.log(state.shares[choice % domains])
    for row in range(start, end):
        apart, who = ROOT_HALF * (state.seen[sights.winner[row]] - state.seen[sights.loser[row]]), sights.annotator[row]
        for m in range(domains):
            gain[m] += log_cdf_by_table(state.expertise[who, m] * apart)
        for m in range(domains, sides * domains):
            gain[m] += log_cdf_by_table(-state.expertise[who, m - domains] * apart)
    chance = np.cumsum(np.exp(gain[: sides * domains] - np.max(gain[: sides * domains])))
    choice = min(np.searchsorted(chance, chance[-1] * rng.random(), side="right"), sides * domains - 1)
    state.domain[query] = choice % domains
    if choice >= domains:
        first, last = sights.item_starts[query], sights.item_starts[query + 1]
        state.scores[first:last] *= -1.0
        state.seen[sights.sight_starts[first] : sights.sight_starts[last]] *= -1.0


def _jump_domain(rng: Any, sights: Any, state: Any, query: Any) -> None:
    """Another domain together with fresh scores and perceived utilities, from its Gaussian approximation.

    A query that fits two domains has different scores in each, so that given the scores it would stay where it is.
    """
    here, odds = state.domain[query], np.cumsum(state.odds[query])
    there = min(np.searchsorted(odds, odds[-1] * rng.random(), side="right"), len(odds) - 1)
    if there == here:
        return
    first, last = sights.item_starts[query], sights.item_starts[query + 1]
    low, high = sights.sight_starts[first], sights.sight_starts[last]
    spread, blur = state.scale[0], state.difficulty[query]
    scores, seen, noise = np.empty(last - first), np.empty(high - low), np.empty(last - first + high - low)
    for k in range(len(noise)):
        noise[k] = rng.standard_normal()
    slope = ROOT_HALF * state.expertise[:, there]
    near = approximate(sights, query, slope, spread, blur)
    gain = -place(sights, near, noise, scores, seen, True)
    gain += log_posterior(sights, query, slope, near, scores, seen)
    slope = ROOT_HALF * state.expertise[:, here]
    near = approximate(sights, query, slope, spread, blur)
    gain += place(sights, near, noise, state.scores[first:last].copy(), state.seen[low:high].copy(), False)
    gain -= log_posterior(sights, query, slope, near, state.scores[first:last], state.seen[low:high])
    gain += math.log(state.shares[there] / state.shares[here]) + math.log(
        state.odds[query, here] / state.odds[query, there]
    )
    if math.log(rng.random()) < gain:
        state.domain[query] = there
        state.scores[first:last], state.seen[low:high] = scores, seen


def _inverse_gamma(rng: Any, shape: float, rate: float) -> Any:
    return rate / rng.standard_gamma(shape)


def _redraw(rng: Any, value: float, power: float, rate: float, inverse_rate: float) -> Any:
    """A number whose log density by its logarithm is power · log − rate · number − inverse rate / number.

    Proposed about its mode, whatever it was before.
    """
    root = math.sqrt(power * power + 4.0 * rate * inverse_rate)
    mode = (power + root) / (2.0 * rate) if power > 0.0 else 2.0 * inverse_rate / (root - power)
    mode = max(mode, 1e-12)
    bent = rate * mode + inverse_rate / mode
    there = mode * math.exp(rng.standard_normal() / math.sqrt(bent))
    gain = power * math.log(there / value) - rate * (there - value) - inverse_rate * (1.0 / there - 1.0 / value)
    gain += 0.5 * bent * (math.log(there / mode) ** 2 - math.log(value / mode) ** 2)
    return there if math.log(rng.random()) < gain else value


def _lay_out(sights: Any, state: Any, query: Any, slope: Any, room: Any) -> None:
    """The margin of each judgment in two parts: what is true, and what was blurred."""
    for row in range(sights.judgment_starts[query], sights.judgment_starts[query + 1]):
        steep = slope[sights.annotator[row]]
        truly = state.scores[sights.above[row]] - state.scores[sights.below[row]]
        room.truly[row] = steep * truly
        room.offset[row] = steep * (state.seen[sights.winner[row]] - state.seen[sights.loser[row]] - truly)


def _draw_difficulty(rng: Any, sights: Any, beliefs: Any, state: Any, query: Any, slope: Any, room: Any) -> None:
    """δ² twice: given what was seen, and given the blurs, which then follow it. Where one is slow the other is not."""
    first, last = sights.item_starts[query], sights.item_starts[query + 1]
    squares = 0.0
    for item in range(first, last):
        for sight in range(sights.sight_starts[item], sights.sight_starts[item + 1]):
            squares += (state.seen[sight] - state.scores[item]) ** 2
    count = sights.sight_starts[last] - sights.sight_starts[first]
    shape, rate = beliefs.difficulty_shape, beliefs.difficulty_rate
    state.difficulty[query] = _redraw(rng, state.difficulty[query], shape - 0.5 * count, rate, 0.5 * squares)
    _lay_out(sights, state, query, slope, room)
    start, end = sights.judgment_starts[query], sights.judgment_starts[query + 1]
    prior = Powers(-rate * state.difficulty[query], 0.0, 2.0 * shape, 0.0)
    factor = stretch(rng, room.truly[start:end], room.offset[start:end], prior)
    if factor != 1.0:
        state.difficulty[query] *= factor * factor
        for item in range(first, last):
            for sight in range(sights.sight_starts[item], sights.sight_starts[item + 1]):
                state.seen[sight] = state.scores[item] + factor * (state.seen[sight] - state.scores[item])


def _stretch_query(rng: Any, sights: Any, beliefs: Any, state: Any, query: Any, slope: Any, room: Any) -> None:
    """A query's scores, sights and δ by one factor: they all say how far apart its items are, beside τ's noise."""
    first, last = sights.item_starts[query], sights.item_starts[query + 1]
    start, end = sights.judgment_starts[query], sights.judgment_starts[query + 1]
    squares = 0.0
    for item in range(first, last):
        squares += state.scores[item] ** 2
    for row in range(start, end):
        apart = state.seen[sights.winner[row]] - state.seen[sights.loser[row]]
        room.truly[row], room.offset[row] = 0.0, slope[sights.annotator[row]] * apart
    square = -0.5 * squares / state.scale[0] - beliefs.difficulty_rate * state.difficulty[query]
    prior = Powers(square, 0.0, last - first + 2.0 * beliefs.difficulty_shape, 0.0)
    factor = stretch(rng, room.truly[start:end], room.offset[start:end], prior)
    if factor != 1.0:
        state.difficulty[query] *= factor * factor
        state.scores[first:last] *= factor
        state.seen[sights.sight_starts[first] : sights.sight_starts[last]] *= factor


def _shift(rng: Any, sights: Any, state: Any, query: Any) -> None:
    """A query's scores and sights together: nothing but the prior of scores knows where they are."""
    first, last = sights.item_starts[query], sights.item_starts[query + 1]
    if last > first:
        step = math.sqrt(state.scale[0] / (last - first)) * rng.standard_normal() - np.mean(state.scores[first:last])
        state.scores[first:last] += step
        state.seen[sights.sight_starts[first] : sights.sight_starts[last]] += step


def _change_unit(rng: Any, sights: Any, beliefs: Any, state: Any, domain: Any) -> None:
    """A domain's scores and blurs by one factor and its τ by the inverse: the judgments do not notice."""
    squares, power = 0.0, 0.0
    for query in range(len(state.domain)):
        if state.domain[query] == domain:
            squares += beliefs.difficulty_rate * state.difficulty[query]
            power += sights.item_starts[query + 1] - sights.item_starts[query] + 2.0 * beliefs.difficulty_shape
            for item in range(sights.item_starts[query], sights.item_starts[query + 1]):
                squares += 0.5 * state.scores[item] ** 2 / state.scale[0]
    size = math.exp(4.0 * rng.random() - 5.0)
    factor = math.exp(rng.standard_normal() * size)
    gain = power * math.log(factor) - squares * (factor**2 - 1.0)
    for k in range(len(state.expertise)):
        tau, middle = state.expertise[k, domain], beliefs.expertise[k, domain]
        gaps = (tau - middle) ** 2 - (tau / factor - middle) ** 2
        gain += 0.5 * gaps / beliefs.expertise_spread[k, domain] ** 2 - math.log(factor)
    if math.log(rng.random()) < gain:
        state.expertise[:, domain] /= factor
        for query in range(len(state.domain)):
            if state.domain[query] == domain:
                first, last = sights.item_starts[query], sights.item_starts[query + 1]
                state.difficulty[query] *= factor * factor
                state.scores[first:last] *= factor
                state.seen[sights.sight_starts[first] : sights.sight_starts[last]] *= factor


def _stretch_all(rng: Any, sights: Any, beliefs: Any, state: Any, room: Any) -> None:
    """All scores with ω, or all blurs with δ, or all τ, by one factor."""
    kind = int(3.0 * rng.random())
    for query in range(len(state.domain)):
        _lay_out(sights, state, query, ROOT_HALF * state.expertise[:, state.domain[query]], room)
    fixed, moved = room.offset, room.truly
    if kind == 0:
        prior = Powers(0.0, 0.0, -2.0 * beliefs.scale_shape, beliefs.scale_rate / state.scale[0])
    elif kind == 1:
        fixed, moved = room.truly, room.offset
        square = -beliefs.difficulty_rate * np.sum(state.difficulty)
        prior = Powers(square, 0.0, 2.0 * beliefs.difficulty_shape * len(state.difficulty), 0.0)
    else:
        for row in range(len(moved)):
            moved[row] += fixed[row]
            fixed[row] = 0.0
        weight = beliefs.expertise_spread**-2
        squares, products = np.sum(weight * state.expertise**2), np.sum(weight * state.expertise * beliefs.expertise)
        prior = Powers(-0.5 * squares, products, 1.0 * state.expertise.size, 0.0)
    factor = stretch(rng, fixed, moved, prior)
    if factor == 1.0:
        return
    by_score, by_blur = factor if kind == 0 else 1.0, factor if kind == 1 else 1.0
    if kind == 2:
        state.expertise[:] *= factor
    else:
        for item in range(len(state.scores)):
            for sight in range(sights.sight_starts[item], sights.sight_starts[item + 1]):
                blur = by_blur * (state.seen[sight] - state.scores[item])
                state.seen[sight] = by_score * state.scores[item] + blur
        state.scores[:] *= by_score
        state.scale[:] *= by_score**2
        state.difficulty[:] *= by_blur**2


@compiled(
    log_cdf_of_number,
    *GLIDING,
    *EXPERTISE,
    *STRETCHING,
    *QUERY_POSTERIOR,
    _draw_domain,
    _jump_domain,
    _inverse_gamma,
    _redraw,
    _lay_out,
    _draw_difficulty,
    _stretch_query,
    _shift,
    _change_unit,
    _stretch_all,
)
def _walk(rng, sights, beliefs, state, frame_starts, steps, tune):  # type: ignore[no-untyped-def]
    queries, domains, items, many = len(state.domain), len(state.shares), len(state.scores), len(state.seen)
    rows, people = len(sights.winner), len(state.expertise)
    gain, counts, bench = np.empty(2 * domains), np.empty(domains), np.empty((7, *state.expertise.shape))
    room = Room(
        np.empty(items),
        np.empty(items),
        np.empty(items),
        np.empty(many),
        np.empty(many),
        np.empty(rows),
        np.empty(rows),
        np.empty(rows),
        np.empty(people),
        np.empty(people),
    )
    accepted = 0.0
    for step in range(steps):
        counts[:] = beliefs.shares
        chance = 0.0
        for query in range(queries):
            if rng.random() < _REDRAWN:
                _draw_domain(rng, sights, state, query, gain)
            if domains > 1 and rng.random() < _JUMPED:
                _jump_domain(rng, sights, state, query)
            counts[state.domain[query]] += 1.0
            slope = ROOT_HALF * state.expertise[:, state.domain[query]]
            frame = state.frames[frame_starts[query] : frame_starts[query + 1]]
            chance += glide(rng, sights, state, query, slope, frame, room) / queries
            look_again(rng, sights, state, query, slope, room)
            look_through(rng, sights, state, query)
            jump(rng, sights, state, query, slope)
            _stretch_query(rng, sights, beliefs, state, query, slope, room)
            _draw_difficulty(rng, sights, beliefs, state, query, slope, room)
            _shift(rng, sights, state, query)
        accepted += chance
        if tune:
            state.stride[0] *= math.exp((chance - _AIM) / math.sqrt(1.0 + 0.2 * step))
        draw_expertise(rng, sights, beliefs, state, bench)
        if rng.random() < 0.5:
            trade_expertise(rng, sights, beliefs, state, bench)
        else:
            _stretch_all(rng, sights, beliefs, state, room)
        for m in range(domains):
            state.shares[m] = max(rng.standard_gamma(counts[m]), 1e-300)
            _change_unit(rng, sights, beliefs, state, m)
        state.shares[:] /= np.sum(state.shares)
        squares = np.sum(state.scores * state.scores)
        state.scale[0] = _inverse_gamma(rng, beliefs.scale_shape + 0.5 * items, beliefs.scale_rate + 0.5 * squares)
    return accepted
