"""Clusters of judgments: votes on one prompt, in one conversation or by one annotator, which belong together."""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import IntArray
from crowdrank.data import Comparisons, Judgments, SideInformation
from crowdrank.data.features import numbers_or_text
from crowdrank.errors import DataError, DataWarning, issue_warning
from crowdrank.io.column_roles import SYNONYMS, normalize_name
from crowdrank.models import Model, with_bootstrap
from crowdrank.models.pairwise.covariates import with_sandwich
from crowdrank.models.pairwise.paired import PairwiseModel
from crowdrank.results import Ranking

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
