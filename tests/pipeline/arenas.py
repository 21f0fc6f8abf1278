"""Simulated arenas with a known truth."""

import numpy as np
from scipy.special import ndtr

from crowdrank import Comparisons

NAMES = np.array([f"m{n}" for n in range(8)])
QUALITY = np.linspace(1.2, -1.2, 8)


def styled_arena(seed, votes=4000, effect=1.0, probit=False):
    """Votes among eight models. The style of m4 reverses its order with m3, which is better."""
    rng = np.random.default_rng(seed)
    style = np.zeros(8)
    style[3], style[4] = -0.6, 0.6
    left = rng.integers(8, size=votes)
    right = (left + rng.integers(1, 8, size=votes)) % 8
    difference = style[left] - style[right] + rng.normal(size=votes)
    margin = QUALITY[left] - QUALITY[right] + effect * difference
    chance = ndtr(margin / np.sqrt(2)) if probit else 1 / (1 + np.exp(-margin))
    winner = np.where(rng.random(votes) < chance, NAMES[left], NAMES[right])
    return Comparisons.of(NAMES[left], NAMES[right], winner, features={"style": difference})


def clustered_arena(seed, clusters=100, votes=20, spread=1.0):
    """Votes on prompts. Each prompt is answered by three models, whose strengths differ from prompt to prompt."""
    rng = np.random.default_rng(seed)
    strength = QUALITY + rng.normal(scale=spread, size=(clusters, 8))
    prompt = np.repeat(np.arange(clusters), votes)
    answered = np.argsort(rng.random((clusters, 8)), axis=1)[:, :3]
    shown = np.argsort(rng.random((len(prompt), 3)), axis=1)[:, :2]
    left, right = (answered[prompt, shown[:, side]] for side in (0, 1))
    margin = strength[prompt, left] - strength[prompt, right]
    winner = np.where(rng.random(len(prompt)) < 1 / (1 + np.exp(-margin)), NAMES[left], NAMES[right])
    return Comparisons.of(NAMES[left], NAMES[right], winner, features={"prompt": [f"p{n}" for n in prompt]})


def arena_by_category(seed, spread=0.5, categories=4, votes=1200, ties=True):
    """Votes in categories of unequal size, with their own deviations and tie rates. Returns the true scores as well."""
    rng = np.random.default_rng(seed)
    strength = QUALITY + rng.normal(scale=spread, size=(categories, 8))
    kind = rng.choice(categories, votes, p=np.arange(1, categories + 1) / np.arange(1, categories + 1).sum())
    left = rng.integers(8, size=votes)
    right = (left + rng.integers(1, 8, size=votes)) % 8
    margin = strength[kind, left] - strength[kind, right]
    tie = np.where(ties, rng.normal(-0.5, 0.3, categories)[kind], -np.inf)
    weight = np.exp(np.stack((margin / 2, tie, -margin / 2)))
    outcome = (rng.random(votes) > np.cumsum(weight / weight.sum(axis=0), axis=0)[:2]).sum(axis=0)
    winner = np.choose(outcome, (NAMES[left], np.full(votes, "tie"), NAMES[right]))
    columns = {"left": NAMES[left], "right": NAMES[right], "winner": winner, "topic": [f"topic {k}" for k in kind]}
    return columns, strength


def mean_quality(spread=1.0):
    """The scores that bradley-terry tends to with ever more prompts: those of the mean probabilities of a win."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    margin = QUALITY[:, None, None] - QUALITY[:, None] + spread * np.sqrt(2) * nodes
    wins = (1 / (1 + np.exp(-margin))) @ (weights / weights.sum())
    scores = QUALITY.copy()
    for _ in range(60):  # Newton's method; the matrix of ones holds the mean at zero
        chance = 1 / (1 + np.exp(scores - scores[:, None]))
        curvature = chance * (1 - chance)
        np.fill_diagonal(curvature, 0.0)
        hessian = np.diag(curvature.sum(axis=1)) - curvature + np.ones((8, 8))
        scores = scores + np.linalg.solve(hessian, (wins - chance).sum(axis=1))
    return scores - scores.mean()
