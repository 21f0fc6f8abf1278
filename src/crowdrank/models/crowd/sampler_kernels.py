"""One sweep of Metropolis steps over Crowd-BT's parameters, each score and each quality in turn, as compiled loops.

Chen et al. 2013: P(k says a beats b) = ηₖ·F(a − b) + (1 − ηₖ)·F(b − a), F logistic or Thurstone's normal. Of every
answer its truthful chance F and its chance P are kept up to date, so that a step costs one F an answer it touches, and
a step of η none.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import Compiled, compiled
from crowdrank.models.crowd.likelihood import RELIABLE, Answers

# Of spreads that are learnt: the middle of what is believed beforehand, and its spread in logarithms.
SCALE, _SPREAD_OF_SCALE = 3.0, 1.0
TRUTHS, LIES, _SPREAD_OF_COUNTS = 2.0, 1.0, 0.7
_STEPS_OF_SPREADS = 6
_STEPS_OF_COUNTS = 3
# The lattice on which qualities are summed out: its points, where its steps begin to widen, how far it goes.
_LATTICE, _BEND, _LARGEST_LOGIT = 24, 3.0, 34.5
# Hamiltonian steps: leapfrog steps at most, and the acceptance rate that the step size is tuned to.
_LONGEST_PATH, _ACCEPTED = 24.0, 0.8


class Threads(NamedTuple):
    """Answers threaded by item and by annotator; every answer hangs on two items and one annotator."""

    answers: Answers
    item_starts: AnyArray
    item_rows: AnyArray
    sign: AnyArray
    """1 where the item won the answer, −1 where it lost."""
    other: AnyArray
    """The other item of the answer."""
    annotator_starts: AnyArray
    annotator_rows: AnyArray
    logistic: bool


class Limits(NamedTuple):
    """Between which values each η must lie, one that cannot move having none between; and whose is above whose."""

    low: AnyArray
    high: AnyArray
    better: AnyArray
    worse: AnyArray

    @property
    def even_handed(self) -> bool:
        """Whether every η could as well be 1 − η."""
        return bool(np.all(self.low == 0) and np.all(self.high == 1) and not len(self.better))


def thread(answers: Answers, items: int, annotators: int, formula: int) -> Threads:
    """The same answer of one annotator, given twice, is one of twice the weight; their order is forgotten."""
    answers = _merged(answers, items)
    count = len(answers.winner)
    touched = np.concatenate((answers.winner, answers.loser))
    order = np.argsort(touched, kind="stable")
    rows = np.tile(np.arange(count, dtype=np.int32), 2)[order]
    sign = np.repeat((1.0, -1.0), count)[order]
    other = np.concatenate((answers.loser, answers.winner))[order]
    people = np.argsort(answers.annotator, kind="stable").astype(np.int32)
    return Threads(
        answers,
        _starts(touched, items),
        rows,
        sign,
        other,
        _starts(answers.annotator, annotators),
        people,
        formula == RELIABLE,
    )


def _merged(answers: Answers, items: int) -> Answers:
    winner, loser, who, weight, features, _ = answers
    key = (who.astype(np.int64) * items + winner) * items + loser
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return Answers(winner[first], loser[first], who[first], np.bincount(place, weight), features[first])


def _starts(codes: AnyArray, size: int) -> AnyArray:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size))))


def chances(threads: Threads, scores: AnyArray, quality: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Of every answer: the chance that a truthful annotator gives it, and that this one does."""
    answers = threads.answers
    truthful = np.empty(len(answers.winner))
    _truthful(scores, answers.winner, answers.loser, threads.logistic, truthful)
    eta = quality[answers.annotator]
    return truthful, 1.0 - eta + (2.0 * eta - 1.0) * truthful


