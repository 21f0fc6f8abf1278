"""Which models are compared: those that read the judgments as they are, the simplest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings
from crowdrank.data.features import POSITION
from crowdrank.errors import DataError, SettingError
from crowdrank.models import REGISTRY, by_name
from crowdrank.models.conversion import kinds_read

PLAIN: dict[type, str] = {Comparisons: "bradley-terry", Ratings: "mean-rating", Rankings: "plackett-luce"}
"""The model that the others must beat, by the kind of judgment."""
QUICK: dict[type, tuple[str, ...]] = {
    Comparisons: ("bradley-terry", "crowd-bt", "factor-bt"),
    Ratings: ("mean-rating", "z-rating", "graded-response"),
    Rankings: ("plackett-luce", "borda"),
}
"""Who is compared where it must not take long."""
SLOW = ("bayesian-crowd-bt", "tpp", "trm")
"""Models that sample."""
SLOW_UP_TO = 1_000
"""Judgments beyond which these are left out, unless they are asked for by name."""
LADDER = (
    "bradley-terry",
    "thurstone",
    "elo",
    "crowd-bt",
    "em-elo",
    "variance-bt",
    "mpm",
    "bayesian-crowd-bt",
    "factor-bt",
    "tpp",
    "mean-rating",
    "z-rating",
    "graded-response",
    "dawid-skene",
    "plackett-luce",
    "borda",
    "crowd-agg",
    "trm",
)
"""The simplest first: a score an item; something of each annotator; also of the task; domains. Of the equally simple
the better known."""
_BOTH_WAYS = 0.1
"""The share of answers with the second item on the left, and with the first, from which sides were drawn by lot."""


@dataclass(frozen=True)
class Contenders:
    """The models that enter, and why others do not."""

    models: dict[str, Any]
    left_out: dict[str, str]
    """What keeps a model out, by its name."""
    plain: str

    def __len__(self) -> int:
        return len(self.models)


def contenders(
    judgments: Judgments,
    names: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    quick: bool = False,
) -> Contenders:
    """All that read this kind of judgment, those of `names`, or the few that a `quick` look takes.

    `features` are what should not matter, for the models that take it into account: those read with the judgments, else
    the side of the screen.
    """
    wanted = names if names is not None else QUICK[type(judgments)] if quick else _readers(judgments)
    told = _features(judgments) if features is None else tuple(features)
    found = Contenders({}, {}, PLAIN[type(judgments)])
    for name in dict.fromkeys((found.plain, *wanted)):
        kind = by_name(name)
        reason = "" if names is not None and name in names else _unfit(kind, name, judgments, told)
        if reason:
            found.left_out[name] = reason
        elif "features" in {entry.name for entry in fields(kind)}:
            found.models[name] = kind(features=told or (POSITION,))
        else:
            found.models[name] = kind()
    if len(found) < 2 and names is not None:
        raise SettingError("There is nothing to compare: name two models or more.")
    if len(found) < 2:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
        raise DataError(f"There is nothing to compare {found.plain} with. {reasons}.")
    return found


def rung(name: str) -> tuple[int, str]:
    """How far from simple a model is; those not on the ladder come last."""
    return (LADDER.index(name) if name in LADDER else len(LADDER)), name


def _readers(judgments: Judgments) -> list[str]:
    return [name for name, kind in REGISTRY.items() if isinstance(judgments, kinds_read(kind))]


def _features(judgments: Judgments) -> tuple[str, ...]:
    if not isinstance(judgments, Comparisons):
        return ()
    if judgments.features:
        return tuple(judgments.features)
    return (POSITION,) if _shown_both_ways(judgments) else ()


def _shown_both_ways(comparisons: Comparisons) -> bool:
    first = float(np.mean(comparisons.left < comparisons.right)) if len(comparisons) else 0.0
    return comparisons.positions_known and _BOTH_WAYS <= first <= 1 - _BOTH_WAYS


def _unfit(kind: type[Any], name: str, judgments: Judgments, features: tuple[str, ...]) -> str:
    """Why a model does not enter unless it is asked for; "" if it does."""
    several = judgments.annotator is not None and len(judgments.annotators) > 1
    if kind.models_annotators and not several:
        return "there is no telling annotators apart"
    if name in SLOW and len(judgments) > SLOW_UP_TO:
        return f"slow: it is entered up to {SLOW_UP_TO:,} judgments, or when it is named"
    if name == "tpp" and len(judgments.items.queries) < 2:
        return "it looks for domains of queries, and there is one query"
    if "features" in {entry.name for entry in fields(kind)} and not features:
        return "there is no side of the screen to go by, and no feature"
    return ""
