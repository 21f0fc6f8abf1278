"""Moves of expertise, difficulty, score variance and units, for compiled loops.

Parameters that trade off against each other mix slowly one at a time, so most of these moves rescale many of them by a
common factor f. The margin of each judgment is then `fixed + f · scaled`, and `scale_move` proposes log f by a Newton
step with matching Gaussian noise (a Langevin proposal; Qi & Minka 2002) and accepts it by Metropolis–Hastings.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.inference.special import ROOT_HALF, inverse_mills_table, log_normal_cdf_table

# Share of expertise updates by a random walk: Newton proposals overshoot where the log posterior is flat.
_RANDOM_WALK_SHARE = 0.2


def _expertise_log_posterior(
    layout: Any, prior: Any, state: Any, expertise: Any, log_posterior: Any, gradient: Any, curvature: Any
) -> None:
    """Log posterior of every τ given the perceived utilities, with its gradient and negative second derivative."""
    for k in range(len(expertise)):
        for m in range(expertise.shape[1]):
            deviation, precision = expertise[k, m] - prior.expertise_mean[k, m], prior.expertise_std[k, m] ** -2
            log_posterior[k, m], gradient[k, m], curvature[k, m] = (
                -0.5 * precision * deviation * deviation,
                -precision * deviation,
                precision,
            )
    for query in range(len(state.domain)):
        m = state.domain[query]
        for row in range(layout.judgment_starts[query], layout.judgment_starts[query + 1]):
            k = layout.annotator[row]
            difference = ROOT_HALF * (
                state.perceived[layout.winner_utility[row]] - state.perceived[layout.loser_utility[row]]
            )
            x = difference * expertise[k, m]
            mills = inverse_mills_table(x)
            log_posterior[k, m] += log_normal_cdf_table(x)
            gradient[k, m] += mills * difference
            curvature[k, m] += max(0.0, mills * (mills + x)) * difference * difference


def draw_expertise(rng: Any, layout: Any, prior: Any, state: Any, buffers: Any) -> None:
    """Update all τ, each by its own Metropolis–Hastings step: given the perceived utilities they are independent.

    Usually a Newton proposal with Gaussian noise, sometimes a random walk.
    """
    # Rows of `at_current` and `at_proposal`: log posterior, gradient, curvature.
    at_current, at_proposal, proposal = buffers[:3], buffers[3:6], buffers[6]
    _expertise_log_posterior(layout, prior, state, state.expertise, at_current[0], at_current[1], at_current[2])
    random_walk = rng.random() < _RANDOM_WALK_SHARE
    for k in range(len(proposal)):
        for m in range(proposal.shape[1]):
            noise = rng.standard_normal()
            if random_walk:
                step = noise * prior.expertise_std[k, m] * math.exp(3.0 * rng.random() - 3.0)
            else:
                step = at_current[1, k, m] / at_current[2, k, m] + noise / math.sqrt(at_current[2, k, m])
            proposal[k, m] = state.expertise[k, m] + step
    _expertise_log_posterior(layout, prior, state, proposal, at_proposal[0], at_proposal[1], at_proposal[2])
    for k in range(len(proposal)):
        for m in range(proposal.shape[1]):
            log_ratio = at_proposal[0, k, m] - at_current[0, k, m]
            if not random_walk:
                step = proposal[k, m] - state.expertise[k, m]
                # Hastings correction: the densities of the forward and the backward proposal.
                forward = step - at_current[1, k, m] / at_current[2, k, m]
                backward = -step - at_proposal[1, k, m] / at_proposal[2, k, m]
                log_ratio += 0.5 * (
                    math.log(at_proposal[2, k, m] / at_current[2, k, m]) + at_current[2, k, m] * forward**2
                )
                log_ratio -= 0.5 * at_proposal[2, k, m] * backward**2
            if math.log(rng.random()) < log_ratio:
                state.expertise[k, m] = proposal[k, m]


def scale_expertise_and_noise(rng: Any, layout: Any, prior: Any, state: Any, buffers: Any) -> None:
    """Multiply each τ by a factor and divide the annotator's perception noise by it.

    Contradictory answers can be explained by low expertise or by perception noise. Given the noise alone, τ is stuck.
    """
    factor, log_ratio = buffers[0], buffers[1]
    n_annotators, domains = factor.shape
    for k in range(n_annotators):
        for m in range(domains):
            factor[k, m] = math.exp(rng.standard_normal() * math.exp(3.0 * rng.random() - 3.0))
            tau, mean = state.expertise[k, m], prior.expertise_mean[k, m]
            gaps = (tau - mean) ** 2 - (factor[k, m] * tau - mean) ** 2
            log_ratio[k, m] = 0.5 * gaps * prior.expertise_std[k, m] ** -2 + math.log(factor[k, m])
    for query in range(len(state.domain)):
        m = state.domain[query]
        for item in range(layout.item_starts[query], layout.item_starts[query + 1]):
            for utility in range(layout.utility_starts[item], layout.utility_starts[item + 1]):
                by = factor[layout.utility_annotator[utility], m]
                squares = (state.perceived[utility] - state.scores[item]) ** 2 / state.difficulty[query]
                log_ratio[layout.utility_annotator[utility], m] += 0.5 * squares * (1.0 - by**-2) - math.log(by)
        for row in range(layout.judgment_starts[query], layout.judgment_starts[query + 1]):
            k, one, other = layout.annotator[row], layout.winner_utility[row], layout.loser_utility[row]
            slope, difference = ROOT_HALF * state.expertise[k, m], state.perceived[one] - state.perceived[other]
            true_difference = state.scores[layout.utility_item[one]] - state.scores[layout.utility_item[other]]
            # New margin: f·τ (true + noise / f) = τ (f · true + noise) = τ (perceived + (f − 1) · true).
            log_ratio[k, m] += log_normal_cdf_table(slope * (difference + (factor[k, m] - 1.0) * true_difference))
            log_ratio[k, m] -= log_normal_cdf_table(slope * difference)
    for k in range(n_annotators):
        for m in range(domains):
            if math.log(rng.random()) < log_ratio[k, m]:
                state.expertise[k, m] *= factor[k, m]
            else:
                factor[k, m] = 1.0
    for query in range(len(state.domain)):
        for item in range(layout.item_starts[query], layout.item_starts[query + 1]):
            for utility in range(layout.utility_starts[item], layout.utility_starts[item + 1]):
                by = factor[layout.utility_annotator[utility], state.domain[query]]
                state.perceived[utility] = state.scores[item] + (state.perceived[utility] - state.scores[item]) / by


class FactorPrior(NamedTuple):
    """Log prior density of log f: square · f² + linear · f + log · log f − inverse_square · f⁻²."""

    square: float
    linear: float
    log: float
    inverse_square: float


def _factor_log_posterior(fixed: Any, scaled: Any, factor_prior: Any, log_factor: Any) -> Any:
    """Log posterior of log f, its gradient, and the positive part of its negative second derivative."""
    factor = math.exp(log_factor)
    log_posterior, gradient, curvature = 0.0, 0.0, 0.0
    for row in range(len(scaled)):
        scaled_margin = factor * scaled[row]
        x = fixed[row] + scaled_margin
        mills = inverse_mills_table(x)
        log_posterior += log_normal_cdf_table(x)
        gradient += mills * scaled_margin
        curvature += max(0.0, mills * (mills + x)) * scaled_margin * scaled_margin
    square, linear, inverse = (
        factor_prior.square * factor**2,
        factor_prior.linear * factor,
        factor_prior.inverse_square / factor**2,
    )
    log_posterior += square + linear + factor_prior.log * log_factor - inverse
    gradient += 2.0 * square + linear + factor_prior.log + 2.0 * inverse
    curvature += max(0.0, -4.0 * square - linear) + 4.0 * inverse
    # A floor on the curvature keeps the proposal proper where the likelihood is flat.
    return log_posterior, gradient, curvature + 1e-3


def scale_move(rng: Any, fixed: Any, scaled: Any, factor_prior: Any) -> Any:
    """Draw a common factor f by Metropolis–Hastings with a Newton (Langevin) proposal on log f.

    Margins are `fixed + f · scaled`. Returns 1 if the proposal is rejected.
    """
    current, gradient, curvature = _factor_log_posterior(fixed, scaled, factor_prior, 0.0)
    step = gradient / curvature + rng.standard_normal() / math.sqrt(curvature)
    if not abs(step) < 3.0:
        return 1.0
    proposed, back_gradient, back_curvature = _factor_log_posterior(fixed, scaled, factor_prior, step)
    log_ratio = proposed - current + 0.5 * math.log(back_curvature / curvature)
    log_ratio += (
        0.5 * curvature * (step - gradient / curvature) ** 2
        - 0.5 * back_curvature * (step + back_gradient / back_curvature) ** 2
    )
    return math.exp(step) if math.log(rng.random()) < log_ratio else 1.0


def _draw_variance(rng: Any, value: float, power: float, rate: float, inverse_rate: float) -> Any:
    """Update v with log density power · log v − rate · v − inverse_rate / v in log v.

    An independence proposal: log-normal around the mode, whatever the current value.
    """
    root = math.sqrt(power * power + 4.0 * rate * inverse_rate)
    mode = (power + root) / (2.0 * rate) if power > 0.0 else 2.0 * inverse_rate / (root - power)
    mode = max(mode, 1e-12)
    curvature = rate * mode + inverse_rate / mode
    proposal = mode * math.exp(rng.standard_normal() / math.sqrt(curvature))
    log_ratio = (
        power * math.log(proposal / value) - rate * (proposal - value) - inverse_rate * (1.0 / proposal - 1.0 / value)
    )
    log_ratio += 0.5 * curvature * (math.log(proposal / mode) ** 2 - math.log(value / mode) ** 2)
    return proposal if math.log(rng.random()) < log_ratio else value


def _split_margins(layout: Any, state: Any, query: Any, slopes: Any, workspace: Any) -> None:
    """Split the margin of each judgment into the part of the true scores and the part of the perception noise."""
    for row in range(layout.judgment_starts[query], layout.judgment_starts[query + 1]):
        slope = slopes[layout.annotator[row]]
        true_difference = state.scores[layout.winner_item[row]] - state.scores[layout.loser_item[row]]
        workspace.true_margin[row] = slope * true_difference
        workspace.noise_margin[row] = slope * (
            state.perceived[layout.winner_utility[row]] - state.perceived[layout.loser_utility[row]] - true_difference
        )


def draw_difficulty(rng: Any, layout: Any, prior: Any, state: Any, query: Any, slopes: Any, workspace: Any) -> None:
    """Update δ² twice: given the perceived utilities, and given the standardised noise.

    Where one parametrisation (centred, non-centred) mixes slowly, the other is fast.
    """
    first, last = layout.item_starts[query], layout.item_starts[query + 1]
    squares = 0.0
    for item in range(first, last):
        for utility in range(layout.utility_starts[item], layout.utility_starts[item + 1]):
            squares += (state.perceived[utility] - state.scores[item]) ** 2
    count = layout.utility_starts[last] - layout.utility_starts[first]
    shape, rate = prior.difficulty_shape, prior.difficulty_rate
    state.difficulty[query] = _draw_variance(rng, state.difficulty[query], shape - 0.5 * count, rate, 0.5 * squares)
    _split_margins(layout, state, query, slopes, workspace)
    start, end = layout.judgment_starts[query], layout.judgment_starts[query + 1]
    factor_prior = FactorPrior(-rate * state.difficulty[query], 0.0, 2.0 * shape, 0.0)
    factor = scale_move(rng, workspace.true_margin[start:end], workspace.noise_margin[start:end], factor_prior)
    if factor != 1.0:
        state.difficulty[query] *= factor * factor
        for item in range(first, last):
            for utility in range(layout.utility_starts[item], layout.utility_starts[item + 1]):
                state.perceived[utility] = state.scores[item] + factor * (state.perceived[utility] - state.scores[item])


def scale_query(rng: Any, layout: Any, prior: Any, state: Any, query: Any, slopes: Any, workspace: Any) -> None:
    """Rescale a query's scores, perceived utilities and δ by one factor; only the answer noise fixes their scale."""
    first, last = layout.item_starts[query], layout.item_starts[query + 1]
    start, end = layout.judgment_starts[query], layout.judgment_starts[query + 1]
    squares = 0.0
    for item in range(first, last):
        squares += state.scores[item] ** 2
    for row in range(start, end):
        difference = state.perceived[layout.winner_utility[row]] - state.perceived[layout.loser_utility[row]]
        workspace.true_margin[row], workspace.noise_margin[row] = 0.0, slopes[layout.annotator[row]] * difference
    square = -0.5 * squares / state.score_variance[0] - prior.difficulty_rate * state.difficulty[query]
    factor_prior = FactorPrior(square, 0.0, last - first + 2.0 * prior.difficulty_shape, 0.0)
    factor = scale_move(rng, workspace.true_margin[start:end], workspace.noise_margin[start:end], factor_prior)
    if factor != 1.0:
        state.difficulty[query] *= factor * factor
        state.scores[first:last] *= factor
        state.perceived[layout.utility_starts[first] : layout.utility_starts[last]] *= factor