def walk(
    rng: np.random.Generator,
    threads: Threads,
    query_starts: AnyArray,
    limits: Limits,
    learns: tuple[bool, bool],
    scores: AnyArray,
    quality: AnyArray,
    spreads: AnyArray,
    truthful: AnyArray,
    chance: AnyArray,
    curvature: AnyArray,
    step_size: AnyArray,
    steps: int,
    tune: bool = False,
) -> float:
    """So many sweeps, in place; the sum of the acceptance chances of their Hamiltonian steps.

    `spreads` are the standard deviation of the normal prior on scores, and the truths and lies of the Beta prior on η;
    `learns` says whether the first, and whether the other two, are drawn as well.
    """
    t = threads
    accepted: float = _walk(
        rng,
        scores,
        quality,
        spreads,
        truthful,
        chance,
        curvature,
        step_size,
        *learns,
        query_starts,
        *limits,
        t.answers.winner,
        t.answers.loser,
        t.answers.annotator,
        t.answers.weight,
        t.item_starts,
        t.item_rows,
        t.sign,
        t.other,
        t.annotator_starts,
        t.annotator_rows,
        t.logistic,
        steps,
        tune,
    )
    return accepted


def _log_normal(value: float, middle: float, spread: float) -> float:
    """Log density by log value."""
    return -0.5 * (math.log(value / middle) / spread) ** 2


def _log_density_of_scale(scale: float, squares: float, count: int) -> float:
    return -count * math.log(scale) - 0.5 * squares / scale**2 + _log_normal(scale, SCALE, _SPREAD_OF_SCALE)


def _believed(margin: float, logistic: bool) -> float:
    """F(margin)."""
    if logistic:
        return 1.0 / (1.0 + math.exp(-margin))
    return 0.5 * math.erfc(-0.5 * margin)


def _gained(gain: float, ratio: float, weight: float, share: float) -> tuple[float, float]:
    """A log-likelihood in two parts: chances of weight one are multiplied up, and their logarithm taken rarely."""
    if weight == 1.0:
        ratio *= share
    else:
        gain += weight * math.log(share)
    if ratio < 1e-200 or ratio > 1e200:
        gain += math.log(ratio)
        ratio = 1.0
    return gain, ratio


def _move_scores(
    rng: Any,
    scores: Any,
    quality: Any,
    scale: Any,
    curvature: Any,
    starts: Any,
    rows: Any,
    sign: Any,
    other: Any,
    annotator: Any,
    weight: Any,
    logistic: Any,
    truthful: Any,
    chance: Any,
) -> Any:
    """One random-walk Metropolis step for every score."""
    accepted = 0
    for item in range(len(scores)):
        # a random width: some steps fit even where the curvature is far from the one at hand
        width = math.exp(3.0 * rng.random() - 1.0) / math.sqrt(curvature[item])
        here = scores[item]
        there = here + width * rng.standard_normal()
        gain = 0.5 * (here - there) * (here + there) / scale**2
        ratio = 1.0
        for place in range(starts[item], starts[item + 1]):
            row = rows[place]
            eta = quality[annotator[row]]
            fresh = 1.0 - eta + (2.0 * eta - 1.0) * _believed(sign[place] * (there - scores[other[place]]), logistic)
            gain, ratio = _gained(gain, ratio, weight[row], fresh / chance[row])
        if math.log(rng.random()) < gain + math.log(ratio):
            accepted += 1
            scores[item] = there
            for place in range(starts[item], starts[item + 1]):
                row = rows[place]
                eta = quality[annotator[row]]
                truthful[row] = _believed(sign[place] * (there - scores[other[place]]), logistic)
                chance[row] = 1.0 - eta + (2.0 * eta - 1.0) * truthful[row]
    return accepted


