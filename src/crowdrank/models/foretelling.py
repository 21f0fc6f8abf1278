"""Judgments set aside and foretold: the folds, and the chance a model gave to what was answered."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crowdrank.errors import SettingError
from crowdrank.judgments import Comparisons
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]


def log_chances(
    model: Any, ranking: Ranking, comparisons: Comparisons, ties: Literal["drop", "keep"] = "drop"
) -> Vector:
    """Log of the chance the model gave to each answer.

    With ties dropped, to each decided answer given that it was decided: models with and without room for ties
    then compare like with like.
    """
    chances = model.predict(ranking, comparisons)
    rows = np.arange(len(comparisons))
    if ties == "drop":
        rows = np.flatnonzero(comparisons.outcome != 0)
        chances = chances / (1.0 - chances[:, 1:2])
    return np.asarray(np.log(chances[rows, 1 - comparisons.outcome[rows]]))


def folds_of(
    comparisons: Comparisons, folds: int, by: Literal["judgment", "annotator"], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """The fold of each row, as even as can be; whole judgments, or whole annotators."""
    of_row: npt.NDArray[Any]
    if by == "judgment":
        units, of_row = len(comparisons), np.arange(len(comparisons))
    elif by == "annotator" and comparisons.annotator is not None:
        units, of_row = len(comparisons.annotators), comparisons.annotator
    else:
        raise SettingError('by must be "judgment", or "annotator" where annotators are known.')
    if not 2 <= folds <= units:
        raise SettingError(f"folds must lie between 2 and the number of {by}s ({units}), got {folds}.")
    return np.asarray(rng.permutation(np.arange(units) % folds)[of_row])