def shift_query(rng: Any, layout: Any, state: Any, query: Any) -> None:
    """Shift a query's scores and perceived utilities together; only the prior of the scores fixes their level."""
    first, last = layout.item_starts[query], layout.item_starts[query + 1]
    if last > first:
        step = math.sqrt(state.score_variance[0] / (last - first)) * rng.standard_normal() - np.mean(
            state.scores[first:last]
        )
        state.scores[first:last] += step
        state.perceived[layout.utility_starts[first] : layout.utility_starts[last]] += step


def change_unit(rng: Any, layout: Any, prior: Any, state: Any, domain: Any) -> None:
    """Multiply a domain's scores and noise by a factor and divide its τ by it: the likelihood does not change."""
    squares, power = 0.0, 0.0
    for query in range(len(state.domain)):
        if state.domain[query] == domain:
            squares += prior.difficulty_rate * state.difficulty[query]
            power += layout.item_starts[query + 1] - layout.item_starts[query] + 2.0 * prior.difficulty_shape
            for item in range(layout.item_starts[query], layout.item_starts[query + 1]):
                squares += 0.5 * state.scores[item] ** 2 / state.score_variance[0]
    size = math.exp(4.0 * rng.random() - 5.0)
    factor = math.exp(rng.standard_normal() * size)
    log_ratio = power * math.log(factor) - squares * (factor**2 - 1.0)
    for k in range(len(state.expertise)):
        tau, mean = state.expertise[k, domain], prior.expertise_mean[k, domain]
        gaps = (tau - mean) ** 2 - (tau / factor - mean) ** 2
        log_ratio += 0.5 * gaps / prior.expertise_std[k, domain] ** 2 - math.log(factor)
    if math.log(rng.random()) < log_ratio:
        state.expertise[:, domain] /= factor
        for query in range(len(state.domain)):
            if state.domain[query] == domain:
                first, last = layout.item_starts[query], layout.item_starts[query + 1]
                state.difficulty[query] *= factor * factor
                state.scores[first:last] *= factor
                state.perceived[layout.utility_starts[first] : layout.utility_starts[last]] *= factor


