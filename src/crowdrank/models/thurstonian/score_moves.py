"""Moves of the scores and perceived utilities of one query, for compiled loops.

Given the domain, expertise τ and difficulty δ², the posterior of scores and perceived utilities is log-concave. Each
sweep updates it in four ways, because each way is slow on some data:

- `hmc_step`: Hamiltonian Monte Carlo on the scores (Neal 2011); perceived utilities shift with their scores.
- `elliptical_slice_step`: perception noise given the scores (Murray, Adams & MacKay 2010).
- `gibbs_step`: scores given the perceived utilities.
- `random_walk_step`: one score at a time, with all its perceived utilities.

HMC runs in coordinates scaled by a preconditioner, a factor of the inverse mass matrix. The posterior stays invariant
only if the preconditioner does not depend on the state that is moved, so it is computed while a chain is tuned and kept
fixed afterwards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.inference.special import inverse_mills_table, log_normal_cdf_table

DENSE_UP_TO = 64
"""Largest number of items in a query with a dense mass matrix. Larger queries use a diagonal one."""

# Mean path length of HMC in preconditioned coordinates, and the maximum number of leapfrog steps.
_PATH_LENGTH = 2.0
_MAX_LEAPFROG_STEPS = 40
# Smallest prior precision in the mass matrix.
_MIN_PRECISION = 0.03


class Workspace(NamedTuple):
    """Scratch arrays of a run: by item, by perceived utility, by judgment and by annotator."""

    scores: AnyArray
    gradient: AnyArray
    momentum: AnyArray
    noise: AnyArray
    noise_margin: AnyArray
    true_margin: AnyArray
    auxiliary_margin: AnyArray
    cosine: AnyArray
    sine: AnyArray


def _gradient(layout: Any, query: Any, slopes: Any, variance: Any, workspace: Any) -> None:
    """Gradient of the log posterior in the scores, with the perception noise fixed."""
    for item in range(layout.item_starts[query], layout.item_starts[query + 1]):
        workspace.gradient[item] = -workspace.scores[item] / variance
    for row in range(layout.judgment_starts[query], layout.judgment_starts[query + 1]):
        one, other, slope = layout.winner_item[row], layout.loser_item[row], slopes[layout.annotator[row]]
        force = slope * inverse_mills_table(
            slope * (workspace.scores[one] - workspace.scores[other]) + workspace.noise_margin[row]
        )
        workspace.gradient[one] += force
        workspace.gradient[other] -= force


def _energy(layout: Any, query: Any, slopes: Any, variance: Any, workspace: Any) -> Any:
    """Negative log posterior of the scores plus the kinetic energy of the momentum."""
    total = 0.0
    for row in range(layout.judgment_starts[query], layout.judgment_starts[query + 1]):
        difference = workspace.scores[layout.winner_item[row]] - workspace.scores[layout.loser_item[row]]
        total -= log_normal_cdf_table(slopes[layout.annotator[row]] * difference + workspace.noise_margin[row])
    for item in range(layout.item_starts[query], layout.item_starts[query + 1]):
        total += 0.5 * (workspace.scores[item] ** 2 / variance + workspace.momentum[item] ** 2)
    return total


def _update_position(preconditioner: Any, step_size: Any, momentum: Any, scores: Any) -> None:
    """Leapfrog update of the scores."""
    count = len(scores)
    for item in range(count):
        if len(preconditioner) > count:  # dense: an upper triangle, row by row
            velocity = 0.0
            for other in range(item, count):
                velocity += preconditioner[item * count + other] * momentum[other]
        else:
            velocity = preconditioner[item] * momentum[item]
        scores[item] += step_size * velocity


def _update_momentum(preconditioner: Any, step_size: Any, gradient: Any, momentum: Any) -> None:
    """Leapfrog update of the momentum."""
    count = len(momentum)
    for item in range(count):
        if len(preconditioner) > count:
            force = 0.0
            for other in range(item + 1):
                force += preconditioner[other * count + item] * gradient[other]
        else:
            force = preconditioner[item] * gradient[item]
        momentum[item] += step_size * force


def hmc_step(rng: Any, layout: Any, state: Any, query: Any, slopes: Any, preconditioner: Any, workspace: Any) -> Any:
    """One HMC step on a query's scores, shifting the perceived utilities along. Returns the acceptance probability."""
    first, last = layout.item_starts[query], layout.item_starts[query + 1]
    variance, perceived, true = state.score_variance[0], state.perceived, state.scores
    for row in range(layout.judgment_starts[query], layout.judgment_starts[query + 1]):
        perceived_difference = perceived[layout.winner_utility[row]] - perceived[layout.loser_utility[row]]
        true_difference = true[layout.winner_item[row]] - true[layout.loser_item[row]]
        workspace.noise_margin[row] = slopes[layout.annotator[row]] * (perceived_difference - true_difference)
    for item in range(first, last):
        workspace.scores[item] = true[item]
        workspace.momentum[item] = rng.standard_normal()
    scores, momentum, gradient = (
        workspace.scores[first:last],
        workspace.momentum[first:last],
        workspace.gradient[first:last],
    )
    step_size = min(1.0, state.step_size[0] * (1.0 + last - first) ** -0.25) * (0.7 + 0.6 * rng.random())
    steps = min(_MAX_LEAPFROG_STEPS, 1 + int(2.0 * _PATH_LENGTH * rng.random() / step_size))
    energy = _energy(layout, query, slopes, variance, workspace)
    _gradient(layout, query, slopes, variance, workspace)
    _update_momentum(preconditioner, 0.5 * step_size, gradient, momentum)
    for step in range(steps):
        _update_position(preconditioner, step_size, momentum, scores)
        _gradient(layout, query, slopes, variance, workspace)
        _update_momentum(preconditioner, step_size if step < steps - 1 else 0.5 * step_size, gradient, momentum)
    log_ratio = energy - _energy(layout, query, slopes, variance, workspace)
    if not log_ratio > -700.0:  # also rejects a path that diverged to infinity or nan
        return 0.0
    acceptance = math.exp(min(0.0, log_ratio))
    if rng.random() < acceptance:
        for item in range(first, last):
            perceived[layout.utility_starts[item] : layout.utility_starts[item + 1]] += (
                workspace.scores[item] - true[item]
            )
            true[item] = workspace.scores[item]
    return acceptance


