"""Compiled MCMC kernels for the posterior of Crowd-BT.

One sweep updates all parameters with these steps, each of which leaves the posterior invariant:

1. a Hamiltonian Monte Carlo (HMC) step on scores, the log of their prior scale and quality logits together;
2. a random-walk Metropolis step on every score, then on every quality;
3. a Gibbs draw of the mean score of each query, about which the answers say nothing;
4. random-walk steps on the log prior scale given the scores;
5. steps on the Beta prior (α, β) of the qualities, and once on a common factor of all scores, with the qualities
   summed out over a grid (collapsed), then a Gibbs draw of every quality from its grid.

Annotator k prefers a to b with probability P = ηₖ·F(sₐ − s_b) + (1 − ηₖ)·F(s_b − sₐ), with F logistic or Thurstone's
normal (Chen et al. 2013). The arrays `p_truthful` (F) and `p_answer` (P) hold both probabilities of every answer and
are kept up to date, so that a step on a score evaluates F once per answer of the item, and a step on η not at all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import Compiled, compiled
from crowdrank.models.crowd.encoding import AnswerIndex
from crowdrank.models.crowd.priors import QualityBounds
from crowdrank.models.crowd.quality_grid import (
    GRID_POINTS,
    MAX_LOGIT,
    build_grids,
    draw_quality_from_grid,
    grid_log_likelihoods,
    log_marginal,
)

# Log-normal priors of the hyperparameters: medians and standard deviations of the logarithm.
SCALE_MEDIAN, _SCALE_LOG_SD = 3.0, 1.0
ALPHA_MEDIAN, BETA_MEDIAN, _COUNT_LOG_SD = 2.0, 1.0, 0.7
_SCALE_STEPS = 6
_COUNT_STEPS = 3
# HMC: maximum number of leapfrog steps, and the acceptance probability that the step size is tuned to.
_MAX_LEAPFROG_STEPS, _TARGET_ACCEPTANCE = 24.0, 0.8


def answer_probabilities(index: AnswerIndex, scores: AnyArray, quality: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Probability of every answer from a truthful annotator, and from the annotator who gave it."""
    answers = index.answers
    p_truthful = np.empty(len(answers.winner))
    _fill_truthful_compiled(scores, answers.winner, answers.loser, index.logistic, p_truthful)
    eta = quality[answers.annotator]
    return p_truthful, 1.0 - eta + (2.0 * eta - 1.0) * p_truthful


