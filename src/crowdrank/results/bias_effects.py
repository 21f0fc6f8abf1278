"""How far features that should not matter sway a crowd, from what was learnt of its annotators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.results.ranking import Ranking

PULL_OF, UNIT_OF = "weight_of_", "unit_of_"


class Sway(NamedTuple):
    """How far a feature moves the chance that an average annotator says left, were the two items equal."""

    feature: str
    unit: float
    """The size of the feature at which this is so: its root mean square, or 1."""
    sway: float
    low: float
    high: float


def sways(ranking: Ranking) -> list[Sway]:
    """Of each feature that pulls annotators; none where the model has no features, or annotators no names.

    The mean over annotators of (1 − care)·(σ(pull · unit) − ½). Its interval counts in how unsure each annotator's care
    and pull are, and how much annotators differ, as of a crowd these annotators were drawn from.
    """
    if ranking.survey is None:
        return []
    people = ranking.annotators
    found = []
    for name in (key for key in people.estimates if key.startswith(PULL_OF)):
        feature = name.removeprefix(PULL_OF)
        unit = ranking.parameters.get(f"{UNIT_OF}{feature}", 1.0)
        care, *ends = (np.clip(part, 1e-12, 1 - 1e-12) for part in people.estimates["attention"])
        pull, low, high = (part * unit for part in people.estimates[name])
        gate_error = (_logit(ends[1]) - _logit(ends[0])) / (2 * 1.96)
        drawn = 0.5 * np.tanh(pull / 2)  # σ(pull) − ½
        by_gate = care * (1 - care) * drawn * gate_error
        by_pull = (1 - care) * (0.25 - drawn**2) * (high - low) / (2 * 1.96)
        sway = (1 - care) * drawn
        spread = np.var(sway, ddof=1) if len(sway) > 1 else 0.0
        error = np.sqrt((spread + np.mean(by_gate**2 + by_pull**2)) / len(sway))
        centre = float(np.mean(sway))
        found.append(Sway(feature, float(unit), centre, centre - 1.96 * float(error), centre + 1.96 * float(error)))
    return found


def _logit(chance: FloatArray) -> FloatArray:
    return np.asarray(np.log(chance) - np.log1p(-chance))
