"""What `rank` can adjust for besides the annotators: covariates, drift over time, and clusters of judgments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdrank.arrays import IntArray
from crowdrank.data import Comparisons, Judgments, SideInformation
from crowdrank.data.features import POSITION, numbers_or_text, side_features
from crowdrank.errors import DataError, DataWarning, FormatError, SettingError, issue_warning
from crowdrank.io.column_roles import SYNONYMS, normalize_name
from crowdrank.models import REGISTRY, Model, name_of, with_bootstrap
from crowdrank.models.pairwise.covariates import with_sandwich
from crowdrank.models.pairwise.paired import PairwiseModel
from crowdrank.models.pairwise.random_walk import PERIODS, fit_over_time
from crowdrank.models.selection import ModelChoice, has_setting, models_with
from crowdrank.results import Ranking
from crowdrank.results.covariates import UNCONTROLLED_RANK

if TYPE_CHECKING:
    from crowdrank.pipeline.sources import RankOptions

# Covariates: which features a model uses, where they come from, and what their control changes.

_DEFAULT = "bradley-terry"


def default_with_adjustment(judgments: Judgments, options: RankOptions, default: str) -> ModelChoice:
    """The model of a ranking with control, or over time, where the user names none.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments.
    options : RankOptions
        Whether there is control, or time.
    default : str
        The model that would be chosen without them; the reason says why it is not.
    """
    what = "effects of features next to the scores" if options.control else "strengths that drift over time"
    several = judgments.annotator is not None and len(judgments.annotators) > 1
    if default == _DEFAULT or not several:
        alike = " All annotators count alike." if several else ""
        return ModelChoice(_DEFAULT, f"It has {what}.{alike}")
    reason = f"It has {what}; {default}, otherwise the default here, does not. All annotators count alike."
    if options.control and has_setting(REGISTRY[default], "features"):
        reason += f" Without control=True, {default} removes how far the features bias the judges."
    return ModelChoice(_DEFAULT, reason)


def feature_settings(model: type[Model], name: str, options: RankOptions) -> dict[str, tuple[str, ...]]:
    """The features as a setting of the model; raises if it cannot use them."""
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


# Strengths that drift over time.


def check_drift(options: RankOptions, model: Model, judgments: Judgments) -> None:
    """Raise before the fit if strengths over time cannot be estimated."""
    if isinstance(options.time, str) and options.time not in ("auto", *PERIODS):
        raise SettingError(f"time must be {', '.join(PERIODS)}, or a number of periods, got {options.time!r}.")
    if not isinstance(model, PairwiseModel):
        raise SettingError(f"{name_of(model)} has no strengths that drift: time= needs bradley-terry or thurstone.")
    if not isinstance(judgments, Comparisons):
        raise DataError(f"time= needs comparisons, got {type(judgments).__name__.lower()}.")
    if judgments.time is None or np.isnan(judgments.time).all():
        raise DataError(
            "time= needs the time of each judgment, and no column holds it.",
            remedy="Name the column: columns={'time': 'COLUMN'}.",
            option="columns",
            value={"time": "COLUMN"},
        )
    if unknown := int(np.isnan(judgments.time).sum()):
        found = "1 judgment has" if unknown == 1 else f"{unknown:,} judgments have"
        issue_warning(f"{found} no time, and no part in the curves over time.", DataWarning)


def with_drift(model: Model, judgments: Judgments, ranking: Ranking, options: RankOptions) -> Ranking:
    """Return the ranking of the last period, with the curves of all items."""
    assert isinstance(model, PairwiseModel)
    assert isinstance(judgments, Comparisons)
    assert options.time is not None
    found = fit_over_time(model, judgments, ranking, options.time)
    return found if ranking.has_uncertainty else found.without_uncertainty()


# Clusters: votes on one prompt, in one conversation or by one annotator, which belong together.

ANNOTATOR = "annotator"
_FEWEST, _FEW = 5, 20


def names_query(cluster: str | None) -> bool:
    """Whether the column of the clusters would be read as the query, by its name."""
    known = {name for names in SYNONYMS["query"] for name in names}
    return cluster is not None and normalize_name(cluster) in known


def cluster_codes(judgments: Judgments, cluster: str) -> IntArray:
    """The cluster of each judgment, counted from 0; a judgment without one is a cluster of its own."""
    if cluster == ANNOTATOR:
        if judgments.annotator is None:
            raise DataError("cluster='annotator': these judgments do not name annotators.")
        found = judgments.annotator.astype(np.int64)
    elif isinstance(judgments, Comparisons) and cluster in judgments.features:
        column = numbers_or_text(judgments.features[cluster])
        missing = column == "" if column.dtype == object else np.isnan(column)
        found = np.unique(column, return_inverse=True)[1].astype(np.int64).ravel()
        found[missing] = found.max() + 1 + np.arange(int(missing.sum()))
    else:
        kind = type(judgments).__name__.lower()
        raise DataError(
            f"cluster={cluster!r} must be a column of comparisons, and these {kind} do not have it. For lists and "
            "ratings use cluster='annotator'."
        )
    codes = np.unique(found, return_inverse=True)[1].astype(np.int64).ravel()
    count = int(codes.max()) + 1
    if count < _FEWEST:
        raise DataError(f"cluster={cluster!r} has {count:,} clusters; errors by cluster need at least {_FEWEST}.")
    if count < _FEW:
        issue_warning(f"There are only {count:,} clusters: their errors are rough.", DataWarning)
    return codes


def with_cluster_errors(
    model: Model,
    judgments: Judgments,
    ranking: Ranking,
    cluster: str,
    method: str,
    side_information: SideInformation | None,
) -> Ranking:
    """Return the ranking with errors that take the judgments of one cluster as dependent.

    By a sandwich estimate for bradley-terry and thurstone, by resampling clusters for other models or if `method` is
    "bootstrap".
    """
    codes = cluster_codes(judgments, cluster)
    if method == "model" and isinstance(model, PairwiseModel) and not model.has_random_effects:
        assert isinstance(judgments, Comparisons)
        return with_sandwich(model, judgments, ranking, codes)
    return with_bootstrap(model, judgments, ranking, side_information=side_information, clusters=codes)
