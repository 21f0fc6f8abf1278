"""Posterior draws of the classes of the Dawid-Skene model, with annotators and class frequencies unknown.

Given the estimated confusion matrices, classes look nearly certain even where the grades are random, because the
matrices were fitted to the same grades. This Gibbs sampler draws classes, confusion matrices, class frequencies and the
pooled matrix in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from crowdrank.models.ratings.dawid_skene import DawidSkene, DawidSkeneEM

_WARMUP, _SWEEPS = 200, 500
# The prior count is drawn in one of so many sweeps: it costs as much as several of them.
_COUNT_EVERY = 5
# Sweeps × ratings that may be spent.
_MAX_CELLS = 40_000_000
_TINY = 1e-300
# Grid of the pooled matrix's prior: how informative answers are on average, and how firmly that is believed.
_INFORMATIVE = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])
_FIRMNESS = np.array([5.0, 15.0, 50.0, 150.0, 500.0])


# Grid and log-normal prior of the pseudo-answers per true class that an annotator is credited with.
_PRIOR_COUNTS = np.geomspace(1.0, 50.0, 8)
_LOG_COUNT_PRIOR = -0.5 * (np.log(_PRIOR_COUNTS / 10.0) / 1.5) ** 2


def learn_prior_count(counts: FloatArray, pooled: FloatArray) -> float:
    """The prior count that explains how much annotators differ from the pooled confusion matrix.

    `counts` are annotators × true classes × answers. The posterior mean of its logarithm, so that it is a smooth
    function of the counts.
    """
    log_weights = _log_weights(counts, pooled)
    weights = np.exp(log_weights - log_weights.max())
    return float(np.exp(weights @ np.log(_PRIOR_COUNTS) / weights.sum()))


def _log_weights(counts: AnyArray, pooled: FloatArray) -> FloatArray:
    """Log posterior of each value on the grid: Dirichlet-multinomial likelihood of the counts, times the prior."""
    from scipy.special import gammaln

    counts = counts[counts.sum(axis=(1, 2)) > 0]
    totals, values = counts.sum(axis=2), []
    for count in _PRIOR_COUNTS:
        prior = np.maximum(count * pooled, 1e-9)
        value = np.sum(gammaln(prior + counts)) - len(counts) * np.sum(gammaln(prior))
        values.append(value - np.sum(gammaln(count + totals)) + totals.size * gammaln(count))
    return np.array(values) + _LOG_COUNT_PRIOR


def draw_classes(em: DawidSkeneEM, model: DawidSkene, probabilities: FloatArray, seed: int) -> IntArray:
    """Draws × items: classes from their posterior, by Gibbs sampling from the estimate."""
    rng, given = np.random.default_rng(seed), model.annotator_prior_count
    prior_count = _PRIOR_COUNTS[-1] if given == "auto" else given
    ratings, size, people = em.ratings, em.classes.size, em.n_annotators
    items, queries = ratings.items, len(ratings.items.queries)
    sweeps = int(np.clip(_MAX_CELLS // max(len(ratings), 1), 120, _SWEEPS))
    warmup = min(_WARMUP, sweeps // 3)
    answer = em.annotator.astype(np.int64) * size + em.classes.code
    share = np.bincount(em.classes.code, ratings.weights, size) / ratings.weights.sum()
    centres = _INFORMATIVE[:, None, None] * em.prior_confusion + (1 - _INFORMATIVE[:, None, None]) * share
    centres = _FIRMNESS[:, None, None, None] * np.maximum(centres, 1e-4)
    centres = centres.reshape(-1, size, size)
    centre = pooled = centres[0] / _FIRMNESS[0]
    frequencies = np.full(size, 1.0 / size)
    classes = _sample(probabilities, rng)
    drawn = []
    for sweep in range(warmup + sweeps):
        cell = answer * size + classes[ratings.item]
        tallies = np.bincount(cell, ratings.weights, people * size * size).astype(np.float64)
        counts = tallies.reshape(people, size, size).transpose(0, 2, 1)  # annotator, true class, answer
        if given == "auto" and sweep % _COUNT_EVERY == 0:
            prior_count = _PRIOR_COUNTS[_choose(_log_weights(counts, pooled), rng)]
        prior = prior_count * pooled
        pooled = _dirichlet(centre + _tables(counts, prior).sum(axis=0), rng)
        centre = centres[_choose(_log_dirichlet(pooled, centres).sum(axis=1), rng)]
        confusion = _dirichlet(counts + prior_count * pooled, rng)
        of_query = (
            np.bincount(items.query * size + classes, minlength=queries * size).reshape(queries, size).astype(float)
        )
        prior = model.query_prior_count * frequencies
        frequencies = _dirichlet(1.0 / size + _tables(of_query, prior).sum(axis=0), rng)
        shares = _dirichlet(of_query + model.query_prior_count * frequencies, rng)
        logs = np.log(np.maximum(confusion, _TINY)).transpose(0, 2, 1).reshape(people * size, size)
        joint = np.log(np.maximum(shares, _TINY))[items.query] + em.per_item(logs[answer] * ratings.weights[:, None])
        weights = np.exp(joint - joint.max(axis=1, keepdims=True))
        classes = _sample(weights / weights.sum(axis=1, keepdims=True), rng)
        if sweep >= warmup:
            drawn.append(classes)
    return np.array(drawn)


def _tables(counts: AnyArray, prior: FloatArray) -> FloatArray:
    """Expected number of prior draws behind the counts: how much they tell of the centre of the prior (Antoniak)."""
    from scipy.special import digamma

    prior = np.maximum(prior, 1e-9)
    return np.asarray(prior * (digamma(prior + counts) - digamma(prior)))


def _log_dirichlet(rows: FloatArray, parameters: FloatArray) -> FloatArray:
    """Log density of each row under each Dirichlet distribution."""
    from scipy.special import gammaln

    logs = np.log(np.maximum(rows, _TINY))
    total = gammaln(parameters.sum(axis=-1)) - gammaln(parameters).sum(axis=-1)
    return np.asarray(total + np.sum((parameters - 1) * logs, axis=-1))


def _choose(log_weights: FloatArray, rng: np.random.Generator) -> int:
    """The index of one of several log weights, drawn in proportion."""
    weights = np.cumsum(np.exp(log_weights - log_weights.max()))
    return int(np.searchsorted(weights, rng.random() * weights[-1]))


def _dirichlet(parameters: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One draw per row."""
    gammas = rng.standard_gamma(np.maximum(parameters, 1e-9)) + _TINY
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))


def _sample(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """One class per row."""
    below = np.cumsum(probabilities, axis=1)[:, :-1]
    return np.asarray(np.sum(rng.random((len(probabilities), 1)) > below, axis=1))
