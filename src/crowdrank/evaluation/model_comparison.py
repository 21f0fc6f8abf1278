"""Models compared on the judgments at hand: by answers they have not seen, and by gold where there is some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation.candidates import Contenders, contenders
from crowdrank.evaluation.cross_validation import (
    By,
    Estimate,
    Fold,
    Foretold,
    Mark,
    fit_quietly,
    folds_by,
    foretell,
    marks,
)
from crowdrank.evaluation.gold import Evaluation, Gold, accuracy_gains, grades
from crowdrank.evaluation.recommendation import Recommendation, recommend
from crowdrank.models.base import model_settings
from crowdrank.results import Ranking

FEWEST = 20
"""Judgments below which nothing can be held out and told."""
_MANY = 20_000
"""Judgments beyond which a quick look holds out one fold only."""

Progress = Callable[[str, int, int], None]
"""What is being fitted, how many fits are done, and of how many."""


@dataclass(frozen=True)
class Entrant:
    """One model, and what it reached."""

    model: str
    settings: dict[str, Any]
    chance: dict[By, Mark]
    """The log chance of an answer held out, in nats, by what was held out; empty for models that give none."""
    agreement: dict[By, Mark]
    """How often the item put first in an answer held out has the higher score."""
    grade: Evaluation | None
    """Against gold, fitted to all judgments."""
    accuracy_gain: Estimate | None
    """How much more accurate than the plain model, against gold."""
    seconds: float
    stopped_short: int
    """Fits that did not converge."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelComparison:
    """What came of the comparison: every model, the best first, and which to take."""

    entrants: tuple[Entrant, ...]
    left_out: dict[str, str]
    """Models that were not compared, and why."""
    plain: str
    yardstick: str
    """What is gone by: "chance" for comparisons; "agreement" for grades and lists, and where but one gives chances."""
    folds: int
    answers: dict[By, int]
    """How many answers were held out in all."""
    recommendation: Recommendation

    def __len__(self) -> int:
        return len(self.entrants)

    def __repr__(self) -> str:
        return f"<{len(self)} models compared: {self.recommendation.model} is recommended>"

    def __getitem__(self, name: str) -> Entrant:
        return next(entrant for entrant in self.entrants if entrant.model == name)

    @property
    def best(self) -> str:
        """The model of the largest mean by the yardstick."""
        return self.entrants[0].model

    def frame(self) -> pl.DataFrame:
        """One row a model: each measure with its standard error, its gain over the plain model, and that one's."""
        rows = [_row(entrant, self.answers) for entrant in self.entrants]
        return pl.DataFrame(rows, infer_schema_length=None)

    def as_dict(self) -> dict[str, Any]:
        found = self.recommendation
        return {
            "recommended": found.model,
            "why": found.why,
            "notes": found.notes,
            "best": self.best,
            "plain": self.plain,
            "yardstick": self.yardstick,
            "folds": self.folds,
            "answers": dict(self.answers),
            "models": [_told(entrant) for entrant in self.entrants],
            "left_out": dict(self.left_out),
        }


