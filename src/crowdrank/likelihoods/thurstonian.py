"""Sweeps of a Gibbs sampler over Thurstonian pairwise preferences, as compiled loops.

Wang et al. 2016: query l has a domain m_l ~ Mult(θ), difficulty δ_l² and true scores s_i; annotator k perceives
s⁽ᵏ⁾_i ~ N(s_i, δ_l²) and says a over b with chance Φ(τ_km (s⁽ᵏ⁾_a − s⁽ᵏ⁾_b) / √2). Each judgment is given a margin
z ~ N(τ_km (s⁽ᵏ⁾_a − s⁽ᵏ⁾_b) / √2, 1), known to be positive: given the margins all the rest is normal, whatever the sign
of τ. Only what an annotator perceived of items they judged is kept: one *sight* an annotator and item.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.likelihoods.compiled import compiled
from crowdrank.likelihoods.normal import ROOT_HALF, log_cdf_of_number

Vector = npt.NDArray[Any]


class Beliefs(NamedTuple):
    """What is believed beforehand. The prior of δ², around one, sets the unit of scores and of τ."""

    expertise: float = 1.0
    expertise_spread: float = 1.5
    """τ is normal."""
    difficulty_shape: float = 2.0
    difficulty_rate: float = 1.0
    """δ² is inverse gamma, and so is …"""
    scale_shape: float = 1.0
    scale_rate: float = 4.0
    """… ω², the variance of true scores."""


class Sights(NamedTuple):
    """Judgments sorted by query, and the sights they hang on, sorted by item and annotator."""

    winner: Vector
    """The sight of the winner of each judgment; …"""
    loser: Vector
    annotator: Vector
    judgment_starts: Vector
    """… where each query's judgments start, …"""
    item_starts: Vector
    """… each query's items, …"""
    sight_starts: Vector
    """… each item's sights, …"""
    touch_starts: Vector
    """… and each sight's touches: the judgments that it takes part in."""
    touch_row: Vector
    touch_other: Vector
    """The other sight of the judgment."""
    touch_sign: Vector
    """1 where the sight won, −1 where it lost."""
    item: Vector
    """Of each sight."""
    annotator_of_sight: Vector


def sights_of(winner: Vector, loser: Vector, annotator: Vector, item_starts: Vector) -> Sights:
    """From items that won and lost by annotator; the order of judgments is forgotten."""
    people = int(annotator.max(initial=0)) + 1
    items, queries = int(item_starts[-1]), len(item_starts) - 1
    order = np.lexsort((loser, winner, annotator, np.searchsorted(item_starts, winner, side="right")))
    winner, loser, annotator = (column[order].astype(np.int64) for column in (winner, loser, annotator))
    seen, place = np.unique(
        np.concatenate((winner * people + annotator, loser * people + annotator)), return_inverse=True
    )
    rows = len(winner)
    won, lost = place[:rows].astype(np.int32), place[rows:].astype(np.int32)
    touching = np.argsort(place, kind="stable")
    query = np.searchsorted(item_starts, winner, side="right") - 1
    return Sights(
        won, lost, annotator.astype(np.int32), _starts(query, queries), np.asarray(item_starts, np.int64),
        _starts(seen // people, items), _starts(place, len(seen)),
        np.tile(np.arange(rows, dtype=np.int32), 2)[touching], np.concatenate((lost, won))[touching],
        np.repeat((1.0, -1.0), rows)[touching], (seen // people).astype(np.int32), (seen % people).astype(np.int32),
    )  # fmt: skip


def _starts(codes: Vector, size: int) -> Vector:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size)))).astype(np.int64)


def walk(
    rng: np.random.Generator, sights: Sights, beliefs: Beliefs, scores: Vector, seen: Vector, difficulty: Vector,
    domain: Vector, expertise: Vector, shares: Vector, scale: Vector, steps: int,
) -> int:  # fmt: skip
    """So many sweeps, in place; how many of the moves of the unit, one a sweep, were accepted.

    `seen` are the perceived scores, `difficulty` is δ², `shares` is θ, and `scale` holds ω².
    """
    s = sights
    accepted: int = _walk(
        rng, scores, seen, difficulty, domain, expertise, shares, scale, s.winner, s.loser, s.annotator,
        s.judgment_starts, s.item_starts, s.sight_starts, s.touch_starts, s.touch_row, s.touch_other, s.touch_sign,
        s.annotator_of_sight, *(float(value) for value in beliefs), steps,
    )  # fmt: skip
    return accepted