def sweep(
    rng: np.random.Generator,
    index: AnswerIndex,
    query_starts: AnyArray,
    bounds: QualityBounds,
    learn: tuple[bool, bool],
    scores: AnyArray,
    quality: AnyArray,
    hyper: AnyArray,
    p_truthful: AnyArray,
    p_answer: AnyArray,
    curvature: AnyArray,
    step_size: AnyArray,
    steps: int,
    tune: bool = False,
) -> float:
    """Run sweeps in place. Returns the sum of the acceptance probabilities of their HMC steps.

    `hyper` has the standard deviation of the normal prior on scores, and α and β of the Beta prior on η; `learn` says
    whether the first, and whether the other two, are sampled as well.
    """
    t = index
    accepted: float = _sweep_loop(
        rng,
        scores,
        quality,
        hyper,
        p_truthful,
        p_answer,
        curvature,
        step_size,
        *learn,
        query_starts,
        *bounds,
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
    """Log density of a log-normal variable by its logarithm, up to a constant."""
    return -0.5 * (math.log(value / middle) / spread) ** 2


def _log_density_of_scale(scale: float, sum_of_squares: float, count: int) -> float:
    return -count * math.log(scale) - 0.5 * sum_of_squares / scale**2 + _log_normal(scale, SCALE_MEDIAN, _SCALE_LOG_SD)


def _truthful_probability(margin: float, logistic: bool) -> float:
    """F(margin)."""
    if logistic:
        return 1.0 / (1.0 + math.exp(-margin))
    return 0.5 * math.erfc(-0.5 * margin)


def _accumulate_log(gain: float, ratio: float, weight: float, share: float) -> tuple[float, float]:
    """Add weight·log(share) to a log-likelihood. Shares of weight 1 are multiplied first, to take few logarithms."""
    if weight == 1.0:
        ratio *= share
    else:
        gain += weight * math.log(share)
    if ratio < 1e-200 or ratio > 1e200:
        gain += math.log(ratio)
        ratio = 1.0
    return gain, ratio


def _random_walk_scores(
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
    p_truthful: Any,
    p_answer: Any,
) -> Any:
    """One random-walk Metropolis step for every score."""
    accepted = 0
    for item in range(len(scores)):
        # random widths: some of them fit even where the curvature differs from the one that is known
        width = math.exp(3.0 * rng.random() - 1.0) / math.sqrt(curvature[item])
        current = scores[item]
        proposed = current + width * rng.standard_normal()
        gain = 0.5 * (current - proposed) * (current + proposed) / scale**2
        ratio = 1.0
        for place in range(starts[item], starts[item + 1]):
            row = rows[place]
            eta = quality[annotator[row]]
            p_new = (
                1.0
                - eta
                + (2.0 * eta - 1.0) * _truthful_probability(sign[place] * (proposed - scores[other[place]]), logistic)
            )
            gain, ratio = _accumulate_log(gain, ratio, weight[row], p_new / p_answer[row])
        if math.log(rng.random()) < gain + math.log(ratio):
            accepted += 1
            scores[item] = proposed
            for place in range(starts[item], starts[item + 1]):
                row = rows[place]
                eta = quality[annotator[row]]
                p_truthful[row] = _truthful_probability(sign[place] * (proposed - scores[other[place]]), logistic)
                p_answer[row] = 1.0 - eta + (2.0 * eta - 1.0) * p_truthful[row]
    return accepted


def _random_walk_quality(
    rng: Any,
    quality: Any,
    alpha: Any,
    beta: Any,
    low: Any,
    high: Any,
    better: Any,
    worse: Any,
    starts: Any,
    rows: Any,
    weight: Any,
    p_truthful: Any,
    p_answer: Any,
) -> Any:
    accepted = 0
    for k in range(len(quality)):
        lowest, highest = max(low[k], 1e-15), min(high[k], 1.0 - 1e-15)
        for pair in range(len(better)):
            if better[pair] == k:
                lowest = max(lowest, quality[worse[pair]])
            if worse[pair] == k:
                highest = min(highest, quality[better[pair]])
        if not lowest < highest:
            continue
        current = quality[k]
        logit = math.log(current) - math.log1p(-current) + math.exp(3.0 * rng.random() - 2.0) * rng.standard_normal()
        proposed = 1.0 / (1.0 + math.exp(-logit))
        if not lowest < proposed < highest:
            continue
        gain = alpha * math.log(proposed / current) + beta * (math.log1p(-proposed) - math.log1p(-current))
        ratio = 1.0
        for place in range(starts[k], starts[k + 1]):
            row = rows[place]
            p_new = 1.0 - proposed + (2.0 * proposed - 1.0) * p_truthful[row]
            gain, ratio = _accumulate_log(gain, ratio, weight[row], p_new / p_answer[row])
        if math.log(rng.random()) < gain + math.log(ratio):
            accepted += 1
            quality[k] = proposed
            for place in range(starts[k], starts[k + 1]):
                row = rows[place]
                p_answer[row] = 1.0 - proposed + (2.0 * proposed - 1.0) * p_truthful[row]
    return accepted


def _draw_query_means(rng: Any, scores: Any, starts: Any, scale: Any) -> Any:
    """Gibbs draw of the mean score of each query: no answer depends on it."""
    for query in range(len(starts) - 1):
        size = starts[query + 1] - starts[query]
        level = scale / math.sqrt(size) * rng.standard_normal()
        scores[starts[query] : starts[query + 1]] += level - scores[starts[query] : starts[query + 1]].mean()


def _draw_scale(rng: Any, scores: Any, scale: Any) -> Any:
    """Random-walk Metropolis steps on the log prior scale given the scores."""
    sum_of_squares, count = np.sum(scores * scores), len(scores)
    for _ in range(_SCALE_STEPS):
        proposed = scale * math.exp(rng.standard_normal() * 1.5 / math.sqrt(count))
        gain = _log_density_of_scale(proposed, sum_of_squares, count) - _log_density_of_scale(
            scale, sum_of_squares, count
        )
        if math.log(rng.random()) < gain:
            scale = proposed
    return scale


def _log_posterior_gradient(
    scores: Any,
    log_scale: Any,
    quality: Any,
    hyper: Any,
    learn_scale: Any,
    movable: Any,
    winner: Any,
    loser: Any,
    annotator: Any,
    weight: Any,
    logistic: Any,
    p_truthful: Any,
    found: Any,
) -> Any:
    """Log posterior of scores, the log of their scale and quality logits. Writes the gradient to `found`.

    The gradient is zero for a fixed scale, and for annotators that are not `movable`.
    """
    items = len(scores)
    precision = math.exp(-2.0 * log_scale)
    total, product, sum_of_squares = 0.0, 1.0, 0.0
    found[:] = 0.0
    for item in range(items):
        sum_of_squares += scores[item] * scores[item]
        found[item] = -scores[item] * precision
    for row in range(len(winner)):
        k = annotator[row]
        margin = scores[winner[row]] - scores[loser[row]]
        truth = _truthful_probability(margin, logistic)
        density = truth * (1.0 - truth) if logistic else math.exp(-0.25 * margin * margin) / (2.0 * math.sqrt(math.pi))
        gain = 2.0 * quality[k] - 1.0
        p_answer = 1.0 - quality[k] + gain * truth
        p_truthful[row] = truth
        total, product = _accumulate_log(total, product, weight[row], p_answer)
        force = weight[row] * gain * density / p_answer
        found[winner[row]] += force
        found[loser[row]] -= force
        found[items + 1 + k] += weight[row] * (2.0 * truth - 1.0) / p_answer
    total += math.log(product) - 0.5 * sum_of_squares * precision
    for k in range(len(quality)):
        if movable[k]:
            eta, one_minus_eta = quality[k], 1.0 - quality[k]
            total += hyper[1] * math.log(eta) + hyper[2] * math.log(one_minus_eta)
            found[items + 1 + k] = (
                found[items + 1 + k] * eta * one_minus_eta + hyper[1] * one_minus_eta - hyper[2] * eta
            )
        else:
            found[items + 1 + k] = 0.0
    if learn_scale:
        standardized = (log_scale - math.log(SCALE_MEDIAN)) / _SCALE_LOG_SD
        total -= items * log_scale + 0.5 * standardized * standardized
        found[items] = sum_of_squares * precision - items - standardized / _SCALE_LOG_SD
    return total


def _hmc_step(
    rng: Any,
    scores: Any,
    quality: Any,
    hyper: Any,
    curvature: Any,
    step_size: Any,
    learn_scale: Any,
    movable: Any,
    winner: Any,
    loser: Any,
    annotator: Any,
    weight: Any,
    logistic: Any,
    p_truthful: Any,
    p_answer: Any,
    new_truthful: Any,
) -> Any:
    """One HMC step on scores, the log of their scale and quality logits. Returns its acceptance probability."""
    items, people = len(scores), len(quality)
    size = items + 1 + people
    gradient, momentum, proposed, eta = np.empty(size), np.zeros(size), np.zeros(size), quality.copy()
    proposed[:items], proposed[items] = scores, math.log(hyper[0])
    for k in range(people):
        if movable[k]:
            proposed[items + 1 + k] = math.log(eta[k]) - math.log1p(-eta[k])
    # a random number of leapfrog steps, so that trajectories do not keep returning to their start
    step = step_size * math.exp(0.4 * rng.random() - 0.2)
    steps = 1 + int(rng.random() * min(_MAX_LEAPFROG_STEPS, 4.0 / step))
    before = _log_posterior_gradient(
        proposed[:items],
        proposed[items],
        eta,
        hyper,
        learn_scale,
        movable,
        winner,
        loser,
        annotator,
        weight,
        logistic,
        new_truthful,
        gradient,
    )
    after = before
    for n in range(size):
        if n < items or (n == items and learn_scale) or (n > items and movable[n - items - 1]):
            momentum[n] = rng.standard_normal() * math.sqrt(curvature[n])
            before -= 0.5 * momentum[n] * momentum[n] / curvature[n]
    for _ in range(steps):
        for n in range(size):
            momentum[n] += 0.5 * step * gradient[n]
            proposed[n] += step * momentum[n] / curvature[n]
        if not abs(proposed[items]) < 50.0:
            return 0.0
        for k in range(people):
            if movable[k]:
                if not abs(proposed[items + 1 + k]) < MAX_LOGIT:
                    return 0.0
                eta[k] = 1.0 / (1.0 + math.exp(-proposed[items + 1 + k]))
        after = _log_posterior_gradient(
            proposed[:items],
            proposed[items],
            eta,
            hyper,
            learn_scale,
            movable,
            winner,
            loser,
            annotator,
            weight,
            logistic,
            new_truthful,
            gradient,
        )
        for n in range(size):
            momentum[n] += 0.5 * step * gradient[n]
    for n in range(size):
        after -= 0.5 * momentum[n] * momentum[n] / curvature[n]
    acceptance = math.exp(min(0.0, after - before)) if after > -np.inf else 0.0
    if rng.random() < acceptance:
        scores[:], quality[:] = proposed[:items], eta
        if learn_scale:
            hyper[0] = math.exp(proposed[items])
        for row in range(len(winner)):
            p_truthful[row] = new_truthful[row]
            p_answer[row] = 1.0 - eta[annotator[row]] + (2.0 * eta[annotator[row]] - 1.0) * new_truthful[row]
    return acceptance


def expected_information(index: AnswerIndex, scores: AnyArray, quality: AnyArray, scale: float) -> AnyArray:
    """Fisher information of each score, of the log of their scale and of each quality logit: a diagonal mass matrix.

    At least 1 for a logit: the posterior is nearly flat at both ends, and a step must not leap over everything else.
    """
    winner, loser, annotator, weight = index.answers[:4]
    margin = scores[winner] - scores[loser]
    p_truthful, p_answer = answer_probabilities(index, scores, quality)
    density = p_truthful * (1.0 - p_truthful) if index.logistic else np.exp(-0.25 * margin**2) / (2.0 * np.sqrt(np.pi))
    eta, spread = quality[annotator], p_answer * (1.0 - p_answer) + 1e-12
    of_margin = weight * ((2.0 * eta - 1.0) * density) ** 2 / spread
    of_logit = weight * ((2.0 * p_truthful - 1.0) * eta * (1.0 - eta)) ** 2 / spread
    of_items = np.bincount(winner, of_margin, len(scores)) + np.bincount(loser, of_margin, len(scores))
    of_scale = 2.0 * len(scores) + _SCALE_LOG_SD**-2.0
    return np.concatenate(
        (of_items + scale**-2.0, [of_scale], np.maximum(1.0, np.bincount(annotator, of_logit, len(quality))))
    )


def _fill_truthful(scores: Any, winner: Any, loser: Any, logistic: Any, p_truthful: Any) -> Any:
    """Write F of every answer to `p_truthful`."""
    for row in range(len(winner)):
        p_truthful[row] = _truthful_probability(scores[winner[row]] - scores[loser[row]], logistic)


def _log_rescaling_ratio(scores: Any, scale: Any, factor: Any, learn_scale: Any) -> Any:
    """Log ratio of prior and Jacobian when all scores, and their scale if it is learnt, are multiplied by a factor."""
    if learn_scale:
        return _log_normal(scale * factor, SCALE_MEDIAN, _SCALE_LOG_SD) - _log_normal(
            scale, SCALE_MEDIAN, _SCALE_LOG_SD
        )
    return len(scores) * math.log(factor) - 0.5 * (factor**2 - 1.0) * np.sum(scores * scores) / scale**2


_fill_truthful_compiled = Compiled(_fill_truthful, (_truthful_probability,))


def _log_density_of_counts(alpha: float, beta: float, count: int) -> float:
    """Log prior density of log α and log β, with the normaliser of the Beta density of `count` annotators."""
    normaliser = math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(alpha + beta)
    log_prior = _log_normal(alpha, ALPHA_MEDIAN, _COUNT_LOG_SD) + _log_normal(beta, BETA_MEDIAN, _COUNT_LOG_SD)
    return log_prior - count * normaliser


@compiled(
    _truthful_probability,
    _accumulate_log,
    _log_normal,
    _log_density_of_scale,
    _log_density_of_counts,
    _random_walk_scores,
    _random_walk_quality,
    _draw_query_means,
    _draw_scale,
    _log_posterior_gradient,
    _hmc_step,
    _fill_truthful,
    _log_rescaling_ratio,
    build_grids,
    grid_log_likelihoods,
    log_marginal,
    draw_quality_from_grid,
)
def _sweep_loop(  # type: ignore[no-untyped-def]
    rng,
    scores,
    quality,
    hyper,
    p_truthful,
    p_answer,
    curvature,
    step_size,
    learn_scale,
    learn_quality,
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
    movable = collapsed & (low <= 0.0) & (high >= 1.0)
    count = np.sum(free)
    eta, log_eta, log_one_minus_eta = (
        np.empty((people, GRID_POINTS)),
        np.empty((people, GRID_POINTS)),
        np.empty((people, GRID_POINTS)),
    )
    jacobian, log_lik, new_log_lik = (
        np.empty((people, GRID_POINTS)),
        np.empty((people, GRID_POINTS)),
        np.empty((people, GRID_POINTS)),
    )
    mass, new_mass = np.empty((people, GRID_POINTS)), np.empty((people, GRID_POINTS))
    place, new_truthful, proposed_scores = np.empty(people, np.int64), np.empty_like(p_answer), np.empty_like(scores)
    log_step_sum, averaged = 0.0, 0
    # proposal widths shrink with the amount of data, in proportion to posterior standard deviations
    factor_step = 2.4 / math.sqrt(6.0 + 0.1 * np.sum(weight))
    count_step = 2.4 / math.sqrt(4.0 + 0.5 * count)
    for sweep in range(steps):
        acceptance = _hmc_step(
            rng,
            scores,
            quality,
            hyper,
            curvature,
            step_size[0],
            learn_scale,
            movable,
            winner,
            loser,
            annotator,
            weight,
            logistic,
            p_truthful,
            p_answer,
            new_truthful,
        )
        accepted += acceptance
        if tune:
            step_size[0] *= math.exp((acceptance - _TARGET_ACCEPTANCE) / (5.0 + sweep) ** 0.6)
            if 2 * sweep >= steps:
                log_step_sum, averaged = log_step_sum + math.log(step_size[0]), averaged + 1
        _random_walk_scores(
            rng,
            scores,
            quality,
            hyper[0],
            curvature,
            item_starts,
            item_rows,
            sign,
            other,
            annotator,
            weight,
            logistic,
            p_truthful,
            p_answer,
        )
        _random_walk_quality(
            rng,
            quality,
            hyper[1],
            hyper[2],
            low,
            high,
            better,
            worse,
            annotator_starts,
            annotator_rows,
            weight,
            p_truthful,
            p_answer,
        )
        _draw_query_means(rng, scores, query_starts, hyper[0])
        if learn_scale:
            hyper[0] = _draw_scale(rng, scores, hyper[0])
        build_grids(quality, low, high, collapsed, free, eta, log_eta, log_one_minus_eta, jacobian, place)
        grid_log_likelihoods(eta, annotator_starts, annotator_rows, weight, p_truthful, log_lik)
        current = log_marginal(hyper[1], hyper[2], log_eta, log_one_minus_eta, jacobian, log_lik, mass)
        for attempt in range(1 + _COUNT_STEPS * learn_quality):
            alpha, beta, factor, gain = hyper[1], hyper[2], 1.0, 0.0
            if learn_quality:
                width = count_step * math.exp(2.0 * rng.random() - 1.5)
                alpha *= math.exp(width * rng.standard_normal())
                beta *= math.exp(width * rng.standard_normal())
                gain = _log_density_of_counts(alpha, beta, count)
                gain -= _log_density_of_counts(hyper[1], hyper[2], count)
            if attempt == 0:
                factor = math.exp(factor_step * math.exp(3.0 * rng.random() - 1.5) * rng.standard_normal())
                gain += _log_rescaling_ratio(scores, hyper[0], factor, learn_scale)
                proposed_scores[:] = factor * scores
                _fill_truthful(proposed_scores, winner, loser, logistic, new_truthful)
                grid_log_likelihoods(eta, annotator_starts, annotator_rows, weight, new_truthful, new_log_lik)
                proposed = log_marginal(alpha, beta, log_eta, log_one_minus_eta, jacobian, new_log_lik, new_mass)
            else:
                proposed = log_marginal(alpha, beta, log_eta, log_one_minus_eta, jacobian, log_lik, new_mass)
            if math.log(rng.random()) < gain + proposed - current:
                current, hyper[1], hyper[2] = proposed, alpha, beta
                mass, new_mass = new_mass, mass
                if attempt == 0:
                    scores[:] = proposed_scores
                    hyper[0] *= factor if learn_scale else 1.0
                    log_lik, new_log_lik = new_log_lik, log_lik
                    p_truthful[:] = new_truthful
        draw_quality_from_grid(rng, mass, eta, place, quality, annotator_starts, annotator_rows, p_truthful, p_answer)
    if averaged:
        step_size[0] = math.exp(log_step_sum / averaged)
    return accepted