def _move_quality(
    rng: Any,
    quality: Any,
    truths: Any,
    lies: Any,
    low: Any,
    high: Any,
    better: Any,
    worse: Any,
    starts: Any,
    rows: Any,
    weight: Any,
    truthful: Any,
    chance: Any,
) -> Any:
    accepted = 0
    for k in range(len(quality)):
        least, most = max(low[k], 1e-15), min(high[k], 1.0 - 1e-15)
        for pair in range(len(better)):
            if better[pair] == k:
                least = max(least, quality[worse[pair]])
            if worse[pair] == k:
                most = min(most, quality[better[pair]])
        if not least < most:
            continue
        here = quality[k]
        logit = math.log(here) - math.log1p(-here) + math.exp(3.0 * rng.random() - 2.0) * rng.standard_normal()
        there = 1.0 / (1.0 + math.exp(-logit))
        if not least < there < most:
            continue
        gain = truths * math.log(there / here) + lies * (math.log1p(-there) - math.log1p(-here))
        ratio = 1.0
        for place in range(starts[k], starts[k + 1]):
            row = rows[place]
            fresh = 1.0 - there + (2.0 * there - 1.0) * truthful[row]
            gain, ratio = _gained(gain, ratio, weight[row], fresh / chance[row])
        if math.log(rng.random()) < gain + math.log(ratio):
            accepted += 1
            quality[k] = there
            for place in range(starts[k], starts[k + 1]):
                row = rows[place]
                chance[row] = 1.0 - there + (2.0 * there - 1.0) * truthful[row]
    return accepted


def _shift(rng: Any, scores: Any, starts: Any, scale: Any) -> Any:
    """The level of each query, drawn outright: no answer depends on it."""
    for query in range(len(starts) - 1):
        size = starts[query + 1] - starts[query]
        level = scale / math.sqrt(size) * rng.standard_normal()
        scores[starts[query] : starts[query + 1]] += level - scores[starts[query] : starts[query + 1]].mean()


def _draw_scale(rng: Any, scores: Any, scale: Any) -> Any:
    """The spread of the scores given them, by steps of its logarithm."""
    squares, count = np.sum(scores * scores), len(scores)
    for _ in range(_STEPS_OF_SPREADS):
        there = scale * math.exp(rng.standard_normal() * 1.5 / math.sqrt(count))
        gain = _log_density_of_scale(there, squares, count) - _log_density_of_scale(scale, squares, count)
        if math.log(rng.random()) < gain:
            scale = there
    return scale


def _gradient(
    scores: Any,
    log_scale: Any,
    quality: Any,
    spreads: Any,
    learns_scale: Any,
    mobile: Any,
    winner: Any,
    loser: Any,
    annotator: Any,
    weight: Any,
    logistic: Any,
    truthful: Any,
    found: Any,
) -> Any:
    """Log posterior of scores, the log of their scale and quality logits; `found` is left with the gradient.

    The scale has no gradient where it is fixed, nor has an annotator that is not `mobile`.
    """
    items = len(scores)
    precision = math.exp(-2.0 * log_scale)
    total, product, squares = 0.0, 1.0, 0.0
    found[:] = 0.0
    for item in range(items):
        squares += scores[item] * scores[item]
        found[item] = -scores[item] * precision
    for row in range(len(winner)):
        k = annotator[row]
        margin = scores[winner[row]] - scores[loser[row]]
        truth = _believed(margin, logistic)
        density = truth * (1.0 - truth) if logistic else math.exp(-0.25 * margin * margin) / (2.0 * math.sqrt(math.pi))
        gain = 2.0 * quality[k] - 1.0
        chance = 1.0 - quality[k] + gain * truth
        truthful[row] = truth
        total, product = _gained(total, product, weight[row], chance)
        force = weight[row] * gain * density / chance
        found[winner[row]] += force
        found[loser[row]] -= force
        found[items + 1 + k] += weight[row] * (2.0 * truth - 1.0) / chance
    total += math.log(product) - 0.5 * squares * precision
    for k in range(len(quality)):
        if mobile[k]:
            eta, lie = quality[k], 1.0 - quality[k]
            total += spreads[1] * math.log(eta) + spreads[2] * math.log(lie)
            found[items + 1 + k] = found[items + 1 + k] * eta * lie + spreads[1] * lie - spreads[2] * eta
        else:
            found[items + 1 + k] = 0.0
    if learns_scale:
        apart = (log_scale - math.log(SCALE)) / _SPREAD_OF_SCALE
        total -= items * log_scale + 0.5 * apart * apart
        found[items] = squares * precision - items - apart / _SPREAD_OF_SCALE
    return total