def positive_normals(rng: np.random.Generator, means: Vector) -> Vector:
    """One draw for each mean from a normal of variance one, given that it is positive."""
    drawn: Vector = _positive_normals(rng, np.asarray(means, np.float64))
    return drawn


def _positive_normal(rng: Any, mean: float) -> Any:
    if mean > -0.45:
        while True:
            z = mean + rng.standard_normal()
            if z > 0.0:
                return z
    # Robert 1995: an exponential beyond the bound; the overshoot itself, lest it drown in a large bound.
    rate = 0.5 * (math.sqrt(mean * mean + 4.0) - mean)
    while True:
        z = rng.standard_exponential() / rate
        gap = z - mean - rate
        if 2.0 * rng.standard_exponential() > gap * gap:
            return z


@compiled(_positive_normal)
def _positive_normals(rng, means):  # type: ignore[no-untyped-def]
    drawn = np.empty_like(means)
    for row in range(len(means)):
        drawn[row] = _positive_normal(rng, means[row])
    return drawn


def _log_likelihood(
    seen: Any, of_person: Any, winner: Any, loser: Any, annotator: Any, start: Any, end: Any
) -> Any:  # fmt: skip
    """Of a query's judgments given what was seen, margins integrated out."""
    gain, ratio = 0.0, 1.0
    for row in range(start, end):
        x = of_person[annotator[row]] * ROOT_HALF * (seen[winner[row]] - seen[loser[row]])
        if x < -20.0:
            gain += log_cdf_of_number(x)
            continue
        # chances are multiplied up, and their logarithm taken rarely
        ratio *= 0.5 * math.erfc(-ROOT_HALF * x)
        if ratio < 1e-200:
            gain += math.log(ratio)
            ratio = 1.0
    return gain + math.log(ratio)


def _draw_domain(
    rng: Any, seen: Any, expertise: Any, shares: Any, winner: Any, loser: Any, annotator: Any, start: Any, end: Any,
    gain: Any,
) -> Any:  # fmt: skip
    """The domain of a query given what was seen, margins integrated out: given margins it would hardly move."""
    for m in range(len(shares)):
        likely = _log_likelihood(seen, expertise[:, m], winner, loser, annotator, start, end)
        gain[m] = math.log(shares[m]) + likely
    chance = np.cumsum(np.exp(gain - np.max(gain)))
    return min(np.searchsorted(chance, chance[-1] * rng.random(), side="right"), len(shares) - 1)


def _draw_item(
    rng: Any, item: Any, seen: Any, variance: Any, spread: Any, of_person: Any, z: Any, first_row: Any, sight_starts:
    Any, touch_starts: Any, touch_row: Any, touch_other: Any, touch_sign: Any, who: Any, pull: Any, looseness: Any,
) -> Any:  # fmt: skip
    """A true score and all sights of it together, given margins and the sights of other items."""
    precision, linear = 1.0 / spread, 0.0
    start, end = sight_starts[item], sight_starts[item + 1]
    for sight in range(start, end):
        slope = ROOT_HALF * of_person[who[sight]]
        total = 0.0
        for touch in range(touch_starts[sight], touch_starts[sight + 1]):
            total += touch_sign[touch] * z[touch_row[touch] - first_row] + slope * seen[touch_other[touch]]
        known = slope * slope * (touch_starts[sight + 1] - touch_starts[sight])
        pull[sight], looseness[sight] = slope * total, 1.0 / (1.0 + variance * known)
        precision += known * looseness[sight]
        linear += pull[sight] * looseness[sight]
    score = linear / precision + rng.standard_normal() / math.sqrt(precision)
    for sight in range(start, end):
        mean = (score + variance * pull[sight]) * looseness[sight]
        seen[sight] = mean + math.sqrt(variance * looseness[sight]) * rng.standard_normal()
    return score


def _stretch(
    rng: Any, scores: Any, seen: Any, fresh: Any, variance: Any, spread: Any, of_person: Any, winner: Any, loser: Any,
    annotator: Any, start: Any, end: Any, first: Any, last: Any, sight_starts: Any, shape: Any, rate: Any,
) -> Any:  # fmt: skip
    """A query's scores and sights by one factor, then its sights about the scores by another; the new difficulty.

    Margins integrated out: given them, and sights one by one, neither would move far.
    """
    likely = _log_likelihood(seen, of_person, winner, loser, annotator, start, end)
    for scaled in (True, False):
        factor = math.exp(rng.standard_normal() * math.exp(3.0 * rng.random() - 3.0))
        fixed = factor if scaled else 1.0
        gain = 0.0
        for item in range(first, last):
            for sight in range(sight_starts[item], sight_starts[item + 1]):
                fresh[sight] = fixed * scores[item] + factor * (seen[sight] - scores[item])
            gain += 0.5 * (1.0 - fixed * fixed) * scores[item] ** 2 / spread + math.log(fixed)
        there = _log_likelihood(fresh, of_person, winner, loser, annotator, start, end)
        gain += there - likely + _log_inverse_gamma(factor * factor * variance, shape, rate)
        gain -= _log_inverse_gamma(variance, shape, rate)
        if math.log(rng.random()) < gain:
            likely = there
            variance *= factor * factor
            scores[first:last] *= fixed
            for sight in range(sight_starts[first], sight_starts[last]):
                seen[sight] = fresh[sight]
    return variance


