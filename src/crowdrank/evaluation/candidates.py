"""Candidate models of a comparison: those that read the judgments as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings
from crowdrank.data.features import POSITION
from crowdrank.errors import DataError, SettingError
from crowdrank.models import REGISTRY, by_name
from crowdrank.models.selection import ModelChoice, default_model, kinds_read
from crowdrank.results import Ranking

BASELINE: dict[type, str] = {Comparisons: "bradley-terry", Ratings: "mean-rating", Rankings: "plackett-luce"}
"""The model that the others are compared with, by kind of judgment."""
QUICK_MODELS: dict[type, tuple[str, ...]] = {
    Comparisons: ("bradley-terry", "crowd-bt", "factor-bt"),
    Ratings: ("mean-rating", "z-rating", "graded-response"),
    Rankings: ("plackett-luce", "borda"),
}
"""The models of a quick comparison."""
SLOW_MODELS = ("bayesian-crowd-bt", "tpp", "trm")
"""Models that sample."""
SLOW_MAX_JUDGMENTS = 1_000
"""With more judgments than this, slow models are compared only if they are named."""
BY_COMPLEXITY = (
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
"""Models from simple to complex: a score per item; parameters per annotator; features of the task; domains. Among
equally simple models the better known one comes first."""
_MIN_BOTH_ORDERS = 0.1
"""Smallest fraction of pairs in each order from which the sides count as randomised."""


@dataclass(frozen=True)
class Candidates:
    """The models to compare.

    Parameters
    ----------
    models : dict of str to Model
        The models by name.
    left_out : dict of str to str
        Why other models are not compared, by name.
    baseline : str
        Name of the model that the others are compared with.
    default : ModelChoice
        The default model of these judgments, which `rank` uses, and why.
    """

    models: dict[str, Any]
    left_out: dict[str, str]
    baseline: str
    default: ModelChoice

    def __len__(self) -> int:
        return len(self.models)


def select_candidates(
    judgments: Judgments,
    names: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    quick: bool = False,
) -> Candidates:
    """Return the models to compare: those in `names`, a few if `quick`, else all that read this kind of judgment.

    The baseline and the default model are always among them. `features` are given to models with features; by default
    those of the judgments, else the side of the screen.
    """
    wanted = names if names is not None else QUICK_MODELS[type(judgments)] if quick else _readers(judgments)
    used_features = _default_features(judgments) if features is None else tuple(features)
    found = Candidates({}, {}, BASELINE[type(judgments)], default_model(judgments))
    for name in dict.fromkeys((found.baseline, found.default.name, *wanted)):
        kind = by_name(name)
        reason = "" if names is not None and name in names else _reason_against(kind, name, judgments, used_features)
        if reason:
            found.left_out[name] = reason
        elif _has_features(kind):
            settings: dict[str, Any] = {"features": used_features or (POSITION,)}
            found.models[name] = kind(**settings)
        else:
            found.models[name] = kind()
    if names is not None and len(set(names) | {found.baseline}) < 2:
        raise SettingError(f"Comparing needs at least two models, got {', '.join(names) or 'none'}.")
    if len(found) < 2:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
        raise DataError(f"No model can be compared with {found.baseline}. {reasons}.")
    return found


def complexity(name: str) -> tuple[int, str]:
    """Return a sort key from simple to complex; models without a known complexity come last."""
    return (BY_COMPLEXITY.index(name) if name in BY_COMPLEXITY else len(BY_COMPLEXITY)), name


def _has_features(kind: type[Any]) -> bool:
    return "features" in {entry.name for entry in fields(kind)}


def _readers(judgments: Judgments) -> list[str]:
    return [name for name, kind in REGISTRY.items() if isinstance(judgments, kinds_read(kind))]


def _default_features(judgments: Judgments) -> tuple[str, ...]:
    if not isinstance(judgments, Comparisons):
        return ()
    if judgments.features:
        return tuple(judgments.features)
    return (POSITION,) if _sides_are_randomised(judgments) else ()


def _sides_are_randomised(comparisons: Comparisons) -> bool:
    share = float(np.mean(comparisons.left < comparisons.right)) if len(comparisons) else 0.0
    return comparisons.positions_known and _MIN_BOTH_ORDERS <= share <= 1 - _MIN_BOTH_ORDERS


def _reason_against(kind: type[Any], name: str, judgments: Judgments, features: tuple[str, ...]) -> str:
    """Why a model is not compared unless it is named; "" if it is."""
    several = judgments.annotator is not None and len(judgments.annotators) > 1
    if kind.models_annotators and not several:
        return "the judgments do not name several annotators"
    if name in SLOW_MODELS and len(judgments) > SLOW_MAX_JUDGMENTS:
        return f"slow: compared only up to {SLOW_MAX_JUDGMENTS:,} judgments, or if named"
    if name == "tpp" and len(judgments.items.queries) < 2:
        return "it models domains of queries, and there is only one query"
    if _has_features(kind) and not features:
        return "the judgments have no features, and sides are unknown or not randomised"
    return ""


def model_of(ranking: Ranking) -> Any:
    """Return the model of a ranking with its settings; None if it is not a registered model."""
    if ranking.model not in REGISTRY:
        return None
    kind, known = by_name(ranking.model), dict(ranking.settings)
    return kind(**{entry.name: known[entry.name] for entry in fields(kind) if entry.name in known})
