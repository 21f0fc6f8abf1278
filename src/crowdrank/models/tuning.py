"""Settings left to the data: of a few candidates, the one under which judgments set aside are likeliest."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from typing import Any

import numpy as np

from crowdrank.engines import Engine
from crowdrank.errors import CrowdrankWarning
from crowdrank.judgments import Comparisons
from crowdrank.models.foretelling import folds_of, log_chances

AUTO = "auto"

CANDIDATES: dict[str, tuple[Any, ...]] = {
    "virtual_weight": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
    "prior_scale": (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0),
    "quality_prior": ((1.0, 1.0), (2.0, 1.0), (3.0, 0.5), (4.0, 2.0), (8.0, 1.0), (16.0, 2.0)),
}
_FIRST = {"virtual_weight": 0.5, "prior_scale": 3.0, "quality_prior": (3.0, 0.5)}
_FOLDS = 5
# Beyond so many judgments one fold tells enough.
_MANY = 100_000


def is_auto(value: object) -> bool:
    return isinstance(value, str) and value == AUTO


def tuned(model: Any, comparisons: Comparisons, engine: Engine) -> Any:
    """The model with every setting that is "auto" set, one after another."""
    names = [field.name for field in fields(model) if is_auto(getattr(model, field.name))]
    best = replace(model, **{name: _FIRST[name] for name in names})
    if not names or len(comparisons) < _FOLDS:
        return best
    fold = folds_of(comparisons, _FOLDS, "judgment", np.random.default_rng(model.seed))
    for name in names:
        candidates = _candidates(best, name)
        gained = [_foretold(candidate, comparisons, fold, engine) for candidate in candidates]
        best = candidates[int(np.argmax(gained))]
    return best


def _candidates(model: Any, name: str) -> list[Any]:
    """No virtual item at all is one of them where something else holds the scores."""
    none = (0.0,) if name == "virtual_weight" and model.prior_scale is not None else ()
    return [replace(model, **{name: value}) for value in none + CANDIDATES[name]]


def _foretold(model: Any, comparisons: Comparisons, fold: Any, engine: Engine) -> float:
    """The log-likelihood of the judgments set aside, added up."""
    total = 0.0
    for n in range(1 if len(comparisons) > _MANY else _FOLDS):
        unseen = comparisons.take(np.flatnonzero(fold == n))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdrankWarning)  # of what the fit of them all will say
            ranking = model.fit(comparisons.take(np.flatnonzero(fold != n)), engine)
        total += float(unseen.weights[unseen.outcome != 0] @ log_chances(model, ranking, unseen))
    return total