def _hmc_step(
    rng: Any,
    scores: Any,
    quality: Any,
    spreads: Any,
    curvature: Any,
    step_size: Any,
    learns_scale: Any,
    mobile: Any,
    winner: Any,
    loser: Any,
    annotator: Any,
    weight: Any,
    logistic: Any,
    truthful: Any,
    chance: Any,
    fresh: Any,
) -> Any:
    """One Hamiltonian Monte Carlo step on scores, the log of their scale and quality logits; its acceptance chance."""
    items, people = len(scores), len(quality)
    size = items + 1 + people
    gradient, momentum, there, eta = np.empty(size), np.zeros(size), np.zeros(size), quality.copy()
    there[:items], there[items] = scores, math.log(spreads[0])
    for k in range(people):
        if mobile[k]:
            there[items + 1 + k] = math.log(eta[k]) - math.log1p(-eta[k])
    # a random path length, so that no path keeps returning to where it began
    step = step_size * math.exp(0.4 * rng.random() - 0.2)
    steps = 1 + int(rng.random() * min(_LONGEST_PATH, 4.0 / step))
    before = _gradient(
        there[:items],
        there[items],
        eta,
        spreads,
        learns_scale,
        mobile,
        winner,
        loser,
        annotator,
        weight,
        logistic,
        fresh,
        gradient,
    )
    after = before
    for n in range(size):
        if n < items or (n == items and learns_scale) or (n > items and mobile[n - items - 1]):
            momentum[n] = rng.standard_normal() * math.sqrt(curvature[n])
            before -= 0.5 * momentum[n] * momentum[n] / curvature[n]
    for _ in range(steps):
        for n in range(size):
            momentum[n] += 0.5 * step * gradient[n]
            there[n] += step * momentum[n] / curvature[n]
        if not abs(there[items]) < 50.0:
            return 0.0
        for k in range(people):
            if mobile[k]:
                if not abs(there[items + 1 + k]) < _LARGEST_LOGIT:
                    return 0.0
                eta[k] = 1.0 / (1.0 + math.exp(-there[items + 1 + k]))
        after = _gradient(
            there[:items],
            there[items],
            eta,
            spreads,
            learns_scale,
            mobile,
            winner,
            loser,
            annotator,
            weight,
            logistic,
            fresh,
            gradient,
        )
        for n in range(size):
            momentum[n] += 0.5 * step * gradient[n]
    for n in range(size):
        after -= 0.5 * momentum[n] * momentum[n] / curvature[n]
    acceptance = math.exp(min(0.0, after - before)) if after > -np.inf else 0.0
    if rng.random() < acceptance:
        scores[:], quality[:] = there[:items], eta
        if learns_scale:
            spreads[0] = math.exp(there[items])
        for row in range(len(winner)):
            truthful[row] = fresh[row]
            chance[row] = 1.0 - eta[annotator[row]] + (2.0 * eta[annotator[row]] - 1.0) * fresh[row]
    return acceptance


def curvature_of(threads: Threads, scores: AnyArray, quality: AnyArray, scale: float) -> AnyArray:
    """Expected information on each score, on the log of their scale and on each quality logit: a diagonal mass matrix.

    A logit is given at least 1: at both ends it is nearly flat, and a step must not leap over all of the rest.
    """
    winner, loser, annotator, weight = threads.answers[:4]
    margin = scores[winner] - scores[loser]
    truthful, chance = chances(threads, scores, quality)
    density = truthful * (1.0 - truthful) if threads.logistic else np.exp(-0.25 * margin**2) / (2.0 * np.sqrt(np.pi))
    eta, spread = quality[annotator], chance * (1.0 - chance) + 1e-12
    of_margin = weight * ((2.0 * eta - 1.0) * density) ** 2 / spread
    of_logit = weight * ((2.0 * truthful - 1.0) * eta * (1.0 - eta)) ** 2 / spread
    of_items = np.bincount(winner, of_margin, len(scores)) + np.bincount(loser, of_margin, len(scores))
    of_scale = 2.0 * len(scores) + _SPREAD_OF_SCALE**-2.0
    return np.concatenate(
        (of_items + scale**-2.0, [of_scale], np.maximum(1.0, np.bincount(annotator, of_logit, len(quality))))
    )


