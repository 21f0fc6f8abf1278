"""How well a model foretells judgments it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crowdrank.errors import SettingError
from crowdrank.judgments import Comparisons
from crowdrank.models import name_of
from crowdrank.models.foretelling import folds_of, log_chances


@dataclass(frozen=True)
class HeldOut:
    """Mean log chance given to each held-out judgment, in nats; nearer 0 is better."""

    mean: float
    std_error: float
    judgments: int
    folds: int


def held_out(
    model: Any,
    comparisons: Comparisons,
    *,
    folds: int = 5,
    by: Literal["judgment", "annotator"] = "judgment",
    ties: Literal["drop", "keep"] = "drop",
    seed: int = 0,
) -> HeldOut:
    """Cross-validated log-likelihood, whole judgments or whole annotators held out in turn."""
    if not hasattr(model, "predict"):
        raise SettingError(f"{name_of(model)} gives an order, not chances: it cannot foretell judgments.")
    fold = folds_of(comparisons, folds, by, np.random.default_rng(seed))
    gained, weights = [], []
    for n in range(folds):
        unseen = comparisons.take(np.flatnonzero(fold == n))
        ranking = model.fit(comparisons.take(np.flatnonzero(fold != n)))
        gained.append(log_chances(model, ranking, unseen, ties))
        weights.append(unseen.weights[unseen.outcome != 0] if ties == "drop" else unseen.weights)
    value, weight = np.concatenate(gained), np.concatenate(weights)
    mean = float(np.average(value, weights=weight))
    spread = np.average((value - mean) ** 2, weights=weight) * np.sum(weight**2) / np.sum(weight) ** 2
    return HeldOut(mean, float(np.sqrt(spread)), len(value), folds)
