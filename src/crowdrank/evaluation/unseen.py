"""Judgments held out in turn, and what every model made of the same ones."""

from __future__ import annotations

import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crowdrank.errors import ConvergenceWarning, CrowdrankError, CrowdrankWarning
from crowdrank.judgments import Comparisons, Judgments, Rankings
from crowdrank.models.foretelling import folds_of, log_chances
from crowdrank.models.reading import as_read_by
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]
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

    weight: Vector
    who: npt.NDArray[np.int64]
    """Whose answers they are: what one person said hangs together."""
    chance: dict[str, list[Vector]] = field(default_factory=dict)
    """The log chance given to each answer, by models that give chances."""
    agreed: dict[str, list[Vector]] = field(default_factory=dict)
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
    fold = folds_of(known, min(folds, units), by, np.random.default_rng(seed))
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


def fit_quietly(model: Any, judgments: Judgments) -> tuple[Ranking, bool]:
    """The ranking, and whether the solver got there."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", CrowdrankWarning)
        ranking = model.fit(as_read_by(model, judgments)[0])
    return ranking, not any(issubclass(w.category, ConvergenceWarning) for w in heard)


def _ask(name: str, model: Any, fold: Fold, found: Foretold) -> None:
    began = time.perf_counter()
    ranking, converged = fit_quietly(model, fold.seen)
    answers = fold.answers
    if hasattr(model, "predict"):
        with np.errstate(divide="ignore"):
            chance = np.maximum(log_chances(model, ranking, answers), _LEAST)
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


def _who(answers: Comparisons) -> npt.NDArray[np.int64]:
    return np.arange(len(answers)) if answers.annotator is None else answers.annotator.astype(np.int64)