def elliptical_slice_step(rng: Any, layout: Any, state: Any, query: Any, slopes: Any, workspace: Any) -> None:
    """Update the perception noise of each annotator by elliptical slice sampling, with the scores fixed."""
    first, last = layout.item_starts[query], layout.item_starts[query + 1]
    noise_std = math.sqrt(state.difficulty[query])
    for utility in range(layout.utility_starts[first], layout.utility_starts[last]):
        workspace.noise[utility] = noise_std * rng.standard_normal()
    start, end = layout.judgment_starts[query], layout.judgment_starts[query + 1]
    for row in range(start, end):
        one, other, slope = layout.winner_utility[row], layout.loser_utility[row], slopes[layout.annotator[row]]
        true_difference = state.scores[layout.winner_item[row]] - state.scores[layout.loser_item[row]]
        workspace.true_margin[row] = slope * true_difference
        workspace.noise_margin[row] = slope * (state.perceived[one] - state.perceived[other] - true_difference)
        workspace.auxiliary_margin[row] = slope * (workspace.noise[one] - workspace.noise[other])
    while start < end:
        who, stop = layout.annotator[start], start + 1
        while stop < end and layout.annotator[stop] == who:
            stop += 1
        angle = _slice_angle(
            rng,
            workspace.true_margin[start:stop],
            workspace.noise_margin[start:stop],
            workspace.auxiliary_margin[start:stop],
        )
        workspace.cosine[who], workspace.sine[who] = math.cos(angle), math.sin(angle)
        start = stop
    for item in range(first, last):
        for utility in range(layout.utility_starts[item], layout.utility_starts[item + 1]):
            who = layout.utility_annotator[utility]
            noise = (
                workspace.cosine[who] * (state.perceived[utility] - state.scores[item])
                + workspace.sine[who] * workspace.noise[utility]
            )
            state.perceived[utility] = state.scores[item] + noise


def _rotated_log_likelihood(true_margin: Any, noise_margin: Any, auxiliary_margin: Any, angle: Any) -> Any:
    """Log-likelihood of one annotator's judgments with the noise rotated towards an auxiliary draw."""
    cosine, sine, total = math.cos(angle), math.sin(angle), 0.0
    for row in range(len(true_margin)):
        total += log_normal_cdf_table(true_margin[row] + cosine * noise_margin[row] + sine * auxiliary_margin[row])
    return total


def _slice_angle(rng: Any, true_margin: Any, noise_margin: Any, auxiliary_margin: Any) -> Any:
    """Angle accepted by the elliptical slice sampler (Murray et al. 2010, figure 2)."""
    threshold = math.log(rng.random()) + _rotated_log_likelihood(true_margin, noise_margin, auxiliary_margin, 0.0)
    angle = 2.0 * math.pi * rng.random()
    low, high = angle - 2.0 * math.pi, angle
    while _rotated_log_likelihood(true_margin, noise_margin, auxiliary_margin, angle) < threshold:
        if angle < 0.0:
            low = angle
        else:
            high = angle
        if high - low < 1e-12:
            return 0.0
        angle = low + (high - low) * rng.random()
    return angle


