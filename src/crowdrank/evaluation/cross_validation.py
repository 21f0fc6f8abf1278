"""Judgments held out in turn, and what every model made of the same ones.

How well a model foretells judgments it has not seen.

Means over the same answers by several models, and how far apart they surely are.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Judgments, Rankings, SideInformation
from crowdrank.errors import ConvergenceWarning, CrowdrankError, CrowdrankWarning, SettingError
from crowdrank.models import Model, name_of
from crowdrank.models.conversion import convert_for
from crowdrank.models.cross_validation import assign_folds, log_probabilities
from crowdrank.results import Ranking

By = Literal["judgment", "annotator"]

_LEAST = np.log(1e-9)
"""What is taken for the log of a chance at least: one certainty that failed must not decide everything."""


@dataclass(frozen=True)
class Fold:
    """What is fitted to, and the answers held out: each two items of which one was put first."""

    seen: Judgments
    answers: Comparisons


@dataclass
class Foretold:
    """What every model made of the answers held out, in the same order."""

    weight: FloatArray
    who: IntArray
    """Whose answers they are: what one person said hangs together."""
    chance: dict[str, list[FloatArray]] = field(default_factory=dict)
    """The log chance given to each answer, by models that give chances."""
    agreed: dict[str, list[FloatArray]] = field(default_factory=dict)
    """1 where the item put first has the higher score, 0 where the lower, ½ where they are equal."""
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    stopped_short: Counter[str] = field(default_factory=Counter)

    def drop(self, name: str) -> None:
        for found in (self.chance, self.agreed):
            found.pop(name, None)


def folds_by(judgments: Judgments, by: By, folds: int, seed: int, most: int | None = None) -> list[Fold]:
    """Judgments, or whole annotators, dealt into folds; only the first `most` of them, where they are many."""
    known: Any = judgments
    units = len(known.annotators) if by == "annotator" else len(known)
    fold = assign_folds(known, min(folds, units), by, np.random.default_rng(seed))
    parts = [
        Fold(known.take(np.flatnonzero(fold != n)), _answers(known.take(np.flatnonzero(fold == n))))
        for n in range(min(folds, units) if most is None else most)
    ]
    return [part for part in parts if len(part.answers) and len(part.seen)]


def foretell(
    models: Mapping[str, Any], folds: list[Fold], left_out: dict[str, str], done: Callable[[str], None]
) -> Foretold:
    """Each model fitted without each fold; one that cannot be is left out, with the reason."""
    weight = np.concatenate([fold.answers.weights for fold in folds])
    found = Foretold(weight, np.concatenate([_who(fold.answers) for fold in folds]))
    for fold in folds:
        for name, model in models.items():
            if name not in left_out:
                try:
                    _ask(name, model, fold, found)
                except CrowdrankError as error:
                    left_out[name] = str(error)
                    found.drop(name)
            done(name)
    return found


def fit_quietly(
    model: Model, judgments: Judgments, side_information: SideInformation | None = None
) -> tuple[Ranking, bool]:
    """The ranking, and whether the solver got there."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", CrowdrankWarning)
        ranking = model.fit(convert_for(model, judgments)[0], side_information=side_information)
    return ranking, not any(issubclass(w.category, ConvergenceWarning) for w in heard)


def _ask(name: str, model: Any, fold: Fold, found: Foretold) -> None:
    began = time.perf_counter()
    ranking, converged = fit_quietly(model, fold.seen)
    answers = fold.answers
    if hasattr(model, "predict"):
        with np.errstate(divide="ignore"):
            chance = np.maximum(log_probabilities(model, ranking, answers), _LEAST)
        found.chance.setdefault(name, []).append(chance)
    ahead = np.sign(ranking.scores[answers.left] - ranking.scores[answers.right])
    found.agreed.setdefault(name, []).append((1.0 + ahead * answers.outcome) / 2)
    found.seconds[name] += time.perf_counter() - began
    found.stopped_short[name] += not converged


def _answers(judgments: Judgments) -> Comparisons:
    """Decided answers as they are; of grades and lists, every two items that one of them orders."""
    if isinstance(judgments, Rankings) and judgments.annotator is None:
        # what one list says hangs together, as what one person says does
        names = np.array([str(n) for n in range(len(judgments))], dtype=object)
        judgments = replace(judgments, annotators=names, annotator=np.arange(len(judgments), dtype=np.int32))
    answers = judgments if isinstance(judgments, Comparisons) else judgments.to_comparisons()
    return answers.take(np.flatnonzero(answers.outcome))


def _who(answers: Comparisons) -> IntArray:
    return np.arange(len(answers)) if answers.annotator is None else answers.annotator.astype(np.int64)


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
    fold = assign_folds(comparisons, folds, by, np.random.default_rng(seed))
    gained, weights = [], []
    for n in range(folds):
        unseen = comparisons.take(np.flatnonzero(fold == n))
        ranking = model.fit(comparisons.take(np.flatnonzero(fold != n)))
        gained.append(log_probabilities(model, ranking, unseen, ties))
        weights.append(unseen.weights[unseen.outcome != 0] if ties == "drop" else unseen.weights)
    value, weight = np.concatenate(gained), np.concatenate(weights)
    mean = float(np.average(value, weights=weight))
    spread = np.average((value - mean) ** 2, weights=weight) * np.sum(weight**2) / np.sum(weight) ** 2
    return HeldOut(mean, float(np.sqrt(spread)), len(value), folds)


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    value: float
    std_error: float

    @property
    def surely_positive(self) -> bool:
        return self.value > 2 * self.std_error


@dataclass(frozen=True)
class Mark:
    """What one model reached, and how that stands to others on the same answers."""

    mean: Estimate
    gain: Estimate
    """Above the plain model."""
    behind: Estimate
    """Below the best."""


def estimate(values: FloatArray, weight: FloatArray, who: IntArray) -> Estimate:
    """The mean, and its error with answers or people taken as independent, whichever is larger."""
    mean = float(np.average(values, weights=weight))
    pull = weight * (values - mean)
    people = np.bincount(who, pull)
    independent = max(float(np.sum(pull**2)), float(np.sum(people**2)))
    return Estimate(mean, float(np.sqrt(independent)) / float(np.sum(weight)))


def marks(values: Mapping[str, FloatArray], weight: FloatArray, who: IntArray, plain: str) -> dict[str, Mark]:
    """Of every model; without the plain one among them there is no gain to tell (nan)."""
    if not values:
        return {}
    best = max(values, key=lambda name: float(np.average(values[name], weights=weight)))
    nothing = Estimate(np.nan, np.nan)
    return {
        name: Mark(
            estimate(found, weight, who),
            estimate(found - values[plain], weight, who) if plain in values else nothing,
            estimate(values[best] - found, weight, who),
        )
        for name, found in values.items()
    }