def _log_ratio(there: float, here: float) -> float:
    """log Φ(there) − log Φ(here)."""
    if here < -20.0 or there < -20.0:
        return log_cdf_of_number(there) - log_cdf_of_number(here)
    return math.log(math.erfc(-ROOT_HALF * there) / math.erfc(-ROOT_HALF * here))


def _move_items(
    rng: Any, scores: Any, seen: Any, spread: Any, of_person: Any, first: Any, last: Any, sight_starts: Any,
    touch_starts: Any, touch_other: Any, touch_sign: Any, who: Any,
) -> None:  # fmt: skip
    """Each true score with all sights of it by a step, margins integrated out: what won always may go far."""
    for item in range(first, last):
        step = math.sqrt(spread) * math.exp(3.0 * rng.random() - 3.0) * rng.standard_normal()
        gain = -0.5 * step * (2.0 * scores[item] + step) / spread
        for sight in range(sight_starts[item], sight_starts[item + 1]):
            slope = ROOT_HALF * of_person[who[sight]]
            for touch in range(touch_starts[sight], touch_starts[sight + 1]):
                sloped = touch_sign[touch] * slope
                here = sloped * (seen[sight] - seen[touch_other[touch]])
                gain += _log_ratio(here + sloped * step, here)
        if math.log(rng.random()) < gain:
            scores[item] += step
            for sight in range(sight_starts[item], sight_starts[item + 1]):
                seen[sight] += step


def _move_expertise(
    rng: Any, seen: Any, expertise: Any, domain: Any, winner: Any, loser: Any, annotator: Any, judgment_starts: Any,
    middle: Any, width: Any, fresh: Any, gain: Any,
) -> None:  # fmt: skip
    """Every τ by a step with margins integrated out, all at once: they do not depend on each other."""
    for k in range(len(expertise)):
        for m in range(expertise.shape[1]):
            tau = expertise[k, m]
            fresh[k, m] = tau + width * math.exp(3.0 * rng.random() - 3.0) * rng.standard_normal()
            gain[k, m] = 0.5 * ((tau - middle) ** 2 - (fresh[k, m] - middle) ** 2) / (width * width)
    for query in range(len(domain)):
        m = domain[query]
        for row in range(judgment_starts[query], judgment_starts[query + 1]):
            k = annotator[row]
            apart = ROOT_HALF * (seen[winner[row]] - seen[loser[row]])
            here, there = expertise[k, m] * apart, fresh[k, m] * apart
            gain[k, m] += _log_ratio(there, here)
    for k in range(len(expertise)):
        for m in range(expertise.shape[1]):
            if math.log(rng.random()) < gain[k, m]:
                expertise[k, m] = fresh[k, m]


def _shift(rng: Any, scores: Any, seen: Any, spread: Any, first: Any, last: Any, sight_starts: Any) -> None:
    """A query's scores and sights together: nothing but the prior of scores knows where they are."""
    count = last - first
    step = math.sqrt(spread / count) * rng.standard_normal() - np.mean(scores[first:last])
    scores[first:last] += step
    seen[sight_starts[first] : sight_starts[last]] += step


def _inverse_gamma(rng: Any, shape: float, rate: float) -> Any:
    return rate / rng.standard_gamma(shape)


def _log_inverse_gamma(value: float, shape: float, rate: float) -> float:
    """Log density by log value."""
    return -shape * math.log(value) - rate / value