def compare_models(
    judgments: Judgments,
    models: Sequence[str] | None = None,
    *,
    gold: Gold | None = None,
    features: Sequence[str] | None = None,
    folds: int = 5,
    quick: bool = False,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> ModelComparison:
    """Fit every model that reads these judgments without a part of them, in turn, and see what it makes of that part.

    Held out are judgments, and then whole annotators. `models` names those to compare, `quick` takes a few and holds
    out judgments only. `features` are what should not matter, for models that take it into account. The simplest model
    that is not surely behind the best is recommended.
    """
    if folds < 2:
        raise SettingError(f"folds must be at least 2, got {folds}.")
    if len(judgments) < FEWEST:
        raise DataError(f"To compare models takes {FEWEST} judgments at least, got {len(judgments)}.")
    entered = contenders(judgments, models, features, quick=quick)
    held = _held_out(judgments, folds, quick, seed)
    steps = _Steps(on_progress, len(entered) * (sum(map(len, held.values())) + (gold is not None)))
    foretold = {by: foretell(entered.models, parts, entered.left_out, steps) for by, parts in held.items()}
    _need_rivals(entered)
    graded = {} if gold is None else _graded(judgments, entered, gold, seed, steps)
    return _conclude(judgments, entered, foretold, graded, folds)


def _need_rivals(entered: Contenders) -> None:
    """Refuse to go on where all but one have failed, or the plain model has."""
    if reason := entered.left_out.get(entered.plain):
        raise DataError(f"{entered.plain}, which the others are compared with, cannot be fitted: {reason}")
    if len(entered.models.keys() - entered.left_out.keys()) < 2:
        reason = "; ".join(f"{name}: {why}" for name, why in entered.left_out.items())
        raise DataError(f"No model but {entered.plain} can be fitted to parts of these judgments. {reason}")


@dataclass
class _Steps:
    """Counts the fits, and tells."""

    tell: Progress | None
    total: int
    done: int = 0

    def __call__(self, name: str) -> None:
        self.done += 1
        if self.tell is not None:
            self.tell(name, self.done, self.total)


def _held_out(judgments: Judgments, folds: int, quick: bool, seed: int) -> dict[By, list[Fold]]:
    few = 1 if quick and len(judgments) > _MANY else None
    held: dict[By, list[Fold]] = {"judgment": folds_by(judgments, "judgment", folds, seed, few)}
    if not quick and judgments.annotator is not None and len(judgments.annotators) > 1:
        held["annotator"] = folds_by(judgments, "annotator", folds, seed)
    held = {by: parts for by, parts in held.items() if parts}
    if not held:
        raise DataError("No two items were put in order by what is held out: there is nothing to foretell.")
    return held


def _graded(
    judgments: Judgments, entered: Contenders, gold: Gold, seed: int, steps: _Steps
) -> dict[str, tuple[Evaluation, Estimate]]:
    rankings: dict[str, Ranking] = {}
    for name, model in entered.models.items():
        if name not in entered.left_out:
            rankings[name] = fit_quietly(model, judgments)[0]
        steps(name)
    gains = accuracy_gains(rankings, gold, entered.plain, np.random.default_rng(seed))
    return {name: (grade, gains[name]) for name, grade in grades(rankings, gold).items()}


def _conclude(
    judgments: Judgments,
    entered: Contenders,
    foretold: dict[By, Foretold],
    graded: dict[str, tuple[Evaluation, Estimate]],
    folds: int,
) -> ModelComparison:
    found = foretold[next(iter(foretold))]
    yardstick = "chance" if isinstance(judgments, Comparisons) and len(found.chance) > 1 else "agreement"
    chance = {by: _marks(found, found.chance, entered.plain) for by, found in foretold.items()}
    agreement = {by: _marks(found, found.agreed, entered.plain) for by, found in foretold.items()}
    entrants = [
        Entrant(
            name,
            model_settings(model),
            _of(name, chance),
            _of(name, agreement),
            graded[name][0] if graded else None,
            graded[name][1] if graded else None,
            round(sum(found.seconds[name] for found in foretold.values()), 2),
            sum(found.stopped_short[name] for found in foretold.values()),
        )
        for name, model in entered.models.items()
        if name not in entered.left_out
    ]
    by = next(iter(foretold))
    reached = (chance if yardstick == "chance" else agreement)[by]
    entrants.sort(key=lambda e: (-_mean(reached.get(e.model)), -_mean(agreement[by].get(e.model)), e.model))
    values = {name: np.concatenate(v) for name, v in (found.chance if yardstick == "chance" else found.agreed).items()}
    return ModelComparison(
        entrants=tuple(entrants),
        left_out=entered.left_out,
        plain=entered.plain,
        yardstick=yardstick,
        folds=folds,
        answers={by: len(found.weight) for by, found in foretold.items()},
        recommendation=recommend(judgments, entered, entrants, values, found.weight, found.who, yardstick),
    )


def _marks(foretold: Foretold, found: dict[str, list[FloatArray]], plain: str) -> dict[str, Mark]:
    return marks({name: np.concatenate(parts) for name, parts in found.items()}, foretold.weight, foretold.who, plain)


def _of(name: str, found: dict[By, dict[str, Mark]]) -> dict[By, Mark]:
    return {by: every[name] for by, every in found.items() if name in every}


def _mean(mark: Mark | None) -> float:
    return -np.inf if mark is None else mark.mean.value


def _row(entrant: Entrant, schemes: dict[By, int]) -> dict[str, Any]:
    row: dict[str, Any] = {"model": entrant.model}
    for by in schemes:
        for measure, found in (("chance", entrant.chance), ("agreement", entrant.agreement)):
            row |= _cells(f"{measure}_by_{by}", found.get(by))
    if entrant.grade is not None:
        row |= {measure.metric: measure.value for measure in entrant.grade.measures}
    if entrant.accuracy_gain is not None:
        gain = entrant.accuracy_gain
        row |= {"accuracy_gain": gain.value, "accuracy_gain_error": gain.std_error}
    return row | {"seconds": entrant.seconds}


def _cells(name: str, mark: Mark | None) -> dict[str, float | None]:
    mean, gain = (None, None) if mark is None else (mark.mean, mark.gain)
    told = {}
    for end, found in (("", mean), ("_gain", gain)):
        told[f"{name}{end}"] = None if found is None else found.value
        told[f"{name}{end}_error"] = None if found is None else found.std_error
    return told


def _told(entrant: Entrant) -> dict[str, Any]:
    """For JSON, which has no nan."""

    def estimate(found: Estimate | None) -> dict[str, float | None] | None:
        if found is None:
            return None
        return {"value": _finite(found.value), "std_error": _finite(found.std_error)}

    def by(found: dict[By, Mark]) -> dict[str, Any]:
        return {
            way: {"mean": estimate(m.mean), "gain": estimate(m.gain), "behind": estimate(m.behind)}
            for way, m in found.items()
        }

    grade = entrant.grade
    return {
        "model": entrant.model,
        "settings": entrant.settings,
        "chance": by(entrant.chance),
        "agreement": by(entrant.agreement),
        "gold": None if grade is None else {m.metric: _finite(m.value) for m in grade.measures},
        "accuracy_gain": estimate(entrant.accuracy_gain),
        "seconds": entrant.seconds,
        "stopped_short": entrant.stopped_short,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