def gibbs_step(rng: Any, layout: Any, state: Any, query: Any) -> None:
    """Draw the scores given the perceived utilities.

    Fast where the judgments determine the perceived utilities well, so that shifting both together moves little.
    """
    prior_precision, noise_precision = 1.0 / state.score_variance[0], 1.0 / state.difficulty[query]
    for item in range(layout.item_starts[query], layout.item_starts[query + 1]):
        start, end = layout.utility_starts[item], layout.utility_starts[item + 1]
        total = 0.0
        for utility in range(start, end):
            total += state.perceived[utility]
        precision = prior_precision + noise_precision * (end - start)
        state.scores[item] = noise_precision * total / precision + rng.standard_normal() / math.sqrt(precision)


def random_walk_step(rng: Any, layout: Any, state: Any, query: Any, slopes: Any) -> None:
    """Shift each score and its perceived utilities by a random-walk step of random scale.

    The posterior of an item that always won has a long flat tail, which needs steps of very different sizes.
    """
    for item in range(layout.item_starts[query], layout.item_starts[query + 1]):
        step = math.sqrt(state.score_variance[0]) * math.exp(4.0 * rng.random() - 4.0) * rng.standard_normal()
        log_ratio = -0.5 * step * (2.0 * state.scores[item] + step) / state.score_variance[0]
        for utility in range(layout.utility_starts[item], layout.utility_starts[item + 1]):
            slope = slopes[layout.utility_annotator[utility]]
            for edge in range(layout.edge_starts[utility], layout.edge_starts[utility + 1]):
                signed_slope = layout.edge_sign[edge] * slope
                margin = signed_slope * (state.perceived[utility] - state.perceived[layout.edge_opponent[edge]])
                log_ratio += log_normal_cdf_table(margin + signed_slope * step) - log_normal_cdf_table(margin)
        if math.log(rng.random()) < log_ratio:
            state.scores[item] += step
            state.perceived[layout.utility_starts[item] : layout.utility_starts[item + 1]] += step


def compute_preconditioner(layout: Any, state: Any, query: Any, slopes: Any, preconditioner: Any) -> None:
    """Factor A of the inverse mass matrix, A Aᵀ = M⁻¹, with the expected information of the judgments as M.

    Perceived utilities are integrated out one judgment at a time.
    """
    first, last = layout.item_starts[query], layout.item_starts[query + 1]
    count = last - first
    dense = len(preconditioner) > count
    diagonal, precision_matrix = (
        np.full(count, max(_MIN_PRECISION, 1.0 / state.score_variance[0])),
        np.zeros((count, count) if dense else (0, 0)),
    )
    for row in range(layout.judgment_starts[query], layout.judgment_starts[query + 1]):
        one, other = layout.winner_item[row], layout.loser_item[row]
        slope = slopes[layout.annotator[row]]
        margin = slope * (state.scores[one] - state.scores[other])
        margin /= math.sqrt(1.0 + 2.0 * slope * slope * state.difficulty[query])
        # E[−∂² log Φ] over both answers: φ²/(Φ(1 − Φ)) = the product of both inverse Mills ratios.
        information = slope * slope * inverse_mills_table(margin) * inverse_mills_table(-margin)
        diagonal[one - first] += information
        diagonal[other - first] += information
        if dense:
            precision_matrix[one - first, other - first] -= information
            precision_matrix[other - first, one - first] -= information
    if not dense:
        for item in range(count):
            preconditioner[item] = 1.0 / math.sqrt(diagonal[item])
        return
    for item in range(count):
        precision_matrix[item, item] = diagonal[item]
    inverse_factor = np.linalg.inv(np.linalg.cholesky(precision_matrix))
    for item in range(count):
        for other in range(count):
            preconditioner[item * count + other] = inverse_factor[other, item]


def preconditioner_sizes(n_items: AnyArray) -> AnyArray:
    """Entries in the preconditioner of each query: n² if dense, n if diagonal."""
    return np.where(n_items <= DENSE_UP_TO, n_items**2, n_items)


SCORE_MOVES = (
    inverse_mills_table,
    log_normal_cdf_table,
    _gradient,
    _energy,
    _update_position,
    _update_momentum,
    hmc_step,
    _rotated_log_likelihood,
    _slice_angle,
    elliptical_slice_step,
    gibbs_step,
    random_walk_step,
    compute_preconditioner,
)
