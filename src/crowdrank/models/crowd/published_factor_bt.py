"""factorBT's published procedure: its target T, no priors, its starting values, nonlinear conjugate gradients.

T = Σ log[f(γ)·f(s_w − s_l) + (1 − f(γ))·f(⟨x, r⟩)] + λ Σᵢ [log f(sᵢ − s₀) + log f(s₀ − sᵢ)], f logistic, with x seen
from the winner. The gradient by a score includes the comparisons that the item lost, which the paper's omits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.models.crowd.likelihood import sigmoid

# γ at the start: of those who always chose the same side, and of all others.
_STARTING_LOGIT = (-1.0, 1.0)


class Answers(NamedTuple):
    """Winner, loser, annotator and weight of each answer, and its features as seen from the winner."""

    winner: IntArray
    loser: IntArray
    annotator: IntArray
    weight: FloatArray
    features: FloatArray
    left_won: FloatArray


class PublishedFit(NamedTuple):
    """Scores relative to the virtual item, γ and feature weights; the target T, and whether the solver stopped."""

    scores: FloatArray
    logits: FloatArray
    feature_weights: FloatArray
    value: float
    converged: bool
    steps: int
    gradient: float


def fit_published(answers: Answers, items: int, people: int, virtual_weight: float, max_steps: int) -> PublishedFit:
    """Maximise T from the paper's starting values."""
    from scipy.optimize import minimize

    width = answers.features.shape[1]
    start = np.concatenate((np.zeros(items + 1), *_starting_values(answers, people)), axis=None)
    known = (answers, items, people, virtual_weight)
    found = minimize(_negative_target, start, args=known, jac=True, method="CG", options={"maxiter": max_steps})
    scores, logits, weights = _split(found.x, items, people, width)
    return PublishedFit(
        scores[1:] - scores[0],
        logits,
        weights,
        -float(found.fun),
        bool(found.success),
        int(found.nit),
        float(np.max(np.abs(found.jac))),
    )


def _split(parameters: FloatArray, items: int, people: int, width: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    scores, logits, weights = np.split(parameters, (items + 1, items + 1 + people))
    return scores, logits, weights.reshape(people, width)


def _starting_values(answers: Answers, people: int) -> tuple[FloatArray, FloatArray]:
    """γ by whether all answers are the same side, and r = log of the smoothed fraction of answers for each feature."""
    total = np.bincount(answers.annotator, minlength=people)
    left = np.bincount(answers.annotator, answers.left_won, people)
    same = (left == 0) | (left == total)
    weights = np.empty((people, answers.features.shape[1]))
    for n, column in enumerate(answers.features.T):
        chosen = np.bincount(answers.annotator, column > 0, people)
        shown = np.bincount(answers.annotator, column != 0, people)
        weights[:, n] = np.log((chosen + 1) / (shown + 2))
    return np.where(same, *_STARTING_LOGIT), weights


def _negative_target(
    parameters: FloatArray, answers: Answers, items: int, people: int, virtual_weight: float
) -> tuple[float, FloatArray]:
    """−T and its gradient; item 0 is the virtual one."""
    width = answers.features.shape[1]
    scores, logits, weights = _split(parameters, items, people, width)
    won, lost, who = answers.winner + 1, answers.loser + 1, answers.annotator
    by_items = sigmoid(scores[won] - scores[lost])
    by_features = sigmoid(np.sum(answers.features * weights[who], axis=1))
    care = sigmoid(logits[who])
    probability = np.maximum(care * by_items + (1 - care) * by_features, 1e-300)
    factor = answers.weight / probability
    margin = factor * care * by_items * (1 - by_items)
    bias = factor * (1 - care) * by_features * (1 - by_features)
    above, below = sigmoid(scores[1:] - scores[0]), sigmoid(scores[0] - scores[1:])
    value = float(answers.weight @ np.log(probability) + virtual_weight * np.sum(np.log(above) + np.log(below)))
    of_scores = np.bincount(won, margin, items + 1) - np.bincount(lost, margin, items + 1)
    of_scores[1:] += virtual_weight * (below - above)
    of_scores[0] += virtual_weight * float(np.sum(above - below))
    of_logits = np.bincount(who, factor * (by_items - by_features) * care * (1 - care), people)
    of_weights = np.stack([np.bincount(who, bias * column, people) for column in answers.features.T], axis=1)
    return -value, -np.concatenate((of_scores, of_logits, of_weights.ravel()))