def _truthful_chances(scores: Any, winner: Any, loser: Any, logistic: Any, truthful: Any) -> Any:
    """F of every answer."""
    for row in range(len(winner)):
        truthful[row] = _believed(scores[winner[row]] - scores[loser[row]], logistic)


def _rescaled(scores: Any, scale: Any, factor: Any, learns_scale: Any) -> Any:
    """What log prior and Jacobian gain if all scores, and their scale if it is learnt, are multiplied by a factor."""
    if learns_scale:
        return _log_normal(scale * factor, SCALE, _SPREAD_OF_SCALE) - _log_normal(scale, SCALE, _SPREAD_OF_SCALE)
    return len(scores) * math.log(factor) - 0.5 * (factor**2 - 1.0) * np.sum(scores * scores) / scale**2


_truthful = Compiled(_truthful_chances, (_believed,))


def _lay_lattice(
    quality: Any,
    low: Any,
    high: Any,
    collapsed: Any,
    free: Any,
    eta: Any,
    log_eta: Any,
    log_lie: Any,
    jacobian: Any,
    place: Any,
) -> Any:
    """For every annotator the lattice through its η: equal steps in x, where logit η = _BEND·sinh x.

    Conditional on the lattice, which any of its points would have laid in the same way, η is a discrete variable that
    can be summed out: exact, however coarse the lattice is. `jacobian` is dη/dx over η(1 − η), up to a constant, and 0
    where η cannot go; an annotator that is not `collapsed` has its own η alone.
    """
    step = 2.0 * math.asinh(_LARGEST_LOGIT / _BEND) / _LATTICE
    growth = math.exp(step)
    for k in range(len(quality)):
        logit = math.log(quality[k]) - math.log1p(-quality[k]) if free[k] else 0.0
        cell = math.asinh(logit / _BEND) / step + 0.5 * _LATTICE
        own = min(_LATTICE - 1, max(0, math.floor(cell)))
        place[k] = own
        power = math.exp((cell - own - 0.5 * _LATTICE) * step)
        for g in range(_LATTICE):
            logit = 0.5 * _BEND * (power - 1.0 / power)
            rest = math.exp(-abs(logit))
            log_larger = -math.log1p(rest)
            larger = 1.0 / (1.0 + rest)
            if logit > 0:
                eta[k, g], log_eta[k, g], log_lie[k, g] = larger, log_larger, log_larger - logit
            else:
                eta[k, g], log_eta[k, g], log_lie[k, g] = rest * larger, log_larger + logit, log_larger
            inside = low[k] < eta[k, g] < high[k] and abs(logit) < _LARGEST_LOGIT
            jacobian[k, g] = power + 1.0 / power if collapsed[k] and inside else 0.0
            power *= growth
        eta[k, own] = quality[k]
        if not jacobian[k, own] > 0.0:
            jacobian[k, own] = 1.0
        if not free[k]:
            log_eta[k, own], log_lie[k, own] = 0.0, 0.0


