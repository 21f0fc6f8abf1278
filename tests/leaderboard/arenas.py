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