def _change_unit(
    rng: Any, scores: Any, seen: Any, difficulty: Any, expertise: Any, scale: Any, middle: Any, width: Any,
    shape: Any, rate: Any, scale_shape: Any, scale_rate: Any,
) -> Any:  # fmt: skip
    """All scores by one factor and τ by its inverse: the judgments do not notice, only what is believed does."""
    factor = math.exp(rng.standard_normal() * math.exp(3.0 * rng.random() - 4.5))
    square = factor * factor
    gain = -expertise.size * math.log(factor)
    for tau in expertise.flat:
        gain += 0.5 * ((tau - middle) ** 2 - (tau / factor - middle) ** 2) / (width * width)
    for value in difficulty:
        gain += _log_inverse_gamma(square * value, shape, rate) - _log_inverse_gamma(value, shape, rate)
    gain += _log_inverse_gamma(square * scale[0], scale_shape, scale_rate)
    gain -= _log_inverse_gamma(scale[0], scale_shape, scale_rate)
    if math.log(rng.random()) >= gain:
        return 0
    scores *= factor
    seen *= factor
    expertise /= factor
    difficulty *= square
    scale *= square
    return 1


@compiled(
    log_cdf_of_number, _positive_normal, _log_likelihood, _draw_domain, _draw_item, _stretch, _log_ratio, _move_items,
    _move_expertise, _shift, _inverse_gamma, _log_inverse_gamma, _change_unit,
)  # fmt: skip
def _walk(  # type: ignore[no-untyped-def]
    rng, scores, seen, difficulty, domain, expertise, shares, scale, winner, loser, annotator, judgment_starts,
    item_starts, sight_starts, touch_starts, touch_row, touch_other, touch_sign, who, middle, width, shape, rate,
    scale_shape, scale_rate, steps,
):  # fmt: skip
    queries, domains = len(difficulty), len(shares)
    gain, counts = np.empty(domains), np.empty(domains)
    z = np.empty(np.max(np.diff(judgment_starts)))
    pull, looseness = np.empty_like(seen), np.empty_like(seen)
    precision, linear = np.empty_like(expertise), np.empty_like(expertise)
    accepted = 0
    for _ in range(steps):
        precision[:] = 1.0 / (width * width)
        linear[:] = middle / (width * width)
        counts[:] = 1.0
        for query in range(queries):
            start, end = judgment_starts[query], judgment_starts[query + 1]
            first, last = item_starts[query], item_starts[query + 1]
            m = _draw_domain(rng, seen, expertise, shares, winner, loser, annotator, start, end, gain)
            domain[query] = m
            counts[m] += 1.0
            of_person = expertise[:, m]
            difficulty[query] = _stretch(
                rng, scores, seen, pull, difficulty[query], scale[0], of_person, winner, loser, annotator, start, end,
                first, last, sight_starts, shape, rate,
            )  # fmt: skip
            _move_items(
                rng, scores, seen, scale[0], of_person, first, last, sight_starts, touch_starts, touch_other,
                touch_sign, who,
            )  # fmt: skip
            for row in range(start, end):
                apart = ROOT_HALF * (seen[winner[row]] - seen[loser[row]])
                z[row - start] = _positive_normal(rng, of_person[annotator[row]] * apart)
            squares = 0.0
            for item in range(first, last):
                scores[item] = _draw_item(
                    rng, item, seen, difficulty[query], scale[0], of_person, z, start, sight_starts, touch_starts,
                    touch_row, touch_other, touch_sign, who, pull, looseness,
                )  # fmt: skip
                for sight in range(sight_starts[item], sight_starts[item + 1]):
                    squares += (seen[sight] - scores[item]) ** 2
            count = sight_starts[last] - sight_starts[first]
            difficulty[query] = _inverse_gamma(rng, shape + 0.5 * count, rate + 0.5 * squares)
            for row in range(start, end):
                apart = ROOT_HALF * (seen[winner[row]] - seen[loser[row]])
                precision[annotator[row], m] += apart * apart
                linear[annotator[row], m] += apart * z[row - start]
            if last > first:
                _shift(rng, scores, seen, scale[0], first, last, sight_starts)
        for k in range(len(expertise)):
            for m in range(domains):
                draw = rng.standard_normal() / math.sqrt(precision[k, m])
                expertise[k, m] = linear[k, m] / precision[k, m] + draw
        _move_expertise(
            rng, seen, expertise, domain, winner, loser, annotator, judgment_starts, middle, width, precision, linear
        )
        for m in range(domains):
            shares[m] = max(rng.standard_gamma(counts[m]), 1e-300)
        shares /= np.sum(shares)
        scale[0] = _inverse_gamma(rng, scale_shape + 0.5 * len(scores), scale_rate + 0.5 * np.sum(scores * scores))
        accepted += _change_unit(
            rng, scores, seen, difficulty, expertise, scale, middle, width, shape, rate, scale_shape, scale_rate
        )
    return accepted