def _log_likelihoods(
    eta: Any,
    starts: Any,
    rows: Any,
    weight: Any,
    truthful: Any,
    found: Any,
) -> Any:
    """The log-likelihood of every annotator's answers at every point of its lattice."""
    product = np.empty(_LATTICE)
    for k in range(len(eta)):
        found[k, :] = 0.0
        product[:] = 1.0
        pending = 0
        for at in range(starts[k], starts[k + 1]):
            row = rows[at]
            lied, gain = 1.0 - truthful[row], 2.0 * truthful[row] - 1.0
            if weight[row] == 1.0:
                for g in range(_LATTICE):
                    product[g] *= lied + gain * eta[k, g]
                pending += 1
                if pending == 16:  # a chance is never below 1e-16, so sixteen of them do not underflow
                    for g in range(_LATTICE):
                        found[k, g] += math.log(product[g])
                        product[g] = 1.0
                    pending = 0
            else:
                for g in range(_LATTICE):
                    found[k, g] += weight[row] * math.log(lied + gain * eta[k, g])
        if pending:
            for g in range(_LATTICE):
                found[k, g] += math.log(product[g])


def _log_collapsed(
    alpha: Any,
    beta: Any,
    log_eta: Any,
    log_lie: Any,
    jacobian: Any,
    likely: Any,
    mass: Any,
) -> Any:
    """The log of what remains when every η is summed over its lattice; `mass` is left with the terms of each sum."""
    total = 0.0
    for k in range(len(likely)):
        top = -np.inf
        for g in range(_LATTICE):
            if jacobian[k, g] > 0.0:
                mass[k, g] = alpha * log_eta[k, g] + beta * log_lie[k, g] + likely[k, g]
                top = max(top, mass[k, g])
        sum_of = 0.0
        for g in range(_LATTICE):
            if jacobian[k, g] > 0.0:
                mass[k, g] = jacobian[k, g] * math.exp(mass[k, g] - top) if mass[k, g] > top - 40.0 else 0.0
                sum_of += mass[k, g]
            else:
                mass[k, g] = 0.0
        total += top + math.log(sum_of)
    return total


def _draw_quality(
    rng: Any,
    mass: Any,
    eta: Any,
    place: Any,
    quality: Any,
    starts: Any,
    rows: Any,
    truthful: Any,
    chance: Any,
) -> Any:
    """Every η from its lattice."""
    for k in range(len(quality)):
        left = rng.random() * np.sum(mass[k])
        g = 0
        while g < _LATTICE - 1 and left >= mass[k, g]:
            left -= mass[k, g]
            g += 1
        if mass[k, g] > 0.0:
            quality[k] = eta[k, g]
        for at in range(starts[k], starts[k + 1]):
            row = rows[at]
            chance[row] = 1.0 - quality[k] + (2.0 * quality[k] - 1.0) * truthful[row]


def _log_density_of_counts(alpha: float, beta: float, count: int) -> float:
    """Of the counts of the Beta by their logarithms, with the Beta's norm for so many annotators."""
    norm = math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(alpha + beta)
    believed = _log_normal(alpha, TRUTHS, _SPREAD_OF_COUNTS) + _log_normal(beta, LIES, _SPREAD_OF_COUNTS)
    return believed - count * norm


