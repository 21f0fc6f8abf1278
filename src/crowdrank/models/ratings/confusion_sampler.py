"""Posterior draws of the classes of the Dawid-Skene model, with annotators and class frequencies unknown.

Given the estimated confusion matrices, classes look nearly certain even where the grades are random, because the
matrices were fitted to the same grades. This Gibbs sampler draws classes, confusion matrices, class frequencies and the
pooled matrix in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdrank.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from crowdrank.models.ratings.dawid_skene import DawidSkene, DawidSkeneEM

_WARMUP, _SWEEPS, _KEEP_EVERY = 150, 900, 3
# Sweeps × ratings that may be spent.
_MAX_CELLS = 40_000_000
_TINY = 1e-300
# Weight of the prior confusion matrix in the pooled one, in answers per class.
_POOLED_PRIOR_COUNT = 1.0


def draw_classes(em: DawidSkeneEM, model: DawidSkene, probabilities: FloatArray, seed: int) -> IntArray:
    """Draws × items: classes from their posterior, by Gibbs sampling from the estimate."""
    rng = np.random.default_rng(seed)
    ratings, size, people = em.ratings, em.classes.size, em.n_annotators
    items, queries = ratings.items, len(ratings.items.queries)
    sweeps = int(np.clip(_MAX_CELLS // max(len(ratings), 1), 120, _SWEEPS))
    warmup = min(_WARMUP, sweeps // 3)
    answer = em.annotator.astype(np.int64) * size + em.classes.code
    pooled = em.prior_confusion
    frequencies = np.full(size, 1.0 / size)
    classes = _sample(probabilities, rng)
    drawn = []
    for sweep in range(warmup + sweeps):
        cell = answer * size + classes[ratings.item]
        counts = np.bincount(cell, ratings.weights, people * size * size).reshape(people, size, size)
        counts = counts.transpose(0, 2, 1)  # annotator, true class, answer
        prior = model.annotator_prior_count * pooled
        pooled = _dirichlet(_POOLED_PRIOR_COUNT * em.prior_confusion + _tables(counts, prior).sum(axis=0), rng)
        confusion = _dirichlet(counts + model.annotator_prior_count * pooled, rng)
        of_query = np.bincount(items.query * size + classes, minlength=queries * size).reshape(queries, size)
        prior = model.query_prior_count * frequencies
        frequencies = _dirichlet(1.0 / size + _tables(of_query, prior).sum(axis=0), rng)
        shares = _dirichlet(of_query + model.query_prior_count * frequencies, rng)
        logs = np.log(np.maximum(confusion, _TINY)).transpose(0, 2, 1).reshape(people * size, size)
        joint = np.log(np.maximum(shares, _TINY))[items.query] + em.per_item(logs[answer] * ratings.weights[:, None])
        weights = np.exp(joint - joint.max(axis=1, keepdims=True))
        classes = _sample(weights / weights.sum(axis=1, keepdims=True), rng)
        if sweep >= warmup and sweep % _KEEP_EVERY == 0:
            drawn.append(classes)
    return np.array(drawn)


def _tables(counts: FloatArray, prior: FloatArray) -> FloatArray:
    """Expected number of prior draws behind the counts: how much they tell of the centre of the prior (Antoniak)."""
    from scipy.special import digamma

    prior = np.maximum(prior, 1e-9)
    return np.asarray(prior * (digamma(prior + counts) - digamma(prior)))


def _dirichlet(parameters: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One draw per row."""
    gammas = rng.standard_gamma(np.maximum(parameters, 1e-9)) + _TINY
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))


def _sample(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """One class per row."""
    below = np.cumsum(probabilities, axis=1)[:, :-1]
    return np.asarray(np.sum(rng.random((len(probabilities), 1)) > below, axis=1))
