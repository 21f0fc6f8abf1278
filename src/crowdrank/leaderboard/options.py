"""The options of `crowdrank.rank` that are about leaderboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np

from crowdrank.data import Comparisons, Judgments
from crowdrank.data.features import POSITION, side_features
from crowdrank.errors import FormatError, SettingError, UnknownNameError
from crowdrank.models import REGISTRY, Model
from crowdrank.models.selection import ModelChoice, has_setting
from crowdrank.results import SCALES, Ranking
from crowdrank.results.covariates import UNCONTROLLED_RANK


@dataclass(frozen=True, kw_only=True)
class LeaderboardOptions:
    """Options that `RankOptions` inherits; each is described in `crowdrank.rank`."""

    items: Any = None
    items_columns: Mapping[str, str | None] = field(default_factory=dict)
    system: str | None = None
    features: Sequence[str] = ()
    control: bool = False
    exclude: Sequence[str] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    by: str | None = None
    criteria: Sequence[str] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    cluster: str | None = None
    score_scale: str | None = None
    anchors: Mapping[str, float] = field(default_factory=dict)
    link_to: Ranking | str | PathLike[str] | None = None
    min_comparisons: int = 0
    time: str | int | bool | None = None

    @property
    def board_column(self) -> str | None:
        """The column whose values are leaderboards of their own; None without one, or with several of winners."""
        return self.by or (self.criteria[0] if len(self.criteria) == 1 else None)

    @property
    def has_boards(self) -> bool:
        """Whether there are several leaderboards: one per category or criterion."""
        return bool(self.by or self.criteria)

    @property
    def changes_publication(self) -> bool:
        """Whether scores are shown on another scale, or some items apart as provisional."""
        scaled = self.score_scale is not None or bool(self.anchors) or self.link_to is not None
        return scaled or self.min_comparisons > 0 or self.has_boards

    def __post_init__(self) -> None:
        if self.control and not self.features:
            raise SettingError("control=True needs features= whose effect is to be removed.")
        if self.score_scale is not None and self.score_scale not in SCALES:
            raise UnknownNameError("scale", self.score_scale, SCALES)
        if self.anchors and self.score_scale not in ("elo", "jod"):
            raise SettingError("anchors= needs score_scale='elo' or score_scale='jod'.")
        if self.anchors and self.link_to is not None:
            raise SettingError("link_to= fixes the scale by the items of another ranking: leave anchors= out.")
        if self.link_to is not None and self.score_scale == "probability":
            raise SettingError("link_to= needs a scale without limits, not score_scale='probability'.")
        if any(not 0 <= weight < float("inf") for weight in self.weights.values()):
            raise SettingError(f"weights= must be zero or more, got {dict(self.weights)}.")
        if self.time and (self.control or self.cluster is not None or self.by or self.criteria):
            raise SettingError("time= cannot be combined with control=, cluster=, by= or criteria=.")
        if self.min_comparisons < 0:
            raise SettingError(f"min_comparisons must be zero or more, got {self.min_comparisons}.")


# Control of covariates: which features a model uses, where they come from, and what their control changes.

_DEFAULT = "bradley-terry"


def models_with(setting: str) -> list[str]:
    """Names of the models that have this setting."""
    return [name for name, model in REGISTRY.items() if has_setting(model, setting)]


def default_choice(judgments: Judgments, options: LeaderboardOptions, default: str) -> ModelChoice | None:
    """The model of a ranking with control, or over time, where the user names none; otherwise None.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments.
    options : LeaderboardOptions
        Whether there is control, or time.
    default : str
        The model that would be chosen without them; the reason says why it is not.
    """
    if not options.control and not options.time:
        return None
    what = "effects of features next to the scores" if options.control else "strengths that drift over time"
    several = judgments.annotator is not None and len(judgments.annotators) > 1
    if default == _DEFAULT or not several:
        alike = " All annotators count alike." if several else ""
        return ModelChoice(_DEFAULT, f"It has {what}.{alike}")
    reason = f"It has {what}; {default}, otherwise the default here, does not. All annotators count alike."
    if options.control and has_setting(REGISTRY[default], "features"):
        reason += f" Without control=True, {default} removes how far the features bias the judges."
    return ModelChoice(_DEFAULT, reason)


def feature_settings(model: type[Model], name: str, options: LeaderboardOptions) -> dict[str, tuple[str, ...]]:
    """The features as a setting of the model; raises if it cannot use them."""
    if not options.features:
        return {}
    setting = "covariates" if options.control else "features"
    if has_setting(model, setting):
        return {setting: tuple(options.features)}
    if options.control:
        why = (
            f"{name} models features as biases of annotators, without control=True"
            if has_setting(model, "features")
            else f"{name} has no effects of features next to its scores"
        )
        raise SettingError(f"{why}: control=True needs {' or '.join(models_with('covariates'))}.")
    raise SettingError(
        f"{name} does not use features=. Pass control=True to remove their effect by "
        f"{' or '.join(models_with('covariates'))}, or choose {' or '.join(models_with('features'))}: they estimate "
        "how far features bias each annotator."
    )


def find_feature_sides(source: Any, names: Sequence[str], encoding: str | None) -> dict[str, tuple[str, str]]:
    """The columns of features that the judgments hold for both sides, such as length_left and length_right."""
    wanted = [name for name in names if name != POSITION]
    from crowdrank.io import column_names, find_side_columns

    columns = column_names(source, encoding) if wanted and not _is_empty(source) else []
    found = {}
    for name in wanted if columns else []:
        if name in columns:
            continue
        try:
            found[name] = find_side_columns(source, name, encoding)
        except FormatError:
            continue  # the reader says which columns there are
    return found


def _is_empty(source: Any) -> bool:
    return isinstance(source, Mapping) and not source


def with_feature_sides(judgments: Judgments, sides: Mapping[str, tuple[str, str]]) -> Judgments:
    """The judgments with a feature for each two columns of the sides: left minus right."""
    if not sides or not isinstance(judgments, Comparisons):
        return judgments
    features = dict(judgments.features)
    for name, (left, right) in sides.items():
        features |= side_features(features.pop(left), features.pop(right), name)
    return replace(judgments, features=features)


def with_uncontrolled_ranks(ranking: Ranking, uncontrolled: Ranking) -> Ranking:
    """The ranking with the rank of each item in a ranking without covariates."""
    ranks = {UNCONTROLLED_RANK: uncontrolled.rank.astype(np.float64)}
    return replace(ranking, item_parameters={**ranking.item_parameters, **ranks})
