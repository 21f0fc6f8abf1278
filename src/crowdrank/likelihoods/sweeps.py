"""One sweep of Metropolis steps over Crowd-BT's parameters, each score and each quality in turn, as compiled loops.

Chen et al. 2013: P(k says a beats b) = ηₖ·F(a − b) + (1 − ηₖ)·F(b − a), F logistic or Thurstone's normal. Of every
answer its truthful chance F and its chance P are kept up to date, so that a step costs one F an answer it touches, and
a step of η none.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.likelihoods.annotated import RELIABLE, Answers
from crowdrank.likelihoods.compiled import Compiled, compiled

Vector = npt.NDArray[Any]

# Of spreads that are learnt: the middle of what is believed beforehand, and its spread in logarithms.
SCALE, _SPREAD_OF_SCALE = 3.0, 1.0
TRUTHS, LIES, _SPREAD_OF_COUNTS = 2.0, 1.0, 0.7
_STEPS_OF_SPREADS = 6


class Threads(NamedTuple):
    """Answers threaded by item and by annotator; every answer hangs on two items and one annotator."""

    answers: Answers
    item_starts: Vector
    item_rows: Vector
    sign: Vector
    """1 where the item won the answer, −1 where it lost."""
    other: Vector
    """The other item of the answer."""
    annotator_starts: Vector
    annotator_rows: Vector
    logistic: bool


class Limits(NamedTuple):
    """Between which values each η must lie, one that cannot move having none between; and whose is above whose."""

    low: Vector
    high: Vector
    better: Vector
    worse: Vector

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
        answers, _starts(touched, items), rows, sign, other,
        _starts(answers.annotator, annotators), people, formula == RELIABLE,
    )  # fmt: skip


def _merged(answers: Answers, items: int) -> Answers:
    winner, loser, who, weight, features, _ = answers
    key = (who.astype(np.int64) * items + winner) * items + loser
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return Answers(winner[first], loser[first], who[first], np.bincount(place, weight), features[first])


def _starts(codes: Vector, size: int) -> Vector:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=size))))


def chances(threads: Threads, scores: Vector, quality: Vector) -> tuple[Vector, Vector]:
    """Of every answer: the chance that a truthful annotator gives it, and that this one does."""
    _, truthful, chance = stretch(threads, scores, quality, 1.0, np.ones(len(threads.answers.winner)))
    return truthful, chance


def walk(
    rng: np.random.Generator, threads: Threads, query_starts: Vector, limits: Limits, learns: tuple[bool, bool],
    scores: Vector, quality: Vector, spreads: Vector, truthful: Vector, chance: Vector, steps: int,
) -> int:  # fmt: skip
    """So many sweeps, in place; how many proposals were accepted.

    `spreads` are the standard deviation of the normal prior on scores, and the truths and lies of the Beta prior on η;
    `learns` says whether the first, and whether the other two, are drawn as well.
    """
    t = threads
    accepted: int = _walk(
        rng, scores, quality, spreads, truthful, chance, *learns, query_starts, *limits,
        t.answers.winner, t.answers.loser, t.answers.annotator, t.answers.weight,
        t.item_starts, t.item_rows, t.sign, t.other, t.annotator_starts, t.annotator_rows, t.logistic, steps,
    )  # fmt: skip
    return accepted


def stretch(
    threads: Threads, scores: Vector, quality: Vector, factor: float, chance: Vector
) -> tuple[float, Vector, Vector]:
    """What the log-likelihood gains when all scores are multiplied by a factor, and the chances there."""
    truthful, fresh = np.empty_like(chance), np.empty_like(chance)
    winner, loser, annotator, weight = threads.answers[:4]
    gain = _stretch(
        scores, quality, factor, winner, loser, annotator, weight, threads.logistic, chance, truthful, fresh
    )
    return gain, truthful, fresh


def _log_normal(value: float, middle: float, spread: float) -> float:
    """Log density by log value."""
    return -0.5 * (math.log(value / middle) / spread) ** 2


def _log_density_of_scale(scale: float, squares: float, count: int) -> float:
    return -count * math.log(scale) - 0.5 * squares / scale**2 + _log_normal(scale, SCALE, _SPREAD_OF_SCALE)


def _log_density_of_beta(truths: float, lies: float, told: float, lied: float, count: int) -> float:
    """`told` and `lied` are the sums of log η and log (1 − η)."""
    norm = math.lgamma(truths) + math.lgamma(lies) - math.lgamma(truths + lies)
    believed = _log_normal(truths, TRUTHS, _SPREAD_OF_COUNTS) + _log_normal(lies, LIES, _SPREAD_OF_COUNTS)
    return truths * told + lies * lied - count * norm + believed


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
    rng: Any, scores: Any, quality: Any, scale: Any, starts: Any, rows: Any, sign: Any, other: Any, annotator: Any,
    weight: Any, logistic: Any, truthful: Any, chance: Any,
) -> Any:  # fmt: skip
    accepted = 0
    for item in range(len(scores)):
        # a width drawn anew each time: some step suits, whatever the item's neighbours allow
        width = scale * math.exp(3.5 * rng.random() - 3.0)
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
    rng: Any, quality: Any, truths: Any, lies: Any, low: Any, high: Any, better: Any, worse: Any, starts: Any, rows:
    Any, weight: Any, truthful: Any, chance: Any,
) -> Any:  # fmt: skip
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


def _stretched(
    scores: Any, quality: Any, factor: Any, winner: Any, loser: Any, annotator: Any, weight: Any, logistic: Any,
    chance: Any, truthful: Any, fresh: Any,
) -> Any:  # fmt: skip
    gain, ratio = 0.0, 1.0
    for row in range(len(winner)):
        eta = quality[annotator[row]]
        before = chance[row]
        truthful[row] = _believed(factor * (scores[winner[row]] - scores[loser[row]]), logistic)
        fresh[row] = 1.0 - eta + (2.0 * eta - 1.0) * truthful[row]
        gain, ratio = _gained(gain, ratio, weight[row], fresh[row] / before)
    return gain + math.log(ratio)


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


def _draw_beta(rng: Any, quality: Any, free: Any, truths: Any, lies: Any) -> Any:
    """The Beta that qualities come from given them, by steps of the logarithms of its counts.

    Those nothing is known about alone say what the crowd is like.
    """
    count, told, lied = 0, 0.0, 0.0
    for k in range(len(quality)):
        if free[k]:
            count += 1
            told += math.log(quality[k])
            lied += math.log1p(-quality[k])
    for _ in range(_STEPS_OF_SPREADS):
        width = math.exp(2.0 * rng.random() - 3.0)
        # both together, as the concentration goes, then apart
        both, apart = rng.standard_normal() * width, rng.standard_normal() * width
        a, b = truths * math.exp(both + apart), lies * math.exp(both - apart)
        gain = _log_density_of_beta(a, b, told, lied, count) - _log_density_of_beta(truths, lies, told, lied, count)
        if math.log(rng.random()) < gain:
            truths, lies = a, b
    return truths, lies


_stretch = Compiled(_stretched, (_believed, _gained))


def _stretch_all(
    rng: Any, scores: Any, quality: Any, scale: Any, winner: Any, loser: Any, annotator: Any, weight: Any, logistic:
    Any, truthful: Any, chance: Any, kept: Any, fresh: Any,
) -> Any:  # fmt: skip
    """All scores and their spread together, by one factor: the prior of scores given the spread stays as it is."""
    factor = math.exp(rng.standard_normal() * math.exp(3.0 * rng.random() - 3.5))
    gain = _stretched(scores, quality, factor, winner, loser, annotator, weight, logistic, chance, kept, fresh)
    gain += _log_normal(scale * factor, SCALE, _SPREAD_OF_SCALE) - _log_normal(scale, SCALE, _SPREAD_OF_SCALE)
    if math.log(rng.random()) >= gain:
        return scale
    scores *= factor
    truthful[:], chance[:] = kept, fresh
    return scale * factor


@compiled(
    _believed, _gained, _log_normal, _log_density_of_scale, _log_density_of_beta, _move_scores, _move_quality, _shift,
    _stretched, _stretch_all, _draw_scale, _draw_beta,
)  # fmt: skip
def _walk(  # type: ignore[no-untyped-def]
    rng, scores, quality, spreads, truthful, chance, learns_scale, learns_quality, query_starts, low, high, better,
    worse, winner, loser, annotator, weight, item_starts, item_rows, sign, other, annotator_starts, annotator_rows,
    logistic, steps,
):  # fmt: skip
    accepted = 0
    free = low < high
    kept, fresh = np.empty_like(chance), np.empty_like(chance)
    for _ in range(steps):
        accepted += _move_scores(
            rng, scores, quality, spreads[0], item_starts, item_rows, sign, other, annotator, weight, logistic,
            truthful, chance,
        )  # fmt: skip
        accepted += _move_quality(
            rng, quality, spreads[1], spreads[2], low, high, better, worse, annotator_starts, annotator_rows, weight,
            truthful, chance,
        )  # fmt: skip
        if learns_scale:
            _shift(rng, scores, query_starts, spreads[0])
            spreads[0] = _stretch_all(
                rng, scores, quality, spreads[0], winner, loser, annotator, weight, logistic, truthful, chance, kept,
                fresh,
            )  # fmt: skip
            spreads[0] = _draw_scale(rng, scores, spreads[0])
        if learns_quality:
            spreads[1], spreads[2] = _draw_beta(rng, quality, free, spreads[1], spreads[2])
    return accepted