def scale_all(rng: Any, layout: Any, prior: Any, state: Any, workspace: Any) -> None:
    """Rescale all scores with ω, all perception noise with δ, or all τ by one factor."""
    kind = int(3.0 * rng.random())
    for query in range(len(state.domain)):
        _split_margins(layout, state, query, ROOT_HALF * state.expertise[:, state.domain[query]], workspace)
    fixed, scaled = workspace.noise_margin, workspace.true_margin
    if kind == 0:
        factor_prior = FactorPrior(0.0, 0.0, -2.0 * prior.variance_shape, prior.variance_rate / state.score_variance[0])
    elif kind == 1:
        fixed, scaled = workspace.true_margin, workspace.noise_margin
        square = -prior.difficulty_rate * np.sum(state.difficulty)
        factor_prior = FactorPrior(square, 0.0, 2.0 * prior.difficulty_shape * len(state.difficulty), 0.0)
    else:
        for row in range(len(scaled)):
            scaled[row] += fixed[row]
            fixed[row] = 0.0
        weight = prior.expertise_std**-2
        squares, products = np.sum(weight * state.expertise**2), np.sum(weight * state.expertise * prior.expertise_mean)
        factor_prior = FactorPrior(-0.5 * squares, products, 1.0 * state.expertise.size, 0.0)
    factor = scale_move(rng, fixed, scaled, factor_prior)
    if factor == 1.0:
        return
    score_factor, noise_factor = factor if kind == 0 else 1.0, factor if kind == 1 else 1.0
    if kind == 2:
        state.expertise[:] *= factor
    else:
        for item in range(len(state.scores)):
            for utility in range(layout.utility_starts[item], layout.utility_starts[item + 1]):
                noise = noise_factor * (state.perceived[utility] - state.scores[item])
                state.perceived[utility] = score_factor * state.scores[item] + noise
        state.scores[:] *= score_factor
        state.score_variance[:] *= score_factor**2
        state.difficulty[:] *= noise_factor**2


PARAMETER_MOVES = (
    inverse_mills_table,
    log_normal_cdf_table,
    _expertise_log_posterior,
    draw_expertise,
    scale_expertise_and_noise,
    _factor_log_posterior,
    scale_move,
    _draw_variance,
    _split_margins,
    draw_difficulty,
    scale_query,
    shift_query,
    change_unit,
    scale_all,
)