@compiled(
    _believed,
    _gained,
    _log_normal,
    _log_density_of_scale,
    _log_density_of_counts,
    _move_scores,
    _move_quality,
    _shift,
    _draw_scale,
    _gradient,
    _hmc_step,
    _truthful_chances,
    _rescaled,
    _lay_lattice,
    _log_likelihoods,
    _log_collapsed,
    _draw_quality,
)
def _walk(  # type: ignore[no-untyped-def]
    rng,
    scores,
    quality,
    spreads,
    truthful,
    chance,
    curvature,
    step_size,
    learns_scale,
    learns_quality,
    query_starts,
    low,
    high,
    better,
    worse,
    winner,
    loser,
    annotator,
    weight,
    item_starts,
    item_rows,
    sign,
    other,
    annotator_starts,
    annotator_rows,
    logistic,
    steps,
    tune,
):
    accepted = 0.0
    people = len(quality)
    free = low < high
    collapsed = free.copy()
    collapsed[better], collapsed[worse] = False, False
    mobile = collapsed & (low <= 0.0) & (high >= 1.0)
    count = np.sum(free)
    eta, log_eta, log_lie = np.empty((people, _LATTICE)), np.empty((people, _LATTICE)), np.empty((people, _LATTICE))
    jacobian, likely, moved = np.empty((people, _LATTICE)), np.empty((people, _LATTICE)), np.empty((people, _LATTICE))
    mass, fresh_mass = np.empty((people, _LATTICE)), np.empty((people, _LATTICE))
    place, fresh, there_scores = np.empty(people, np.int64), np.empty_like(chance), np.empty_like(scores)
    settled, count_of_steps = 0.0, 0
    # how far a step may go by how much there is to learn from
    stride = 2.4 / math.sqrt(6.0 + 0.1 * np.sum(weight))
    pace = 2.4 / math.sqrt(4.0 + 0.5 * count)
    for sweep in range(steps):
        went = _hmc_step(
            rng,
            scores,
            quality,
            spreads,
            curvature,
            step_size[0],
            learns_scale,
            mobile,
            winner,
            loser,
            annotator,
            weight,
            logistic,
            truthful,
            chance,
            fresh,
        )
        accepted += went
        if tune:
            step_size[0] *= math.exp((went - _ACCEPTED) / (5.0 + sweep) ** 0.6)
            if 2 * sweep >= steps:
                settled, count_of_steps = settled + math.log(step_size[0]), count_of_steps + 1
        _move_scores(
            rng,
            scores,
            quality,
            spreads[0],
            curvature,
            item_starts,
            item_rows,
            sign,
            other,
            annotator,
            weight,
            logistic,
            truthful,
            chance,
        )
        _move_quality(
            rng,
            quality,
            spreads[1],
            spreads[2],
            low,
            high,
            better,
            worse,
            annotator_starts,
            annotator_rows,
            weight,
            truthful,
            chance,
        )
        _shift(rng, scores, query_starts, spreads[0])
        if learns_scale:
            spreads[0] = _draw_scale(rng, scores, spreads[0])
        _lay_lattice(quality, low, high, collapsed, free, eta, log_eta, log_lie, jacobian, place)
        _log_likelihoods(eta, annotator_starts, annotator_rows, weight, truthful, likely)
        here = _log_collapsed(spreads[1], spreads[2], log_eta, log_lie, jacobian, likely, mass)
        for attempt in range(1 + _STEPS_OF_COUNTS * learns_quality):
            alpha, beta, factor, gain = spreads[1], spreads[2], 1.0, 0.0
            if learns_quality:
                width = pace * math.exp(2.0 * rng.random() - 1.5)
                alpha *= math.exp(width * rng.standard_normal())
                beta *= math.exp(width * rng.standard_normal())
                gain = _log_density_of_counts(alpha, beta, count)
                gain -= _log_density_of_counts(spreads[1], spreads[2], count)
            if attempt == 0:
                factor = math.exp(stride * math.exp(3.0 * rng.random() - 1.5) * rng.standard_normal())
                gain += _rescaled(scores, spreads[0], factor, learns_scale)
                there_scores[:] = factor * scores
                _truthful_chances(there_scores, winner, loser, logistic, fresh)
                _log_likelihoods(eta, annotator_starts, annotator_rows, weight, fresh, moved)
                there = _log_collapsed(alpha, beta, log_eta, log_lie, jacobian, moved, fresh_mass)
            else:
                there = _log_collapsed(alpha, beta, log_eta, log_lie, jacobian, likely, fresh_mass)
            if math.log(rng.random()) < gain + there - here:
                here, spreads[1], spreads[2] = there, alpha, beta
                mass, fresh_mass = fresh_mass, mass
                if attempt == 0:
                    scores[:] = there_scores
                    spreads[0] *= factor if learns_scale else 1.0
                    likely, moved = moved, likely
                    truthful[:] = fresh
        _draw_quality(rng, mass, eta, place, quality, annotator_starts, annotator_rows, truthful, chance)
    if count_of_steps:
        step_size[0] = math.exp(settled / count_of_steps)
    return accepted
